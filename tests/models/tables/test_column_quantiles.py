"""Ranks from histograms: the same as a sort's, on any engine, in few passes; ties spread by one fixed sequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import onedraw as od
from onedraw.data import Schema, read
from onedraw.methods import ExponentialQuantiles, calibrate
from onedraw.methods.quantiles.run import RankSelection
from onedraw.models import ColumnQuantiles
from onedraw.models.tables.column_quantiles import PlaceCounts, spread_below, spread_place
from onedraw.samplers import seeded_generator
from tests.data.cases import Parted

LAST = [1, 9, 2**16, 10**7, 2**31 - 1, 2**31, 2**32]


def counted(values, steps):
    return ColumnQuantiles((0.5,), 0.0, float(steps), step=1.0).summarise(values)


@pytest.mark.parametrize("steps", LAST)
@pytest.mark.parametrize("n", [1, 7, 3000, 70_000])
def test_counts_are_those_of_a_sort(steps, n):
    rng = np.random.default_rng(n)
    spread = rng.integers(0, steps, n, endpoint=True)
    values = np.concatenate([spread[: n // 2], np.full(n - n // 2 - n // 4, spread[0]), spread[: n // 4] // 1000])
    counts, ordered = counted(values.astype(np.float64), steps), np.sort(values)
    places = np.concatenate([rng.integers(-3, steps + 4, 60), [0, steps, steps + 1], ordered[:3], ordered[:3] + 1])
    assert np.array_equal(counts.below(places), np.searchsorted(ordered, places))
    for first, last in ((0, n), (n // 3, n // 3 + 1), (n // 2, min(n, n // 2 + 40)), (n, n), (0, 0)):
        found, below, up_to = counts.atoms(first, last)
        assert np.array_equal(found, np.unique(ordered[first:last]))
        assert np.array_equal(below, np.searchsorted(ordered, found))
        assert np.array_equal(up_to, np.searchsorted(ordered, found, side="right"))


def test_ties_take_the_slots_of_one_fixed_sequence_and_one_more_takes_a_free_one():
    bits, before = 5, set()
    for ties in range(33):
        slots = spread_place(np.arange(ties), np.full(ties, ties), bits)
        assert (np.diff(slots) > 0).all()
        assert before < set(slots.tolist()) or not ties
        assert len(set(slots.tolist()) - before) == bool(ties)
        below = [int((slots < slot).sum()) for slot in range(32)]
        assert [spread_below(slot, ties, bits) for slot in range(32)] == below
        even = np.abs(np.arange(32) * ties / 32.0 - below).max()
        assert even < 3.0  # about as many below a slot as there should be
        before = set(slots.tolist())


def test_a_replaced_record_leaves_one_slot_and_takes_one():
    rng = np.random.default_rng(3)
    plan = calibrate(ExponentialQuantiles(), ColumnQuantiles((0.25, 0.75), 0.0, 6.0, step=1.0), od.PureDP(1.0), n=40)
    for _ in range(50):
        first = rng.integers(0, 6, 40, endpoint=True)
        second = first.copy()
        second[rng.integers(40)] = rng.integers(0, 6, endpoint=True)
        slots = [
            set(plan.target(plan.model.summarise(records.astype(float)))._slots(0, 40).tolist())
            for records in (first, second)
        ]
        assert len(slots[0]) == len(slots[1]) == 40
        assert len(slots[0] - slots[1]) == len(slots[1] - slots[0]) <= 1


SCHEMA = Schema.from_dict({"columns": {"x": {"kind": "number", "lower": 0, "upper": 1000, "missing": 0}}})


@pytest.mark.parametrize("levels", [(0.5,), (0.1, 0.5, 0.9)])
def test_quantiles_are_the_same_on_every_engine_and_partition(levels):
    values = np.random.default_rng(1).lognormal(3.0, 1.0, 2500)
    records = read({"x": values}, SCHEMA, target="x")
    plan = calibrate(ExponentialQuantiles(), ColumnQuantiles(levels, 0.0, 1000.0), od.PureDP(1.0), n=2500)
    engines = Parted((1, 1200)), Parted((700, 701, 2400), np.random.default_rng(2).permutation(2500))
    found = [
        RankSelection().run(plan.target(plan.model.summarise(data)), seeded_generator(4)).draws.tolist()
        for data in (values, values[::-1].copy(), records, *(replace(records, engine=engine) for engine in engines))
    ]
    assert found[1:] == found[:1] * 4


def test_a_quantile_takes_three_passes_and_memory_for_the_counts_near_it():
    class Counted:
        def __init__(self, records):
            self.records, self.passes = records, 0

        def sum(self, *asked):
            self.passes += 1
            return self.records.sum(*asked)

    values = np.random.default_rng(1).uniform(0.0, 1000.0, 50_000)
    plan = calibrate(ExponentialQuantiles(), ColumnQuantiles((0.5,), 0.0, 1000.0), od.PureDP(1.0), n=50_000)
    summary = plan.model.summarise(values)
    counted = PlaceCounts(summary.n, summary.steps, Counted(summary.records))
    RankSelection().run(plan.target(counted), seeded_generator(4))
    assert counted.records.passes == 3
    assert sum(len(places) for places, _ in counted._known.values()) < 5_000
    assert "private" in repr(counted)
