"""Questions about columns by themselves: a table for plain noise, a conjugate posterior, a selection by rank, or moments.

An analyst asks for a proportion, a count, a histogram, a mean, a sum, a variance or a rate of a column, perhaps by groups, or
which columns go together. The schema has already said what is public about them. Every default here is a function of the
schema, n and the budget, never of a record.

| question | column | table | model and default prior |
| --- | --- | --- | --- |
| proportion | binary; any category with ``level`` | share of the second level, or of ``level`` | Beta–Bernoulli, Beta(1, 1), uniform |
| histogram | category, binary | shares of all levels | Dirichlet–Categorical, one pseudo-record per level |
| count | category, binary | counts of all levels, of the second, or of ``level`` | none |
| count, proportion with ``between`` | number, count | the count or share of records within | none |
| mean | number | mean, with a second moment for its interval | Gaussian mean of known variance, one pseudo-record at mid-range |
| sum, variance | number, count | sum, variance | none |
| rate | count | mean | Gamma–Poisson, worth one record at half the cap |
| median, quantiles | number, count | none | quantiles by rank, on a lattice of the column's range |
| duration | number from 0 | none | Gamma–Exponential, worth two records at half the bound |
| covariance | all numbers and counts, or those named | none | moments; a category is coded as 0 and 1, but for its first level |

**Noise or a posterior?** A draw from a posterior spreads as wide as the sample itself leaves the parameter open, so its error is at
least √2 times the error without privacy, up to a term of order 1/n that a prior's pull can win. Where the noise alone is below 0.9
times that error, plain noise is therefore better than any of them, and none is calibrated; elsewhere all are compared. Priors, if
any, belong to posteriors: noise has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onedraw.data import Schema
from onedraw.errors import InvalidModel, InvalidSchema, PromiseRefused, WrongCall
from onedraw.methods import AddedNoise, CenteredNoise, ExponentialQuantiles, GroupQuantiles, Moments
from onedraw.methods.expectation import Expectation
from onedraw.models import FAMILIES, CategoryTable, ColumnQuantiles, Columns, ConjugateModel, NumberTable, Table
from onedraw.models.features import category_columns, schema_features
from onedraw.models.model import CANNOT_SKIP
from onedraw.models.sums.clamped_sums import SKIP
from onedraw.models.tables.category_table import condition
from onedraw.models.tables.table import LAWS
from onedraw.plans import Plan, record_count
from onedraw.privacy import ApproxDP, Promise

from .choice import CANDIDATES, Choice, Choices, Question, Terms, ranked
from .expected_errors import expected_error, why_selected
from .options import CONDITIONS, GROUPED, QUESTIONS, RANKS
from .rules import noise_is_surely_better

ASKED_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*NumberTable.shown, *RANKS), ("number", "count")),
    "count": ("category", "binary"),
    **{family.kind: family.asked_of for family in FAMILIES},
}
"""The kinds of column that a question can be asked of."""

NOT_OF_DATES = ("sum", "duration")
"""Questions about numbers that mean nothing for days of a calendar."""

POSTERIORS = {type(mechanism).__name__.lower(): mechanism for mechanism in CANDIDATES}

CENTERED = "centered"
"""The name of noise on a mean and then on squares about it."""

FILLED = 1.0 / 3.0
"""The variance of a column that fills its declared range evenly, in half-ranges."""


# ── noise on a table, or a draw from a posterior ─────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ColumnQuestion(Question):
    """``table`` is released with noise, ``posterior`` is the model that is drawn from or makes it of (n, budget); None: there is none.

    A caller who gives a prior wants a posterior: no table then. The mechanism is "auto", "laplace", "gaussian", for variances
    "centered", or the name of a posterior mechanism.
    """

    table: Table | None
    posterior: ConjugateModel | Callable[[int, Promise], Any] | None = None

    def _choices(self, terms: Terms) -> Choices:
        name = terms.mechanism
        if self.table is not None and self.table.skips and (name in POSTERIORS or terms.draws > 1):
            raise InvalidModel(CANNOT_SKIP.format("A draw from a posterior"))
        names = [*self._noises(), *(POSTERIORS if self.posterior is not None else ())]
        if name != "auto" and name not in names:
            known = ", ".join(names)
            raise InvalidModel(f"No mechanism for this question is called {name!r}. Choose auto or one of: {known}.")
        if name in self._noises():
            return _said(Choices((self._noise(terms, name),), {}), name, terms.budget)
        if name in POSTERIORS:
            return _said(self._drawn(terms, (POSTERIORS[name],)), name, terms.budget)
        return self._best(terms)

    def _best(self, terms: Terms) -> Choices:
        """All that are eligible, ranked; plain noise alone where nothing can be better than it."""
        refused: dict[str, PromiseRefused | InvalidModel] = {}
        noisy: list[Choice] = []
        others = Choices((), {})
        try:
            noisy = [] if self.table is None else [self._noise(terms)]
        except PromiseRefused as error:
            refused["noise"] = error
        if (
            noisy
            and self.posterior is not None
            and not terms.compare
            and noise_is_surely_better(noise=noise_of(noisy[0].plan), sampling=noisy[0].expected.sampling, n=terms.n)
        ):
            return _said(Choices(tuple(noisy), {}), "surely", terms.budget)
        if self.posterior is not None:
            try:
                others = self._drawn(terms)
            except (PromiseRefused, InvalidModel) as error:
                refused["a posterior draw"] = error
        if not noisy and not others.eligible:
            raise next(iter(refused.values()))
        if noisy and others.eligible:  # the same error without privacy for both
            sampling = others.eligible[0].expected.sampling
            private = math.hypot(sampling, noise_of(noisy[0].plan))
            noisy = [replace(noisy[0], found=Expectation(private, sampling, 0.0))]
        found = sorted([*noisy, *others.eligible], key=lambda choice: choice.expected.private)
        reasons = {name: str(reason) for name, reason in refused.items()} | others.refused
        return _said(Choices(tuple(found), reasons), "auto", terms.budget)

    def _noise(self, terms: Terms, law: str | None = None) -> Choice:
        assert self.table is not None
        if law == CENTERED:
            plan = terms.calibrated(CenteredNoise(), self.table)
            return Choice(plan, expected_error(plan), CENTERED)
        plan = terms.calibrated(AddedNoise(law), self.table)
        if law is None and plan.mechanism.law == "laplace" and CenteredNoise.is_worthwhile(plan.request):
            return self._noise(terms, CENTERED)
        return Choice(plan, expected_error(plan), str(plan.mechanism.law))

    def _noises(self) -> tuple[str, ...]:
        """Return the names of the noises that the table can have."""
        if self.table is None:
            return ()
        return (*LAWS, CENTERED) if isinstance(self.table, NumberTable) and self.table.centers else LAWS

    def _drawn(self, terms: Terms, mechanisms: Iterable[Any] = CANDIDATES) -> Choices:
        assert self.posterior is not None
        model = self.posterior(terms.n, terms.budget) if callable(self.posterior) else self.posterior
        return ranked(model, terms, mechanisms)


def noise_of(plan: Plan) -> float:
    """Return the standard error that the noise of a plan gives a typical published number."""
    return float(plan.mechanism.expected_noise(plan))


def _said(found: Choices, how: str, budget: Promise) -> Choices:
    """What was taken and why, in a sentence or two."""
    best = found.eligible[0]
    error = f"expected error {best.expected.private:.3g}"
    if best.expected.sampling:
        error += f" ({best.expected.sampling:.3g} without privacy)"
    rivals = [choice for choice in found.eligible[1:] if bool(choice.name) != bool(best.name)]
    if how == "surely":
        why = f"{best.named} noise: {error}. A draw from a posterior would be off by at least {1.4 * best.expected.sampling:.3g}."
    elif how != "auto":
        why = f"{best.named}: named by the caller; {error}."
    elif rivals:
        kind, noise = ("the best draw from a posterior", " noise") if best.name else (f"{rivals[0].name} noise", "")
        why = f"{best.named}{noise}: {error}, against {rivals[0].expected.private:.3g} of {kind}."
    else:
        what, many = "noise" if best.name else "sampling", len(found.eligible)
        why = f"{best.named} {what}: {error}{f', the smallest of {many} that can keep {budget}' if many > 1 else ''}."
    return replace(found, why=f"{why} Decided from public numbers, before any record was read.")


def column_for(schema: Schema, target: str, question: str, *, numeric: bool = False) -> Any:
    """The declared column, if the question can be asked of its kind; ``numeric`` with a condition on its numbers."""
    column = schema.column(target)
    kinds = ("number", "count") if numeric else ASKED_OF[question]
    if column.kind == "date" and (question in NOT_OF_DATES or numeric):
        raise InvalidSchema(
            f"A {question}{' between two numbers' if numeric else ''} is not asked of dates, and {target!r} is declared as date. Ask for its "
            "mean, median or quantiles, or declare `part: year`, `quarter`, `month`, `weekday` or `hour` and ask for a histogram or a count."
        )
    if column.role not in kinds:
        fits = [
            name
            for name in QUESTIONS
            if column.role in ASKED_OF[name] and (column.kind != "date" or name not in NOT_OF_DATES)
        ]
        remedy = f"Ask for its {' or '.join(fits)}, or correct the schema."
        if question in CONDITIONS and column.kind in ("number", "count"):
            remedy = f"Say which numbers are counted, --between 18,30, or ask for its {' or '.join(fits)}."
        raise InvalidSchema(
            f"A {question}{' between two numbers' if numeric else ''} needs a {' or '.join(kinds)} column, but {target!r} is declared as "
            f"{column.kind}. {remedy}"
        )
    return column


def table_for(
    schema: Schema, target: str, *, question: str, by: Sequence[str] = (), level: str | None = None,
    between: Sequence[float] | None = None,
) -> CategoryTable | NumberTable | None:  # fmt: skip
    """The table that answers ``question`` about column ``target``, in the groups of the columns ``by``; None for durations and ranks."""
    if question == "proportion" and level is not None:
        column = column_for(schema, target, "count")  # of any category
    else:
        column = column_for(schema, target, question, numeric=between is not None)
    groups = grouping(schema, target, by, question)
    show = "counts" if question == "count" else "shares"
    groups |= skipped_of(schema, (target, *by))
    if between is not None:
        return CategoryTable(**_condition(column, target, level, between), show=show, **groups)
    match question:
        case "proportion" | "histogram" | "count":
            labels = tuple(map(str, column.labels))
            second = labels[1] if column.role == "binary" and question != "histogram" else None
            return CategoryTable(labels, show=show, only=second if level is None else level, **groups)
        case _ if question in NumberTable.shown:
            lower, upper = column.ends
            return NumberTable(lower, upper, show=question, **groups)
        case _:  # ranks, and families without a table
            return None


def skipped_of(schema: Schema, names: Iterable[str]) -> dict[str, Any]:
    """Return what a table or quantiles of these columns declare of missing cells, if one of them skips its own."""
    if not any(schema.column(name).skips for name in names):
        return {}
    return {"missing": SKIP, "nobody": schema.person is not None}


def _condition(column: Any, target: str, level: str | None, between: Sequence[float]) -> dict[str, Any]:
    """Records whose number lies within a public condition. The column's declared range is where records are clamped to, so a
    condition that it misses altogether is a slip."""
    if level is not None:
        raise InvalidModel("between is two numbers, low and high, and goes without level. Pass --between 18,30 alone.")
    asked = condition(between)
    (lower, upper), (low, high) = column.ends, asked["between"]
    if high < lower or upper < low:
        raise InvalidModel(
            f"No record can be {asked['only']}: {target!r} is declared on [{lower:g}, {upper:g}], and values outside count as the "
            "nearest end. Correct the condition or the schema."
        )
    return asked


def grouping(schema: Schema, target: str, by: Sequence[str], question: str) -> dict[str, Any]:
    """The declared groups: levels of one to three category or binary columns."""
    if by and question not in GROUPED:
        raise InvalidModel(f"A {question} is not given by groups. Ask for a {', '.join(GROUPED)}.")
    levels = []
    for name in by:
        column: Any = schema.column(name)
        if column.role not in ("category", "binary") or name == target:
            raise InvalidSchema(
                f"Groups are the levels of a category or binary column other than the target, but {name!r} is "
                f"{'the target' if name == target else f'declared as {column.kind}'}. Choose another column for by."
            )
        levels.append(tuple(map(str, column.labels)))
    return {"by": tuple(by), "groups": tuple(levels)} if by else {}


def model_for(
    schema: Schema, target: str, *, question: str, n: int, budget: Promise, prior: Sequence[float] | None = None
) -> Any:
    """The conjugate model that answers ``question`` about column ``target``, with bounds from the schema."""
    for family in FAMILIES:
        if family.kind == question:
            column = column_for(schema, target, question)
            if column.skips:
                raise InvalidModel(CANNOT_SKIP.format(f"A posterior for a {question}"))
            return family.for_column(column, n=record_count(n), budget=budget, prior=prior)
    raise InvalidModel(f"No posterior is known for a {question}: it is released with plain noise, or by rank.")


@dataclass(frozen=True)
class QuantileQuestion(Question):
    """Quantiles of a column, by the one mechanism there is for them."""

    model: ColumnQuantiles

    def _choices(self, terms: Terms) -> Choices:
        mechanism = GroupQuantiles() if self.model.by else ExponentialQuantiles()
        name = type(mechanism).__name__.lower()
        if terms.mechanism not in ("auto", name):
            raise WrongCall(f"No mechanism is called {terms.mechanism!r}. Choose one of: {name}, auto.")
        found = ranked(self.model, terms, (mechanism,))
        return replace(found, why=why_selected(found.best))


def _is_whole(column: Any) -> bool:
    """Whether all values of a column are whole numbers: counts, and dates without a time of day."""
    return column.kind == "count" or (column.kind == "date" and not column.has_time)


def quantile_model(
    column: Any, question: str, levels: Any, interval: float | None, by: tuple[str, ...] = (),
    groups: tuple[tuple[str, ...], ...] = (), **skipped: Any,
) -> ColumnQuantiles:  # fmt: skip
    """Quantiles of a column in its declared range, as a whole or within groups; counts on whole numbers. ``skipped`` is `skipped_of`."""
    if question == "median" and levels is not None and tuple(levels) != (0.5,):
        raise InvalidModel("The median is one quantile, the 0.5. For others ask for quantiles.")
    wanted = (0.5,) if question == "median" else (0.25, 0.5, 0.75) if levels is None else tuple(levels)
    (lower, upper), step = column.ends, 1.0 if _is_whole(column) else None
    return ColumnQuantiles(wanted, lower, upper, step=step, interval=interval, by=by, groups=groups, **skipped)


@dataclass(frozen=True)
class CovarianceQuestion(Question):
    """Means, deviations and correlations; what may be expected is said of a correlation, for columns that fill their ranges and
    do not go together; of one column of its mean."""

    mechanism: Moments
    model: Columns

    @classmethod
    def of_schema(cls, schema: Schema) -> CovarianceQuestion:
        """Of all columns of a schema."""
        categories = category_columns(schema, None)
        return cls(Moments(categories=categories), Columns(**schema_features(schema, None)))

    def _choices(self, terms: Terms) -> Choices:
        if terms.mechanism != "auto" or terms.draws != 1:
            raise WrongCall("A covariance has one mechanism and is published once. Leave out --mechanism and --draws.")
        plan = terms.calibrated(self.mechanism, self.model)
        problem = self.mechanism.problem(plan)
        if problem.columns.count == 1:
            sampling, noise = math.sqrt(FILLED / plan.n), problem.deviation("sums")
        else:
            sampling, noise = 1.0 / math.sqrt(plan.n), problem.deviation("moments") / math.sqrt(2.0)
        expected = Expectation(math.hypot(sampling, noise), sampling, 0.0)
        given = "" if problem.gives_correlations else "; with this n and ε the noise is too large for correlations, so none will be given: more records, fewer columns or a larger ε help"  # fmt: skip
        stronger = problem.pure and isinstance(terms.budget, ApproxDP)
        why = (
            f"moments: noise on exact sums; a correlation of two columns is expected to be off by {expected.private:.3g} "
            f"({sampling:.3g} without privacy), a mean by {problem.deviation('sums'):.3g} of half its range by noise{given}"
            f"{'; it keeps pure ε, which costs nothing here' if stronger else ''}. "
            "Decided from public numbers, before any record was read."
        )
        seconds = plan.n * self.model.features.count**2 / 2e9
        return Choices((Choice(plan, expected, "moments", seconds),), {}, why)


def chosen_columns(schema: Schema, names: Sequence[str] | None = None) -> Schema:
    """The schema of the columns that are described: those named, or all numbers and counts."""
    if names is None:
        names = [name for name, column in schema.columns.items() if column.role in ("number", "count")]
        if not names:
            raise InvalidSchema(
                "The schema declares no number column, so there is nothing to be correlated. Name the columns with "
                "--columns; categories are coded as 0 and 1."
            )
    if len(set(names)) < len(names):
        raise WrongCall("--columns names a column twice; its correlation with itself is 1. Name each once.")
    return schema.choose(names)
