"""The literature's faults, with the numbers of docs/errata-of-the-literature.md; and that right procedures are not accused."""

import math

import numpy as np
import pytest

import onedraw as od
from onedraw import audit
from onedraw.audit.cases import faults, literature


def test_published_output_perturbation_loses_more_than_six_epsilon():
    fault = literature.output_perturbation()
    assert fault.value > 6 * 1.0
    assert fault.value == pytest.approx(6.87, abs=5e-3)


@pytest.mark.parametrize(
    ("penalty", "balanced", "agreeing"), [(1.0, 1.68, 2.95), (10.0, 6.67, 6.87), (100.0, 9.52, 9.52)]
)
def test_output_perturbation_has_the_figures_of_the_errata(penalty, balanced, agreeing):
    assert literature.output_perturbation(penalty=penalty, positive=5).value == pytest.approx(balanced, abs=6e-3)
    assert literature.output_perturbation(penalty=penalty).value == pytest.approx(agreeing, abs=6e-3)


def test_the_corrected_scale_keeps_epsilon():
    """2p/(nλε) instead of 2/(nλε): the same pair loses a twentieth."""
    for penalty in (1.0, 10.0, 100.0):
        assert literature.output_perturbation(penalty=penalty).value / 20 <= 1.0


def test_the_minimiser_of_the_test_double_is_one():
    labels, t = (
        np.array([1.0] * 7 + [-1.0] * 3),
        literature.minimiser(np.array([1.0] * 7 + [-1.0] * 3), dimension=20, penalty=10.0),
    )

    def objective(theta):
        margins = labels * theta.sum()
        return np.mean(np.logaddexp(0.0, -margins)) + 5.0 * theta @ theta

    centre = objective(np.full(20, t))
    for index in range(20):
        moved = np.full(20, t)
        moved[index] += 1e-3
        assert objective(moved) > centre


def test_the_published_gaussian_calibration_exceeds_its_epsilon():
    fault = literature.gaussian_calibration()
    assert fault.value > 7.0
    assert fault.value <= 7.65  # the range that the floor really allows at this β (errata 3)
    plan = od.calibrate(
        od.BetaDivergence(rule="jewson", as_published=True),
        od.models.GaussianRegression(1, intercept=False, variance=0.01, prior=od.Gaussian(scale=3.0)),
        od.PureDP(1.0),
        n=10,
    )
    assert literature.published_beta(1.0, 9.0) == pytest.approx(plan.parameters["beta"], rel=1e-9)
    assert plan.parameters["true_range"] == pytest.approx(7.65, abs=5e-3)


def test_with_the_floor_in_its_place_the_same_pair_keeps_epsilon():
    """No β certifies ε = 1 at w = 1 and s² = 0.01; with s² = 9 as the floor and as the variance the rule is right."""
    fault = literature.gaussian_calibration(variance=9.0)
    assert fault.value <= 1.0


def test_corollary_8_is_false_at_epsilon_20():
    fault = literature.corollary8()
    assert fault.value == pytest.approx(1.17e-3, abs=5e-6)
    assert fault.value > 100 * fault.claimed == pytest.approx(1e-3)


def test_corollary_8_is_true_where_the_library_accepts_it():
    assert literature.corollary8(epsilon=8.9).value <= 1e-5
    assert literature.corollary8(epsilon=9.1).value > 1e-5


def test_the_published_rates_prove_something_of_a_mechanism_that_ignores_its_records():
    fault = literature.attack_rates()
    assert fault.value > 0.9
    assert fault.value < math.log(3)
    assert fault.wrong.endswith("ε ≥ 0")


@pytest.mark.statistical
def test_rates_per_class_prove_nothing_of_it():
    """At confidence 0.999999 a wrong accusation has probability below 1e-6; the published rates accuse every time."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    for _ in range(20):
        guesses, truth = generator.integers(2, size=4000), generator.integers(2, size=4000)
        false_positive, false_negative = (
            int(((guesses == 1) & (truth == 0)).sum()),
            int(((guesses == 0) & (truth == 1)).sum()),
        )
        classes = int((truth == 0).sum()), int((truth == 1).sum())
        assert audit.epsilon_lower_bound(false_positive, false_negative, *classes, 0.0, 0.999999) == 0.0
        assert audit.epsilon_lower_bound(false_positive, false_negative, 4000, 4000, 0.0, 0.999999) > 0.8


def test_all_faults_are_listed_with_their_rows():
    listed = faults()
    assert [fault.row for fault in listed] == ["1", "2", "3", "6c", "10", "16", "17", "18"]
    assert all(fault.shown and fault.to_dict()["shown"] for fault in listed)


def test_an_intercept_that_is_forgotten_overspends_and_a_right_constant_does_not():
    assert literature.intercept().value == pytest.approx(4.14, abs=5e-3)
    assert literature.intercept(norm=100.0).value < 1.0  # there √(r² + 1) is r


def test_a_clipped_record_moves_twice_as_far_as_published():
    assert literature.clipping().value == pytest.approx(4 * literature.clipping().claimed)


def test_the_first_corollary_8_is_false_from_epsilon_3_11_on():
    assert literature.first_corollary8().value == pytest.approx(0.384, abs=5e-4)
    assert not literature.first_corollary8(epsilon=3.1).shown
    assert literature.first_corollary8(epsilon=3.12).shown


def test_the_gradient_of_the_divergence_is_steeper_than_published():
    fault = literature.divergence_gradient()
    assert fault.value == pytest.approx(0.2963, abs=5e-5)
    assert literature.divergence_gradient(beta=3.0).value <= 0.25
