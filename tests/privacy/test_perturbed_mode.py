"""Corners of every kind of loss against brute force, the reference values of the design, and calibration."""

import math
from itertools import pairwise, product

import numpy as np
import pytest

from onedraw.mechanisms import PerturbedMode
from onedraw.mechanisms import calibrate as plan_for
from onedraw.mechanisms.fit_numbers import Setting, closing
from onedraw.mechanisms.stages import largest_total
from onedraw.models import Gaussian, Logistic
from onedraw.models.fit.constants import CLOSING_MU
from onedraw.models.moments.measured import Layout
from onedraw.privacy import ApproxDP, Assumption, GaussianDP, Guarantee, Neighbours, Provenance, Unit, compose
from onedraw.privacy.corners import Corner, CornerDP, composed_corners
from onedraw.privacy.perturbed_mode import (
    count_curvature,
    count_slopes,
    one_against_rest,
    relieved_base,
    relieved_slopes,
    ridge_for,
    slopes,
    softmax,
    softmax_ridge_for,
    softmax_volume_cost,
    volume_cost,
)
from tests.privacy.cases import (
    counts,
    exp_linear,
    gaussian_profile,
    huber,
    huberised_hinge,
    log_cosh,
    logistic,
    quantile,
)

RNG = np.random.default_rng(20261115)


def squares_of(corners):
    """Every corner's square, widest first, as often as it counts."""
    return sorted((term.square for term in corners.terms for _ in range(term.times)), reverse=True)


def rows(number, dimension):
    """Vectors in the unit ball: random ones, and the extreme ones (equal, opposite, orthogonal, zero)."""
    found = RNG.normal(size=(number, dimension))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    found[::3] *= RNG.uniform(size=(len(found[::3]), 1))
    axes = np.eye(dimension)
    return np.concatenate([found, axes, -axes, np.zeros((1, dimension))])


def never_above(corner_vectors, bounds, *, spare_zero=0):
    """The sorted squares of the true corners lie below the bounds one by one; the smallest ``spare_zero`` are 0."""
    true = np.sort((np.asarray(corner_vectors) ** 2).sum(axis=-1))[::-1]
    kept, dropped = true[: len(bounds)], true[len(bounds) :]
    assert len(dropped) == spare_zero
    assert np.all(dropped <= 1e-12)
    assert np.all(kept <= np.asarray(bounds) + 1e-9), (true, bounds)
    return kept


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 0.0), (0.0, 0.5), (1.0, 1.0), (0.8, 0.2), (0.5, 0.5), (0.05, 0.95), (2.0, 1.0)]
)
def test_slopes_of_known_ends_have_the_corners_of_theorem_1(low, high):
    bounds = squares_of(slopes(low, high, 0.0))
    dropped = 1 if min(low, high) == 0.0 else 0
    reached = np.zeros(len(bounds))
    vectors = rows(30, 2)
    for first, second in product(vectors, vectors):
        corners = [a * second - b * first for a in (-low, high) for b in (-low, high)]
        reached = np.maximum(reached, never_above(corners, bounds, spare_zero=dropped))
    assert reached[0] == pytest.approx(bounds[0])  # the widest is attained


def test_slopes_with_an_interval_of_their_own_have_the_corners_of_theorem_2():
    bounds = squares_of(count_slopes(1.0, 0.0))
    assert bounds == [4.0, 1.25, 1.0, 0.5]
    reached = np.zeros(4)
    vectors = rows(12, 2)
    for p, q in product(np.linspace(0.0, 1.0, 5), repeat=2):
        for first, second in product(vectors, vectors):
            corners = [a * second - b * first for a in (-q, 1 - q) for b in (-p, 1 - p)]
            reached = np.maximum(reached, never_above(corners, bounds))
    assert np.all(reached >= np.asarray(bounds) * 0.97)  # none can be lowered


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (1.0, 1.0), (0.7, 0.3)])
@pytest.mark.parametrize("records", [2, 3])
def test_several_records_have_the_corners_of_theorem_3(low, high, records):
    bounds = squares_of(slopes(low, high, 0.1, records=records))
    assert slopes(low, high, 0.1, records=records).terms[0].shift == pytest.approx(0.1 * records)
    ends = np.array(list(product((-low, high), repeat=2 * records)))
    for _ in range(300):
        vectors = rows(2 * records, 2)[: 2 * records]
        never_above(ends @ vectors, bounds, spare_zero=1 if 0.0 in (low, high) else 0)
    aligned = np.tile([1.0, 0.0], (2 * records, 1))
    assert np.max(((ends @ aligned) ** 2).sum(axis=1)) == pytest.approx(bounds[0])


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_softmax_has_the_corners_of_theorem_5(classes):
    bounds = squares_of(softmax(classes, 0.0))
    units = np.eye(classes)
    vectors = rows(8, 2)
    reached = 0.0
    for first, second in product(vectors, vectors):
        for mine, theirs in ((0, 0), (0, 1)):
            corners = [
                (np.outer(units[i] - units[theirs], second) - np.outer(units[j] - units[mine], first)).ravel()
                for i, j in product(range(classes), repeat=2)
            ]
            reached = max(reached, never_above(corners, bounds, spare_zero=1)[0])
    assert reached == pytest.approx(8.0)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_one_against_the_rest_is_the_composition_of_its_modes(classes):
    together = one_against_rest(classes, 0.5, 0.1).promise(0.3)
    mode = slopes(0.5, 0.0, 0.1).promise(0.3)
    (composed,) = composed_corners([(mode, classes)])
    for epsilon in (0.5, 1.0, 2.0):
        assert composed.delta(epsilon) == pytest.approx(together.delta(epsilon), rel=1e-9)
    # With the corner 0 of each mode kept it would be (1 + 2x + x⁴)^K − 1: more.
    assert sum(term.times for term in together.terms) == 3**classes


@pytest.mark.parametrize(
    ("loss", "corners", "bend"),
    [
        (log_cosh, relieved_slopes(1.0, 1.0, 2.0 * 0.3), 0.3),
        (logistic, relieved_slopes(1.0, 0.0, 1.0 * 0.3), 0.3),
    ],
)
def test_losses_of_theorem_4_bend_only_where_they_are_not_steep(loss, corners, bend):
    """log(1 + φ''r²/Λ) ≤ c(1 − |φ'|/L) on a fine grid, r²/Λ = bend; halving c is caught."""
    slope, curvature = loss(np.linspace(-30.0, 30.0, 20_001))
    relief = max(term.shift for term in corners.terms)
    room = relief * (1.0 - np.abs(slope)) - np.log1p(curvature * bend)
    assert room.min() >= -1e-12
    assert (room - 0.5 * relief * (1.0 - np.abs(slope))).min() < 0.0


@pytest.mark.parametrize(("loss", "least"), [(log_cosh, 1.0), (logistic, 0.0)])
@pytest.mark.parametrize("bend", [0.01, 0.3, 1.8, 40.0, 1e6])
@pytest.mark.parametrize("part", [0.0, 0.01, 0.2, 0.55, 0.99, 1.0])
def test_the_base_of_theorem_4_makes_up_for_a_smaller_relief_and_is_no_larger_than_that(loss, least, bend, part):
    """log(1 + φ''r²/Λ) ≤ κ₀ + c(1 − |φ'|/L) on a fine grid, attained up to the grid; nothing is paid at the full relief."""
    slope, curvature = loss(np.linspace(-30.0, 30.0, 60_001))
    relief = part * (1.0 + least) * bend
    base = relieved_base(relief, bend=bend, least=least)
    needed = (np.log1p(curvature * bend) - relief * (1.0 - np.abs(slope))).max()
    assert needed <= base + 1e-12 * (1.0 + relief)
    assert base <= max(needed, 0.0) + 1e-4 * np.log1p(bend) + 1e-9
    assert (base == 0.0) is (part == 1.0)


def test_the_loss_of_theorem_4_is_at_most_its_corners():
    """Brute force over (ρ, α', g): c(1−ρ) + ℓ_v never exceeds the largest corner, two-sided and one-sided."""
    relief = 0.7
    for _ in range(2000):
        first, second, g = RNG.normal(size=(3, 2))
        first, second = (x / max(1.0, float(np.linalg.norm(x))) for x in (first, second))
        g *= 3.0

        def loss(v, g=g):
            return (v @ v + 2.0 * g @ v) / 2.0

        rho, other, sign = RNG.uniform(), RNG.uniform(-1.0, 1.0), RNG.choice([-1.0, 1.0])
        inside = relief * (1.0 - rho) + loss(other * second - sign * rho * first)
        steep = [loss(a * second - b * first) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
        assert inside <= max(steep + [relief + loss(a * second) for a in (-1.0, 1.0)]) + 1e-9
        one = relief * (1.0 - rho) + loss(-abs(other) * second + rho * first)
        assert one <= max(loss(first), loss(first - second), relief + loss(-second), relief) + 1e-9


def test_the_corner_zero_costs_nothing_beside_two_others_at_any_epsilon():
    """The lemma by quadrature: three Gaussian losses of any correlation, and 0 itself, at negative ε too."""
    g = np.linspace(-9.0, 9.0, 4001)
    mass = np.exp(-(g**2) / 2.0)
    mass /= mass.sum()
    for mu, epsilon in product((0.01, 0.3, 1.0, 4.0), (-3.0, -0.5, -0.01, 0.0, 0.4)):
        first, second = mu**2 / 2.0 + mu * g, mu**2 / 2.0 - mu * g  # opposite corners: the least overlap
        largest = np.maximum(np.maximum(first, second), 0.0)
        exact = float(mass @ np.maximum(-np.expm1(epsilon - largest), 0.0))
        assert exact <= 2.0 * float(gaussian_profile(mu, epsilon)) + 1e-9
    # With one other corner it is false: m ≥ 2 is needed.
    alone = float(mass @ np.maximum(-np.expm1(-0.5 - np.maximum(0.5 + g, 0.0)), 0.0))
    assert alone > float(gaussian_profile(1.0, -0.5)) * 1.01


@pytest.mark.parametrize(
    ("loss", "low", "high", "curvature"),
    [
        (exp_linear, 0.5, 0.0, 0.5),
        (logistic, 1.0, 0.0, 0.25),
        (huberised_hinge, 1.0, 0.0, 2.0),
        (huber, 1.0, 1.0, 1.0),
        (log_cosh, 1.0, 1.0, 1.0),
        (quantile, 0.8, 0.2, 5.0),
    ],
)
def test_the_table_of_losses_has_the_right_slopes_and_curvatures(loss, low, high, curvature):
    slope, bend = loss(np.linspace(-40.0, 40.0, 400_001))
    assert slope.min() == pytest.approx(-low, abs=1e-9)
    assert slope.max() == pytest.approx(high, abs=1e-9)
    assert bend.max() == pytest.approx(curvature, rel=1e-6)
    assert bend.min() >= 0.0


@pytest.mark.parametrize("largest", [1, 2, 3, 10, 60])
def test_counts_bend_at_most_as_much_as_is_said(largest):
    slope, bend = counts(np.linspace(-12.0, 9.0, 40_001), largest=largest)
    assert bend.max() <= count_curvature(largest)
    assert bend.max() == pytest.approx(count_curvature(largest), rel=1e-5)
    assert -1e-9 <= slope.min() <= slope.max() <= largest + 1e-9


# ── reference values of the design, to every digit, by the search that plans use ──


def whole(corners, mu, *, mode, gaussian, closing=0.0):
    """A fit that spends μ²: ``mode`` of it on the farthest corner, ``gaussian`` on stages before and after."""
    terms = corners.promise(mu * math.sqrt(mode / corners.widest)).terms
    added = mu**2 * gaussian + closing**2
    return CornerDP(tuple(Corner(times, square + added, shift) for times, square, shift in terms))


def largest_mu(corners, budget, *, mode=0.8, gaussian=0.2, closing=0.0):
    def keeps(mu):
        return whole(corners, mu, mode=mode, gaussian=gaussian, closing=closing).implies(budget)

    return largest_total(keeps, digits=1e-12)


ONE_SIDED = [
    ((1.0, 1e-5), 0.2, (0.2, 0.8, 0.0), 0.2186858894),
    ((1.0, 1e-5), 0.2, (0.15, 0.65, 0.2), 0.2186675736),
    ((5.0, 1e-6), 1.0, (0.15, 0.65, 0.2), 0.8378582380),
    ((0.5, 1e-5), 0.1, (0.0, 1.0, 0.0), 0.1158805808),
]


@pytest.mark.parametrize(("budget", "kappa", "shares", "expected"), ONE_SIDED)
def test_reference_values_of_a_one_sided_fit(budget, kappa, shares, expected):
    parts = {"mode": shares[1], "gaussian": shares[0] + shares[2]}
    corners, promised = slopes(0.5, 0.0, kappa), ApproxDP(*budget)
    found = largest_mu(corners, promised, **parts)
    assert round(found, 10) == expected
    assert whole(corners, found, **parts).implies(promised)
    assert not whole(corners, found * (1 + 1e-9), **parts).implies(promised)


def test_reference_value_of_a_two_sided_fit():
    assert round(largest_mu(slopes(1.0, 1.0, 0.2), ApproxDP(1.0, 1e-5)), 10) == 0.2097207239


@pytest.mark.parametrize(("records", "expected"), [(2, 0.2186), (3, 0.2164), (5, 0.2064)])
def test_reference_values_for_several_records_a_person(records, expected):
    corners = slopes(0.5, 0.0, 0.2 / records, records=records)
    assert round(largest_mu(corners, ApproxDP(1.0, 1e-5), mode=1.0, gaussian=0.0), 4) == expected


def test_reference_values_of_ridge_closing_noise_and_residual():
    ridge = ridge_for(0.2, curvature=0.5, radius_squared=5.0)
    assert round(ridge, 8) == 11.29163892
    assert volume_cost(curvature=0.5, radius_squared=5.0, ridge=ridge) <= 0.2 * (1 + 1e-12)
    loss = Logistic(4, bounds=(-1.0, 1.0), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0)).fit_loss
    setting = Setting(Layout(4, (), True, None), loss, 10_000, 1, intervals=True)
    residual, omega = closing(setting, ridge=11.3, deviation=11.4, row=math.sqrt(5.0), mu=CLOSING_MU, most=0.1)
    assert omega == pytest.approx(4e-4)
    assert residual == pytest.approx(2.26e-6)
    assert 2.0 * residual / 11.3 / omega <= 1e-3 * (1 + 1e-12)


def test_the_closing_noise_of_very_many_records_is_below_their_sampling_error():
    """Rounding of 10⁹ gradients must be hidden: more of the budget goes there, and the ridge grows."""
    model = Logistic(10, bounds=(-1.0, 1.0), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    for n in (10**7, 10**8, 10**9):
        numbers = plan_for(PerturbedMode(intervals=True), model, ApproxDP(1.0, 1e-6), n=n).parameters
        assert numbers["closing_noise"] <= 0.5 / math.sqrt(n)
        booked = 2.0 if n == 10**9 else 1.0  # there the rounding of predictors decides (perturbed_mode.md, section 4)
        assert numbers["ridge"] / (0.15 * n) <= booked / math.sqrt(n)


# ── from a budget to a plan ──


def test_the_noise_of_a_fit_keeps_the_budget_with_every_stage_charged():
    corners, budget = slopes(0.5, 0.0, 0.2), ApproxDP(1.0, 1e-5)
    mu = largest_mu(corners, budget, mode=0.65, gaussian=0.35, closing=1e-3)
    stages = [GaussianDP(mu * math.sqrt(0.15)), GaussianDP(mu * math.sqrt(0.2)), GaussianDP(1e-3)]
    ratio = mu * math.sqrt(0.65 / corners.widest)
    together = compose(*stages, corners.promise(ratio))
    assert together.epsilon(1e-5) == pytest.approx(1.0, abs=1e-6)
    assert compose(*stages, corners.promise(ratio * (1 - 1e-9))).implies(budget)
    assert not compose(*stages, corners.promise(ratio / 0.99)).implies(budget)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.02, 1e-3), (0.1, 1e-12), (3.0, 1e-9), (20.0, 1e-30), (60.0, 0.5)])
@pytest.mark.parametrize("records", [1, 4])
def test_the_search_is_sound_and_sharp_over_orders_of_magnitude(epsilon, delta, records):
    corners = slopes(0.5, 0.0, 0.2 * epsilon / records, records=records)
    mu = largest_mu(corners, ApproxDP(epsilon, delta), mode=0.65, gaussian=0.35, closing=1e-5)
    found = whole(corners, mu, mode=0.65, gaussian=0.35, closing=1e-5)
    assert found.delta(epsilon) <= delta
    assert found.delta(epsilon * (1 - 1e-4)) > delta


def test_a_guarantee_carries_the_promise_through_json():
    guarantee = Guarantee(
        slopes(0.5, 0.0, 0.2).promise(0.2),
        Neighbours.REPLACE_ONE,
        Unit(),
        "perturbed_mode.md, Theorem 1",
        (Assumption("rows weighted to norm r", Provenance.ENFORCED),),
    )
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee
    assert "δ(ε) ≤ δ_G" in str(guarantee)


def test_a_volume_that_eats_the_whole_budget_leaves_no_noise_that_is_enough():
    assert largest_mu(slopes(0.5, 0.0, 1.5), ApproxDP(1.0, 1e-5)) is None


def test_pure_fits_add_up_the_worst_corner_and_the_volume():
    """ηr = ε₂/(2L): 0.6 of it for the mode and κ = 0.15 make 0.75, for one-sided slopes of ½ and two-sided ones of 1."""
    assert slopes(0.5, 0.0, 0.15).pure_promise(0.6).stated_epsilon == pytest.approx(0.75)
    assert slopes(1.0, 1.0, 0.15).pure_promise(0.3).stated_epsilon == pytest.approx(0.75)


def test_modes_with_pure_noise_of_their_own_add_up():
    """Not the root of the sum of squares: each mode's noise hides its own corner only."""
    single = slopes(0.5, 0.0, 0.1).pure_promise(0.3).stated_epsilon
    assert one_against_rest(3, 0.5, 0.1).pure_promise(0.3).stated_epsilon == pytest.approx(3.0 * single)


@pytest.mark.parametrize(
    ("relief", "mode", "expected"), [(0.3, 0.749, 0.749), (0.5, 2.0 * 0.249, 0.749), (0.5, 0.749, 0.8745)]
)
def test_under_pure_noise_a_relieved_volume_is_free_up_to_half_the_mode(relief, mode, expected):
    """max(ε₂, ε₂/2 + c): nothing while c ≤ ε₂/2."""
    assert relieved_slopes(1.0, 1.0, relief).pure_promise(mode / 2.0).stated_epsilon == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_softmax_ridge_and_volume_are_inverse(classes):
    ridge = softmax_ridge_for(0.2, classes, radius_squared=5.0)
    assert softmax_volume_cost(classes, radius_squared=5.0, ridge=ridge) == pytest.approx(0.2, rel=1e-9)
    p = RNG.dirichlet(np.ones(classes), size=2000)
    p = np.concatenate([p, np.full((1, classes), 1.0 / classes)])
    for row in p[-200:]:
        hessian = np.diag(row) - np.outer(row, row)
        assert np.linalg.slogdet(np.eye(classes) + 5.0 / ridge * hessian)[1] <= 0.2 + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("n", [1000, 10_000])
@pytest.mark.parametrize("records", [1, 4])
def test_plans_choose_kappa_by_public_numbers_near_a_fifth_of_epsilon(epsilon, n, records):
    model = Logistic(5, bounds=(-1.0, 1.0), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    how = PerturbedMode(measured=True, intervals=True, pure=False)
    numbers = plan_for(how, model, ApproxDP(epsilon, 1e-5), n=n, records_per_person=records).parameters
    kappa = volume_cost(curvature=0.5, radius_squared=numbers["row_bound"] ** 2, ridge=numbers["ridge"])
    assert 0.1 <= records * kappa / epsilon <= 0.4


def test_relief_buys_noise_and_three_classes_need_less_of_it_one_against_the_rest():
    budget = ApproxDP(1.0, 1e-5)

    def noise(corners):
        return math.sqrt(corners.widest) / largest_mu(corners, budget)

    bend = math.expm1(0.2)  # r²/Λ of κ = 0.2 at M = 1
    assert 0.84 <= noise(relieved_slopes(1.0, 1.0, 2.0 * bend)) / noise(slopes(1.0, 1.0, 0.2)) <= 0.94
    ratios = [noise(one_against_rest(k, 0.5, 0.2 / k)) / noise(softmax(k, 0.2)) for k in (3, 4, 5, 8)]
    assert ratios[0] < 1.0
    assert all(later > earlier for earlier, later in pairwise(ratios))
