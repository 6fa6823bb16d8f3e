"""The public numbers of a perturbed mode, chosen from n, the columns and ε: how large rows may be, how much noise where.

A fit spends ε in up to three stages: it measures the design (`Moments`), publishes a perturbed mode in the measured coordinates,
and measures the information there. `FitNumbers` holds what will run; `perturbed_mode` derives the promise from it and from nothing
else. Choosing badly costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from onedraw.methods.stages import LEAST_SPREAD, MomentsStage, Spending, row_bound, stage_before
from onedraw.models.fit.losses import ClassLoss, FitLoss, measured_of
from onedraw.models.fit.problem import FLOOR, Measuring
from onedraw.models.fit.result import least_information
from onedraw.models.fit.sums import predictor_rounding
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.sums.exact_sums import deviation

MOMENTS, INFORMATION, VARIABILITY = 0.25, 0.15, 0.05
"""Shares of ε of the stages that run; the mode has the rest. The noise of a matrix grows with the number of columns squared, that of the
mode with its root. Of the variability, which is half of a standard error and is averaged over directions, less is needed than of the
information, whose weakest direction decides."""

AMPLE_EDGE = 0.012
"""Where the spectral edge of the moments' noise is below this, they are precise enough with less, down to half of their share: a fifth less
noise in the mode."""

CLOSING = 0.01
"""The share of ε that hides how far from its minimum a mode is found. Half a percent more noise where that is next to nothing anyway."""

PLANNED = 1.5
"""A plan measures the information where that of a usual direction is so many times the least that will be trusted: those of real designs
differ, and the weakest decides."""

NOISIEST_MEAN = 3.0**-0.5
"""The largest deviation of the columns' mean, in half-ranges, that is still measured: by so much the middle of the range is off where a mean
may be anywhere in it."""

EFFECT = 1.5
"""The norm of the coefficients in measured coordinates that the ridge is chosen for: a predictor of this standard deviation."""

SLOPES = 2.0**-45
"""Relative rounding of one record's gradient: products and sums of a few hundred terms of double precision."""

LEAST_REACH = 16.0
"""Norm of a mode in measured coordinates, up to which its gradient is certified in full; usual ones are of norm 1 to 5."""

LARGEST_KAPPA = 64.0
"""Of one record: Λ = Mr²/(e^κ − 1) is then far below every rounding, and e^κ is still a number."""

ROUNDING = 2.0**-40
"""The part of ε that is left for rounding a promise up."""


@dataclass(frozen=True)
class FitNumbers(MomentsStage):
    """What runs. Without ``mean_noise`` the public middle is the centre, without ``moments_noise`` the columns are
    taken as declared, without ``information_noise`` there are no intervals."""

    row_bound: float = 0.0
    ridge: float = 0.0
    mode_noise: float = 0.0
    tolerance: float = 0.0
    closing_noise: float = 0.0
    information_noise: float = 0.0
    variability_noise: float = 0.0

    @property
    def complete(self) -> bool:
        return all((self.row_bound, self.ridge, self.mode_noise, self.tolerance, self.closing_noise))


@dataclass(frozen=True)
class Setting:
    """What the choice depends on: all public. ``k`` is the records of a person."""

    layout: Layout
    loss: FitLoss | ClassLoss
    n: int
    k: int
    robust: bool = False

    moment_columns: MomentColumns = field(init=False, repr=False, compare=False)
    """The columns whose moments are measured: with the response, where its moments give the residual deviation."""
    width: int = field(init=False, repr=False, compare=False)
    """Numbers in the mode."""
    squares: list[float] = field(init=False, repr=False, compare=False)
    """The trace of a record's share of the information and of the variability at most, for rows of length 1."""

    def __post_init__(self) -> None:
        squares = [self.loss.largest(of) for of in measured_of(robust=self.robust)]
        object.__setattr__(self, "moment_columns", MomentColumns(self.layout, self.loss.unit == "measured"))
        object.__setattr__(self, "width", self.loss.blocks * self.layout.width)
        object.__setattr__(self, "squares", squares)

    def shortage(self, noise: float) -> float:
        """How many times more information a usual design would need to stand out of noise of this deviation."""
        return PLANNED * least_information(self.width) * noise / (self.n * self.loss.expected_information)


def numbers_for(setting: Setting, epsilon: float, *, measured: bool, intervals: bool) -> FitNumbers:
    """The numbers that spend ε: κ on the ridge, the rest on noise."""
    information, variability = (INFORMATION, VARIABILITY) if intervals else (0.0, 0.0)
    moments = _moments_share(setting, epsilon) if measured else 0.0
    mode, k, stage = 1.0 - moments - information - variability, setting.k, MomentsStage()
    # noise ∝ e^{−‖b‖/s} has the deviation of a Gaussian mechanism whose μ is smaller by √(p + 1)
    row = row_bound(setting.layout, setting.n, mode * epsilon / math.sqrt(setting.width + 1.0), measured=measured)
    row *= 1.0 + 1e-12
    ridge = ridge_for(setting, epsilon, mode=mode, row=row, measured=measured)
    spending = Spending(epsilon * (1.0 - ROUNDING) - k * setting.loss.volume_cost(row, ridge), pure=True)
    if measured:
        stage, _ = _moments_stage(setting, spending, moments * (1.0 - CLOSING))
    noises = [
        spending.noise(share * (1.0 - CLOSING), k * square * row**2) if share else 0.0
        for square, share in zip(setting.squares, (information, variability), strict=True)
    ]
    tolerance = least_tolerance(setting, row, ridge)
    return FitNumbers(
        stage.mean_noise, stage.moments_noise, stage.moment_radius, row, ridge,
        spending.noise(mode * (1.0 - CLOSING), 2.0 * k * setting.loss.slope_bound * row), tolerance,
        spending.noise(CLOSING, 2.0 * tolerance / ridge), *noises,
    )  # fmt: skip


def _moments_share(setting: Setting, epsilon: float) -> float:
    _, edge = _moments_stage(setting, Spending(epsilon, pure=True), MOMENTS)
    return MOMENTS * min(1.0, max(0.5, edge / AMPLE_EDGE))


def _moments_stage(setting: Setting, spending: Spending, share: float) -> tuple[MomentsStage, float]:
    columns, n, k = setting.moment_columns, setting.n, setting.k
    return stage_before(columns, spending, n=n, records=k, share=share, noisiest=NOISIEST_MEAN)


def ridge_for(setting: Setting, epsilon: float, *, mode: float, row: float, measured: bool) -> float:
    """Λ, the largest of four, for n records of information I and coefficients of norm E.

    *Volume.* Of ε the part x goes to κ, so that Λ ≈ kMr²/(xε), and the mode's noise is σ/(1 − x). Squared bias and variance,
    (ΛE)² + pσ²/(1 − x)² over (nI)², are least at x/(1 − x) = (kMr²E/(εσ√p))^{2/3}, whatever n and ε.
    *Shrinkage.* For noise σ the error ((ΛE)² + pσ²)/(nI + Λ)² is least at Λ = pσ²/(nIE²): more than above where noise decides.
    *Closing.* Its noise is ω = 2t√(p + 1)/(Λ·CLOSING·ε); (ΛE/nI)² + pω² is least at Λ² = nI·2t√(p(p + 1))/(CLOSING·ε·E), which
    matters from some million records on.
    *Rounding.* `least_ridge`.
    """
    loss, p, k = setting.loss, setting.width, setting.k
    information = setting.n * loss.usual_information * (1.0 if measured else LEAST_SPREAD)
    noise = math.sqrt(p) * deviation(2.0 * k * loss.slope_bound * row / (mode * epsilon), p, pure=True)
    ratio = (k * loss.curvature_bound * row**2 * EFFECT / (epsilon * noise)) ** (2.0 / 3.0)
    volume = loss.ridge_for(min(epsilon / k * ratio / (1.0 + ratio), LARGEST_KAPPA), row)
    shrinkage = noise**2 / (information * EFFECT**2)
    rounding = 2.0 * least_tolerance(setting, row, 0.0) * math.sqrt(p * (p + 1.0))
    return max(
        volume, shrinkage, math.sqrt(information * rounding / (CLOSING * epsilon * EFFECT)), least_ridge(setting, row)
    )


def least_tolerance(setting: Setting, row: float, ridge: float) -> float:
    """The smallest gradient that double precision certifies: slopes that are off by `SLOPES` make a quarter of it, and
    predictors that are off in proportion to ‖θ‖ a fifth, for ‖θ‖ up to `LEAST_REACH` (privacy/perturbed_mode.md §3)."""
    bent = setting.n * setting.loss.curvature_bound * row**2 + ridge * math.sqrt(setting.width)
    slopes = 8.0 * setting.n * setting.loss.slope_bound * row * SLOPES
    return max(slopes, 5.0 * predictor_rounding(setting.layout.width) * bent * LEAST_REACH)


def least_ridge(setting: Setting, row: float) -> float:
    """A hundred roundings of the curvature: with less, the rounding of predictors could turn the mode around."""
    return 100.0 * predictor_rounding(setting.layout.width) * setting.n * setting.loss.curvature_bound * row**2


def measuring(setting: Setting, numbers: FitNumbers) -> Measuring:
    """How the published moments will be read: eigenvalues below a share of the noise's edge are not trusted."""
    columns = setting.moment_columns
    return Measuring(FLOOR * numbers.edge(columns, setting.n, pure=True), numbers.row_bound, columns.response)
