"""What was asked for, and the plans that answer it: `onedraw.plan` in Python, `plan`, `release` and `demo` on the command line.

    planned = od.plan("schema.yaml", "readmitted", "logistic", epsilon=1.0, n=5000)
    release = planned.release("patients.csv", ledger="books.db")

A plan is made of public numbers alone. Whoever answers for the data can look at it, have it as a page to sign
(`Planned.report`) and find its fingerprint again on the certificate of the release that was made by it.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from onedraw.data import Schema, read
from onedraw.defaults import DELTA
from onedraw.errors import OnedrawError, WrongCall
from onedraw.ledger import Ledger
from onedraw.privacy import ApproxDP, Promise, PureDP
from onedraw.release import Release
from onedraw.release import release as release_by

LEVEL = 0.95

RANKS = ("median", "quantiles")
"""Questions about one column that are answered by rank."""


@dataclass(frozen=True)
class Planned:
    """The plans, best first; how many draws; and why there will be no interval, where public numbers say so."""

    choices: Any
    draws: int
    why_no_interval: str = ""
    asked: Any = None
    budget: Any = None
    n: int = 0

    @property
    def plan(self) -> Any:
        """The one that a release would follow."""
        return self.choices.best

    def __repr__(self) -> str:
        words = [f"{self.asked.title}: {self.budget}, n = {self.n:,}.", self.choices.why, self.choices.expectation]
        if self.why_no_interval:
            words.append(f"No interval: {self.why_no_interval.rstrip('.')}.")
        return f"<Planned {' '.join(filter(None, words))}>"

    def _repr_html_(self) -> str:
        return str(self.choices._repr_html_())

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the plan as one HTML page, for whoever answers for the data to read and sign."""
        written: Path = import_module("onedraw.report").write_plan(self, path, overwrite=overwrite)
        return written

    def release(
        self, source: Any, *, ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None,
        accept: Collection[str] | str = (), out: str | os.PathLike[str] | None = None, random_state: int | None = None,
    ) -> Release:  # fmt: skip
        """Release what was planned from a frame or file that has the columns of the schema: ledger first, then the records."""
        records = read(source, self.asked.schema, target=self.asked.target).measured(self.asked.measure)
        books = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger.open(ledger)
        return release_by(
            self.plan, records, ledger=books, dataset=dataset, accept=accept, random_state=random_state,
            label=self.asked.label, out=out,
        )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A question about a column, with everything public about it; ``regression`` is None for a single column's, and
    ``target`` where all columns are described."""

    schema: Any
    target: str | None
    model: str
    regression: Any = None
    measure: Any = None
    prior: Any = None
    quantiles: Any = None
    interval: bool = True
    table: Any = None
    """Of a question about one column, what plain noise would be put on."""

    @property
    def title(self) -> str:
        if self.target is None:
            return f"{self.model} of {', '.join(self.schema.columns)}"
        by = f" by {' and '.join(self.by)}" if self.by else ""
        where = f" {self.table.only}" if getattr(self.table, "between", None) else ""
        return f"{self.model} {'regression ' if self.regression is not None else ''}of {self.target}{where}{by}"

    @property
    def by(self) -> tuple[str, ...]:
        """The columns whose groups are asked about."""
        return () if self.table is None else tuple(self.table.by)

    def _posterior(self, n: int, budget: Any) -> Any:
        """What makes the conjugate model, where there is one for the question."""
        from onedraw.planning.questions import POSTERIOR, model_for

        target = self.target
        if self.model not in POSTERIOR or self.by or target is None or getattr(self.table, "between", None):
            return None
        return lambda: model_for(self.schema, target, question=self.model, n=n, budget=budget, prior=self.prior)

    def _of_ranks(self, budget: Any, n: int, draws: int, people: int, mechanism: str) -> Any:
        """Quantiles, by the one mechanism there is for them."""
        from onedraw import planning
        from onedraw.mechanisms import ExponentialQuantiles
        from onedraw.planning.expected_errors import why_selected

        if mechanism not in ("auto", "exponentialquantiles"):
            raise WrongCall(f"No mechanism is called {mechanism!r}. Choose one of: exponentialquantiles, auto.")
        family = planning.model_for(
            self.schema, self.target or "", question=self.model, n=n, budget=budget, prior=self.prior,
            quantiles=self.quantiles, interval=LEVEL if self.interval else None,
        )  # fmt: skip
        found = planning.choices(
            family, budget, n=n, draws=draws, records_per_person=people, mechanisms=(ExponentialQuantiles(),)
        )
        return replace(found, why=why_selected(found.best))

    @property
    def label(self) -> str:
        """In the ledger."""
        return f"{self.model} of {self.target or f'{len(self.schema.columns)} columns'}"

    def planned(
        self, budget: Any, *, n: int, draws: int | None = None, mechanism: str = "auto", accept: Collection[str] = (),
        compare: bool = False,
    ) -> Planned:  # fmt: skip
        """From public numbers only; ``draws`` None is "auto". ``compare`` weighs all mechanisms of a column."""
        found = self._planned(budget, n, draws, mechanism, accept, compare)
        return replace(found, asked=self, budget=budget, n=n)

    def _planned(
        self, budget: Any, n: int, draws: int | None, mechanism: str, accept: Collection[str], compare: bool
    ) -> Planned:
        from onedraw import planning

        people = self.schema.records_per_person
        if self.target is None:
            if mechanism != "auto" or (draws or 1) != 1:
                raise WrongCall(
                    "A covariance has one mechanism and is published once. Leave out --mechanism and --draws."
                )
            family = planning.moments_of_schema(self.schema)
            return Planned(planning.covariance_choices(*family, budget, n=n, records_per_person=people), 1)
        if self.regression is None:
            count = draws or 1
            if self.model in RANKS:
                return Planned(self._of_ranks(budget, n, count, people, mechanism), count)
            found = planning.column_choices(
                self.table if self.prior is None else None, self._posterior(n, budget), budget, n=n, draws=count, records_per_person=people,
                mechanism=mechanism, compare=compare,
            )  # fmt: skip
            return Planned(found, count)
        from onedraw.planning.regression_questions import in_response_units
        from onedraw.release.intervals.replicated import why_no_interval

        options: dict[str, Any] = {"n": n, "records_per_person": people, "mechanism": mechanism, "accept": accept}
        question, count = self.regression, draws or 1
        chosen = planning.choose(question, budget, draws=count, **options)
        reason = None
        if not self.is_network:
            reason = why_no_interval(chosen.best, LEVEL, effect=question.expected_effect, noise=question.unit)
        return Planned(in_response_units(chosen, self.measure, mechanism=mechanism), count, reason or "")

    @property
    def is_network(self) -> bool:
        """Its single weights mean nothing, so there is no interval and no error per parameter."""
        return self.model.startswith("network")

    @property
    def unit(self) -> float:
        """Of the response, in which errors are stated."""
        return 1.0 if self.measure is None else float(self.measure.unit)


def plan(
    schema: Schema | str | os.PathLike[str] | Mapping[str, Any], target: str | None, model: str, *, n: int,
    epsilon: float | None = None, delta: float = DELTA, budget: Promise | None = None, mechanism: str = "auto",
    draws: int | None = None, accept: Collection[str] | str = (), columns: Sequence[str] | None = None, by: Sequence[str] = (),
    quantiles: Sequence[float] | None = None, level: str | None = None, between: Sequence[float] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Planned:  # fmt: skip
    """What a release would promise and how good it would be, before any record is read: `onedraw plan` in Python.

    ``model`` is what ``--model`` takes: "logistic", "linear", "poisson", …, or of one column "mean", "proportion", "median", ….
    The budget is ``epsilon`` and ``delta``, 0 meaning pure ε, or any promise as ``budget``. ``options`` are the other options of
    the command by name, such as {"robust": True}. ``between`` = (18, 30) counts the records of a numeric column that lie within.
    """
    if (epsilon is None) == (budget is None):
        raise WrongCall(
            "A plan needs a budget: epsilon=1.0 (with delta=…), or budget=, a promise; exactly one of the two."
        )
    declared = schema if isinstance(schema, Schema) else Schema.from_dict(schema) if isinstance(schema, Mapping) else Schema.load(schema)  # fmt: skip
    spend = budget if epsilon is None else ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    listed_columns = None if columns is None else ",".join(columns)
    accepted = (accept,) if isinstance(accept, str) else tuple(accept)
    try:
        asked = ask(
            declared, target, model, columns=listed_columns, quantiles=quantiles, by=by, level=level, between=between,
            options=options,
        )  # fmt: skip
        return asked.planned(spend, n=n, draws=draws, mechanism=mechanism, accept=accepted, compare=True)
    except OnedrawError as error:
        raise type(error)(in_python(str(error)), **error.fields) from None


TYPED = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?: ([A-Z0-9](?:[\w…]|,(?=\S))*))?(?: (covariance)\b)?")


def in_python(message: str) -> str:
    """A message about what people type, in the words of `plan`: ``--prior-scale`` becomes options={"prior_scale": …}."""
    known = inspect.signature(plan).parameters

    def argument(match: re.Match[str]) -> str:
        name, value, word = match[1].replace("-", "_"), match[2], match[3]
        if name not in known:
            return f'options={{"{name}": …}}'
        if word:
            return f'{name}="{word}"'
        given = "" if value is None else f"({', '.join(value.split(','))})" if value[0].isdigit() else "…"
        return f"{name}={given}" if given else name

    return TYPED.sub(argument, message)


def ask(
    schema: Any, target: str | None, model: str, *, columns: str | None = None, prior: Any = None, quantiles: Any = None,
    interval: bool = True, options: Mapping[str, Any] | None = None, by: Sequence[str] = (), level: str | None = None,
    between: Sequence[float] | None = None,
) -> Asked:  # fmt: skip
    """Check the question against the schema alone: no file of records is opened.

    "quantile" alone is the regression; with a list of quantiles it is the question about one column.
    """
    from onedraw.planning.questions import POSTERIOR, table_for
    from onedraw.planning.regression_questions import is_regression, regression_for

    if model == "quantile" and quantiles is not None:
        model = "quantiles"
    if model not in RANKS and (quantiles is not None or not interval):
        raise WrongCall(
            f"--quantiles and --no-interval belong to quantiles of one column, not to {model}. Leave them out."
        )
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if model == "covariance":
        return ask_all(schema, target, columns, given, prior)
    if columns is not None:
        raise WrongCall(f"--columns belongs to --model covariance; a {model} takes --target. Leave it out.")
    regression = is_regression(model)
    if target is None:
        raise WrongCall(f"A {model} is about one column, and none was named. Pass --target COLUMN.")
    if not regression:
        table = table_for(schema, target, question=model, by=by, level=level, between=between)
        if prior is not None and (by or between is not None or model not in (*POSTERIOR, *RANKS)):
            what = " by groups" if by else " between two numbers" if between is not None else ""
            raise WrongCall(f"--prior is for draws from a posterior; a {model}{what} has none. Leave it out.")
        if given:
            raise WrongCall(f"{listed(given)} belong to regressions; a {model} of one column has none. Leave them out.")
        return Asked(schema, target, model, prior=prior, quantiles=quantiles, interval=interval, table=table)
    if by or level is not None or between is not None:
        raise WrongCall(
            f"--by, --level and --between are for questions about one column; a {model} regression has none. Leave them out."
        )
    if prior is not None:
        raise WrongCall(f"--prior is for questions about one column; a {model} regression takes --prior-scale.")
    question, measure = regression_for(schema, target, model=model, options=given)
    return Asked(schema, target, model, question, measure)


def ask_all(schema: Any, target: str | None, columns: str | None, given: Mapping[str, Any], prior: Any) -> Asked:
    """The question which columns go together."""
    from onedraw.planning import chosen_columns

    if target is not None:
        raise WrongCall(
            "A covariance is about several columns, none before the others. Pass --columns A,B,… for --target."
        )
    if given or prior is not None:
        useless = listed({**given, **({} if prior is None else {"prior": prior})})
        raise WrongCall(f"{useless} do nothing for a covariance, which has no prior and no response. Leave them out.")
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    return Asked(chosen_columns(schema, names), None, "covariance")


def listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)


def name_of(choice: Any) -> str:
    """What people type as --mechanism."""
    return choice.name or type(choice.plan.mechanism).__name__.lower()
