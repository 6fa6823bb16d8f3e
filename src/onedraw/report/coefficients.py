"""The released numbers as people read them: by name, in the columns' own units, with intervals where there are any.

The certificate keeps the draw as drawn, in the coordinates its promise and `verify` are about; here it is brought into
the units of the columns by public numbers only. An interval is computed elsewhere, from the draws (mathematics-2 D).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from onedraw.errors import WrongCall
from onedraw.mechanisms import Moments, PerturbedMode
from onedraw.release import Certificate, Release
from onedraw.release.reading import average, fit_of, moments_of, readable_draws
from onedraw.release.verification import rebuild_plan

NUMBERS = ("centre", "low", "high", "sampling_sd", "privacy_sd", "p_value")


@dataclass(frozen=True)
class CoefficientTable:
    """One row for each name: a centre, an interval at ``level``, and the two parts of its uncertainty.

    ``sampling_sd`` is what would remain without privacy, ``privacy_sd`` what the release adds; a bound that is not
    finite means that this coordinate has no interval, and ``remark`` says why. ``p_value`` is of "this is 0", NaN where
    nothing was tested.
    """

    names: Sequence[str]
    centre: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    level: float
    sampling_sd: Sequence[float]
    privacy_sd: Sequence[float]
    remark: str = ""
    p_value: Sequence[float] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(map(str, self.names)))
        if not self.p_value:
            object.__setattr__(self, "p_value", (math.nan,) * len(self.names))
        for field in NUMBERS:
            object.__setattr__(self, field, tuple(map(float, getattr(self, field))))
        lengths = {len(getattr(self, name)) for name in ("names", *NUMBERS)}
        if len(lengths) != 1:
            raise WrongCall(
                f"A table of coefficients has one entry per name in every column, but columns of {sorted(lengths)} "
                "entries came. Intervals beside the wrong names would be published."
            )
        if not 0.0 < float(self.level) < 1.0:
            raise WrongCall(f"level is a probability such as 0.95, but {self.level!r} came.")
        if any(low > high for low, high in zip(self.low, self.high, strict=True)):
            raise WrongCall("A lower end of an interval lies above its upper end. Pass low and high in this order.")
        if any(value < 0 for value in (*self.sampling_sd, *self.privacy_sd)):
            raise WrongCall("A standard deviation is not negative. Pass sampling_sd and privacy_sd per name.")

    @property
    def std_err(self) -> tuple[float, ...]:
        """Sampling and privacy noise together."""
        return tuple(map(math.hypot, self.sampling_sd, self.privacy_sd))

    @property
    def tested(self) -> bool:
        return any(map(math.isfinite, self.p_value))

    @classmethod
    def read(cls, given: Any) -> CoefficientTable:
        """From anything with the same attributes, such as what planning returns."""
        if isinstance(given, cls):
            return given
        try:
            return cls(
                given.names, given.centre, given.low, given.high, float(given.level),
                given.sampling_sd, given.privacy_sd, str(getattr(given, "remark", "")), tuple(getattr(given, "p_value", ())),
            )  # fmt: skip
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, WrongCall):
                raise
            raise WrongCall(
                "interval= takes names, centre, low, high, level, sampling_sd and privacy_sd, but a "
                f"{type(given).__name__} came. Pass onedraw.report.CoefficientTable(...)."
            ) from error


def coefficient_table(release: Release | Certificate, level: float = 0.95) -> CoefficientTable:
    """The intervals that a release's own numbers give, in the units of the columns: post-processing, it costs nothing.

    `PromiseRefused` says why where there are none; hand its text to the report instead.
    """
    from onedraw.release.intervals.released import fit_interval, moments_interval, release_interval
    from onedraw.release.intervals.replicated import why_refused

    certificate = release.certificate if isinstance(release, Release) else release
    names, plan = certificate.draw.names, rebuild_plan(certificate)
    p_values: tuple[float, ...] = ()
    if isinstance(plan.mechanism, Moments):
        moments = moments_of(certificate, plan)
        found, remark = moments_interval(moments, level), moments.refused(plan.model.names)
        p_values = tuple(moments.p_values)
    elif isinstance(plan.mechanism, PerturbedMode):
        fit = fit_of(certificate, plan)
        found, p_values = fit_interval(fit, level), tuple(fit.p_values)
        remark = why_refused([math.isnan(end) for end in found.low], names, fit=True)
    else:
        found = release_interval(certificate, level)
        remark = why_refused([math.isnan(end) for end in found.low], names)
    return CoefficientTable(
        names,
        centre=list(found.centre),
        low=list(found.low),
        high=list(found.high),
        level=level,
        sampling_sd=list(found.parts.sampling),
        privacy_sd=list(found.parts.privacy),
        remark=remark,
        p_value=p_values,
    )


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


def rows_of(certificate: Certificate, plan: Any, interval: CoefficientTable | None) -> list[Row]:
    """The rows of the report: of the interval's table where there is one, else of the draws."""
    if interval is not None:
        return [_with_interval(interval, index) for index in range(len(interval.names))]
    draws = readable_draws(certificate, plan.model)
    values = average(draws, plan)
    several = len(draws) > 1
    return [
        Row(name, float(values[index]), tuple(map(float, draws[:, index])) if several else ())
        for index, name in enumerate(certificate.draw.names)
    ]


def publishes_picks(plan: Any) -> bool:
    return getattr(plan.mechanism, "publish", None) == "picks" and plan.draws > 1


def _with_interval(table: CoefficientTable, index: int) -> Row:
    centre, low, high = table.centre[index], table.low[index], table.high[index]
    sampling, privacy = table.sampling_sd[index], table.privacy_sd[index]
    row = Row(table.names[index], centre, sampling_sd=sampling, privacy_sd=privacy, p_value=table.p_value[index])
    if not (math.isfinite(low) and math.isfinite(high)):
        return row
    quantile = NormalDist().inv_cdf(0.5 + table.level / 2.0)
    both, alone = (
        (max(low, centre - quantile * sd), min(high, centre + quantile * sd)) if math.isfinite(sd) else None
        for sd in (math.hypot(sampling, privacy), sampling)
    )
    return replace(row, interval=(low, high), both=both, sampling=alone)
