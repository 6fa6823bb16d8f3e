"""The public numbers of averaged steps: how the budget is shared, how long a score may be, how many steps.

Everything here follows from n, the columns, the kind of response (kinds.py) and the budget. Choosing badly costs accuracy, never
privacy: the promise is derived from the numbers that result (`mechanism.promise_of`).

**How long a score may be.** Scores z·ψ are shortened to B = β√p (p coefficients, z of unit variance in every direction, ψ in
residual deviations for numbers). With μ for the steps and information I a record, noise adds 4β²p/(μ²nI) to a
coefficient's variance in units of its sampling variance. Shortening moves it by b(β) deviations of one record, which adds
n·b(β)². With b(β) = b₀β^(−3/2), for tables with long tails, the sum is least at

    β = (3/2 · b₀²·n²μ²I/(4p))^(1/5).

This is the longest B. β grows without limit as n grows, so the estimate tends to least squares or maximum likelihood. The 3/2
and b₀ are rounded from real tables of the half that `benchmarks/populations` sets aside for this.

**How long scores are.** Most tables have shorter tails, and scores of the same length need less noise. N scores that are longer
than B, by about γB each, move a coefficient by κγβN/√n sampling errors; on the tables for deriving κ is 0.2 to 0.6 and γ 0.3 to
1.5. Noise adds 2β√p/(μ√n). Both are alike where N = 2√p/(κγμ), about 8√p/μ, whatever n and the table are. `choose_factor`
looks for that B by bisection, with noisy counts of longer scores (`TAIL_COUNTS`) at the start. Both directions of an error cost
little: the sum is flat near its least value.

Of several classes p is the number of entries of a row: ψ is a vector no longer than √2, however many classes there are. Robust lines and
margins have fixed lengths (kinds.py), and no counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from onedraw.methods.noisy_moments import KNOWN_SHARE
from onedraw.methods.stages import MomentsStage, Spending, Stage, apart, stage_before
from onedraw.models.moments.measured import Layout, MomentColumns

from .scores import LEVEL_REACH, Score

EARLY_STEPS, SKIPPED_STEPS, STEPS = 12, 4, 30
"""Steps with half the bound, how many of them are left out of their average, and steps with the full bound. More steps
cost no privacy, since each then has more noise and the average the same; they cost passes over the records."""

EARLY_SHARE, COVARIANCE_SHARE = 0.10, 0.06
"""Of μ²: the early steps, and the covariance of the scores."""

TAIL_SHARE, TAIL_COUNTS = 0.04, 3
"""Of μ², for the counts by which the bound is chosen, and how many counts: bisection over 2³ bounds."""

FACTORS = (0.09375, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0)
"""The bounds to choose from, as shares of the longest. All are short binary fractions."""

TAIL_TARGET, LARGEST_TARGET = 8.0, 0.25
"""About this many times √p/μ scores are to be longer than the bound (see above), and at most this share of the records."""

UP = 1.0 + 2.0**-50
"""Noise at a shorter bound is the same share of it, rounded up."""

LEVEL_NOISE, LEVEL_SHARES = 0.1, (0.02, 0.2)
"""The deviation aimed at of the noise of a response's mean, in half-ranges, and the least and largest share of μ² for it."""

MOMENTS_SHARE = 0.12
"""Of μ²: moments in declared coordinates. Those in measured ones and the information have shares by kind (kinds.py), the steps
the rest."""

LARGEST_MATRIX = 150
"""Coefficients of several classes up to which information and covariance are measured. Beyond, their p(p + 1)/2 numbers would make a
certificate of megabytes, and noise would hide them at any n that fits into memory."""

ROOMY_EDGE = 0.1
"""Rows of measured moments are that long while the noise's spectral edge stays below this share of a unit variance."""

INFORMATION_SQUARES, INFORMATION_EDGE = (1.5, 12.0), 0.15
"""The same for rows of the information, over p, and the edge as a share of the expected information. At 0.4 noise hid directions
with a tenth of the expected information, along which errors are large."""

PERSON_NOISE = 0.1
"""A person's scores may be so long that their covariance's noise is √k times this share of that of independent records."""


ADDED = ("level_noise", "known_noise")
"""Numbers that plans did not always have."""


@dataclass(frozen=True)
class StepNumbers(MomentsStage):
    """Everything that runs, by name. Noises are standard deviations; 0 leaves a stage out.

    Bounds of scores are the longest: `at` has those that run after a shorter one was chosen.
    """

    level_noise: float = 0.0
    design_noise: float = 0.0
    design_radius: float = 0.0
    tail_noise: float = 0.0
    tail_target: float = 0.0
    early_bound: float = 0.0
    early_noise: float = 0.0
    step_bound: float = 0.0
    step_noise: float = 0.0
    count_noise: float = 0.0
    information_noise: float = 0.0
    information_radius: float = 0.0
    covariance_noise: float = 0.0
    covariance_radius: float = 0.0
    known_noise: float = 0.0
    """Of the number of records with all cells, where the others contribute nothing."""

    @property
    def complete(self) -> bool:
        pairs = ("moment_radius", "moments_noise"), ("design_radius", "design_noise"), ("early_bound", "early_noise")
        more = ("step_bound", "step_noise"), ("information_radius", "information_noise"), ("tail_target", "tail_noise")
        both = (*pairs, *more, ("covariance_radius", "covariance_noise"))
        given = [(getattr(self, bound) > 0.0, getattr(self, noise) > 0.0) for bound, noise in both]
        always = self.moments_noise and self.early_noise and self.step_noise
        return bool(always and all(bound == noise for bound, noise in given))

    @classmethod
    def from_dict(cls, stored: Mapping[str, float], what: str) -> Self:
        """Return the stored numbers; plans from before the level was measured alone, or records were counted, have none for it."""
        return super().from_dict({**dict.fromkeys(ADDED, 0.0), **stored}, what)

    def named_as(self, stored: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers by name, those that plans did not always have only if they are stored: digests stay as they were."""
        return {name: value for name, value in self.to_dict().items() if name in stored or name not in ADDED}

    def to_dict(self) -> dict[str, float]:
        found = super().to_dict()
        return found if self.known_noise else {name: value for name, value in found.items() if name != "known_noise"}

    def at(self, factor: float) -> Self:
        """Return the numbers with scores shortened to this share of their longest bound.

        Each noise keeps its ratio to what one record can move, or a larger one.
        """
        squared = min(1.0, factor * max(1.0, self.step_bound / (self.covariance_radius or self.step_bound)))
        return replace(
            self,
            early_bound=self.early_bound * factor, early_noise=self.early_noise * factor * UP,
            step_bound=self.step_bound * factor, step_noise=self.step_noise * factor * UP,
            covariance_radius=self.covariance_radius * squared,
            covariance_noise=self.covariance_noise * squared**2 * UP,
        )  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What the sizes depend on, all of it public."""

    layout: Layout
    score: Score
    n: int
    records: int
    """Of one person."""
    persons: bool = False
    """Whether scores are added up by person before they are squared."""
    skips: bool = False
    """Whether records with a missing cell contribute nothing."""

    columns: MomentColumns = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    """Coefficients, the intercept included."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MomentColumns(self.layout, self.score.in_moments))
        object.__setattr__(self, "size", self.score.blocks * self.layout.width)

    @property
    def triangle(self) -> int:
        """Return the entries of a symmetric matrix of all coefficients."""
        return self.size * (self.size + 1) // 2


def numbers_for(setting: Setting, mu: float) -> StepNumbers:
    """Return the numbers that spend a total of μ."""
    spending, kind, k, n = Spending(mu, pure=False), setting.score.constants, setting.records, setting.n
    entries, design = setting.columns.count, kind.design_share
    one = design_edge(entries + 1.0, entries, n, k, mu * math.sqrt(design))
    row_square = _within(kind.row_squares, ROOMY_EDGE / one) * (entries + 1.0)
    before = partial(stage_before, setting.columns, spending, n=n, records=k)
    moments = MOMENTS_SHARE
    if design_edge(row_square, entries, n, k, mu * math.sqrt(design)) > kind.largest_design_edge:
        moments, design = moments + design, 0.0
    stage, _ = before(share=moments)
    level = 0.0 if _in_mean(setting, stage) else level_share(n * mu / k, setting.score.level_reach)
    information, covariance, count = kind.information_share, COVARIANCE_SHARE, kind.count_share
    if setting.score.of_classes and setting.size > LARGEST_MATRIX:
        information = covariance = 0.0
    known = KNOWN_SHARE if setting.skips else 0.0
    steps = 1.0 - moments - design - EARLY_SHARE - information - covariance - count - level - known
    longest = beta(setting, mu * math.sqrt(steps))
    tail = TAIL_SHARE if longest >= kind.least_searched and not setting.score.fixed else 0.0
    steps -= tail
    bound = longest * math.sqrt(setting.layout.width)
    information_square = _information_square(setting, mu * math.sqrt(information)) if information else 0.0
    covariance_square, together = covariance_bound(setting, bound) ** 2 if covariance else 0.0, k
    if setting.persons and covariance:
        covariance_square, together = person_square(setting, bound, mu * math.sqrt(COVARIANCE_SHARE)), 1
    return StepNumbers(
        stage.mean_noise, stage.moments_noise, stage.moment_radius,
        spending.noise(level, setting.score.level_reach * k) if level else 0.0,
        spending.noise(design, k * apart(row_square, pure=False)) if design else 0.0,
        math.sqrt(row_square) if design else 0.0,
        math.sqrt(TAIL_COUNTS) * spending.noise(tail, float(k)) if tail else 0.0,
        min(TAIL_TARGET * math.sqrt(setting.layout.width) * k / mu, LARGEST_TARGET * n) if tail else 0.0,
        bound / 2.0, math.sqrt(EARLY_STEPS) * spending.noise(EARLY_SHARE, 2.0 * k * bound / 2.0),
        bound, math.sqrt(STEPS) * spending.noise(steps, 2.0 * k * bound),
        spending.noise(count, float(k)) if count else 0.0,
        spending.noise(information, k * apart(information_square, pure=False)) if information else 0.0,
        math.sqrt(information_square),
        spending.noise(covariance, together * apart(covariance_square, pure=False)) if covariance else 0.0,
        math.sqrt(covariance_square),
        spending.noise(known, float(k)) if known else 0.0,
    )  # fmt: skip


def _in_mean(setting: Setting, stage: MomentsStage) -> bool:
    """Return whether the response's level is measured with the columns' mean, or not needed."""
    return bool(stage.mean_noise and setting.columns.response) or not setting.layout.intercept


def _information_square(setting: Setting, mu: float) -> float:
    """Return the squared norm of a record's share of the information, for this μ of it."""
    score, p = setting.score, setting.layout.width
    top = score.largest_curvature
    one = design_edge(p, setting.size, setting.n, setting.records, mu)
    return top * _within(INFORMATION_SQUARES, INFORMATION_EDGE * score.information / top / one) * p


def beta(setting: Setting, mu: float) -> float:
    """Return β, for this μ of the steps: see the head of this file."""
    score, n, p = setting.score, setting.n, setting.layout.width
    if score.fixed:
        return score.fixed_beta
    information = {"number": 1.0, "count": 1.0, "quantile": 0.64}.get(score.kind, score.information)
    found = 1.5 * score.constants.bias**2 * (n * mu / setting.records) ** 2 * information / (4.0 * p)
    return float(max(score.constants.least_beta, found**0.2))


def level_share(signal: float, reach: float = LEVEL_REACH) -> float:
    """Return the share of μ² for the response's level alone, for this nμ over the records of a person.

    It is measured where the mean of all columns would drown, and always of several classes. Its noise is then `LEVEL_NOISE` where that
    costs little: without it the response's distance from the middle of its range would count as scatter, and all noise would be as
    much larger.
    """
    least, most = LEVEL_SHARES
    return min(max((reach / (LEVEL_NOISE * signal)) ** 2, least), most)


def choose_factor(count: Callable[[float], float], target: float) -> float:
    """Return the smallest factor of the longest bound that about `target` scores exceed at most, by bisection.

    Parameters
    ----------
    count : callable
        Returns the noisy number of scores that are longer than this share of the longest bound.
    """
    low, high = -1, len(FACTORS) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(FACTORS[middle]) > target else (low, middle)
    return FACTORS[high]


def covariance_bound(setting: Setting, bound: float) -> float:
    """Return the length to which scores are shortened before they are squared: fixed lengths are kept."""
    if setting.score.fixed:
        return bound
    return min(bound, setting.score.constants.longest_covariance * math.sqrt(setting.layout.width))


def person_square(setting: Setting, bound: float, mu: float) -> float:
    """Return the squared length to which the sum of a person's scores is shortened before it is squared.

    At least k·B_K², with the noise that k single records have: enough where a person's records are independent. At most
    k²·B_K², which leaves scores alone that are all alike. Between them what the noise allows: it may be a share of √k times the
    covariance of independent records, since that of records that are alike is up to k times as large.
    """
    k, score = setting.records, setting.score
    room = PERSON_NOISE * setting.n * math.sqrt(k * setting.size) * score.variance * mu / apart(1.0, pure=False)
    least = k * covariance_bound(setting, bound) ** 2
    return min(max(room, least), k * least)


def design_edge(square: float, entries: int, n: int, records: int, mu: float) -> float:
    """Return the spectral edge of the noise in second moments of rows of this squared norm."""
    return records * apart(square, pure=False) * math.sqrt(entries) / (mu * n)


def _within(ends: tuple[float, float], value: float) -> float:
    """Return the value, or the end that it is beyond: rows are as long as the noise's edge allows."""
    return min(max(value, ends[0]), ends[1])


def stages_of(setting: Setting, numbers: StepNumbers) -> list[Stage]:
    """Return every noised sum, once for each time it is published, with what one record, or a person, can move it by.

    Scores at their longest bound: at a shorter one reach and noise are smaller in the same ratio (`StepNumbers.at`).
    """
    score, p = setting.score, setting.size
    level = Stage(score.level_reach, numbers.level_noise, score.level_size, columns=True)
    found = [Stage(1.0, numbers.known_noise, 1, columns=True)] if numbers.known_noise else []
    found += [level] if numbers.level_noise else []
    found += numbers.stages(setting.columns, pure=False)
    if numbers.design_noise:
        square = numbers.design_radius**2
        found.append(Stage(apart(square, pure=False), numbers.design_noise, setting.columns.entries, square))
    if numbers.tail_noise:
        found += [Stage(1.0, numbers.tail_noise, 1, 1.0)] * TAIL_COUNTS
    for bound, noise, times in (
        (numbers.early_bound, numbers.early_noise, EARLY_STEPS),
        (numbers.step_bound, numbers.step_noise, STEPS),
    ):
        found += [Stage(2.0 * bound, noise, p, bound)] * times
    if numbers.count_noise:
        found.append(Stage(1.0, numbers.count_noise, 1, 1.0))
    for radius, noise, of_person in (
        (numbers.information_radius, numbers.information_noise, False),
        (numbers.covariance_radius, numbers.covariance_noise, setting.persons),
    ):
        if noise:
            found.append(Stage(apart(radius**2, pure=False), noise, setting.triangle, radius**2, of_person=of_person))
    return found


LARGEST_LOSS = 2.0
"""How many times its variance the noise of coefficients may have that are not of interest."""


def stretch_for(share: float) -> tuple[float, float]:
    """Return (1 + x, 1/κ) of effects.py for effects of interest that are this share of all coefficients."""
    if not 0.0 < share < 1.0:
        return 1.0, 1.0
    loss = min((1.0 - share) / (1.0 - share**0.4), LARGEST_LOSS)
    return 1.0 + (loss - 1.0) / share, loss
