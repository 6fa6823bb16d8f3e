"""The public numbers of a fit, chosen from n, the columns and the budget: how large rows may be, how much noise where.

A fit spends one budget in up to three stages (mathematics-3): it measures the design (`Moments`), publishes a perturbed
mode in the measured coordinates, and measures the information there. `FitNumbers` holds what will run; `perturbed_mode`
derives the promise from it and from nothing else. Choosing badly costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

from onedraw.models.fit import constants as constant
from onedraw.models.fit.losses import ClassLoss, FitLoss, measured_of
from onedraw.models.fit.problem import Measuring
from onedraw.models.fit.result import least_information
from onedraw.models.fit.sums import predictor_rounding
from onedraw.models.moments.measured import Layout, MomentColumns
from onedraw.models.sums.exact_sums import deviation, matrix_deviation

from .stages import MomentsStage, Spending, apart, stage_before

SLOPES = 2.0**-45
"""Relative rounding of one record's gradient: products and sums of a few hundred terms of double precision."""

LEAST_REACH = 16.0
"""Norm of a mode in measured coordinates, up to which its gradient is certified in full; usual ones are of norm 1 to 5."""


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
    intervals: bool
    robust: bool = False
    pure: bool = False

    moment_columns: MomentColumns = field(init=False, repr=False, compare=False)
    """The columns whose moments are measured: with the response, where its moments give the residual deviation."""
    width: int = field(init=False, repr=False, compare=False)
    """Numbers in the mode."""
    predicts_means: bool = field(init=False, repr=False, compare=False)
    """Whether the loss stands in for least squares."""
    squares: list[float] = field(init=False, repr=False, compare=False)
    """What a record's share of the information and of the variability is at most, for rows of length 1."""

    def __post_init__(self) -> None:
        loss, measured = self.loss, self.loss.unit == "measured"
        squares = [loss.largest(of, pure=self.pure) for of in measured_of(robust=self.robust)]
        object.__setattr__(self, "moment_columns", MomentColumns(self.layout, measured))
        object.__setattr__(self, "width", loss.blocks * self.layout.width)
        object.__setattr__(self, "predicts_means", measured and isinstance(loss, FitLoss) and loss.sides == "two-sided")
        object.__setattr__(self, "squares", squares)

    def shares(self, *, measured: bool) -> tuple[float, float, float]:
        """(moments, information, variability); those of stages that do not run are 0."""
        spends = self.loss.spends
        if self.robust:  # what the model would have said must then be measured too
            spends = {"softmax": "robust classes", "counts": "labels"}.get(spends, spends)
        moments, information, variability = constant.SHARES[spends]
        moments = (constant.PURE_MOMENTS if self.pure else moments) if measured else 0.0
        return (moments, information, variability) if self.intervals else (moments, 0.0, 0.0)

    def shortage(self, noise: float) -> float:
        """How many times more information a usual design would need to stand out of its noise."""
        needed = least_information(self.width, constant.PLANNED_EDGES) * noise
        return needed / (self.n * self.loss.expected_information)


def numbers_for(setting: Setting, total: float, kappa: float, *, measured: bool) -> tuple[FitNumbers, float]:
    """The numbers that spend a total of μ or ε, κ of it on the ridge; and the edge of the moments' noise."""
    spending, loss, pure = Spending(total, setting.pure), setting.loss, setting.pure
    moments, information, variability = setting.shares(measured=measured)
    stage, edge = MomentsStage(), 0.0
    if measured:
        before = partial(stage_before, setting.moment_columns, spending, n=setting.n, records=setting.k)
        stage, edge = before(share=moments)
        if edge < constant.AMPLE_EDGE:
            moments *= max(constant.LEAST_MOMENTS, edge / constant.AMPLE_EDGE)
            stage, edge = before(share=moments)
    mode = 1.0 - moments - information - variability
    mode_mu = total * (mode if pure else math.sqrt(mode))
    row = row_bound(setting, mode_mu, measured=measured) * (1.0 + 1e-12)
    if measured and setting.predicts_means and not setting.intervals:
        # such a fit may have accuracy to spare for rows shortened less
        noise = 4.0 * row**2 * (setting.width + 1.0 if pure else 1.0) / (setting.n * mode_mu**2)  # σ = 2r/μ
        largest = math.sqrt(constant.LARGEST_GROWTH**2 * setting.layout.columns + setting.layout.intercept)
        row = max(row, min(row * math.sqrt(_spare_noise(setting, constant.THRESHOLD) / noise), largest))
    ridge = max(loss.ridge_for(kappa / setting.k, row), least_ridge(setting, row))
    mode_noise = spending.noise(mode, row * math.sqrt(loss.corners(row, ridge, setting.k).widest))
    tolerance, closing_noise = closing(
        setting, ridge=ridge, deviation=deviation(mode_noise, setting.width, pure=pure), row=row,
        mu=constant.CLOSING_MU * (total if pure else 1.0), most=constant.LARGEST_CLOSING * total,
    )  # fmt: skip
    noises = [
        spending.noise(share, apart(setting.k * square * row**2, pure=pure)) if share else 0.0
        for square, share in zip(setting.squares, (information, variability), strict=True)
    ]
    moments_of = stage.mean_noise, stage.moments_noise, stage.moment_radius
    return FitNumbers(*moments_of, row, ridge, mode_noise, tolerance, closing_noise, *noises), edge


def row_bound(setting: Setting, mode_mu: float, *, measured: bool) -> float:
    """r: how long a row in measured coordinates may be before its weight falls. Of a pure promise ``mode_mu`` is ε,
    whose noise is that of a μ smaller by √(p + 1)."""
    d, one = setting.layout.columns, float(setting.layout.intercept)
    if not measured:
        spread = 1.0 if setting.layout.ball is not None else constant.UNMEASURED_SPREAD * d
        return math.sqrt(spread + one)
    theta = d * (setting.width + 1.0 if setting.pure else 1.0) / (setting.n * mode_mu**2)
    growth = 1.0 + constant.WEIGHT_GROWTH * math.log10(constant.WEIGHT_PIVOT / theta) / math.sqrt(d)
    return math.sqrt(max(1.0, growth) ** 2 * d + one)


def _spare_noise(setting: Setting, threshold: float) -> float:
    """The variance of noise a record at which a fit at this threshold adds SPARE_ERROR, p·t²(K + noise)/(nH²)."""
    t, H, K = next(each for each in constant.THRESHOLDS if each[0] == threshold)
    return max(constant.SPARE_ERROR * setting.n * H**2 / (setting.width * t**2) - K, 0.0)


def closing(
    setting: Setting, *, ridge: float, deviation: float, row: float, mu: float, most: float
) -> tuple[float, float]:
    """(tolerance t, closing noise): the gradient the fit must reach, and the noise that hides what is left of it.

    θ̂ is within t/Λ of the mode, so two data sets' θ̂ differ by at most 2t/Λ given the mode. t is large enough to be
    certified in double precision (`least_tolerance`). Where that decides, up to ``most`` is spent instead of ``mu`` so
    that the noise stays what is wanted.
    """
    wanted = _wanted_closing(setting, ridge, deviation)
    scale = wanted / math.sqrt(setting.width + 1.0) if setting.pure else wanted
    certain = least_tolerance(setting, row, ridge)
    mu = min(max(mu, 2.0 * certain / (ridge * scale)), max(mu, most))
    tolerance = max(mu * ridge * scale / 2.0, certain)
    return tolerance, 2.0 * tolerance / (ridge * mu)


def least_tolerance(setting: Setting, row: float, ridge: float) -> float:
    """The smallest gradient that double precision certifies: slopes that are off by `SLOPES` make a quarter of it, and
    predictors that are off in proportion to ‖θ‖ a fifth, for ‖θ‖ up to `LEAST_REACH` (perturbed_mode.md §4)."""
    bent = setting.n * setting.loss.curvature_bound * row**2 + ridge * math.sqrt(setting.width)
    slopes = 8.0 * setting.n * setting.loss.slope_bound * row * SLOPES
    return max(slopes, 5.0 * predictor_rounding(setting.layout.width) * bent * LEAST_REACH)


def least_ridge(setting: Setting, row: float) -> float:
    """A hundred roundings of the curvature: with less, the rounding of predictors could turn the mode around."""
    return 100.0 * predictor_rounding(setting.layout.width) * setting.n * setting.loss.curvature_bound * row**2


def _wanted_closing(setting: Setting, ridge: float, deviation: float) -> float:
    """The standard deviation of closing noise that nobody would notice."""
    return constant.CLOSING_SHARE * max(deviation / (setting.n / 4.0 + ridge), 2.0 / math.sqrt(setting.n))


def predicted_error(setting: Setting, numbers: FitNumbers) -> float:
    """The squared error that noise and ridge add to a record's predictor, for the design they are chosen for. The
    closing noise counts as far as it is larger than wanted: a stronger ridge makes it smaller."""
    measured, ridge = numbers.moments_noise > 0.0, numbers.ridge
    mode, closing = (
        deviation(noise, setting.width, pure=setting.pure) for noise in (numbers.mode_noise, numbers.closing_noise)
    )
    spread = 1.0 if measured else constant.LEAST_SPREAD
    effect = constant.EFFECT * (1.0 if measured else constant.UNMEASURED_EFFECT[setting.loss.unit])
    information = setting.n * (setting.loss.usual_information * spread) + ridge
    added = max(0.0, closing - _wanted_closing(setting, ridge, mode) * (1.0 + 1e-9))
    noise = setting.width * ((mode / information) ** 2 + added**2)
    return spread * (noise + (ridge / information * effect) ** 2)


def measuring(setting: Setting, numbers: FitNumbers) -> Measuring:
    """How the published moments will be read: eigenvalues below a share of the noise's edge are not trusted."""
    columns = setting.moment_columns
    edge = numbers.edge(columns, setting.n, pure=setting.pure)
    threshold, spare = _thresholds(setting, numbers) if setting.predicts_means else (constant.THRESHOLD, 0.0)
    return Measuring(
        floor=(constant.INFORMED_FLOOR if numbers.information_noise else constant.FLOOR) * edge,
        row_bound=numbers.row_bound, response=columns.response, unmeasured_unit=constant.UNMEASURED_THRESHOLD,
        threshold=threshold, least_residual=constant.LEAST_RESIDUAL, spare_threshold=spare,
    )  # fmt: skip


def _thresholds(setting: Setting, numbers: FitNumbers) -> tuple[float, float]:
    """(t, what is added to it) of log-cosh in residual deviations.

    t is that of the smallest variance t²(K + σ²/n)/H² for normal residuals, among those that leave ample information,
    where it is measured. A fit without standard errors with accuracy to spare adds to it, to be nearer to least
    squares.
    """
    noise = deviation(numbers.mode_noise, setting.width, pure=setting.pure) ** 2 / setting.n
    variances, least = {t: t**2 * (K + noise) / H**2 for t, H, K in constant.THRESHOLDS}, constant.THRESHOLD
    if numbers.information_noise:
        drowned = matrix_deviation(numbers.information_noise, setting.width, pure=setting.pure)
        needed = constant.ROOMY_INFORMATION * least_information(setting.width, constant.PLANNED_EDGES) * drowned
        ample = [t for t, H, _ in constant.THRESHOLDS if setting.n * H >= needed]
        least = min([*ample, constant.ROOMY_THRESHOLD])
    best = min((t for t in variances if t >= least), key=lambda t: variances[t])
    spared = noise <= _spare_noise(setting, constant.ROOMY_THRESHOLD)
    if numbers.information_noise or not numbers.moments_noise or not spared:
        return best, 0.0
    return best, max(constant.ROOMY_THRESHOLD - best, 0.0)
