"""The public numbers of clipped gradients: how the budget is shared, how long a gradient may be, how many steps.

Everything here follows from n, the columns, the classes and the budget. A bad choice costs accuracy, never privacy: the promise is
derived from the numbers that result (`mechanism.promise_of`).

With μ the Gaussian-DP parameter of the steps, over the records of a person, and d the effective columns:

| number | rule |
| --- | --- |
| C, length of a record's gradient of the slopes | 0.1·√(nμ), from 0.1·√d to 3·√d; twice that for counts |
| τ, total time of all steps in units of C | nμ/√d, at most 300·max(1, C/√d); less for counts |
| T, steps | τ√d, within `MIN_STEPS` and `MAX_STEPS` |

The noise in the score of a usual record, of length √d, is then about the same for all tables. As C tends to 0 the steps compare
class means; as C grows they tend to maximum likelihood. T steps have noise of deviation √T each at the same promise: T costs
computing, not privacy.

Constants marked F are those of "algorithm F", fitted in laboratory notes on the tuning half of 27 tables. Those marked P were fitted on
the half of the tables of `benchmarks/prediction` that is set aside for deriving. The others say how they were found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self

from onedraw.methods.noisy_moments import KNOWN_SHARE
from onedraw.methods.stages import ROOT_TWO, Numbers, Spending, Stage
from onedraw.models.moments.measured import Layout, MomentColumns

Kind = Literal["label", "classes", "count", "number"]

LEVEL_FACTOR, MIN_LEVEL_SHARE, MAX_LEVEL_SHARE = 20.0, 0.05, 0.4
"""The level's share of μ² is (20/(nμ))² for counts and numbers, from 0.05 to 0.4. P. F has a factor of 5 and 0.02, which leaves noise
that costs log-loss. Labels and classes: `level_share`."""

SQUARE_PART = 0.25
"""The share of a count's square over that of its level. The noise in the variance is then a few times that in the mean. Not measured."""

LEVEL_PRIOR = 0.25
"""Standard deviation of a class share about a half that the level of two classes is shrunk by. Not measured."""

MIN_TEMPERATURE_SHARE, MAX_TEMPERATURE_SHARE = 0.05, 0.2
"""Ends of the temperature's share of μ² (`temperature_share`). P: 0.05 and 0.1 are behind the level more often where slopes are few."""

CENTER_SHARE, CENTER_BOUND = 0.05, 2.0
"""Share of μ² that measures the mean score where scales are left out, and the largest score of a record in it, in units of the scores'
standard deviation. P: with several classes the mean of K scores is worse than the intercepts of the steps."""

SCALES_SHARE, MEAN_PART = 0.12, 1.0 / 3.0
"""Share of what is left that measures scales, and the part of it for means. F."""

MAX_SPREAD_NOISE = 0.15
"""Scales are left out if the noise of a mean deviation is at least this, for columns of half-width 1. F."""

UNMEASURED_SCALE = 0.5
"""Scale of a column if none is measured. F; twice as much is no better. P."""

PRIOR_MEAN, PRIOR_SPREAD, MIDDLE_SPREAD = 0.5, 0.2, 0.4
"""Standard deviations by which means and mean deviations are shrunk, and the deviation towards which. F."""

SPREAD_FACTOR, MEAN_NOISE_FACTOR, LEAST_SPREAD = 1.25, 2.0, 0.01
"""A scale is 1.25 mean deviations, which is a normal's standard deviation, at least twice the noise of the mean, and never below
1.25 times (this and half the noise of the deviation). F."""

INTERCEPT_SHARE = 0.1
"""The intercepts' share of the steps' μ². F."""

CLIP_FACTOR, MIN_CLIP, MAX_CLIP = 0.1, 0.1, 3.0
"""C over √(nμ), and its ends over √d. F."""

MAX_TIME = 300.0
"""τ at most, times max(1, C/√d). F."""

COUNT_CLIP, COUNT_TIME, MAX_COUNT_TIME = 2.0, 0.6, 60.0
"""C and τ of counts over those of classes, and τ at most in units of C/√d. The first is F, the others P: F has half of them."""

NUMBER_TIME = 0.1
"""τ of numbers over that of classes. Derived: the squared loss bends by 1/0.3 in these units, that of labels by at most a quarter, so that the
same steps would overshoot."""

MAX_INTERCEPT_TIME: dict[Kind, float] = {"label": 30.0, "classes": 30.0, "count": 30.0, "number": 8.0}
"""Total time of the intercepts at most. P, where F has 8. For numbers F: the curvature is 1 over the unit, so that longer steps overshoot."""

INTERCEPT_TIME = 0.1
"""That time over nμ/(2·C₀). F."""

MIN_STEPS, MAX_STEPS, MAX_NUMBERS = 25, 60, 400_000
"""Steps at least and at most, and noisy numbers in all of them together. F has up to 600 steps; 30 to 400 do not differ. P. The last keeps
the time of a release below 5 s for most questions, with 10 µs for a number of exact discrete noise."""

MAX_STATED_STEPS = 10_000
"""Steps that a stated plan may have."""

AVERAGED = 0.7
"""The share of the steps, the last ones, whose iterates are averaged. F."""

CLIPPED_RESIDUAL: dict[Kind, float] = {"label": 1.0, "classes": 1.0, "count": 1.0, "number": 1.5}
"""Length of raw residuals in the intercepts' gradient: over the largest count, or half the range of numbers. F."""

NUMBER_UNIT = 0.3
"""A usual residual of numbers, over half their range. F, where numbers were not studied."""

TEMPERATURES = 5
"""Points at which the derivative in the temperature is measured, 0 among them. More points cost no noise in the first one (proof.md);
their spacing is a factor of 2 or 3."""

MAX_TEMPERATURE: dict[Kind, float] = {"label": 1.5, "classes": 1.5, "count": 1.0, "number": 1.0}
"""The largest temperature. P for classes and counts: counts overshoot above 1. Not measured for numbers."""

FIRST_SPREAD = 0.5
"""Standard deviation of scores at the smallest temperature above 0: the loss is nearly a parabola below a deviation of about 1. Derived."""

CLIPPED_DERIVATIVE = 1.5
"""Length of a record's derivative, in units of the scores' standard deviation and of a usual residual. Residuals are at most 1, so that
few records of two classes exceed it. In simulated populations of 2 and 10 classes 1 to 2 are best. 1 and 1.5 do not differ. P."""

CAUTION = 1.0
"""Standard deviations of the noise that are added to a derivative before its zero is looked for: scores are used as far as one deviation
of the noise leaves them a gain. What this costs and saves: proof.md."""


ADDED = ("square_noise", "center_bound", "center_noise", "caution", "known_noise")
"""Numbers that plans did not always have."""


class Sensitivity(NamedTuple):
    """Distances by which a record moves the sums of columns and of their deviations."""

    mean: float
    spread: float


@dataclass(frozen=True)
class Setting:
    """Public facts that the sizes follow from."""

    layout: Layout
    kind: Kind
    outputs: int
    level_sensitivity: float
    n: int
    records: int
    """Of one person."""
    skips: bool = False
    """Whether records with a missing cell contribute nothing."""

    columns: int = field(init=False, repr=False, compare=False)
    """Columns whose mean deviation is measured: numbers in [-1, 1], or all of a ball."""

    def __post_init__(self) -> None:
        layout = self.layout
        object.__setattr__(self, "columns", layout.columns if layout.ball is not None else layout.numbers)

    @property
    def span(self) -> float:
        """Return the half-width of a column: 1, or what a column of a unit ball has on average."""
        return 1.0 if self.layout.ball is None else 1.0 / math.sqrt(max(self.layout.columns, 1))

    @property
    def sensitivity(self) -> Sensitivity:
        """Return how far replacing a record moves the sums of columns and of their deviations."""
        spread = 2.0 if self.layout.ball is not None else math.sqrt(self.columns)
        if self.skips:  # a record's whole deviations come or go, and the center may lie outside the ball
            spread = max(spread, math.sqrt(self.columns))
        return Sensitivity(MomentColumns(self.layout).spread, spread)

    @property
    def is_centered_last(self) -> bool:
        """Return whether scores are centered by their own mean where those of the columns would drown.

        The mean of counts is that of exponentials of scores, intercepts of numbers follow scores at once, and several classes
        would need as many means: all of them keep the intercepts of the steps.
        """
        return self.kind == "label"

    @property
    def slopes(self) -> int:
        """Return how many slopes there are."""
        return self.layout.columns * self.outputs


@dataclass(frozen=True)
class ClippedNumbers(Numbers):
    """Everything that runs, by name. Noises are standard deviations; 0 leaves a stage out."""

    level_noise: float = 0.0
    mean_noise: float = 0.0
    spread_noise: float = 0.0
    steps: float = 0.0
    slope_bound: float = 0.0
    slope_noise: float = 0.0
    intercept_bound: float = 0.0
    intercept_noise: float = 0.0
    temperature_bound: float = 0.0
    temperature_noise: float = 0.0
    time: float = 0.0
    square_noise: float = 0.0
    center_bound: float = 0.0
    center_noise: float = 0.0
    caution: float = 0.0
    """0 in plans of the first kind: their temperature leaves intercepts as the steps found them (temperature.py)."""
    known_noise: float = 0.0
    """Of the number of records with all cells, where the others contribute nothing."""

    def to_dict(self) -> dict[str, float]:
        found = super().to_dict()
        return found if self.known_noise else {name: value for name, value in found.items() if name != "known_noise"}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], what: str) -> Self:
        """Return the stored numbers; the first plans have none of those that were added."""
        return super().from_dict({**dict.fromkeys(ADDED, 0.0), **stored}, what)

    def named_as(self, stored: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers by name, added ones only if they are stored: digests stay as they were."""
        return {name: value for name, value in self.to_dict().items() if name in stored or name not in ADDED}

    @property
    def complete(self) -> bool:
        whole = self.steps == int(self.steps) and 1 <= self.steps <= MAX_STATED_STEPS
        noises = self.level_noise and self.slope_noise and self.intercept_noise and self.temperature_noise
        bounds = self.slope_bound and self.intercept_bound and self.temperature_bound and self.time
        scales = self.mean_noise or not self.spread_noise
        centers = bool(self.center_bound) == bool(self.center_noise)
        return bool(whole and noises and bounds and scales and centers) and min(self.to_dict().values()) >= 0.0

    @property
    def count(self) -> int:
        """Return the number of steps."""
        return int(self.steps)


def numbers_for(setting: Setting, mu: float) -> ClippedNumbers:
    """Return the numbers that spend a total of μ."""
    spending, k, n = Spending(mu, pure=False), setting.records, setting.n
    informed = n * mu / k
    level, temperature = level_share(setting, mu / k), temperature_share(setting)
    square = SQUARE_PART * level if setting.kind == "count" else 0.0
    known = KNOWN_SHARE if setting.skips else 0.0
    left = 1.0 - level - square - temperature - known
    mean_noise, spread_noise = _scale_noises(setting, spending, SCALES_SHARE * left)
    center = CENTER_SHARE if setting.is_centered_last and not mean_noise else 0.0
    steps = left - (SCALES_SHARE * left if mean_noise else 0.0) - center
    bound, time = _bound_and_time(setting, informed * math.sqrt(steps), effective_columns(setting, mean_noise))
    count = _steps(setting, time)
    slopes, intercepts = steps * (1.0 - INTERCEPT_SHARE), steps * INTERCEPT_SHARE
    residual, derivative = CLIPPED_RESIDUAL[setting.kind], CLIPPED_DERIVATIVE
    longest = CENTER_BOUND if center else 0.0
    return ClippedNumbers(
        spending.noise(level, k * setting.level_sensitivity), mean_noise, spread_noise, float(count),
        bound, math.sqrt(count) * spending.noise(slopes, 2.0 * k * bound),
        residual, math.sqrt(count) * spending.noise(intercepts, 2.0 * k * residual),
        derivative, spending.noise(temperature, k * temperature_sensitivity(derivative)), time,
        spending.noise(square, k * 1.0) if square else 0.0,
        longest, spending.noise(center, 2.0 * k * longest) if center else 0.0, CAUTION,
        spending.noise(known, float(k)) if known else 0.0,
    )  # fmt: skip


def level_share(setting: Setting, mu: float) -> float:
    """Return the level's share of μ², for this μ over the records of a person.

    For K classes the noise in a share, √2/(nμ√s), costs a log-loss of K(K - 1)/((nμ)²s) where classes are equally frequent. Sampling
    costs (K - 1)/(2n). The share s = K/(nμ²) makes the noise cost twice as much. It ends at 1/(1 + √d): a level of K - 1
    numbers and d(K - 1) slopes cost least together if their shares are as 1 to √d.
    """
    if setting.kind in ("count", "number"):
        return min(max((LEVEL_FACTOR / (setting.n * mu)) ** 2, MIN_LEVEL_SHARE), MAX_LEVEL_SHARE)
    wanted = max(setting.outputs, 2) / (setting.n * mu**2)
    return max(MIN_LEVEL_SHARE, min(wanted, 1.0 / (1.0 + math.sqrt(max(setting.layout.columns, 1)))))


def temperature_share(setting: Setting) -> float:
    """Return the temperature's share of μ²: as 1 to the root of the number of slopes, as for the level."""
    slopes = setting.layout.columns * max(setting.outputs - 1, 1)
    return min(max(1.0 / (1.0 + math.sqrt(max(slopes, 1))), MIN_TEMPERATURE_SHARE), MAX_TEMPERATURE_SHARE)


def temperature_sensitivity(bound: float) -> float:
    """Return how far replacing a record moves its derivative at 0 and the increases after it (proof.md)."""
    return 2.0 * ROOT_TWO * bound


def effective_columns(setting: Setting, mean_noise: float) -> float:
    """Return the expected squared length of a row of measured columns, for categories with equally frequent levels.

    A rare level's scale is held up by the noise of its mean, so a category of many levels counts as fewer columns.
    """
    found, noise = float(setting.columns), mean_noise / setting.n
    for start, stop in setting.layout.categories:
        levels = stop - start
        variance = levels / (levels + 1.0) ** 2
        scale = category_square(variance, noise) if mean_noise else UNMEASURED_SCALE**2
        found += levels * variance / scale
    return max(found, 1.0)


def category_square(variance: float, noise: float) -> float:
    """Return the squared scale of a 0/1 column with this variance, whose mean was published with this noise."""
    return max(variance, min(MEAN_NOISE_FACTOR * noise, 0.25), LEAST_SPREAD**2)


def _scale_noises(setting: Setting, spending: Spending, share: float) -> tuple[float, float]:
    """Return the noises of means and of mean deviations for this share; both 0 if they are left out."""
    sensitivity, k = setting.sensitivity, setting.records
    if not setting.layout.columns:
        return 0.0, 0.0
    part = MEAN_PART if setting.columns else 1.0
    mean = spending.noise(part * share, k * sensitivity.mean)
    spread = spending.noise((1.0 - part) * share, k * sensitivity.spread) if setting.columns else 0.0
    if (spread or mean) / setting.n >= MAX_SPREAD_NOISE * setting.span:
        return 0.0, 0.0
    return mean, spread


def _bound_and_time(setting: Setting, informed: float, columns: float) -> tuple[float, float]:
    """Return C and τ for this nμ of the steps."""
    root = math.sqrt(columns)
    bound = min(max(CLIP_FACTOR * math.sqrt(informed), MIN_CLIP * root), MAX_CLIP * root)
    time = min(informed / root, MAX_TIME * max(1.0, bound / root))
    if setting.kind == "count":
        bound = COUNT_CLIP * bound
        time = min(COUNT_TIME * time, MAX_COUNT_TIME * bound / root)
    return bound, time * (NUMBER_TIME if setting.kind == "number" else 1.0)


def _steps(setting: Setting, time: float) -> int:
    """Return T."""
    wanted = math.ceil(min(time * math.sqrt(max(setting.layout.columns, 1)), 1e6))
    affordable = MAX_NUMBERS // (max(setting.slopes, 1) + setting.outputs)
    return max(MIN_STEPS, min(wanted, MAX_STEPS, affordable))


def stages_of(setting: Setting, numbers: ClippedNumbers) -> list[Stage]:
    """Return every noised sum, once for each time it is published, with what one record can move it by."""
    sensitivity, derivative, outputs = setting.sensitivity, numbers.temperature_bound, setting.outputs
    found = [
        Stage(1.0, numbers.known_noise, 1, columns=True),
        Stage(setting.level_sensitivity, numbers.level_noise, outputs, columns=True),
        Stage(1.0, numbers.square_noise, 1, columns=True),
        Stage(sensitivity.mean, numbers.mean_noise, setting.layout.columns, columns=True),
        Stage(sensitivity.spread, numbers.spread_noise, setting.columns, columns=True),
    ]
    slope = Stage(2.0 * numbers.slope_bound, numbers.slope_noise, setting.slopes, numbers.slope_bound)
    intercept = Stage(2.0 * numbers.intercept_bound, numbers.intercept_noise, outputs, numbers.intercept_bound)
    found += [slope, intercept] * numbers.count
    found.append(Stage(2.0 * numbers.center_bound, numbers.center_noise, 1, numbers.center_bound))
    found.append(Stage(temperature_sensitivity(derivative), numbers.temperature_noise, TEMPERATURES, derivative))
    return [stage for stage in found if stage.noise]
