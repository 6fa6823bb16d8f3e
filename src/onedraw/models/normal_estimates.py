"""Estimates that are normal around what they estimate, with a covariance in two parts: intervals, tests and draws.

What a release in stages publishes comes down to this, whatever its method: an estimate, the covariance that sampling gives
it, the covariance that noise for privacy adds, and which coefficients are given an interval.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np
from scipy import special

from onedraw.arrays import Array, Mask
from onedraw.errors import WrongCall
from onedraw.models.priors import Gaussian
from onedraw.privacy.numbers import confidence_level


class Reason(StrEnum):
    """Why a coefficient has no interval."""

    RARE = "few records have the levels"
    NARROW = "the column varies little over its declared range"
    ALIKE = "the noise cannot tell the columns apart"
    LEVELS = "the noise cannot tell levels of one category apart"
    BASE = "few records have the first level of a category, which the others are compared with"
    MERGED = "few records have the levels, which are counted with the base level"
    CONSTANT = "the column has one possible value"
    UNSETTLED = "the steps did not converge along the columns"
    NOISE = "the noise hides how the records vary along the columns"


@dataclass(frozen=True)
class Refusal:
    """Reason why a coefficient has no interval, in terms of the columns that cause it.

    Parameters
    ----------
    reason : Reason
        What is wrong with the columns.
    causes : tuple of int
        Indices of the columns; empty if no few columns cause it.
    factor : float
        About how many times ε gives the interval; infinity if no larger ε is known to, NaN if that is not known.
    share : float
        Published share of the records that have the rarest of the levels; NaN if there is none.
    """

    reason: Reason = Reason.NOISE
    causes: tuple[int, ...] = ()
    factor: float = math.nan
    share: float = math.nan


def kept_words(share: float) -> str:
    """Return what predictions keep of the slopes, in a sentence."""
    if share <= 0.0:
        return (
            "Predictions are those of the level alone, because noise explains all of the slopes. This does not show that the columns "
            "have no effect; coefficients and intervals are not changed."
        )
    return (
        f"For predictions the slopes are multiplied by {share:.3g} and the intercept moves towards the level, because noise makes "
        "slopes too long; coefficients and intervals are not changed."
    )


class NormalEstimates(abc.ABC):
    """Coefficients as people read them."""

    @property
    @abc.abstractmethod
    def estimate(self) -> Array: ...

    @property
    @abc.abstractmethod
    def parts(self) -> tuple[Array, Array]:
        """Return the covariances that sampling and that privacy give the whole estimate."""

    @property
    @abc.abstractmethod
    def given(self) -> Mask:
        """Return which coefficients are given an interval."""

    @property
    def kept(self) -> float:
        """Return the share of the slopes that predictions keep; 1 where they use the estimate itself."""
        return 1.0

    @property
    def predicting(self) -> Array:
        """Return the coefficients by which new records are predicted: the estimate, or one that is drawn back to the level."""
        return self.estimate

    @property
    def informed(self) -> bool:
        """Return whether what standard errors are made of was published."""
        return True

    def estimand_of(self, target: str | None = None) -> str:
        """Return what is estimated, in words, about this column."""
        return "coefficients" + (f" of {target}" if target else "")

    @property
    def estimand(self) -> str:
        """Return what is estimated, in words."""
        return self.estimand_of()

    @property
    def remark(self) -> str:
        """Return what to know about what is estimated, in a sentence; empty where there is nothing to say."""
        return ""

    @property
    def about_predictions(self) -> str:
        """Return how predictions differ from the estimate, in a sentence; empty where they do not."""
        return kept_words(self.kept) if self.kept < 1.0 else ""

    @property
    def dependence(self) -> str:
        """Return how far the estimate depends on far-out records, in a sentence; empty where that was not measured."""
        return ""

    @property
    def level_shares(self) -> Array | None:
        """Return the published noisy share of the records that have each column's level; None if none were published.

        Entries of columns that are numbers mean nothing.
        """
        return None

    @property
    def refusals(self) -> tuple[Refusal | None, ...]:
        """Return why each coefficient has no interval; None for those that are given one."""
        return tuple(None if given else Refusal() for given in self.given)

    @abc.abstractmethod
    def in_units(self, change: Array, scale: Array, shift: Array) -> Self:
        """Return the same for scale·(change @ coefficients) + shift."""

    @abc.abstractmethod
    def reach(self, rows: Array, level: float) -> Array:
        """Return how far intervals of rows @ coefficients reach to each side; NaN for rows that are given none."""

    @abc.abstractmethod
    def multiplier(self, level: float) -> Array:
        """Return how many standard errors an interval of this level reaches, for each coefficient."""

    @cached_property
    def covariance(self) -> Array:
        """Return the covariance of the whole estimate; rows of coefficients without an interval are not to be relied on."""
        sampling, privacy = self.parts
        return np.asarray(sampling + privacy)

    @cached_property
    def standard_errors(self) -> Array:
        """Return standard errors, NaN where none can be given."""
        return np.where(self.given, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.nan)

    @property
    def errors(self) -> tuple[Array, Array]:
        """Return (sampling, privacy): what either alone would leave of the standard errors.

        The noise for privacy is known, so its part is stated for coefficients without an interval too, as far as
        `privacy_is_known`; where `privacy_is_least` it is at least this large.
        """
        sampling, privacy = (np.sqrt(np.maximum(np.diag(part), 0.0)) for part in self.parts)
        return np.where(self.given, sampling, np.nan), np.where(self.privacy_is_known, privacy, np.nan)

    @property
    def privacy_is_known(self) -> Mask:
        """Return whether the part of each coefficient's error that privacy adds can be stated."""
        return self.given

    @property
    def privacy_is_least(self) -> Mask:
        """Return whether that part may be larger, because it rests on moments that may be noise."""
        return np.asarray(self.privacy_is_known & ~self.given)

    def conf_int(self, level: float = 0.95) -> Array:
        """Return (coefficients, 2): the ends of intervals, NaN where none can be given."""
        reach = self.multiplier(level) * self.standard_errors
        return np.column_stack([self.estimate - reach, self.estimate + reach])

    @cached_property
    def p_values(self) -> Array:
        """Return two-sided p-values of "this coefficient is 0", by errors as much larger as the 95 % multiplier says."""
        inflated = self.standard_errors * self.multiplier(0.95) / special.ndtri(0.975)
        return np.asarray(2.0 * special.ndtr(-np.abs(self.estimate) / inflated))

    def wald(self, places: Sequence[int]) -> tuple[float, int, float]:
        """Return (statistic, degrees of freedom, p) of "all these coefficients are 0": for the levels of one category, say."""
        chosen = [place for place in places if self.given[place]]
        if len(chosen) < len(places):
            return math.nan, len(places), math.nan
        inflation = float(np.max(self.multiplier(0.95)[chosen]) / special.ndtri(0.975)) ** 2
        values = self.estimate[chosen]
        statistic = float(values @ np.linalg.solve(self.covariance[np.ix_(chosen, chosen)], values)) / inflation
        return statistic, len(chosen), float(special.chdtrc(len(chosen), statistic))

    def posterior(self, size: int, rng: np.random.Generator | None = None, *, prior: Gaussian | None = None) -> Array:
        """Return (size, coefficients): draws from N(estimate, covariance), the posterior under a flat prior.

        Parameters
        ----------
        prior : Gaussian, optional
            A prior on these coefficients, chosen now. Draws cost nothing.
        """
        generator = np.random.default_rng() if rng is None else rng
        centre, covariance = self.estimate, self.covariance
        if prior is not None:
            if not isinstance(prior, Gaussian) or prior.radius is not None:
                raise WrongCall(
                    "prior must be od.Gaussian(scale=…) or od.Gaussian(scales=[…], mean=…), without a radius."
                )
            # the product of both normal laws without inverting either: with P the prior's covariance the gain is C(C + P)⁻¹
            gain = np.linalg.solve(covariance + np.diag(1.0 / prior.precision(len(centre))), covariance).T
            centre, covariance = centre + gain @ (prior.location(len(centre)) - centre), covariance - gain @ covariance
        values, axes = np.linalg.eigh(covariance)
        standard = generator.standard_normal((size, len(values)))
        return np.asarray(centre + (standard * np.sqrt(np.maximum(values, 0.0))) @ axes.T)


def normal_multiplier(level: float, count: int) -> Array:
    """Return the normal's quantile for two-sided intervals, once for each coefficient."""
    return np.full(count, special.ndtri(0.5 + confidence_level(level) / 2.0))
