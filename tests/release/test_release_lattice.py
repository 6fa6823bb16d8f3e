"""Releases on a lattice: what is too fine is refused, and a mean far from 0 is released as one near 0."""

from fractions import Fraction

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.models import BetaBernoulli, GaussianMean

MEAN = GaussianMean(bound=1.0, variance=1.0, prior_count=1.0)
FINE = [2.0**-1074, 2.0**-200, 2.0**-60, 2.0**-40]


def planned(model=MEAN, n=100):
    return od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=n)


@pytest.mark.finding("reliability N3", commit="8a7c0fb")
@pytest.mark.parametrize("lattice", FINE)
def test_lattice_of_low_bits_is_refused_before_a_charge(lattice, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", od.ApproxDP(2.0, 1e-5))
    with pytest.raises(errors.WrongCall, match="too fine"):
        od.release(planned(), [0.0] * 100, lattice=lattice, ledger=ledger, dataset="d")
    assert [event for event in ledger.events() if event.kind == "reserved"] == []


@pytest.mark.finding("reliability N3", commit="8a7c0fb")
def test_verify_refuses_a_lattice_of_low_bits(monkeypatch):
    with monkeypatch.context() as careless:
        careless.setattr("onedraw.models.ConjugateModel.float_error", lambda *_: 0.0, raising=False)
        release = od.release(planned(), [0.0] * 100, lattice=2.0**-60)
    with pytest.raises(errors.CertificateRejected, match="lattice"):
        od.verify(release)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e9])
def test_coefficients_under_a_flat_prior_keep_their_digits(scale):
    model = od.models.Logistic(2, bounds=(-1.0, 1.0), scaled=True, prior=od.Gaussian(scale=scale))
    plan = od.calibrate(od.PerturbedMode(), model, od.ApproxDP(1.0, 1e-6), n=2000)
    rows = np.random.default_rng(1).uniform(-1.0, 1.0, (2000, 2))
    certificate = od.release(plan, (rows, rows[:, 0] > 0.0)).certificate
    assert certificate.lattice <= 2.0**-20
    assert od.verify(certificate)


def test_verify_refuses_more_digits_of_a_rate_than_are_published():
    model = od.models.GammaPoisson((2.0, 1.0), cap=10.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=100)
    certificate = od.release(plan, [3.0] * 100, lattice=2.0**-22).certificate
    assert od.verify(certificate)
    draw = certificate.draw.model_copy(update={"values": [[64.0 + 2.0**-22]]})
    with pytest.raises(errors.CertificateRejected, match="lattice"):
        od.verify(certificate.model_copy(update={"draw": draw}))


def test_prior_too_strong_for_double_precision_is_refused():
    plan = od.calibrate(od.Direct(), BetaBernoulli((2.0**53, 2.0**53)), od.ApproxDP(1.0, 1e-6), n=100)
    with pytest.raises(errors.PromiseRefused, match="weaker prior"):
        od.release(plan, [1.0] * 100)


@pytest.mark.finding("reliability N2", commit="8a7c0fb")
def test_mean_far_from_zero_moves_between_neighbors_as_near_zero():
    """A planted center in the float before the draw moves a mean near 10¹⁵ by 0.125 or not at all."""
    moved = [_steps_moved(centre) for centre in (0.0, 2.0**50)]
    assert moved[0] == moved[1] == pytest.approx(2.0 / 101 * 2.0**10, abs=1.0)


def _steps_moved(centre):
    """How many steps of 2⁻¹⁰ the same variates are moved by one record, before a float of the draw's size is made."""
    model = GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, centre=centre)
    ends = []
    for last in (-1.0, 1.0):
        law = model.posterior(model.summarise([centre] * 99 + [centre + last]))
        location = getattr(law, "location", law.mean)
        ends.append(sum(float(value - Fraction(centre)) for value in map(Fraction, location)) * 2.0**10)
    return round(ends[1] - ends[0], 6)


def test_far_center_publishes_the_draw_of_a_near_one():
    near, far = (
        od.release(
            planned(GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, centre=centre)),
            [centre + 0.25] * 100, lattice=2.0**-10, random_state=3,
        )
        for centre in (0.0, 2.0**40)
    )  # fmt: skip
    assert np.array_equal(far.draws - 2.0**40, near.draws)


@pytest.mark.parametrize("centre", [0.0, 1e12, 1e15])
def test_estimator_far_from_zero_gives_a_true_interval(centre):
    values = centre + np.linspace(-0.5, 0.5, 200)
    mean = od.DPMean(
        epsilon=1.0, bounds=(centre - 1.0, centre + 1.0), mechanism="diffused", missing=centre, random_state=7
    ).fit(values)
    assert od.verify(mean.release_).answer == "consistent"
    ((low, high),) = np.reshape(mean.conf_int(), (-1, 2))
    assert low <= centre <= high
    assert high - low < 2.0


def test_range_of_next_to_no_floats_is_refused():
    with pytest.raises(errors.InvalidModel, match="next to none"):
        GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, centre=1e17)
