"""The smallest n and the smallest ε that reach a wanted error."""

from __future__ import annotations

import pytest

import onedraw as od
from onedraw import errors
from onedraw.planning import rank_plans, smallest_epsilon, smallest_n
from tests.planning.cases import BUDGET, LINEAR


def test_the_smallest_n_reaches_the_wanted_error_and_little_less_does_not():
    def error(n):
        return rank_plans(LINEAR, BUDGET, n=n, mechanism="noisy-gradient huber").eligible[0].expected.private

    n = smallest_n(LINEAR, BUDGET, 0.3, mechanism="noisy-gradient huber")
    assert error(n) <= 0.3 < error(int(0.8 * n))


def test_the_smallest_epsilon_reaches_the_wanted_error():
    def error(epsilon):
        budget = od.ApproxDP(epsilon, 1e-6)
        return rank_plans(LINEAR, budget, n=2000, mechanism="noisy-gradient huber").eligible[0].expected.private

    epsilon = smallest_epsilon(LINEAR, 0.3, n=2000, mechanism="noisy-gradient huber")
    assert error(epsilon) <= 0.3 * 1.01
    assert error(0.8 * epsilon) > 0.3


def test_a_precision_beyond_reach_is_refused():
    with pytest.raises(errors.PromiseRefused, match="the sample itself"):
        smallest_epsilon(LINEAR, 1e-4, n=1000, mechanism="least-squares")
    with pytest.raises(errors.WrongCall, match="above 0"):
        smallest_n(LINEAR, BUDGET, 0.0)
