"""The program against a second one in plain NumPy with the same noise, and what it publishes (run.py, steps.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.samplers.noise import Noise

from .cases import CATEGORIES, KINDS, plan_of, run, table_of
from .plain import Deviates, Plain


def plain(kind: str, plan: Any, table: Any) -> Plain:
    """Return the second program on a table."""
    v = np.array(table[0])
    for start, stop in CATEGORIES:
        v[:, start:stop] = (v[:, start:stop] + 1.0) / 2.0
    y = np.asarray(table[1], dtype=float)
    y = np.clip(y, 0, 8) / 8.0 if kind == "count" else np.clip(y / 4.0, -1, 1) if kind == "number" else y
    return Plain(kind, v, y, plan.parameters, CATEGORIES, classes=3, largest=8.0)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_program_agrees_with_a_second_one(kind: str) -> None:
    """Up to the lattice of rows, of 2⁻¹⁴ or finer. Equal noise, so every constant and every sign is compared."""
    plan, table = plan_of(kind), table_of(kind)
    result = run(plan, table, noise=Deviates(7))
    slopes, intercepts, temperature = plain(kind, plan, table).run(Deviates(7))
    estimate = result.estimate.reshape(-1, 6)
    scale = np.array([1.0, 1.0, 0.5, 0.5, 0.5])  # encoded columns of a category are -1 and 1
    expected = (scale[:, None] * slopes).T
    last = intercepts + 0.5 * slopes[2:].sum(axis=0)
    if kind == "classes":
        expected, last = expected - expected.mean(axis=0), last - last.mean()
    if kind == "number":
        expected, last = 4.0 * expected, 4.0 * last
    assert result.temperature == pytest.approx(temperature, abs=2e-3)
    assert temperature > 0.3
    assert estimate[:, :5] == pytest.approx(expected, abs=5e-3)
    assert estimate[:, 5] == pytest.approx(last, abs=5e-3)


@pytest.mark.oracle
def test_program_agrees_with_a_second_one_where_scales_are_left_out() -> None:
    """The mean score of two classes is measured in place of the columns' means, which are far from 0 here."""
    plan = plan_of("label", 100, od.ApproxDP(1.0, 1e-6), categories=())
    X, y = table_of("label", 100, effect=9.0)
    X = np.clip(X - 0.6, -1.0, 1.0)
    assert plan.parameters["center_noise"] > 0.0
    result = run(plan, (X, y), noise=Deviates(10))
    second = Plain("label", X, y.astype(float), plan.parameters, (), classes=2, largest=1.0)
    slopes, intercepts, temperature = second.run(Deviates(10))
    assert result.published.center is not None
    assert result.temperature == pytest.approx(temperature, abs=2e-3)
    assert temperature > 0.1
    assert result.estimate[:5] == pytest.approx(slopes[:, 0], abs=5e-3)
    assert result.estimate[5] == pytest.approx(intercepts[0], abs=5e-3)


@pytest.mark.parametrize("kind", ["label", "count"])
def test_second_program_notices_another_constant(kind: str) -> None:
    """The planted fault: half the noise in the second program is seen."""
    plan, table = plan_of(kind), table_of(kind)
    second = plain(kind, plan, table)
    second.q["slope_noise"] *= 0.5
    slopes, _, _ = second.run(Deviates(7))
    estimate = run(plan, table, noise=Deviates(7)).estimate[:2]
    assert np.abs(estimate - slopes[:2, 0]).max() > 1e-2


def test_everything_published_has_noise_and_follows_from_the_seed() -> None:
    plan, table = plan_of("classes", 400), table_of("classes", 400)
    first, again, other = (run(plan, table, seed).published.to_dict() for seed in (1, 1, 2))
    assert first == again
    assert all(set(first[name]).isdisjoint(other[name]) for name in first)
    assert {name: len(values) for name, values in first.items()} == plan.mechanism.stage_sizes(plan)


def test_rows_and_responses_of_any_value_are_read() -> None:
    """No record makes the program fail or warn, and what is no number is read as some record."""
    plan, (X, y) = plan_of("number", 200), table_of("number", 200)
    X, y = X.copy(), y.copy()
    X[:6] = [[np.nan] * 5, [np.inf] * 5, [-1e308] * 5, [1e-320] * 5, [1.0] * 5, [0, 0, np.nan, 1, np.inf]]
    y[:3] = [1e308, -1e308, 0.0]
    assert np.isfinite(run(plan, (X, y)).estimate).all()


def test_records_with_two_levels_or_halves_are_read_as_one_level() -> None:
    """Rows that no schema encodes are brought to a record with at most one level, so that the sensitivity of a category holds."""
    plan = plan_of("label", 100)
    records = plan.target(plan.model.summarise((np.array([[0, 0, *one] for one in ([1, 1, -1], [0, 0, 0], [-0.5, 0.2, 0.9])] * 34)[:100], np.zeros(100)))).records  # fmt: skip
    codes = np.concatenate([np.asarray(block.arrays[1])[0][: block.rows] for block in records])
    assert codes[:3].tolist() == [1, 0, 3]


def test_noise_of_a_secure_source_fits_the_lattice() -> None:
    """A run with fresh entropy draws exact discrete noise for every part; it refuses noise that is too narrow."""
    plan, table = plan_of("label", 400), table_of("label", 400)
    noise = Noise(od.samplers.secure_generator(), pure=False)
    assert np.isfinite(run(plan, table, noise=noise).estimate).all()
