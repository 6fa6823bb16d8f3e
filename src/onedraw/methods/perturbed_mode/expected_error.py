"""The error to expect of a perturbed mode, from public numbers, in a design of equally correlated columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from onedraw.methods.expectation import Expectation
from onedraw.methods.measured_directions import Directions, per_record
from onedraw.models.sums.exact_sums import deviation, matrix_deviation


def mode_error(
    problem: Any, slopes: bool = False, /, *, filled: float, correlation: float, effect: float, noise: float
) -> Expectation:
    """Return the error to expect of a perturbed mode; of ``slopes`` alone, or the intercept too."""
    numbers, size = problem.numbers, problem.size
    along = Directions.expected(problem, effect=effect, noise=noise, filled=filled, correlation=correlation)
    rows, ridge = along.kept * problem.n * along.variance * along.stretched, numbers["ridge"]
    drowned = matrix_deviation(numbers["information_noise"], size, pure=problem.pure)
    mode, closing = (deviation(numbers[name], size, pure=problem.pure) for name in ("mode_noise", "closing_noise"))
    squares = np.zeros(3)  # of the fit, of the likelihood's estimate, of the bias alone: means per coefficient
    for mass, unit in along.units:  # responses are read in
        record, pulls, best = per_record(problem.loss, effect / unit, noise / unit)
        information = rows * record
        back = ridge * information / (information**2 + drowned**2) if drowned else 0.0
        gain = (1.0 + back) / (information + ridge)
        variance = (rows * pulls + mode**2) * gain**2 + (closing * (1.0 + back)) ** 2
        missing = (1.0 - information * gain) ** 2 * (effect / unit) ** 2 / (along.count[:-1] @ along.variance[:-1])
        missing[-1] = 0.0  # the design's intercept is 0
        count = along.count * np.array([1.0, 1.0, 0.0 if slopes else 1.0])
        share, plain = unit**2 * count / count.sum(), 1.0 / (problem.n * best * along.variance)
        squares += mass * np.array([share @ (variance * along.stretched + missing), share @ plain, share @ missing])
    return Expectation(*(np.sqrt(squares) / (problem.layout.ball or 1.0)).tolist())
