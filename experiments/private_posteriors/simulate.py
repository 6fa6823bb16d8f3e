"""How often 90 % credible intervals cover, over data sets whose truth was drawn from the prior: noise-aware and naive,
from the same sums.

Every data set is released by the whole program (seeded): clamped, summed exactly, noise added, certified. What follows
is read off the noisy sums of its certificate. A truth from the prior is covered by exact posteriors as often as their
level says, whatever n and ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy import special

import onedraw as od
from onedraw import baselines, models
from onedraw.baselines.noisy_regression import simulated
from onedraw.baselines.sufficient_statistics import naive_posterior

LEVEL, TAILS = 0.9, (0.05, 0.95)
DRAWS = 160
"""Of each regression's posterior; its quantiles are those of as many draws (Weibull's), so that their number does not
bias coverage."""

PRIOR = od.NormalInverseGamma(scale=2.0, shape=20.0, rate=0.5)
LINE = models.GaussianRegression(1, bounds=(-1, 1), variance_floor=1e-4, feature_names=("slope",), prior=PRIOR)

MODELS = {
    "bernoulli": (models.BetaBernoulli(), 100),
    "poisson": (models.GammaPoisson(prior=(4.0, 2.0), cap=6), 200),
    "exponential": (models.GammaExponential(prior=(4.0, 4.0), cap=3.0), 200),
    "mean": (models.GaussianMean(2.0, 1.0, prior_count=1.0), 200),
    "linear": (LINE, 1000),
}
"""Model and n. Caps and bounds do cut: records of a Poisson rate of 4 are above 6 one time in nine."""


def run(*, seeds: Sequence[int], model: str, epsilon: float) -> Iterator[dict[str, Any]]:
    """One row for each data set and parameter: whether each interval covers the truth, and how wide it is."""
    plan = planned(model, epsilon)
    truths, sums = zip(*(published(plan, TRUTHS[model], seed) for seed in seeds), strict=True)
    aware = aware_intervals(plan, np.array(sums), seeds[0])
    naive = [naive_interval(plan, one) for one in sums]
    for seed, truth, *intervals in zip(seeds, truths, aware, naive, strict=True):
        for place, name in enumerate(plan.model.parameter_names):
            row = {"seed": seed, "parameter": name}
            for method, ends in zip(("aware", "naive"), intervals, strict=True):
                low, high = ends[place]
                row |= {f"{method}": float(low <= truth[place] <= high), f"{method}_width": float(high - low)}
            yield row


@cache
def planned(model: str, epsilon: float) -> Any:
    family, n = MODELS[model]
    bound = 1.5 if model == "linear" else None
    return od.calibrate(baselines.NoiseAware(response_bound=bound), family, od.PureDP(epsilon), n=n)


def published(plan: Any, drawn: Callable[..., Any], seed: int) -> tuple[Any, list[float]]:
    """A truth of the prior, and the noisy sums that a release of records at that truth publishes."""
    truth, records = drawn(plan.model, plan.n, np.random.default_rng([20181, seed]))
    release = od.release(plan, records, random_state=seed)
    stages = release.certificate.draw.stages or {}
    return np.atleast_1d(truth), stages["noisy sums"]


def aware_intervals(plan: Any, sums: Any, seed: int) -> Any:
    if isinstance(plan.model, models.GaussianRegression):
        regression, generator = plan.mechanism.regression(plan), np.random.default_rng([20191, seed])
        draws = simulated(regression, np.asarray(sums) * float(regression.sums.unit), generator, kept=DRAWS)
        return np.moveaxis(np.quantile(draws, TAILS, axis=1, method="weibull"), 0, -1)
    return [plan.mechanism.posterior(plan, {"noisy sums": one}).interval(LEVEL) for one in sums]


def naive_interval(plan: Any, sums: Any) -> Any:
    """Of the posterior that takes the noisy sums for the true ones; of a regression, normal."""
    if not isinstance(plan.model, models.GaussianRegression):
        return naive_posterior(plan, sums).interval(LEVEL)
    regression = plan.mechanism.regression(plan)
    mean, deviation = regression.plug_in(np.array(sums) * float(regression.sums.unit))
    return mean[:, None] + deviation[:, None] * special.ndtri(TAILS)


# ── truths of the prior, and records at that truth ──────────────────────────────────────────────────────────────────


def of_bernoulli(model: Any, n: int, generator: Any) -> Any:
    truth = generator.beta(*model.prior)
    return truth, (generator.random(n) < truth).astype(float)


def of_poisson(model: Any, n: int, generator: Any) -> Any:
    truth = generator.gamma(model.prior[0], 1.0 / model.prior[1])
    return truth, generator.poisson(truth, n)


def of_exponential(model: Any, n: int, generator: Any) -> Any:
    truth = generator.gamma(model.prior[0], 1.0 / model.prior[1])
    return truth, generator.exponential(1.0 / truth, n)


def of_mean(model: Any, n: int, generator: Any) -> Any:
    truth = generator.normal(model.prior_mean, np.sqrt(model.variance / model.prior_count))
    return truth, generator.normal(truth, np.sqrt(model.variance), n)


def of_linear(model: Any, n: int, generator: Any) -> Any:
    """Rows with a deviation of 0.35 bounds: one in 230 is clamped."""
    variance = PRIOR.rate / generator.gamma(PRIOR.shape)
    theta = PRIOR.scale * np.sqrt(variance) * generator.standard_normal(2)
    x = generator.normal(0.0, 0.35, n)
    y = theta[0] * x + theta[1] + np.sqrt(variance) * generator.standard_normal(n)
    return np.append(theta, variance), (x[:, None], y)


TRUTHS = {
    "bernoulli": of_bernoulli,
    "poisson": of_poisson,
    "exponential": of_exponential,
    "mean": of_mean,
    "linear": of_linear,
}
