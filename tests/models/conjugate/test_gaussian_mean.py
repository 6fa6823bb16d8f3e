"""Normal means: the moments of clamped records and the interval of a draw, against quadrature and a closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from onedraw.models import GaussianMean

pytestmark = pytest.mark.oracle

MODEL = GaussianMean(bound=2.0, variance=2.5, prior_count=3.0, prior_mean=-0.5, centre=5.0)


@pytest.mark.parametrize("mean", [-4.0, 3.1, 4.0, 5.0, 5.7, 7.0, 20.0])
def test_moments_of_clamped_records_are_those_by_quadrature(mean):
    law = stats.norm(mean, math.sqrt(MODEL.variance))

    def moment(power):
        inside = integrate.quad(lambda x: (x - 5.0) ** power * law.pdf(x), 3.0, 7.0, epsabs=1e-13)[0]
        return inside + (-2.0) ** power * law.cdf(3.0) + 2.0**power * law.sf(7.0)

    first, variance = MODEL.clamped_moments(mean)
    assert first == pytest.approx(moment(1), abs=1e-10)
    assert variance == pytest.approx(moment(2) - moment(1) ** 2, abs=1e-10)


@pytest.mark.parametrize(("weight", "factor"), [(1.0, 1.0), (0.3, 1.0), (1.0, 0.05), (0.2, 0.5)])
def test_interval_with_known_noise_is_that_of_the_posterior_mean(weight, factor):
    """The draw is N(c + (p·m + w·S)/(p + wn), σ²/(p + wn)) for the sum S of distances: solve for S/n."""
    n, draw, z = 40, 5.8, stats.norm.ppf(0.95)
    found = MODEL.interval(np.array([draw]), 0.9, n=n, weight=weight, prior_factor=factor, noise=0.7)
    prior = 3.0 / factor
    records = prior + weight * n
    estimate = 5.0 + ((draw - 5.0) * records - prior * -0.5) / (weight * n)
    own = math.sqrt(2.5 / records) * records / (weight * n)
    half = z * math.hypot(0.7 / math.sqrt(n), own)
    assert (found.low[0], found.high[0]) == pytest.approx((estimate - half, estimate + half))
    assert (found.sampling[0], found.privacy[0]) == pytest.approx((0.7 / math.sqrt(n), own))


@pytest.mark.parametrize("draw", [3.2, 5.0, 6.9])
def test_ends_without_known_noise_solve_the_quadratic(draw):
    """At an end t the distance to the estimate is z standard errors of the most variable records with that mean."""
    n, z = 40, stats.norm.ppf(0.975)
    found = MODEL.interval(np.array([draw]), 0.95, n=n, weight=0.5, prior_factor=1.0)
    records = 3.0 + 0.5 * n
    estimate = ((draw - 5.0) * records + 1.5) / (0.5 * n)
    own = math.sqrt(2.5 / records) * records / (0.5 * n)
    for end in (found.low[0] - 5.0, found.high[0] - 5.0):
        assert abs(estimate - end) == pytest.approx(z * math.sqrt(own**2 + (4.0 - end**2) / n))
