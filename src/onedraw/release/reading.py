"""Reading a certificate's draws in the units of the columns: post-processing by public numbers alone, which costs nothing.

The certificate keeps the draw as drawn; what people read has the coefficients of the original columns and the response's
own centre and unit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import WrongCall
from onedraw.mechanisms import Moments, PerturbedMode, Plan
from onedraw.mechanisms.candidates_layout import shares
from onedraw.models import Model
from onedraw.models.fit.result import FitResult
from onedraw.models.moments.result import MomentsResult

from .certificate import Certificate

Array = NDArray[np.float64]


def column_units(certificate: Certificate, model: Model) -> tuple[Array, Array, Array]:
    """(change, scale, shift) with ``scale·(change @ draw) + shift`` the draw as people read it."""
    measure = certificate.data.measure
    return model.column_units() if measure is None else model.column_units(measure.centre, measure.unit)


def readable_draws(certificate: Certificate, model: Model) -> Array:
    """All draws, one row each, in the units of the columns."""
    change, scale, shift = column_units(certificate, model)
    return scale * (np.array(certificate.draw.values, dtype=np.float64) @ change.T) + shift


def fit_of(certificate: Certificate, plan: Plan) -> FitResult:
    """A release in stages as people read it: estimate, errors and tests in the units of the columns. Free post-processing."""
    if certificate.draw.stages is None or not isinstance(plan.mechanism, PerturbedMode):
        raise WrongCall(
            f"This release is a draw by {certificate.mechanism.name}, not a fit: it has no information to build on. Use "
            "its draws, or release with mechanism='fit'."
        )
    return plan.mechanism.result(plan, certificate.draw.stages).in_units(*column_units(certificate, plan.model))


def moments_of(certificate: Certificate, plan: Plan) -> MomentsResult:
    """Released moments as people read them, with their errors, in the units of the columns. Free post-processing."""
    if certificate.draw.stages is None or not isinstance(plan.mechanism, Moments):
        raise WrongCall(
            f"This release is by {certificate.mechanism.name}, not one of means and correlations. Release with --model "
            "covariance, or fit a DPCovariance."
        )
    return plan.mechanism.result(plan, certificate.draw.stages).in_units(*plan.model.range_units())


def average(draws: Array, plan: Plan) -> Array:
    """The mean of the draws; of a selection's picks the one weighted like their rounds, which are public."""
    picks = getattr(plan.mechanism, "publish", None) == "picks" and plan.draws > 1
    weights = [float(share) for share in shares(len(draws))] if picks else None
    values: Array = np.average(draws, axis=0, weights=weights)
    return values
