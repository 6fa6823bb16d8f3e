"""Fit full tables without privacy: least squares, logistic, Poisson and median regression, the intercept last."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

MAX_NEWTON_STEPS = 25
"""Newton steps of a maximum likelihood fit; one that needs more does not converge, as under separation."""


class NoConvergence(Exception):
    """A fit that has no finite or no unique solution."""


def standardize(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the standardized columns, their means and their standard deviations."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    return (X - mean) / std, mean, std


def condition_number(X: np.ndarray) -> float:
    """Return the ratio of the largest to the smallest singular value of the standardized columns."""
    values = np.linalg.svd(standardize(X)[0], compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else np.inf


def in_natural_units(theta: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return coefficients of the given columns from those of the standardized ones."""
    slopes = theta[:-1] / std
    return np.append(slopes, theta[-1] - slopes @ mean)


def fit_linear(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of least squares."""
    Z, mean, std = standardize(X)
    theta = np.linalg.lstsq(np.column_stack([Z, np.ones(len(Z))]), y, rcond=None)[0]
    return in_natural_units(theta, mean, std)


def r_squared(X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the variance of `y` that a linear function of the columns explains."""
    theta = fit_linear(X, y)
    return float(1.0 - np.var(y - X @ theta[:-1] - theta[-1]) / np.var(y))


def fit_logistic(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the maximum likelihood coefficients of logistic regression."""

    def derivatives(u: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        p = special.expit(u)
        return float(np.sum(np.logaddexp(0.0, u) - y * u)), p - y, p * (1.0 - p)

    return _newton(X, derivatives, float(special.logit(y.mean())))


def fit_poisson(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of Poisson quasi-likelihood with a log link."""

    def derivatives(u: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        m = np.exp(np.minimum(u, 50.0))
        return float(np.sum(m - y * u)), m - y, m

    return _newton(X, derivatives, float(np.log(y.mean())))


def _newton(X, derivatives, level):
    Z, mean, std = standardize(X)
    Z = np.column_stack([Z, np.ones(len(Z))])
    theta = np.append(np.zeros(X.shape[1]), level)
    loss, slope, weight = derivatives(Z @ theta)
    for _ in range(MAX_NEWTON_STEPS):
        try:
            step = np.linalg.solve((Z * weight[:, None]).T @ Z, Z.T @ slope)
        except np.linalg.LinAlgError as fault:
            raise NoConvergence from fault
        scale = 1.0
        while True:
            candidate = theta - scale * step
            next_loss, slope, weight = derivatives(Z @ candidate)
            if next_loss <= loss + 1e-9 * abs(loss) or scale < 1e-4:
                break
            scale /= 2.0
        # Judge by natural units of two levels: a rare level under separation has a small standardized effect.
        moved = np.max(np.abs(scale * step) / np.append(np.minimum(std / np.ptp(X, axis=0), 1.0), 1.0))
        theta, loss = candidate, next_loss
        if not np.isfinite(moved):
            break
        if moved < 1e-7:
            return in_natural_units(theta, mean, std)
    raise NoConvergence


def fit_median(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the coefficients of least absolute deviations, by the dual linear program."""
    Z, mean, std = standardize(X)
    Z = np.column_stack([Z, np.ones(len(Z))])
    unit = np.std(y)
    result = optimize.linprog(-y / unit, A_eq=Z.T, b_eq=0.5 * Z.sum(axis=0), bounds=(0.0, 1.0), method="highs-ds")
    if result.status != 0:
        raise NoConvergence(result.message)
    return in_natural_units(-result.eqlin.marginals * unit, mean, std)
