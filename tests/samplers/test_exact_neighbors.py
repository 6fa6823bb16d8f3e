"""The laws that the sampler is given on two neighbors keep the stated promise, at extreme public numbers too.

For every conjugate family, every mechanism that draws from its posterior and every public option at its extremes: either the
combination is refused before anything could be charged, or the divergence of the two laws, in 120 digits, is what is stated.
"""

from fractions import Fraction
from itertools import product

import mpmath
import pytest

import onedraw as od
from onedraw import models
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.models import Summary, distributions
from onedraw.privacy import GaussianDP, RenyiDP

try:
    from onedraw.samplers import lattice
except ImportError:  # the reviewed commit has no such file, and refuses no lattice
    lattice = None

COUNTS = (1e-12, 1.0, 1e12, 2.0**53)
PAIRS = [(one, one) for one in COUNTS] + [(1e-12, 2.0**53), (1.0, 1e12), (2.0**53, 1.0)]
ASKED = [(od.ApproxDP(1.0, 1e-6), 2**31 - 2), (od.RenyiDP.at(2.0, 0.5), 3)]
EXACT = od.samplers.Exact()


def betas():
    ranges = [(-1.0, 1.0), (1e12 - 1.0, 1e12 + 1.0), (1e15 - 1.0, 1e15 + 1.0)]
    priors = [models.BetaBernoulli(prior) for prior in PAIRS]
    return [*priors, *(models.BetaBernoulli((1.0, 1.0), *ends) for ends in ranges)]


def dirichlets():
    return [models.DirichletCategorical((*prior, 1.0)) for prior in PAIRS]


def poissons():
    priors = [models.GammaPoisson(prior, cap=1) for prior in PAIRS]
    return [*priors, *(models.GammaPoisson((2.0, 1.0), cap=cap) for cap in (1000, 2**31))]


def exponentials():
    priors = [models.GammaExponential(prior, cap=1.0) for prior in PAIRS]
    return [*priors, *(models.GammaExponential((2.0, cap), cap=cap) for cap in (1e-12, 1e12))]


def means():
    made = []
    for centre, count, variance, dim in product((0.0, 1e12, -1e15), COUNTS, (1e-12, 1.0, 1e12), (1, 2)):
        made.append(models.GaussianMean(1.0, variance, count, centre=centre, dim=dim))
    return [
        *made,
        models.GaussianMean(1e-3, 1.0, 1.0, centre=1e9),
        models.GaussianMean(1e12, 1.0, 1.0, prior_mean=1e12),
    ]


MODELS = {
    "proportion": betas, "histogram": dirichlets, "rate": poissons, "duration": exponentials, "mean": means,
}  # fmt: skip


LEAST_KEPT = {"proportion": 12, "histogram": 5, "rate": 12, "duration": 12, "mean": 200}
"""Combinations that must not be refused: most of those with ordinary numbers."""


def mechanisms(model):
    """The mechanisms that draw from this family's posterior."""
    gibbs = [od.Gibbs()] if isinstance(model, models.GaussianMean) else []
    return [od.Direct(), od.Diffused(), od.Concentrated(), *gibbs]


def neighbors(model, n):
    """Exact sums of data sets of n records, of which all but one are alike: (one, other) for each worst move."""
    for others, before, after in model.worst_moves:
        crowd, *ends = (model.summarise([record]).total for record in (others, before, after))
        yield tuple(
            Summary(n, tuple((n - 1) * Fraction(a) + Fraction(b) for a, b in zip(crowd, end, strict=True)))
            for end in ends
        )


def planned(model, mechanism, budget, n):
    """The plan, or None where it is refused before a charge: by the calibration, the sampler or the lattice."""
    try:
        plan = od.calibrate(mechanism, model, budget, n=n)
        EXACT.exactness(plan)
        if lattice is not None:
            lattice.spacing_for(plan, EXACT, None)
    except (PromiseRefused, WrongCall):
        return None
    return plan


def renyi(first, second, order):
    """D_λ(P‖Q) in 120 digits; infinite where it is."""
    mix = [order * p + (1 - order) * q for p, q in zip(parameters(first), parameters(second), strict=True)]
    if min(mix) <= 0:
        return mpmath.inf
    p, q = (log_partition(law, parameters(law)) for law in (first, second))
    return (log_partition(first, mix) - order * p - (1 - order) * q) / (order - 1)


def parameters(law):
    values = law.alpha if isinstance(law, distributions.Dirichlet) else [getattr(law, name) for name in vars(law)]
    return [mpmath.mpf(Fraction(value).numerator) / Fraction(value).denominator for value in values]


def log_partition(law, values):
    if isinstance(law, distributions.Gamma):
        shape, rate = values
        return mpmath.loggamma(shape) - shape * mpmath.log(rate)
    return sum(map(mpmath.loggamma, values)) - mpmath.loggamma(sum(values))


def shift(first, second):
    """The distance of two normal laws in their deviations, which must be equal."""
    assert first.variance == second.variance
    ends = (getattr(law, "location", law.mean) for law in (first, second))
    square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*ends, strict=True))
    return mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator / mpmath.mpf(first.variance))


def broken(plan, model, n):
    """What the laws of neighbors show beyond the promise; empty where they keep it."""
    for pair in neighbors(model, n):
        one, other = (plan.target(summary) for summary in pair)
        promise = plan.mechanism.promise(model, free_number(plan), n=n)
        assert promise.implies(plan.guarantee.promise) or isinstance(plan.mechanism, od.Gibbs)
        if isinstance(promise, GaussianDP):
            if not shift(one, other) <= promise.mu * (1 + 1e-12):
                return f"μ = {shift(one, other)} for {promise}"
            continue
        assert isinstance(promise, RenyiDP)
        top = min(promise.limit, 40.0)
        for order in (1.0 + (top - 1.0) * part for part in (0.1, 0.5)):
            for found in (renyi(one, other, order), renyi(other, one, order)):
                if not found <= promise.at_order(order) * (1 + 1e-9):
                    return f"D_{order} = {mpmath.nstr(found)} for {promise.at_order(order)}"
    return ""


def free_number(plan):
    if isinstance(plan.mechanism, od.Gibbs):
        return plan.parameters["weight"]
    return plan.parameters["r"] if isinstance(plan.mechanism, od.Diffused) else plan.parameters["prior_factor"]


def test_every_family_has_extreme_options():
    assert set(MODELS) == {family.kind for family in models.FAMILIES}


FOUND = {"mean": pytest.mark.finding("reliability N2", commit="8a7c0fb")}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=FOUND.get(kind, ())) for kind in sorted(MODELS)])
def test_neighbor_laws_keep_the_promise_or_are_refused(kind):
    kept = refused = 0
    with mpmath.workdps(120):
        for model, (budget, n) in product(MODELS[kind](), ASKED):
            for mechanism in mechanisms(model):
                plan = planned(model, mechanism, budget, n)
                if plan is None:
                    refused += 1
                    continue
                kept += 1
                assert not (fault := broken(plan, model, n)), f"{model}, {mechanism}, n = {n}: {fault}"
    assert kept > LEAST_KEPT[kind], f"{kept} kept, {refused} refused"
