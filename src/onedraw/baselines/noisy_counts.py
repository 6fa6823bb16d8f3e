"""The posterior of proportions given noisy counts, exactly: a mixture over what the true counts may have been.

Bernstein and Sheldon (NeurIPS 2018, arXiv:1809.02188) replace the law of the true count by a normal one. For counts
there is no need to. Before anything is published the counts N of n records have the law of Dirichlet and multinomial,
and given what was published

    P(N | z) ∝ Π_j Γ(α_j + N_j)/N_j! · noise(z_j − N_j)         on N ≥ 0, Σ N_j = n,

a product but for its sum. So partial sums N_1 + … + N_j are a Markov chain, whose laws are convolutions; single counts
have their law by two of them, and all counts together are drawn backwards. Given N the proportions are Dirichlet(α +
N), each of them a Beta: so the posterior is a finite mixture, of which draws, means and quantiles are had without any
approximation. One proportion is the case of two categories, of which only the first count is published.

A factor e^{tN_j} in every category changes nothing, since Σ N_j is n. With the t for which single counts expect about n
together no factor underflows, however strong the prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import signal, special

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused
from onedraw.models import BetaBernoulli
from onedraw.plans import Plan

from .noisy_totals import SumNoise
from .sufficient_statistics import NaivePosterior, sums_of, tails

FOLLOWED = 40.0
"""Deviations that the noise is followed: e^−56 of a Laplace law, and less of a Gaussian, lies beyond."""

MOST_COUNTS = 2**17
"""Different counts that are told apart; of more, every second, third, … is."""

MOST_TOGETHER = 2**22
"""Counts of all categories together, beyond which a posterior is not begun."""

FARTHEST_TILT = 1e6
"""Where even that does not bring n about, all counts are at one end already."""

DIRECTLY = 2**24
"""Products of a convolution that are added up one by one."""


@dataclass(frozen=True, eq=False)
class Counted:
    """What one count may have been, and how likely each is."""

    counts: Array
    weights: Array

    @classmethod
    def of(cls, counts: Array, logs: Array) -> Counted:
        """The likeliest with 1."""
        return cls(counts, np.exp(logs - logs.max()))

    def weighed(self, by: Array) -> Counted:
        """With other factors beside; in all 1."""
        weights = self.weights * by
        total = float(weights.sum())
        if not total > 0.0:
            raise PromiseRefused(
                "No counts of so many records lead to these noisy sums: the noise of this plan would be beyond belief. "
                "They were edited or damaged; do not rely on them."
            )
        return Counted(self.counts, weights / total)

    def drawn(self, size: int, generator: Any) -> Array:
        """Counts of this law; its weights are 1 in all."""
        place = np.searchsorted(np.cumsum(self.weights), generator.uniform(size=size))
        return np.asarray(self.counts[place.clip(0, len(self.counts) - 1)])


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """Proportions given the noisy counts of all categories; ``single`` where they are two, and one proportion is asked
    for."""

    alpha: Array
    n: int
    each: tuple[Counted, ...]
    single: bool
    naive: NaivePosterior

    too_narrow: ClassVar[str] = ""

    @classmethod
    def of(cls, plan: Plan, noisy: Array) -> CountPosterior:
        model, unit = plan.model, float(sums_of(plan.model).unit)
        alpha, noise, n = np.array(model.prior, dtype=np.float64), SumNoise.of(plan, unit), plan.n
        single = isinstance(model, BetaBernoulli)

        def of_one(j: int, z: float) -> tuple[Array, Array]:
            def log_prior(counts: Array) -> Array:
                logs = special.gammaln(alpha[j] + counts) - special.gammaln(counts + 1.0)
                if single:  # the other count follows
                    logs += special.gammaln(alpha[1] + n - counts) - special.gammaln(n - counts + 1.0)
                return np.asarray(logs)

            return _possible(noise, z, n, log_prior)

        possible = [of_one(j, float(z) * unit) for j, z in enumerate(noisy)]
        tilt = 0.0 if single else _tilt(possible, n)
        each = tuple(Counted.of(counts, logs + tilt * counts) for counts, logs in possible)
        return cls(alpha, n, each, single, NaivePosterior.of(plan, noisy))

    # ── the true counts ──

    @cached_property
    def partial(self) -> list[tuple[int, Array]]:
        """(least, weights) of N_1 + … + N_j, each as if nothing were known of the sum of all; the first is that of
        none."""
        found = [(0, np.ones(1))]
        for one in self.each[:-1]:
            least, weights = found[-1]
            together = _convolved(weights, one.weights)[: self.n + 1]
            found.append((least + int(one.counts[0]), together / together.max()))
        return found

    @cached_property
    def counted(self) -> tuple[Counted, ...]:
        """The law of each true count."""
        if self.single:
            return (self.each[0].weighed(np.ones(1)),)
        found: list[Counted] = []
        rest: tuple[int, Array] = (0, np.ones(1))
        for one, before in zip(self.each[::-1], self.partial[::-1], strict=True):
            others = (before[0] + rest[0], _convolved(before[1], rest[1]))
            found.append(one.weighed(_at(others, self.n - one.counts)))
            together = _convolved(rest[1], one.weights)[: self.n + 1]
            rest = (rest[0] + int(one.counts[0]), together / together.max())
        return tuple(found[::-1])

    def draw_counts(self, size: int, generator: Any) -> Array:
        """(size, categories): true counts, backwards from the sum of all, which is n."""
        if self.single:
            first = self.counted[0].drawn(size, generator)
            return np.stack([first, self.n - first], axis=1)
        left, found = np.full(size, float(self.n)), np.empty((size, len(self.each)))
        for j in range(len(self.each) - 1, -1, -1):
            one, before = self.each[j], self.partial[j]
            for rest in np.unique(left):  # draws that are at the same place choose by the same law
                here = left == rest
                found[here, j] = one.weighed(_at(before, rest - one.counts)).drawn(int(here.sum()), generator)
            left -= found[:, j]
        return found

    # ── the proportions ──

    @cached_property
    def mean(self) -> Array:
        total = float(self.alpha.sum()) + self.n
        pairs = zip(self.alpha, self.counted, strict=False)
        return np.array([(alpha + law.weights @ law.counts) / total for alpha, law in pairs])

    @property
    def errors(self) -> tuple[Array, Array]:
        total, sampling = float(self.alpha.sum()) + self.n, self.naive.errors[0]
        squares = [
            law.weights @ ((alpha + law.counts) * (alpha + law.counts + 1.0)) / (total * (total + 1.0))
            for alpha, law in zip(self.alpha, self.counted, strict=False)
        ]
        return sampling, np.sqrt(np.maximum(np.array(squares) - self.mean**2 - sampling**2, 0.0))

    def draw(self, size: int, generator: Any) -> Array:
        """Gamma variates on logarithms, as in `models.conjugate.distributions`: none is 0/0."""
        shapes = self.alpha + self.draw_counts(size, generator)
        logs = np.log(np.maximum(generator.standard_gamma(shapes + 1.0), np.finfo(np.float64).tiny))
        logs -= generator.standard_exponential(shapes.shape) / shapes
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        proportions = weights / weights.sum(axis=1, keepdims=True)
        return np.asarray(proportions[:, :1] if self.single else proportions)

    def interval(self, level: float, change: Any = None) -> Array:
        total = float(self.alpha.sum())
        ends = [[_quantile(alpha, total - alpha, law, self.n, part) for part in tails(level)]
                for alpha, law in zip(self.alpha, self.counted, strict=False)]  # fmt: skip
        return np.array(ends)


def check_size(title: str, n: int, categories: int, deviation: float) -> None:
    """Refuse, by public numbers, what would take gigabytes."""
    counts = min(n, 2.0 * FOLLOWED * deviation)
    if counts > MOST_COUNTS or categories * counts > MOST_TOGETHER:
        raise PromiseRefused(
            f"{title} of {categories} categories with noise of {deviation:,.0f} counts would have to tell too many "
            "counts apart. Use a larger budget, fewer categories, or baselines.SufficientStatistics()."
        )


def _possible(noise: SumNoise, z: float, n: int, log_prior: Any) -> tuple[Array, Array]:
    """The counts that noise may have carried to z, and their logarithms by prior and noise."""
    centre, away = min(max(z, 0.0), float(n)), FOLLOWED * noise.deviation + 2.0
    low, high = max(0, math.floor(centre - away)), min(n, math.ceil(centre + away))
    counts = np.arange(low, high + 1, max(1, -(-(high - low) // MOST_COUNTS)), dtype=np.float64)
    return counts, log_prior(counts) + noise.log_mass(z - counts)


def _tilt(possible: Sequence[tuple[Array, Array]], n: int) -> float:
    """t with which counts ∝ e^{logs + t·count}, each by itself, add up to about n: to a deviation of their sum."""
    low, high, tilt = -math.inf, math.inf, 0.0
    for round_ in range(200):
        laws = [Counted.of(counts, logs + tilt * counts).weighed(np.ones(1)) for counts, logs in possible]
        means = [float(law.weights @ law.counts) for law in laws]
        spread = sum(float(law.weights @ (law.counts - mean) ** 2) for law, mean in zip(laws, means, strict=True))
        missing = n - sum(means)
        if abs(missing) <= math.sqrt(spread) + 1e-9:
            break
        low, high = (tilt, high) if missing > 0.0 else (low, tilt)
        if math.isfinite(low) and math.isfinite(high):
            tilt = (low + high) / 2.0
        else:  # no end is known on one side yet
            tilt = math.copysign(1e-3 * 2.0**round_, missing)
            if abs(tilt) > FARTHEST_TILT:
                break
    return tilt


def _convolved(one: Array, other: Array) -> Array:
    """Σ one(k)·other(s − k): added up one by one where that is quick; by Fourier's transform the smallest weights are
    lost."""
    if len(one) * len(other) <= DIRECTLY:
        return np.convolve(one, other)
    return np.asarray(np.maximum(signal.fftconvolve(one, other), 0.0))


def _at(law: tuple[int, Array], sums: Array) -> Array:
    """The weights of these sums; 0 beyond."""
    least, weights = law
    place = (sums - least).astype(np.int64)
    inside = (place >= 0) & (place < len(weights))
    return np.where(inside, weights[place.clip(0, len(weights) - 1)], 0.0)


def _quantile(alpha: float, rest: float, law: Counted, n: int, probability: float) -> float:
    """Of a mixture of Beta(α + N, rest + n − N): Newton's steps, or halves of what must contain it."""
    kept = law.weights > 1e-18
    weights, a, b = law.weights[kept], alpha + law.counts[kept], rest + n - law.counts[kept]
    low, high = 0.0, 1.0
    place = float(weights @ a / (a[0] + b[0]))
    norm = special.betaln(a, b)
    for _ in range(200):
        below = float(weights @ special.betainc(a, b, place))
        low, high = (place, high) if below < probability else (low, place)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            slope = float(weights @ np.exp((a - 1.0) * np.log(place) + (b - 1.0) * np.log1p(-place) - norm))
        step = (probability - below) / slope if slope > 0.0 else math.inf
        if abs(step) < 1e-12 or high - low < 1e-14:
            break
        place = place + step if low < place + step < high else (low + high) / 2.0
    return place
