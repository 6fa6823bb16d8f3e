"""Carry out `ExponentialQuantiles`: quantiles, and the ends of their intervals, selected exactly by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw.plans import Plan
from onedraw.samplers.sampler import Sample
from onedraw.samplers.selection import WholeNumbers, accepts, flip_run, select_run

from .selection import UNITS


@dataclass(frozen=True)
class RankSelection(WholeNumbers):
    """The sampler of `ExponentialQuantiles`, and of nothing else: level by level, then the widths of intervals.

    The order of the selections does not matter: a part's records are fixed by the cuts around it, which have been selected
    before it, and by nothing else.
    """

    why: ClassVar[str] = "exact selection by rank"
    of: ClassVar[str] = "selects quantiles by the ranks that an ExponentialQuantiles() plan lays out"

    def seconds_each(self, plan: Plan) -> float:
        return 4e-4 + 3e-7 * plan.n

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` rows of quantiles; the ends of intervals, where there are any, as a stage of the first."""
        counted = _counted(target, randomness)
        if counted:
            target = target.about(counted["known"][0])
        rows = [_quantiles(target, randomness) for _ in range(size)]
        values = target.model.value(np.array(rows))
        if not target.ends:
            return Sample(values, stages={**counted, "quantiles": values[0].tolist()} if counted else None)
        lower, upper = _ends(target, rows[0], randomness)
        return Sample(values, stages={**counted, "quantiles": values[0].tolist(), "lower": lower, "upper": upper})


def _counted(target: Any, generator: Generator) -> dict[str, list[float]]:
    """The noisy number of known cells, and of missing ones where they do not add up to n; nothing where missing ones are not skipped."""
    if not target.width_known:
        return {}
    numbers = [target.places.known, *([target.places.missing] if target.model.nobody else [])]
    noisy = [float(number + laplace_step(target.width_known * UNITS, target.bits, generator)) for number in numbers]
    return dict(zip(("known", "missing"), ([number] for number in noisy), strict=False))


def laplace_step(weight: int, bits: int, generator: Generator) -> int:
    """Discrete Laplace noise, P(z) ∝ exp(−|z|·weight·2^−bits) exactly: the difference of two geometric numbers."""

    def geometric() -> int:
        number = 0
        while accepts(weight, bits, 0, generator):
            number += 1
        return number

    return geometric() - geometric()


def _quantiles(target: Any, generator: Generator) -> list[int]:
    """The selected places, in the order of the levels."""
    found: dict[int, int] = {}

    def visit(node: Any, low: int, high: int) -> None:
        if not node.splits:
            found[node.index] = _chosen(target.values(node, low, high), target.bits, generator, flip=target.flip)
            return
        cut = _chosen(target.cuts(node, low, high), target.bits, generator)
        found[node.index] = target.place_of(cut)
        for child, ends in ((node.left, (low, cut)), (node.right, (cut, high))):
            if child is not None:
                visit(child, *ends)

    visit(target.root, *target.whole())
    return [found[index] for index in sorted(found)]


def _ends(target: Any, places: list[int], generator: Generator) -> tuple[list[float], list[float]]:
    """Lower ends, upper ends: of each quantile one width is selected, for both."""
    rungs = [
        _chosen(target.rungs(index, place), target.bits, generator, flip=target.flip) if target.has_end(index) else 0
        for index, place in enumerate(places)
    ]
    ends = [target.interval(index, place, rung) for index, (place, rung) in enumerate(zip(places, rungs, strict=True))]
    low, high = target.model.value(np.array(ends)).T.tolist()
    return low, high


def _chosen(runs: Any, bits: int, generator: Generator, *, flip: bool = False) -> int:
    run, offset = (flip_run if flip else select_run)(runs.costs, runs.lengths, generator, bits=bits)
    return int(runs.first[run]) + offset
