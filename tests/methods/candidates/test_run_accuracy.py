"""How good a pick is: against an exact draw from the same posterior, on simulated data. The table: benchmarks/."""

import importlib.util
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "candidates_table.py"


@pytest.fixture(scope="module")
def table():
    specification = importlib.util.spec_from_file_location("candidates_table", BENCHMARK)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "n", "seeds", "draws", "most"), [(3, 2000, 16, 8, 1.15), (12, 2000, 6, 2, 1.3)], ids=["one round", "rounds"]
)
def test_a_pick_is_nearly_as_good_as_an_exact_draw(table, d, n, seeds, draws, most):
    found = table.measure(d, n, 1.0, "sphere", seeds=seeds, draws=draws)
    print(f"d = {d}: RMSE {found['released']:.3f}, exact draw {found['exact']:.3f}")
    assert 0.7 * found["exact"] <= found["released"] <= most * found["exact"]
