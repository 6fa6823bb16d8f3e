"""Many parameters against all records at once, as whole numbers: what the finite mechanism selects by.

A record's loss under a candidate, ℓ ∈ [low, low + Δ], becomes the whole number

    cost = ⌊ W·(ℓ − low)/Δ ⌉,  then cut to [0, W],

and costs are added as int64. Whatever rounding or overflow happened on the way to ℓ, one record moves one candidate's
sum by at most W: the sensitivity is *enforced*, not derived from real arithmetic, and the sum does not depend on the
order of the records. So logistic losses may be computed in single precision, which halves the time and costs nothing
but a relative 1e-7 of accuracy.

Costs are a statistic of `onedraw.data.sums` (`Costs`): the candidates are public numbers of a pass, so that the records may be
anywhere. One matrix product per block of records and group of candidates; groups fit in a fixed amount of memory and are halved
where even that is not to be had.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from onedraw.arrays import Array, Integers
from onedraw.data.sums import USUAL, Reading
from onedraw.errors import WrongCall
from onedraw.models.compute import jnp
from onedraw.models.convex.losses import LinearLoss
from onedraw.models.likelihood.likelihood_model import LossKernel
from onedraw.models.row_model import Encoded, EncodedRecords
from onedraw.models.sums.exact_sums import Compiled

# ── losses ───────────────────────────────────────────────────────────────────────────────────────────────────────────


BLOCK = 2**18
"""Losses of one group: 1 MiB of single-precision numbers, which stay in a processor's cache."""

IN_ONE_PASS = 2**13
"""Candidates of one pass: on a cluster they travel to the records, and as many sums come back."""

LARGEST_WIDTH = 2**17
"""Of W: the rounding of n records' losses amounts to about √n·2^−19 of one record's largest, far below the noise of a selection."""


class CandidateLoss(Protocol):
    """A hashable loss with a public interval that contains all its values, and the precision it is computed in."""

    precision: ClassVar[type]

    @property
    def interval(self) -> tuple[float, float]: ...

    def values(self, thetas: Any, X: Any, y: Any) -> Any:
        """ℓ(θ_k, z_i) as a matrix, candidates × records; JAX arrays."""
        ...


@dataclass(frozen=True)
class BernoulliBeta:
    """The β-divergence loss of logistic regression, y = ±1: −p^{β−1}/(β−1) + (p^β + q^β)/β, p = σ(yθᵀx).

    It lies in [1/β − 1/(β−1), 1/β] for every predictor, because f^β ≤ Σf^β ≤ 1. `Bernoulli.beta_loss` is the same in double
    precision; in single precision a predictor may overflow, and here a record on the wrong side then still costs most.
    """

    beta: float
    precision: ClassVar[type] = np.float32

    @property
    def interval(self) -> tuple[float, float]:
        return 1.0 / self.beta - 1.0 / (self.beta - 1.0), 1.0 / self.beta

    def values(self, thetas: Any, X: Any, y: Any) -> Any:
        margins = (thetas @ X.T) * y
        power = self.beta - 1.0
        tail = jnp.exp(-jnp.abs(margins))
        larger = 1.0 / (1.0 + tail)  # the probability of the likelier label
        smaller = tail * larger
        large_power = jnp.exp(power * jnp.log(larger))
        small_power = large_power * jnp.exp(-power * jnp.abs(margins))
        integral = larger * large_power + smaller * small_power
        return integral / self.beta - jnp.where(margins >= 0.0, large_power, small_power) / power


@dataclass(frozen=True)
class LikelihoodBeta:
    """The β-divergence loss of any likelihood and predictor, in double precision: log-gamma functions need it."""

    kernel: LossKernel
    beta: float
    precision: ClassVar[type] = np.float64

    @property
    def interval(self) -> tuple[float, float]:
        return self.kernel.likelihood.loss_range(self.beta)

    def values(self, thetas: Any, X: Any, y: Any) -> Any:
        return self.kernel.losses_of_many(thetas, X, y, self.beta)


@dataclass(frozen=True)
class MarginOnBall:
    """A convex margin loss ψ(yθᵀx) where |θᵀx| ≤ B: values in [ψ(B), ψ(−B)]."""

    kernel: LinearLoss
    bound: float
    precision: ClassVar[type] = np.float32

    @property
    def interval(self) -> tuple[float, float]:
        return float(self.kernel.value(self.bound, 1.0)), float(self.kernel.value(-self.bound, 1.0))

    def values(self, thetas: Any, X: Any, y: Any) -> Any:
        return self.kernel.value(thetas @ X.T, y)


def candidate_costs(
    loss: CandidateLoss, thetas: Array, encoded: Encoded | EncodedRecords, *, width: int, block: int = BLOCK
) -> Integers:
    """Σ_i cost(θ_k, z_i) for each row of ``thetas``; every term a whole number in [0, ``width``].

    ``block`` is the number of losses held in memory at a time; it is halved where there is no room for them. The
    result depends on it at most in the last digits of a matrix product, and those move no cost out of its bounds.
    """
    if not 1 <= width <= LARGEST_WIDTH:
        raise WrongCall(f"A record's cost is at most {LARGEST_WIDTH} units of the lattice, but {width} were asked for.")
    return sums_under(partial(Costs, loss), thetas, encoded, width, precision=loss.precision, block=block)[:, 0]


def sums_under(
    statistic: Callable[[int], Any], thetas: Array, encoded: Encoded | EncodedRecords, width: int, *, precision: type,
    block: int = BLOCK,
) -> Integers:  # fmt: skip
    """One row of sums for each row of ``thetas``; ``statistic`` is told how many of them are scored at a time."""
    parts = [thetas[start : start + IN_ONE_PASS] for start in range(0, len(thetas), IN_ONE_PASS)]
    while True:
        together = max(1, min(IN_ONE_PASS, block // min(USUAL, max(64, encoded.n)), len(thetas)))
        try:
            records = encoded.records.read_as(InPrecision(precision.__name__))
            sums = [_in_one_pass(records, statistic(together), some, width, precision) for some in parts]
            return np.concatenate(sums)
        except (MemoryError, RuntimeError) as error:
            exhausted = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
            if not exhausted or block <= 1:
                raise
            block //= 2


def passes(candidates: int) -> int:
    """Over the records, for so many candidates."""
    return math.ceil(candidates / IN_ONE_PASS)


def _in_one_pass(records: Any, statistic: Any, thetas: Array, width: int, precision: type) -> Integers:
    """Candidates are filled up to whole groups, so that one compilation serves all of them."""
    filled = np.concatenate([thetas, np.zeros((-len(thetas) % statistic.together, thetas.shape[1]))])
    with np.errstate(over="ignore"):
        asked: Any = filled.astype(precision)
    return np.asarray(records.sum(statistic, asked, width).reshape(len(filled), -1)[: len(thetas)])


# ── sums over the records ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class InPrecision(Reading):
    """(X, y) in the loss's precision; what overflows there becomes infinite, and its cost is cut off like any other."""

    precision: str
    columns: tuple[str, ...] = ()

    def of_block(self, X: Any, y: Any, weight: Any) -> tuple[Any, Any]:
        with np.errstate(over="ignore"):
            return tuple(jnp.asarray(np.asarray(values).astype(self.precision)) for values in (X, y))  # type: ignore[return-value]

    def placed(self, weight: Any) -> Any:
        return jnp.asarray(weight)


class UnderCandidates(Compiled):
    """A sum under each candidate, whose entries have at most the size ``width``; ``together`` candidates at a time."""

    together: int

    def bound(self, thetas: Any, width: Any) -> float:
        return float(width)

    def blocks_a_call(self, values: int) -> int:
        return 1  # a block under many candidates fills a call

    def of_block(self, X: Any, y: Any, weight: Any, thetas: Any, width: Any) -> Any:
        groups = range(0, len(thetas), self.together)
        parts = [
            super(UnderCandidates, self).of_block(X, y, weight, thetas[g : g + self.together], width) for g in groups
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class Costs(UnderCandidates):
    """Σ ⌊W·(ℓ − low)/Δ⌉, cut to [0, W], for each candidate."""

    loss: Any
    together: int

    def block(self, X: Any, y: Any, weight: Any, thetas: Any, width: Any) -> Any:
        low, high = self.loss.interval
        share = (self.loss.values(thetas, X, y) - low) / (high - low)
        share = jnp.where(share >= 0.0, jnp.minimum(share, 1.0), 0.0)  # NaN too counts as the lowest cost
        # W is at most 2^17, so its product with a share in [0, 1] is rounded to a whole number in [0, W].
        return (jnp.rint(share * width) * weight).sum(axis=1)
