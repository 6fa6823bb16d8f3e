"""The released numbers as the page shows them: what each model's numbers mean, how they are drawn, how sure they are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from onedraw.mechanisms import Moments, PerturbedMode
from onedraw.models import CategoryTable, NumberTable
from onedraw.release import Certificate
from onedraw.release.intervals.quantiles import inter_quartile_range
from onedraw.release.reading import fit_of
from onedraw.release.summary import joint_tests

from . import pictures
from .coefficients import CoefficientTable, Row, publishes_picks, rows_of
from .cross import cross_of, sides_of
from .formatting import brief, percent, points, shown, whole
from .ratios import Ratios, ratios_of

MANY = 24
"""More numbers than this are not drawn but listed, in a table that folds; a network's weights are folded away."""

COLUMNS = {
    "folded": ("Name", "Value"),
    "single": ("Name", "Value"),
    "shares": ("Level", "Share"),
    "quantiles": ("Quantile", "Value"),
    "bars": ("Level", "Count"),
    "groups": ("Group", "Value"),
    "cross": ("Cell", "Value"),
    "coefficients": ("Column", "Coefficient"),
}

FIT_WORDS = (
    " They are computed from what the release itself measured. If the model is wrong, they are about the coefficients of that kind of "
    "model that fit best, as the fit weighs the records."
)

KINDS = {
    "BetaBernoulli": "Proportion",
    "DirichletCategorical": "Histogram",
    "GaussianMean": "Mean",
    "GammaPoisson": "Rate of counts",
    "GammaExponential": "Rate of durations",
    "ColumnQuantiles": "Quantiles",
    "ClassifierScores": "Evaluation of a classifier",
    "RegressorScores": "Evaluation of a regressor",
    "Logistic": "Logistic regression",
    "BinaryRegression": "Logistic regression",
    "Softmax": "Multiclass logistic regression",
    "Hinge": "Linear support vector classifier",
    "HuberisedHinge": "Linear support vector classifier",
    "LeastSquares": "Linear regression",
    "GaussianRegression": "Linear regression",
    "HuberRegression": "Linear regression (Huber)",
    "LogCoshRegression": "Linear regression (robust)",
    "CountRegression": "Regression of counts",
    "Quantile": "Quantile regression",
    "StudentTRegression": "Linear regression (Student t)",
    "PoissonRegression": "Poisson regression",
    "NegativeBinomialRegression": "Negative binomial regression",
    "GammaRegression": "Gamma regression",
    "BoundedResidualGLM": "Generalised linear model",
    "LogitNormalBernoulli": "Log-odds",
    "ConvexLoss": "Minimiser of a convex loss",
    "Predictor": "Regression with a predictor of one's own",
    "Network": "Neural network",
    "Columns": "Means and correlations",
}


def results_of(
    certificate: Certificate, plan: Any, table: CoefficientTable | None, *, why_none: str = ""
) -> dict[str, Any]:
    """The rows, how they are drawn, and what is said of their uncertainty."""
    model, rows = plan.model, rows_of(certificate, plan, table)
    if describes(plan):  # correlations have a picture of their own
        rows = rows[: 2 * model.features.count]
    share = kind_of(model) in ("Histogram", "Proportion") or getattr(model, "show", "") == "shares"
    form = form_of(certificate, model, len(rows))
    kept = [index for index, row in enumerate(rows) if form != "coefficients" or not is_intercept(row.name)]
    kept = [index for index in kept if form != "groups" or not rows[index].name.endswith(": records")]
    kept = kept or list(range(len(rows)))
    drawn, across = on_one_axis([rows[index] for index in kept], form, certificate.draw.names, model)
    plot = plot_of(drawn, form, model, alike=across)
    ratios = ratios_of(certificate, model)
    words = [
        row_words(row, write=whole if counted(model, row) else percent if share else brief, ratios=ratios)
        for row in rows
    ]
    return {
        "form": form,
        "cross": cross_of(model, certificate.data.target, [row.value for row in rows], words)
        if form == "cross"
        else None,
        "rows": words,
        "readable": certificate.draw.quantity != "network weights",
        "lines": [{**words[index], "picture": picture} for index, picture in zip(kept, plot.pictures, strict=True)],
        "axis": plot.axis,
        "level": None if table is None else f"{100 * table.level:g} %",
        "ratios": ratios,
        "ratio_note": "" if ratios is None else ratios.note(interval=table is not None),
        "columns": COLUMNS[form]
        if hasattr(model, "features") or form in ("shares", "quantiles", "bars", "groups", "cross")
        else ("Name", "Value"),
        "meaning": meaning(model),
        "uncertainty": uncertainty(plan, table, why_none),
        "expected": expected_error_words(plan, share=share) if table is None else None,
        "own_scales": form == "coefficients" and plot.axis is None,
        "across": across,
        "hidden_intercept": form == "coefficients" and len(drawn) < len(rows),
        "several": table is None and plan.draws > 1,
        "allowance": "" if table is None else allowance_words(plan, rows),
        "allowances": table is not None and plan.draws > 1,
        "tested": table is not None and table.tested and not describes(plan),
        "parts": any(row["sampling"] for row in words),
        "box": pictures.box_plot(rows) if form == "quantiles" else None,
        "spread": inter_quartile_range(certificate, plan) if form == "quantiles" else None,
        "joint": joint_words(certificate, plan) if table is not None and table.tested and is_fit(plan) else [],
    }


def joint_words(certificate: Certificate, plan: Any) -> list[dict[str, str]]:
    """Each category as a whole, where a fit can test it."""
    tests = joint_tests(fit_of(certificate, plan), certificate, plan)
    return [
        {
            "name": f"{row.label}: {row.term}" if row.label else row.term,
            "statistic": "" if math.isnan(row.statistic) else brief(row.statistic),
            "degrees": str(row.degrees),
            "p": "–" if math.isnan(row.p_value) else p_words(row.p_value),
        }
        for row in tests
    ]


def p_words(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def form_of(certificate: Certificate, model: Any, count: int) -> str:
    """How the numbers are laid out: a cross table, folded away, one large number, bars of shares, or coefficients beside zero."""
    if sides_of(model, certificate.data.target) is not None:
        return "cross"
    if (
        kind_of(model).startswith("Evaluation")
        or count > MANY
        or certificate.draw.quantity in ("network weights", "moments")
    ):
        return "folded"
    if count == 1:
        return "single"
    if isinstance(model, CategoryTable | NumberTable):
        return "groups" if isinstance(model, NumberTable) else "shares" if model.show == "shares" else "bars"
    return {"Histogram": "shares", "Quantiles": "quantiles"}.get(kind_of(model), "coefficients")


def on_one_axis(rows: list[Row], form: str, names: list[str], model: Any) -> tuple[list[Row], bool]:
    """The rows as they are drawn, and whether they show whole ranges instead of single units.

    Coefficients of an age and of a yes-or-no cannot share an axis; their effects across the declared ranges can.
    """
    widths = declared_widths(names, model) if form == "coefficients" and not pictures.comparable(rows) else {}
    if not widths or not all(row.name in widths for row in rows):
        return rows, False
    return [row.times(widths[row.name]) for row in rows], True


def declared_widths(names: list[str], model: Any) -> dict[str, float]:
    """How wide the declared range of each coefficient's column is; empty where no box was declared."""
    features: Any = getattr(model, "features", None)
    blocks = getattr(model, "row_blocks", 1)
    if features is None or features.box is None or len(set(names)) < len(names):
        return {}
    lower, upper = (end if isinstance(end, tuple) else (end,) * features.count for end in features.box)
    each = [high - low for low, high in zip(lower, upper, strict=True)] + [1.0] * features.intercept
    return dict(zip(names[: blocks * features.width], each * blocks, strict=True))


def plot_of(rows: list[Row], form: str, model: Any, *, alike: bool) -> pictures.Plot:
    if form == "cross":
        return pictures.Plot([Markup("")] * len(rows), None)
    if form == "shares":
        return pictures.share_plot(rows)
    if form == "bars":
        return pictures.share_plot(rows, percent=False)
    if form in ("quantiles", "groups"):
        return pictures.quantile_plot(rows)
    if form == "single":
        return pictures.single_plot(rows[0], limits=public_range(model), percent=kind_of(model) == "Proportion")
    return pictures.interval_plot(rows, alike=alike)  # effects across whole ranges compare, however small one is


def is_intercept(name: str) -> bool:
    return name == "intercept" or name.endswith(": intercept")


def public_range(model: Any) -> tuple[float, float] | None:
    """The declared range of a single number, as the axis it is drawn on."""
    match type(model).__name__:
        case "BetaBernoulli":
            return model.lower, model.upper
        case "GaussianMean" if model.dim == 1:
            centre = float(first_number(model.centre))
            return centre - model.bound, centre + model.bound
        case "GammaPoisson":
            return 0.0, float(model.cap)
        case "CategoryTable" if model.show == "shares":
            return 0.0, 1.0
        case "NumberTable" if model.show in ("mean", "rate"):
            return model.lower, model.upper
        case _:
            return None


def first_number(value: Any) -> float:
    return float(value[0]) if isinstance(value, list | tuple) else float(value)


def counted(model: Any, row: Row) -> bool:
    """Whether the number is a count of records, shown in full: its cells and totals add up."""
    if isinstance(model, NumberTable):
        return row.name.endswith(": records")
    return isinstance(model, CategoryTable) and model.show == "counts"


def row_words(row: Row, *, write: Callable[[float], str], ratios: Ratios | None) -> dict[str, Any]:
    interval, errors = row.interval, brief if write is whole else write
    return {
        "name": row.name,
        "value": write(row.value),
        "interval": None if interval is None else f"{write(interval[0])} to {write(interval[1])}",
        "sampling": None if not math.isfinite(row.sampling_sd) else errors(row.sampling_sd),
        "privacy": None if not math.isfinite(row.privacy_sd) else errors(row.privacy_sd),
        "allowance": None if not math.isfinite(row.allowance) else errors(row.allowance),
        "error": None if not math.isfinite(row.p_value) else write(math.hypot(row.sampling_sd, row.privacy_sd)),
        "p": None if not math.isfinite(row.p_value) else p_words(row.p_value),
        "ratio": ("", "") if ratios is None else ratios.words(row),
    }


def meaning(model: Any) -> str:
    """What one number of this model is, in a sentence."""
    if isinstance(model, CategoryTable | NumberTable):
        return table_meaning(model)
    scaled = " Figures are in the units of the columns."
    match type(model).__name__:
        case "Logistic" | "BinaryRegression":
            positive = "the positive class" if not model.classes else f"“{model.classes[1]}”"
            return (
                f"A coefficient is the change of the log-odds of {positive} for one unit more of the column." + scaled
            )
        case "Softmax":
            return (
                "A coefficient is the change of a class's score for one unit more of the column; only differences between classes matter."
                + scaled
            )
        case "Hinge" | "HuberisedHinge":
            return (
                "A coefficient is the change of the score, whose sign is the predicted class, for one unit more of the column."
                + scaled
            )
        case "LeastSquares" | "GaussianRegression" | "HuberRegression":
            return "A coefficient is the change of the expected response for one unit more of the column." + scaled
        case "LogCoshRegression":
            return (
                "A coefficient is the change of the response's centre for one unit more of the column; far responses count less than "
                "in least squares." + scaled
            )
        case "CountRegression" | "PoissonRegression" | "NegativeBinomialRegression":
            cut = getattr(model, "largest", None)
            read = "" if cut is None else f" Counts above {cut:,} were read as {cut:,}, which is allowed for."
            return (
                "A coefficient is the change of the logarithm of the expected count for one unit more of the column."
                + read
                + scaled
            )
        case "Quantile":
            return "A coefficient is the change of the response's quantile for one unit more of the column." + scaled
        case "DirichletCategorical":
            return "The share of each level; together they make up the whole."
        case "BetaBernoulli" if kind_of(model) == "Average":
            return f"The average of the column, declared to lie between {shown(model.lower)} and {shown(model.upper)}."
        case "BetaBernoulli":
            return "The share of records with the positive value."
        case "GaussianMean" if model.dim == 1:
            low, high = public_range(model) or (0.0, 0.0)
            return f"The mean of the column, declared to lie between {shown(low)} and {shown(high)}."
        case "GammaPoisson":
            return f"The expected count of a record; counts above {shown(model.cap)} were read as {shown(model.cap)}."
        case "ClassifierScores":
            return "How a fitted model does on held-out records: they were counted by class and score, and noise was added to the counts."
        case "RegressorScores":
            return f"How far predictions are off on held-out records; responses were declared to lie between {shown(model.lower)} and {shown(model.upper)}."
        case "ColumnQuantiles":
            return f"Quantiles of the column, declared to lie between {shown(model.lower)} and {shown(model.upper)}: the share of records below each is its level."
        case "GammaExponential":
            return "Events per unit of time; its inverse is the mean duration."
        case "Columns":
            return (
                "The mean and the standard deviation of each column, its values clamped to the declared range, in the column's own "
                "units; a level of a category counts as 0 or 1."
            )
        case "Network":
            return (
                "Single weights of a network mean nothing by themselves: use the release to predict (onedraw predict)."
            )
        case _:
            return "The released numbers, by name."


def describes(plan: Any) -> bool:
    return isinstance(plan.mechanism, Moments)


def is_fit(plan: Any) -> bool:
    return isinstance(plan.mechanism, PerturbedMode)


def allowance_words(plan: Any, rows: list[Row]) -> str:
    """What the thin ends of an interval allow for; empty where there are none to be seen."""
    if plan.draws > 1:
        return "allowance for few draws and odd designs"
    ends = [row.allowance / (row.interval[1] - row.interval[0]) for row in rows if row.interval and row.allowance > 0]
    seen = is_fit(plan) and max(ends, default=0.0) > 0.02
    return "allowance for noise in the standard errors" if seen else ""


def table_meaning(model: Any) -> str:
    within = f" within each group ({' and '.join(model.by)})" if model.by else ""
    sizes = (
        " Who belongs to which group is private: the numbers of records in the groups are released with noise too."
        if model.moves_between_cells
        else ""
    )
    if isinstance(model, CategoryTable):
        level = "with each level" if model.only is None else f"with the level “{model.only}”"
        if model.between is not None:
            level = str(model.only)
        if model.show == "shares":
            return f"The share of records {level}{within}.{sizes}"
        total = " All counts together are n, the public number of records." if model.only is None else ""
        return f"The number of these records {level}{within}.{total}"
    what = {"mean": "mean", "rate": "mean count", "sum": "sum", "variance": "variance"}[model.show]
    return (
        f"The {what} of the column{within}, declared to lie between {shown(model.lower)} and {shown(model.upper)}; values outside were "
        f"read as the nearest end.{sizes}"
    )


def table_uncertainty(model: Any, level: float) -> str:
    crossed = sides_of(model, None) is not None
    start = f"{'Beside the numbers' if crossed else 'Bars'} are {100 * level:g} % intervals"
    if model.show in ("counts", "sum"):
        return (
            f"{start} for the number in these records: all they allow for is the noise that was added for "
            "privacy, whose law is known."
        )
    how = (
        "by exact inversion of both laws" if isinstance(model, CategoryTable) and not model.moves_between_cells
        else "with spreads that were released within the same spend" if isinstance(model, NumberTable) else "for each group as a quotient of two noisy counts"
    )  # fmt: skip
    return (
        f"{start} about the population the records were drawn from, for sampling and the noise added for privacy "
        f"together, {how}.{'' if crossed else ' The thick part is what sampling alone would leave.'}"
    )


def uncertainty(plan: Any, table: CoefficientTable | None, why_none: str) -> str:
    """What the interval covers, or why there is none."""
    if table is not None and isinstance(plan.model, CategoryTable | NumberTable):
        return table_uncertainty(plan.model, table.level)
    if table is not None and kind_of(plan.model) == "Quantiles":
        return (
            f"Bars are {100 * table.level:g} % intervals for the quantile of the population the records were drawn from, sampling and noise for "
            "privacy together, whatever the column is like; how wide they are was released with the quantiles, within the same spend."
        )
    if table is not None and describes(plan):
        return (
            f"Intervals ({100 * table.level:g} %) allow for sampling and for the noise for privacy together; both standard deviations "
            f"are beside them. They are about the records clamped to their declared ranges.{no_interval(table)}"
        )
    if table is not None:
        allowance = (
            " The thin ends are an allowance: a few draws show their own noise only roughly, and the records may be unlike the "
            "design that was planned for."
        )
        return (
            f"Bars are {100 * table.level:g} % intervals under the model. The thick part is what sampling alone would leave; the "
            f"middle part is what the noise for privacy adds.{allowance if plan.draws > 1 else ''}"
            f"{FIT_WORDS if is_fit(plan) else ''}{no_interval(table)}"
        )
    if kind_of(plan.model).startswith("Evaluation"):
        return "Intervals cover sampling and the noise for privacy together, by drawing tables of as many records from the released shares, with fresh noise."
    shown_as = draws_words(plan)
    if why_none:
        return f"No interval is given. {why_none[:1].upper()}{why_none[1:].rstrip('.')}. {shown_as}".strip()
    if plan.draws == 1 and hasattr(plan.model, "features") and not is_fit(plan):
        return (
            "No interval is given: this is one draw. The noise for privacy is part of the number and cannot be told from it; an "
            "interval needs the spread between several draws, which have to be asked for when the budget is planned."
        )
    return f"{shown_as} This report was written without an interval.".strip()


def no_interval(table: CoefficientTable) -> str:
    """Of a noisy-gradient path a remark begins with "for", of a fit it is a sentence."""
    remark = table.remark.rstrip(".")
    if not remark:
        return ""
    return f" No interval is given {remark}." if remark.startswith("for ") else f" {remark[:1].upper()}{remark[1:]}."


def draws_words(plan: Any) -> str:
    if plan.draws == 1:
        return ""
    if publishes_picks(plan):
        return f"All {plan.draws} picks of the selection are published, drawn as thin lines; the number shown is their mean, weighted like the rounds."
    return f"{plan.draws} draws share the budget, drawn as thin lines; the number shown is their mean."


def expected_error_words(plan: Any, *, share: bool) -> str | None:
    """How far off such a release is on average, where a quick simulation from public numbers can say so.

    Not for rates: averaged over their prior, truths beyond the declared cap would outweigh everything else.
    """
    from onedraw.models import BetaBernoulli, DirichletCategorical, GaussianMean
    from onedraw.planning import expected_error

    model: Any = plan.model
    if not isinstance(model, BetaBernoulli | DirichletCategorical | GaussianMean):
        return None
    expected = expected_error(plan)
    scale = model.upper - model.lower if isinstance(model, BetaBernoulli) else 1.0
    write = points if share else brief
    return (
        f"Such a release is typically off by {write(scale * expected.private)}, of which {write(scale * expected.sampling)} would be there "
        "without privacy. This was predicted from public numbers (root mean squared error, averaged over the prior)."
    )


def kind_of(model: Any) -> str:
    name = type(model).__name__
    if isinstance(model, CategoryTable):
        shares, one = model.show == "shares", model.only is not None
        return ("Proportion" if one else "Histogram") if shares else ("Count" if one else "Counts")
    if isinstance(model, NumberTable):
        return {"rate": "Rate of counts"}.get(model.show, model.show.capitalize())
    if name == "BetaBernoulli" and (model.lower, model.upper) != (0.0, 1.0):
        return "Average"
    return KINDS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
