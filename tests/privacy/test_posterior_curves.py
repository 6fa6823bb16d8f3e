"""The divergence of conjugate posteriors against three oracles: 80 digits, quadrature, and exhaustive search.

None of the oracles uses the Bregman form or the worst-pair argument of the
code: they evaluate (14) of Geumlek, Song, Chaudhuri, or integrate densities, over all feasible neighbours.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from onedraw.errors import InvalidBudget
from onedraw.privacy import Curve
from onedraw.privacy.posterior_curves import (
    RELATIVE_ERROR,
    DirichletPosterior,
    GammaExponentialPosterior,
    GammaPoissonPosterior,
    log_gamma_excess,
)

pytestmark = pytest.mark.oracle


exponents = st.floats(-3.0, 0.0)
parameters = st.floats(-1.5, 2.0).map(lambda power: 10.0**power)
fractions_of_limit = st.floats(0.001, 0.98)


# ── golden ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_reference_divergence_of_a_dirichlet_posterior():
    assert f"{DirichletPosterior((1, 2, 3, 4), 50)(1.5):.10f}".startswith("1.46723")


@pytest.mark.parametrize(
    ("prior", "scaling", "start"),
    [
        ((6, 12), "weight", "0.227873"),
        ((6, 12), "prior_factor", "0.0578274"),
        ((1, 1), "weight", "0.0603290"),
        ((1, 1), "prior_factor", "0.00845978"),
    ],
)
def test_the_reference_weights_bracket_the_budget(prior, scaling, start):
    """The printed digits, and the next value in their last place, lie on two sides of ε = 0.1 at λ = 15."""
    last_place = 10.0 ** -(len(start) - 2)
    below, above = (
        DirichletPosterior(prior, 100, **{scaling: value})(15.0) for value in (float(start), float(start) + last_place)
    )
    assert below <= 0.1 < above


def test_the_plain_gamma_exponential_posterior_diverges_like_n():
    divergence = GammaExponentialPosterior(1.0, 1.0, 1.0, 1000)(1.5)
    assert round(divergence) == 694
    assert divergence == pytest.approx(1001 * math.log(2), rel=1e-12)


# ── λ* ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("curve", "limit"),
    [
        (DirichletPosterior((1, 1), 100), 2.0),
        (DirichletPosterior((6, 12), 100), 7.0),
        (DirichletPosterior((4, 0.5, 3), 10), 1.5),
        (DirichletPosterior((6, 12), 100, weight=0.25), 25.0),
        (DirichletPosterior((6, 12), 100, prior_factor=0.125), 49.0),
        (GammaPoissonPosterior(3.0, 8.0), 1.375),
        (GammaPoissonPosterior(3.0, 8.0, weight=0.5), 1.75),
        (GammaExponentialPosterior(9.0, 3.0, 4.0, 100), 1.75),
        (GammaExponentialPosterior(9.0, 3.0, 4.0, 100, prior_factor=0.25), 4.0),
    ],
)
def test_the_limit_of_the_order_is_exact(curve, limit):
    assert curve.below == limit
    assert curve(limit) == math.inf
    assert curve(np.nextafter(limit, 1.0)) < math.inf


@settings(max_examples=200)
@given(parameters, parameters, exponents, exponents)
def test_the_limit_of_the_order_is_right_to_the_last_digit(shape, cap, log_weight, log_factor):
    weight, factor = 10.0**log_weight, 10.0**log_factor
    curve = GammaPoissonPosterior(shape, cap, weight, factor)
    exact = 1 + Fraction(shape) / (Fraction(factor) * Fraction(weight) * Fraction(cap))
    assert Fraction(curve.below) <= exact < Fraction(math.nextafter(curve.below, math.inf))
    assert curve(curve.below) == math.inf
    if curve.below > 1.0 + 2.0**-51:
        assert math.isfinite(curve(math.nextafter(curve.below, 1.0)))


# ── 80 digits ──────────────────────────────────────────────────────────────────────────────────────────────


def exact_log_gamma_divergence(order, before, after):
    """(14) for C(η) = Σ lnΓ(η_k), at many digits."""
    total = mpmath.mpf(0)
    for p, q in zip(after, before, strict=True):
        mixed = order * p + (1 - order) * q
        if mixed <= 0:
            return mpmath.inf
        total += (mpmath.loggamma(mixed) - order * mpmath.loggamma(p)) / (order - 1) + mpmath.loggamma(q)
    return total


def exact_dirichlet_supremum(prior, n, weight, factor, order):
    """Over all d·d·(d−1) pairs: n − 1 records at i, the last moving from b to a."""
    size = len(prior)
    base = [mpmath.mpf(alpha) / mpmath.mpf(factor) for alpha in prior]
    weight, order = mpmath.mpf(weight), mpmath.mpf(order)
    found = []
    for i, a, b in itertools.product(range(size), repeat=3):
        if a != b:
            others = [alpha + weight * (n - 1) * (k == i) for k, alpha in enumerate(base)]
            p = [others[a] + weight, others[b]]
            q = [others[a], others[b] + weight]
            found.append(exact_log_gamma_divergence(order, q, p))
    return max(found)


def assert_just_above(bound, exact):
    """Never below the true value, and above it by no more than the stated error."""
    assert mpmath.mpf(bound) >= exact
    assert mpmath.mpf(bound) <= exact * (1 + mpmath.mpf(2) * mpmath.mpf(RELATIVE_ERROR)) + mpmath.mpf(2) ** -900


@settings(max_examples=150, deadline=None)
@given(
    st.lists(parameters, min_size=2, max_size=3),
    st.integers(0, 9).map(lambda power: 10**power),
    exponents,
    exponents,
    st.one_of(fractions_of_limit, st.floats(-9, -1).map(lambda power: 10.0**power)),
)
def test_the_dirichlet_supremum_agrees_with_eighty_digits(prior, n, log_weight, log_factor, fraction):
    curve = DirichletPosterior(tuple(prior), n, 10.0**log_weight, 10.0**log_factor)
    order = 1.0 + (curve.below - 1.0) * fraction
    with mpmath.workdps(80):
        exact = exact_dirichlet_supremum(curve.prior, n, curve.weight, curve.prior_factor, order)
        assert_just_above(curve(order), exact)


@settings(max_examples=150, deadline=None)
@given(parameters, st.floats(0.5, 1000.0), exponents, exponents, fractions_of_limit)
def test_the_gamma_poisson_supremum_agrees_with_eighty_digits(shape, cap, log_weight, log_factor, fraction):
    curve = GammaPoissonPosterior(shape, cap, 10.0**log_weight, 10.0**log_factor)
    order = 1.0 + (curve.below - 1.0) * fraction
    with mpmath.workdps(80):
        low = mpmath.mpf(shape) / mpmath.mpf(curve.prior_factor)
        high = low + mpmath.mpf(curve.weight) * mpmath.mpf(cap)
        directions = ([high], [low]), ([low], [high])
        exact = max(exact_log_gamma_divergence(mpmath.mpf(order), q, p) for q, p in directions)
        assert_just_above(curve(order), exact)


@settings(max_examples=150, deadline=None)
@given(
    parameters,
    parameters,
    st.floats(0.5, 1000.0),
    st.integers(0, 9).map(lambda power: 10**power),
    exponents,
    exponents,
    fractions_of_limit,
)
def test_the_gamma_exponential_supremum_agrees_with_eighty_digits(
    shape, rate, cap, n, log_weight, log_factor, fraction
):
    curve = GammaExponentialPosterior(shape, rate, cap, n, 10.0**log_weight, 10.0**log_factor)
    order = 1.0 + (curve.below - 1.0) * fraction
    with mpmath.workdps(80):
        weight, factor, lam = (mpmath.mpf(value) for value in (curve.weight, curve.prior_factor, order))
        counted = mpmath.mpf(shape) / factor + weight * n
        low = mpmath.mpf(rate) / factor
        high = low + weight * mpmath.mpf(cap)
        found = []
        for q, p in ((high, low), (low, high)):
            mixed = lam * p + (1 - lam) * q
            found.append(
                counted * ((-mpmath.log(mixed) + lam * mpmath.log(p)) / (lam - 1) - mpmath.log(q))
                if mixed > 0
                else mpmath.inf
            )
        assert_just_above(curve(order), max(found))


@settings(max_examples=300, deadline=None)
@given(st.floats(-6, 15), st.floats(-12, 10), st.booleans())
def test_the_tangent_excess_of_log_gamma_keeps_its_digits(log_start, log_step, upward):
    """Steps of all sizes up, and down to almost nothing left."""
    start = 10.0**log_start
    end = start + 10.0**log_step if upward else start / (1 + 10.0**log_step)
    with mpmath.workdps(90):
        step = mpmath.mpf(end) - mpmath.mpf(start)
        if step == 0:
            return
        exact = mpmath.loggamma(end) - mpmath.loggamma(start) - step * mpmath.psi(0, start)
        found = float(log_gamma_excess(np.array(float(step)), np.array(start), np.array(end)))
        assert abs(mpmath.mpf(found) / exact - 1) < RELATIVE_ERROR / 4


def test_naive_differences_of_log_gamma_would_have_been_caught():
    """The planted fault: SciPy's lnΓ in (14) at n = 1e8 is off by far more than the stated error."""
    prior, n, order = (6.0, 12.0), 10**8, 1.5
    p, q = (prior[0], prior[1] + n), (prior[0] + 1, prior[1] + n - 1)
    naive = naive_divergence(order, np.array(p), np.array(q))
    with mpmath.workdps(80):
        exact = exact_dirichlet_supremum(prior, n, 1.0, 1.0, order)
        assert abs(mpmath.mpf(float(naive)) - exact) > 1e-7
        assert_just_above(DirichletPosterior(prior, n)(order), exact)


# ── quadrature ─────────────────────────────────────────────────────────────────────────────────────────────


def divergence_by_quadrature(order, log_p, log_q):
    """log ∫ p^λ q^(1−λ) / (λ−1) by the trapezoidal rule on the real line, where it converges exponentially.

    ``log_p`` and ``log_q`` are log densities of an unbounded coordinate. Below, spreads are at least 0.05 and
    tails fall at least like e^(−|t|/25).
    """
    nodes = np.arange(-(1 << 17), 1 << 17) * 0.01
    exponent = order * log_p(nodes) + (1 - order) * log_q(nodes)
    return float(special.logsumexp(exponent) + math.log(0.01)) / (order - 1)


def log_beta_density(a, b):
    """Of the logit, which is unbounded: the Jacobian makes the exponents a and b."""
    return lambda t: -a * np.logaddexp(0, -t) - b * np.logaddexp(0, t) - special.betaln(a, b)


def log_gamma_density(shape, rate):
    """Of the logarithm."""
    return lambda t: shape * (t + math.log(rate)) - np.exp(np.minimum(t, 300.0)) * rate - special.gammaln(shape)


@settings(max_examples=50, deadline=None)
@given(
    st.tuples(st.floats(0.2, 20.0), st.floats(0.2, 20.0)),
    st.integers(1, 200),
    st.floats(0.05, 1.0),
    st.floats(0.2, 1.0),
    st.floats(0.05, 0.8),
)
def test_the_beta_divergence_agrees_with_integration(prior, n, weight, factor, fraction):
    curve = DirichletPosterior(prior, n, weight, factor)
    order = 1.0 + min(curve.below - 1.0, 50.0) * fraction
    small, large = sorted(alpha / factor for alpha in prior)
    p, q = (small, large + weight * n), (small + weight, large + weight * (n - 1))
    found = divergence_by_quadrature(order, log_beta_density(*p), log_beta_density(*q))
    assert curve(order) == pytest.approx(found, rel=1e-8, abs=1e-8)


@settings(max_examples=50, deadline=None)
@given(
    st.floats(0.3, 20.0),
    st.floats(0.2, 30.0),
    st.floats(0.05, 1.0),
    st.floats(0.2, 1.0),
    st.floats(0.05, 0.8),
)
def test_the_gamma_poisson_divergence_agrees_with_integration(shape, cap, weight, factor, fraction):
    curve = GammaPoissonPosterior(shape, cap, weight, factor)
    order = 1.0 + min(curve.below - 1.0, 50.0) * fraction
    base, step, rate = shape / factor, weight * cap, 3.0
    log_p, log_q = log_gamma_density(base, rate), log_gamma_density(base + step, rate)
    found = divergence_by_quadrature(order, log_p, log_q)
    assert curve(order) == pytest.approx(found, rel=1e-8, abs=1e-8)


@settings(max_examples=50, deadline=None)
@given(
    st.floats(0.5, 10.0), st.floats(0.5, 10.0), st.floats(0.2, 10.0), st.integers(1, 100),
    st.floats(0.05, 1.0), st.floats(0.2, 1.0), st.floats(0.05, 0.8),
)  # fmt: skip
def test_the_gamma_exponential_divergence_agrees_with_integration(shape, rate, cap, n, weight, factor, fraction):
    curve = GammaExponentialPosterior(shape, rate, cap, n, weight, factor)
    order = 1.0 + min(curve.below - 1.0, 50.0) * fraction
    counted, base = shape / factor + weight * n, rate / factor
    log_p, log_q = log_gamma_density(counted, base), log_gamma_density(counted, base + weight * cap)
    found = divergence_by_quadrature(order, log_p, log_q)
    assert curve(order) == pytest.approx(found, rel=1e-8, abs=1e-8)


def test_three_categories_agree_with_integration_over_the_simplex():
    """In two dimensions, on additive log-ratios; the worst pair of a Dirichlet(2, 3, 4) at n = 3."""
    p, q, order = (2.0, 3.0 + 1.0, 4.0 + 2.0), (2.0 + 1.0, 3.0, 4.0 + 2.0), 2.0
    axis = np.arange(-40.0, 40.0, 0.1)
    u, v = np.meshgrid(axis, axis, indexing="ij")
    partition = np.logaddexp(np.logaddexp(u, v), 0.0)
    logs = (u - partition, v - partition, -partition)

    def log_density(alpha):
        normaliser = special.gammaln(alpha).sum() - special.gammaln(sum(alpha))
        return sum(power * log for power, log in zip(alpha, logs, strict=True)) - normaliser

    integrand = order * log_density(np.array(p)) + (1 - order) * log_density(np.array(q))
    found = (special.logsumexp(integrand) + 2 * math.log(0.1)) / (order - 1)
    assert DirichletPosterior((3.0, 2.0, 4.0), 3)(order) == pytest.approx(found, rel=1e-8)


# ── exhaustive search ──────────────────────────────────────────────────────────────────────────────────────


def naive_divergence(order, p, q):
    """(14) with SciPy's lnΓ along the last axis: good to about 1e-10 for small n."""
    mixed = order * p + (1 - order) * q
    with np.errstate(invalid="ignore"):
        inner = special.gammaln(mixed) - order * special.gammaln(p)
        value = inner.sum(-1) / (order - 1) + special.gammaln(q).sum(-1)
    return np.where((mixed > 0).all(-1), value, np.inf)


def feasible_counts(size, records):
    """All ways of placing ``records`` records in ``size`` categories."""
    bars = itertools.combinations(range(records + size - 1), size - 1)
    return [
        tuple(right - left - 1 for left, right in itertools.pairwise((-1, *places, records + size - 1)))
        for places in bars
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.1, 8.0), min_size=2, max_size=4),
    st.integers(1, 12),
    st.floats(0.05, 1.0),
    st.floats(0.1, 1.0),
    st.floats(0.02, 0.95),
)
def test_no_feasible_count_vector_beats_the_supremum(prior, n, weight, factor, fraction):
    curve = DirichletPosterior(tuple(prior), n, weight, factor)
    order = 1.0 + (curve.below - 1.0) * fraction
    others = np.array(prior) / factor + weight * np.array(feasible_counts(len(prior), n - 1))
    unit = weight * np.eye(len(prior))
    worst = max(
        naive_divergence(order, others + unit[a], others + unit[b]).max()
        for a, b in itertools.permutations(range(len(prior)), 2)
    )
    assert worst <= curve(order) + 1e-9 / (order - 1)
    assert worst == pytest.approx(curve(order), rel=1e-6, abs=1e-9 / (order - 1)), "the supremum is attained"


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.floats(0.1, 8.0), st.floats(0.1, 8.0)),
    st.integers(1, 30),
    st.floats(0.05, 1.0),
    st.floats(0.02, 0.95),
)
def test_no_statistic_between_zero_and_one_beats_the_supremum(prior, n, weight, fraction):
    """The statistical query (A.3): every record anywhere in [0, 1]."""
    curve = DirichletPosterior(prior, n, weight)
    order = 1.0 + (curve.below - 1.0) * fraction
    grid = np.linspace(0, 1, 9)
    others, new, old = np.meshgrid(np.linspace(0, n - 1, 25), grid, grid, indexing="ij")

    def parameters_with(record):
        total = others + record
        return np.stack([prior[0] + weight * total, prior[1] + weight * (n - total)], axis=-1)

    worst = naive_divergence(order, parameters_with(new), parameters_with(old)).max()
    assert worst <= curve(order) + 1e-9 / (order - 1)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.1, 8.0), st.floats(0.1, 8.0), st.integers(1, 8), st.integers(1, 12), st.floats(0.05, 1.0),
    st.floats(0.02, 0.95),
)  # fmt: skip
def test_no_counts_or_durations_beat_the_gamma_suprema(shape, rate, cap, n, weight, fraction):
    grid = np.linspace(0, cap, 9)
    others, new, old = np.meshgrid(np.linspace(0, (n - 1) * cap, 25), grid, grid, indexing="ij")
    poisson = GammaPoissonPosterior(shape, cap, weight)
    order = 1.0 + (poisson.below - 1.0) * fraction
    p, q = (shape + weight * (others + record)[..., np.newaxis] for record in (new, old))
    assert naive_divergence(order, p, q).max() <= poisson(order) + 1e-9 / (order - 1)

    exponential = GammaExponentialPosterior(shape, rate, cap, n, weight)
    order = 1.0 + (exponential.below - 1.0) * fraction
    p, q = (rate + weight * (others + record) for record in (new, old))
    mixed = order * p + (1 - order) * q
    worst = (shape + weight * n) * ((order * np.log(p) - np.log(mixed)) / (order - 1) - np.log(q))
    assert worst.max() <= exponential(order) * (1 + 1e-9) + 1e-9 / (order - 1)


def test_forgetting_the_third_category_would_be_caught():
    """The planted fault: with d ≥ 3 the other records sit in neither of the two categories that change."""
    as_if_two = DirichletPosterior((1.0, 2.0), 12)(1.5)
    assert DirichletPosterior((1.0, 2.0, 3.0), 12)(1.5) > 1.05 * as_if_two


# ── a curve is a value ─────────────────────────────────────────────────────────────────────────────────────

CURVES = [
    DirichletPosterior((6.0, 12.0), 100, weight=0.25),
    DirichletPosterior((1.0, 2.0, 0.5), 10**9, prior_factor=0.3),
    GammaPoissonPosterior(2.0, 10.0, weight=0.5),
    GammaExponentialPosterior(2.0, 1.0, 10.0, 1000, weight=0.01),
]


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.tag)
def test_a_curve_survives_json(curve):
    assert Curve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.tag)
def test_a_curve_never_decreases_and_is_never_nan(curve):
    orders = np.concatenate([1 + np.geomspace(2.0**-52, curve.below - 1, 400), [curve.below, 1e6, 1e300]])
    values = curve(np.sort(orders))
    assert not np.isnan(values).any()
    assert (values > 0).all()
    assert (values[1:] >= values[:-1] * (1 - 2 * RELATIVE_ERROR)).all()
    assert values[-3:].tolist() == [math.inf] * 3


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.tag)
def test_one_order_and_many_orders_give_the_same_values(curve):
    orders = 1 + (curve.below - 1) * np.linspace(0.01, 0.999, 50)
    assert curve(orders) == pytest.approx([curve(float(order)) for order in orders], rel=1e-14)


@settings(max_examples=50)
@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(0.05, 0.9))
def test_the_divergence_rises_with_the_weight_and_with_the_prior_factor(first, second, fraction):
    low, high = sorted((first, second))
    order = 1.0 + 0.5 * fraction
    for family, fixed in (
        (DirichletPosterior, {"prior": (0.6, 2.0), "n": 20}),
        (DirichletPosterior, {"prior": (0.6, 2.0, 1.0), "n": 20}),
        (GammaPoissonPosterior, {"shape": 3.0, "cap": 5.0}),
        (GammaExponentialPosterior, {"shape": 3.0, "rate": 2.0, "cap": 3.0, "n": 5}),
    ):
        for scaling in ("weight", "prior_factor"):
            less, more = family(**fixed, **{scaling: low}), family(**fixed, **{scaling: high})
            assert less(order) <= more(order) * (1 + 2 * RELATIVE_ERROR)
            assert less.at_most(more)
            assert low == high or not more.at_most(less)


def test_curves_of_other_data_are_not_comparable():
    assert not DirichletPosterior((1, 1), 10).at_most(DirichletPosterior((1, 1), 11))
    assert not GammaPoissonPosterior(1.0, 1.0).at_most(GammaExponentialPosterior(1.0, 1.0, 1.0, 1))


@pytest.mark.parametrize(
    "build",
    [
        lambda: DirichletPosterior((1.0,), 10),
        lambda: DirichletPosterior((1.0, 0.0), 10),
        lambda: DirichletPosterior((1.0, math.nan), 10),
        lambda: DirichletPosterior((1.0, 1.0), 0),
        lambda: DirichletPosterior((1.0, 1.0), 10**400),
        lambda: DirichletPosterior((1.0, 1e300), 10),
        lambda: DirichletPosterior((1.0, 1.0), 10, weight=1e-300),
        lambda: DirichletPosterior((1.0, 1.0), 10, weight=1.5),
        lambda: DirichletPosterior((1.0, 1.0), 10, prior_factor=0.0),
        lambda: GammaPoissonPosterior(1.0, -1.0),
        lambda: GammaExponentialPosterior(1.0, math.inf, 1.0, 10),
        lambda: Curve.from_dict({"family": "gamma-poisson-posterior", "shape": 1.0, "cap": 1.0}),
    ],
)
def test_impossible_parameters_are_refused(build):
    with pytest.raises(InvalidBudget):
        build()
