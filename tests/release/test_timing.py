"""Running time on a certificate: not covered, or covered by a second line that follows from its numbers."""

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.models import Gaussian, Logistic
from onedraw.release.certificate import Certificate
from onedraw.release.timing import UNCOVERED
from tests.release.cases import edited, edits, paths

N = 40


def logistic(**prior):
    return Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, **prior))


def labelled(n=N):
    generator = np.random.default_rng(3)
    return 0.5 * generator.standard_normal((n, 2)), generator.integers(0, 2, n).astype(float)


@pytest.fixture(scope="module")
def path():
    plan = od.calibrate(od.NoisyGradient(), logistic(), od.ApproxDP(1.0, 1e-6), n=N)
    return {timing: od.release(plan, labelled(), timing=timing, random_state=7) for timing in (None, "padded")}


def test_a_draw_that_is_not_padded_says_that_running_time_is_not_covered(path):
    assert "Running time is not covered" in UNCOVERED
    assert path[None].certificate.timing.sentence == UNCOVERED
    assert set(path[None].certificate.model_dump(mode="json")["timing"]) == {"sentence"}


def test_constant_work_is_said_and_costs_nothing(path):
    certificate, plan = path["padded"].certificate, path["padded"].plan
    timing = certificate.timing
    assert timing.work == {"passes over the records": int(plan.parameters["steps"])}
    assert (timing.gamma, timing.delta) == (0.0, 1e-6)
    for words in ("the draw together with its work", "whatever the records are.", "constant work is not constant time"):
        assert words in timing.sentence
    checks = od.verify(certificate).checks
    assert any("work" in check for check in checks)
    assert len(checks) == len(od.verify(path[None].certificate).checks) + 1


def test_padding_changes_no_draw_and_no_first_line(path):
    one, other = (path[timing].certificate for timing in (None, "padded"))
    assert one.draw == other.draw
    assert one.sentence == other.sentence
    assert one.promise == other.promise


@pytest.mark.parametrize("timing", [None, "padded"])
def test_every_edit_of_what_is_said_of_time_is_caught(path, timing):
    certificate = path[timing].certificate
    document = certificate.model_dump(mode="json")
    for where, value in paths(document["timing"], ("timing",)):
        for other in edits(value):
            if other != value:
                with pytest.raises((errors.CertificateRejected, ValueError)):
                    od.verify(Certificate.model_validate(edited(document, where, other)))
    if timing is None:  # and a second line that nobody earned
        forged = {"sentence": path["padded"].certificate.timing.sentence}
        with pytest.raises(errors.CertificateRejected, match="timing"):
            od.verify(Certificate.model_validate(document | {"timing": forged}))


def test_a_second_line_of_a_sampler_that_cannot_pad_is_caught(path):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=N)
    document = od.release(plan, np.zeros(N)).certificate.model_dump(mode="json")
    forged = path["padded"].certificate.model_dump(mode="json")["timing"]
    with pytest.raises(errors.CertificateRejected, match="cannot pad"):
        od.verify(Certificate.model_validate(document | {"timing": forged}))


def test_another_word_is_refused_before_anything_is_read():
    plan = od.calibrate(od.NoisyGradient(), logistic(), od.ApproxDP(1.0, 1e-6), n=N)
    with pytest.raises(errors.WrongCall, match="timing takes 'padded'"):
        od.release(plan, None, timing="constant")


@pytest.mark.parametrize(
    ("model", "mechanism", "refused"),
    [
        (od.models.BetaBernoulli(prior=(1, 1)), od.Diffused(), "Exact"),
        (od.models.GammaPoisson(prior=(1.0, 1.0), cap=5.0), od.Diffused(), "Exact"),
    ],
)
def test_a_sampler_without_padding_refuses_and_names_those_with(model, mechanism, refused):
    plan = od.calibrate(mechanism, model, od.ApproxDP(1.0, 1e-6), n=N)
    with pytest.raises(errors.ExactnessRefused, match=rf"{refused}\(\) cannot pad .* PerturbedMode .* Candidates"):
        od.release(plan, np.zeros(N), timing="padded")


def test_a_normal_law_is_drawn_by_constant_work():
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=N)
    assert od.release(plan, np.zeros(N), timing="padded").certificate.timing.gamma == 0.0


def test_an_estimator_hands_it_on():
    X, y = labelled(200)
    options = {
        "epsilon": 2.0,
        "data_norm": 1.0,
        "classes": [0.0, 1.0],
        "mechanism": "noisy-gradient",
        "random_state": 1,
    }
    found = od.DPLogisticRegression(**options, timing="padded").fit(X, y)
    assert found.certificate_.timing.work is not None
    assert od.DPLogisticRegression(**options).fit(X, y).certificate_.timing.work is None
