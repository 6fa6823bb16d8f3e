"""What a release says, as people read it: one table of estimates, in the units of the columns.

The certificate keeps the draw as drawn, in the coordinates its promise is about; centre and unit of the response and the columns'
own units are given back here, and intervals, standard errors and tests stand beside where the release gives them. All of it is
post-processing by public numbers, which costs nothing; the report, the command line and the estimators show this table.

A category of several levels has a row for each and one test of all of them together (`Joint`): single levels are compared with
the first one declared, and which one that is should not decide whether the category matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import compress
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods.base import Posterior
from onedraw.methods.comparisons import Comparison
from onedraw.methods.draws.path_start import SLOW
from onedraw.methods.fits import why_fit_refused
from onedraw.methods.intervals import Interval, Published
from onedraw.models import MagnitudeTable, Model, Network
from onedraw.models.moments.result import MomentsResult
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.plain_text import known
from onedraw.plans import Plan
from onedraw.privacy.numbers import confidence_level

from .base_levels import compare_with_commonest, terms_of
from .certificate import Certificate
from .dates import DayScale, scales_of
from .statement import sentence_of
from .tables import latex

IN_DAYS = "Dates are shown as dates; standard errors and the numbers behind them are in days."

NO_DAYS: Mapping[str, DayScale] = {}


class Estimate(NamedTuple):
    """One number people read, in the column's own units; NaN where there is no interval.

    ``sampling_error`` is the standard error that would remain without privacy, ``privacy_error`` what the release adds.
    ``label`` is the class or level the row is about, empty where there is only one. ``p_value`` is of "this is 0".
    """

    term: str
    label: str
    estimate: float
    low: float = math.nan
    high: float = math.nan
    sampling_error: float = math.nan
    privacy_error: float = math.nan
    p_value: float = math.nan

    @property
    def std_err(self) -> float:
        """Sampling and privacy noise together."""
        return math.hypot(self.sampling_error, self.privacy_error)

    @property
    def given(self) -> bool:
        """Whether it has an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class Joint(NamedTuple):
    """Wald's test of "this category, or this term, makes no difference": all its levels or columns at once; NaN where one of them is
    refused."""

    term: str
    label: str
    statistic: float
    degrees: int
    p_value: float

    @property
    def tested(self) -> str:
        """What is tested together."""
        return f"all {self.degrees + 1} levels"

    def __str__(self) -> str:
        about = f"{self.term}{f' ({self.label})' if self.label else ''}, {self.tested} together"
        if math.isnan(self.p_value):
            return f"{about}: no test, since the records say too little about one of them"
        p_value = p_words(self.p_value) if self.p_value < 0.001 else f"= {p_words(self.p_value)}"
        return f"{about}: χ² = {self.statistic:.4g} on {self.degrees} degrees of freedom, p {p_value}"


class JointOfTerm(Joint):
    """The test of a formula's term, which has columns and perhaps no levels."""

    __slots__ = ()

    @property
    def tested(self) -> str:
        return f"all {self.degrees} columns"


class Estimates(tuple[Estimate, ...]):
    """Rows of `Estimate`, the tests of whole categories, and the sentences that belong beside them.

    ``names`` are the certificate's, one for each row; ``reason`` says why there is no interval, or none for some. It prints
    well, and ``pandas.DataFrame(table)`` takes it as it is.

    Attributes
    ----------
    note : str
        What to know about what is estimated; empty where there is nothing to say.
    estimand : str
        What a fit estimates, such as "least-squares coefficients of log_wage"; empty for other releases.
    dependence : str
        How far a fit depends on far-out records, by its specification test; empty where that was not measured.
    least : tuple of bool
        Whether the privacy part of each row's error may be larger than stated, because it rests on moments that may be
        noise; empty for other releases.
    days : mapping of str to DayScale
        By name the rows that are dates, as days since a first day; empty where there is none.
    """

    level: float
    names: tuple[str, ...]
    reason: str
    joint: tuple[Joint, ...]
    remarks: tuple[str, ...]
    note: str
    estimand: str
    dependence: str
    least: tuple[bool, ...]
    days: Mapping[str, DayScale]

    def __new__(
        cls, rows: Iterable[Estimate], *, level: float, names: Sequence[str] = (), reason: str = "",
        joint: Iterable[Joint] = (), remarks: Iterable[str] = (), note: str = "", estimand: str = "", dependence: str = "",
        least: Iterable[bool] = (), days: Mapping[str, DayScale] = NO_DAYS,
    ) -> Self:  # fmt: skip
        table = super().__new__(cls, rows)
        if any(row.low > row.high for row in table):
            raise WrongCall("A lower end of an interval lies above its upper end. Pass low and high in this order.")
        if any(error < 0 for row in table for error in (row.sampling_error, row.privacy_error)):
            raise WrongCall("A standard error is not negative. Pass sampling_error and privacy_error of each row.")
        table.names = tuple(names) or tuple(row.term for row in table)
        table.level, table.reason = confidence_level(level), reason
        table.joint, table.remarks, table.note = tuple(joint), tuple(remarks), note
        table.estimand, table.dependence, table.least = estimand, dependence, tuple(map(bool, least))
        table.days = dict(days)
        return table

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tuple(self),), dict(vars(self))

    @property
    def given(self) -> bool:
        """Whether any row has an interval."""
        return any(row.given for row in self)

    @property
    def tested(self) -> bool:
        return any(math.isfinite(row.p_value) for row in self)

    def first(self, count: int) -> Self:
        """The first rows alone: coefficients without a variance that was drawn with them."""
        besides = dict(vars(self)) | {"names": self.names[:count], "least": self.least[:count]}
        return type(self)(tuple(self)[:count], **besides)

    def written(self, place: int, number: float, write: Callable[[float], str]) -> str:
        """Return a number of a row as text: as a date where the row is one."""
        scale = self.days.get(self.names[place])
        return write(number) if scale is None or math.isnan(number) else scale.write(number)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each row, by the certificate's names; None where there is no number."""
        numbers = Estimate._fields[2:]
        return [
            {"name": name}
            | {field: known(getattr(row, field)) for field in (*numbers[:-1], "std_err", numbers[-1])}
            | ({"privacy_error_is_least": self.least[place]} if self.least else {})
            | ({"dates": self._dates(place)} if name in self.days else {})
            for place, (name, row) in enumerate(zip(self.names, self, strict=True))
        ]

    def _dates(self, place: int) -> dict[str, str | None]:
        """The estimate and its interval as dates, beside the numbers of days."""
        row = self[place]
        return {
            field: None if math.isnan(number) else self.written(place, number, str)
            for field, number in (("estimate", row.estimate), ("low", row.low), ("high", row.high))
        }

    def privacy_words(self, place: int, write: Callable[[float], str] = "{:.3g}".format) -> str:
        """Return the privacy part of a row's error as text, with "≥" where it may be larger."""
        part = self[place].privacy_error
        if math.isnan(part):
            return "–"
        return f"{'≥ ' if self.least and self.least[place] else ''}{write(part)}"

    def _repr_html_(self) -> str:
        """The table as a notebook shows it."""
        head, *rows = self._lines()
        body = "".join(
            "<tr>" + "".join(f"<{'td' if place else 'th'}>{escape(word)}</{'td' if place else 'th'}>" for place, word in enumerate(row)) + "</tr>"
            for row in rows
        )  # fmt: skip
        top = "".join(f"<th>{escape(word)}</th>" for word in head)
        notes = "".join(
            f"<p>{escape(line)}</p>"
            for line in (*map(str, self.joint), *([IN_DAYS] if self.days else []), *self.remarks)
        )
        return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def to_html(self) -> str:
        """Return the table as HTML."""
        return self._repr_html_()

    def to_latex(self) -> str:
        """Return the table as a LaTeX ``tabular`` with the rules of the package booktabs; what belongs beside it is a last row."""
        head, *rows = self._lines()
        note = " ".join(map(str, (*self.joint, *([IN_DAYS] if self.days else []), *self.remarks)))
        return latex(head, [(False, row) for row in rows], note=note)

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join([*table, *map(str, self.joint), *([IN_DAYS] if self.days else []), *self.remarks])

    __repr__ = __str__

    def _lines(self) -> list[list[str]]:
        """The head, and the words of each row."""
        shown = (True, any(row.label for row in self), True, True, self.tested, bool(self.estimand), self.tested)
        lines = [["term", "label", "estimate", f"{100 * self.level:g} % interval", "std err", "privacy part", "p"]]
        for place, row in enumerate(self):
            estimate, low, high = (self.written(place, one, "{:.4g}".format) for one in row[2:5])
            between = "–" if math.isnan(row.low) else f"{low} to {high}"
            error = "–" if math.isnan(row.low) or math.isnan(row.std_err) else f"{row.std_err:.4g}"
            p_value = "–" if math.isnan(row.p_value) else p_words(row.p_value)
            part = self.privacy_words(place)
            lines.append([row.term, row.label, estimate, between, error, part, p_value])
        return [list(compress(line, shown)) for line in lines]


def p_words(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# ── from a certificate ───────────────────────────────────────────────────────────────────────────────────────


def estimates_of(
    certificate: Certificate, plan: Plan, level: float = 0.95, *, terms: Sequence[tuple[str, str]] | None = None,
    reason: str = "", effect: float | None = None, noise: float | None = None, base: str = "declared",
) -> Estimates:  # fmt: skip
    """The table of a release. ``terms`` names its rows, by default as the model's parameters; ``reason`` says that there is no
    interval, and why; ``effect`` and ``noise`` as in `interval_of`; ``base`` is what levels are compared with, "declared" or
    "commonest"."""
    if base not in BASES:
        raise WrongCall(f"base is what levels are compared with, {' or '.join(map(repr, BASES))}; got {base!r}.")
    if plan.mechanism.publishes_fit:
        return _fit_estimates(certificate, plan, level, terms=terms, reason=reason, base=base)
    names, found, tests = certificate.draw.names, None, None
    try:
        if plan.mechanism.publishes_moments and not reason:
            moments = moments_of(certificate, plan)
            found, tests, reason = _vouched(moments, level), moments.p_values, moments.refused(plan.model.names)
        elif not reason:
            found = interval_of(certificate, plan, level, effect=effect, noise=noise)
            reason = why_refused(np.isnan(found.low), names)
    except PromiseRefused as refused:
        reason = str(refused)
    values = values_of(certificate, plan)
    columns: tuple[Any, ...] = (values,)
    if found is not None and np.isfinite(found.low).any():
        columns = (values, *found[1:5], np.full(len(names), np.nan) if tests is None else tests)
    if (without := plan.mechanism.without_estimate(plan, certificate.draw.stages or {})) is not None and without.any():
        columns = tuple(np.where(without, np.nan, column) for column in columns)
        which = "" if without.all() else f" for {', '.join(repr(name) for name in compress(names, without))}"
        reason = f"too few cells are known{which}, as far as the noise tells, so no estimate is given either"
    note, why = note_of(certificate, plan), f"No interval: {reason.rstrip('.')}."
    remarks = list(filter(None, (note, sentence_of(certificate, plan), why if reason else "")))
    rows = _rows(terms or plan.model.terms, columns)
    days = scales_of(certificate, plan)
    return Estimates(rows, level=level, names=names, reason=reason, remarks=remarks, note=note, days=days)


def note_of(certificate: Certificate, plan: Plan) -> str:
    """Return what to know about the numbers: the method's own words, and how many cells are missing, as far as that was released."""
    stages = certificate.draw.stages or {}
    missing = plan.mechanism.missing_of(plan, stages)
    words = "" if missing is None else missing.words(plan.mechanism.missing_words(plan))
    reads = getattr(plan.model, "reads_missing", "")
    read = f"{reads[:1].upper()}{reads[1:]}." if any(note.statement == reads for note in certificate.data.notes) else ""
    return " ".join(filter(None, (plan.mechanism.note(plan, stages), words, read)))


BASES = ("declared", "commonest")
"""What levels of a category may be compared with."""


def _rows(terms: Iterable[tuple[str, str]], columns: Iterable[ArrayLike]) -> list[Estimate]:
    numbers = zip(*(np.asarray(column, dtype=np.float64).tolist() for column in columns), strict=True)
    return [Estimate(*term, *row) for term, row in zip(terms, numbers, strict=True)]


def _fit_estimates(
    certificate: Certificate, plan: Plan, level: float, *, terms: Sequence[tuple[str, str]] | None, reason: str, base: str
) -> Estimates:  # fmt: skip
    """The table of a fit, which states the privacy part of errors also where there is no interval."""
    fit, names, terms = fit_of(certificate, plan), tuple(certificate.draw.names), terms or plan.model.terms
    joint: tuple[Joint, ...] = ()
    columns: tuple[Any, ...] = (values_of(certificate, plan),)
    declared_fit, declared, compared = fit, names, ""
    if base == "commonest":
        rebased = compare_with_commonest(fit, certificate, plan)
        terms = [(name, term[1]) if place in rebased.changed else term for place, (name, term) in enumerate(zip(rebased.names, terms, strict=True))]  # fmt: skip
        fit, names, compared = rebased.fit, rebased.names, rebased.remark
    try:
        columns = (*_vouched(fit, level)[:5], fit.p_values)
        reason = reason or why_fit_refused(fit, plan, names, declared)
        joint = joint_tests(declared_fit, certificate, plan) if fit.given.any() else ()
    except PromiseRefused as refused:  # no information was published
        reason = reason or str(refused)
    without = plan.mechanism.without_estimate(plan, certificate.draw.stages or {})
    if without is not None and without.any():
        columns = tuple(np.full(len(names), np.nan) for _ in columns)
        reason, joint = (
            "too few records have all their cells, as far as the noise tells, so no estimate is given either",
            (),
        )
    about = described(fit, certificate.data.target, effects=plan.mechanism.effects_note(plan))
    about["note"] = " ".join(filter(None, (about["note"], note_of(certificate, plan))))
    remarks = [*about_lines(**about), *([compared] if compared else []), sentence_of(certificate, plan)]
    remarks += [f"No interval: {reason.rstrip('.')}."] if reason else []
    return Estimates(
        _rows(terms, columns), level=level, names=names, reason=reason, joint=joint, remarks=remarks, **about
    )  # fmt: skip


def described(fit: NormalEstimates, target: str | None, *, effects: str = "") -> dict[str, Any]:
    """Return what is said of a fit besides its numbers, as arguments of `Estimates`; ``effects`` is said of those of interest."""
    return {
        "note": " ".join(filter(None, (effects, fit.remark, fit.about_predictions))), "estimand": fit.estimand_of(target), "dependence": fit.dependence if fit.informed else "",
        "least": fit.privacy_is_least.tolist(),
    }  # fmt: skip


def about_lines(*, estimand: str = "", dependence: str = "", note: str = "", **_: Any) -> list[str]:
    """Return what is estimated, as lines to print."""
    return [line for line in (f"Estimated: {estimand}." if estimand else "", note, dependence) if line]


def interval_of(
    certificate: Certificate, plan: Plan, level: float = 0.95, *, effect: float | None = None, noise: float | None = None
) -> Interval:  # fmt: skip
    """One entry for each released number; `PromiseRefused` says why where no interval can be vouched for.

    ``effect`` and ``noise`` as in `expected_error`; of means with plain noise ``noise`` is the records' standard deviation, where
    it is publicly known."""
    level = confidence_level(level)
    if isinstance(plan.model, ClassifierScores | RegressorScores):
        raise PromiseRefused(
            "These are counts behind an evaluation; its figures have the intervals. Read it with onedraw.release.scores_of."
        )
    if isinstance(plan.model, MagnitudeTable):
        raise PromiseRefused("these are counts behind private bounds. Read the bounds with onedraw.release.bounds_of")
    if isinstance(plan.model, Network):
        raise PromiseRefused("single weights of a network mean nothing: units can be exchanged. Use its predictions")
    found: Interval = plan.mechanism.interval(plan, published_of(certificate, plan), level, effect=effect, noise=noise)
    return found


def published_of(certificate: Certificate, plan: Plan) -> Published:
    """Return what left by a certificate, as the plan's method reads it."""
    draw = certificate.draw
    units = column_units(certificate, plan.model)
    values = np.array(draw.values, dtype=np.float64)
    return Published(values, draw.stages, certificate.lattice, *units, tuple(draw.names))


def comparison_of(certificate: Certificate, plan: Plan, level: float = 0.95) -> Comparison | None:
    """Return the differences between the groups of a release and the tests of them; None where there are no groups to compare.

    A cross table with several levels has one test, that rows and columns are independent."""
    if certificate.draw.stages is None:
        return None
    level, published = confidence_level(level), published_of(certificate, plan)
    scores, table = plan.mechanism.scores(plan, published), plan.mechanism.independence(plan, published)
    if scores is not None:
        found: Comparison = scores.compare(level)
        return found
    return None if table is None else Comparison(certificate.draw.quantity, level, (), table)


def posterior_of(certificate: Certificate, plan: Plan) -> Posterior | None:
    """The posterior that a release in stages published, in the model's own coordinates; None where it published none."""
    stages = certificate.draw.stages
    return None if stages is None else plan.mechanism.posterior(plan, stages)


def why_refused(refused: ArrayLike, names: Sequence[str]) -> str:
    """The rest of a sentence that begins "No interval"; empty if none was refused."""
    which = [repr(name) for name, without in zip(names, np.asarray(refused), strict=True) if without]
    if not which:
        return ""
    return SLOW if len(which) == len(names) else f"for {', '.join(which)}, since {SLOW}"


def _vouched(found: NormalEstimates | MomentsResult, level: float) -> Interval:
    """Of what was published with its own errors; NaN where the records say too little, or noise leaves too little of a column."""
    low, high = found.conf_int(level).T
    return Interval(found.estimate if isinstance(found, NormalEstimates) else found.values, low, high, *found.errors)


def column_units(certificate: Certificate, model: Model) -> tuple[Array, Array, Array]:
    """(change, scale, shift) with ``scale·(change @ draw) + shift`` the draw as people read it."""
    measure = certificate.data.measure
    return model.column_units() if measure is None else model.column_units(measure.centre, measure.unit)


def readable_draws(certificate: Certificate, model: Model, draws: Array | None = None) -> Array:
    """All draws, or these, one row each, in the units of the columns."""
    values = np.array(certificate.draw.values, dtype=np.float64) if draws is None else draws
    measured = certificate.data.measure
    return model.in_readable_units(values, *((measured.centre, measured.unit) if measured else ()))


def values_of(certificate: Certificate, plan: Plan) -> Array:
    """The released numbers, each the mean of its draws, in the units of the columns; of too few known cells what stands in the place of
    an estimate, which `estimates_of` leaves out."""
    draws, shares = readable_draws(certificate, plan.model), plan.mechanism.draw_shares(plan)
    return np.asarray(np.average(draws, axis=0, weights=shares))


def fit_of(certificate: Certificate, plan: Plan) -> NormalEstimates:
    """A release in stages as people read it: estimate, errors and tests in the units of the columns."""
    published = published_of(certificate, plan)
    found: NormalEstimates | None = None if published.stages is None else plan.mechanism.fit_of(plan, published)
    if found is None:
        raise WrongCall(
            f"This release is a draw by {certificate.mechanism.name}, not a fit: it has no information to build on. Use "
            "its draws, or release with mechanism='fit'."
        )
    return found


def moments_of(certificate: Certificate, plan: Plan) -> MomentsResult:
    """Released moments as people read them, with their errors, in the units of the columns."""
    published = published_of(certificate, plan)
    found: MomentsResult | None = None if published.stages is None else plan.mechanism.moments_of(plan, published)
    if found is None:
        raise WrongCall(
            f"This release is by {certificate.mechanism.name}, not one of means and correlations. Release with --model "
            "covariance, or fit a DPCovariance."
        )
    return found


def joint_tests(fit: NormalEstimates, certificate: Certificate, plan: Plan) -> tuple[Joint, ...]:
    """One for each declared category of more than two levels, or term of more than one column, and for each class where there are
    several."""
    if not fit.informed:
        return ()
    width, labels = plan.model.features.width, dict.fromkeys(label for _, label in plan.model.terms)
    joint = JointOfTerm if (certificate.data.declared or {}).get("formula") else Joint
    return tuple(
        joint(term.name, label, *fit.wald(range(block * width + term.start, block * width + term.stop)))
        for block, label in enumerate(labels)
        for term in terms_of(certificate, plan)
        if term.stop - term.start > 1
    )
