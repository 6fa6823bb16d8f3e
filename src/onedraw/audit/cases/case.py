"""A case: one mechanism of the project, what it promises, and the data sets it is attacked on.

Everything a case says about the law of a draw is written down again from the formula of the paper, in NumPy; only the
*plan* (promise, weight, β, n) and, for attacks on the program itself, the *draws* come from the library (of a private
chain its *steps*, run for every answer that a secret can give). Where formula and program disagree, one of them is wrong, and
the audit shows it. The planted fault is the same everywhere: records so
many times as heavy as the promise was calibrated for, by a larger weight or by less noise.
"""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onedraw import audit, samplers
from onedraw.arrays import Array
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.plans import Plan
from onedraw.privacy import ApproxDP, Promise, PureDP
from onedraw.samplers.lattice import on_lattice, spacing_for

LogDensity = Callable[[Array], Array]

TOLERANCE = 1e-9
"""Asked of every quadrature."""


@dataclass(frozen=True)
class Pair:
    """Two data sets that differ in one record, in the form in which the model reads them."""

    name: str
    first: Any
    second: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.first, self.second))


@dataclass(frozen=True)
class Case(abc.ABC):
    """A plan, its promise, the pairs, and the laws of a draw on each of them with records ``factor`` times as heavy."""

    plan: Plan
    pairs: tuple[Pair, ...]
    reason: str
    """Why the promise is attained on these pairs, or why it is not."""
    attained: bool = True
    label: str = ""
    """Tells apart two cases of one model and mechanism."""

    weights: ClassVar[tuple[str, ...]] = ("weight", "r")
    """The numbers that the fault multiplies, where the plan has them."""

    noises: ClassVar[tuple[str, ...]] = ()
    """Those that it divides."""

    without_draws: ClassVar[str] = ""
    """Why its draws are not attacked, if they are not."""

    @property
    def model(self) -> str:
        name = type(self.plan.model).__name__
        return f"{self.plan.model.name}-loss" if name == "ConvexLoss" else words(name)

    @property
    def mechanism(self) -> str:
        rule = getattr(self.plan.mechanism, "rule", "")
        name = words(type(self.plan.mechanism).__name__)
        return f"{name} {rule}" if rule and isinstance(rule, str) else name

    @property
    def name(self) -> str:
        return f"{self.mechanism}, {self.model}" + (f", {self.label}" if self.label else "")

    @property
    def key(self) -> str:
        """The mechanism's name as the command line spells it: gibbs-gdp, beta-divergence-optimal."""
        return self.mechanism.replace(" ", "-")

    @property
    def promise(self) -> Promise:
        """What an exact draw of the plan promises."""
        return self.plan.guarantee.promise

    @property
    def delta(self) -> float:
        """The δ at which promise and lower bound are compared: 0 of a pure one, its own, or the one asked for."""
        if self.promise.pure_epsilon < math.inf:
            return 0.0
        stated = self.promise if isinstance(self.promise, ApproxDP) else self.plan.request.budget
        return stated.quoted_delta

    @property
    def orders(self) -> tuple[float, float]:
        """At which a Rényi promise is compared: that of the plan, and one nearer to 1."""
        order = self.plan.parameters.get("order")
        return (2.0, 8.0) if order is None else (order, 1.0 + (order - 1.0) / 2.0)

    def sampler(self, plan: Plan) -> Any:
        """What the draws of its plan, or of a faulty one, are made with; None where no proven one exists."""
        return sampler_for(plan)

    def draws(self, plan: Plan, records: Any, sampler: Any, *, size: int, seed: int) -> Array:
        """Return ``size`` independent draws of the program by the numbers of a plan, which may be faulty ones."""
        return program_draws(plan, records, sampler, size=size, seed=seed)

    @abc.abstractmethod
    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        """The exact privacy profile of the pair with records ``factor`` times as heavy."""

    def replayed(self) -> tuple[str, ...] | None:
        """Where the program departs from its plan when it is run beside the formulas; None where it is not."""
        return None

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity | None:
        """The log density of the program's draw, unnormalised, one row of parameters each; None where not known."""
        return None

    def weight(self, factor: float) -> float:
        """That of a record, with the fault in it: w, or r of a conjugate family."""
        numbers = self.numbers(factor)
        return numbers["weight"] if "weight" in numbers else numbers["r"]

    def numbers(self, factor: float = 1.0) -> dict[str, float]:
        """The numbers that run, with the planted fault in them."""
        times = {**dict.fromkeys(self.weights, factor), **dict.fromkeys(self.noises, 1.0 / factor)}
        return {name: value * times.get(name, 1.0) for name, value in self.planned.items()}

    @property
    def planned(self) -> dict[str, float]:
        """The numbers that run without it: the plan's."""
        return dict(self.plan.parameters)

    def faulty(self, factor: float) -> Plan:
        """The plan with the planted fault: the same promise, other numbers."""
        numbers = self.numbers(factor)
        return replace(self.plan, numbers=tuple((name, numbers[name]) for name, _ in self.plan.numbers))


class FiniteCase(Case):
    """A law with finitely many outcomes, by summation."""

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        return audit.finite_profile(*(self.law(records, factor) for records in pair))

    @abc.abstractmethod
    def law(self, records: Any, factor: float = 1.0) -> Array:
        """The probabilities of the outcomes."""


class DensityCase(Case):
    """A law with a density in one or two dimensions, by quadrature."""

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        first, second = (self.integrand(records, factor) for records in pair)
        return audit.exact_profile(first, second, self.domain(pair, factor), tolerance=TOLERANCE)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        """The log density in the coordinates of the quadrature, which need not be those of the draw."""
        density = self.logdensity(records, factor)
        assert density is not None
        return density

    @abc.abstractmethod
    def domain(self, pair: Pair, factor: float) -> Any:
        """Where it lives: an interval, or one for each coordinate."""


class NormalCase(DensityCase):
    """A draw whose first coordinate is N(mean, variance), both of the records; the others say nothing."""

    @abc.abstractmethod
    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        """Mean and variance, with the records ``factor`` times as heavy as planned."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        mean, variance = self.moments(records, factor)
        return lambda draws: -((np.asarray(draws).reshape(len(draws), -1)[:, 0] - mean) ** 2) / (2.0 * variance)

    def domain(self, pair: Pair, factor: float) -> Any:
        (first, variance), (second, _) = (self.moments(records, factor) for records in pair)
        margin = 14.0 * math.sqrt(variance)
        return ((min(first, second) - margin, max(first, second) + margin),)


def sampler_for(plan: Plan) -> Any:
    """The sampler a release would choose; None where no proven one exists."""
    try:
        return samplers.default_sampler(plan)[0]
    except ExactnessRefused:
        return None


def program_draws(plan: Plan, records: Any, sampler: Any, *, size: int, seed: int) -> Array:
    """``size`` independent draws (size, d), rounded to the lattice as a release would."""
    target = plan.target(plan.model.summarise(records))
    source = samplers.seeded_key(seed) if sampler.randomness == "jax" else samplers.seeded_generator(seed)
    sample = sampler.run(target, source, size=size)
    return on_lattice(sample, spacing_for(plan, sampler, None)).reshape(size, -1)


def no_formula(known: str, model: Any) -> WrongCall:
    """What is said where nobody has written down what a plan publishes on a worst pair of tables."""
    return WrongCall(
        f"The audit has formulas for {known} {type(model).__name__}, so it cannot attack that. Attack its draws with "
        "onedraw.audit.blackbox_lower_bound, or your own density with onedraw.audit.exact_profile."
    )


def words(name: str) -> str:
    """GaussianMean → gaussian-mean, DPSGD → dpsgd."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower()


def pure(budget: Promise) -> PureDP:
    """The pure part of a budget, for mechanisms that need no δ."""
    return PureDP(budget.allows(PureDP))
