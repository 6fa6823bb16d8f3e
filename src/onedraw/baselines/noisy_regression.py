"""The posterior of a linear regression given noisy sums of products (Bernstein, Sheldon, NeurIPS 2019,
arXiv:1910.13153).

y ~ N(θᵀx, σ²), θ | σ² ~ N(0, scale²σ²I), σ² ~ InvGamma(shape, rate) above a floor, and rows x that are normal with an
unknown mean and covariance, of which no more is believed than a public standard deviation. The paper's sampler
("Gibbs-SS-Update") goes around θ, σ², the rows' moments and the true sums G, whose law it takes for normal. Here
everything but G is integrated out, in closed form, with the exact law of G (Wishart for the rows; given these, normal
and χ² for the responses):

    p(G) ∝ |S|^{(n−d−2)/2} |Ψ + S + …|^{−(ν+n)/2}                                          the rows
           · |A|^{−½} RSS^{(n−p)/2−1} |Λ + A|^{−½} b(G)^{−(a+n/2)} · P(σ² ≥ floor | G),      the responses

A = XᵀX, S the same about the mean. What is left is p(G | z) ∝ p(G)·noise(z − G): Gaussian noise as it is, Laplace
noise as a normal law whose variance is drawn again at every step (Park, Casella 2008, as in the paper). Each step is
elliptical slice sampling (Murray, Adams, MacKay 2010), which needs no tuning; θ and σ² are then drawn exactly, given
G. Determinants are products of pivots, for thousands of data sets at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.plans import Plan

from .noisy_products import ProductSums
from .noisy_totals import SumNoise
from .sufficient_statistics import tails

CHAINS, WARM_UP, BETWEEN = 1024, 150, 3
"""Side by side for one data set; steps before the first draw is kept, and between two of them."""

KEPT, SEED = 8192, 20191013
"""Draws that means and intervals are read off, and where they begin: the same of the same release."""

MOST_SHRINKS = 100
BELIEVED = 1.0
"""κ: the rows' mean is believed as if so many records had been seen in the middle of their range."""


@dataclass(frozen=True, eq=False)
class Regression:
    """All that is public of it, in units of the bounds: entries of w and the response lie in [−1, 1]."""

    n: int
    sums: ProductSums
    noise: SumNoise
    precision: Array
    """Λ: of the coefficients over σ², the intercept first."""
    shape: float
    rate: float
    floor: float
    row_deviation: float
    units: Array
    """What coefficients in these units are multiplied by, in the model's order, and the variance last."""

    @classmethod
    def of(cls, plan: Plan, sums: ProductSums, row_deviation: float) -> Regression:
        model, (*columns, response) = plan.model, sums.statistic.divisors
        prior, order = model.prior, sums.order[:-1]
        precision = 1.0 / (prior.scale * np.array(columns)[order]) ** 2
        units = np.append(response / np.array(columns), response**2)
        return cls(
            plan.n, sums, SumNoise.of(plan, float(sums.unit)), precision, prior.shape, prior.rate / response**2,
            model.variance_floor / response**2, row_deviation, units,
        )  # fmt: skip

    @property
    def with_intercept(self) -> bool:
        return self.sums.statistic.corner is not None

    @property
    def coefficients(self) -> int:
        return len(self.precision)

    # ── the law of the true sums ──

    def log_law(self, sums: Array) -> Array:
        """log p(G) of each row of sums, up to a constant; −∞ where no records have them."""
        n, p, first = self.n, self.coefficients, int(self.with_intercept)
        d, matrices = p - first, self.sums.matrices(sums, n)
        own, updated, of_rows = (
            pivots(one) for one in (matrices, self._updated(matrices), self._rows_updated(matrices))
        )
        possible = (own > 0.0).all(axis=0) & (updated > 0.0).all(axis=0) & (of_rows > 0.0).all(axis=0)
        own, updated, of_rows = (np.log(np.where(possible, one, 1.0)) for one in (own, updated, of_rows))
        spread, shape, log_rate = own[first:p].sum(axis=0), self.shape + 0.5 * n, updated[-1] - math.log(2.0)
        of_moments = 0.5 * (n - d - 1 - first) * spread - 0.5 * (d + 2 + n) * of_rows[first:].sum(axis=0)
        of_responses = (
            (0.5 * (n - p) - 1.0) * own[-1] - 0.5 * spread - 0.5 * updated[:-1].sum(axis=0) - shape * log_rate
        )
        found = of_moments + of_responses + self._log_above_floor(shape, np.exp(log_rate))
        return np.where(possible, found, -np.inf)

    def _log_above_floor(self, shape: float, rate: Array) -> Array:
        """log P(σ² ≥ floor | G), where that is not 0 to all digits."""
        found, most = np.zeros(rate.shape), rate / self.floor
        near = most < shape + 12.0 * math.sqrt(shape) + 60.0
        with np.errstate(divide="ignore"):
            found[near] = np.log(special.gammainc(shape, most[near]))
        return found

    def _updated(self, matrices: Array) -> Array:
        """The products with the prior's beside: elimination gives the pivots of Λ + A, and 2b(G) last."""
        return _on_diagonal(matrices, np.append(self.precision, 2.0 * self.rate))

    def _rows_updated(self, matrices: Array) -> Array:
        """The rows' products with what is believed of them: κ records in the middle, and a covariance worth d + 2."""
        believed = np.full(self.coefficients, self.row_deviation**2)
        if self.with_intercept:
            believed[0] = BELIEVED
        return _on_diagonal(matrices[:-1, :-1], believed)

    # ── factors of the true sums ──

    def to_factors(self, sums: Array) -> Array:
        """(…, as many): L below its diagonal and the logarithms of D's pivots, of G = L·D·Lᵀ."""
        diagonal, lower = factored(self.sums.matrices(sums, self.n))
        return np.moveaxis(np.concatenate([lower[self._below], np.log(diagonal[self.with_intercept :])]), 0, -1)

    def from_factors(self, factors: Array) -> tuple[Array, Array]:
        """(sums, log of how much room a step of factors takes up among sums)."""
        size, below, moved = self.coefficients + 1, self._below, np.moveaxis(factors, -1, 0)
        lower = np.zeros((size, size, *factors.shape[:-1]))
        lower[below], lower[range(size), range(size)] = moved[: len(below[0])], 1.0
        logs = np.full((size, *factors.shape[:-1]), math.log(self.n))
        logs[self.with_intercept :] = np.clip(moved[len(below[0]) :], -300.0, 300.0)
        matrices = np.zeros(lower.shape)
        for k, pivot in enumerate(np.exp(logs)):
            matrices[k:, k:] += (pivot * lower[k:, k])[:, None] * lower[None, k:, k]
        return self.sums.entries_of(matrices), np.tensordot(np.arange(size, 0.0, -1.0), logs, 1)

    @property
    def _below(self) -> tuple[Any, Any]:
        return np.tril_indices(self.coefficients + 1, -1)

    @cached_property
    def believed_factors(self) -> tuple[Array, Array]:
        """(centre, deviation) about what factors are before anything is known: only how quickly chains mix depends on
        it."""
        size, variance = self.coefficients + 1, self.rate / self.shape
        rows, columns = self._below
        slopes = np.sqrt(variance * (1.0 / self.precision + 1.0 / self.n))
        spread = np.where(
            rows == size - 1, slopes[columns], np.where((columns == 0) & self.with_intercept, self.row_deviation, 0.7)
        )
        pivots = np.full(size - self.with_intercept, math.log(self.n * self.row_deviation**2))
        pivots[-1] = math.log(self.n * variance)
        own = np.append(np.full(len(pivots) - 1, 1.5), 1.5 * math.sqrt(1.0 / self.shape + 2.0 / self.n))
        return np.append(np.zeros(len(rows)), pivots), np.append(1.5 * spread, own)

    # ── from sums to parameters ──

    def drawn_parameters(self, sums: Array, generator: Any) -> Array:
        """(…, coefficients and variance) in the model's own units and order: exact draws given the true sums."""
        matrices = self.sums.matrices(sums, self.n)
        shape, rate = self.shape + 0.5 * self.n, 0.5 * pivots(self._updated(matrices))[-1]
        inside = special.gammainc(shape, rate / self.floor) * (1.0 - generator.random(rate.shape))
        variance = np.maximum(rate / np.maximum(special.gammaincinv(shape, inside), 1e-300), self.floor)
        matrices = np.moveaxis(matrices, (0, 1), (-2, -1))
        precision = matrices[..., :-1, :-1] + np.diag(self.precision)
        centre = np.linalg.solve(precision, matrices[..., :-1, -1:])
        root = np.swapaxes(np.linalg.cholesky(precision), -1, -2)
        normal = generator.standard_normal((*sums.shape[:-1], self.coefficients, 1))
        theta = (centre + np.sqrt(variance)[..., None, None] * np.linalg.solve(root, normal))[..., 0]
        return self._in_order(theta, variance)

    def _in_order(self, theta: Array, variance: Array) -> Array:
        back = np.argsort(self.sums.order[:-1])
        return np.asarray(np.concatenate([theta[..., back], variance[..., None]], axis=-1) * self.units)

    def likely(self, noisy: Array) -> Array:
        """Sums that records could have had, near to the noisy ones: no direction has less than the noise's spectral
        edge."""
        matrices = np.moveaxis(self.sums.matrices(noisy, self.n), (0, 1), (-2, -1))
        edge = min(self.noise.deviation * math.sqrt(matrices.shape[-1]), 0.1 * self.n) + 1e-6 * self.n
        values, vectors = np.linalg.eigh(matrices)
        raised = vectors * np.maximum(values, edge)[..., None, :] @ np.swapaxes(vectors, -1, -2)
        if self.with_intercept:  # the corner is n again, and the matrix still positive
            factor = np.ones((*raised.shape[:-2], raised.shape[-1]))
            factor[..., 0] = np.sqrt(self.n / raised[..., 0, 0])
            raised = raised * factor[..., :, None] * factor[..., None, :]
        return self.sums.entries_of(np.moveaxis(raised, (-2, -1), (0, 1)))

    def plug_in(self, noisy: Array) -> tuple[Array, Array]:
        """(mean, deviation) of the posterior if `likely` sums were the true ones: a plain function of what was
        published."""
        matrices = self.sums.matrices(self.likely(noisy), self.n)
        shape, rate = self.shape + 0.5 * self.n, float(0.5 * pivots(self._updated(matrices))[-1])
        inverse = np.linalg.inv(matrices[:-1, :-1] + np.diag(self.precision))
        variance = max(rate / (shape - 1.0), self.floor)
        spread = np.sqrt(variance * np.diag(inverse)), np.asarray(variance / math.sqrt(max(shape - 2.0, 0.5)))
        return self._in_order(inverse @ matrices[:-1, -1], np.asarray(variance)), self._in_order(*spread)


def factored(matrices: Array) -> tuple[Array, Array]:
    """(pivots, L) of L·D·Lᵀ, for matrices (p, p, …): all pivots are above 0 where one is positive, and their products
    are its leading minors."""
    left, lower = np.array(matrices), np.zeros(matrices.shape)
    for k in range(len(left)):
        lower[k:, k] = left[k:, k] / np.where(left[k, k] > 0.0, left[k, k], 1.0)
        left[k + 1 :, k + 1 :] -= lower[k + 1 :, None, k] * left[None, k, k + 1 :]
    return left[range(len(left)), range(len(left))], lower


def pivots(matrices: Array) -> Array:
    return factored(matrices)[0]


def _on_diagonal(matrices: Array, added: Array) -> Array:
    """With these numbers added to the diagonal."""
    found, places = np.array(matrices), range(len(added))
    found[places, places] += added.reshape(-1, *[1] * (matrices.ndim - 2))
    return found


# ── the chain ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class Chain:
    """True sums of many data sets (or of one, many times), each given its noisy ones.

    Two kinds of steps take turns, each of which leaves p(G | z) as it is. One turns G around the noisy sums, and is
    quick where the noise is small beside what the prior leaves open; the other turns the factors of G = L·D·Lᵀ (means,
    slopes and logarithms of pivots) around what is believed of them, and is quick where the noise is large.
    """

    regression: Regression
    noisy: Array
    generator: Any

    def __post_init__(self) -> None:
        self.sums = self.regression.likely(self.noisy)

    def step(self) -> None:
        regression, noise = self.regression, self.regression.noise
        self.sums = turned(
            self.sums, self.noisy, self._deviations(), lambda sums, _: regression.log_law(sums), self.generator
        )
        centre, deviation = regression.believed_factors

        def height(factors: Array, which: Any) -> Array:
            sums, stretch = regression.from_factors(factors)
            found = regression.log_law(sums) + noise.log_mass(self.noisy[which] - sums).sum(axis=-1) + stretch
            return np.asarray(found + 0.5 * (((factors - centre) / deviation) ** 2).sum(axis=-1))

        factors = turned(regression.to_factors(self.sums), centre, deviation, height, self.generator)
        self.sums = regression.from_factors(factors)[0]

    def _deviations(self) -> Any:
        """Of the noise: known, or of a Laplace law drawn given where it is, 1/ω² inverse Gaussian."""
        noise = self.regression.noise
        if noise.law == "gaussian":
            return noise.scale
        away = np.maximum(np.abs(self.sums - self.noisy), 1e-6 * noise.scale)
        return 1.0 / np.sqrt(self.generator.wald(1.0 / (noise.scale * away), noise.scale**-2.0))


def turned(place: Array, centre: Array, deviation: Any, log_height: Any, generator: Any) -> Array:
    """One step of elliptical slice sampling for each row, of the law ∝ N(place; centre, deviation²)·e^{height}: a turn
    around the ellipse through the row and a new normal one, shrunk towards the row until it is high enough.
    ``log_height(rows, which)``."""
    size = len(place)
    away, other = place - centre, deviation * generator.standard_normal(place.shape)
    middle, found = np.broadcast_to(centre, place.shape), np.array(place)
    least = log_height(place, np.arange(size)) - generator.standard_exponential(size)
    angle = generator.uniform(0.0, 2.0 * math.pi, size)
    low, high, turning = angle - 2.0 * math.pi, angle.copy(), np.arange(size)
    for _ in range(MOST_SHRINKS):
        turn = angle[turning, None]
        proposed = middle[turning] + away[turning] * np.cos(turn) + other[turning] * np.sin(turn)
        taken = log_height(proposed, turning) > least[turning]
        found[turning[taken]] = proposed[taken]
        turning = turning[~taken]
        if not len(turning):
            break
        at = angle[turning]
        low[turning], high[turning] = np.where(at < 0.0, at, low[turning]), np.where(at < 0.0, high[turning], at)
        angle[turning] = generator.uniform(low[turning], high[turning])
    return found


def simulated(regression: Regression, noisy: Array, generator: Any, *, kept: int, chains: int = 1) -> Array:
    """(data sets, kept, parameters): draws of the posterior of each row of noisy sums; ``chains`` of each run side by
    side."""
    each = -(-kept // chains)
    chain = Chain(regression, np.repeat(noisy, chains, axis=0), generator)
    for _ in range(WARM_UP):
        chain.step()
    found = []
    for _ in range(each):
        for _ in range(BETWEEN):
            chain.step()
        found.append(regression.drawn_parameters(chain.sums, generator))
    drawn = np.stack(found, axis=1).reshape(len(noisy), chains * each, -1)
    return np.asarray(drawn[:, :kept])


# ── the posterior ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class RegressionPosterior:
    """Coefficients of encoded rows and the variance, given noisy sums of products in units of the bounds."""

    regression: Regression
    noisy: Array

    too_narrow: ClassVar[str] = ""

    @cached_property
    def _draws(self) -> Array:
        return self.draw(KEPT, np.random.default_rng(SEED))

    @property
    def mean(self) -> Array:
        return np.asarray(self._draws.mean(axis=0))

    @property
    def errors(self) -> tuple[Array, Array]:
        sampling = self.regression.plug_in(self.noisy)[1]
        whole = self._draws.var(axis=0)
        return sampling, np.sqrt(np.maximum(whole - sampling**2, 0.0))

    def draw(self, size: int, generator: Any) -> Array:
        """From chains of their own, after a warm-up: nearly independent."""
        (found,) = simulated(self.regression, self.noisy[None, :], generator, kept=size, chains=min(CHAINS, size))
        return np.asarray(found)

    def interval(self, level: float, change: Any = None) -> Array:
        draws = self._draws if change is None else self._draws @ np.asarray(change).T
        return np.asarray(np.quantile(draws, tails(level), axis=0).T)
