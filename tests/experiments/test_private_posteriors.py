"""The study of private posteriors: every quantity that is expected is computed, and the naive interval is the narrower one."""

import json
from pathlib import Path

import numpy as np
import pytest
from experiments.private_posteriors import run, simulate
from experiments.study import Table

from onedraw.baselines import noisy_regression


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "DRAWS", 20)
        patch.setattr(noisy_regression, "WARM_UP", 5)
        cells = [{"model": model, "epsilon": epsilon} for model in simulate.MODELS for epsilon in run.EPSILONS]
        return [cell | row for cell in cells for row in simulate.run(seeds=range(2), **cell)]


def test_every_expected_quantity_is_computed(rows):
    table = Table({name: [row[name] for row in rows] for name in rows[0]})
    expected = json.loads((Path(run.__file__).parent / "expected.json").read_text())["private-posteriors"]
    assert set(expected) <= set(run.quantities(table))
    assert len(run.findings(table)) == 14


def test_intervals_are_numbers_and_noise_widens_them(rows):
    assert np.isfinite([row[name] for row in rows for name in ("aware", "naive", "aware_width", "naive_width")]).all()
    widths = [
        (row["aware_width"], row["naive_width"])
        for row in rows
        if row["model"] in ("bernoulli", "mean") and row["epsilon"] == 0.1
    ]
    assert all(aware > naive for aware, naive in widths)
