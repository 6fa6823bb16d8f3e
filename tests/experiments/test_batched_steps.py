"""The batched copy of averaged steps is the program: the same estimates, errors and decisions from the same deviates."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onedraw as od
from onedraw.methods.fit import AveragedSteps
from onedraw.models.moments.measured import Layout
from onedraw.plans import Plan
from tests.methods.fit.cases import KINDS, model_of, plan_of, run, table_of
from tests.methods.fit.plain import Deviates, Plain

torch = pytest.importorskip("torch")
FOLDER = Path(__file__).parents[2] / "benchmarks"
N, SEEDS = 8000, (11, 12, 13)


@pytest.fixture
def study(monkeypatch) -> Any:
    """Return the benchmark, with NumPy's eigenvectors: their signs decide which deviate goes where."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import batched_coordinates
    import batched_steps
    import regression_coverage_batched

    def decompose(matrix: Any) -> tuple[Any, Any]:
        values, axes = zip(*(np.linalg.eigh(one) for one in matrix.numpy()), strict=True)
        return torch.as_tensor(np.array(values)), torch.as_tensor(np.array(axes))

    for module in (batched_coordinates, batched_steps):
        monkeypatch.setattr(module, "decompose", decompose)
    return regression_coverage_batched


def responses_of(kind: str, y: np.ndarray) -> np.ndarray:
    """Return responses in [−1, 1]."""
    if kind == "label":
        return 2.0 * y - 1.0
    return np.clip(y, 0, 8) / 4.0 - 1.0 if kind == "count" else np.clip(y, -4, 4) / 4.0


def run_batch(study: Any, plan: Plan, layout: Layout, tables: list[Any], seeds: tuple[int, ...] = SEEDS) -> Any:
    """Return the copy's results for these (columns, responses), each with the deviates of its seed."""
    from batched_steps import run_steps

    sources = [np.random.default_rng(seed) for seed in seeds]
    v, r = (torch.as_tensor(np.array(values)) for values in zip(*tables, strict=True))
    problem = study.problem_of(study.describe_plan(plan), study.describe_layout(layout))
    draws = lambda count: torch.as_tensor(np.array([source.standard_normal(count) for source in sources]))  # noqa: E731
    return run_steps(problem, v, r, draws)


def tables_of(kind: str, tails: float | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    return [table_of(kind, N, seed, tails=tails) for seed in SEEDS]


@pytest.mark.oracle
@pytest.mark.parametrize(("epsilon", "tails"), [(0.6, None), (1.0, None), (4.0, None), (4.0, 1.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_copy_agrees_with_plain_numpy(study, kind: str, epsilon: float, tails: float | None) -> None:
    """Estimates within a millionth of a standard error, standard errors within a millionth of themselves."""
    plan = plan_of(kind, N, od.ApproxDP(epsilon, 1e-6), level=0.3)
    tables = [(X, responses_of(kind, y)) for X, y in tables_of(kind, tails)]
    figures = run_batch(study, plan, Layout(2), tables).figures()
    for number, ((X, r), seed) in enumerate(zip(tables, SEEDS, strict=True)):
        plain = Plain(kind, X, r, plan.parameters, level=0.3, largest=8, bound=1.0).fit(Deviates(seed))
        error = np.hypot(plain.sampling, plain.privacy)
        assert np.abs(figures["estimate"][number].numpy() - plain.estimate).max() <= 1e-6 * error.min()
        assert figures["sampling"][number].numpy() == pytest.approx(plain.sampling, rel=1e-6)
        assert figures["privacy"][number].numpy() == pytest.approx(plain.privacy, rel=1e-6)


DECISIONS = [
    ("number", 600, 0.5), ("number", 1000, 0.8), ("number", N, 0.8), ("number", N, 4.0),
    ("label", 1000, 0.8), ("label", 2000, 0.5), ("label", N, 4.0),
    ("count", 2000, 4.0), ("count", N, 0.8), ("count", N, 4.0),
    ("quantile", 600, 0.5), ("quantile", 1000, 0.8), ("quantile", N, 4.0),
]  # fmt: skip
"""With the mean or the second moments left out, with and without counts of long scores, with intervals and without."""


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "n", "epsilon"), DECISIONS)
def test_copy_decides_as_the_program_does(study, kind: str, n: int, epsilon: float) -> None:
    """With a category, a column that hardly varies, and long tails: intervals, estimand, bound and diagnostics."""
    plan = od.calibrate(AveragedSteps(categories=((2, 4),)), model_of(kind, columns=5), od.ApproxDP(epsilon, 1e-6), n=n)
    layout, tables, results = Layout(5, ((2, 4),)), [], []
    for seed in SEEDS:
        (X, y), rng = table_of(kind, n, seed, tails=1.5), np.random.default_rng(seed)
        rows = np.c_[X, 2.0 * np.eye(3)[rng.integers(0, 3, n)][:, :2] - 1.0, 0.01 * rng.uniform(-1.0, 1.0, n)]
        tables.append((np.asarray(layout.rows(rows)), responses_of(kind, y)))
        results.append(run(plan, (rows, y), noise=Deviates(seed)))
    figures = {name: value.numpy() for name, value in run_batch(study, plan, layout, tables).figures().items()}
    scale = plan.mechanism.problem(plan).response_scale
    for number, program in enumerate(results):
        error = np.sqrt(np.diag(program.covariance))
        loose = 2e-2 if kind == "quantile" else 1e-3  # a record that rounding carries over the quantile
        assert np.abs(scale * figures["estimate"][number] - program.estimate).max() <= loose * error.max()
        assert scale * figures["error"][number] == pytest.approx(error, rel=loose)
        assert figures["factor"][number] == program.problem.factor
        assert figures["given"][number].tolist() == program.given.tolist()
        assert figures["reached"][number] == program.reached
        shown = {name: getattr(program, name) for name in ("specification", "limited")}
        for name, value in (shown | {"share_limited": program.share_limited[0]}).items():
            assert figures[name][number] == pytest.approx(value, rel=5e-2 if kind == "quantile" else 1e-2, abs=1e-6), (
                name
            )
    if (kind, n) == ("number", 1000):  # decisions of both sorts are compared
        assert set(figures["given"].flatten()) == set(figures["reached"]) == {True, False}


def test_cases_of_decisions_are_of_all_sorts() -> None:
    """Plans with and without each part that may be left out are among them."""
    plans = [plan_of(kind, n, od.ApproxDP(epsilon, 1e-6), columns=5).parameters for kind, n, epsilon in DECISIONS]
    for name in ("mean_noise", "design_noise", "tail_noise", "count_noise", "information_noise"):
        assert {plan[name] > 0.0 for plan in plans} == {True, False}, name


def test_copy_without_cautious_information_is_noticed(study, monkeypatch) -> None:
    """The comparison can fail: a second moment that is not lowered changes standard errors."""
    from batched_steps import Records

    plan, tables = plan_of("number", N, level=0.3), [(X, responses_of("number", y)) for X, y in tables_of("number")]
    before = run_batch(study, plan, Layout(2), tables).figures()["sampling"]
    monkeypatch.setattr(Records, "information", lambda self, theta, draw: self.expected_information(theta)[0])
    after = run_batch(study, plan, Layout(2), tables).figures()["sampling"]
    assert ((after / before - 1.0).abs() > 1e-4).any()


@pytest.fixture
def populations(tmp_path) -> Path:
    """Two small populations in the format of benchmarks/populations."""
    path, generator, n, index = tmp_path / "populations", np.random.default_rng(0), 4000, {}
    path.mkdir()
    X = np.c_[generator.uniform(20.0, 80.0, n), generator.integers(0, 2, n)]
    wage = 3.0 + 0.05 * X[:, 0] - 1.0 * X[:, 1] + generator.normal(0.0, 1.0, n)
    label = (generator.random(n) < 1.0 / (1.0 + np.exp(1.0 - 0.03 * X[:, 0]))).astype(int)
    for name, kind, y, model in (("wages", "number", wage, "linear"), ("labels", "label", label, "logistic")):
        truth = np.linalg.lstsq(np.c_[X, np.ones(n)], y, rcond=None)[0] if model == "linear" else np.array([0.03, 0.0, -1.0])  # fmt: skip
        np.savez(
            path / f"{name}.npz", X=X, y=y, group="simulated", columns=["age", "female"], lower=[20.0, 0.0], upper=[80.0, 1.0],
            categories=np.array([[1, 2]]), kind=kind, y_lower=0.0, y_upper=12.0, models=[model], **{f"truth_{model}": truth},
        )  # fmt: skip
        index[name] = {"group": "simulated", "kind": kind, "models": [model], "n": n, "d": 2}
    (path / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return path


def test_study_travels_resumes_and_summarizes(study, populations, tmp_path, monkeypatch, capsys) -> None:
    folder, page = tmp_path / "study", tmp_path / "page.md"
    shared = ["--populations", str(populations), "--n", "2000", "--epsilon", "2", "--samples", "6", "--page", str(page)]
    told = []
    for task in ("prepare", "run", "run", "summarize"):
        monkeypatch.setattr(sys, "argv", ["regression_coverage_batched.py", task, str(folder), *shared])
        study.main()
        told.append(capsys.readouterr().out)
    assert "2 cells to run" in told[1]
    assert "0 cells to run" in told[2]
    assert "| logistic | 2,000 | 2 | 1 (0) | 2 |" in page.read_text(encoding="utf-8")
    cells = [json.loads(line) for line in (folder / "cells.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {cell["samples"] for cell in cells} == {6}
    assert all(share > 0.5 for cell in cells for share in cell["coverage_all"])
    assert all(abs(mean - truth) < 5.0 * error for cell in cells for mean, truth, error in zip(cell["mean_estimate"], cell["truth"], cell["median_error"], strict=True))  # fmt: skip


def test_plain_fits_are_those_of_the_study_of_single_samples(study, populations) -> None:
    import regression_coverage

    for name, model in (("wages", "linear"), ("labels", "logistic")):
        table = regression_coverage.read_table(str(populations), name, model)
        cell, stored = study.describe_cell(table, 2000, 2.0), study.describe_table(table)
        X, y = table.X[:2000], table.y[:2000]
        v, r = (
            torch.as_tensor(stored["v"][:2000]).double(),
            torch.as_tensor(2.0 * y - 1.0 if model == "logistic" else y),
        )
        batched = study.fit_plain(study.problem_of(cell, stored), v[None], r[None])
        estimate, errors = regression_coverage.fit_plain(X, y, model)
        assert batched["plain"][0].numpy() == pytest.approx(estimate, rel=1e-5, abs=1e-6)
        assert batched["plain_error"][0].numpy() == pytest.approx(errors, rel=1e-4)
