"""How many rounds of how many candidates, decided from public numbers: n, d, the weight, the prior, the design.

Proof and trials: "Rounds" in proof.md. A finite set of candidates is private whatever it covers; coverage decides only how good the pick
is. In coordinates where the prior is N(0, I), with h_1 … h_d the eigenvalues of one record's curvature under the
public reference design, a pick of weight w has variances 1/(n·w·h_i + 1), and a round whose candidates have the
variances v_i covers it with K/Π√(v_i(n·w·h_i + 1)) candidates of full weight.

**Rounds buy coverage, and splitting is free**: a pick of weight w_j has precision ∝ w_j and costs ε_j ∝ w_j, so the
weighted mean of the picks is as precise as one draw of the whole weight. Weights grow, a_1 = 1, a_j = ½Σ_{i<j} a_i, and
round j looks around the weighted mean of the picks before it, with the variances

    v = 1.707·[1/(n·w_j·h + 1) + ½/(n·W_{j−1}·h + 1)],  at most 1.5².

One round is planned where enough candidates for it can be scored; otherwise as many rounds as it takes until the
first pick is hardly more informed than the prior. What is known to fail is refused (see `lay_out`). A wrong design
costs accuracy, never privacy.

Once the records are there a `CandidateTarget` lays out the rounds: `propose` by public numbers and earlier picks, while
`costs` alone looks at the records. A pick has probability ∝ exp(−(costs + public costs)·2^−b), where the public costs
are log q − log π on the same lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import special

from onedraw.arrays import Array, Integers
from onedraw.errors import PromiseRefused
from onedraw.methods.candidates.loss import CHAINS, CandidatePrior, log_normal
from onedraw.models.candidates import CandidateLoss, candidate_costs
from onedraw.private import Private

ENOUGH, PLENTY, LEAST_COVER = 4.0, 16.0, 1.0
"""Candidates of full weight in the only round: as planned, where they cost next to nothing, and the least."""

LEAST_LATER_COVER = 0.5
"""The least in the last and heaviest of several rounds: a pick that is off is averaged with the others."""

FEWEST, NOT_TOO_MANY, MOST_ALONE = 1024, 2**15, 2**20
"""Candidates in the only round: the least, as many as cost next to nothing, and the most."""

FEWEST_EACH, MOST_EACH = 256, 80_000
"""The same for each of several rounds: the least and the most."""

MOST_PAIRS, FEW_PAIRS = 4e9, 2.5e8
"""Records times candidates, over all rounds, at most: about 40 seconds on two processor cores; and what takes some
seconds only."""

FIRST_ROUND = 1.6
"""n·w_1·λ·s₀² of the first of several rounds, at most: the prior's own precision is 1."""

WIDEST_PREDICTOR = 2.0
"""The standard deviation of θᵀx under the prior, at most, where there are several rounds; of real responses, in
standard deviations of the noise."""

SPREAD, WIDEST = 1.707, 1.5
MOST_ROUNDS = 40

FROM_PRIOR = 0.05
"""The share of candidates drawn from the prior in every round: the log-weight log π − log q is bounded by log 20."""

FARTHEST = 2.0**20
"""|log q − log π| is cut here, so that it fits on every lattice. It is public: the cut costs accuracy at most."""

MOST_TRIES = 1000


@dataclass(frozen=True, eq=False)
class Geometry:
    """Prior and curvature as the design has them: θ = location + scales·z, with z ~ N(0, I) a priori.

    ``information`` and ``variability`` are H and K of one record in θ's own coordinates.
    """

    location: Array
    scales: Array
    information: Array
    variability: Array
    predictor_deviation: float

    @property
    def dimension(self) -> int:
        return len(self.scales)

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(self.scales[:, None] * self.information * self.scales)
        return np.maximum(values, 0.0), vectors

    @property
    def curvatures(self) -> Array:
        """h_1 … h_d, smallest first; λs₀² is the first of them."""
        return self._eigen[0]

    @property
    def axes(self) -> Array:
        """The directions they belong to, as columns."""
        return self._eigen[1]

    def pick_precision(self, count_weight: float) -> Array:
        """n·w·h + 1 along each axis."""
        return count_weight * self.curvatures + 1.0

    def variances(self, count_weight: float, before: float) -> Array:
        """Of the candidates of a round with n·w_j, after rounds with n·W_{j−1}, along each axis."""
        found = SPREAD * (1.0 / self.pick_precision(count_weight) + 0.5 / self.pick_precision(before))
        return np.minimum(found, WIDEST**2)

    def log_volume(self, count_weight: float, before: float) -> float:
        """log of candidates needed for one of full weight."""
        ratio = self.variances(count_weight, before) * self.pick_precision(count_weight)
        return 0.5 * float(np.log(ratio).sum())

    def informed(self, count_weight: float) -> float:
        """The geometric mean of n·w·h + 1, less 1: n·w·λ·s₀² where all curvatures are the same."""
        return math.expm1(float(np.log(self.pick_precision(count_weight)).mean()))

    def expected_errors(self, count: int, weight: float) -> Array:
        """√E(θ̃ − θ₀)² of each coordinate of a draw, without the prior's pull: the diagonal of A⁻¹ + n·w²·A⁻¹KA⁻¹."""
        posterior = np.linalg.inv(count * weight * self.information + np.diag(self.scales**-2.0))
        sampling = count * weight**2 * posterior @ self.variability @ posterior
        return np.sqrt(np.diag(posterior + sampling))


@dataclass(frozen=True)
class Layout:
    """How many rounds, and how many candidates in each."""

    rounds: int
    candidates: int


def shares(rounds: int) -> tuple[Fraction, ...]:
    """a_j/Σa, a_1 = 1 and a_j half of all before: 1, ½, ¾, 9/8, … with the sum (3/2)^(J−1)."""
    parts = [Fraction(1)]
    while len(parts) < rounds:
        parts.append(sum(parts, Fraction(0)) / 2)
    total = sum(parts, Fraction(0))
    return tuple(part / total for part in parts)


def lay_out(
    geometry: Geometry, *, n: int, weight: float, candidates: int | None = None, rounds: int | None = None
) -> Layout:
    """Rounds and candidates where the caller leaves them open; refused where they are known to fail.

    | refused | because |
    | --- | --- |
    | one round with less than one candidate of full weight | the pick is the least bad of a few, not a draw |
    | several rounds with a first one that is too informed | the first pick goes astray and the others follow it |
    | several rounds with a prior wider than a predictor of sd 2 | the same (RMSE 4.4 where a draw has 0.4) |
    | several rounds in too many dimensions | the last and heaviest round, too, is not covered |
    """
    count_weight = n * weight
    alone = geometry.log_volume(count_weight, 0.0)
    if rounds is None:
        most = min(MOST_ALONE, MOST_PAIRS / n) if candidates is None else candidates
        rounds = 1 if _needed(alone, ENOUGH) <= most else _rounds_needed(geometry, count_weight)
    if rounds == 1:
        return _one_round(alone, n, candidates)
    if geometry.predictor_deviation > WIDEST_PREDICTOR * (1.0 + 1e-9):
        factor = WIDEST_PREDICTOR / geometry.predictor_deviation
        raise PromiseRefused(
            f"Under this prior the linear predictor has standard deviation {geometry.predictor_deviation:.3g} in the "
            f"reference design (for a real response: times that of its noise), and rounds fail beyond "
            f"{WIDEST_PREDICTOR:g}: a small first one picks a parameter far off and the others follow it. Multiply the "
            f"prior's scale by {factor:.3g} or less (a predictor of 2 already makes odds of 7 to 1), or use one round "
            "with enough candidates, in fewer dimensions."
        )
    first = geometry.informed(count_weight * float(shares(rounds)[0]))
    if first > FIRST_ROUND * (1.0 + 1e-9):
        raise PromiseRefused(
            f"With {rounds} rounds the records weigh {first:.3g} times as much as the prior in the first pick, more "
            f"than {FIRST_ROUND:g} times: it would go astray, and the later rounds would follow it. Use rounds="
            f"{_rounds_needed(geometry, count_weight)} or more, one round with enough candidates, or leave rounds out."
        )
    return _several_rounds(geometry, rounds, n=n, count_weight=count_weight, candidates=candidates)


def _needed(log_volume: float, cover: float) -> float:
    return cover * math.exp(min(log_volume, 600.0))


def _one_round(log_volume: float, n: int, candidates: int | None) -> Layout:
    needed = _needed(log_volume, LEAST_COVER)
    wished = max(_needed(log_volume, ENOUGH), min(_needed(log_volume, PLENTY), max(NOT_TOO_MANY, FEW_PAIRS / n)))
    planned = math.ceil(min(wished, MOST_ALONE, MOST_PAIRS / n))
    count = max(FEWEST, planned) if candidates is None else candidates
    if count < needed:
        raise PromiseRefused(
            f"One round needs about {needed:.3g} candidates to have a single one where the posterior is, and "
            f"{count:,} are planned: the pick would be the least bad of a few, not a draw. Leave rounds out, use a "
            "narrower prior or fewer parameters, or pass a larger count."
        )
    return Layout(1, count)


def _rounds_needed(geometry: Geometry, count_weight: float) -> int:
    for rounds in range(2, MOST_ROUNDS + 1):
        if geometry.informed(count_weight * float(shares(rounds)[0])) <= FIRST_ROUND:
            return rounds
    raise PromiseRefused(
        f"More than {MOST_ROUNDS} rounds would be needed: the records say so much more than the prior that no first "
        f"round can be covered. Use a narrower prior. Or {CHAINS}"
    )


def _several_rounds(geometry: Geometry, rounds: int, *, n: int, count_weight: float, candidates: int | None) -> Layout:
    volumes, before = [], 0.0
    for share in shares(rounds):
        volumes.append(geometry.log_volume(count_weight * float(share), count_weight * before))
        before += float(share)
    most = max(FEWEST_EACH, min(MOST_EACH, int(MOST_PAIRS / (n * rounds))))
    planned = math.ceil(min(_needed(max(volumes), 2.0 * ENOUGH), most))
    count = max(FEWEST_EACH, planned) if candidates is None else candidates
    needed = _needed(volumes[-1], LEAST_LATER_COVER)
    if count < needed:
        raise PromiseRefused(
            f"In {geometry.dimension} dimensions the last round needs at least {needed:.3g} candidates, and {count:,} "
            "are planned: no round would find where the posterior is. Use fewer parameters, fewer records, or a larger "
            f"count. Beyond about 30 dimensions use NoisyGradient(). Or {CHAINS}"
        )
    return Layout(rounds, count)


# ── the rounds, once the records are there ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False, repr=False)
class CandidateTarget(Private):
    """One data set's selection problem. As private as the records: never printed or written."""

    loss: CandidateLoss
    encoded: Any
    geometry: Geometry
    prior: CandidatePrior
    widths: tuple[int, ...]
    bits: int
    candidates: int
    published: str = "mean"

    @property
    def rounds(self) -> int:
        return len(self.widths)

    @property
    def dimension(self) -> int:
        return self.geometry.dimension

    def count_weight(self, width: int) -> float:
        """n·w of a round: w = W·2^−b/(high − low)."""
        low, high = self.loss.interval
        return float(self.encoded.n * np.ldexp(float(width), -self.bits) / (high - low))

    def propose(self, number: int, picks: list[Array], generator: Generator) -> tuple[Array, Integers]:
        """The candidates of a round, one row each, and log q − log π of each on the lattice. Public, given picks."""
        geometry = self.geometry
        before = sum(self.widths[:number])
        variances = geometry.variances(self.count_weight(self.widths[number]), self.count_weight(before))
        centre = np.zeros(self.dimension) if not picks else self._rotated(self.mean(picks))
        deviations = np.sqrt(variances)
        thetas = self._laid_out(centre, deviations, generator)
        near = log_normal(self._rotated(thetas), centre, deviations) - float(np.log(geometry.scales).sum())
        log_proposal = np.logaddexp(np.log1p(-FROM_PRIOR) + near, np.log(FROM_PRIOR) + self.prior.log_drawn(thetas))
        behind = np.clip(log_proposal - self.prior.log_density(thetas), -FARTHEST, FARTHEST)
        return thetas, np.rint(np.ldexp(behind, self.bits)).astype(np.int64)

    def costs(self, number: int, thetas: Array) -> Integers:
        """Σ over the records of whole numbers in [0, W_j]: all that the records are asked in round j."""
        return candidate_costs(self.loss, thetas, self.encoded, width=self.widths[number])

    def mean(self, picks: list[Array]) -> Array:
        """c_j: the picks weighted like their rounds."""
        return self.prior.average(np.array(picks), np.array(self.widths[: len(picks)], dtype=np.float64))

    def corrected(self, picks: list[Array]) -> Array:
        """The weighted mean with the rounds' repeated pull towards the prior's mean undone but for one of them.

        Along an axis with curvature h, a_j = n·w_j·h, pick j is about a_j/(a_j + 1) of the way from the prior's mean,
        with variance 1/(a_j + 1). The best combination under one prior is the weighted mean times
        Σa_j/(1 + Σ a_j²/(a_j + 1)): a public factor, at least 1 here.
        """
        shares = np.array([self.count_weight(width) * self.geometry.curvatures for width in self.widths])
        factor = np.maximum(1.0, shares.sum(axis=0) / (1.0 + (shares**2 / (shares + 1.0)).sum(axis=0)))
        return self.prior.nearest(self._parameters(factor * self._rotated(self.mean(picks))))

    def publish(self, picks: list[Array]) -> list[Array]:
        """The weighted mean of the picks, the corrected mean, or all of them: post-processing of the picks."""
        if self.published == "picks":
            return [self.prior.published(pick) for pick in picks]
        found = self.corrected(picks) if self.published == "corrected" else self.mean(picks)
        return [self.prior.published(found)]

    def probabilities(self, number: int, thetas: Array, public_costs: Integers) -> Array:
        """The law of a round's pick, given its candidates: for audits."""
        exponents = -np.ldexp((self.costs(number, thetas) + public_costs).astype(np.float64), -self.bits)
        return np.asarray(special.softmax(exponents))

    def _laid_out(self, centre: Array, deviations: Array, generator: Generator) -> Array:
        """Candidates about the centre and from the prior, all of them inside the prior's ball if it has one."""

        def draw() -> Array:
            noise = generator.standard_normal((self.candidates, self.dimension))
            found = self._parameters(centre + deviations * noise)
            wide = generator.random(self.candidates) < FROM_PRIOR
            found[wide] = self.prior.draw(generator, int(wide.sum()))
            return found

        return allowed(self.prior, self.candidates, draw)

    def _parameters(self, rotated: Array) -> Array:
        return np.asarray(self.geometry.location + self.geometry.scales * (rotated @ self.geometry.axes.T))

    def _rotated(self, theta: Array) -> Array:
        return np.asarray(((theta - self.geometry.location) / self.geometry.scales) @ self.geometry.axes)


def allowed(prior: CandidatePrior, count: int, draw: Callable[[], Array]) -> Array:
    """The first ``count`` of the rows drawn that lie in the prior's ball; where that takes too long, its location besides."""
    rows: list[Array] = []
    for _ in range(MOST_TRIES):
        found = draw()
        rows.append(found[prior.contains(found)])
        if sum(map(len, rows)) >= count:
            break
    else:
        rows.append(np.tile(prior.location, (count, 1)))
    return np.concatenate(rows)[:count]
