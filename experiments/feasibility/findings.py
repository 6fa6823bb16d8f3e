"""What the study found, in sentences computed from its cells; those about where the default fit loses are the longest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from experiments.feasibility.metrics import summaries
from experiments.feasibility.wages import INTERCEPT, WHOLE
from experiments.study import Table

OURS = "onedraw"
LOW_SAME, LOW_OVERLAP, LOW_GIVEN, LOW_COVERAGE, LONG = 0.9, 0.5, 0.9, 0.88, 2.0
"""Shares and lengths from which a cell is listed among those where the default fit loses."""

FEW_JUDGED = 20
"""Intervals below which a coverage is not judged."""


class Slope(NamedTuple):
    """A coefficient of a column in a cell, with its summary."""

    cell: dict[str, Any]
    found: dict[str, float]

    def get(self, name: str) -> float:
        return self.found[name]


def list_slopes(table: Table) -> list[Slope]:
    """Return the summaries of all coefficients but intercepts."""
    return [Slope(cell, found) for cell, found in summaries(table) if cell["term"] != INTERCEPT]


def choose(slopes: Sequence[Slope], **values: Any) -> list[Slope]:
    """Return the slopes of cells with these values."""
    return [slope for slope in slopes if all(slope.cell[name] == value for name, value in values.items())]


def state_findings(table: Table) -> list[str]:
    """Return the sentences of the summary."""
    slopes = list_slopes(table)
    sizes = list(dict.fromkeys(slope.cell["size"] for slope in slopes))
    largest = WHOLE if WHOLE in sizes else sizes[-1]
    ours = choose(slopes, method=OURS)
    found = [_describe_default(choose(ours, size=largest, epsilon=epsilon)) for epsilon in _epsilons(slopes)]
    found += [_describe_size(choose(ours, size=size, epsilon=1.0)) for size in sizes if size != largest]
    found += _compare_methods(slopes, largest)
    return found + state_losses(slopes)


def _epsilons(slopes: Sequence[Slope]) -> list[float]:
    return sorted({float(slope.cell["epsilon"]) for slope in slopes})


def _describe_default(slopes: Sequence[Slope]) -> str:
    size, epsilon = slopes[0].cell["size"], slopes[0].cell["epsilon"]
    table = "the whole table" if size == WHOLE else f"{int(size):,} records"
    worst = min(slopes, key=lambda slope: slope.get("same"))
    return (
        f"Default fit, {table}, ε = {epsilon:g}, over {len(slopes)} slopes: same sign and significance in "
        f"{100 * _mean(slopes, 'same'):.0f} % of the releases ({100 * worst.get('same'):.0f} % for {_words(worst)}), "
        f"overlap {_median(slopes, 'overlap'):.2f}, intervals {_median(slopes, 'length'):.2f} times as long, estimates "
        f"{_median(slopes, 'distance'):.2f} standard errors from least squares (medians), "
        f"{100 * _mean(slopes, 'given'):.0f} % given."
    )


def _describe_size(slopes: Sequence[Slope]) -> str:
    return _describe_default(slopes) if slopes else ""


def _compare_methods(slopes: Sequence[Slope], size: str) -> list[str]:
    """Return, for each other method, its figures beside those of the default fit at each ε."""
    found = []
    for method in dict.fromkeys(slope.cell["method"] for slope in slopes):
        if method == OURS:
            continue
        parts = []
        for epsilon in _epsilons(slopes):
            chosen = choose(slopes, method=method, size=size, epsilon=epsilon)
            parts.append(
                f"ε = {epsilon:g}: {100 * _mean(chosen, 'sign'):.0f}, {100 * _mean(chosen, 'same'):.0f}, "
                f"{_median(chosen, 'distance'):.1f}"
            )
        found.append(
            f"{method}, same slopes (% with the same sign, % with the same sign and significance, median distance in "
            f"standard errors): {'; '.join(parts)}."
        )
    return found


KINDS: dict[str, tuple[str, Callable[[Slope], bool]]] = {
    "withheld": (
        f"fewer than {100 * LOW_GIVEN:.0f} % of the intervals are given", lambda one: one.get("given") < LOW_GIVEN
    ),
    "named": (
        f"fewer than {100 * LOW_GIVEN:.0f} % of the releases say that they estimate least squares itself",
        lambda one: one.get("reached") < LOW_GIVEN,
    ),
    "disagrees": (
        f"fewer than {100 * LOW_SAME:.0f} % of the releases have the same sign and significance",
        lambda one: one.get("same") < LOW_SAME,
    ),
    "apart": (f"the median overlap is below {LOW_OVERLAP:g}", lambda one: not one.get("overlap") >= LOW_OVERLAP),
    "long": (f"intervals are more than {LONG:g} times as long as without privacy", lambda one: one.get("length") > LONG),
    "misses": (
        f"given intervals hold the whole table's coefficient in less than {100 * LOW_COVERAGE:.0f} %",
        lambda one: is_short(one, "covers"),
    ),
    "misses, reached": (
        f"in releases that say they estimate least squares itself, given intervals hold the whole table's coefficient in less "
        f"than {100 * LOW_COVERAGE:.0f} %",
        lambda one: is_short(one, "covers reached"),
    ),
}  # fmt: skip
"""How the default fit loses against no privacy: name, words, and which cells."""


def is_short(slope: Slope, name: str) -> bool:
    """Return whether a coverage is below its limit, of cells with at least `FEW_JUDGED` intervals."""
    counts = {"covers": slope.get("repetitions") * slope.get("given"), "covers reached": slope.get("judged")}
    return counts[name] >= FEW_JUDGED and slope.get(name) < LOW_COVERAGE


def state_losses(slopes: Sequence[Slope]) -> list[str]:
    """Return where the default fit loses: against no privacy, and against the other methods."""
    ours = choose(slopes, method=OURS)
    found = [
        f"Loses ({name}): {words}, in {len(chosen)} of {len(ours)} cells{_examples(chosen)}."
        for name, (words, kind) in KINDS.items()
        if (chosen := [slope for slope in ours if kind(slope)])
    ]
    return found + _lost_to_others(slopes, ours)


def _lost_to_others(slopes: Sequence[Slope], ours: Sequence[Slope]) -> list[str]:
    """Return for how many slopes another method is nearer to least squares, or agrees with it more often."""
    found = []
    for method in dict.fromkeys(slope.cell["method"] for slope in slopes):
        if method == OURS:
            continue
        others = {_place(slope): slope for slope in choose(slopes, method=method)}
        nearer = [one for one in ours if others[_place(one)].get("distance") < one.get("distance")]
        agrees = [one for one in ours if others[_place(one)].get("same") > one.get("same")]
        if nearer or agrees:
            found.append(
                f"Loses to {method}: it is nearer to least squares in {len(nearer)} of {len(ours)} cells{_examples(nearer)}, "
                f"and has the same sign and significance more often in {len(agrees)}{_examples(agrees)}"
                f"{_describe_coverage([others[_place(one)] for one in agrees])}."
            )
    return found


def _describe_coverage(slopes: Sequence[Slope]) -> str:
    """Return how often another method's intervals hold the coefficient in those cells."""
    covers = _mean(slopes, "covers")
    return (
        ""
        if math.isnan(covers)
        else f", with intervals that hold the whole table's coefficient in {100 * covers:.0f} %"
    )


def _place(slope: Slope) -> tuple[Any, ...]:
    return tuple(slope.cell[name] for name in ("regression", "size", "epsilon", "term"))


def _examples(slopes: Sequence[Slope]) -> str:
    """Return the sizes and ε with most of these cells."""
    if not slopes:
        return ""
    counts: dict[str, int] = {}
    for slope in slopes:
        words = f"{size_words(slope.cell['size'])}, ε = {slope.cell['epsilon']:g}"
        counts[words] = counts.get(words, 0) + 1
    most = sorted(counts.items(), key=lambda pair: -pair[1])[:3]
    return f" (most: {'; '.join(f'{number} at {words}' for words, number in most)})"


def size_words(size: str) -> str:
    """Return a sample's size in words."""
    return "whole tables" if size == WHOLE else f"n = {int(size):,}"


def _words(slope: Slope) -> str:
    return f"{slope.cell['term']} of {slope.cell['regression']}"


def _mean(slopes: Sequence[Slope], name: str) -> float:
    values = [slope.get(name) for slope in slopes if not math.isnan(slope.get(name))]
    return float(np.mean(values)) if values else math.nan


def _median(slopes: Sequence[Slope], name: str) -> float:
    values = [slope.get(name) for slope in slopes if not math.isnan(slope.get(name))]
    return float(np.median(values)) if values else math.nan
