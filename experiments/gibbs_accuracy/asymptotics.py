"""What a Gibbs draw's error will look like for large n: its covariance, before it is made.

Source: Minami et al. (NIPS 2016), supplement C.1, Theorem 16. The minimiser θ̂ of the summed
loss has covariance H⁻¹KH⁻¹/n around the truth, the draw of weight w has covariance (wH)⁻¹/n around θ̂ (not around θ₀,
as (C.3) prints: errata 23), and the two add:

    Cov(θ̃)  ≈  (H⁻¹KH⁻¹ + H⁻¹/w)/n,        H = E[∇²ℓ],  K = E[∇ℓ ∇ℓᵀ]  at the truth.

For a negative log-likelihood of the right model K = H = I₀, the Fisher information (with a plus sign: errata 23), and
the draw's covariance is (1 + 1/w)·I₀⁻¹/n: a draw of weight w = 1 has twice the variance of the estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onedraw.errors import InvalidModel
from onedraw.privacy.numbers import positive, positive_integer

Array = NDArray[np.float64]


def draw_covariance(
    hessian: ArrayLike, *, weight: float, n: int, variability: ArrayLike | None = None, draws: int = 1
) -> Array:
    """The predicted covariance of one draw of weight w, or of the mean of ``draws`` draws of weight w each.

    ``hessian`` is H, ``variability`` K; None means K = H, the well-specified case. The number of draws divides only
    the draws' own spread.
    """
    inverse = _inverse("hessian", hessian)
    count, scale = positive_integer("n", n), positive("the weight", weight) * positive_integer("draws", draws)
    middle = inverse if variability is None else inverse @ _symmetric("variability", variability) @ inverse
    if middle.shape != inverse.shape:
        raise InvalidModel(f"H is {inverse.shape}, K is {middle.shape}: both belong to the same parameter.")
    covariance: Array = (middle + inverse / scale) / count
    return covariance


def draw_deviation(
    hessian: ArrayLike, *, weight: float, n: int, variability: ArrayLike | None = None, draws: int = 1
) -> Array:
    """The predicted standard deviation of each coordinate of the draw."""
    covariance = draw_covariance(hessian, weight=weight, n=n, variability=variability, draws=draws)
    deviation: Array = np.sqrt(np.diag(covariance))
    return deviation


def _symmetric(name: str, matrix: ArrayLike) -> Array:
    values = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not np.isfinite(values).all():
        raise InvalidModel(f"{name} must be a finite square matrix, but got one of shape {values.shape}.")
    if not np.allclose(values, values.T, rtol=1e-9, atol=1e-12 * float(np.abs(values).max(initial=0.0))):
        raise InvalidModel(f"{name} must be symmetric: it is an average of second derivatives or outer products.")
    return values


def _inverse(name: str, matrix: ArrayLike) -> Array:
    values = _symmetric(name, matrix)
    smallest, largest = np.linalg.eigvalsh(values)[[0, -1]]
    if not smallest > 1e-14 * largest:
        raise InvalidModel(
            f"{name} has no inverse (smallest eigenvalue {smallest:.3g}): some direction of the parameter is not "
            "determined by the records, and Theorem 16 does not apply to it."
        )
    return np.asarray(np.linalg.inv(values), dtype=np.float64)
