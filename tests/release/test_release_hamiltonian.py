"""Releases by HMC and NUTS: refused unless named, said first, and verified without running anything again."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.models.likelihood.beta_target import BetaTarget
from onedraw.privacy import Exactness
from onedraw.release.release import published
from onedraw.samplers import HMC, NUTS, Sample, coupling
from tests.release.cases import missed_edits

N = 60


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(5)
    X = generator.standard_normal((N, 1))
    return X, (X[:, 0] + 0.5 * generator.standard_normal(N) > 0.0).astype(float)


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(1), od.PureDP(2.0), n=N)


@pytest.fixture(scope="module")
def reserved():
    """A plan whose δ pays for an estimate."""
    budget = od.ApproxDP(2.0, 0.9)
    return od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(1), budget, n=N, gamma=0.1)


@pytest.fixture(scope="module")
def assumed(plan, records):
    return od.release(plan, records, accept="assumed", random_state=3)


@pytest.fixture(scope="module")
def coupled(reserved):
    return HMC.coupled(reserved)


@pytest.fixture(scope="module")
def estimated(reserved, records, coupled):
    return od.release(reserved, records, sampler=coupled, accept="estimated", random_state=3)


def test_a_chain_without_a_proof_is_refused_unless_the_caller_names_it(plan, reserved, records, coupled, ledger):
    with pytest.raises(errors.ExactnessRefused, match=r'accept="estimated".*accept="assumed"'):
        od.release(plan, records, ledger=ledger, dataset="patients")
    cases = ((plan, NUTS(), "assumed"), (plan, HMC(20), "assumed"), (reserved, coupled, "estimated"))
    for asked, sampler, word in cases:
        other = {"assumed": "estimated", "estimated": "assumed"}[word]
        for accept in ((), other):
            with pytest.raises(errors.ExactnessRefused, match=f'accept="{word}"'):
                od.release(asked, records, sampler=sampler, accept=accept, ledger=ledger, dataset="patients")
    assert [event.kind for event in ledger.events("patients")] == ["dataset-opened"]


def test_the_first_line_says_so(assumed, estimated):
    cases = ((assumed, "ASSUMED", r"\(ε = 2\)"), (estimated, "ESTIMATED", r"\(ε = [0-9.]+, δ = 0.9\)"))
    for release, word, figures in cases:
        sentence = release.certificate.sentence
        assert re.match(f"SEEDED: REPRODUCIBLE, NOT PRIVATE. {word}, NOT PROVEN: this draw is {figures}-", sentence)
        named = [(one.statement, one.provenance) for one in release.certificate.assumptions]
        assert (Exactness.from_dict(release.certificate.exactness).sentence, "assumed") in named
    assert "estimated on simulated data" in estimated.certificate.exactness["evidence"]
    assert "100 steps of NUTS" in assumed.certificate.exactness["statement"]


def test_certificates_verify_and_every_edit_is_noticed(assumed, estimated):
    for release in (assumed, estimated):
        assert od.verify(release.certificate).answer == "consistent"
        assert missed_edits(release.certificate) == []


def test_verification_runs_no_coupling_again(estimated, monkeypatch, tmp_path):
    monkeypatch.setattr(coupling, "_simulated_meeting_times", None)
    monkeypatch.setattr(coupling, "_FOUND", {})
    estimated.save(tmp_path / "release.json")
    assert od.verify(tmp_path / "release.json").answer == "consistent"


def test_nothing_the_chains_noticed_is_written_out(assumed, estimated):
    for release in (assumed, estimated):
        assert 0.0 < release.diagnostics["acceptance"] <= 1.0
        written = json.dumps(release.certificate.model_dump(mode="json"))
        assert "acceptance" not in written
        assert str(release.diagnostics["acceptance"])[:8] not in written


def test_a_seed_repeats_the_draw_and_the_operating_system_does_not(plan, records, assumed):
    again = od.release(plan, records, accept="assumed", random_state=3)
    assert again.certificate.draw == assumed.certificate.draw
    fresh = [od.release(plan, records, accept="assumed").draw for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_what_is_accepted_chooses_the_sampler(plan, reserved, coupled, monkeypatch):
    monkeypatch.setattr(HMC, "coupled", lambda plan: coupled)
    choose = od.samplers.default_sampler
    assert choose(plan, accept="assumed")[0] == NUTS()
    assert choose(reserved, accept=("assumed", "estimated"))[0] is coupled
    assert choose(reserved, accept={"estimated"})[0] is coupled
    assert choose(plan, accept=("assumed", "estimated"))[0] == NUTS()  # no δ pays for an estimate
    network = od.calibrate(od.BetaDivergence(), od.models.Network(2, hidden=2), od.PureDP(1.0), n=20)
    assert choose(network, accept="assumed")[0].warmup > 0
    with pytest.raises(errors.ExactnessRefused, match="Candidates"):
        choose(plan)
    convex = od.models.Logistic(2, data_norm=1.0, prior=od.Gaussian(scale=1.0))
    gibbs = od.calibrate(od.Gibbs("gdp"), convex, od.ApproxDP(1.0, 1e-5), n=50)
    assert choose(gibbs, accept="assumed") == choose(gibbs)  # a proven chain is never given up


def test_plans_without_a_potential_are_refused():
    conjugate = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=20)
    candidates = od.calibrate(od.Candidates(), od.models.BinaryRegression(1), od.PureDP(1.0), n=20)
    for sampler in (NUTS(), HMC(5)):
        with pytest.raises(errors.ExactnessRefused, match="closed form"):
            od.release(conjugate, np.zeros(20), sampler=sampler, accept="assumed")
        with pytest.raises(errors.ExactnessRefused, match="algorithm of its own"):
            od.release(candidates, (np.zeros((20, 1)), np.zeros(20)), sampler=sampler, accept="assumed")


@pytest.mark.parametrize(
    "wrong", [lambda: HMC(0), lambda: HMC(5, leapfrog=0), lambda: HMC(5, step_size=3.0), lambda: HMC(5, walk=-1.0),
              lambda: HMC(5, meeting_times=3), lambda: NUTS(steps=0), lambda: NUTS(warmup=-1), lambda: NUTS(doublings=20),
              lambda: HMC(True), lambda: NUTS(step_size="0.1")],
)  # fmt: skip
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(errors.WrongCall):
        wrong()


def test_naming_a_sampler_and_verifying_load_neither_jax_nor_blackjax():
    code = (
        "import sys, onedraw.samplers as s; s.NUTS(), s.HMC(5).to_dict(), s.Sampler.from_dict(s.NUTS().to_dict());"
        "print({'jax', 'blackjax'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


# ── variances, networks, records nobody expected ─────────────────────────────────────────────────────────────

SMALL = HMC(5)


@pytest.fixture(scope="module")
def regression():
    model = od.models.GaussianRegression(1, variance_floor=0.3)
    return od.calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=N, draws=20)


def test_a_sampled_variance_is_published_as_one_and_never_below_its_floor(regression):
    """Responses without noise push the variance to its floor, which is not a multiple of the lattice's spacing."""
    X = np.linspace(-1.0, 1.0, N)[:, None]
    for lattice in (None, 0.25):
        release = od.release(regression, (X, X[:, 0]), sampler=SMALL, accept="assumed", lattice=lattice)
        assert release.certificate.draw.names[-1] == "variance"
        assert (release.draws[:, -1] >= 0.3).all()
        assert od.verify(release.certificate).answer == "consistent"
    assert (release.draws[:, -1] == 0.5).any()


def test_rounding_to_nearest_would_have_fallen_below_the_floor(regression):
    encoded = regression.model.summarise((np.zeros((N, 1)), np.zeros(N)))
    target = BetaTarget(regression.model, encoded, 1.0, 2.0)
    prepared = od.release(regression, (np.zeros((N, 1)), np.zeros(N)), sampler=SMALL, accept="assumed").certificate

    def values(number, lattice):
        on_lattice = prepared.model_copy(update={"lattice": lattice})
        sample = Sample(np.full((regression.draws, 3), number))
        return np.array(published(target, sample, regression, on_lattice, None).draw.values)

    low = values(-50.0, 0.25)  # σ² = 0.3 + e^−50
    assert (low[:, -1] == 0.5).all()
    assert (low[:, :-1] == -50.0).all()
    assert (values(1e4, 2.0**-30)[:, -1] <= 1e200).all()


def test_a_regression_network_is_released():
    generator = np.random.default_rng(2)
    X = generator.standard_normal((N, 1))
    model = od.models.Network(1, hidden=2, task="regression", variance_floor=0.01)
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=N)
    release = od.release(plan, (X, np.sin(X[:, 0])), sampler=SMALL, accept="assumed")
    assert release.draws.shape == (1, 8)
    assert release.named()["variance"] >= 0.01
    assert od.verify(release.certificate).answer == "consistent"


@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf, 1e300, 0.0], ids=str)
def test_no_record_makes_a_release_fail(regression, plan, entry):
    rows = np.full((N, 1), entry)
    for case, sampler in ((regression, SMALL), (plan, NUTS())):
        release = od.release(case, (rows, np.full(N, entry)), sampler=sampler, accept="assumed")
        assert np.isfinite(release.draws).all()
    mixed = np.linspace(-1.0, 1.0, N)[:, None]
    mixed[0] = entry
    assert np.isfinite(od.release(regression, (mixed, rows[:, 0]), sampler=SMALL, accept="assumed").draws).all()
