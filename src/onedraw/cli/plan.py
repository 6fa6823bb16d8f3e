"""`onedraw plan`: what a release would promise and how good it would be, before any record is read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onedraw.defaults import DELTA

from .flags import (
    Accept,
    AsJson,
    Between,
    By,
    ColumnList,
    Delta,
    Dispersion,
    Draws,
    Effect,
    Epsilon,
    Hidden,
    Interval,
    Level,
    Mechanism,
    Noise,
    Order,
    Prior,
    PriorScale,
    Quantile,
    Quantiles,
    Question,
    Radius,
    ResponseBound,
    Robust,
    SchemaFile,
    Target,
    Threshold,
    VarianceFloor,
    budget_from,
    draws_from,
    names_from,
    numbers_from,
    response_range_from,
)
from .show import number, progress, show_json, show_lines, show_table

if TYPE_CHECKING:
    from onedraw.planning.asking import Asked, Planned

PUBLIC_SEED = 20261115  # simulations of public numbers: the seed protects nothing and makes plans reproducible

Rows = Annotated[int, typer.Option("--rows", help="n, the public number of records.")]


def plan(
    schema: SchemaFile,
    model: Question,
    epsilon: Epsilon,
    rows: Rows,
    target: Target = None,
    columns: ColumnList = None,
    delta: Delta = DELTA,
    order: Order = None,
    mechanism: Mechanism = "auto",
    prior: Prior = None,
    by: By = None,
    level: Level = None,
    between: Between = None,
    draws: Draws = "auto",
    simulate: Annotated[int, typer.Option("--simulate", metavar="SETS", min=0, help="Also run every mechanism on so many simulated data sets, to check the prediction.")] = 0,
    for_error: Annotated[float | None, typer.Option("--for-error", metavar="ERROR", help="Also the smallest n, and the smallest ε, that reach this error.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw the expected error as a picture (.png, .svg or .pdf); must not exist.")] = None,
    over: Annotated[str, typer.Option("--over", help="What the figure varies: rows or epsilon.")] = "rows",
    report: Annotated[Path | None, typer.Option("--report", help="Also write the plan as a page for an officer to read and sign (.html); must not exist.")] = None,
    effect: Effect = None,
    noise: Noise = None,
    prior_scale: PriorScale = None,
    radius: Radius = None,
    response_bound: ResponseBound = None,
    variance_floor: VarianceFloor = None,
    threshold: Threshold = None,
    quantile: Quantile = None,
    dispersion: Dispersion = None,
    robust: Robust = None,
    hidden: Hidden = None,
    quantiles: Quantiles = None,
    interval: Interval = True,
    accept: Accept = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """The promise and the expected error of every eligible mechanism. Reads the schema, never the data."""
    from onedraw.data import Schema
    from onedraw.planning.asking import ask

    check_figure(figure, over)
    check_report(report)
    declared, budget = Schema.load(schema), budget_from(epsilon, delta, order)
    asked = ask(
        declared, target, model, columns=columns, prior=numbers_from(prior, "--prior", "1,1"), by=names_from(by), level=level,
        between=numbers_from(between, "--between", "18,30"),
        quantiles=numbers_from(quantiles, "--quantiles", "0.25,0.5,0.75"), interval=interval,
        options={
            "effect": effect, "noise": noise, "prior_scale": prior_scale, "radius": radius,
            "response_bound": response_range_from(response_bound), "variance_floor": variance_floor,
            "threshold": threshold, "quantile": quantile, "dispersion": dispersion, "robust": robust, "hidden": hidden,
        },
    )  # fmt: skip
    check_predictable(asked, for_error=for_error, figure=figure, simulate=simulate)
    options: dict[str, Any] = {"mechanism": mechanism, "accept": tuple(accept or ())}
    found = asked.planned(budget, n=rows, draws=draws_from(draws), compare=True, **options)
    eligible = [described(choice) for choice in found.choices.eligible]
    if simulate:
        add_simulated(eligible, asked, found, simulate)
    document: dict[str, Any] = {
        "budget": budget.to_dict(), "n": rows, "target": target, "columns": list(asked.schema.columns) if target is None else None, "draws": found.draws, "why_no_interval": found.why_no_interval,
        "model": found.choices.best.model.to_dict(), "why": found.choices.why, "expectation": found.choices.expectation,
        "eligible": eligible, "refused": found.choices.refused,
    }  # fmt: skip
    if for_error is not None:
        document["for_error"] = {"error": for_error} | smallest(asked, budget, rows, for_error, mechanism=mechanism)
    if figure is not None:
        from .plan_figure import draw_plan

        curves = expected_over(asked, budget, rows, draws=found.draws, over=over, options=options)
        draw_plan(figure, curves, over=over, at=rows if over == "rows" else epsilon, title=f"{asked.title}: {budget}, n = {rows:,}")  # fmt: skip
        document["figure"] = {"file": str(figure), "over": over, "points": curves}
    if report is not None:
        document["report"] = str(found.report(report))
    if as_json:
        show_json(document)
    else:
        show(asked, budget, document)


def check_figure(figure: Path | None, over: str) -> None:
    from onedraw.errors import CannotWrite, WrongCall, check_extra
    from onedraw.release import check_writable

    if over not in ("rows", "epsilon"):
        raise WrongCall(f"--over is what the figure varies, rows or epsilon; {over!r} came.")
    if figure is None:
        return
    if figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise CannotWrite(f"A figure is written as .png, .svg or .pdf, but {figure.name} came. Choose another name.")
    check_extra("figures", "matplotlib", "--figure")
    check_writable(figure)


def check_report(report: Path | None) -> None:
    if report is not None:
        from onedraw.report.page import check_place

        check_place(report, overwrite=False)


def check_predictable(asked: Asked, *, for_error: float | None, figure: Path | None, simulate: int) -> None:
    """Refuse, before anything is computed, what has no answer."""
    from onedraw.errors import WrongCall

    if asked.is_network and (for_error is not None or figure is not None or simulate):
        raise WrongCall(
            "The error of a network's weights cannot be predicted: single weights mean nothing. Leave out --for-error, "
            "--figure and --simulate."
        )
    if asked.target is None and simulate:
        raise WrongCall("--simulate is for mechanisms with a choice; a covariance has one. Leave it out.")
    if for_error is None:
        return
    if not 1e-60 < for_error < 1e60:
        raise WrongCall(
            f"--for-error is the wanted root mean squared error, a number between 1e-60 and 1e60, but {for_error:g} came."
        )
    if asked.regression is None:
        raise WrongCall(
            f"--for-error is answered for regressions; for a {asked.model} look at the figure: --figure plan.png."
        )


# ── what is computed ─────────────────────────────────────────────────────────────────────────────────────────


def described(choice: Any) -> dict[str, Any]:
    from onedraw.planning.asking import name_of

    return {
        "mechanism": name_of(choice), "parameters": dict(choice.plan.parameters),
        "promise": choice.plan.guarantee.promise.to_dict(), "expected_rmse": known(choice.expected.private),
        "rmse_without_privacy": known(choice.expected.sampling), "bias": known(choice.expected.bias),
        "seconds": known(choice.seconds), "plan_digest": choice.plan.digest,
        "designs": [
            {"filled": design.filled, "correlation": design.correlation, "stronger_effects": design.stronger,
             "expected_rmse": design.expected.private, "rmse_without_privacy": design.expected.sampling}
            for design in choice.designs
        ],
    }  # fmt: skip


def known(value: float) -> float | None:
    """JSON has no NaN: what is not known is null."""
    return value if math.isfinite(value) else None


def add_simulated(eligible: list[dict[str, Any]], asked: Asked, found: Planned, data_sets: int) -> None:
    """Run the real mechanisms on data simulated from the design. Seeded and public: nothing here is a release."""
    import numpy as np

    from onedraw.errors import WrongCall
    from onedraw.planning import simulated_error

    question = asked.regression
    sizes = {} if question is None else {"effect": question.expected_effect, "noise": question.unit}
    with progress("simulating", total=len(eligible)) as step:
        for row, choice in zip(eligible, found.choices.eligible, strict=True):
            step(row["mechanism"])
            generator = np.random.default_rng(PUBLIC_SEED)
            try:
                error = simulated_error(choice.plan, data_sets=data_sets, generator=generator, **sizes).private
            except WrongCall:
                error = math.nan
            row["simulated_rmse"] = known(error * asked.unit)


def smallest(asked: Asked, budget: Any, n: int, error: float, *, mechanism: str) -> dict[str, Any]:
    """The smallest n for the budget and the smallest ε for the records, or the reason there is none."""
    from onedraw.errors import PromiseRefused
    from onedraw.planning import smallest_epsilon, smallest_n
    from onedraw.privacy import ApproxDP, PureDP

    def in_own_unit(refused: PromiseRefused) -> str:
        """The wanted error as it was typed, not in the unit of the scaled response."""
        return str(refused).replace(f"{error / asked.unit:g}", f"{error:g}")

    found: dict[str, Any] = {"smallest_rows": None, "smallest_epsilon": None, "reasons": []}
    with progress("looking for the smallest n and ε", total=2) as step:
        step("smallest n")
        try:
            found["smallest_rows"] = smallest_n(asked.regression, budget, error / asked.unit, mechanism=mechanism)
        except PromiseRefused as refused:
            found["reasons"].append(in_own_unit(refused))
        step("smallest ε")
        if not isinstance(budget, ApproxDP | PureDP):
            found["reasons"].append("The smallest ε is sought for (ε, δ) budgets; leave out --order for it.")
            return found
        delta = budget.stated_delta if isinstance(budget, ApproxDP) else 0.0
        try:
            found["smallest_epsilon"] = smallest_epsilon(
                asked.regression, error / asked.unit, n=n, delta=delta, mechanism=mechanism
            )
        except PromiseRefused as refused:
            found["reasons"].append(in_own_unit(refused))
    return found


def expected_over(
    asked: Asked, budget: Any, n: int, *, draws: int, over: str, options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Expected errors at sizes a tenth to ten times as large as asked, for every mechanism eligible there."""
    from onedraw.errors import PromiseRefused

    points = []
    factors = [10.0 ** (step / 4) for step in range(-4, 5)]
    with progress("planning the figure", total=len(factors)) as step:
        for factor in factors:
            step("")
            size = max(1, round(n * factor))
            asked_for = budget if over == "rows" else scaled(budget, factor)
            try:
                found = asked.planned(asked_for, n=size if over == "rows" else n, draws=draws, **options)
            except PromiseRefused:
                continue
            errors = {name: error for choice in found.choices.eligible for name, error in errors_of(choice).items()}
            plain = known(found.choices.eligible[0].expected.sampling)
            at = size if over == "rows" else asked_for.stated_epsilon
            points.append({"at": at, "expected_rmse": errors, "rmse_without_privacy": plain})
    return points


def errors_of(choice: Any) -> dict[str, float | None]:
    """By the name of the line in the figure: of a fit two, between which the designs lie."""
    from onedraw.planning.asking import name_of

    if not choice.designs:
        return {name_of(choice): known(choice.expected.private)}
    errors = [design.expected.private for design in choice.designs]
    return {f"{name_of(choice)}, worst design": max(errors), f"{name_of(choice)}, best design": min(errors)}


def scaled(budget: Any, factor: float) -> Any:
    """The same kind of budget with another ε."""
    from onedraw.errors import WrongCall
    from onedraw.privacy import ApproxDP, PureDP

    match budget:
        case ApproxDP(stated_epsilon=epsilon, stated_delta=delta):
            return ApproxDP(epsilon * factor, delta)
        case PureDP(stated_epsilon=epsilon):
            return PureDP(epsilon * factor)
    raise WrongCall("--over epsilon varies the ε of an (ε, δ) budget; leave out --order, or use --over rows.")


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────────────────


def show(asked: Asked, budget: Any, document: dict[str, Any]) -> None:
    from onedraw.planning.asking import RANKS

    eligible, simulated = document["eligible"], "simulated_rmse" in document["eligible"][0]
    head = ["mechanism", "expected error", *(["simulated"] if simulated else []), "without privacy"]
    show_table(
        f"{asked.title}: {budget}, n = {document['n']:,}", head,
        [[row["mechanism"], range_of(row, "expected_rmse"), *([figure_of(row["simulated_rmse"])] if simulated else []),
          range_of(row, "rmse_without_privacy")] for row in eligible],
    )  # fmt: skip
    if document["why"]:
        show_lines("", f"Method: {document['why']}")
    show_lines(*(f"Not used: {name}. {reason}" for name, reason in document["refused"].items()))
    if document["why_no_interval"]:
        show_lines(f"No interval: {document['why_no_interval']}.")
    for row in eligible:
        show_designs(row)
    if "for_error" in document:
        show_lines(
            "", *smallest_words(document["for_error"], document["n"], budget, best_design=bool(eligible[0]["designs"]))
        )
    if "figure" in document:
        show_lines(f"Figure written to {document['figure']['file']}.")
    if "report" in document:
        show_lines(f"Plan written to {document['report']}.")
    what = (
        "averaged over what was thought likely beforehand"
        if asked.regression is None
        else "for columns scaled to [-1, 1]"
    )
    if asked.model in RANKS:
        what = "of ranks, as shares of the records: 0.01 turns the median into the 0.49- or 0.51-quantile"
    if asked.target is None:
        what = "of a correlation, for columns that fill their ranges and do not go together"
    if any(row["designs"] for row in eligible):
        what += "; once a release is made its own standard errors count"
    show_lines("", f"Errors are root mean squared per parameter, {what}. No record was read.")


def show_designs(row: dict[str, Any]) -> None:
    """What a fit may be expected to be off by, over designs that nobody has looked at."""
    if row["designs"]:
        from onedraw.planning.fit_expectation import BEYOND

        show_table(
            f"{row['mechanism']}: the error depends on what the columns are like", ["columns use", "correlation", "effects", "expected error", "without privacy"],
            [["all of their range" if design["filled"] == 1.0 else "a third of it", f"{design['correlation']:g}",
              "strong" if design["stronger_effects"] else "usual", number(design["expected_rmse"]), number(design["rmse_without_privacy"])]
             for design in row["designs"]],
        )  # fmt: skip
        show_lines(BEYOND)


def smallest_words(found: dict[str, Any], n: int, budget: Any, *, best_design: bool) -> list[str]:
    design = ", in the best of the designs" if best_design else ""
    lines: list[str] = []
    if found["smallest_rows"] is not None:
        lines.append(
            f"An error of {found['error']:g} is expected from n = {found['smallest_rows']:,} records under {budget}{design}."
        )
    if found["smallest_epsilon"] is not None:
        lines.append(
            f"An error of {found['error']:g} is expected with n = {n:,} records from ε = {found['smallest_epsilon']:g}{design}."
        )
    return [*lines, *found["reasons"]]


def range_of(row: dict[str, Any], key: str) -> str:
    """One figure, or of a fit the smallest and the largest over designs."""
    errors = [design[key] for design in row["designs"]]
    return f"{number(min(errors))} to {number(max(errors))}" if errors else figure_of(row[key])


def figure_of(value: float | None) -> str:
    return "unknown" if value is None else number(value)
