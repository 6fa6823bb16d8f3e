"""The interval that a release's own draws give, in the units of the columns: post-processing, it costs nothing.

The plan is derived again from the certificate, the interval of mathematics-2 D computed in the coordinates of the draw
(`interval`), and brought into the columns' units by the public numbers the certificate carries.
"""

from __future__ import annotations

import numpy as np

from onedraw.errors import PromiseRefused
from onedraw.mechanisms import AddedNoise, ExponentialQuantiles, Moments, PerturbedMode
from onedraw.models.fit.result import FitResult
from onedraw.models.moments.result import MomentsResult
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.release.certificate import Certificate
from onedraw.release.reading import column_units, fit_of, moments_of
from onedraw.release.verification import rebuild_plan

from .quantiles import quantile_interval
from .replicated import Interval, Parts, interval
from .tables import table_interval


def release_interval(certificate: Certificate, level: float = 0.95, *, noise: float | None = None) -> Interval:
    """One entry for each released number; `PromiseRefused` says why where no interval can be vouched for. ``noise`` is the
    records' standard deviation, for means released with plain noise, where it is publicly known."""
    plan = rebuild_plan(certificate)
    if isinstance(plan.mechanism, ExponentialQuantiles):
        return quantile_interval(certificate, plan, level)
    if isinstance(plan.mechanism, PerturbedMode):
        return fit_interval(fit_of(certificate, plan), level)
    if isinstance(plan.mechanism, Moments):
        return moments_interval(moments_of(certificate, plan), level)
    if isinstance(plan.model, ClassifierScores | RegressorScores):
        raise PromiseRefused(
            "These are counts behind an evaluation; its figures have the intervals. Read it with onedraw.release.intervals.evaluations.scores_of."
        )
    if isinstance(plan.mechanism, AddedNoise):
        low, high, sampling, privacy = table_interval(plan, certificate.draw.stages or {}, level, noise=noise)
        return Interval(np.array(certificate.draw.values[0]), low, high, Parts(sampling, privacy, np.zeros(len(low))))
    draws = np.array(certificate.draw.values, dtype=np.float64)
    change, scale, shift = column_units(certificate, plan.model)
    found = interval(draws, plan, level, functional=change if hasattr(plan.model, "in_column_units") else None)
    centre, low, high = (shift + scale * np.asarray(part) for part in found[:3])
    return Interval(centre, low, high, Parts(*(scale * np.asarray(part) for part in found.parts)))


def moments_interval(moments: MomentsResult, level: float) -> Interval:
    """Of published moments; NaN for correlations with a column of which noise leaves too little."""
    ends = moments.conf_int(level)
    return Interval(moments.values, ends[:, 0], ends[:, 1], Parts(*moments.errors, np.zeros(len(ends))))


def fit_interval(fit: FitResult, level: float) -> Interval:
    """Of a fit, from the information it published; NaN for coefficients about which the records say too little."""
    ends = fit.conf_int(level)
    return Interval(
        fit.estimate, ends[:, 0], ends[:, 1], Parts(fit.sampling_errors, fit.privacy_errors, np.zeros(len(ends)))
    )
