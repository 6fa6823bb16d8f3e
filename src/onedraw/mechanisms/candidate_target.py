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

from onedraw.models.candidate_scores import CandidateLoss, candidate_costs

from .candidate_plan import Geometry

Array = NDArray[np.float64]

FROM_PRIOR = 0.05
"""The share of candidates drawn from the prior in every round: the log-weight log π − log q is bounded by log 20."""

MOST_TRIES = 1000


@dataclass(frozen=True, eq=False)
class CandidateTarget:
    """One data set's selection problem. As private as the records: never printed or written."""

    loss: CandidateLoss
    encoded: Any
    geometry: Geometry
    precision: Array
    radius: float | None
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
        rotated = self._laid_out(centre, np.sqrt(variances), generator)
        thetas = self._parameters(rotated)
        near = -0.5 * ((rotated - centre) ** 2 / variances).sum(axis=1) - 0.5 * np.log(variances).sum()
        wide = -0.5 * (rotated**2).sum(axis=1)
        log_proposal = np.logaddexp(np.log1p(-FROM_PRIOR) + near, np.log(FROM_PRIOR) + wide)
        log_prior = -0.5 * (self.precision * (thetas - geometry.location) ** 2).sum(axis=1)
        return thetas, np.rint(np.ldexp(log_proposal - log_prior, self.bits)).astype(np.int64)

    def costs(self, number: int, thetas: Array) -> NDArray[np.int64]:
        """Σ over the records of whole numbers in [0, W_j]: all that the records are asked in round j."""
        return candidate_costs(self.loss, thetas, self.encoded, width=self.widths[number])

    def mean(self, picks: list[Array]) -> Array:
        """c_j: the picks weighted like their rounds."""
        return np.average(np.array(picks), axis=0, weights=np.array(self.widths[: len(picks)], dtype=np.float64))

    def corrected(self, picks: list[Array]) -> Array:
        """The weighted mean with the rounds' repeated pull towards the prior's mean undone but for one of them.

        Along an axis with curvature h, a_j = n·w_j·h, pick j is about a_j/(a_j + 1) of the way from the prior's mean,
        with variance 1/(a_j + 1). The best combination under one prior is the weighted mean times
        Σa_j/(1 + Σ a_j²/(a_j + 1)): a public factor, at least 1 here.
        """
        shares = np.array([self.count_weight(width) * self.geometry.curvatures for width in self.widths])
        factor = np.maximum(1.0, shares.sum(axis=0) / (1.0 + (shares**2 / (shares + 1.0)).sum(axis=0)))
        theta = self._parameters(factor * self._rotated(self.mean(picks)))
        length = float(np.linalg.norm(theta))
        return theta if self.radius is None or length <= self.radius else theta * (self.radius / length)

    def publish(self, picks: list[Array]) -> list[Array]:
        """The weighted mean of the picks, the corrected mean, or all of them: post-processing of the picks."""
        if self.published == "picks":
            return list(picks)
        return [self.corrected(picks) if self.published == "corrected" else self.mean(picks)]

    def probabilities(self, number: int, thetas: Array, public_costs: NDArray[np.int64]) -> Array:
        """The law of a round's pick, given its candidates: for audits."""
        exponents = -np.ldexp((self.costs(number, thetas) + public_costs).astype(np.float64), -self.bits)
        law: Array = special.softmax(exponents)
        return law

    def _laid_out(self, centre: Array, deviations: Array, generator: Generator) -> Array:
        """Candidates along the axes, all of them inside the prior's ball if it has one."""
        rows: list[Array] = []
        for _ in range(MOST_TRIES):
            noise = generator.standard_normal((self.candidates, self.dimension))
            wide = generator.random((self.candidates, 1)) < FROM_PRIOR
            found = np.where(wide, noise, centre + deviations * noise)
            if self.radius is not None:
                found = found[np.linalg.norm(self._parameters(found), axis=1) <= self.radius]
            rows.append(found)
            if sum(map(len, rows)) >= self.candidates:
                break
        else:
            rows.append(np.zeros((self.candidates, self.dimension)))  # the prior's mean lies in the ball
        return np.concatenate(rows)[: self.candidates]

    def _parameters(self, rotated: Array) -> Array:
        thetas: Array = self.geometry.location + self.geometry.scales * (rotated @ self.geometry.axes.T)
        return thetas

    def _rotated(self, theta: Array) -> Array:
        rotated: Array = ((theta - self.geometry.location) / self.geometry.scales) @ self.geometry.axes
        return rotated
