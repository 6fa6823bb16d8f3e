"""What averaged steps ask of the records, each a sum of integers (`exact_sums`).

| statistic | a record's share | its norm |
| --- | --- | --- |
| ResponseSum | r, the response in [−1, 1] | 1 |
| ClassShares | the unit vector of a record's class | 1 |
| DesignMoments | (z, e)(z, e)ᵀ, the row of measured columns and residual shortened to ρ | ρ² (Frobenius) |
| ClippedScores | z·ψ, shortened to B | B |
| LongScores | 1 if ‖z·ψ‖ > B | 1 |
| Information | w·zzᵀ, w the record's information, √w·z shortened to ρ | ρ² |
| ClassInformation | a·(W ⊗ zzᵀ), W the information of the contrasts, shortened to ρ² | ρ² (Frobenius) |
| ScoreCovariance | (z·ψ)(z·ψ)ᵀ, z·ψ shortened to B_K | B_K² |
| PersonCovariance | of a person: uuᵀ, u the sum of their z·ψ (`RecordScores`), shortened to B_P | B_P² |

Where ψ has a largest size for a row (one of two classes p or 1 − p, one of several the length of P − e_y, a limit, or a quantile's level),
zψ is first weighted by min(1, B/(‖z‖·that size)). Such weights depend on z alone, so a model that holds is estimated without bias
(Künsch, Stefanski, Carroll 1989), and the score is no longer than B whatever the response is. Shortening the long scores alone would
count the rarer class less. Least squares, counts, and quantiles of no robust line have no weights.

Vectors are shortened first and cut towards zero onto their lattice afterwards, which never lengthens them. So norms hold
exactly, whatever the coordinates and coefficients are. `StepRows` rewrites a record once as (z, response), one record a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.data.sums import Reading
from onedraw.models.compute import jax, jnp
from onedraw.models.moments.measured import INSIDE, Layout, cut, gram
from onedraw.models.sums.exact_sums import Compiled

from .class_scores import ClassScore
from .scores import Score


@dataclass(frozen=True)
class Responses(Reading):
    """(X, y) → (X, y/scale − shift), the response in [−1, 1], as JAX arrays."""

    scale: float
    shift: float

    columns = ()

    def of_block(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        return jax.device_put(X), jax.device_put(np.clip(np.asarray(y) / self.scale - self.shift, -1.0, 1.0))

    def placed(self, weight: Any) -> Any:
        return jnp.asarray(weight)


@dataclass(frozen=True)
class ResponseSum(Compiled):
    """Σ r of responses in [−1, 1], in steps of 1/steps."""

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, X: Any, r: Any, weight: Any, steps: Any) -> Any:
        return (jnp.trunc(_finite(r) * steps) @ weight)[None]


@dataclass(frozen=True)
class ClassShares(Compiled):
    """Σ of the unit vectors of classes 0 … K − 1, which are r = 2·class/(K − 1) − 1, in steps of 1/steps."""

    classes: int

    def bound(self, steps: Any) -> float:
        return float(steps)

    def block(self, X: Any, r: Any, weight: Any, steps: Any) -> Any:
        own = jnp.rint((r + 1.0) * (self.classes - 1.0) / 2.0)[None, :] == jnp.arange(float(self.classes))[:, None]
        return jnp.where(own, steps, 0.0) @ weight


@dataclass(frozen=True)
class DesignMoments(Compiled):
    """Σ (z, e)(z, e)ᵀ in coordinates and residuals that the first moments gave; Σ zzᵀ of several classes."""

    layout: Layout
    response: bool = True

    def bound(self, steps: Any, mean: Any, root: Any, slopes: Any, centre: Any, unit: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(
        self, X: Any, r: Any, weight: Any, steps: Any, mean: Any, root: Any, slopes: Any, centre: Any, unit: Any, radius: Any
    ) -> Any:  # fmt: skip
        z = (self.layout.rows(X) - mean) @ root
        if self.response:
            z = jnp.concatenate([z, ((r - centre - z @ slopes) / unit)[:, None]], axis=1)
        return gram(cut(_finite(z), radius).T * weight, steps)


@dataclass(frozen=True)
class StepRows(Compiled):
    """(z, response as the loss reads it)."""

    layout: Layout
    score: Score

    def block(
        self, X: Any, r: Any, weight: Any, mean: Any, root: Any, centre: Any, unit: Any, factor: Any = 1.0
    ) -> Any:
        z = self.layout.measured(X, mean, root, factor)
        return z.T, self.score.respond(r, centre, unit)


@dataclass(frozen=True)
class _AtCoefficients(Compiled):
    """A sum at coefficients θ of measured rows; ``score_scale`` divides scores and information."""

    score: Score

    def _scores(self, z: Any, y: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None) -> Any:
        """Return z·ψ, weighted so that none is longer than ``bound`` whatever response the record has, where ψ has a largest size."""
        u = self.score.predictor(theta, z)
        psi = self.score.slope(u, y, score_scale)
        weights = self._weights(z, self.score.longest_at(u, psi), bound, stretch)
        return _finite(self.score.times(psi * weights, z))

    def _weights(self, z: Any, longest: Any, bound: Any, stretch: Any = None) -> Any:
        """Return min(1, B/(‖Rz‖·longest)), or 1 where ψ has no largest size.

        Parameters
        ----------
        longest : array
            The largest |ψ| over the responses that each record could have; None if there is none.
        stretch : array, optional
            R, if the steps read rows R·z (effects.py) and these are z.
        """
        if longest is None:
            return 1.0
        z = z if stretch is None else stretch @ z
        return jnp.minimum(1.0, bound / jnp.maximum(longest * jnp.sqrt((z * z).sum(axis=0)), 1e-300))


@dataclass(frozen=True)
class ClippedScores(_AtCoefficients):
    """Σ z·ψ in steps of 1/steps."""

    def bound(self, steps: Any, radius: Any, theta: Any, score_scale: Any) -> float:
        return float(steps * radius)

    def block(self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any) -> Any:
        scores = cut(self._scores(z, y, theta, score_scale, radius), radius, axis=0)
        return jnp.trunc(scores * steps) @ weight


@dataclass(frozen=True)
class LongScores(_AtCoefficients):
    """How many scores are longer than B, in steps of 1/steps."""

    def bound(self, steps: Any, radius: Any, theta: Any, score_scale: Any) -> float:
        return float(steps)

    def block(self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any) -> Any:
        scores = self._scores(z, y, theta, score_scale, jnp.inf)
        long = (scores * scores).sum(axis=0) > radius * radius
        return (jnp.where(long, steps, 0.0) @ weight)[None]


@dataclass(frozen=True)
class Information(_AtCoefficients):
    """Σ w·zzᵀ: a record's expected information, or for quantiles the density counted in a window.

    ``bound`` and ``stretch`` are the steps': what a record counts there, it counts here.
    """

    def bound(self, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None) -> float:
        return float((radius * steps) ** 2)

    def block(
        self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None
    ) -> Any:  # fmt: skip
        u = self.score.predictor(theta, z)
        psi = self.score.slope(u, y, score_scale)
        weights = self._weights(z, self.score.longest_at(u, psi), bound, stretch)
        information = self.score.curvature(u, y, score_scale) * weights
        rows = _finite(z * jnp.sqrt(jnp.clip(information, 0.0, self.score.largest_curvature)))
        return gram(cut(rows, radius, axis=0) * weight, steps)


@dataclass(frozen=True)
class ClassInformation(_AtCoefficients):
    """Σ a·(W ⊗ zzᵀ) of several classes, W = diag P − PPᵀ in contrasts, a sum of squares of factors.

    Factors cut onto the lattice are KKᵀ with ‖KKᵀ‖ ≤ (√‖FFᵀ‖ + e)², e the norm of what the cut takes from F. So √‖FFᵀ‖ is kept below
    the radius less the largest e, and a record's share has Frobenius's norm ρ² at most.
    """

    score: ClassScore

    def bound(self, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None) -> float:
        return float((radius * steps) ** 2)

    def block(
        self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None
    ) -> Any:  # fmt: skip
        u = self.score.predictor(theta, z)
        weights = self._weights(z, self.score.longest_at(u, None), bound, stretch)
        factors, norm = self.score.factors(u)
        room = jnp.maximum(INSIDE * radius - np.sqrt(len(factors) * theta.size) / steps, 0.0)
        size = jnp.sqrt(norm * weights * (z * z).sum(axis=0))
        rows = z * (jnp.sqrt(weights) * jnp.minimum(1.0, room / jnp.maximum(size, 1e-300)))
        return sum(gram(_finite(self.score.times(factor, rows)) * weight, steps) for factor in factors)


@dataclass(frozen=True)
class ScoreCovariance(_AtCoefficients):
    """Σ (z·ψ)(z·ψ)ᵀ."""

    def bound(self, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None) -> float:
        return float((radius * steps) ** 2)

    def block(
        self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any, bound: Any, stretch: Any = None
    ) -> Any:  # fmt: skip
        scores = self._scores(z, y, theta, score_scale, bound, stretch)
        return gram(cut(scores, radius, axis=0) * weight, steps)


@dataclass(frozen=True)
class RecordScores(_AtCoefficients):
    """z·ψ of every record, shortened to B and cut onto a lattice: whole numbers, to be added up by person."""

    def block(
        self, z: Any, y: Any, weight: Any, steps: Any, radius: Any, theta: Any, score_scale: Any, stretch: Any = None
    ) -> Any:
        scores = self._scores(z, y, theta, score_scale, radius, stretch)
        return (jnp.trunc(cut(scores, radius, axis=0) * steps) * weight,)


@dataclass(frozen=True)
class PersonCovariance(Compiled):
    """Σ uuᵀ over persons, u the sum of a person's scores in steps of 1/fine."""

    def bound(self, steps: Any, radius: Any, fine: Any) -> float:
        return float((radius * steps) ** 2)

    def block(self, sums: Any, weight: Any, steps: Any, radius: Any, fine: Any) -> Any:
        return gram(cut(sums / fine, radius, axis=0) * weight, steps)


def _finite(values: Any) -> Any:
    """Return the values with 0 for what is no number: no record may turn a sum into something else."""
    return jnp.where(jnp.isfinite(values), values, 0.0)
