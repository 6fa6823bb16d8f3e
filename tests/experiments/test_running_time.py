"""Rejection from a public envelope: an exact draw, and a running time that gives the records away."""

import math

import numpy as np
import pytest
from experiments.running_time import PriorEnvelope, most_tries, time_ratio

from onedraw import audit
from onedraw.errors import WrongCall

PRIOR = np.full(3, 1.0 / 3.0)


def pair(n=6, epsilon=1.0):
    """Two data sets that differ in one record: it likes the first parameter, or none."""
    others = np.tile([0.0, 1.0, 1.0], (n - 1, 1))
    return [PriorEnvelope(PRIOR, np.vstack([others, last]), epsilon) for last in ([0.0, 1.0, 1.0], [1.0, 1.0, 1.0])]


def test_what_waiting_for_the_worst_data_set_would_take():
    assert most_tries(10, 1.0) == pytest.approx(148, rel=3e-3)
    assert most_tries(20, 1.0) == pytest.approx(2.2e4, rel=3e-3)
    assert most_tries(40, 1.0) == pytest.approx(4.9e8, rel=1e-2)
    worst = PriorEnvelope(PRIOR, np.ones((10, 3)), 1.0)
    assert 1.0 / worst.acceptance == pytest.approx(most_tries(10, 1.0))


def test_the_draw_keeps_its_promise_on_its_own():
    first, second = pair()
    assert audit.finite_profile(first.law, second.law).epsilon_bracket(0.0)[1] <= 1.0


def test_the_ratio_of_times_has_no_bound():
    """The figures of 0.5 against 0.3033."""
    found = [time_ratio(0.3033, 0.5, tries) for tries in (1, 10, 100)]
    assert found == pytest.approx([1.39, 27.6, 2.6e14], rel=2e-2)
    first, second = pair()
    assert time_ratio(second.acceptance, first.acceptance, 40) > math.exp(5.0)
    for wrong in ((0.0, 0.5), (0.5, 1.0)):
        with pytest.raises(WrongCall):
            time_ratio(*wrong, 3)


@pytest.mark.statistical
def test_tries_tell_two_data_sets_apart_and_draws_follow_the_law():
    """400 runs on each: mean tries 1/a (z < 5), and the two means more than 5 standard errors apart."""
    generator, means, errors = np.random.default_rng(20261116), [], []
    for one in pair():
        runs = np.array([one.run(generator) for _ in range(400)])
        means.append(runs[:, 1].mean())
        errors.append(math.sqrt(1.0 - one.acceptance) / one.acceptance / 20.0)
        assert abs(means[-1] - 1.0 / one.acceptance) < 5.0 * errors[-1]
        share = float(np.mean(runs[:, 0] == 0))
        assert abs(share - one.law[0]) < 5.0 * math.sqrt(one.law[0] * (1.0 - one.law[0]) / 400.0)
    assert means[1] - means[0] > 5.0 * math.hypot(*errors)


def test_losses_outside_their_interval_are_refused():
    for wrong in ((PRIOR, [[2.0, 0.0, 0.0]]), (PRIOR, [[0.0, 0.0]]), ([0.5, 0.1, 0.1], [[0.0, 0.0, 0.0]])):
        with pytest.raises(WrongCall):
            PriorEnvelope(*wrong, 1.0)
