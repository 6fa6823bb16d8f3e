"""The rounds of a `Candidates` plan, once the records are there: what its sampler is handed.

Candidates are laid out by `propose` from public numbers and earlier picks; `costs` alone looks at the records. A pick
has probability ∝ exp(−(costs + public costs)·2^−b), where the public costs are log q − log π on the same lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from onedraw.models.candidates.scores import CandidateLoss, candidate_costs

from .candidate_plan import Geometry
from .candidate_prior import CandidatePrior, log_normal

Array = NDArray[np.float64]

FROM_PRIOR = 0.05
"""The share of candidates drawn from the prior in every round: the log-weight log π − log q is bounded by log 20."""

FARTHEST = 2.0**20
"""|log q − log π| is cut here, so that it fits on every lattice. It is public: the cut costs accuracy at most."""

MOST_TRIES = 1000


@dataclass(frozen=True, eq=False)
class CandidateTarget:
    """One data set's selection problem. As private as the records: never printed or written."""

    loss: CandidateLoss
    encoded: Any
    geometry: Geometry
    prior: CandidatePrior
    widths: tuple[int, ...]
    bits: int
    candidates: int
    published: str = "mean"

    def __repr__(self) -> str:
        return f"CandidateTarget(n={self.encoded.n}, rounds={self.rounds}, candidates={self.candidates}, records=<private>)"

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

    def propose(self, number: int, picks: list[Array], generator: Generator) -> tuple[Array, NDArray[np.int64]]:
        """The candidates of a round, one row each, and log q − log π of each on the lattice. Public, given the picks."""
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

    def costs(self, number: int, thetas: Array) -> NDArray[np.int64]:
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

    def probabilities(self, number: int, thetas: Array, public_costs: NDArray[np.int64]) -> Array:
        """The law of a round's pick, given its candidates: for audits."""
        exponents = -np.ldexp((self.costs(number, thetas) + public_costs).astype(np.float64), -self.bits)
        law: Array = special.softmax(exponents)
        return law

    def _laid_out(self, centre: Array, deviations: Array, generator: Generator) -> Array:
        """Candidates about the centre and from the prior, all of them inside the prior's ball if it has one."""
        rows: list[Array] = []
        for _ in range(MOST_TRIES):
            noise = generator.standard_normal((self.candidates, self.dimension))
            found = self._parameters(centre + deviations * noise)
            wide = generator.random(self.candidates) < FROM_PRIOR
            found[wide] = self.prior.draw(generator, int(wide.sum()))
            rows.append(found[self.prior.contains(found)])
            if sum(map(len, rows)) >= self.candidates:
                break
        else:
            rows.append(np.tile(self.geometry.location, (self.candidates, 1)))  # which lies in the ball
        return np.concatenate(rows)[: self.candidates]

    def _parameters(self, rotated: Array) -> Array:
        thetas: Array = self.geometry.location + self.geometry.scales * (rotated @ self.geometry.axes.T)
        return thetas

    def _rotated(self, theta: Array) -> Array:
        rotated: Array = ((theta - self.geometry.location) / self.geometry.scales) @ self.geometry.axes
        return rotated
