"""Carry out `ExponentialQuantiles`: quantiles, and the ends of their intervals, selected exactly by rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from onedraw import privacy
from onedraw.plans import Plan
from onedraw.privacy.numbers import root_up
from onedraw.samplers.noise import measurement, with_noise
from onedraw.samplers.randomness import BOTH, is_secure
from onedraw.samplers.sampler import Sample
from onedraw.samplers.selection import WholeNumbers, accepts, flip_run, select_run

from .groups import GroupNumbers, count_law, middle_place, size_slack
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


@dataclass(frozen=True)
class GroupRanks(WholeNumbers):
    """The sampler of `GroupQuantiles`: sizes, then the quantiles of every group, then signs, then widths of intervals."""

    why: ClassVar[str] = "exact selection by rank, and noise on numbers of records"
    of: ClassVar[str] = "selects quantiles within groups by the ranks that a GroupQuantiles() plan lays out"

    def exactness(self, plan: Plan) -> privacy.Exact:
        """Exact, on whole numbers; refused unless OpenDP's maps give what the plan states for its noise."""
        found = super().exactness(plan)
        numbers, k, sizes = plan.parameters, plan.request.records_per_person, plan.mechanism.stage_sizes(plan)
        for stage in ("sizes", "signs"):
            if not numbers[f"{stage}_scale"]:
                continue
            law = count_law(plan, stage).law
            noise = measurement(law, sizes[stage], numbers[f"{stage}_scale"])
            moved = 2.0 * k if law == "laplace" else root_up(Fraction(2 * k * k))
            stated = {"epsilon": numbers.get(f"{stage}_epsilon"), "rho": numbers.get(f"{stage}_rho")}
            noise.check(plan.guarantee.promise, moved, **stated)
        return found

    def entropy(self, plan: Plan) -> str:
        return BOTH

    def seconds_each(self, plan: Plan) -> float:
        return float(2e-3 * plan.model.cells * len(plan.model.levels) + 3e-7 * plan.n)

    def run(self, target: Any, randomness: Generator, *, size: int = 1) -> Sample:
        """Return one release: everything that is published, and the numbers that follow from it."""
        plan, model, numbers = target.plan, target.plan.model, GroupNumbers.of(target.plan)
        seeded = None if is_secure(randomness) else randomness
        law = count_law(plan, "sizes")
        sizes = with_noise(law.law, target.sizes.tolist(), law.scale, seeded)
        slack = size_slack(model, law) if model.interval is not None else 0.0
        parts = [replace(target.group(cell, count), slack=slack) for cell, count in enumerate(sizes[: model.cells])]
        places = [_quantiles(part, randomness) for part in parts]
        local = np.array([[place - part.first_place for place in row] for part, row in zip(parts, places, strict=True)])
        stages = {"sizes": [float(count) for count in sizes], "quantiles": model.value(local).reshape(-1).tolist()}
        if numbers.signs_scale:
            signs = target.signs(middle_place(model, sizes[: model.cells], local))
            stages["signs"] = [
                float(count) for count in with_noise(law.law, signs.tolist(), numbers.signs_scale, seeded)
            ]
        if numbers.width_ends:
            ends = np.array([_end_places(part, row, randomness) for part, row in zip(parts, places, strict=True)])
            ends -= np.array([part.first_place for part in parts])[:, None, None]
            stages["lower"], stages["upper"] = model.value(ends).transpose(2, 0, 1).reshape(2, -1).tolist()
        return Sample(plan.mechanism.estimate(plan, stages)[None, :], stages=stages)


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
    low, high = target.model.value(np.array(_end_places(target, places, generator))).T.tolist()
    return low, high


def _end_places(target: Any, places: list[int], generator: Generator) -> list[tuple[int, int]]:
    rungs = [
        _chosen(target.rungs(index, place), target.bits, generator, flip=target.flip) if target.has_end(index) else 0
        for index, place in enumerate(places)
    ]
    return [target.interval(index, place, rung) for index, (place, rung) in enumerate(zip(places, rungs, strict=True))]


def _chosen(runs: Any, bits: int, generator: Generator, *, flip: bool = False) -> int:
    run, offset = (flip_run if flip else select_run)(runs.costs, runs.lengths, generator, bits=bits)
    return int(runs.first[run]) + offset
