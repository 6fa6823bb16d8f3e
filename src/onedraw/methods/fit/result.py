"""What published averaged steps say: estimate, standard errors, intervals, and what is estimated. All of it is free.

With H the information and K the covariance of the scores, both as published and drawn towards what measured coordinates
imply as far as their noise is large (James and Stein 1961). For classes and counts H is raised along directions in which its noise could
hide half of what is expected (`raise_hidden`). For classes K is at least H: both are the same if the model holds, and the shortening of
squared scores takes from K along rare levels what it leaves in H. Counts may scatter less than H says, so theirs is left. Then:

    estimate    θ̄, the average of the steps
    sampling    H⁻¹KH⁻¹
    privacy     H⁻¹·σ²·H⁻¹ (σ the noise of the average), and the allowance

**Allowance.** The early steps shorten scores to half the bound. Where scores have tails, both averages differ. If tails fall
so that second moments exist, shortening to B moves the estimate by at most as much as lies between B/2 and B: the bias b(B)
falls at least as 1/B. So the difference, as far as it is more than noise, is added to the standard errors. Where counts chose
the bound, few scores are longer, and shortening moves the estimate about as much as noise does (sizes.py): then at most
`LARGEST_ALLOWANCE` times as much is added.

**What is estimated.** Scores longer than twice the bound are counted, with noise. If there are more than noise explains
(`LARGEST_COUNT`), tails are so long that shortening may move the estimate by more than the allowance sees, and the estimate is
*named*: least squares, or maximum likelihood, with the influence of each record limited. `limited` says by how many standard
errors those scores might move it if all pointed the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onedraw.arrays import Array, Mask
from onedraw.models.normal_estimates import NormalEstimates, Refusal, normal_multiplier
from onedraw.models.sums.exact_sums import symmetric

from .coordinates import (
    LARGEST_PRIOR,
    PLAUSIBLE,
    PLAUSIBLE_LEVEL,
    First,
    StepsProblem,
    Where,
    centre_of,
    encoded_map,
    first_of,
    pull_of,
    where_of,
)
from .effects import Stretch, stretch_of
from .matrices import draw_towards, lower_eigenvalues, raise_eigenvalues, raise_hidden, raise_to
from .prediction import POINTS, is_drawn_back, share_kept
from .published import StepsPublished
from .refusals import SHORT_BOUND, dependence_words, refusals_of
from .sizes import EARLY_STEPS, SKIPPED_STEPS, STEPS
from .steps import Path, information_at, way_left

WEAK_SHARE = 0.05
"""A coefficient of a line or a quantile has no interval if directions whose moments may be noise carry more than this share of it; of others
see `coordinates.LARGEST_PRIOR`."""

FAR, LARGEST_COUNT = 2.0, 1.0
"""Scores longer than this many times the bound are counted, and more of them than this many deviations of the count's noise name
the estimate. Of tails that fall with the square of the length a quarter of `sizes.TAIL_TARGET` is beyond twice the bound: about
one deviation. Tails that fall faster leave fewer."""

LARGEST_ALLOWANCE = 2.0
"""Deviations of the noise, in the norm of all coefficients together, that the allowance is at most where counts chose the bound."""

LARGEST_WAY = 1.0
"""Standard errors that steps may have left of their way. Of the tables for deriving fewer than 4 in 1,000 intervals are refused for it, and
these held; in a simulated design whose odds fall steeply along a column with a long tail half of the way that was left is seen."""

LEAST_INFORMATION, LEAST_COVARIANCE = 0.01, 0.1
"""Eigenvalues of the information and of the covariance are raised to these shares of what is expected."""


@dataclass(frozen=True, eq=False)
class StepsResult(NormalEstimates):
    """A fit in encoded coordinates, or in others by a public linear map ``change`` and shift (`in_units`)."""

    problem: StepsProblem
    published: StepsPublished
    where: Where
    change: Array
    shift: Array

    @classmethod
    def of(cls, problem: StepsProblem, published: StepsPublished) -> StepsResult:
        """Return the result for encoded rows, responses in their declared unit."""
        problem = problem.with_known(published.known).with_bound(published.tail)
        where = where_of(problem, _first(problem, published), published.design)
        return cls(problem, published, where, *encoded_map(problem, where))

    @property
    def first(self) -> First:
        """Return the coordinates in which second moments were measured first."""
        return _first(self.problem, self.published)

    def in_units(self, change: Array, scale: Array, shift: Array) -> StepsResult:
        """Return the same for scale·(change @ θ) + shift."""
        full = scale[:, None] * change
        return replace(self, change=full @ self.change, shift=full @ self.shift + shift)

    @cached_property
    def estimate(self) -> Array:
        return np.asarray(self.change @ self.published.step + self.shift)

    @property
    def predicting(self) -> Array:
        step, level = self.published.step, self.where.level
        return np.asarray(self.change @ (level + self.kept * (step - level)) + self.shift)

    @cached_property
    def kept(self) -> float:
        if not is_drawn_back(self.problem):
            return 1.0
        present = np.logical_not(self.where.absent)
        among = np.ix_(present, present)
        noise = self._covariance + self._noise[0] ** 2 * self._noise_shape
        by_noise = float(np.trace(np.linalg.solve(self._information[among], noise[among])))
        moved = np.where(present, self.published.step - self.where.level, 0.0)
        way = [self.where.level + place * moved for place in np.linspace(0.0, 1.0, POINTS)]
        along = np.array([float(moved @ information_at(self.problem, self.where, theta)[0] @ moved) for theta in way])
        measured = float(moved @ self._information @ moved)
        return share_kept(along * (measured / max(along[-1], 1e-300)), by_noise)

    # In the coordinates of the steps.

    @property
    def _noise(self) -> tuple[float, float]:
        """Return the standard deviations of the noise of both averages, of the steps and of the early ones, before H⁻¹."""
        sizes = self.problem.sizes
        return sizes.step_noise / math.sqrt(STEPS), sizes.early_noise / math.sqrt(EARLY_STEPS - SKIPPED_STEPS)

    @cached_property
    def stretch(self) -> Stretch | None:
        """Return how scores were stretched for the effects of interest."""
        return stretch_of(self.problem, self.where)

    @cached_property
    def _noise_shape(self) -> Array:
        """Return the covariance of the steps' noise in units of `_noise`, before H⁻¹."""
        if self.stretch is None:
            return np.eye(self.problem.size)
        return self.stretch.noise

    @cached_property
    def _information(self) -> Array:
        problem, sizes = self.problem, self.problem.sizes
        expected, mean = information_at(problem, self.where, self.published.step)
        if self.published.information is None:
            return self._cautious(self._alone(expected, mean))
        measured = symmetric(self.published.information, problem.size)
        scale = float(np.clip((expected * measured).sum() / (expected**2).sum(), 0.3, 2.0))
        noise, towards = sizes.information_noise, self._alone(scale * expected, mean)
        drawn = self._alone(draw_towards(measured, scale * expected, noise), mean)
        lowered = lower_eigenvalues(drawn, problem.score.constants.caution * noise)
        if not problem.score.continuous:  # whether a quantile has intervals rests on moments alone
            lowered = raise_hidden(lowered, raise_eigenvalues(towards, LEAST_INFORMATION * mean), noise)
        return raise_eigenvalues(lowered, LEAST_INFORMATION * mean)

    def _alone(self, matrix: Array, mean: float) -> Array:
        """Return the matrix with directions that no record has apart from all others."""
        absent = self.where.absent
        apart = np.where(absent[:, None] | absent, 0.0, matrix)
        return np.asarray(apart + mean * np.diag(absent.astype(np.float64)))

    def _cautious(self, information: Array) -> Array:
        """Return a line's information with every second moment one deviation of its noise lower, at most halved.

        Directions that seem to vary enough for an interval are those whose noise was lucky.
        """
        spread = self.where.spread
        kept = np.sqrt(np.maximum(1.0 - self.where.spread_noise / np.maximum(spread, 1e-300), 0.5))
        kept = np.append(kept, np.ones(int(self.problem.layout.intercept)))
        return np.asarray(kept[:, None] * information * kept)

    @cached_property
    def _curvature(self) -> Array:
        """Return the information with the precision of a declared prior."""
        return np.asarray(self._information + pull_of(self.problem, self.where).precision)

    @cached_property
    def _covariance(self) -> Array:
        problem = self.problem
        shape, mean = self._information, problem.n * 1.0
        if problem.score.flat:
            shape = problem.n * problem.score.variance * np.diag(self._moments)
        else:
            mean = information_at(problem, self.where, self.published.step)[1]
        if self.published.covariance is None:
            return shape
        measured = symmetric(self.published.covariance, problem.size)
        scale = float(np.clip((measured * shape).sum() / (shape**2).sum(), 0.1, 10.0 * problem.records))
        drawn = self._alone(draw_towards(measured, scale * shape, problem.sizes.covariance_noise), scale * mean)
        drawn = raise_eigenvalues(drawn, LEAST_COVARIANCE * scale * mean)
        return raise_to(drawn, shape) if problem.score.variance_follows else drawn

    @property
    def _moments(self) -> Array:
        one = np.append(self.where.spread, np.ones(int(self.problem.layout.intercept)))
        return np.tile(one, self.problem.score.blocks)

    @cached_property
    def _inverse(self) -> Array:
        values, axes = np.linalg.eigh(self._curvature)
        return np.asarray((axes / np.maximum(values, 1e-9 * values.max())) @ axes.T)

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        answer = self.change @ self._inverse
        noise, _ = self._noise
        moved = self.change @ (self.published.step - self.published.early)
        allowance = self._misfit * np.outer(moved, moved)
        return answer @ self._covariance @ answer.T, noise**2 * answer @ self._noise_shape @ answer.T + allowance

    @cached_property
    def specification(self) -> float:
        """Return the mean square, over coefficients, of what lies between the two averages over its noise: about 1 where
        shortening scores changes nothing, above where the estimate depends on how far scores are shortened."""
        return self.specification_along(np.logical_not(self.where.absent))

    def specification_along(self, directions: Mask) -> float:
        """Return the specification test along these directions of the steps; NaN for none."""
        noise, early = self._noise
        moved = (self._curvature @ (self.published.step - self.published.early))[directions]
        if not len(moved):
            return math.nan
        over = np.linalg.solve(self._noise_shape[np.ix_(directions, directions)], moved)
        return float(moved @ over) / (len(moved) * (noise**2 + early**2))

    @property
    def dependence(self) -> str:
        if self.problem.score.fixed:
            return ""  # how much far-out records count is part of what is estimated
        # along the others steps do not settle, whatever far-out records do
        told = np.logical_not(np.logical_or(self.where.weak, self.where.absent))
        short = self.problem.sizes.early_bound < SHORT_BOUND * math.sqrt(self.problem.size)
        found = self.specification_along(told)
        chosen = self.problem.factor < 1.0
        return dependence_words(found, int(told.sum()), hidden=not told.all(), short=short, chosen=chosen)

    @property
    def _misfit(self) -> float:
        """Return the share of that difference, squared, which is more than noise and is allowed for."""
        if self.problem.score.fixed:
            return 0.0  # half the length estimates something else
        apart = max(self.specification, 1e-9)
        found = max(0.0, 1.0 - 1.0 / apart)
        if self.problem.factor == 1.0:
            return found
        noise, early = self._noise
        return min(found, LARGEST_ALLOWANCE**2 / (apart * (1.0 + (early / noise) ** 2)))

    @property
    def informed(self) -> bool:
        return self.problem.shortage <= 1.0 and self.published.covariance is not None

    @cached_property
    def given(self) -> Mask:
        if not self.informed:
            return np.zeros(len(self.change), dtype=bool)
        share = self._weak_shares
        told = self.privacy_is_known
        if self.problem.score.continuous:
            return np.asarray(told & (share <= WEAK_SHARE))
        return np.asarray(told & (self._prior_shares <= LARGEST_PRIOR) & self.settled)

    @cached_property
    def way_left(self) -> Array:
        """Return what is left of the way to the solution, in the coordinates of the steps; 0 for kinds without a likelihood."""
        if not self.problem.score.likelihood or self.published.information is None:
            return np.zeros(self.problem.size)
        path = Path(self.published.early, self.published.step)
        return way_left(self.problem, self.where, path, self._information)

    @property
    def settled(self) -> Mask:
        """Return whether steps came near each coefficient, so that no more than `LARGEST_WAY` of its error is left of their way."""
        errors = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.asarray(np.abs(self.change @ self.way_left) <= LARGEST_WAY * errors)

    @property
    def _weak_shares(self) -> Array:
        """Return the share of each coefficient that directions carry whose moments may be noise."""
        weak = self.change[:, self.where.weak] ** 2
        return np.asarray(weak.sum(axis=1) / np.maximum((self.change**2).sum(axis=1), 1e-300))

    @property
    def privacy_is_known(self) -> Mask:
        """Return whether a coefficient has a noise at all: not that of a column with one possible value."""
        return np.asarray(np.abs(self.change).sum(axis=1) > 0.0)

    @property
    def privacy_is_least(self) -> Mask:
        doubtful = (self._weak_shares > WEAK_SHARE) | (not self.informed)
        return np.asarray(self.privacy_is_known & ~self.given & doubtful)

    @property
    def level_shares(self) -> Array | None:
        if self.published.mean is None:
            return None
        return np.asarray(self.problem.moment_columns.centre(self.published.mean)[: self.problem.layout.columns])

    @cached_property
    def refusals(self) -> tuple[Refusal | None, ...]:
        return refusals_of(self)

    @property
    def _prior_shares(self) -> Array:
        """Return the share of each variance that a weak prior would carry; of effects of interest, the smaller of the
        shares with their noise and with that of all others: less noise along them must not refuse them."""
        found = self.prior_parts().sum(axis=1)
        return np.asarray(np.minimum(found, self.prior_parts(alike=True).sum(axis=1)) if self.stretch else found)

    def prior_parts(self, quieter: float = 1.0, *, alike: bool = False) -> Array:
        """Return that share along each direction of the steps, if the steps' noise were this many times smaller.

        Parameters
        ----------
        alike : bool
            Whether to take the largest noise in every direction.
        """
        size, information, shape = self.problem.size, self._information, self._noise_shape
        if alike:
            shape = np.linalg.eigvalsh(shape).max() * np.eye(size)
        prior = np.full((self.problem.score.blocks, self.problem.layout.width), PLAUSIBLE**-2.0)
        if self.problem.layout.intercept:
            prior[:, -1] = PLAUSIBLE_LEVEL**-2.0
        noise = self._covariance + (self._noise[0] / quieter) ** 2 * shape
        both = np.linalg.inv(information @ np.linalg.solve(noise, information) + np.diag(prior.ravel()))
        answer = self.change @ both
        whole = np.einsum("ij,ij->i", answer, self.change)
        return np.asarray(answer**2 * prior.ravel() / np.maximum(whole, 1e-300)[:, None])

    @property
    def doubtful_shares(self) -> Array:
        """Return the share of each coefficient that rests on what the records say too little about."""
        return np.where(self.given, 0.0, 1.0)

    def multiplier(self, level: float) -> Array:
        return normal_multiplier(level, len(self.change))

    def reach(self, rows: Array, level: float) -> Array:
        """Return how far the intervals of rows @ coefficients reach to each side; NaN for rows that are given none.

        Encoded rows with a level that was counted with the base level have none: nothing is known of what it adds.
        """
        found = self.in_units(rows, np.ones(len(rows)), np.zeros(len(rows)))
        merged = self.where.merged
        has_merged = (self._encoded(rows)[:, : len(merged)][:, merged] > 0.0).any(axis=1)
        return np.where(has_merged, np.nan, found.multiplier(level) * found.standard_errors)

    def _encoded(self, rows: Array) -> Array:
        """Return the encoded row of each of these combinations of coefficients; those of classes are multiples of one row."""
        blocks = rows.reshape(len(rows), -1, self.problem.layout.width)
        if not self.problem.score.of_classes or not self.problem.layout.intercept:
            return np.asarray(blocks[:, 0])
        times = blocks[:, :, -1]
        return np.asarray(
            (times[:, :, None] * blocks).sum(axis=1) / np.maximum((times**2).sum(axis=1), 1e-300)[:, None]
        )

    # What is estimated.

    @property
    def limited(self) -> float:
        """Return by how many standard errors scores far beyond the bound might move a coefficient, if all pointed the same way."""
        if self.published.count is None:
            return 0.0
        sizes, p = self.problem.sizes, self.problem.size
        moved = max(0.0, float(self.published.count[0])) * sizes.step_bound / math.sqrt(p * self.problem.n)
        sampling, privacy = (np.diag(part) for part in self.parts)
        usable = sampling > 0.0
        ratio = float(np.median(np.sqrt((sampling + privacy)[usable] / sampling[usable]))) if usable.any() else 1.0
        return moved / ratio

    @property
    def reached(self) -> bool:
        """Return whether the coefficients are those of least squares, maximum likelihood or the quantile itself."""
        count = self.published.count
        return count is None or bool(count[0] <= LARGEST_COUNT * self.problem.sizes.count_noise)

    @property
    def share_limited(self) -> tuple[float, float]:
        """Return the share of records whose score is longer than twice the bound, and its noise."""
        count = 0.0 if self.published.count is None else float(self.published.count[0])
        return max(0.0, count) / self.problem.n, self.problem.sizes.count_noise / self.problem.n

    def estimand_of(self, target: str | None = None) -> str:
        """Return what is estimated, in words, about this column."""
        merged = ", rare levels counted with the base level" if self.where.merged.any() else ""
        limited = "" if self.reached else ", with the influence of single records limited"
        return f"{self.problem.estimand_of(target)}{merged}{limited}"

    @property
    def remark(self) -> str:
        """Return what to know about that, in a sentence; empty where there is nothing to say."""
        if self.reached:
            return " ".join(filter(None, (self.problem.score.estimand_note, self._about_persons)))
        share, noise = self.share_limited
        return (
            f"About {100 * share:.2g} % (± {100 * 2 * noise:.2g}) of the records are so far out that "
            f"their influence is limited, and without the limit a coefficient could differ by up to about {self.limited:.1g} "
            "standard errors. Narrower bounds or the logarithm of the response may help."
            f"{' ' if self._about_persons else ''}{self._about_persons}"
        )

    @property
    def _about_persons(self) -> str:
        """Return what standard errors take for granted of a person's records."""
        if self.problem.records == 1 or self.problem.persons:
            return ""
        return (
            "Standard errors take the records of one person for independent of each other; where they are alike, intervals are "
            "too narrow. Name the column of persons in the schema (person:, with max_records:)."
        )


def _first(problem: StepsProblem, published: StepsPublished) -> First:
    centre = centre_of(problem, published.mean, published.level)
    return first_of(problem, centre, published.moments, published.level)
