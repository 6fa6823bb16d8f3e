"""Released ends of quantiles serve the level they were planned for, and lower ones."""

from types import SimpleNamespace

import numpy as np
import pytest

from onedraw.errors import PromiseRefused
from onedraw.methods.intervals import Published
from onedraw.methods.quantiles.intervals import quantile_interval
from onedraw.models import ColumnQuantiles

STAGES = {"lower": [1.0, 3.0], "upper": [2.5, 6.0]}


def interval_at(level, stages=STAGES, planned=0.9):
    plan = SimpleNamespace(model=ColumnQuantiles((0.25, 0.5), 0.0, 10.0, interval=planned))
    published = Published(np.array([[2.0, 4.0]]), stages, 0.0, np.eye(2), np.ones(2), np.zeros(2), ("0.25", "0.5"))
    return quantile_interval(plan, published, level)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_ends_hold_for_every_level_up_to_the_planned_one(level):
    found = interval_at(level)
    np.testing.assert_array_equal([found.low, found.high], [STAGES["lower"], STAGES["upper"]])


@pytest.mark.parametrize("level", [0.9000001, 0.95, 0.99])
def test_higher_level_than_planned_is_refused(level):
    with pytest.raises(PromiseRefused, match="planned before the records were read"):
        interval_at(level)
