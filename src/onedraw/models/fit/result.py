"""What a published fit says: estimate, standard errors, intervals, tests, and a normal posterior. All of it is free.

Given the mode θ̃, the information Ĥ and the variability K̂ at it with ridge Λ, noise σ and closing
noise ω known from the plan:

    estimate      θ̂ = (I + ΛĤ⁻¹)θ̃           the ridge's pull taken back, as far as Ĥ is known
    covariance    Ĥ⁻¹(K̂ + σ²I + ω²(Ĥ+ΛI)²)Ĥ⁻¹

mapped to the columns by the published coordinates. Multipliers come from simulating this very construction around what
was published, noise of Ĥ and K̂ included. A coefficient is refused an interval where directions about which the records
say too little carry more than 5 % of its variance. A declared prior stays: only the ridge is taken back.

Levels of a category whose published count may be 0 are *set aside*: their coefficients stay as the mode has them, or are
left out if they are not plausible, and the rest is as if they were known. Records that are not there, or a few, say nothing about the other
coefficients; without this the noise of Ĥ along a level without records would refuse all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.errors import PromiseRefused
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.models.sums.exact_sums import deviation, drawn_matrices, matrix_deviation, mixed_variances, symmetric
from onedraw.privacy.numbers import confidence_level

from .losses import robust_note, robust_words
from .problem import Aside, Coordinates, FitProblem, Published, coordinates, positive

INFORMATIVE, EDGES = 7.0, 2.25
"""A direction is trusted if its measured information is at least 7 deviations s of its noise, and at least 2¼ times √(2p)·s, to which the
noise of a p×p matrix alone reaches, …"""

LARGEST_SWING = 0.5
"""… if a standard error along it moves the scores of the rows it comes from by at most this: their curvature, pq or a rate, has then
moved by an eighth on average, and not by a half …"""

LARGEST_PULL = 0.1
"""… and if the ridge pulled the scores by at most this along the direction, and those of all rows alike: the chance of a class, and
the information with it, has then moved by less than a tenth."""

UNINFORMED_SHARE = 0.05
"""A coefficient has an interval if directions that are not trusted carry at most this share of its variance."""

LARGEST_COEFFICIENT = 3.0
"""Log-odds or log-rate of a level that is counted on where nothing is known: odds of 20 to 1. For numbers it is the
half-range of the responses."""

SIMULATIONS = 300
"""Informations and variabilities drawn again behind a multiplier. Given each, the rest is normal and is averaged exactly: the
multiplier's own error is then well below 1 %."""

SEED = 20261115
"""The simulation is post-processing of public numbers: a fixed seed gives everybody the same interval."""


class Known(NamedTuple):
    """What an information that was measured says, in the mode's own coordinates and along its eigenvectors."""

    found: Array
    """Eigenvalues of the published information (and the prior's), without what is set aside."""
    bounded: Array
    """The same kept away from 0, where noise may have brought them."""
    axes: Array
    noise: float
    """Standard deviations of the noise: of an entry of the information, s_H, …"""
    tilt: float
    closing: float
    """… of the mode's and of the closing one."""
    variability: Array
    """K̂; where it was not measured Ĥ, which is at least as large under the model."""
    sampling: Array
    privacy: Array
    """The covariance of the estimate, in two parts that add up."""
    errors: Array
    """Standard errors along the axes, from the information as it was published."""


@dataclass(frozen=True, eq=False)
class FitResult(NormalEstimates):
    """A fit in encoded coordinates, or in others by a public linear map ``change``, scale and shift (`in_units`)."""

    problem: FitProblem
    published: Published
    where: Coordinates
    """The mode's own coordinates."""
    aside: Aside
    """Levels whose published count is within its noise of 0, in the coordinates of the mode."""
    change: Array
    shift: Array

    @classmethod
    def of(cls, problem: FitProblem, published: Published) -> FitResult:
        """In the coordinates of encoded rows, responses in their declared unit. Of a level that is set aside, all of a coefficient
        beyond what is plausible is taken off: the mode's noise divided by next to nothing. Rows of other levels are predicted
        as before."""
        where, layout = coordinates(problem, published), problem.layout
        noise = deviation(problem.numbers["mean_noise"], problem.moment_columns.count, pure=True) / problem.n
        encoded = layout.encoded_coefficients(where.mean, where.root, where.stretch)
        aside = Aside.of(layout, published.mean, noise, encoded, problem.loss.blocks)
        found = cls(problem, published, where, aside, *problem.encoded_map(where))
        # of a level about which nothing is known: in log-odds or log-rates, or the half-range of the responses
        largest = problem.response_scale if problem.loss.unit == "measured" else LARGEST_COEFFICIENT
        return replace(found, shift=found.shift - aside.implausible(found.estimate, largest))

    def in_units(self, change: Array, scale: Array, shift: Array) -> FitResult:
        """The same for scale·(change @ θ) + shift."""
        full = scale[:, None] * change
        return replace(self, change=full @ self.change, shift=full @ self.shift + shift)

    # ── the mode's own coordinates ─────────────────────────────────────────────────────────────────────────

    @property
    def informed(self) -> bool:
        """Whether the information was measured; without it there is an estimate and nothing else."""
        return self.published.information is not None

    def estimand_of(self, target: str | None = None) -> str:
        """Return what is estimated, in words: the minimizer of a weighted loss."""
        return robust_words(self.problem.loss, target)

    @property
    def privacy_is_known(self) -> Mask:
        """Return whether the privacy part can be stated: not for levels that are set aside."""
        if not self.informed:
            return np.zeros(len(self.change), dtype=bool)
        return np.asarray((np.abs(self.change).sum(axis=1) > 0.0) & ~self.aside.touched(self.change))

    @property
    def remark(self) -> str:
        """Return how the minimizer of a weighted loss differs from what people usually mean."""
        return robust_note(self.problem.loss)

    @cached_property
    def _known(self) -> Known:
        problem, published, axes_of = self.problem, self.published, self.aside.spectrum
        if published.information is None:
            raise PromiseRefused(
                "This fit has an estimate but no standard errors: the information was not measured. Release it with "
                "intervals=True, with more records or with a larger ε."
            )
        numbers, size, ridge = problem.numbers, problem.size, problem.numbers["ridge"]
        noise = matrix_deviation(numbers["information_noise"], size, pure=True)
        tilt, closing = (deviation(numbers[name], size, pure=True) for name in ("mode_noise", "closing_noise"))
        prior = problem.penalty(self.where)[0] - ridge * np.eye(size)
        found, axes = axes_of(symmetric(published.information, size) + prior)
        bounded = np.maximum(found, max(noise, 1e-12))
        variability = (axes * bounded) @ axes.T
        if published.variability is not None:
            variability = positive(symmetric(published.variability, size))
        inverse, curved = (axes / bounded) @ axes.T, (axes * (bounded + ridge)) @ axes.T
        hidden = tilt**2 * np.eye(size) + closing**2 * curved @ curved
        sampling, privacy = inverse @ variability @ inverse, inverse @ hidden @ inverse
        errors = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", axes, sampling + privacy, axes), 0.0))
        return Known(found, bounded, axes, noise, tilt, closing, variability, sampling, privacy, errors)

    @cached_property
    def trusted(self) -> Mask:
        """Return which directions the records say enough about: those whose information stands out of its noise, is still that of the
        estimate after the ridge's pull was taken back, and does not hang on the estimate's own error.

        *Pull*: on the direction itself, and on the scores of all rows alike, which moves the information of every direction.

        *Reach*: how far the rows go along a direction from which its information comes. In measured coordinates all
        directions have unit variance. One with less information than the usual has it from few rows, a share of about
        λ/(λ_usual·r²) if their weights are at work, which reach r·√(λ_usual/λ) along it. Where the estimate's own error moves
        their scores far, the curvature measured at the estimate is not that at the truth. Directions of several classes are
        not alike, and are not held against each other.
        """
        known, loss, common, mode = self._known, self.problem.loss, 0.0, self.published.mode
        if loss.blocks == 1 and self.problem.layout.intercept and loss.unit != "measured":
            common = abs(float((self._mode - mode)[-1])) * self.where.stretch
        pulled = np.maximum(np.abs(self._back(known.found) * (mode @ known.axes)), common)
        enough = (known.found >= least_information(len(known.found)) * known.noise) & (pulled <= LARGEST_PULL)
        if loss.blocks > 1:
            return np.asarray(enough)
        usual = np.maximum(np.median(known.bounded) / known.bounded, 1.0)
        reach = self.problem.numbers["row_bound"] * np.sqrt(usual)
        return np.asarray(enough & (known.errors * reach <= LARGEST_SWING))

    def _back(self, found: Array) -> Array:
        """How much of a mode is added to it along each direction, the ridge's pull taken back: Λ/λ, or Λλ/(λ² + s²) where the
        noise of λ counts. Weak directions are pulled at most, and coefficients that are given an interval may depend on
        them a little."""
        information = np.maximum(found, 0.0)
        return np.asarray(
            self.problem.numbers["ridge"] * information / (information**2 + self._known.noise**2 + 1e-300)
        )

    @cached_property
    def _mode(self) -> Array:
        """The estimate in the mode's coordinates: θ̃ + ΛĤ⁻¹θ̃, as far as Ĥ is known (`_back`)."""
        mode = self.published.mode
        if not self.informed:
            return mode
        axes = self._known.axes
        return np.asarray(mode + (mode @ axes * self._back(self._known.found)) @ axes.T)

    # ── what people read ───────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def estimate(self) -> Array:
        return np.asarray(self.change @ self._mode + self.shift)

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        sampling, privacy = (self.change @ part @ self.change.T for part in (self._known.sampling, self._known.privacy))
        return np.asarray(sampling), np.asarray(privacy)

    @cached_property
    def given(self) -> Mask:
        """Per coefficient: whether directions with too little information carry at most 5 % of its variance."""
        if not self.informed:
            return np.zeros(len(self.change), dtype=bool)
        found = self.doubtful_shares <= UNINFORMED_SHARE
        return np.asarray(found & (np.abs(self.change).sum(axis=1) > 0.0) & ~self.aside.touched(self.change))

    @property
    def doubtful_shares(self) -> Array:
        """The part of a coefficient's variance along directions that are not trusted."""
        carried = (self.change @ self._known.axes) ** 2 / self._known.bounded**2
        return np.asarray(carried[:, ~self.trusted].sum(axis=1) / np.maximum(carried.sum(axis=1), 1e-300))

    def multiplier(self, level: float) -> Array:
        """How many standard errors an interval of this level reaches, coefficient by coefficient: as many as the simulation says, and at
        least as many as the normal's, which it is for those that are refused an interval."""
        found = np.full(len(self.change), special.ndtri(0.5 + confidence_level(level) / 2.0))
        if self.given.any():
            found[self.given] = np.maximum(_covering(*self._pivots, level), found[self.given])
        return found

    def reach(self, rows: Array, level: float) -> Array:
        """How far the intervals of rows @ coefficients reach to each side; NaN for rows that rest on what the records say too
        little about. As many standard errors as the simulation says of the trusted direction that needs most."""
        found = self.in_units(rows, np.ones(len(rows)), np.zeros(len(rows)))
        axes = self._known.axes.T
        directions = replace(self, change=axes, shift=np.zeros(len(axes)))
        return np.asarray(directions.multiplier(level).max() * np.hypot(*found.errors))

    # ── simulation around what was published ───────────────────────────────────────────────────────────────

    @cached_property
    def _pivots(self) -> tuple[Array, Array]:
        """(mean, deviation) of (estimate − truth)/standard error of the coefficients given, as if what was published were the
        truth: one of each for every information and variability drawn again, given which the estimate is normal."""
        p, numbers, change = self.problem.size, self.problem.numbers, self.change[self.given]
        generator = np.random.default_rng(SEED)
        axes, variability = self._known.axes, self._known.variability
        information = self.aside.within((axes * self._known.bounded) @ axes.T)
        tilts, closings = (
            mixed_variances(generator, numbers[name], p, SIMULATIONS, pure=True)[:, None, None]
            for name in ("mode_noise", "closing_noise")
        )
        noisy = information + drawn_matrices(generator, numbers["information_noise"], p, SIMULATIONS, pure=True)
        again = noisy
        if self.published.variability is not None:
            drawn = drawn_matrices(generator, numbers["variability_noise"], p, SIMULATIONS, pure=True)
            again = variability + drawn
        back, errors = self._repeated(change, noisy, positive(again))
        shrunk = np.linalg.inv(information + self.problem.numbers["ridge"] * np.eye(p))
        bias = back @ (shrunk @ information @ self._mode) - change @ self._mode
        answer = back @ shrunk
        values, axes = np.linalg.eigh(variability)
        root = (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        spread = (answer @ root) ** 2 + tilts * answer**2 + closings * back**2
        return bias / errors, np.sqrt(spread.sum(axis=-1)) / errors

    def _repeated(self, change: Array, information: Array, variability: Array) -> tuple[Array, Array]:
        """(simulations, coefficients, mode) and (simulations, coefficients): how coefficients follow a mode, its pull taken
        back, and their standard errors, by many informations and variabilities."""
        found, axes = self.aside.spectrum(information)
        places, tilt, closing = range(axes.shape[-1]), self._known.tilt, self._known.closing
        values = np.maximum(found, max(self._known.noise, 1e-12))
        along = np.einsum("ci,sij->scj", change, axes)
        back = change + (along * self._back(found)[:, None, :]) @ np.swapaxes(axes, 1, 2)
        scaled = along / values[:, None, :]
        inner = np.swapaxes(axes, 1, 2) @ variability @ axes
        inner[:, places, places] += tilt**2 + (closing * (values + self.problem.numbers["ridge"])) ** 2
        return back, np.sqrt(np.maximum(np.einsum("scj,scj->sc", scaled @ inner, scaled), 1e-300))


def least_information(size: int) -> float:
    """How many deviations of its noise the information of a direction must reach in a matrix of this size."""
    return max(INFORMATIVE, EDGES * math.sqrt(2.0 * size))


def _covering(means: Array, deviations: Array, level: float) -> Array:
    """The m with P(|pivot| ≤ m) = level on average over normals of these means and deviations, by halving: between the
    narrowest's own, and one that is enough for each."""
    normal = special.ndtri(0.5 + level / 2.0)
    low, high = normal * deviations.min(axis=0), np.abs(means).max(axis=0) + normal * deviations.max(axis=0)
    for _ in range(20):
        middle = 0.5 * (low + high)
        covered = special.ndtr((middle - means) / deviations) - special.ndtr((-middle - means) / deviations)
        enough = covered.mean(axis=0) >= level
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)
