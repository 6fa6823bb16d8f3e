"""The options of a question, each spelled once: its name, its default, what it is for and the words beside it.

`onedraw plan` and `onedraw release` read their options off `Options`, `onedraw.plan` takes them by the same names, and a `Regression`
is a `RegressionOptions` with its columns. Nothing here loads a number library: the command line shows its help from this file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from onedraw.errors import InvalidModel, WrongCall

QUESTIONS = ("proportion", "histogram", "count", "mean", "sum", "variance", "rate", "duration", "median", "quantiles")
"""About one column."""

POSTERIOR = ("proportion", "histogram", "mean", "rate", "duration")
"""Questions that a conjugate posterior answers; all but the last are answered by a table too."""

RANKS = ("median", "quantiles")
"""Answered by selection."""

CONDITIONS = ("count", "proportion")
"""Questions that can be about a public condition on a number."""

GROUPED = ("count", "histogram", "proportion", "mean", "sum", "variance", "rate")

CLASSIFICATIONS = ("logistic", "softmax", "svc", "network-classifier")
RESIDUALS = ("linear", "huber", "quantile", "network-regressor")
"""Regressions of a number, which is measured in units of its noise."""
COUNTS, NETWORKS = ("poisson", "negative-binomial"), ("network-classifier", "network-regressor")
CONVEX = ("logistic", "softmax", "svc", "linear", "huber", "quantile")
KINDS = (*CONVEX, *COUNTS, *NETWORKS)

ESTIMANDS = {
    "linear": ("least-squares", "robust"), "quantile": ("quantile", "robust"), "poisson": ("maximum-likelihood", "robust"),
    "logistic": ("maximum-likelihood", "robust"), "softmax": ("maximum-likelihood", "robust"),
}  # fmt: skip
"""What a fit can be asked to estimate, by the kind of regression."""

ALIASES = {"multiclass": "softmax", "multinomial": "softmax", "ridge": "linear"}

MODELS = (
    f"What to release: {', '.join(KINDS)}; or of one column: {', '.join(QUESTIONS)}; or covariance: means, deviations and "
    "correlations of several."
)


def option(
    default: Any, words: str, *, of: Collection[str], metavar: str | None = None, list_of: str = "", flag: str | None = None,
    power: int = 0,
) -> Any:  # fmt: skip
    """A field with its ``words``, the models it is ``of``, an example where it is a list, and the ``power`` of the response's unit
    in which it is declared."""
    return field(
        default=default,
        metadata={"words": words, "of": of, "metavar": metavar, "list_of": list_of, "flag": flag, "power": power},
    )


@dataclass(frozen=True, kw_only=True)
class RegressionOptions:
    """What may be said about a regression besides its columns; None: the public default that `regression` states."""

    prior_scale: float | None = option(
        None, "The prior's standard deviation, for columns scaled to [-1, 1].", of=KINDS, power=1
    )
    radius: float | None = option(
        None, "Maximum norm of the coefficients, for mechanisms that need one.", of=CONVEX, power=1
    )
    response_bound: Any = option(  # noqa: RUF009
        None, "Responses are clamped to it (one number Y: to -Y,Y). Default: the target's declared range.", of=RESIDUALS,
        metavar="LOW,HIGH", list_of="0,100",
    )  # fmt: skip
    variance_floor: float | None = option(
        None, "Least residual variance; offers the β-divergence posterior.", of=("linear", "network-regressor"), power=2
    )
    threshold: float | None = option(
        None, "Huber's: residuals beyond it count linearly.", of=("linear", "huber"), power=1
    )
    quantile: float | None = option(None, "Which quantile; 0.5, the median, by default.", of=("quantile",))
    dispersion: float | None = option(
        None, "Of negative-binomial: counts of mean m have the variance m + m²/dispersion.", of=("negative-binomial",)
    )
    robust: bool = option(
        False, "Standard errors of a fit that hold where the model does not, at some cost of width.",
        of=("logistic", "softmax", "svc", "linear", "quantile", "poisson"),
    )  # fmt: skip
    estimand: str | None = option(
        None, "What a fit must estimate: least-squares, maximum-likelihood, quantile, or robust (records far out count less). "
        "Default: robust only under a pure ε.", of=tuple(ESTIMANDS),
    )  # fmt: skip
    effects: Sequence[str] | None = option(
        None, "Columns whose effects are of interest: the noise is smaller along them, and larger along others.",
        of=("linear", "quantile", "poisson", "logistic"), metavar="COLUMN,…", list_of="treated,age",
    )  # fmt: skip
    hidden: int | None = option(None, "Hidden units of a network; 10 by default.", of=NETWORKS)
    effect: float | None = option(
        None, "Expected standard deviation of the linear predictor; bears on accuracy only.", of=KINDS, power=1
    )
    noise: float | None = option(
        None, "Expected standard deviation of a response about it; bears on accuracy only.", of=RESIDUALS, power=1
    )


@dataclass(frozen=True, kw_only=True)
class Options(RegressionOptions):
    """All that may be said about a question besides its columns."""

    formula: str | None = option(
        None, "The terms of a regression: 'healed ~ age + C(ward)*treated'. Default: all other columns.", of=KINDS
    )
    columns: Sequence[str] | None = option(
        None, "Columns of a regression or covariance. Default: all others, all numbers.", of=(*KINDS, "covariance"),
        metavar="A,B,…", list_of="age,weight",
    )  # fmt: skip
    prior: Sequence[float] | None = option(
        None, "Of one column: the public prior's numbers, comma-separated.", of=POSTERIOR, list_of="1,1"
    )
    by: Sequence[str] = option(
        (), "Of one column: within the groups of one or two categories.", of=GROUPED, metavar="COLUMN[,COLUMN]",
        list_of="sex,ward",
    )  # fmt: skip
    level: str | None = option(None, "Of a count: the level that is counted.", of=("count",))
    between: Sequence[float] | None = option(
        None, "Of a count or proportion of a number: who is counted, the ends too; inf is an open end.", of=CONDITIONS,
        metavar="LOW,HIGH", list_of="18,30",
    )  # fmt: skip
    quantiles: Sequence[float] | None = option(
        None, "Of one column: which quantiles, such as 0.25,0.5,0.75 (the default).", of=RANKS, list_of="0.25,0.5,0.75"
    )
    interval: bool = option(
        True, "Of quantiles: whether part of the budget goes to intervals, or all of it to them.", of=RANKS,
        flag="--interval/--no-interval",
    )  # fmt: skip

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> Options:
        """From names and values; None is the default."""
        unknown = sorted(given.keys() - {one.name for one in fields(cls)})
        if unknown:
            known = ", ".join(one.name for one in fields(cls))
            raise WrongCall(f"No option of a question is called {unknown[0]!r}. There are: {known}.")
        return cls(**{name: value for name, value in given.items() if value is not None})


def given(options: Any) -> Iterator[tuple[Field[Any], Any]]:
    """Each option that is not left at its default, with its value."""
    for one in fields(options):
        value = getattr(options, one.name)
        if "of" in one.metadata and not (value is None or (one.default is not MISSING and value == one.default)):
            yield one, value


def check_belongs(options: RegressionOptions, model: str) -> None:
    """An option that would do nothing is a mistake, and is refused."""
    for one, _ in given(options):
        if model not in one.metadata["of"]:
            flag = "--no-interval" if one.name == "interval" else f"--{one.name.replace('_', '-')}"
            remedy = "Pass --prior-scale" if one.name == "prior" and model in KINDS else "Leave it out"
            raise InvalidModel(
                f"{flag} does not belong to a {model}{' regression' if model in KINDS else ''} and would do nothing; it is for "
                f"{', '.join(one.metadata['of'])}. {remedy}."
            )
