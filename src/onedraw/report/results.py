"""The released numbers as the page shows them: what each model's numbers mean, how they are drawn, how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from onedraw.models import ConjugateModel, Model, Network
from onedraw.models.row_model import RowModel
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.plain_text import brief, percent, points, whole
from onedraw.plans import Plan
from onedraw.release import Certificate, Estimates
from onedraw.release.dates import scales_of
from onedraw.release.estimates import IN_DAYS, Joint, estimates_of, note_of, p_words, readable_draws, values_of

from . import pictures
from .pictures import Row
from .tables import cross_of, sides_of

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

WRITTEN: dict[str, Callable[[float], str]] = {"": brief, "share": percent, "records": whole}
"""How a number is written, by its unit."""

LARGEST_EXPONENT = 20.0
"""Beyond e^20 a factor is no news any more."""


def results_of(
    certificate: Certificate, plan: Plan, table: Estimates | None, *, why_none: str = "", fitted: Estimates | None = None
) -> dict[str, Any]:  # fmt: skip
    """The rows, how they are drawn, and what is said of their uncertainty; ``fitted`` is the summary, also one without any
    interval, of which a fit has more to say."""
    model, target, rows = plan.model, certificate.data.target, rows_of(certificate, plan, table)
    moments = plan.mechanism.publishes_moments
    if moments:  # correlations have a picture of their own
        rows = rows[: 2 * model.features.count]
    form = form_of(certificate, model, len(rows))
    kept = [index for index, row in enumerate(rows) if form != "coefficients" or not is_intercept(row.name)]
    kept = [index for index in kept if form != "groups" or not rows[index].name.endswith(": records")]
    kept = kept or list(range(len(rows)))
    drawn, across = on_one_axis([rows[index] for index in kept], form, certificate.draw.names, model)
    scales = scales_of(certificate, plan)
    dated = [scales[row.name].write for row in drawn if row.name in scales]
    plot = plot_of(drawn, form, model, alike=across, write=dated[0] if len(dated) == len(drawn) else None)
    ratios = Ratios.of(certificate, model, interval=table is not None)
    words = [
        row_words(row, write=scales[row.name].write, ratios=ratios, errors=brief)
        if row.name in scales
        else row_words(row, write=WRITTEN[model.unit(row.name)], ratios=ratios)
        for row in rows
    ]
    of_fit = fit_words(certificate, plan, fitted if fitted is not None and fitted.estimand else None, words)
    return {
        "form": form,
        "cross": None if form != "cross" else cross_of(model, target, [row.value for row in rows], words),
        "rows": words,
        "readable": not isinstance(plan.model, Network),
        "lines": [{**words[index], "picture": picture} for index, picture in zip(kept, plot.pictures, strict=True)],
        "axis": plot.axis,
        "level": None if table is None else f"{100 * table.level:g} %",
        "ratios": ratios,
        "ratio_note": "" if ratios is None else ratios.note,
        "columns": COLUMNS[form] if form != "coefficients" or isinstance(model, RowModel) else ("Name", "Value"),
        "meaning": model.meaning,
        "uncertainty": "" if table is None and of_fit["estimand"] else uncertainty(plan, table, why_none),
        "expected": expected_error_words(plan) if table is None else None,
        "own_scales": form == "coefficients" and plot.axis is None,
        "across": across,
        "hidden_intercept": form == "coefficients" and len(drawn) < len(rows),
        "several": table is None and plan.draws > 1,
        "allowance": "" if table is None else allowance_words(plan, rows),
        "allowances": table is not None and plan.draws > 1,
        "tested": table is not None and table.tested and not moments,
        "parts": any(row["sampling"] or row["privacy"] for row in words),
        "box": pictures.box_plot(rows) if form == "quantiles" else None,
        "spread": plan.mechanism.inter_quartile_range(plan, certificate.draw.values[0], certificate.draw.stages),
        "joint": [] if table is None else [joint_words(test) for test in table.joint],
    } | of_fit  # fmt: skip


def fit_words(
    certificate: Certificate, plan: Plan, fitted: Estimates | None, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """What is said of a fit besides its numbers: what it estimates, why intervals are missing, and the noise for privacy, which
    is known without an interval too and is written into the rows."""
    if fitted is None:
        note = note_of(certificate, plan)
        about = [note] if note else []
        about += [IN_DAYS] if scales_of(certificate, plan) else []
        return {"estimand": "", "about": about, "refused": "", "least": False, "commonest": None}
    for place, row in enumerate(rows):
        row["privacy"] = fitted.privacy_words(place, brief)
    return {
        "estimand": fitted.estimand[:1].upper() + fitted.estimand[1:],
        "about": [line for line in (fitted.note, fitted.dependence) if line],
        "refused": f"No interval: {fitted.reason.rstrip('.')}." if fitted.reason else "",
        "least": any(fitted.least),
        "commonest": commonest_words(certificate, plan, fitted),
    }


def commonest_words(certificate: Certificate, plan: Plan, fitted: Estimates) -> dict[str, Any] | None:
    """Rows of levels compared with the commonest one, if that gives more intervals than the declared comparison."""
    found = estimates_of(certificate, plan, fitted.level, base="commonest")
    if sum(row.given for row in found) <= sum(row.given for row in fitted):
        return None
    rows = [
        {"name": name, "value": brief(row.estimate), "privacy": found.privacy_words(place, brief),
         "interval": f"{brief(row.low)} to {brief(row.high)}" if row.given else "none",
         "error": brief(row.std_err) if row.given else "–", "p": p_words(row.p_value) if row.given else "–"}
        for place, (name, row, before) in enumerate(zip(found.names, found, fitted.names, strict=True)) if name != before
    ]  # fmt: skip
    return {"rows": rows, "level": f"{100 * found.level:g} %"}


def joint_words(test: Joint) -> dict[str, str]:
    """A category as a whole, where a fit can test it."""
    return {
        "name": f"{test.label}: {test.term}" if test.label else test.term,
        "statistic": "" if math.isnan(test.statistic) else brief(test.statistic),
        "degrees": str(test.degrees),
        "p": "–" if math.isnan(test.p_value) else p_words(test.p_value),
    }


def rows_of(certificate: Certificate, plan: Plan, table: Estimates | None) -> list[Row]:
    """The rows of the report: of the table of intervals where there is one, else of the draws."""
    if table is not None:
        return [Row.estimated(name, row, table.level) for name, row in zip(table.names, table, strict=True)]
    draws, values = readable_draws(certificate, plan.model), values_of(certificate, plan)
    several = len(draws) > 1
    return [
        Row(name, float(values[index]), tuple(map(float, draws[:, index])) if several else ())
        for index, name in enumerate(certificate.draw.names)
    ]


def form_of(certificate: Certificate, model: Model, count: int) -> str:
    """How the numbers are laid out: a cross table, folded away, one large number, or as the model says."""
    if sides_of(model, certificate.data.target) is not None:
        return "cross"
    if model.form == "folded" or count > MANY:
        return "folded"
    return "single" if count == 1 else model.form


def on_one_axis(rows: list[Row], form: str, names: list[str], model: Model) -> tuple[list[Row], bool]:
    """The rows as they are drawn, and whether they show whole ranges instead of single units.

    Coefficients of an age and of a yes-or-no cannot share an axis; their effects across the declared ranges can.
    """
    if form != "coefficients" or pictures.comparable(rows):
        return rows, False
    if not isinstance(model, RowModel) or model.features.box is None:
        return rows, False
    features, blocks = model.features, model.row_blocks
    each = [high - low for low, high in zip(*features.ends, strict=True)] + [1.0] * features.intercept
    widths = dict(zip(names[: blocks * features.width], each * blocks, strict=True))
    if len(set(names)) < len(names) or not all(row.name in widths for row in rows):
        return rows, False
    return [row.times(widths[row.name]) for row in rows], True


def plot_of(
    rows: list[Row], form: str, model: Model, *, alike: bool, write: pictures.Write | None = None
) -> pictures.Plot:
    if form == "cross":
        return pictures.Plot([Markup("")] * len(rows), None)
    if form in ("shares", "bars"):
        return pictures.share_plot(rows, percent=form == "shares")
    if form in ("quantiles", "groups"):
        return pictures.quantile_plot(rows, write=write)
    if form == "single":
        share = model.unit(rows[0].name) == "share"
        return pictures.single_plot(rows[0], limits=model.public_range, percent=share, write=write)
    return pictures.interval_plot(rows, alike=alike)  # effects across whole ranges compare, however small one is


def is_intercept(name: str) -> bool:
    return name == "intercept" or name.endswith(": intercept")


def row_words(
    row: Row, *, write: Callable[[float], str], ratios: Ratios | None, errors: Callable[[float], str] | None = None
) -> dict[str, Any]:
    """The numbers of a row as text; ``errors`` writes standard errors, which have another unit where the number is a date."""
    interval = row.interval
    errors = errors or (brief if write is whole else write)
    return {
        "name": row.name,
        "value": write(row.value),
        "interval": None if interval is None else f"{write(interval[0])} to {write(interval[1])}",
        "sampling": None if not math.isfinite(row.sampling_sd) else errors(row.sampling_sd),
        "privacy": None if not math.isfinite(row.privacy_sd) else errors(row.privacy_sd),
        "allowance": None if not math.isfinite(row.allowance) else errors(row.allowance),
        "error": None if not math.isfinite(row.p_value) else errors(math.hypot(row.sampling_sd, row.privacy_sd)),
        "p": None if not math.isfinite(row.p_value) else p_words(row.p_value),
        "ratio": ("", "") if ratios is None else ratios.words(row),
    }


def allowance_words(plan: Plan, rows: list[Row]) -> str:
    """What the thin ends of an interval allow for; empty where there are none to be seen."""
    if plan.draws > 1:
        return "allowance for few draws and odd designs"
    ends = [row.allowance / (row.interval[1] - row.interval[0]) for row in rows if row.interval and row.allowance > 0]
    seen = plan.mechanism.publishes_fit and max(ends, default=0.0) > 0.02
    return "allowance for noise in the standard errors" if seen else ""


def uncertainty(plan: Plan, table: Estimates | None, why_none: str) -> str:
    """What the interval covers, or why there is none."""
    fit = plan.mechanism.publishes_fit
    remark = "" if table is None or fit else table.reason.rstrip(".")  # of a noisy-gradient path it begins with "for"
    if remark:
        remark = f" No interval is given {remark}." if remark[:4] == "for " else f" {remark[:1].upper()}{remark[1:]}."
    if table is not None:
        crossed = sides_of(plan.model, None) is not None
        if own := plan.model.interval_meaning(f"{100 * table.level:g} %", crossed=crossed):
            return str(own)
    if table is not None and plan.mechanism.publishes_moments:
        return (
            f"Intervals ({100 * table.level:g} %) allow for sampling and for the noise for privacy together; both standard deviations "
            f"are beside them. They are about the records clamped to their declared ranges.{remark}"
        )
    if table is not None:
        under = "" if fit else " under the model"
        allowance = (
            " The thin ends are an allowance: a few draws show their own noise only roughly, and the records may be unlike the "
            "design that was planned for."
        )
        return (
            f"Bars are {100 * table.level:g} % intervals{under}. The thick part is what sampling alone would leave; the "
            f"middle part is what the noise for privacy adds.{allowance if plan.draws > 1 else ''}"
            f"{' ' + plan.mechanism.interval_words if fit else ''}{remark}"
        )
    if isinstance(plan.model, ClassifierScores | RegressorScores):
        return (
            "Intervals cover sampling and the noise for privacy together, by drawing tables of as many records from the released "
            "shares, with fresh noise."
        )
    picks = plan.mechanism.publishes_picks
    many = f"All {plan.draws} picks of the selection are published" if picks else f"{plan.draws} draws share the budget"
    weighted = ", weighted like the rounds" if picks else ""
    shown_as = f"{many}, drawn as thin lines; the number shown is their mean{weighted}." if plan.draws > 1 else ""
    if why_none:
        return f"No interval is given. {why_none[:1].upper()}{why_none[1:].rstrip('.')}. {shown_as}".strip()
    if plan.draws == 1 and isinstance(plan.model, RowModel) and not fit:
        return (
            "No interval is given: this is one draw. The noise for privacy is part of the number and cannot be told from it; an "
            "interval needs the spread between several draws, which have to be asked for when the budget is planned."
        )
    return f"{shown_as} This report was written without an interval.".strip()


def expected_error_words(plan: Plan) -> str | None:
    """How far off such a release is on average, where a quick simulation from public numbers can say so."""
    from onedraw.planning import expected_error

    model = plan.model
    if not isinstance(model, ConjugateModel) or not model.error_is_telling or not plan.closed_form:
        return None
    expected = expected_error(plan)
    scale = float(model.column_units()[1][0])
    write = points if model.unit(model.parameter_names[0]) == "share" else brief
    return (
        f"Such a release is typically off by {write(scale * expected.private)}, of which {write(scale * expected.sampling)} would be there "
        "without privacy. This was predicted from public numbers (root mean squared error, averaged over the prior)."
    )


# ── odds and rates ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Ratios:
    """What a coefficient does, as a multiple people speak of: odds of a class, or rates of counts, for a sensible step of its
    column. For one dollar more the odds are multiplied by 1.0003, which says nothing.

    ``name`` heads the column of the table; ``steps`` are by the coefficient's name: the one that the schema declares
    (``step:``), otherwise `usual_step` of the declared range.
    """

    name: str
    note: str
    steps: dict[str, float]

    @classmethod
    def of(cls, certificate: Certificate, model: Model, *, interval: bool) -> Ratios | None:
        """None for a model whose coefficients multiply nothing."""
        if model.factor is None or not isinstance(model, RowModel):
            return None
        features, declared = model.features, (certificate.data.declared or {}).get("columns", {})
        names = features.column_names[: features.count]
        steps = dict.fromkeys(names, 1.0) if features.box is None else {
            name: float(declared.get(name, {}).get("step") or usual_step(low, high))
            for name, low, high in zip(names, *features.ends, strict=True)
        }  # fmt: skip
        (name, what), factor = model.factor, ", and the interval of the factor" if interval else ""
        step = "so much more of the column (one, if nothing is said)"
        note = f"{name}: by how much {what} multiplied for {step}{factor}."
        return cls(name, note, steps)

    def words(self, row: Row) -> tuple[str, str]:
        """("× 1.3", "1.2 to 1.5, per 10"); empty for what is no coefficient of a column."""
        if row.name not in self.steps:
            return "", ""
        step = self.steps[row.name]

        def factor(value: float) -> str:
            if abs(step * value) > LARGEST_EXPONENT:
                return "very many" if value > 0.0 else "nearly 0"
            return brief(math.exp(step * value))

        ends = None if row.interval is None else " to ".join(map(factor, row.interval))
        per = "" if step == 1.0 else f"per {brief(step)}"
        return f"× {factor(row.value)}", ", ".join(filter(None, (ends, per)))


def usual_step(low: float, high: float) -> float:
    """Of 1, 2 and 5 times powers of ten the one nearest, as a factor, to a tenth of the range; 1 for 0 to 1."""
    tenth = (high - low) / 10.0
    if (low, high) == (0.0, 1.0) or not tenth > 0.0:
        return 1.0
    power = math.floor(math.log10(tenth))
    steps = [float(f"{lead}e{power}") for lead in (1, 2, 5, 10)]
    return min(steps, key=lambda step: abs(math.log(step / tenth)))
