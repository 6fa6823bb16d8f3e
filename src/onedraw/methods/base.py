"""What every method answers: how it is calibrated, what runs, what its numbers say, and what error to expect.

A `Mechanism` is a theorem that makes a draw private. Releases, plans, reports, estimators and the command line ask it, and
know none by name: a mechanism of another package is asked in the same way.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

from onedraw.arrays import Array
from onedraw.errors import CertificateRejected, OnedrawError, UnsupportedBudget, WrongCall
from onedraw.models import ConjugateModel, Model
from onedraw.plans import Plan, Request
from onedraw.privacy import ApproxDP, Promise, PureDP
from onedraw.privacy.numbers import at_most_stated
from onedraw.privacy.stored import Stored

from .expectation import Expectation
from .intervals import Interval, Published, Spread

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.comparisons import GroupTest, Scores
    from onedraw.models.moments.result import MomentsResult
    from onedraw.models.normal_estimates import NormalEstimates


AuditCases: TypeAlias = "Mapping[str, Callable[[Promise], list[Case]]]"
"""Functions that make audit cases under a budget, by the word for a model."""


class Posterior(Protocol):
    """A whole law of the released quantity that follows from published numbers alone: any number of draws, for
    nothing."""

    @property
    def mean(self) -> Any:
        """(parameters,), in the model's own coordinates, like all that follows."""

    @property
    def errors(self) -> tuple[Any, Any]:
        """(sampling, privacy): its standard deviation without the noise, and what the noise adds."""

    @property
    def too_narrow(self) -> str:
        """Why its intervals are not to be relied on, in words; empty where they are."""

    def draw(self, size: int, generator: Any) -> Any:
        """(size, parameters)."""

    def interval(self, level: float, change: Any = None) -> Any:
        """(parameters, 2): quantiles; of ``change @ parameters`` where that is given."""


class Mechanism(Stored, key="name", noun="mechanism", refuses=CertificateRejected):
    """A theorem that makes a draw private. A frozen value; its fields are its options."""

    title: ClassVar[str]
    noun: ClassVar[str] = "draw"
    """What a certificate's first line calls it: this draw, this fit, this estimate."""
    requires: ClassVar[str] = "exact"
    """The least exactness a sampler must have; the release decides what less would cost."""
    whole_sums: ClassVar[bool] = False
    """Whether records enter by sums of whole numbers alone, whatever the model."""
    no_interval: ClassVar[str] = ""
    """Why its releases have no intervals, as the rest of a sentence; empty where draws decide or a fit says it."""
    publishes_fit: ClassVar[bool] = False
    """Whether a release has coefficients with standard errors, tests and intervals of predictions (`fit_of`)."""
    publishes_moments: ClassVar[bool] = False
    """Whether a release has means and correlations with errors (`moments_of`)."""
    publishes_picks: bool = False
    """Whether several numbers that are published together are picks of one selection, and no independent draws."""
    replicates: ClassVar[bool] = False
    """Whether draws are ends of paths from the prior's location, several of which give an interval where the paths are long enough."""
    needs_chain: bool = False
    """Whether only a chain draws from it that nobody has proven to converge."""
    for_pure_budgets: ClassVar[bool] = False
    """Whether it is there for a pure ε, and another mechanism answers the same question where a δ is allowed."""
    categories: tuple[tuple[int, int], ...] = ()
    """(start, stop) of 0/1 columns that code one category, of a mechanism that is told."""
    skips: ClassVar[bool] = False
    """Whether its proof lets a record contribute nothing: the number of records that contribute is then private."""
    as_published: bool = False
    """Of a mechanism with such an option: a published calibration where it is not true. A plan that keeps its promise anyway is made
    without it."""

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_dict``. What `methods` does not define is looked for under the entry points
        "onedraw.mechanisms" of the installed packages: `onedraw.baselines`, and those of other people."""
        name = stored.get("name") if isinstance(stored, Mapping) else None
        if isinstance(name, str) and name not in cls.members():
            for found in entry_points(group="onedraw.mechanisms", name=name):
                found.load()
        return super().from_dict(stored)

    @abc.abstractmethod
    def calibrate(self, request: Request) -> Plan:
        """The plan with the most weight on the records that the budget allows."""

    @abc.abstractmethod
    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        """The plan with given calibrated numbers; refused if its promise does not imply the budget."""

    @abc.abstractmethod
    def target(self, plan: Plan, summary: Any) -> Any:
        """The `Target` to draw from, given the records' summary."""

    @property
    def by_person(self) -> bool:
        """Whether something is added up by person, so that records must say whose they are."""
        return False

    @property
    def proven(self) -> bool:
        """Whether the promise follows from a theorem that is true; if not, a release must say so first."""
        return not self.as_published

    def default_gamma(self, model: Any, budget: Promise) -> float:
        """The reserve kept back when the caller names none: 0 where the draw is exact or pays for itself."""
        return 0.0

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        """How many numbers each stage publishes; empty where a draw is all there is."""
        return {}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        """Of a release in stages: the estimate that follows from what was published, for encoded rows."""
        raise NotImplementedError(f"{self.title} does not publish in stages")

    def posterior(self, plan: Plan, stages: Mapping[str, Any]) -> Posterior | None:
        """Of a release in stages: the posterior that follows from what was published; None where a mechanism gives
        none."""
        return None

    def note(self, plan: Plan, stages: Mapping[str, Any]) -> str:
        """Return what to know about the numbers, from published ones alone; empty if there is nothing to say."""
        return ""

    def missing_of(self, plan: Plan, stages: Mapping[str, Any]) -> NoisyCount | None:
        """Return the noisy number of missing cells that was released beside; None where missing cells are not skipped."""
        return None

    def missing_words(self, plan: Plan) -> str:
        """Return what is counted by `missing_of`, after "About 12 of 100"."""
        return "cells are missing"

    def without_estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Array | None:
        """Return which released numbers are no estimates, because too few cells are known, as far as noise tells; None for none."""
        return None

    def heading(self, plan: Plan) -> str:
        """What a certificate calls the draw; the plan's numbers may be part of it."""
        return self.title

    def sums_exactly(self, plan: Plan) -> bool:
        """Whether all that is asked of the records is sums of whole numbers, which no rounding can change."""
        return self.whole_sums or isinstance(plan.model, ConjugateModel)

    def draw_shares(self, plan: Plan) -> list[float] | None:
        """How much each draw counts in the mean of all; None: alike."""
        return None

    def own_sampler(self) -> Any:
        """Return the sampler class of a plan that is an algorithm of its own; None for a law that any sampler may draw from."""
        return None

    def closed_form(self, model: Any) -> bool:
        """Whether `target` gives a closed-form law, drawn exactly, or one that an algorithm or a chain draws from."""
        return False

    # What the published numbers say. All of it is post-processing.

    def interval(
        self, plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
    ) -> Interval:
        """Return the interval of each published number, in the units of the columns; raise `PromiseRefused` with the reason.

        Parameters
        ----------
        effect, noise : float, optional
            Standard deviations of a regression's linear predictor and of a response about it, as for `expected_error`; of a mean
            with plain noise ``noise`` is the records' standard deviation, where it is publicly known.
        """
        from .draws.replicated import interval_of_draws

        return interval_of_draws(plan, published, level, effect=effect, noise=noise)

    def why_no_interval(self, plan: Plan) -> str | None:
        """Return why a release by this plan has no interval, as far as the method alone says; None if nothing forbids it."""
        return self.no_interval or None

    def fit_of(self, plan: Plan, published: Published) -> NormalEstimates | None:
        """Return coefficients with standard errors, in the units of the columns; None unless `publishes_fit`."""
        return None

    def moments_of(self, plan: Plan, published: Published) -> MomentsResult | None:
        """Return means and correlations with errors, in the units of the columns; None unless `publishes_moments`."""
        return None

    def inter_quartile_range(
        self, plan: Plan, values: Sequence[float], stages: Mapping[str, Any] | None
    ) -> Spread | None:
        """Return the inter-quartile range that follows from released quantiles; None where it does not follow."""
        return None

    def second_moments(self, plan: Plan, stages: Mapping[str, Any]) -> SecondMoments | None:
        """Return the columns' second moments that were published on the way to something else; None if there are none."""
        return None

    def diffusion_time(self, plan: Plan) -> float | None:
        """Return for how long a draw follows the diffusion from the prior's location; None for a draw of another kind."""
        return None

    def pick_shares(self, plan: Plan) -> list[float] | None:
        """Return how much each pick counts in the weighted mean that a draw is; None for a draw of another kind."""
        return None

    def scores(self, plan: Plan, published: Published) -> Scores | None:
        """Return by what groups are compared; None for a release without groups, or one that gives no comparison."""
        return None

    def independence(self, plan: Plan, published: Published) -> GroupTest | None:
        """Return the test that a cross table's rows and columns are independent; None for a release of another kind."""
        return None

    # What to say of a plan.

    def expected_error(self, plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
        """Return what error to expect of the released numbers, from public numbers alone.

        Parameters
        ----------
        effect, noise : float, optional
            Standard deviations of a regression's linear predictor and of a response about it; by default those that the
            mechanism declares, or the usual ones.
        """
        from .draws.expected import expected_error_of_draws

        return expected_error_of_draws(plan, effect=effect, noise=noise)

    def estimand(self, plan: Plan, target: str | None = None) -> str:
        """Return what a release estimates about this column, in words; empty for a draw from a posterior."""
        return ""

    def estimand_note(self, plan: Plan) -> str:
        """Return what to know about the estimand before a release."""
        return ""

    def effects_note(self, plan: Plan) -> str:
        """Return what naming effects of interest does to the noise; empty if none are named."""
        return ""

    @property
    def measures_columns_first(self) -> bool:
        """Whether it draws in coordinates that it may measure first."""
        return False

    def measures_columns(self, plan: Plan) -> bool:
        """Return whether the plan spends a share on the columns' moments before anything else."""
        return False

    # How to attack it.

    def audit_case(self, plan: Plan) -> Case | None:
        """Return how the audit attacks a plan: the pair of tables on which its promise is attained, and which law a release has on
        each of them. None if nobody has written that down."""
        return None

    @classmethod
    def audit_cases(cls) -> AuditCases:
        """Return the functions that make cases of this mechanism under a budget, by the word for a model.

        The method's own `audit` module has them. It is loaded by an audit alone, and shares no code with the method (pyproject.toml).
        """
        return {}


REMEDY_OF_SKIP = (
    "Declare what a missing cell becomes, in the schema `missing: 55` or a declared level, in Python missing= (missing='middle' for a "
    "regression or covariances by bounds); or use a method that skips missing cells, such as a fit (delta above 0)."
)


@dataclass(frozen=True, eq=False)
class NoisyCount:
    """A number of records with noise of a known law, and its interval by that law."""

    value: float
    reach: Callable[[float], float]
    """How far an interval of a level reaches to each side."""
    of: float
    """Public number of records that it cannot exceed."""

    def interval(self, level: float) -> tuple[int, int]:
        """Return the whole numbers within the interval, and within what the number can be."""
        reach = self.reach(level)
        low, high = (min(max(end, 0.0), self.of) for end in (self.value - reach, self.value + reach))
        return math.floor(low), math.ceil(high)

    @property
    def shown(self) -> int:
        """Return the nearest number that there can be."""
        return round(min(max(self.value, 0.0), self.of))

    def words(self, what: str, level: float = 0.95) -> str:
        """Return a sentence about it."""
        low, high = self.interval(level)
        return f"About {self.shown:,} ({low:,} to {high:,}, {100 * level:g} % interval for the noise) of {self.of:,.0f} {what}."


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """Noisy second moments of columns, in coordinates of which only their ratios count."""

    columns: int
    """How many of the columns come first; the response follows if it was measured."""
    response: bool
    second: Array
    noise: float
    """Deviation of the noise on the diagonal."""
    pure: bool


def calibrate(
    mechanism: Mechanism,
    model: Model,
    budget: Promise,
    *,
    n: int,
    draws: int = 1,
    gamma: float | None = None,
    records_per_person: int = 1,
) -> Plan:
    """The plan that gives the records the most weight under ``budget``. There is no data argument.

    **Guarantee.** ``plan.guarantee.promise`` holds for all ``draws`` together, for a person with up to
    ``records_per_person`` records, and implies ``budget`` with the reserve ``gamma`` taken off its δ.

    | argument | meaning |
    | --- | --- |
    | budget | a promise; which kinds are possible depends on mechanism and model |
    | n | the public number of records, at least 1 |
    | gamma | total variation kept back for a sampler that is not exact; None: what the mechanism needs for its own |
    """
    given: object = mechanism
    if not isinstance(given, Mechanism):
        name = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise WrongCall(
            f"calibrate needs a mechanism such as Diffused(), brackets included, not {name}. The mechanism is the "
            "theorem that makes the draw private."
        )
    check_contributions(mechanism, model)
    reserve = mechanism.default_gamma(model, budget) if gamma is None else gamma
    return within_decimal(mechanism.calibrate(Request(model, budget, n, draws, reserve, records_per_person)))


def check_contributions(mechanism: Mechanism, model: Model) -> None:
    """Refuse a mechanism that has to know how many records contribute, where that is private."""
    if (
        getattr(model, "skips", False) and not mechanism.skips
    ):  # what is no model is refused by `calibrate` of the mechanism
        raise UnsupportedBudget(
            f"{mechanism.title} has to know how many records contribute, and here a record with a missing cell contributes nothing: how many "
            f"do is private. {REMEDY_OF_SKIP}"
        )


def within_decimal(plan: Plan) -> Plan:
    """Return a plan whose ε is at most the decimal by which that of its budget is written, or the plan itself.

    The float 0.2 is a little more than 1/5, so five promises of it are more than 1. A plan that would promise all of it is made for the
    largest float below, about 2^−53 less: charges then add up as the decimals do. Where a mechanism's numbers follow from the
    budget itself there is no such plan.
    """
    budget = plan.budget
    if not isinstance(budget, PureDP | ApproxDP) or plan.guarantee.promise.pure_epsilon != budget.stated_epsilon:
        return plan
    least = at_most_stated(budget.stated_epsilon)
    if least == budget.stated_epsilon:
        return plan
    less = PureDP(least) if isinstance(budget, PureDP) else ApproxDP(least, budget.stated_delta)
    try:
        made = plan.mechanism.calibrate(replace(plan.request, budget=less))
        found: Plan = made.mechanism.plan(plan.request, dict(made.parameters))
    except OnedrawError:
        return plan
    return found
