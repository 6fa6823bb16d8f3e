"""A case: one mechanism of the project, what it promises, and the data sets it is attacked on.

Everything a case says about the law of a draw is written down again from the formula of the paper, in NumPy; only the
*plan* (promise, weight, β, n) and, for attacks on the program itself, the *draws* come from the library. Where formula
and program disagree, one of them is wrong, and the audit shows it. The planted fault is the same everywhere: the
weight that the promise was calibrated for, times a factor.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onedraw import audit
from onedraw.plans import Plan
from onedraw.privacy import Promise

Array = NDArray[np.float64]
LogDensity = Callable[[Array], Array]
Interval = tuple[float, float]

TOLERANCE = 1e-9
"""Asked of every quadrature."""


@dataclass(frozen=True)
class Pair:
    """Two data sets that differ in one record, in the form in which the model reads them."""

    name: str
    first: Any
    second: Any


@dataclass(frozen=True)
class Case(abc.ABC):
    """A plan, its promise, the pairs, and the laws of a draw on each of them at ``factor`` times the weight."""

    plan: Plan
    pairs: tuple[Pair, ...]
    reason: str
    """Why the promise is attained on these pairs, or why it is not."""
    attained: bool = True
    label: str = ""
    """Tells apart two cases of one model and mechanism."""

    weights: ClassVar[tuple[str, ...]] = ("weight",)
    """The plan's numbers that the fault multiplies."""

    without_draws: ClassVar[str] = ""
    """Why its draws are not attacked, if they are not."""

    @property
    def model(self) -> str:
        name = type(self.plan.model).__name__
        return f"{self.plan.model.name}-loss" if name == "ConvexLoss" else _words(name)

    @property
    def mechanism(self) -> str:
        rule = getattr(self.plan.mechanism, "rule", None)
        return _words(type(self.plan.mechanism).__name__) + (f" {rule}" if rule else "")

    @property
    def name(self) -> str:
        return f"{self.mechanism}, {self.model}" + (f", {self.label}" if self.label else "")

    @property
    def promise(self) -> Promise:
        """What an exact draw of the plan promises."""
        return self.plan.guarantee.promise

    @abc.abstractmethod
    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        """The exact privacy profile of the pair when the weight is multiplied by ``factor``."""

    def replayed(self) -> tuple[str, ...] | None:
        """Where the program departs from its plan when it is run beside the formulas; None where it is not."""
        return None

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity | None:
        """The log density of the program's draw, unnormalised, one row of parameters each; None where not known."""
        return None

    def faulty(self, factor: float) -> Plan:
        """The plan with the planted fault: the same promise, another weight."""
        numbers = dict(self.plan.numbers)
        for name in self.weights:
            numbers[name] *= factor
        return replace(self.plan, numbers=tuple(numbers.items()))


@dataclass(frozen=True)
class DensityCase(Case):
    """A law with a density in one or two dimensions, by quadrature."""

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        first, second = (self.integrand(records, factor) for records in (pair.first, pair.second))
        return audit.exact_profile(first, second, self.domain(pair, factor), tolerance=TOLERANCE)

    @abc.abstractmethod
    def integrand(self, records: Any, factor: float) -> LogDensity:
        """The log density in the coordinates of the quadrature, which need not be those of the draw."""

    @abc.abstractmethod
    def domain(self, pair: Pair, factor: float) -> Any:
        """Where it lives: an interval, or one for each coordinate."""


def _words(name: str) -> str:
    """GaussianMean → gaussian-mean."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


class NormalCase(DensityCase):
    """A draw whose first coordinate is N(mean, variance), with moments that depend on the records; the others say nothing."""

    @abc.abstractmethod
    def moments(self, records: Any, factor: float) -> tuple[float, float]:
        """Mean and variance, with the records ``factor`` times as heavy as planned."""

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        mean, variance = self.moments(records, factor)
        return lambda draws: -((np.asarray(draws).reshape(len(draws), -1)[:, 0] - mean) ** 2) / (2.0 * variance)

    def integrand(self, records: Any, factor: float) -> LogDensity:
        return self.logdensity(records, factor)

    def domain(self, pair: Pair, factor: float) -> Any:
        (first, variance), (second, _) = (self.moments(records, factor) for records in (pair.first, pair.second))
        margin = 14.0 * math.sqrt(variance)
        return ((min(first, second) - margin, max(first, second) + margin),)
