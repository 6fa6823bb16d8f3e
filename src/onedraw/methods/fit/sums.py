"""What averaged steps ask of the records, each a sum of integers (`exact_sums`).

| statistic | a record's share | its norm |
| --- | --- | --- |
| ResponseSum | r, the response in [−1, 1] | 1 |
| DesignMoments | (z, e)(z, e)ᵀ, the row of measured columns and residual shortened to ρ | ρ² (Frobenius) |
| ClippedScores | z·ψ, shortened to B | B |
| LongScores | 1 if ‖z·ψ‖ > B | 1 |
| Information | w·zzᵀ, w the record's information, √w·z shortened to ρ | ρ² |
| ScoreCovariance | (z·ψ)(z·ψ)ᵀ, z·ψ shortened to B_K | B_K² |
| PersonCovariance | of a person: uuᵀ, u the sum of their z·ψ (`RecordScores`), shortened to B_P | B_P² |

Where y is one of two classes, zψ is first weighted by min(1, B/(‖z‖·max(p, 1 − p))), p the chance of either class. Such weights
depend on z alone, so a model that holds is estimated without bias (Künsch, Stefanski, Carroll 1989), and the score is no longer
than B whichever class the record has. Shortening the long scores alone would count the rarer class less.

Vectors are shortened first and cut towards zero onto their lattice afterwards, which never lengthens them. So norms hold
exactly, whatever the coordinates and coefficients are. `StepRows` rewrites a record once as (z, response), one record a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.data.sums import Reading
from onedraw.models.compute import jax, jnp
from onedraw.models.moments.measured import Layout, cut, gram
from onedraw.models.sums.exact_sums import Compiled

from .scores import WINDOW, Score


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
class DesignMoments(Compiled):
    """Σ (z, e)(z, e)ᵀ in coordinates and residuals that the first moments gave."""

    layout: Layout

    def bound(self, steps: Any, mean: Any, root: Any, slopes: Any, centre: Any, unit: Any, radius: Any) -> float:
        return float((radius * steps) ** 2)

    def block(
        self, X: Any, r: Any, weight: Any, steps: Any, mean: Any, root: Any, slopes: Any, centre: Any, unit: Any, radius: Any
    ) -> Any:  # fmt: skip
        z = (self.layout.rows(X) - mean) @ root
        residual = (r - centre - z @ slopes) / unit
        rows = jnp.concatenate([z, residual[:, None]], axis=1)
        return gram(cut(_finite(rows), radius).T * weight, steps)


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
        """Return z·ψ, of classes weighted so that none is longer than ``bound`` whichever class the record has."""
        slope = -self.score.kernel.slope(theta @ z, y) / score_scale
        return _finite(z * (slope * self._weights(z, slope, bound, stretch)))

    def _weights(self, z: Any, slope: Any, bound: Any, stretch: Any = None) -> Any:
        """Return min(1, B/(‖Rz‖·max(p, 1 − p))) for classes and 1 for others; p is the chance of the record's class.

        Parameters
        ----------
        stretch : array, optional
            R, if the steps read rows R·z (effects.py) and these are z.
        """
        if self.score.kind != "label":
            return 1.0
        z = z if stretch is None else stretch @ z
        longest = jnp.maximum(jnp.abs(slope), 1.0 - jnp.abs(slope)) * jnp.sqrt((z * z).sum(axis=0))
        return jnp.minimum(1.0, bound / jnp.maximum(longest, 1e-300))


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
        u = theta @ z
        if self.score.kind == "quantile":
            information = jnp.where(jnp.abs(y - u) <= WINDOW, 0.5 / WINDOW, 0.0)
        else:
            slope = self.score.kernel.slope(u, y) / score_scale
            information = self.score.kernel.curvature(u, y) / score_scale * self._weights(z, slope, bound, stretch)
        rows = _finite(z * jnp.sqrt(jnp.clip(information, 0.0, self.score.largest_curvature)))
        return gram(cut(rows, radius, axis=0) * weight, steps)


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
        return (jnp.trunc(cut(scores, radius, axis=0) * steps),)


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
