"""A user's NumPyro model: its own priors, the likelihood's β-loss, and a refusal for what would be another model."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import potential_energy
from scipy import stats

import onedraw as od
from onedraw.errors import ExactnessRefused, InvalidModel, UnsupportedBudget
from onedraw.methods import plan_from_dict
from onedraw.models import (
    BetaTarget,
    BinaryRegression,
    GammaRegression,
    Gaussian,
    GaussianRegression,
    Logistic,
    NegativeBinomialRegression,
    NormalInverseGamma,
    PoissonRegression,
    Softmax,
    StudentTRegression,
    from_numpyro,
    likelihoods,
    register_numpyro,
)
from onedraw.models.numpyro.program_model import source_digest
from tests.models.likelihood.cases import SEED, largest_difference, responses
from tests.models.numpyro import cases
from tests.models.numpyro.cases import FLOOR, LIMITS, PRIORS, REFUSED, SEARCHED, searched, with_observations

SOURCE = Path(__file__).resolve().parents[3] / "src" / "onedraw"
WIDE = Gaussian(scale=3.0)
OWN = {"intercept": False, "prior": WIDE}


@pytest.fixture(autouse=True)
def _seed_is_printed():
    print(f"ONEDRAW_TEST_SEED={SEED}")


def title(value):
    return getattr(value, "name", getattr(value, "__name__", ""))


DRAWS, N = 5, 81
"""Parameters and records in every test of losses: a model's programs are compiled for these sizes once."""


def prior_draws(model, count):
    return model.draw_prior(np.random.default_rng(SEED), count)


def data_for(kind, *, n=N):
    generator = np.random.default_rng(SEED)
    return generator.standard_normal((n, 2)), responses(kind, generator, (n,))


def target_of(model, data, *, weight=0.7, beta=1.9):
    return BetaTarget(model, model.summarise(data), weight, beta)


@cache
def made(fn, **options):
    """Of two features; once, since examining a model takes JAX half a second."""
    return searched(fn) if options == LIMITS.get(fn, {}) else from_numpyro(fn, features=2, **options)


@cache
def prior_model(latents):
    return from_numpyro(with_observations(latents), features=1)


# ── the law is the library's own ─────────────────────────────────────────────────────────────────────────────

SAME = [
    (cases.logistic, {}, BinaryRegression(2, **OWN), "signs"),
    (cases.logistic, {"data_norm": 1.5}, Logistic(2, data_norm=1.5, **OWN), "signs"),
    (cases.logistic_in_a_plate, {}, BinaryRegression(2, **OWN), "signs"),
    (cases.logistic_of_probabilities, {}, BinaryRegression(2, **OWN), "signs"),
    (cases.softmax, {"data_norm": 9.0}, Softmax(2, classes=[0, 1, 2], data_norm=9.0, **OWN), "codes"),
    (cases.softmax_of_probabilities, {"data_norm": 9.0}, Softmax(2, classes=[0, 1, 2], data_norm=9.0, **OWN), "codes"),
    (cases.poisson, {}, PoissonRegression(2, **OWN), "counts"),
    (cases.negative_binomial, {}, NegativeBinomialRegression(2, dispersion=1.5, **OWN), "counts"),
    (cases.negative_binomial_logits, {}, NegativeBinomialRegression(2, dispersion=1.5, **OWN), "counts"),
    (cases.negative_binomial_probs, {}, NegativeBinomialRegression(2, dispersion=1.5, **OWN), "counts"),
    (cases.normal, {}, GaussianRegression(2, variance=0.25, **OWN), "numbers"),
    (cases.cauchy, {}, StudentTRegression(2, df=1.0, variance=0.25, **OWN), "numbers"),
    (cases.durations, {"rate_cap": 4.0}, GammaRegression(2, rate_cap=4.0, shape=2.5, **OWN), "durations"),
]


@pytest.mark.parametrize(("fn", "options", "twin", "kind"), SAME, ids=title)
def test_potential_and_derivatives_are_those_of_the_librarys_own_model(fn, options, twin, kind):
    model, data = made(fn, **options), data_for(kind)
    assert model.likelihood == twin.likelihood
    ours, theirs = target_of(model, data), target_of(twin, data)
    thetas = 0.3 * prior_draws(model, DRAWS)
    differences = [float(ours.potential(theta)) - float(theirs.potential(theta)) for theta in thetas]
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)  # up to a constant
    np.testing.assert_allclose(ours.losses(thetas), theirs.losses(thetas), rtol=1e-9, atol=1e-10)
    for theta in thetas:
        gradient = theirs.gradient(theta)
        np.testing.assert_allclose(ours.gradient(theta), gradient, rtol=1e-10, atol=1e-10 * (1 + abs(gradient).max()))


def test_second_derivatives_are_those_of_the_librarys_own_model():
    model, twin = made(cases.poisson), PoissonRegression(2, **OWN)
    data, theta = data_for("counts"), np.array([0.2, -0.4])
    ours, theirs = target_of(model, data).hessian(theta), target_of(twin, data).hessian(theta)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_a_prior_of_another_width_is_noticed_by_the_same_comparison():
    model, twin, data = (
        made(cases.logistic),
        BinaryRegression(2, intercept=False, prior=Gaussian(scale=2.7)),
        data_for("signs"),
    )
    theta = np.ones(2)
    gap = np.abs(target_of(model, data).gradient(theta) - target_of(twin, data).gradient(theta)).max()
    assert gap > 1e-3


def test_above_its_floor_an_unknown_scale_is_the_librarys_own_and_below_it_is_the_floor():
    model = searched(cases.normal_of_unknown_scale)
    twin = GaussianRegression(2, variance_floor=FLOOR, intercept=False, prior=NormalInverseGamma(conjugate=False))
    assert model.likelihood == twin.likelihood
    data = data_for("numbers")
    ours, theirs = target_of(model, data), target_of(twin, data)
    values = np.array([[0.4, -1.0, variance] for variance in (0.5, 3.0, FLOOR * 1.001, FLOOR * 0.999, FLOOR * 0.01)])
    losses = ours.losses(model.unconstrain(values))
    floored = np.column_stack([values[:, :2], np.maximum(values[:, 2], FLOOR)])
    np.testing.assert_allclose(losses, theirs.losses(twin.unconstrain(floored)), rtol=1e-9)


# ── the prior is the one written ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("latents", PRIORS, ids=title)
def test_the_prior_is_numpyros_own_density_in_its_own_coordinates(latents):
    model = prior_model(latents)
    thetas = prior_draws(model, 3)

    @jax.jit
    def expected(parts):
        def whole():
            latents()
            cases.weights(1, "slope")

        return potential_energy(whole, (), {}, parts)

    for theta, log_prior in zip(thetas, np.asarray(model.log_prior(thetas)), strict=True):
        parts, start = {}, 0
        for site in model.program.sites:
            stop = start + int(np.prod(site.free_shape))
            parts[site.name], start = jnp.asarray(theta[start:stop]).reshape(site.free_shape), stop
        assert start == model.dimension == len(theta)
        assert log_prior == pytest.approx(-float(expected(parts)), rel=1e-10)
        assert log_prior == pytest.approx(float(model.log_prior(theta)), rel=1e-12)


@pytest.mark.parametrize("latents", PRIORS, ids=title)
def test_constrained_values_are_in_their_supports_and_come_back(latents):
    model = prior_model(latents)
    thetas = prior_draws(model, 50)
    values = model.constrain(thetas)
    assert values.shape == (50, len(model.parameter_names))
    np.testing.assert_allclose(model.unconstrain(values), thetas, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.constrain(thetas[0]), values[0])
    named = dict(zip(model.parameter_names, values.T, strict=True))
    if latents is cases.constrained:
        assert (named["half"] > 0).all()
        assert (named["log"] > 0).all()
        assert ((named["between"] > -1) & (named["between"] < 4)).all()
        np.testing.assert_allclose(named["simplex[0]"] + named["simplex[1]"] + named["simplex[2]"], 1.0)
        assert model.dimension == len(model.parameter_names) - 1
    if latents is cases.nested:
        assert (named["below"] < named["top"]).all()


@pytest.mark.statistical
def test_prior_draws_follow_the_priors_written():
    """Kolmogorov–Smirnov, α = 1e-6 in all; a law 30 % wider is rejected."""
    model = prior_model(cases.constrained)
    values = model.constrain(model.draw_prior(np.random.default_rng(SEED), 4000))
    named = dict(zip(model.parameter_names, values.T, strict=True))
    expected = {
        "half": stats.halfnorm(scale=2.0), "log": stats.lognorm(s=0.8, scale=np.exp(0.3)),
        "between": stats.uniform(-1.0, 5.0), "simplex[1]": stats.beta(2.0, 4.0), "slope[0]": stats.norm(0.0, 3.0),
    }  # fmt: skip
    for name, law in expected.items():
        assert stats.kstest(named[name], law.cdf).pvalue > 1e-6 / len(expected)
    assert stats.kstest(1.3 * named["half"], expected["half"].cdf).pvalue < 1e-6


def test_the_prior_scale_is_the_smallest_spread_of_a_released_number():
    assert made(cases.logistic).prior_scale == pytest.approx(3.0, rel=0.1)
    assert searched(cases.normal_of_changing_scale).prior_scale == pytest.approx(1.0, rel=0.1)
    assert 0.0 < made(cases.groups).prior_scale < np.inf  # a Cauchy law has no deviation


def test_parameters_are_named_by_site_and_index():
    assert searched(cases.normal_of_unknown_scale).parameter_names == ("w[0]", "w[1]", "variance")
    assert searched(cases.softmax).parameter_names[:3] == ("W[0,0]", "W[0,1]", "W[1,0]")


# ── what one record can do ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("fn", "kind"), SEARCHED, ids=title)
def test_no_pair_of_records_exceeds_the_sensitivity(fn, kind):
    model, beta = searched(fn), 2.2
    bound = model.likelihood.sensitivity(beta).value
    found = largest_difference(model, kind, beta, rounds=250, population=128)
    assert 0.8 * bound < found <= bound * (1.0 + 1e-12)


def test_a_variance_floor_that_is_not_enforced_is_caught_by_the_same_search(monkeypatch):
    model, kind = searched(cases.normal_of_unknown_scale), "numbers"
    monkeypatch.setattr(likelihoods.LocationNoise, "_enforced", lambda likelihood, given: jnp.maximum(given, 1e-9))
    assert largest_difference(model, kind, 2.2, rounds=250) > 1.1 * model.likelihood.sensitivity(2.2).value


def test_the_bound_in_force_is_reported_with_its_provenance():
    model = searched(cases.student)
    assert model.bounds["variance_floor"].value == FLOOR
    assert model.bounds["variance_floor"].provenance is od.privacy.Provenance.ENFORCED
    assert model.bounds["density"].value == model.likelihood.density_bound.value
    assert searched(cases.waiting).bounds["rate_cap"].value == 4.0
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=100)
    assert plan.parameters["sensitivity"] == model.likelihood.sensitivity(plan.parameters["beta"]).value
    assert any("M^{β−1}/(β−1)" in a.statement for a in plan.guarantee.assumptions)


def test_a_records_loss_does_not_change_with_the_other_records():
    for fn, kind in SEARCHED:
        model = searched(fn)
        X, y = data_for(kind)
        target = target_of(model, (X, y))
        thetas = prior_draws(model, DRAWS)
        others = target_of(model, (np.concatenate([X[:1], 5.0 * X[1:]]), y))
        np.testing.assert_allclose(target.losses(thetas)[:, 0], others.losses(thetas)[:, 0], rtol=1e-12)


WILD = [np.nan, np.inf, -np.inf, 1e300, -1e60, 1e-300, 0.0, -1.0, 1e9]


@pytest.mark.parametrize(("fn", "kind"), SEARCHED, ids=title)
def test_no_record_makes_a_loss_or_derivative_infinite(fn, kind):
    model = searched(fn)
    X = np.array([[a, b] for a in WILD for b in WILD])
    assert len(X) == N
    target = target_of(model, (X, [WILD[index % len(WILD)] for index in range(len(X))]), weight=0.1)
    lower, upper = model.likelihood.loss_range(1.9)
    thetas = prior_draws(model, DRAWS)
    losses = target.losses(thetas)
    assert ((losses >= lower - 1e-9) & (losses <= upper + 1e-9)).all()
    for theta in thetas:
        assert np.isfinite(target.potential(theta))
        assert np.isfinite(target.gradient(theta)).all()


def test_records_that_are_no_records_are_read_all_the_same():
    model = from_numpyro(cases.logistic, features=2, classes=["no", "yes"])
    encoded = model.summarise(([[1.0, None], ["x", 2.0], 7, [1.0, 2.0, 3.0]], ["yes", "no", None, object()]))
    np.testing.assert_array_equal(encoded.y, [1.0, -1.0, -1.0, -1.0])
    assert np.isfinite(encoded.X).all()


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("fn", "options", "message"), REFUSED, ids=title)
def test_what_would_be_another_model_is_refused_with_the_reason(fn, options, message):
    with pytest.raises(InvalidModel, match=re.compile(message, re.DOTALL)):
        from_numpyro(fn, **{"features": 2, **options})


def test_the_promise_does_not_rest_on_the_refusals(monkeypatch):
    """With the checks of data flow and rows off, the law that runs is still free of the other records."""
    from onedraw.models.numpyro import checks as numpyro_checks

    for check in ("_check_data_flow", "_check_prior", "_check_rows"):
        monkeypatch.setattr(numpyro_checks, check, lambda *ignored: None)
    for fn in (cases.standardised, cases.prior_of_rows, cases.predictor_of_responses):
        model = from_numpyro(fn, features=2)
        X, y = data_for("numbers", n=6)
        target, others = target_of(model, (X, y)), target_of(model, (np.concatenate([X[:1], 9.0 * X[1:]]), np.append(y[:1], -y[1:])))  # fmt: skip
        theta = prior_draws(model, 1)
        np.testing.assert_allclose(target.losses(theta)[:, 0], others.losses(theta)[:, 0], rtol=1e-12)
        prior = [float(t.potential(theta[0])) - 0.7 * t.losses(theta)[0].sum() for t in (target, others)]
        assert prior[0] == pytest.approx(prior[1], rel=1e-12)


def test_candidates_and_conjugate_mechanisms_refuse_it_and_say_what_to_use():
    model = made(cases.logistic)
    with pytest.raises(UnsupportedBudget, match="chain"):
        od.calibrate(od.Candidates(), model, od.PureDP(1.0), n=100)


# ── plans, certificates, releases ────────────────────────────────────────────────────────────────────────────


def test_the_best_beta_is_that_of_the_standardised_design():
    model, twin = made(cases.logistic), BinaryRegression(2, **OWN)
    ours, theirs = (od.calibrate(od.BetaDivergence(), m, od.PureDP(1.0), n=100).parameters for m in (model, twin))
    assert (ours["beta"], ours["weight"]) == (theirs["beta"], theirs["weight"])


@pytest.mark.parametrize(("fn", "kind"), SEARCHED, ids=title)
def test_a_plan_is_derived_again_from_its_json(fn, kind):
    model = searched(fn)
    register_numpyro(model.name, model.fn)
    plan = od.calibrate(od.BetaDivergence(beta=1.8), model, od.PureDP(1.0), n=100)
    again = plan_from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.digest == plan.digest


def test_another_model_under_the_same_name_is_not_taken_for_it():
    def versioned(X, y=None):
        numpyro.sample("y", dist.Bernoulli(logits=X @ cases.weights(X.shape[1])), obs=y)

    model = from_numpyro(versioned, features=2, classes=["no", "yes"], bounds=(-1, 1), feature_names=["a", "b"])
    stored = model.to_dict()
    with pytest.raises(InvalidModel, match=r"register_numpyro\('versioned', …\)"):
        od.models.Model.from_dict(stored)
    register_numpyro("versioned", versioned)
    assert od.models.Model.from_dict(stored) == model
    assert stored["fn"]["source"] == source_digest(versioned)
    with pytest.raises(InvalidModel, match="Another NumPyro model is registered"):
        register_numpyro("versioned", cases.logistic)
    for edit in ({"source": "0" * 64}, {"sites": {"w": [3]}}, {"likelihood": {"likelihood": "Poisson"}}):
        with pytest.raises(InvalidModel, match="is not the one described"):
            od.models.Model.from_dict({**stored, "fn": {**stored["fn"], **edit}})


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    model = from_numpyro(cases.normal_of_unknown_scale, features=2, variance_floor=FLOOR, name="released model")
    register_numpyro("released model", cases.normal_of_unknown_scale)
    generator = np.random.default_rng(SEED)
    X = generator.standard_normal((600, 2))
    y = X @ [1.0, -0.5] + 0.6 * generator.standard_normal(600)
    plan = od.calibrate(od.BetaDivergence(), model, od.PureDP(8.0), n=600)
    ledger = od.Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True)
    ledger.init("survey", od.PureDP(20.0))
    sampler = od.samplers.HMC(60)
    with pytest.raises(ExactnessRefused):
        od.release(plan, (X, y), sampler=sampler, ledger=ledger, dataset="survey")
    before = ledger.spent("survey")
    release = od.release(plan, (X, y), sampler=sampler, ledger=ledger, dataset="survey", accept="assumed")
    return before, ledger, release


def test_a_numpyro_model_is_released_like_any_other(released):
    before, ledger, release = released
    assert before.epsilon(0.0) == 0.0  # the refusal spent nothing
    assert ledger.spent("survey").epsilon(0.0) == pytest.approx(8.0)
    named = release.named()
    assert list(named) == ["w[0]", "w[1]", "variance"]
    assert named["variance"] > 0.0
    assert abs(named["w[0]"] - 1.0) < 1.0
    assert abs(named["w[1]"] + 0.5) < 1.0
    assert release.certificate.sentence.startswith("ASSUMED, NOT PROVEN")
    assert od.verify(release.certificate, ledger=ledger).answer == "authentic"
    assert release.certificate.plan["model"]["fn"]["own model"] == "released model"


# ── one adapter ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_file_imports_numpyro():
    importing = re.compile(r"^\s*(import numpyro|from numpyro)\b", re.MULTILINE)
    found = [path.name for path in SOURCE.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert found == ["trace.py"]
