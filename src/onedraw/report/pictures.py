"""Pictures as inline SVG: drawn by hand so that they follow the page's colours, in print and in the dark.

Wide pictures are rows of a page, each with its own small SVG placed in percent, so that words keep their size on a
phone. Every number passes through `Markup.format`, which escapes; colours are classes of the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from markupsafe import Markup

from onedraw.privacy import Attacker
from onedraw.release import Estimate
from onedraw.release.evaluations import Curve

Write = Callable[[float], str]
"""How numbers on an axis are written where they are dates."""

ROW_HEIGHT = 26
OWN_SCALES = 8.0
"""Rows whose extents differ by more than this cannot share an axis: the small ones would vanish."""

STRONGEST = 0.5
"""How opaque a correlation of 1 is: words on it must stay readable."""

MOST_NUMBERED = 8
"""More cells in a row than this have no room for numbers on a phone; the table below has them."""


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

    ends: tuple[float, float] = field(init=False, repr=False, compare=False)
    """The smallest and the largest number that is drawn for it."""
    allowance: float = field(default=math.nan, init=False, repr=False, compare=False)
    """How much longer than noise alone would ask for the interval is, on each side."""

    def __post_init__(self) -> None:
        shown = [self.value, *self.draws, *(self.interval or ())]
        object.__setattr__(self, "ends", (min(shown), max(shown)))
        if self.interval is not None and self.both is not None:
            longer = self.interval[1] - self.interval[0] - (self.both[1] - self.both[0])
            object.__setattr__(self, "allowance", max(0.0, longer / 2.0))

    @classmethod
    def estimated(cls, name: str, found: Estimate, level: float) -> Row:
        """With its interval, where it has one."""
        centre, low, high = found.estimate, found.low, found.high
        row = cls(name, centre, sampling_sd=found.sampling_error, privacy_sd=found.privacy_error, p_value=found.p_value)
        if not found.given:
            return row
        quantile = NormalDist().inv_cdf(0.5 + level / 2.0)
        both, alone = (
            (max(low, centre - quantile * sd), min(high, centre + quantile * sd)) if math.isfinite(sd) else None
            for sd in (found.std_err, found.sampling_error)
        )
        return replace(row, interval=(low, high), both=both, sampling=alone)

    def times(self, factor: float) -> Row:
        """The effect of ``factor`` units; the standard deviations belong to one unit and stay."""
        interval, both, sampling = (
            None if pair is None else (factor * pair[0], factor * pair[1])
            for pair in (self.interval, self.both, self.sampling)
        )
        draws = tuple(factor * value for value in self.draws)
        return replace(self, value=factor * self.value, draws=draws, interval=interval, both=both, sampling=sampling)


@dataclass(frozen=True)
class Scale:
    """Where a number stands, in percent of the width."""

    low: float
    high: float

    def at(self, value: float) -> float:
        if not math.isfinite(value):
            return 50.0
        return round(2.0 + 96.0 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low), 3)

    @property
    def ticks(self) -> list[float]:
        """Three to seven round numbers inside the scale."""
        wanted = (self.high - self.low) / 6.0
        power = 10.0 ** math.floor(math.log10(wanted))
        step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= wanted * (1.0 - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


@dataclass(frozen=True)
class Plot:
    """One picture for each row, and the axis below them where they share one."""

    pictures: list[Markup]
    axis: Markup | None


def single_plot(row: Row, *, limits: tuple[float, float] | None, percent: bool, write: Write | None = None) -> Plot:
    """One number on the range declared for it, or on a scale of its own size."""
    ends = row.ends if all(map(math.isfinite, row.ends)) else (0.0, 1.0)
    inside = limits is not None and limits[0] <= ends[0] and ends[1] <= limits[1]
    scale = Scale(*limits) if limits is not None and inside else _common_scale([row], around_zero=False)
    return Plot([_strip(row, scale, scale.ticks, zero=False, track=True)], _axis(scale, percent=percent, write=write))


def interval_plot(rows: Sequence[Row], *, alike: bool = False) -> Plot:
    """Dots with bars of three tones; on one axis where the rows are alike or of one order of magnitude, else each on its own."""
    finite = [row for row in rows if all(map(math.isfinite, row.ends))]
    if not finite:
        return Plot([_strip(row, Scale(-1, 1), (), zero=False) for row in rows], None)
    if not alike and not comparable(finite):  # zero in the middle: the line of zeros runs straight down the page
        reaches = [1.15 * (max(map(abs, row.ends)) if row in finite else 0.0) or 1.15 for row in rows]
        own = [Scale(-reach, reach) for reach in reaches]
        return Plot([_strip(row, scale, (), zero=True) for row, scale in zip(rows, own, strict=True)], None)
    scale = _common_scale(finite, around_zero=True)
    some = any(row.interval for row in rows)
    pictures = [_strip(row, scale, scale.ticks, zero=True, bare=some and not row.interval) for row in rows]
    return Plot(pictures, _axis(scale))


def share_plot(rows: Sequence[Row], *, percent: bool = True) -> Plot:
    """Bars from 0, for shares of a whole, or for counts."""
    top = max((row.ends[1] for row in rows), default=1.0)
    whole = 1.0 if percent else 10.0 ** math.ceil(math.log10(max(top, 1.0)))  # counts end at a round number
    steps = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8)
    scale = Scale(0.0, whole * next((step for step in steps if top <= step * whole), 1.0))
    pictures = []
    for row in rows:
        start, end = scale.at(0.0), scale.at(row.value)
        bar = Markup('<rect class="{}" x="{}%" y="4" width="{}%" height="18" rx="2"/>').format(
            "share" if row.interval is None else "pale", start, round(end - start, 3)
        )
        pictures.append(_frame(bar, _interval(row, scale), scale=scale, ticks=scale.ticks))
    return Plot(pictures, _axis(scale, percent=percent))


def quantile_plot(rows: Sequence[Row], *, write: Write | None = None) -> Plot:
    """Dots with intervals on one axis that need not show zero."""
    scale = _common_scale(rows, around_zero=False)
    return Plot([_strip(row, scale, scale.ticks, zero=False) for row in rows], _axis(scale, write=write))


def box_plot(rows: Sequence[Row]) -> Markup | None:
    """Quartiles as a box, the median as a line in it, the outermost released quantiles as whiskers; on the axis of
    `quantile_plot`. None where the quartiles or the median were not released."""
    values = {row.name: row.value for row in rows}
    quartiles = ("lower quartile", "median", "upper quartile")
    if not values.keys() >= set(quartiles):
        return None
    scale = _common_scale(rows, around_zero=False)
    low, middle, high = (scale.at(values[name]) for name in quartiles)
    first, last = (scale.at(end(values.values())) for end in (min, max))
    whisker = Markup('<line class="rail" x1="{}%" x2="{}%" y1="13" y2="13"/>').format(first, last)
    box = Markup('<rect class="pale" x="{}%" y="4" width="{}%" height="18" rx="2"/>').format(low, round(high - low, 3))
    line = Markup('<line class="zero" x1="{0}%" x2="{0}%" y1="4" y2="22"/>').format(middle)
    return _frame(whisker, box, line, scale=scale, ticks=scale.ticks)


def tradeoff(attacker: Attacker) -> Markup:
    """Misses against false alarms: blind guessing is the diagonal, the promise keeps every attacker above the curve."""
    points, (x0, y0), (x1, y1) = attacker.curve(), _at(0, 0), _at(1, 1)
    curve = " ".join("{:.2f},{:.2f}".format(*_at(*point)) for point in points)
    room = points[0][1] > 0.9 and attacker.right_guesses < 0.72
    label = Markup('<text x="{}" y="{}" class="reach">out of reach</text>').format(*_at(0.06, 0.12)) if room else ""
    drawn = Markup(
        '<polygon class="gap" points="{curve} {end}"/><polygon class="safe" points="{origin} {curve}"/>'
        '<path class="blind" d="M{x0} {y1}L{x1} {y0}"/><polyline class="curve" points="{curve}"/>{label}'
    ).format(curve=curve, origin=f"{x0},{y0}", end=f"{x1},{y0} {x0},{y1}", x0=x0, y0=y0, x1=x1, y1=y1, label=label)
    kept = "; ".join(
        f"at {100 * alpha:g} % false alarms at least {100 * attacker.misses(alpha):.1f} % misses"
        for alpha in (0.01, 0.1, 0.5)
    )
    described = (
        "Blind guessing lies on the diagonal from 100 % misses at no false alarms to none at 100 %. The promise keeps every "
        f"attacker on or above a curve below it: {kept}. The table below has the numbers."
    )
    title = "Trade-off curve: the fewest misses an attacker can have at each rate of false alarms"
    return _unit_square("tradeoff", title, drawn, across="false alarms", up="misses", described=described)


def banded(curve: Curve, name: str, title: str, *, across: str, up: str, dots: bool = False) -> Markup:
    """A curve with its band; the diagonal is chance, or perfect calibration."""
    known = np.isfinite(curve.y)
    x, y, low, high = (values[known].tolist() for values in (curve.x, curve.y, curve.low, curve.high))
    around = [*zip(x, low, strict=True), *reversed([*zip(x, high, strict=True)])]
    line, band = (["{:.1f},{:.1f}".format(*_at(*point)) for point in some] for some in (zip(x, y, strict=True), around))
    circle = Markup('<circle class="dot" cx="{}" cy="{}" r="4"/>')
    circles = (circle.format(*point.split(",")) for point in line if dots)
    (x0, y0), (x1, y1) = _at(0, 0), _at(1, 1)
    drawn = Markup(
        '<polygon class="safe" points="{band}"/><path class="blind" d="M{x0} {y0}L{x1} {y1}"/>'
        '<polyline class="curve" points="{line}"/>{dots}'
    ).format(band=" ".join(band), line=" ".join(line), dots=Markup("").join(circles), x0=x0, y0=y0, x1=x1, y1=y1)
    return _unit_square(name, title, drawn, across=across, up=up)


def _unit_square(name: str, title: str, drawn: Markup, *, across: str, up: str, described: str = "") -> Markup:
    """What is drawn in the unit square, with its grid and the names of its axes."""
    ticks = Markup("").join(
        Markup(
            '<text x="{0}" y="302" text-anchor="middle">{1}</text><text x="48" y="{2}" text-anchor="end">{1}</text>'
            '<path class="grid" d="M{0} 16V286M54 {3}H350"/>'
        ).format(f"{x:.1f}", f"{100 * t:g} %" if t else "0", f"{y + 4:.1f}", f"{y:.1f}")
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
        for x, y in (_at(t, t),)
    )
    words = Markup('<desc id="{}-desc">{}</desc>').format(name, described) if described else ""
    return Markup(
        '<svg class="tradeoff" viewBox="0 0 372 332" role="img" aria-labelledby="{labelled}"><title id="{name}-title">{title}'
        '</title>{words}{ticks}{drawn}<text x="202" y="324" text-anchor="middle" class="axis-name">{across}</text>'
        '<text transform="translate(11 151) rotate(-90)" text-anchor="middle" class="axis-name">{up}</text></svg>'
    ).format(
        labelled=f"{name}-title {name}-desc" if described else f"{name}-title", name=name, title=title, words=words,
        ticks=ticks, drawn=drawn, across=across, up=up,
    )  # fmt: skip


def hundred(right: int) -> Markup:
    """A hundred guesses as dots: those that are right by luck, those that the release may add, the others."""
    dots = Markup("").join(
        Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(
            "lucky" if k < 50 else "helped" if k < right else "wrong", 9 + 18 * (k % 20), 9 + 18 * (k // 20),
            6.5 if k < right else 5.5,
        )
        for k in range(100)
    )  # fmt: skip
    return Markup(
        '<svg class="hundred" viewBox="0 0 360 90" role="img" aria-labelledby="hundred-title"><title id="hundred-title">'
        "Of a hundred guesses, fifty are right by luck; with this release at most {} are right</title>{}</svg>"
    ).format(right, dots)


def budget_bar(spent: float, total: float) -> Markup:
    """How much of the budget is spent; a full bar where it is all gone."""
    share = min(max(spent / total, 0.0), 1.0) if total > 0 else 1.0
    return Markup(
        '<svg class="budget" height="22" role="img" aria-labelledby="budget-title"><title id="budget-title">{}</title>'
        '<rect class="left" x="0" y="1" width="100%" height="20" rx="4"/>'
        '<rect class="spent" x="0" y="1" width="{}%" height="20" rx="4"/></svg>'
    ).format(f"{100 * share:.0f} % of the budget is spent", round(100 * share, 2))


def heat_map(rows: Sequence[Sequence[float]]) -> Plot:
    """The lower triangle of a correlation matrix, a strip for each row but the first: the stronger the colour, the closer to 1
    or −1; the sign is in the colour and, where there is room, in the number. The axis has the columns' numbers."""
    count, strips = len(rows) - 1, []
    for row in rows[1:]:
        cells = []
        for place, value in enumerate(row):
            known, middle = math.isfinite(value), round(100 * (place + 0.5) / count, 3)
            cells.append(Markup('<rect class="cell {}" x="{}%" y="1" width="{}%" height="24" fill-opacity="{}"/>').format(
                "unknown" if not known else "down" if value < 0 else "up", round(100 * place / count + 0.15, 3),
                round(100 / count - 0.3, 3), f"{STRONGEST * abs(value):.2f}" if known else 1,
            ))  # fmt: skip
            if known and count <= MOST_NUMBERED:
                shown = f"{'−' if round(value, 2) < 0 else ''}{f'{abs(value):.2f}'.removeprefix('0')}"
                cells.append(Markup('<text x="{}%" y="17" text-anchor="middle">{}</text>').format(middle, shown))
        strips.append(_frame(*cells))
    return Plot(strips, _below([(round(100 * (k + 0.5) / count, 3), "middle", str(k + 1)) for k in range(count)]))


# ── the parts of a row ───────────────────────────────────────────────────────────────────────────────────────


def _strip(
    row: Row, scale: Scale, ticks: Sequence[float], *, zero: bool, track: bool = False, bare: bool = False
) -> Markup:
    """``bare``: others have an interval and this one was refused it, which a hollow dot shows."""
    rail = Markup('<line class="rail" x1="2%" x2="98%" y1="13" y2="13"/>') if track else ""
    line = Markup('<line class="zero" x1="{0}%" x2="{0}%" y1="-5" y2="31"/>').format(scale.at(0.0)) if zero else ""
    circle = Markup('<circle class="dot{}" cx="{}%" cy="13" r="4.5"/>')
    dot = circle.format(" bare" if bare else "", scale.at(row.value)) if math.isfinite(row.value) else ""
    return _frame(rail, line, _interval(row, scale), dot, scale=scale, ticks=ticks)


def _frame(*parts: Markup | str, scale: Scale | None = None, ticks: Sequence[float] = ()) -> Markup:
    # the grid goes beyond the strip: a name may take two lines
    line = Markup('<line class="grid" x1="{0}%" x2="{0}%" y1="-5" y2="31"/>')
    grid = [] if scale is None else [line.format(scale.at(tick)) for tick in ticks]
    return Markup('<svg class="strip" height="{}" aria-hidden="true" focusable="false">{}</svg>').format(
        ROW_HEIGHT, Markup("").join([*grid, *parts])
    )


def _interval(row: Row, scale: Scale) -> Markup:
    """The whole interval thin, what noise alone would give thicker, what sampling alone would give thick on top; then the draws."""
    bar = Markup('<rect class="{}" x="{}%" y="{}" width="{}%" height="{}" rx="2"/>')
    parts = []
    for kind, ends, height in (
        ("allowance", row.interval, 3),
        ("privacy", row.both, 8),
        ("sampling", row.sampling, 16),
    ):
        if ends is not None:
            low, high = map(scale.at, ends)
            parts.append(bar.format(kind, low, f"{13 - height / 2:g}", round(high - low, 3), height))
    line = Markup('<line class="draw" x1="{0}%" x2="{0}%" y1="7" y2="19"/>')
    return Markup("").join([*parts, *(line.format(scale.at(value)) for value in row.draws)])


def _axis(scale: Scale, *, percent: bool = False, write: Write | None = None) -> Markup:
    words = []
    for tick in scale.ticks if write is None else scale.ticks[::2]:  # dates are long
        place = scale.at(tick)
        anchor = "start" if place < 6 else "end" if place > 94 else "middle"
        value = 0.0 if abs(tick) < 1e-12 * (scale.high - scale.low) else tick
        number = (f"{100 * tick:g} %" if percent else f"{value:.6g}").replace("-", "−")
        words.append((place, anchor, number if write is None else write(tick)))
    return _below(words)


def _below(words: Sequence[tuple[float, str, str]]) -> Markup:
    """What stands below the strips: (place in percent, anchor, word)."""
    text = Markup('<text x="{}%" y="13" text-anchor="{}">{}</text>')
    return Markup('<svg class="axis" height="18" aria-hidden="true" focusable="false">{}</svg>').format(
        Markup("").join(text.format(*word) for word in words)
    )


def comparable(rows: Sequence[Row]) -> bool:
    """Whether the rows are of one order of magnitude, so that none vanishes on an axis for all; zeros fit anywhere."""
    reaches = sorted(max(map(abs, row.ends)) for row in rows if all(map(math.isfinite, row.ends)) and any(row.ends))
    if not reaches:
        return True
    middle = reaches[len(reaches) // 2]
    return reaches[-1] <= OWN_SCALES * middle and middle <= OWN_SCALES * reaches[0]


def _common_scale(rows: Sequence[Row], *, around_zero: bool) -> Scale:
    low, high = min(row.ends[0] for row in rows), max(row.ends[1] for row in rows)
    if around_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    margin = 0.06 * (high - low) or 0.1 * max(abs(high), 1.0)
    return Scale(low - margin, high + margin)


def _at(x: float, y: float) -> tuple[float, float]:
    """Where a point of the unit square is drawn."""
    return 54.0 + 296.0 * x, 286.0 - 270.0 * y
