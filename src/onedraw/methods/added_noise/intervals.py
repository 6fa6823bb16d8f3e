"""Intervals of plain-noise releases: from the noisy sums that were published, so they cost nothing.

| published | interval | is about |
| --- | --- | --- |
| counts, sums | quantiles of the noise, exact for a single count | these records |
| shares | inversion of binomial and noise, exact for one share, conservative where discrete | the population they are a sample of |
| means | normal sampling error with the private variance that came with them, and the noise's own law | the population |
| variances | inversion of the worst sampling error for each variance, and the noise's own law | the population |
| shares and means of private groups | the same, inverted as a quotient of two noisy sums (Fieller) | the population |

**The shown number.** Counts of several cells are shown as whole numbers, not negative, whose sum is public. Where no cell is cut
off at zero, that takes from each alike what they are off by in all, and so do the intervals: they are centred on what is shown. Where one is
cut off, the shown numbers are nearer to the truth on the whole, but those of large cells are pulled down; an interval that leaves out what is
shown is stretched to it. Noise may take a count below zero or above all records; it is brought back first, for an interval about a number that
cannot be would be narrow, or empty, just where the noise was large. That only widens it.

**Small samples.** A variance from few records says little, and sums of bounded records are skewed by at most their range: a
record's third central moment lies in [−σ²t, σ²(1 − t)], t the mean's place in the range. So the variance is raised by that of
two records at an end, as Agresti and Coull raise a count (Am. Stat. 52, 1998), and by one deviation of its own noise, it never
exceeds what the range allows near the mean, and the ends are moved out by the largest Edgeworth shift (1 + 2z²)/6n times t and 1 − t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.methods.added_noise.mechanism import noisy_apart, noisy_sums
from onedraw.methods.base import NoisyCount as Count
from onedraw.methods.comparisons import CLEAR, Scores
from onedraw.methods.noise_law import NoiseLaw, law_of
from onedraw.models import CategoryTable, NumberTable
from onedraw.models.conjugate.family import binomial
from onedraw.models.tables.table import STEPS
from onedraw.plans import Plan
from onedraw.privacy.numbers import crossing

Ends = tuple[float, float, float, float]
"""Low, high, and the standard errors from sampling and from the noise."""

MANY = 200
"""More shares than this are inverted with a normal sampling error: exact inversion takes 20 ms each."""

GRID = [step / 50 for step in range(51)]


def table_interval(
    plan: Plan, stages: Mapping[str, Any], level: float, *, of: str = "", noise: float | None = None
) -> tuple[Array, Array, Array, Array]:
    """Low, high, and standard errors from sampling and from noise, one of each for every published number.

    ``of`` "population" makes the interval of counts one for n times the share, "records" the one of shares about these
    records; empty: as in the table above. ``noise`` is the records' standard deviation where it is publicly known; means use it
    in place of the private one.
    """
    noisy, law = noisy_sums(plan, stages), law_of(plan)
    categories = isinstance(plan.model, CategoryTable)
    apart = noisy_apart(plan, stages)
    rows = (_categories if categories else _numbers)(plan, noisy, apart, law, level, of if categories else noise)
    low, high, sampling, privacy = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    shown = plan.model.estimate(noisy, plan.n) if not plan.model.skips else plan.mechanism.estimate(plan, stages)
    return np.minimum(low, shown), np.maximum(high, shown), sampling, privacy


LEAST_KNOWN = 3.0
"""A number of known cells below so many deviations of its noise gives no estimate, …"""
FEWEST_KNOWN = 2.0
"""… and none below two."""


def missing_cells(plan: Plan, stages: Mapping[str, Any]) -> Count:
    """Return the number of missing cells that was released, with its interval."""
    law, apart = law_of(plan), noisy_apart(plan, stages)
    value, factors = plan.model.missing_of(noisy_sums(plan, stages), plan.n, apart, law.law)
    return Count(value, lambda level: law.quantile(level, factors, 0.0) + 0.5, float(plan.n))


def known_cells(plan: Plan, stages: Mapping[str, Any]) -> list[Count]:
    """Return the number of known cells in each group, with its interval by the law of the noise."""
    table, law = plan.model, law_of(plan)
    factors = known_factors(table, law)
    found = table.known_of(noisy_sums(plan, stages), plan.n)
    return [
        Count(float(value), lambda level: law.quantile(level, factors, 0.0) + 0.5, float(plan.n)) for value in found
    ]


def too_few_known(plan: Plan, stages: Mapping[str, Any]) -> Array:
    """Return which published numbers are about groups with too few known cells, as far as noise tells."""
    table, law = plan.model, law_of(plan)
    known = table.known_of(noisy_sums(plan, stages), plan.n)
    few = known < max(LEAST_KNOWN * law.deviation(known_factors(table, law)), FEWEST_KNOWN)
    if isinstance(table, CategoryTable):
        return np.repeat(few, len(table.parameter_names) // len(few))
    return np.concatenate([few, np.zeros(len(table.parameter_names) - len(few), dtype=bool)])


def known_factors(table: Any, law: NoiseLaw) -> list[float]:
    """What one step of each noise contributes to a group's number of known cells."""
    if isinstance(table, CategoryTable):
        return [1.0] * table.kept
    if table.moves_between_cells:
        return [1.0 / STEPS] * 3
    return [1.0 / (table.weights(law.law)[2] * STEPS)]


def deviation_interval(plan: Plan, stages: Mapping[str, Any], level: float) -> tuple[Array, Array, Array]:
    """Return the standard deviation of each group and its ends, from the noisy sums that a mean was released with."""
    table, n = plan.model, plan.n
    noisy, law = noisy_sums(plan, stages), law_of(plan)
    sizes, shares, spreads = table.moments(noisy, n, noisy_apart(plan, stages))
    weights = [1.0 / weight for weight in table.weights(law.law)]
    rows = []
    for sums, size, share, spread in zip(noisy, sizes, shares, spreads, strict=True):
        t, most = min(max(float(share), 0.0), 1.0), max(float(size), 1.0)
        if table.moves_between_cells:
            records, places = max(float(sums.sum()) / STEPS, 1.0), np.array([0.0, 0.5, 1.0])
            squares = ((places - t) ** 2 - max(float(spread), 0.0) + np.array([0.0, -0.25, 0.0])) / (records * STEPS)
            squared, mean, most = squares.tolist(), ((places - t) / (records * STEPS)).tolist(), records
        elif table.skips:
            mean, squared = _factors_of_known(table, law, most, t, float(spread))
        else:
            mean = [weights[0] / (2.0 * most * STEPS)]
            squared = [weights[1] / (4.0 * most * STEPS), abs(2.0 * t - 1.0) * weights[0] / (2.0 * most * STEPS)]
        low, high, _, _ = _variance(table, t, float(spread), most, squared, mean, law, level)
        value = table.width**2 * min(max(float(spread), 0.0), 0.25 * most / max(most - 1.0, 1.0))
        rows.append([math.sqrt(max(part, 0.0)) for part in (value, min(low, value), max(high, value))])
    value, low, high = np.array(rows, dtype=np.float64).T
    return value, low, high


def group_scores(plan: Plan, stages: Mapping[str, Any], place: int | None = None) -> Scores | None:
    """Return by what the groups of a table are compared: their means, or their shares of one level; None for other numbers.

    ``place`` names the level where several are counted; the others together are then the rest."""
    table, n = plan.model, plan.n
    noisy, law = noisy_sums(plan, stages), law_of(plan)
    if table.cells < 2:
        return None
    if isinstance(table, CategoryTable):
        if table.kept != 2 and place is None:
            return None
        sizes = table.group_sizes(n)
        if table.rest_is_known:
            assert sizes is not None
            noisy = np.column_stack([sizes - noisy[:, 0], noisy[:, 0]])
            return Scores.of_shares(table.group_names, noisy, sizes, law)
        noisy = noisy[:, : table.kept]  # without missing cells, where each group has their number
        at = table.kept - 1 if place is None else place
        counts = np.column_stack([noisy.sum(axis=1) - noisy[:, at], noisy[:, at]])
        return Scores.of_shares(table.group_names, counts, None, law, others=table.kept - 1)
    if not table.is_average:
        return None
    what = str(table.show)
    if table.moves_between_cells:
        return Scores.of_cells(
            what, table.group_names, noisy / STEPS, law, split=True, unit=float(STEPS), scale=table.width
        )
    sizes, share, spread = table.moments(noisy, n)
    first = 1.0 / table.weights(law.law)[0]
    size = np.maximum(sizes, 1.0)
    sampling = np.sqrt(np.clip(spread, 0.0, 0.25) / size + 1.0 / size**3)
    if table.skips:
        common = float(np.average(np.clip(share, 0.0, 1.0), weights=size))
        factors = np.array([_factors_of_known(table, law, float(one), common, 0.0)[0] for one in size])
        clear = sizes > CLEAR * law.deviation(known_factors(table, law))
        return Scores(what, table.group_names, np.clip(share, 0.0, 1.0), sampling, factors, law, clear, table.width)
    factors = (first / (2.0 * size * STEPS))[:, None]
    return Scores(what, table.group_names, share, sampling, factors, law, sizes > 0, table.width)


def cross_table(plan: Plan, stages: Mapping[str, Any]) -> Array | None:
    """Return the noisy counts of a cross table, groups down and levels across; None where there is none, or sizes are public."""
    table = plan.model
    if not isinstance(table, CategoryTable) or not table.moves_between_cells or table.only is not None:
        return None
    return np.asarray(noisy_sums(plan, stages))


def _categories(plan: Plan, noisy: Array, apart: float, law: NoiseLaw, level: float, of: Any) -> list[Ends]:
    table, n = plan.model, plan.n
    sizes = table.group_sizes(n)
    records = (of or ("records" if table.about_records else "population")) == "records"
    rows: list[Ends] = []
    for group, sums in enumerate(noisy):
        size = None if sizes is None else float(sizes[group])
        counts = _both(table, sums, size)
        for value in counts:
            total, cells = (float(n), noisy) if size is None else (size, sums)
            cells = np.append(cells, apart) if table.apart else cells
            one = NoisyCount(value, [1.0], True)
            if (
                not table.rest_is_known and table.total_is_public
            ):  # the sum of the cells is public: what they are off by in all is taken off each
                shared = value - (float(np.asarray(cells).sum()) - total) / np.size(cells)
                one = NoisyCount(shared, shared_out(np.size(cells)), False)
            one = one._replace(value=min(max(one.value, 0.0), total))
            if records:
                # the number in these records: value ± q, conservative
                q = law.reach(level) if one.exact else law.quantile(level, one.factors, 0.0) + 0.5
                rows.append((*_whole(one.value - q, one.value + q, total), 0.0, law.deviation(one.factors)))
            elif size is None or table.skips:
                known = sums[: table.kept]
                rows.append(_quotient(value, float(sum(known)) - value, len(known) - 1, law, level))
            elif len(noisy) * len(counts) > MANY:
                rows.append(_share_of_many(one, size, law, level))
            else:
                rows.append(_share(one, size, law, level))
            noisy_size = max(float(sum(sums[: table.kept])), 1.0)
            rows[-1] = _in_units(rows[-1], table, records, n if size is None else size, noisy_size)
    return rows


def _both(table: CategoryTable, sums: Array, size: float | None) -> list[float]:
    """The noisy count of every published number of a group: where one of two was kept, the other is the rest."""
    counts = [float(value) for value in sums[: table.kept]]
    if table.rest_is_known:
        assert size is not None
        counts = [size - counts[0], counts[0]]
    return counts if table.only is None else counts[1:]


def _in_units(row: Ends, table: CategoryTable, records: bool, size: float, noisy_size: float) -> Ends:
    """Counts as counts, shares as shares: an interval for the other is multiplied or divided by the number of records."""
    if records == table.about_records:
        return row
    total = size if (table.sizes is not None or table.cells == 1) and not table.skips else noisy_size
    factor = 1.0 / max(total, 1.0) if records else total
    low, high, sampling, privacy = (part * factor for part in row)
    return (max(low, 0.0), min(high, 1.0), sampling, privacy) if records else (low, high, sampling, privacy)


class NoisyCount(NamedTuple):
    """A count with noise Σ factor·Z on it; ``exact`` where the noise is a single whole variate."""

    value: float
    factors: list[float]
    exact: bool


def shared_out(cells: int, parts: int = 1) -> list[float]:
    """What the noises of all cells, ``parts`` each, contribute to one of them when their sum is brought to a public one."""
    return [1.0 - 1.0 / cells] * parts + [1.0 / cells] * (parts * (cells - 1))


def _whole(low: float, high: float, most: float) -> tuple[float, float]:
    """The whole numbers within, and within what a count can be."""
    return max(math.ceil(low), 0.0), min(math.floor(high), most)


def _share(count: NoisyCount, size: float, law: NoiseLaw, level: float) -> Ends:
    """p with P(C + Z ≥ value; p) and P(C + Z ≤ value; p) above α/2, C binomial: conservative where discrete."""
    n, tail = int(size), (1.0 - level) / 2.0
    if n == 0:
        return 0.0, 1.0, 0.5, law.deviation(count.factors)

    def at_least(p: float) -> float:
        counts, masses = binomial(n, p)
        short = count.value - counts
        beyond = 1.0 - law.at_most(short - 1.0) if count.exact else law.beyond(short - 0.5, count.factors, 0.0)
        return float(masses @ beyond) - tail

    def at_most(p: float) -> float:
        counts, masses = binomial(n, p)
        short = count.value - counts
        below = law.at_most(short) if count.exact else law.beyond(-short - 0.5, count.factors, 0.0)
        return tail - float(masses @ below)

    p = min(max(count.value / n, 0.0), 1.0)
    return _root(at_least), _root(at_most), math.sqrt(p * (1.0 - p) / n), law.deviation(count.factors) / n


def _root(increasing: Callable[[float], float]) -> float:
    """Where in [0, 1] an increasing function changes its sign; an end, if it does not."""
    if increasing(0.0) >= 0.0:
        return 0.0
    return 1.0 if increasing(1.0) <= 0.0 else crossing(increasing, 0.0, 1.0, precision=1e-12)


def _share_of_many(count: NoisyCount, size: float, law: NoiseLaw, level: float) -> Ends:
    """With a normal sampling error, as a quotient whose denominator is known."""
    return _inverted(
        lambda p: count.value - p * size,
        lambda p: (math.sqrt(size * p * (1.0 - p)), count.factors),
        lambda p: (p + 0.5, 1.5 - p),
        law, level, count.value / max(size, 1.0), max(size, 1.0),
    )  # fmt: skip


def _quotient(value: float, others: float, count: int, law: NoiseLaw, level: float) -> Ends:
    """A share of a private group: (1 − p)·C − p·(rest) has mean zero at the truth, whatever the group's size."""
    value, others = max(value, 0.0), max(others, 0.0)
    size = max(value + others + law.deviation([1.0] * (count + 1)), 1.0)
    return _inverted(
        lambda p: (1.0 - p) * value - p * others,
        lambda p: (math.sqrt(size * p * (1.0 - p)), [1.0 - p, *([p] * count)]),
        lambda p: (p + 0.5, 1.5 - p),
        law, level, value / max(value + others, 1.0), max(value + others, 1.0),
    )  # fmt: skip


def _numbers(plan: Plan, noisy: Array, apart: float, law: NoiseLaw, level: float, noise: Any) -> list[Ends]:
    table = plan.model
    known = None if noise is None else (noise / table.width) ** 2
    sizes, shares, spreads = table.moments(noisy, plan.n, apart)
    one = _of_private_group if table.moves_between_cells else _of_known_cells if table.skips else _of_known_size
    rows = [
        one(table, sums, float(size), float(share), float(spread), law, level, known)
        for sums, size, share, spread in zip(noisy, sizes, shares, spreads, strict=True)
    ]
    if not table.moves_between_cells:
        return rows
    if table.skips:
        return [*rows, *_group_sizes(table, noisy, apart, plan.n, law, level)]
    factors = shared_out(len(noisy), 3)
    steps, error = law.quantile(level, factors, 0.0) / STEPS + 0.5, law.deviation(factors) / STEPS
    totals = noisy.sum(axis=1) / STEPS
    totals = np.clip(totals - (totals.sum() - plan.n) / len(totals), 0.0, plan.n)
    return [*rows, *((*_whole(float(t) - steps, float(t) + steps, float(plan.n)), 0.0, error) for t in totals)]


def _group_sizes(table: NumberTable, noisy: Array, apart: float, n: int, law: NoiseLaw, level: float) -> list[Ends]:
    """Known cells in each private group; with those that are missing they add up to n, unless records may count for nobody."""
    totals, factors = noisy.sum(axis=1) / STEPS, [1.0] * 3
    if table.total_is_public:
        count = len(totals) + 1
        totals = totals - (totals.sum() + apart / STEPS - n) / count
        factors = [1.0 - 1.0 / count] * 3 + [1.0 / count] * (3 * len(noisy) - 2)
    totals = np.clip(totals, 0.0, n)
    steps, error = law.quantile(level, factors, 0.0) / STEPS + 0.5, law.deviation(factors) / STEPS
    return [(*_whole(float(t) - steps, float(t) + steps, float(n)), 0.0, error) for t in totals]


def _of_known_cells(
    table: NumberTable, sums: Array, size: float, share: float, spread: float, law: NoiseLaw, level: float,
    known: float | None,
) -> Ends:  # fmt: skip
    """Of cells whose number has noise: (Σ v + K)/2 − pK has mean zero at the truth p, whatever K is (Fieller)."""
    first, third = (1.0 / (table.weights(law.law)[k] * STEPS) for k in (0, 2))
    counted = float(sums[2]) / STEPS
    t, n = min(max(share, 0.0), 1.0), max(size, 1.0)
    if table.is_total:
        middle, half = table.lower + table.width / 2.0, table.width / 2.0
        factors = [half * first, middle * third]
        value, q = middle * counted + half * float(sums[0]) / STEPS, law.quantile(level, factors, 0.0)
        return value - q, value + q, 0.0, law.deviation(factors)
    place, squared = _factors_of_known(table, law, n, t, spread)
    if table.is_spread:
        return _variance(table, t, spread, n, squared, place, law, level)
    grown = n + law.deviation([third])
    private = raised(spread, law.deviation(squared), n) if known is None else known
    skewed = edgeworth(level, 1.0)
    upper = max((counted + float(sums[0]) / STEPS) / 2.0, 0.0)
    rest = max(counted - upper, 0.0)
    low, high, sampling, privacy = _inverted(
        lambda p: (1.0 - p) * upper - p * rest,
        lambda p: (math.sqrt(grown * min(private, p * (1.0 - p))), [0.5 * first, (0.5 - p) * third]),
        lambda p: (skewed * max(p, 1.0 - p),) * 2,
        law, level, share, n,
    )  # fmt: skip
    start, width = table.lower, table.width
    return start + width * low, start + width * high, width * sampling, width * privacy


def _factors_of_known(
    table: NumberTable, law: NoiseLaw, n: float, t: float, spread: float
) -> tuple[list[float], list[float]]:
    """Return what one step of each noise contributes to the place t of the mean of n known cells, and to their variance."""
    first, second, third = (1.0 / (weight * STEPS) for weight in table.weights(law.law)[:3])
    mean = 2.0 * t - 1.0
    square = max(spread, 0.0) * 4.0 + mean**2
    place = [first / (2.0 * n), -mean * third / (2.0 * n)]
    squared = [second / (4.0 * n), abs(mean) * first / (2.0 * n), abs(square - 2.0 * mean**2) * third / (4.0 * n)]
    return place, squared


def _of_known_size(
    table: NumberTable, sums: Array, size: float, share: float, spread: float, law: NoiseLaw, level: float,
    known: float | None,
) -> Ends:  # fmt: skip
    """In a group of public size: place t = (1 + v)/2, its variance Var v/4."""
    del sums
    first, second = (1.0 / weight for weight in table.weights(law.law))
    n = max(size, 1.0)
    place, t = first / (2.0 * n * STEPS), min(max(share, 0.0), 1.0)
    if table.about_records:
        q = law.quantile(level, [place], 0.0)
        ends = [table.lower + table.width * min(max(t + sign * q, 0.0), 1.0) for sign in (-1, 1)]
        return size * ends[0], size * ends[1], 0.0, size * table.width * law.deviation([place])
    squared = [second / (4.0 * n * STEPS), abs(2.0 * t - 1.0) * first / (2.0 * n * STEPS)]
    if table.is_spread:
        return _variance(table, t, spread, n, squared, [place], law, level)
    within = law.quantile(level, [place], 0.0) + 4.0 / n
    nearest = min(max(0.5, t - within), t + within)  # p(1 − p), of records at the two ends, is largest there
    variance = min(raised(spread, law.deviation(squared), n) if known is None else known, nearest * (1.0 - nearest))
    q = law.quantile(level, [place], math.sqrt(variance / n))
    skewed = edgeworth(level, n)
    low, high = t - q - skewed * t, t + q + skewed * (1.0 - t)
    best = math.sqrt(min(max(spread, 0.0) if known is None else known, t * (1.0 - t)) / n)
    ends = [table.lower + table.width * min(max(end, 0.0), 1.0) for end in (low, high)]
    return ends[0], ends[1], table.width * best, table.width * law.deviation([place])


def edgeworth(level: float, n: float) -> float:
    """The largest shift of an end by skewness, for a range and a third moment of 1."""
    z = -float(special.ndtri((1.0 - level) / 2.0))
    return (1.0 + 2.0 * z * z) / (6.0 * n)


def raised(spread: float, noise: float, n: float) -> float:
    """The variance an interval is built with: the private one, raised for few records and for its own noise."""
    return max(spread, 0.0) + noise + 2.0 / n


def _variance(
    table: NumberTable, t: float, spread: float, n: float, factors: list[float], mean: list[float], law: NoiseLaw, level: float,
) -> Ends:  # fmt: skip
    """Invert the worst law of each variance V: squares (x − m)² lie in [0, R²], R the farthest a record can be from the mean.

    Their variance is at most V(R² − V) and their third central moment lies within −V and R² − V times that. The noise of
    the mean enters once linearly, and once squared, which lowers the estimate.
    """
    farthest, most = max(t, 1.0 - t) ** 2, 0.25 * n / max(n - 1.0, 1.0)
    centre, squared = min(max(spread, 0.0), most), law.quantile(level, mean, 0.0) ** 2
    skewed = edgeworth(level, n)
    low, high, sampling, privacy = _inverted(
        lambda p: centre - p * most,
        lambda p: (math.sqrt(max(p * most * (farthest - p * most), 0.0) / n), factors),
        lambda p: (skewed * max(farthest - p * most, 0.0) + squared, skewed * p * most),
        law, level, centre / most, 1.0,
    )  # fmt: skip
    square = table.width**2
    return square * most * low, square * most * high, square * sampling, square * privacy


def _of_private_group(
    table: NumberTable, sums: Array, size: float, share: float, spread: float, law: NoiseLaw, level: float,
    known: float | None,
) -> Ends:  # fmt: skip
    """Three cells at t_j = 0, ½, 1: Σ (t_j − t)·c_j has mean zero at the truth, whatever the group's size."""
    del size
    cells, places = sums / STEPS, np.array([0.0, 0.5, 1.0])
    records = float(cells.sum())
    n = max(records, 1.0)
    if table.about_records:
        factors = (table.lower + table.width * places) / STEPS
        value, q = float(cells @ (table.lower + table.width * places)), law.quantile(level, factors.tolist(), 0.0)
        return value - q, value + q, 0.0, law.deviation(factors.tolist())
    t = min(max(share, 0.0), 1.0)
    squared = ((places - t) ** 2 - max(spread, 0.0) + np.array([0.0, -0.25, 0.0])) / (n * STEPS)
    if table.is_spread:
        return _variance(table, t, spread, n, squared.tolist(), ((places - t) / (n * STEPS)).tolist(), law, level)
    grown = n + law.deviation([1.0, 1.0, 1.0]) / STEPS
    private = raised(spread, law.deviation(squared.tolist()), n) if known is None else known
    skewed = edgeworth(level, 1.0)
    upper, rest = max(float(cells @ places), 0.0), max(records - float(cells @ places), 0.0)
    low, high, sampling, privacy = _inverted(
        lambda p: (1.0 - p) * upper - p * rest,
        lambda p: (math.sqrt(grown * min(private, p * (1.0 - p))), [(p - place) / STEPS for place in places]),
        lambda p: (skewed * max(p, 1.0 - p),) * 2,
        law, level, share, n,
    )  # fmt: skip
    start, width = table.lower, table.width
    return start + width * low, start + width * high, width * sampling, width * privacy


def _inverted(
    score: Callable[[float], float], error: Callable[[float], tuple[float, list[float]]],
    skew: Callable[[float], tuple[float, float]], law: NoiseLaw, level: float, share: float, size: float,
) -> Ends:  # fmt: skip
    """The p in [0, 1] whose score lies within its error: ``score`` falls in p, and is about size·(share − p)."""
    tail = (1.0 - level) / 2.0

    def refused(p: float, sign: float) -> float:
        """Above 0 where a score so far out has less than α/2."""
        sampling, factors = error(p)
        below, above = skew(p)
        return tail - float(law.beyond(score(p) * sign - (below if sign < 0 else above), factors, sampling))

    def end(sign: float) -> float:
        """The outermost p on this side that is not refused."""
        inner = next((p for p in GRID[:: int(sign)] if refused(p, sign) <= 0.0), None)
        if inner is None:
            return 1.0 if sign > 0 else 0.0
        outer = inner - sign * GRID[1]
        if not 0.0 <= outer <= 1.0:
            return inner
        return crossing(lambda p: refused(p, sign), min(inner, outer), max(inner, outer), precision=1e-10)

    low, high = end(1.0), end(-1.0)
    sampling, factors = error(min(max(share, 0.0), 1.0))
    return low, high, sampling / size, law.deviation(factors) / size
