"""The released numbers as the page draws them: the rows of `onedraw.release.Estimates`, with the parts of their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

from onedraw.plans import Plan
from onedraw.release import Certificate, Estimate, Estimates
from onedraw.release.estimates import readable_draws, values_of


@dataclass(frozen=True)
class Row:
    """One number of the release.

    ``sampling`` is the interval that sampling alone would leave, ``both`` the one of sampling and privacy noise together:
    normal quantiles of the standard deviations beside them. What the interval has beyond is its ``allowance``.
    """

    name: str
    value: float
    draws: tuple[float, ...] = ()
    interval: tuple[float, float] | None = None
    both: tuple[float, float] | None = None
    sampling: tuple[float, float] | None = None
    sampling_sd: float = math.nan
    privacy_sd: float = math.nan
    p_value: float = math.nan

    @property
    def allowance(self) -> float:
        """How much longer than noise alone would ask for the interval is, on each side."""
        if self.interval is None or self.both is None:
            return math.nan
        return max(0.0, (self.interval[1] - self.interval[0] - (self.both[1] - self.both[0])) / 2.0)

    def times(self, factor: float) -> Row:
        """The effect of ``factor`` units; the standard deviations belong to one unit and stay."""
        interval, both, sampling = (
            None if pair is None else (factor * pair[0], factor * pair[1])
            for pair in (self.interval, self.both, self.sampling)
        )
        draws = tuple(factor * value for value in self.draws)
        return replace(self, value=factor * self.value, draws=draws, interval=interval, both=both, sampling=sampling)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest number that is drawn for it."""
        shown = [self.value, *self.draws, *(self.interval or ())]
        return min(shown), max(shown)


def rows_of(certificate: Certificate, plan: Plan, table: Estimates | None) -> list[Row]:
    """The rows of the report: of the table of intervals where there is one, else of the draws."""
    if table is not None:
        return [_with_interval(name, row, table.level) for name, row in zip(table.names, table, strict=True)]
    draws, values = readable_draws(certificate, plan.model), values_of(certificate, plan)
    several = len(draws) > 1
    return [
        Row(name, float(values[index]), tuple(map(float, draws[:, index])) if several else ())
        for index, name in enumerate(certificate.draw.names)
    ]


def publishes_picks(plan: Plan) -> bool:
    return getattr(plan.mechanism, "publish", None) == "picks" and plan.draws > 1


def _with_interval(name: str, found: Estimate, level: float) -> Row:
    centre, low, high = found.estimate, found.low, found.high
    row = Row(name, centre, sampling_sd=found.sampling_error, privacy_sd=found.privacy_error, p_value=found.p_value)
    if not found.given:
        return row
    quantile = NormalDist().inv_cdf(0.5 + level / 2.0)
    both, alone = (
        (max(low, centre - quantile * sd), min(high, centre + quantile * sd)) if math.isfinite(sd) else None
        for sd in (found.std_err, found.sampling_error)
    )
    return replace(row, interval=(low, high), both=both, sampling=alone)
