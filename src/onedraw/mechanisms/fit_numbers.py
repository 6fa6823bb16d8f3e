"""The public numbers of a fit, chosen from n, the columns and the budget: how large rows may be, how much noise where.

A fit spends one budget in up to three stages (mathematics-3): it measures the design (`Moments`), publishes a perturbed
mode in the measured coordinates, and measures the information there. `FitNumbers` holds what will run; `perturbed_mode`
derives the promise from it and from nothing else. Choosing badly costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from scipy import optimize

from onedraw.models.fit import constants as constant
from onedraw.models.fit.classes import ClassLoss
from onedraw.models.fit.losses import FitLoss
from onedraw.models.fit.published import Measuring
from onedraw.models.fit.result import least_information
from onedraw.models.moments.measured import Layout
from onedraw.models.moments.stage import MomentColumns
from onedraw.models.sums.noise_law import deviation, matrix_deviation

from .moments_stage import MomentsStage, Spending, stage_before

SLOPES = 2.0**-45
"""Relative rounding of one record's gradient: products and sums of a few hundred terms of double precision."""


@dataclass(frozen=True)
class FitNumbers:
    """What runs. Noises are standard deviations of Gaussian noise, or under a pure promise the scales of its laws.

    A stage that does not run has noise 0: no ``mean_noise`` (the public middle is the centre), no ``moments_noise`` (the
    columns as declared), no ``information_noise`` (no intervals).
    """

    mean_noise: float
    moments_noise: float
    moment_radius: float
    row_bound: float
    ridge: float
    mode_noise: float
    tolerance: float
    closing_noise: float
    information_noise: float = 0.0
    variability_noise: float = 0.0

    @property
    def moments(self) -> MomentsStage:
        return MomentsStage(self.mean_noise, self.moments_noise, self.moment_radius)

    @property
    def measured(self) -> bool:
        return self.moments_noise > 0.0

    @property
    def centred(self) -> bool:
        return self.mean_noise > 0.0

    @property
    def informed(self) -> bool:
        return self.information_noise > 0.0

    def to_dict(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float]) -> FitNumbers | None:
        """None unless every number is there, finite and not negative, and those a promise divides by are above 0."""
        values = {field.name: stored.get(field.name, math.nan) for field in fields(cls)}
        needed = ("row_bound", "ridge", "mode_noise", "tolerance", "closing_noise")
        if not all(0.0 <= value < 1e300 for value in values.values()) or not all(
            values[name] > 1e-300 for name in needed
        ):
            return None
        return cls(**values)


@dataclass(frozen=True)
class Setting:
    """What the choice depends on: all public. ``k`` is the records of a person."""

    layout: Layout
    loss: FitLoss | ClassLoss
    n: int
    k: int
    intervals: bool

    @property
    def response(self) -> bool:
        """Whether the response is measured with the columns: its moments give the residual deviation."""
        return self.loss.unit == "measured"

    @property
    def moment_columns(self) -> MomentColumns:
        """The columns whose moments are measured."""
        return MomentColumns(self.layout, self.response)

    @property
    def width(self) -> int:
        """Numbers in the mode."""
        return self.loss.blocks * self.layout.width

    @property
    def entries(self) -> int:
        """Of the information matrix."""
        return self.width * (self.width + 1) // 2


def shares_of(setting: Setting, *, measured: bool, pure: bool, robust: bool) -> tuple[float, float, float]:
    """(moments, information, variability); those of stages that do not run are 0."""
    spends = setting.loss.spends
    if robust:  # what the model would have said must then be measured too
        spends = {"softmax": "robust classes", "counts": "labels"}.get(spends, spends)
    moments, information, variability = constant.SHARES[spends]
    moments = (constant.PURE_MOMENTS if pure else moments) if measured else 0.0
    return (moments, information, variability) if setting.intervals else (moments, 0.0, 0.0)


def stage_one(setting: Setting, spending: Spending, share: float) -> tuple[MomentsStage, float]:
    """The moments for this share of the total, and their edge."""
    columns = setting.moment_columns
    stage = stage_before(columns, spending, n=setting.n, records=setting.k, share=share)
    return stage, stage.edge(columns, setting.n, pure=spending.pure)


def row_bound(setting: Setting, mode_mu: float, *, measured: bool, pure: bool = False) -> float:
    """r: how long a row in measured coordinates may be before its weight falls. Of a pure promise ``mode_mu`` is ε, whose noise is
    that of a μ smaller by √(p + 1)."""
    d, one = setting.layout.columns, float(setting.layout.intercept)
    if not measured:
        spread = 1.0 if setting.layout.ball is not None else constant.UNMEASURED_SPREAD * d
        return math.sqrt(spread + one)
    theta = d * (setting.width + 1.0 if pure else 1.0) / (setting.n * mode_mu**2)
    growth = 1.0 + constant.WEIGHT_GROWTH * math.log10(constant.WEIGHT_PIVOT / theta) / math.sqrt(d)
    return math.sqrt(max(1.0, growth) ** 2 * d + one)


def roomy_row(setting: Setting, row: float, mode_mu: float, *, pure: bool) -> float:
    """r, larger where a fit of numbers without standard errors has accuracy to spare for rows that are shortened less."""
    if setting.intervals or not predicts_means(setting):
        return row
    noise = 4.0 * row**2 * (setting.width + 1.0 if pure else 1.0) / (setting.n * mode_mu**2)  # σ = 2r/μ
    largest = math.sqrt(constant.LARGEST_GROWTH**2 * setting.layout.columns + setting.layout.intercept)
    return max(row, min(row * math.sqrt(spare_noise(setting, constant.THRESHOLD) / noise), largest))


def spare_noise(setting: Setting, threshold: float) -> float:
    """The variance of noise a record at which a fit at this threshold adds SPARE_ERROR to a prediction: p·t²(K + noise)/(nH²)."""
    t, H, K = next(each for each in constant.THRESHOLDS if each[0] == threshold)
    return max(constant.SPARE_ERROR * setting.n * H**2 / (setting.width * t**2) - K, 0.0)


def predicts_means(setting: Setting) -> bool:
    """Whether the loss stands in for least squares."""
    return setting.loss.unit == "measured" and setting.loss.sides == "two-sided"


def closing(setting: Setting, *, ridge: float, deviation: float, row: float, loss: FitLoss | ClassLoss, mu: float, most: float, pure: bool) -> tuple[float, float]:  # fmt: skip
    """(tolerance t, closing noise): the gradient the fit must reach, and the noise that hides what is left of it.

    θ̂ is within t/Λ of the mode, so two data sets' θ̂ differ by at most 2t/Λ given the mode. t is large enough to be
    certified in double precision: rounding of n gradients stays below a quarter of it. Where that decides, up to ``most``
    is spent instead of ``mu`` so that the noise stays what is wanted.
    """
    wanted = wanted_closing(setting, ridge, deviation)
    scale = wanted / math.sqrt(setting.width + 1.0) if pure else wanted
    certain = 8.0 * setting.n * loss.slope_bound * row * SLOPES
    mu = min(max(mu, 2.0 * certain / (ridge * scale)), max(mu, most))
    tolerance = max(mu * ridge * scale / 2.0, certain)
    return tolerance, 2.0 * tolerance / (ridge * mu)


def wanted_closing(setting: Setting, ridge: float, deviation: float) -> float:
    """The standard deviation of closing noise that nobody would notice."""
    return constant.CLOSING_SHARE * max(deviation / (setting.n / 4.0 + ridge), 2.0 / math.sqrt(setting.n))


def predicted_error(setting: Setting, *, ridge: float, deviation: float, closing: float, measured: bool) -> float:
    """The squared error that noise and ridge add to a record's predictor, for the design they are chosen for. The closing noise counts
    as far as it is larger than wanted: a stronger ridge makes it smaller."""
    usual = setting.loss.usual_information if isinstance(setting.loss, ClassLoss) else constant.CURVATURE
    curvature = usual * (1.0 if measured else constant.LEAST_SPREAD)
    effect = constant.EFFECT * (1.0 if measured else constant.UNMEASURED_EFFECT[setting.loss.unit])
    information = setting.n * curvature + ridge
    spread = 1.0 if measured else constant.LEAST_SPREAD
    added = max(0.0, closing - wanted_closing(setting, ridge, deviation) * (1.0 + 1e-9))
    noise = setting.width * ((deviation / information) ** 2 + added**2)
    return spread * (noise + (ridge / information * effect) ** 2)


def best_kappa(error: Callable[[float], float], least: float = 0.01) -> float:
    """The share of ε for the ridge with the smallest predicted error: one minimum between ``least`` and 0.9 of it."""
    found = optimize.minimize_scalar(
        lambda log_share: error(math.exp(log_share)), bounds=(math.log(least), math.log(0.9)), method="bounded",
        options={"xatol": 1e-3},
    )  # fmt: skip
    return math.exp(float(found.x))


def without_intervals(setting: Setting) -> Setting:
    return replace(setting, intervals=False)


def worth_measuring(setting: Setting, noise: float) -> bool:
    """Whether the information of a usual design would stand out of its noise: otherwise its share is better spent elsewhere."""
    return shortage(setting, noise) <= 1.0


def shortage(setting: Setting, noise: float) -> float:
    """How many times more information a usual design would need to stand out of its noise."""
    if isinstance(setting.loss, ClassLoss):
        expected = setting.loss.usual_information
    else:
        expected = constant.EXPECTED_INFORMATION[setting.loss.spends]
    return least_information(setting.width, constant.PLANNED_EDGES) * noise / (setting.n * expected)


def best_threshold(setting: Setting, numbers: FitNumbers, pure: bool) -> float:
    """t of log-cosh in residual deviations: that of the smallest variance t²(K + σ²/n)/H² for normal residuals, among those
    that leave ample information, where it is measured."""
    if not predicts_means(setting):
        return constant.THRESHOLD
    noise = deviation(numbers.mode_noise, setting.width, pure=pure) ** 2 / setting.n
    variances, least = {t: t**2 * (K + noise) / H**2 for t, H, K in constant.THRESHOLDS}, constant.THRESHOLD
    if numbers.informed:
        drowned = matrix_deviation(numbers.information_noise, setting.width, pure=pure)
        needed = constant.ROOMY_INFORMATION * least_information(setting.width, constant.PLANNED_EDGES) * drowned
        ample = [t for t, H, _ in constant.THRESHOLDS if setting.n * H >= needed]
        least = min([*ample, constant.ROOMY_THRESHOLD])
    return min((t for t in variances if t >= least), key=lambda t: variances[t])


def spare_threshold(setting: Setting, numbers: FitNumbers, pure: bool) -> float:
    """What a fit of numbers without standard errors adds to its threshold, to be nearer to least squares, if it has accuracy to spare."""
    if numbers.informed or not numbers.measured or not predicts_means(setting):
        return 0.0
    noise = deviation(numbers.mode_noise, setting.width, pure=pure) ** 2 / setting.n
    wanted = max(constant.ROOMY_THRESHOLD - best_threshold(setting, numbers, pure), 0.0)
    return wanted if noise <= spare_noise(setting, constant.ROOMY_THRESHOLD) else 0.0


def measuring(setting: Setting, numbers: FitNumbers, pure: bool) -> Measuring:
    """How the published moments will be read: eigenvalues below a share of the noise's edge are not trusted."""
    edge = numbers.moments.edge(setting.moment_columns, setting.n, pure=pure)
    return Measuring(
        floor=(constant.INFORMED_FLOOR if numbers.informed else constant.FLOOR) * edge, row_bound=numbers.row_bound, response=setting.response, unmeasured_unit=constant.UNMEASURED_THRESHOLD,
        threshold=best_threshold(setting, numbers, pure), least_residual=constant.LEAST_RESIDUAL,
        spare_threshold=spare_threshold(setting, numbers, pure),
    )  # fmt: skip
