"""AdaSSP and AdaOPS, written down again from Wang (arXiv:1803.02596): what two tables that differ in one record do to
λ₁(XᵀX), XᵀX, Xᵀy and to the posterior.

AdaSSP publishes three Gaussians, so a pair is one distance: (Δλ₁/s₀)² + (‖ΔXᵀX‖/s₁)² + (‖ΔXᵀy‖/s₂)². The promise gives
each of λ₁ and the two sums its own worst pair: for the sums two rows at the angle that is found here by trying all of
them.

AdaOPS is attacked in one dimension, given outcomes of its first stages that a run can have: the lower bound of λ₁ is
sharp, and the ball is so small that slopes hardly grow across it. Then its draw is a normal law cut to an interval, and
one flipped response moves it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.laws import Law, LawCase, Noise, normal_cells, shifted
from onedraw.audit.cases.losses import records_of
from onedraw.audit.cases.staged import EACH_STAGE, Recorded
from onedraw.baselines import AdaOPS, AdaSSP
from onedraw.baselines.ada_ssp import NoisyRegressionSums
from onedraw.methods.catalog import cases_of
from onedraw.models import Gaussian, LeastSquares
from onedraw.plans import Plan
from onedraw.privacy import Promise
from onedraw.samplers.noise import Noise as Drawn

ANGLES, CELLS, REACH = 20_001, 4_001, 12.0

ATTAINED = "each stage meets its own worst pair: λ₁ moves by B², and the sums by all that two rows of length B can"
SHARP = "the bound of λ₁ is sharp, the ball small beside 2Y/B, one response flips; the δ for a missed bound is not used"


class AdaSSPCase(Case):
    """Three Gaussian stages."""

    noises = ("eigenvalue_noise", "squares_noise", "products_noise")
    without_draws = "its program is replayed instead"

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        """Of two normal laws so far apart."""
        return audit.finite_profile(*normal_cells(self.distance(pair, self.numbers(factor)), reach=REACH, cells=CELLS))

    def distance(self, pair: Pair, numbers: dict[str, float]) -> float:
        """In units of the noise."""
        scales = [numbers[name] for name in self.noises]
        moved = self.farthest(scales) if pair.first is None else self.moved(pair)
        return math.hypot(*(one / scale for one, scale in zip(moved, scales, strict=True)))

    def farthest(self, scales: list[float]) -> tuple[float, float, float]:
        """λ₁ by B²; two rows of length B at the worst angle, with responses of Y."""
        reach, bound = longest(self.plan)
        angle = np.linspace(0.0, math.pi, ANGLES)
        x, other = np.array([reach, 0.0]), reach * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        squares = np.linalg.norm(np.outer(x, x) - other[:, :, None] * other[:, None, :], axis=(1, 2))
        products = np.linalg.norm(bound * (x - other), axis=1)
        worst = int(np.argmax((squares / scales[1]) ** 2 + (products / scales[2]) ** 2))
        return reach**2, float(squares[worst]), float(products[worst])

    def moved(self, pair: Pair) -> tuple[float, float, float]:
        """By two tables."""
        (A, b), (C, d) = (self.sums(data) for data in pair)
        least = abs(np.linalg.eigvalsh(A)[0] - np.linalg.eigvalsh(C)[0])
        return float(least), float(np.linalg.norm(A - C)), float(np.linalg.norm(b - d))

    def sums(self, data: Any) -> tuple[Array, Array]:
        X, y = records_of(self.plan.model, data)
        return X.T @ X, X.T @ y

    def replayed(self) -> tuple[str, ...]:
        """Both tables of the last pair through the program, its sums and noises written down."""
        return tuple(found for data in self.pairs[-1] for found in self._departures(data))

    def _departures(self, data: Any) -> list[str]:
        target = self.plan.target(self.plan.model.summarise(data))
        recorded: Any = Recorded(Drawn(np.random.default_rng(0), pure=False))
        NoisyRegressionSums().stages(target, target.sums.whole(target.summary), recorded)
        A, b = self.sums(data)
        expected: list[Any] = [np.linalg.eigvalsh(A)[:1], A[np.tril_indices(len(A))], b]
        found = []
        for name, (seen, _, size, _), sums in zip(self.noises, recorded.sums, expected, strict=True):
            if size != self.plan.parameters[name]:
                found.append(f"{name} is not the plan's")
            if np.abs(seen - sums).max() > 1e-3 * self.plan.n:
                found.append(f"what {name} was added to is not the sum that the plan declares")
        return found


def longest(plan: Plan) -> tuple[float, float]:
    """B and Y, from what was declared."""
    features = plan.model.features
    if features.data_norm is not None:
        square = features.data_norm**2
    else:
        square = sum(max(abs(low), abs(high)) ** 2 for low, high in zip(*features.encoded_ends, strict=True))
    return math.sqrt(square + features.intercept), plan.model.response_bound


def ada_ssp_case(plan: Plan, *, label: str = "") -> AdaSSPCase:
    """Each stage on its own worst pair, and a pair of tables whose last rows are at a right angle where columns allow
    it."""
    features, (_, bound) = plan.model.features, longest(plan)
    count = features.count
    if features.data_norm is not None:
        high = np.full(count, features.data_norm / math.sqrt(count))
        low = -high
    else:
        low, high = (np.array(end) for end in features.ends)
    turned = np.where(np.arange(count) % 2 == 0, high, low)
    others = np.random.default_rng(1).uniform(low, high, (plan.n - 1, count))
    y = np.full(plan.n, bound)
    tables = Pair("one row turned", (np.vstack([others, high]), y), (np.vstack([others, turned]), y))
    return AdaSSPCase(plan, (*EACH_STAGE, tables), ATTAINED, True, label)


class AdaOPSCase(LawCase):
    """One coefficient without an intercept: what each stage says, given the stages before."""

    weights = ("length_mu", "draw_mu")
    noises = ("eigenvalue_noise",)
    without_draws = "its draw depends on two stages before it; it is compared with its law in the tests"

    def law(self, pair: Pair, factor: float = 1.0) -> Law:
        numbers, (reach, bound) = self.numbers(factor), longest(self.plan)
        together = self.plan.n * reach**2
        sensitivity = math.log1p(reach**2 / together)
        size = 2.0 * bound
        moved = math.log((size + reach * 2.0 * reach * bound / together) / size)  # θ̂ from 0 to 2BY/(λ + λ₁)
        shifts = reach**2 / numbers["eigenvalue_noise"], moved / sensitivity * numbers["length_mu"]
        laws = (shifted(shift, Noise(1.0, 1, False)) for shift in shifts)
        return Law.together([*laws, self.draw(together, numbers["draw_mu"])])

    def draw(self, together: float, mu: float) -> Law:
        """∝ exp(−γ/2·(λ + λ₁)θ² + γbθ) on the interval, for b = −BY and b = BY: n − 1 others that balance."""
        (reach, bound), radius = longest(self.plan), self.plan.model.prior.radius
        gamma = mu**2 * together / (reach * (2.0 * bound + reach * radius)) ** 2
        theta = np.linspace(-radius, radius, 2 * CELLS)
        laws = [-0.5 * gamma * together * theta**2 + sign * gamma * reach * bound * theta for sign in (-1.0, 1.0)]
        return Law(*(one - np.logaddexp.reduce(one) for one in laws)).merged(1000)


ada_ops_case = partial(AdaOPSCase, pairs=(Pair("one response flipped", None, None),), reason=SHARP, attained=False)


def ada_ssp_cases(budget: Promise) -> list[Case]:
    """Rows in a box and in a ball."""
    prior = Gaussian(scale=1.0, radius=2.0)
    box = LeastSquares(features=3, bounds=(-1, 1), response_bound=1.0, prior=prior)
    ball = LeastSquares(features=2, data_norm=2.0, response_bound=5.0, prior=prior)
    return cases_of(ada_ssp_case, [("box", AdaSSP(), box), ("ball", AdaSSP(), ball)], budget, n=50)


def ada_ops_cases(budget: Promise) -> list[Case]:
    model = LeastSquares(
        features=1, bounds=(-1, 1), intercept=False, response_bound=1.0, prior=Gaussian(scale=1.0, radius=0.01)
    )
    return cases_of(ada_ops_case, [("", AdaOPS(), model)], budget, n=100_000)
