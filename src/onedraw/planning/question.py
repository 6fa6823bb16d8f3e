"""What was asked for, and the plans that answer it: `onedraw.plan` in Python, `plan`, `release` and `demo` on the command line.

    planned = od.plan("schema.yaml", "readmitted", "logistic", epsilon=1.0, n=5000)
    release = planned.release("patients.csv", ledger="ledger.db")

A plan is made of public numbers alone. Whoever answers for the data can look at it, have it as a page to sign
(`Planned.report`) and find its fingerprint again on the certificate of the release that was made by it.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onedraw.data import Measure, Schema, read
from onedraw.defaults import DELTA, LEVEL
from onedraw.errors import InvalidModel, OnedrawError, WrongCall
from onedraw.ledger import Ledger
from onedraw.plans import Plan
from onedraw.privacy import Promise, epsilon_delta
from onedraw.release import Release
from onedraw.release import release as release_by
from onedraw.release.certificate import DataStatement, MeasureStatement
from onedraw.release.fingerprint import dataset_name, fingerprint_of

from .choice import Choices, Question
from .effects import listed_effects
from .formulas import choose_columns
from .options import ALIASES, KINDS, POSTERIOR, QUESTIONS, RANKS, Options, check_belongs


@dataclass(frozen=True)
class Planned:
    """The plans, best first, and why there will be no interval, where public numbers say so."""

    choices: Choices
    why_no_interval: str
    asked: Asked
    budget: Promise
    n: int
    dataset: str | None = None
    """Name of the data set that would be charged, if it is not the schema's."""

    @property
    def plan(self) -> Plan:
        """The one that a release would follow."""
        return self.choices.eligible[0].plan

    @property
    def fingerprint(self) -> str:
        """Digest of the question: the certificate of a release that answers it, and its reservation in the ledger, state the same."""
        return self.fingerprint_of(self.plan)

    def fingerprint_of(self, plan: Plan) -> str:
        """Return the fingerprint if the question is answered by ``plan``."""
        schema, measure = self.asked.schema, self.asked.measure
        units = None if measure is None else MeasureStatement(centre=measure.centre, unit=measure.unit)
        stated = DataStatement(
            dataset=dataset_name(self.dataset, schema.dataset), target=self.asked.target, schema_digest=schema.digest,
            measure=units,
        )  # fmt: skip
        return fingerprint_of(plan, stated)

    @property
    def estimand(self) -> str:
        """What a fit would estimate, such as "least-squares coefficients of log_wage"; empty for other mechanisms."""
        return str(self.plan.mechanism.estimand(self.plan, self.asked.target))

    @property
    def estimand_note(self) -> str:
        """What to know about the estimand before a release; empty for mechanisms that are no fit."""
        return str(self.plan.mechanism.estimand_note(self.plan))

    def __repr__(self) -> str:
        words = [f"{self.asked.title}: {self.budget}, n = {self.n:,}."]
        words += [f"Estimates {self.estimand}.", self.estimand_note] if self.estimand else []
        words += [self.choices.why, self.choices.expectation, self.choices.intervals]
        if self.why_no_interval:
            words.append(f"No interval: {self.why_no_interval.rstrip('.')}.")
        return f"<Planned {' '.join(filter(None, words))}>"

    def _repr_html_(self) -> str:
        return self.choices._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """As `onedraw plan --json` prints it."""
        asked = self.asked
        return {
            "budget": self.budget.to_dict(), "n": self.n, "target": asked.target,
            **({} if asked.schema.formula is None else {"formula": str(asked.schema.formula)}),
            "columns": list(asked.schema.columns) if asked.target is None else None, "draws": self.plan.draws,
            "why_no_interval": self.why_no_interval, "model": self.plan.model.to_dict(), "why": self.choices.why,
            "expectation": self.choices.expectation, "refused": self.choices.refused, "fingerprint": self.fingerprint,
            "eligible": [one.to_dict() | {"fingerprint": self.fingerprint_of(one.plan)} for one in self.choices.eligible],
        } | ({"estimand": self.estimand, "estimand_note": self.estimand_note} if self.estimand else {})  # fmt: skip

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the plan as one HTML page, for whoever answers for the data to read and sign."""
        from onedraw.report import write_plan  # above this package: a convenience, named as such among the contracts

        return write_plan(self, path, overwrite=overwrite)

    def release(
        self, source: Any, *, ledger: Ledger | str | os.PathLike[str] | None = None, dataset: str | None = None,
        accept: Collection[str] | str = (), out: str | os.PathLike[str] | None = None, random_state: int | None = None,
        timing: str | None = None, by: str | None = None, purpose: str | None = None,
    ) -> Release:  # fmt: skip
        """Release what was planned from a frame or file that has the columns of the schema: ledger first, then the records."""
        records = read(source, self.asked.schema, target=self.asked.target, measure=self.asked.measure)
        opened = ledger if ledger is None or isinstance(ledger, Ledger) else Ledger.open(ledger)
        return release_by(
            self.plan, records, ledger=opened, dataset=dataset or self.dataset, accept=accept, random_state=random_state,
            timing=timing, label=self.asked.label, out=out, by=by, purpose=purpose,
        )  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """A question in a person's words about columns of a schema; ``target`` is None where several are described."""

    schema: Schema
    target: str | None
    model: str
    question: Question
    by: tuple[str, ...] = ()
    where: str = ""
    """The public condition of a count, in words."""
    measure: Measure | None = None
    """What the responses of a regression of numbers are measured in."""

    @property
    def is_regression(self) -> bool:
        return ALIASES.get(self.model, self.model) in KINDS

    @property
    def title(self) -> str:
        if self.target is None:
            return f"{self.model} of {', '.join(self.schema.columns)}"
        words = [self.model, "regression" if self.is_regression else "", f"of {self.target}", self.where]
        return " ".join(filter(None, [*words, f"by {' and '.join(self.by)}" if self.by else ""]))

    @property
    def label(self) -> str:
        """In the ledger."""
        return f"{self.model} of {self.target or f'{len(self.schema.columns)} columns'}"

    def planned(
        self, budget: Promise, *, n: int, draws: int | None = None, mechanism: str = "auto", accept: Collection[str] = (),
        compare: bool = False, dataset: str | None = None,
    ) -> Planned:  # fmt: skip
        """From public numbers only; ``draws`` None is "auto". ``compare`` weighs all mechanisms of a column."""
        found = self.question.choices(
            budget, n=n, draws=draws or 1, mechanism=mechanism, accept=accept, compare=compare,
            records_per_person=self.schema.records_per_person,
        )  # fmt: skip
        return Planned(found, self.question.why_no_interval(found.eligible[0].plan), self, budget, n, dataset)


def plan(
    schema: Schema | str | os.PathLike[str] | Mapping[str, Any], target: str | None, model: str, *, n: int,
    epsilon: float | None = None, delta: float = DELTA, budget: Promise | None = None, mechanism: str = "auto",
    draws: int | None = None, accept: Collection[str] | str = (), columns: Sequence[str] | None = None, by: Sequence[str] = (),
    quantiles: Sequence[float] | None = None, level: str | None = None, between: Sequence[float] | None = None,
    estimand: str | None = None, effects: Sequence[str] | None = None, options: Mapping[str, Any] | None = None,
    dataset: str | None = None, formula: str | None = None,
) -> Planned:  # fmt: skip
    """What a release would promise and how good it would be, before any record is read: `onedraw plan` in Python.

    ``model`` is what ``--model`` takes: "logistic", "linear", "poisson", …, or of one column "mean", "proportion", "median", ….
    The budget is ``epsilon`` and ``delta``, 0 meaning pure ε, or any promise as ``budget``. ``options`` are the other options of
    the command by name, such as {"robust": True}. ``between`` = (18, 30) counts the records of a numeric column that lie within.
    ``estimand`` says what a regression is to estimate: "least-squares", "maximum-likelihood", "quantile" or "robust"; a plan that
    estimates something else is then refused. By default the plan names what it estimates.
    ``effects`` names the columns of a regression whose coefficients are of interest: the fit's noise is smaller along them, and larger
    along others.
    ``columns`` names the columns of a covariance, or those that explain the target of a regression: by default all others.
    ``formula`` = "healed ~ age + C(ward)*treated" names the terms of a regression; ``target`` may then be None. See docs/formulas.md.
    ``dataset`` is the name that a release will be charged to, if it is not the schema's: the fingerprint covers it.
    """
    if (epsilon is None) == (budget is None):
        raise WrongCall(
            "A plan needs a budget: epsilon=1.0 (with delta=…), or budget=, a promise; exactly one of the two."
        )
    declared = schema if isinstance(schema, Schema) else Schema.from_dict(schema) if isinstance(schema, Mapping) else Schema.load(schema)  # fmt: skip
    spend = budget if epsilon is None else epsilon_delta(epsilon, delta)
    assert spend is not None
    own = {
        "columns": columns,
        "by": tuple(by) or None,
        "quantiles": quantiles,
        "level": level,
        "between": between,
        "estimand": estimand,
        "effects": None if effects is None else listed_effects(effects),
        "formula": formula,
    }
    spelled = {name: value for name, value in own.items() if value is not None}
    try:
        asked = ask(declared, target, model, Options.named({**(options or {}), **spelled}))
        accepted = (accept,) if isinstance(accept, str) else tuple(accept)
        return asked.planned(
            spend, n=n, draws=draws, mechanism=mechanism, accept=accepted, compare=True, dataset=dataset
        )
    except OnedrawError as error:
        raise type(error)(*map(in_python, error.args), **error.fields) from None


NOTHING = Options()

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


def ask(schema: Schema, target: str | None, model: str, options: Options = NOTHING) -> Asked:
    """Check the question against the schema alone: no file of records is opened.

    "quantile" alone is the regression; with a list of quantiles it is the question about one column.
    """
    if model == "quantile" and options.quantiles is not None:
        model = "quantiles"
    if model == "covariance":  # the question which columns go together
        from .column_questions import CovarianceQuestion, chosen_columns

        if target is not None:
            raise WrongCall(
                "A covariance is about several columns, none before the others. Pass --columns A,B,… for --target."
            )
        check_belongs(options, "covariance")
        chosen = chosen_columns(schema, options.columns)
        return Asked(chosen, None, "covariance", CovarianceQuestion.of_schema(chosen))
    kind = ALIASES.get(model, model)
    if kind not in (*QUESTIONS, *KINDS):
        known = (*QUESTIONS, "covariance", *KINDS)
        close = difflib.get_close_matches(str(model), [*known, *ALIASES], n=1, cutoff=0.5)
        perhaps = f" Perhaps {close[0]}?" if close else ""
        raise InvalidModel(f"No model is called {model!r}.{perhaps} Choose one of: {', '.join(known)}.")
    if kind not in KINDS:
        if target is None:
            raise WrongCall(f"A {model} is about one column, and none was named. Pass --target COLUMN.")
        return _one_column(schema, target, model, options)
    from .regression import regression_for  # and with it the models of regressions, which no other question needs

    schema, target, options = choose_columns(schema, target, options)
    question = regression_for(schema, target, model=model, options=options)
    return Asked(schema, target, model, question, measure=question.measure)


def _one_column(schema: Schema, target: str, model: str, options: Options) -> Asked:
    from .column_questions import (
        ColumnQuestion,
        QuantileQuestion,
        column_for,
        grouping,
        model_for,
        quantile_model,
        skipped_of,
        table_for,
    )

    check_belongs(options, model)
    by, prior, between = tuple(options.by), options.prior, options.between
    if model in RANKS:
        levels, interval = options.quantiles, LEVEL if options.interval else None
        column, groups = column_for(schema, target, model), grouping(schema, target, by, model)
        ranked = quantile_model(column, model, levels, interval, **groups, **skipped_of(schema, (target, *by)))
        return Asked(schema, target, model, QuantileQuestion(ranked), by)
    table = table_for(schema, target, question=model, by=by, level=options.level, between=between)
    # one level of a category has no Beta prior
    several = model == "proportion" and between is None and len(getattr(table, "levels", ())) > 2
    if prior is not None and several:
        raise WrongCall("--prior is for a share of one of two levels. Leave it out.")
    if prior is not None and (by or between is not None):
        what = "by groups" if by else "between two numbers"
        raise WrongCall(f"--prior is for draws from a posterior; a {model} {what} has none. Leave it out.")

    def posterior(n: int, budget: Promise) -> Any:
        return model_for(schema, target, question=model, n=n, budget=budget, prior=prior)

    skips = table is not None and table.skips and prior is None
    without = by or between is not None or options.level is not None or skips
    drawn = None if model not in POSTERIOR or without else posterior
    where = str(getattr(table, "only", "")) if between is not None else ""
    where = f"at {options.level}" if options.level is not None else where
    return Asked(schema, target, model, ColumnQuestion(table if prior is None else None, drawn), by, where)
