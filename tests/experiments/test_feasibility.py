"""The study of feasibility: metrics by hand, each method beside what it must be, a small run, and what is said of it."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from experiments.feasibility import findings, metrics, page, releases, run, wages
from experiments.feasibility.noisy_sums import NoisySums
from experiments.runner import Options, reproduce
from experiments.study import Table, grid

import onedraw as od
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.samplers import seeded_generator

(STUDY,) = run.STUDIES
PEOPLE = 6000
SMALL = replace(
    STUDY,
    quick=grid(regression=["women cubic", "everyone"], size=["2000"], epsilon=[20.0], method=list(releases.METHODS)),
    quick_seeds=2,
    figures=lambda table: {},
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A table of invented wages in place of the survey's."""
    generator = np.random.default_rng(1)
    years, female = generator.integers(0, 59, PEOPLE), generator.integers(0, 2, PEOPLE)
    table = pd.DataFrame({"educ_years": generator.choice([10, 12, 14, 16, 18], PEOPLE), "experience": years})
    table = table.assign(experience_sq=years**2, female=female)
    x = np.minimum(years, 50)
    wage = 9.0 + 0.1 * table["educ_years"] + 0.06 * x - 0.001 * x**2 - 0.4 * female
    table.insert(0, "log_wage", wage + generator.normal(0.0, 0.6, PEOPLE))
    table.to_csv(tmp_path / wages.FILE, index=False)
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    for cached in (wages.read, wages.fit_whole):
        cached.cache_clear()
    yield table
    for cached in (wages.read, wages.fit_whole):
        cached.cache_clear()


# ── metrics ──


def row(
    estimate=1.0, low=0.5, high=1.5, plain=1.0, plain_low=0.5, plain_high=1.5, whole=1.0, reached=True, residual=1.0
):
    return dict(locals())


def compared(*rows):
    return metrics.compare({name: np.array([one[name] for one in rows]) for name in rows[0]})


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.0, 2.0, 0.0, 2.0), 1.0),
        ((0.0, 2.0, 1.0, 3.0), 0.5),
        ((0.0, 4.0, 1.0, 2.0), 0.625),  # half of 1/4 + 1
        ((0.0, 1.0, 2.0, 4.0), -0.75),  # apart by 1: half of −1 − 1/2
    ],
)
def test_overlap_of_two_intervals(ends, expected):
    assert metrics.overlap(*map(np.array, ends)) == pytest.approx(expected)
    assert metrics.overlap(*map(np.array, ends[2:] + ends[:2])) == pytest.approx(expected)


def test_metrics_of_a_row_are_those_computed_by_hand():
    found = compared(row(estimate=1.5, low=0.5, high=2.5, plain=2.0, plain_low=1.0, plain_high=3.0, whole=2.6))
    assert found["bias"] == pytest.approx(-0.5)
    assert found["relative bias"] == pytest.approx(-0.25)
    assert found["distance"] == pytest.approx(0.5 * 1.959964)
    assert found["overlap"] == pytest.approx(0.75)
    assert found["length"] == pytest.approx(1.0)
    assert [found[name][0] for name in ("sign", "significance", "same", "given", "covers")] == [1.0, 1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("changed", "sign", "significance"),
    [
        ({}, 1, 1),
        ({"low": -0.1}, 1, 0),
        ({"low": -0.1, "plain_low": -0.1}, 1, 1),
        ({"estimate": -1.0, "low": -1.5, "high": -0.5}, 0, 1),
        ({"low": math.nan, "high": math.nan}, 1, 0),
        ({"estimate": math.nan, "low": math.nan, "high": math.nan}, 0, 0),
    ],
)
def test_sign_and_significance_agree_with_least_squares(changed, sign, significance):
    found = compared(row(**changed))
    assert (found["sign"][0], found["significance"][0], found["same"][0]) == (sign, significance, sign * significance)


def test_summaries_are_medians_and_shares_of_what_there_is():
    nothing = row(estimate=3.0, low=math.nan, high=math.nan, reached=False)
    found = metrics.summarize(compared(row(), row(estimate=1.1, low=0.9, high=1.3), nothing, row(whole=2.0)))
    assert found["bias"] == pytest.approx(0.05)  # of 0, 0.1, 2, 0
    assert found["overlap"] == pytest.approx(1.0)  # of 1, 0.7, 1
    assert found["length"] == pytest.approx(1.0)  # of 1, 0.4, 1
    assert [found[name] for name in ("given", "same", "reached", "sign", "repetitions")] == [0.75, 0.75, 0.75, 1.0, 4.0]
    assert found["covers"] == pytest.approx(2.0 / 3.0)
    assert (found["covers reached"], found["judged"]) == (pytest.approx(2.0 / 3.0), 3.0)
    named = metrics.summarize(compared(row(), row(whole=2.0, reached=False)))
    assert (named["covers"], named["covers reached"]) == (0.5, 1.0)
    assert math.isnan(metrics.summarize(compared(nothing))["overlap"])


def test_groups_are_those_of_the_table_in_their_order():
    places = [
        ("b", "m", "10", 1.0, "x"),
        ("a", "m", "10", 0.5, "x"),
        ("b", "m", "10", 1.0, "x"),
        ("b", "k", "10", 1.0, "x"),
    ]
    table = Table({name: [place[index] for place in places] for index, name in enumerate(metrics.CELL)})
    found = [(tuple(cell.values()), sorted(chosen.tolist())) for cell, chosen in metrics.group(table)]
    assert found == [(places[0], [0, 2]), (places[1], [1]), (places[3], [3])]


# ── methods ──


def test_least_squares_without_privacy_is_the_textbook_one(data):
    rows = wages.draw("everyone", "2000", 3)
    found, design = wages.fit(rows), np.column_stack([rows.X, np.ones(2000)])
    beta = np.linalg.lstsq(design, rows.y, rcond=None)[0]
    residual = rows.y - design @ beta
    inverse = np.linalg.inv(design.T @ design)
    meat = sum(e**2 * np.outer(x, x) for e, x in zip(residual, design, strict=True))
    assert found.estimate == pytest.approx(beta, rel=1e-6)
    assert found.errors == pytest.approx(np.sqrt(np.diag(inverse @ meat @ inverse)), rel=1e-5)
    assert found.residual == pytest.approx(wages.residual_of(rows, beta))


def test_columns_are_bounded_and_groups_are_people(data):
    women = wages.read("women cubic")
    assert len(women.y) == (data["female"] == 1).sum()
    assert women.X[:, 1].max() == 50.0
    assert women.X[:, 3] == pytest.approx(women.X[:, 1] ** 3)
    assert wages.draw("men cubic", wages.WHOLE, 5) is wages.read("men cubic")
    first, second = (wages.draw("men cubic", "2000", 5) for _ in range(2))
    assert np.array_equal(first.X, second.X)


@pytest.mark.parametrize("delta", [releases.DELTA, 0.0])
@pytest.mark.parametrize("regression", ["women quadratic", "everyone"])
def test_the_default_fit_is_the_release_of_the_same_seed(data, regression, delta):
    rows = wages.draw(regression, "2000", 1)
    frame = pd.DataFrame(
        np.column_stack([rows.X, rows.y]), columns=[*wages.REGRESSIONS[regression].columns, "log_wage"]
    )
    if "female" in frame:
        frame["female"] = frame["female"].astype(int).astype(str)
    planned = od.plan(wages.schema_of(regression), "log_wage", "linear", n=2000, epsilon=20.0, delta=delta)
    released = planned.release(frame, random_state=7).fit
    alone, _ = releases.prepare_fit(regression, 2000, 20.0, delta)(rows, seeded_generator(7))
    assert alone.value == pytest.approx(released.estimate, rel=1e-9)
    ends = released.conf_int(0.95)
    assert np.column_stack([alone.low, alone.high]) == pytest.approx(ends, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(("method", "epsilon"), [("ada-ssp", 1e4), ("noisy sums", 1e7), ("noisy sums, counted", 1e7)])
def test_other_methods_come_to_least_squares_without_noise(data, method, epsilon):
    rows = wages.draw("everyone", wages.WHOLE, 0)
    estimate, _ = releases.prepare(method, "everyone", PEOPLE, epsilon)(rows, np.random.default_rng(1))
    plain = wages.fit(rows)
    assert (np.abs(estimate.value - plain.estimate) < 0.5 * plain.errors).all()
    if method != "ada-ssp":
        lengths = (estimate.high - estimate.low) / (2.0 * wages.NORMAL * plain.errors)
        assert lengths == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("columns", [wages.CUBIC, wages.REGRESSIONS["everyone"].columns])
def test_a_replaced_record_moves_noisy_sums_by_their_sensitivity(columns):
    """All corners of the bounds, divided by the widths: at most √q, and attained nearly."""
    sums = NoisySums(columns, od.ApproxDP(1.0, 1e-6))
    lower, binary = np.tril_indices(sums.size), sums.binary
    kept = [place for place, (j, k) in enumerate(zip(*lower, strict=True)) if j and not (j == k and j in binary)]
    assert len(kept) == sums.queries
    corners = [np.array([1.0, *ends]) for ends in itertools.product(*zip(sums.low[1:], sums.high[1:], strict=True))]
    shares = [(np.outer(one, one)[lower] / np.maximum(sums.widths[lower], 1e-9))[kept] for one in corners]
    moved = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(shares, 2))
    assert moved == pytest.approx(math.sqrt(sums.queries))
    assert sums.noise == pytest.approx(math.sqrt(sums.queries) / 0.2367, rel=1e-3)


def test_noise_of_sums_has_its_deviation_and_respects_what_is_public():
    sums = NoisySums(wages.REGRESSIONS["everyone"].columns, od.ApproxDP(1.0, 1e-6))
    noise = sums.draw_noise(np.random.default_rng(3), 8000)
    assert noise == pytest.approx(noise.transpose(0, 2, 1))
    assert not noise[:, 0, 0].any()
    assert np.array_equal(noise[:, 4, 4], noise[:, 4, 0])
    expected = sums.noise * sums.widths[1:, 0]
    assert noise[:, 1:, 0].std(axis=0) == pytest.approx(expected, rel=0.04)


def test_drowned_sums_are_made_positive_definite(data):
    rows = wages.draw("women cubic", "2000", 0)
    sums = NoisySums(wages.CUBIC, od.ApproxDP(0.1, 1e-6))
    generator = np.random.default_rng(5)
    for _ in range(20):
        assert np.linalg.eigvalsh(sums.release(rows, generator) / np.outer(sums.high, sums.high))[0] > 0.0


# ── the study ──


def test_a_refused_plan_gives_rows_without_estimates(data, monkeypatch):
    def refuse(*_):
        raise PromiseRefused("too few records")

    monkeypatch.setattr(releases, "prepare", refuse)
    rows = list(releases.run(seeds=[0], method="onedraw", regression="everyone", size="2000", epsilon=1.0))
    assert [one["term"] for one in rows] == list(wages.REGRESSIONS["everyone"].terms)
    assert all(math.isnan(one["estimate"]) and math.isfinite(one["plain"]) for one in rows)


def test_methods_and_budgets_see_the_same_samples(data):
    cells = [("pure", 1.0), ("noisy sums", 1.0), ("noisy sums", 5.0)]
    found = [
        list(releases.run(seeds=[4], method=method, regression="men cubic", size="2000", epsilon=epsilon))
        for method, epsilon in cells
    ]
    assert found[0][0]["plain"] == found[1][0]["plain"] == found[2][0]["plain"]
    assert len({rows[0]["estimate"] for rows in found}) == 3


def test_a_small_run_is_checked_and_goes_on_where_it_stopped(data, tmp_path):
    first = reproduce(SMALL, Options(quick=True), tmp_path / "out", say=print)
    assert first["passed"]
    assert (first["cells"], first["computed"]) == (10, 10)
    assert any("Default fit, 2,000 records, ε = 20" in one for one in first["findings"])
    cells = sorted((tmp_path / "out" / "feasibility" / "cells").glob("*.parquet"))
    cells[3].unlink()
    again = reproduce(SMALL, Options(quick=True), tmp_path / "out", say=print)
    assert again["computed"] == 1
    assert again["findings"] == first["findings"]


def test_a_missing_table_is_refused_with_its_source(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEDRAW_DATA", str(tmp_path))
    with pytest.raises(WrongCall, match=r"census\.gov"):
        reproduce(SMALL, Options(quick=True), tmp_path / "out")


def invented(**shifts):
    """A table with every cell and two repetitions, all methods right but for the shift of their estimates."""
    rows = [
        {"regression": cell["regression"], "method": cell["method"], "size": cell["size"], "epsilon": cell["epsilon"],
         "term": term, **row(estimate=1.0 + shifts.get(cell["method"], 0.0))}
        for cell in STUDY.cells for term in wages.REGRESSIONS[cell["regression"]].terms for _ in range(2)
    ]  # fmt: skip
    return Table({name: [one[name] for one in rows] for name in rows[0]})


def test_every_expected_quantity_is_computed():
    expected = json.loads((Path(run.__file__).parent / "expected.json").read_text())["feasibility"]
    assert set(expected) <= set(run.quantities(invented()))


def test_figures_are_drawn_of_methods_and_sizes():
    assert set(run.figures(invented())) == {"methods", "sizes"}


def test_losses_are_stated_and_only_those():
    assert not any(one.startswith("Loses") for one in findings.state_findings(invented()))
    lost = [one for one in findings.state_findings(invented(onedraw=0.2)) if one.startswith("Loses")]
    assert any("Loses to pure: it is nearer to least squares in 360 of 360 cells" in one for one in lost)


def test_coverage_is_judged_of_enough_intervals():
    def slope(judged, covers):
        found = {"repetitions": 100.0, "given": 0.1, "judged": judged, "covers": 0.0, "covers reached": covers}
        return findings.Slope({}, found)

    assert findings.is_short(slope(20.0, 0.87), "covers reached")
    assert not findings.is_short(slope(20.0, 0.88), "covers reached")
    assert not findings.is_short(slope(19.0, 0.5), "covers reached")
    assert not findings.is_short(slope(20.0, 0.5), "covers"), "ten intervals are too few"


def test_the_page_shows_each_cell_beside_the_published_figures():
    text = page.render(findings.list_slopes(invented(onedraw=0.2)))
    assert "| noisy sums | 5 | published | 1.00 | 0.97 | 0.94 | 0.84 |" in text
    assert text.count("| women cubic | 2000 | 1 | educ_years |") == 1
    assert "Loses to pure" in text
    assert "- Nowhere." in page.render(findings.list_slopes(invented()))
