"""Quantiles, selected exactly: every choice is `select_run` or `flip_run` on whole numbers, level by level, then the widths of intervals.

The order of the selections does not matter: a part's records are fixed by the cuts around it, which have been selected
before it, and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import errors, privacy
from onedraw.samplers.sample import Sample
from onedraw.samplers.selection import flip_run, select_run


@dataclass(frozen=True)
class RankSelection:
    """The sampler of `ExponentialQuantiles`, and of nothing else."""

    randomness: ClassVar[str] = "numpy"

    def exactness(self, plan: Any) -> privacy.Exactness:
        """Exact, in whole numbers: no assumption about real arithmetic is left."""
        if getattr(plan, "requires", "exact") != "ranks":
            raise errors.ExactnessRefused(
                "RankSelection() selects quantiles by the ranks that an ExponentialQuantiles() plan lays out, and this plan has "
                "none. Leave the sampler out to have one chosen."
            )
        return privacy.Exact()

    def to_dict(self) -> dict[str, object]:
        return {"name": "RankSelection"}

    def run(self, target: Any, generator: Generator, *, size: int = 1) -> Sample:
        """``size`` rows of quantiles; the ends of intervals, where there are any, as a stage of the first."""
        rows = [_quantiles(target, generator) for _ in range(size)]
        values = target.model.value(np.array(rows))
        if not target.ends:
            return Sample(values)
        lower, upper = _ends(target, rows[0], generator)
        stages = {"quantiles": values[0].tolist(), "lower": lower, "upper": upper}
        return Sample(values, stages=stages)


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
