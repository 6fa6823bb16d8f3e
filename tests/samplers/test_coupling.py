"""L-lag couplings: faithful, exact where they meet, and a bound that is one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.curator_coupling import curator_coupling
from scipy.stats import binom, ks_2samp, norm

import onedraw as od
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.compute import jax, jnp
from onedraw.samplers import HMC, NUTS, coupling, seeded_key
from onedraw.samplers import coupling_bound as counting
from onedraw.samplers.coupling import _simulated as simulated_records
from onedraw.samplers.coupling import coupled_step, meeting_time
from onedraw.samplers.coupling_bound import MeetingTimes
from onedraw.samplers.hamiltonian import HMCSettings, drawn, hamiltonian_step, log_density_in, started
from onedraw.samplers.laplace import arguments_of, laplace_approximation
from tests.samplers.cases import ALPHA, logistic_target

SETTINGS = HMCSettings(0.55, 3, 0.15)
PAIRS, STEPS = 800, 4

# Keys are JAX's own where a test runs pairs itself: no law here depends on the cipher, which is compiled anew at every split.
# Couplings of a plan and of a curator are driven by it (`sampler` below).


def _log_density():
    target = logistic_target()
    return log_density_in(target.kernel, laplace_approximation(target), arguments_of(target))


@pytest.fixture(scope="module")
def walked():
    """Pairs and single chains from the same starts, after each step: (first, second, met, alone), (pairs, steps, …)."""
    log_density = _log_density()

    @jax.jit
    @jax.vmap
    def run(key):
        one, two, pair_key, alone_key = jax.random.split(key, 4)
        first, second = started(one, log_density, 2), started(two, log_density, 2)

        def step(carried, number):
            first, second, alone = carried
            keys = [jax.random.fold_in(key, number) for key in (pair_key, alone_key)]
            first, second, met = coupled_step(keys[0], first, second, log_density, SETTINGS)
            alone, _ = hamiltonian_step(drawn(keys[1], 2, walks=True), alone, log_density, SETTINGS)
            return (first, second, alone), (first.position, second.position, met, alone.position)

        return jax.lax.scan(step, (first, second, second), jnp.arange(STEPS))[1]

    return run(jax.random.split(jax.random.key(int(np.random.default_rng().integers(2**62))), PAIRS))


@pytest.mark.statistical
def test_each_chain_of_a_pair_moves_like_a_chain_alone(walked):
    first, second, _, alone = map(np.asarray, walked)
    for chain in (first, second):
        for axis in (0, 1):
            paired, single = chain[:, -1, axis], alone[:, -1, axis]
            assert ks_2samp(paired, single).pvalue >= ALPHA
            assert ks_2samp(2.0 * paired, single).pvalue < ALPHA  # what the test can see: a spread off by two


def test_met_chains_are_equal_to_the_last_bit_and_stay_so(walked):
    first, second, met, _ = map(np.asarray, walked)
    equal = (first == second).all(axis=-1)
    np.testing.assert_array_equal(equal, met)
    assert (equal[:, 1:] >= equal[:, :-1]).all()
    assert 0.2 < equal[:, -1].mean() < 1.0


def test_the_bound_is_above_the_true_distance_of_an_autoregressive_chain():
    """One short leapfrog on N(0, 1) from 3 + N(0, 1) is near θ ← ρθ + noise, whose distance to N(0, 1) is known.

    The same coupling from that start: the target is moved instead, N(−3, 1) in coordinates where the start is N(0, 1).
    """
    settings = HMCSettings(0.3, 1, 0.05)
    run = jax.jit(
        jax.vmap(lambda key: meeting_time(key, lambda z: -0.5 * (z + 3.0) @ (z + 3.0), 1, settings, 10, 5000))
    )
    times = run(jax.random.split(jax.random.key(7), 400))
    meeting_times = MeetingTimes(coupling.counts(times), 10, 0.95, "a test")
    bounds, truths = [], []
    for steps in (1, 5, 10, 20, 40, 80):
        # the mean contracts by at least cos of the longest trajectory a step, the walk aside, which moves no mean
        left = 3.0 * np.cos(0.3 * 1.2) ** steps
        truths.append(2.0 * norm.cdf(left / 2.0) - 1.0)
        bounds.append(meeting_times.estimate(steps))
    assert all(bound >= truth for bound, truth in zip(bounds, truths, strict=True))
    assert truths[0] > 0.8
    assert bounds[0] > 1.0
    assert bounds == sorted(bounds, reverse=True)
    assert meeting_times.estimate(len(meeting_times.counts)) == 0.0


def test_the_limit_is_that_of_clopper_and_pearson_for_the_pairs_that_may_be_late():
    meeting_times = MeetingTimes((90, 5, 3, 0, 0, 0, 2), 2, 0.95, "x", late=2)
    assert meeting_times.replications == 100
    assert meeting_times.estimate(1) == pytest.approx((5 * 1 + 3 * 1 + 2 * 3) / 100)
    assert meeting_times.estimate(7) == 0.0
    assert binom.cdf(2, 100, meeting_times.limit) <= 0.05
    assert binom.cdf(2, 100, 0.99 * meeting_times.limit) > 0.05
    assert replace(meeting_times, late=0).limit == pytest.approx(1 - 0.05 ** (1 / 100), rel=0.01)
    assert counting.late_within(meeting_times.limit, 100, 0.95) == 2
    assert counting.late_within(0.01, 100, 0.95) is None


def test_steps_leave_no_more_pairs_late_than_was_fixed_and_none_two_lags_behind():
    meeting_times = MeetingTimes((90, 5, 3, 0, 0, 0, 2), 2, 0.95, "x", late=2)
    assert meeting_times.steps == 5  # after 3 steps two pairs are late, but two lags behind
    assert replace(meeting_times, lag=4).steps == 3
    assert replace(meeting_times, late=4, lag=6).steps == 3
    assert replace(meeting_times, late=5, lag=6).steps == 2
    assert replace(meeting_times, late=1, lag=6).steps == 7
    assert replace(meeting_times, late=99, lag=7).steps == 1


@pytest.mark.statistical
def test_the_limit_holds_although_the_same_pairs_chose_the_steps():
    """Meeting times whose chance of being late falls from 2 % to 0.2 % a little at each step: every step is a temptation."""
    chances = np.append(1.0, 0.02 * 0.9 ** np.arange(24))  # P(τ − L > t), t = 0, 1, …
    probabilities = -np.diff(np.append(chances, 0.0))
    generator, pairs = np.random.default_rng(), 500
    late = counting.late_within(0.02, pairs, 0.95)
    seen, wrong, tempted = 4000, 0, 0
    for _ in range(seen):
        times = generator.choice(np.arange(1, 26), pairs, p=probabilities)
        meeting_times = MeetingTimes(coupling.counts(times), 20, 0.95, "x", late)
        wrong += chances[min(meeting_times.steps, 24)] > meeting_times.limit
        # what the test can see: steps and figure both taken where the figure looks best
        limits = [counting.late_limit(int((times > steps).sum()), pairs, 0.95) for steps in range(1, 25)]
        tempted += any(chances[steps] > limit for steps, limit in zip(range(1, 25), limits, strict=True))
    assert wrong <= binom.ppf(1 - ALPHA, seen, 0.05)
    assert tempted > binom.ppf(1 - ALPHA, seen, 0.05)


def test_meeting_times_are_written_and_read_back():
    meeting_times = MeetingTimes((90, 5, 3, 0, 0, 0, 2), 2, 0.95, "x", late=1)
    assert meeting_times.to_dict()["counts"] == "1:90 2:5 3:3 7:2"
    assert MeetingTimes.from_dict(meeting_times.to_dict()) == meeting_times
    for counts in ("", "1:90 1:5", "2:5 1:90", "0:4", "1:0", "1:-3", "x", None, "1:90x"):
        with pytest.raises(WrongCall):
            MeetingTimes.from_dict({**meeting_times.to_dict(), "counts": counts})
    wrong = (
        ("lag", 0),
        ("lag", 1.5),
        ("confidence", 0.2),
        ("confidence", 1.0),
        ("of", 3),
        ("late", 100),
        ("late", -1),
        ("late", True),
    )
    for field, value in wrong:
        with pytest.raises(WrongCall):
            MeetingTimes.from_dict({**meeting_times.to_dict(), field: value})


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────

TV = float(np.nextafter(0.1, 0.0))
"""With it, and with sixty records, one compiled program serves this file and tests/release/test_release_hamiltonian.py."""


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(1), od.PureDP(2.0), n=60)


@pytest.fixture(scope="module")
def sampler(plan):
    return HMC.coupled(plan, tv=TV)


def test_couplings_choose_the_fewest_steps(plan, sampler):
    meeting_times = sampler.meeting_times
    assert meeting_times.replications == 51
    assert meeting_times.estimate(sampler.steps) <= meeting_times.late / 51 < meeting_times.estimate(sampler.steps - 1)
    exactness = sampler.exactness(plan)
    assert exactness.gamma == meeting_times.limit <= TV
    assert "estimated on simulated data" in exactness.sentence
    assert od.samplers.Sampler.from_dict(sampler.to_dict()) == sampler


def test_a_chain_with_fewer_steps_than_asked_for_is_refused_and_one_with_more_is_not(plan, sampler):
    more = HMC(**{**vars(sampler), "steps": sampler.steps + 5}).exactness(plan)
    assert more.gamma == sampler.exactness(plan).gamma
    with pytest.raises(ExactnessRefused, match="too few"):
        HMC(**{**vars(sampler), "steps": sampler.steps - 1}).exactness(plan)


@pytest.mark.finding("F3")
def test_a_confidence_limit_is_named_for_what_it_is_a_limit_of(plan, sampler):
    """The expectation of how many lags a pair is late has no upper limit from any sample; the first term of its sum has."""
    sentence = sampler.exactness(plan).sentence
    _, _, limit_of = sentence.partition("confidence limit of ")
    assert limit_of.startswith("the mean distance between its law after")
    assert f"and {sampler.meeting_times.lag} steps later, which is taken for the posterior" in limit_of


def test_without_a_figure_the_plans_reserve_is_what_couplings_must_show(plan, monkeypatch):
    with pytest.raises(ExactnessRefused, match=r"keeps back.*gamma=0.01.*Candidates"):
        HMC.coupled(plan)
    monkeypatch.setattr(coupling, "_simulated_meeting_times", lambda *_, pairs, **__: np.arange(pairs) % 9 + 1)
    budget = od.ApproxDP(1.0, 0.5)
    reserved = od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(1), budget, n=100, draws=4, gamma=0.08)
    found = HMC.coupled(reserved)
    assert 0.01 < found.exactness(reserved).gamma < 0.02
    assert found.meeting_times.replications == 251


def test_couplings_are_reproducible_and_computed_once(plan, sampler, monkeypatch):
    assert HMC.coupled(plan, tv=TV) is not sampler
    assert HMC.coupled(plan, tv=TV) == sampler
    found = dict(coupling._FOUND)
    monkeypatch.setattr(coupling, "_FOUND", {})
    assert HMC.coupled(plan, tv=TV) == sampler
    assert next(iter(coupling._FOUND.values())) in found.values()


def test_couplings_for_another_plan_or_chain_say_nothing(plan, sampler):
    other = od.calibrate(od.BetaDivergence(), od.models.BinaryRegression(1), od.PureDP(2.0), n=101)
    with pytest.raises(ExactnessRefused, match="another plan"):
        sampler.exactness(other)
    with pytest.raises(ExactnessRefused, match="another plan"):
        HMC(**{**vars(sampler), "leapfrog": 7}).exactness(plan)


def test_chains_that_do_not_meet_are_a_refusal_with_a_way_out(plan):
    with pytest.raises(ExactnessRefused, match=r"did not meet within 2 steps.*Candidates"):
        HMC.coupled(plan, tv=TV, step_size=0.01, leapfrog=1, most_steps=2)


def test_too_few_pairs_are_a_refusal(plan):
    with pytest.raises(ExactnessRefused, match="too few"):
        HMC.coupled(plan, tv=0.02, replications=100)


@pytest.mark.parametrize(
    "options", [{"tv": 0.0}, {"tv": True}, {"lag": 0}, {"replications": 1.5}, {"walk": 0.0}], ids=str
)
def test_wrong_options_are_refused(plan, options):
    with pytest.raises(WrongCall):
        HMC.coupled(plan, **{"tv": TV, **options})


def test_a_curators_coupling_tells_and_does_not_leave(plan, sampler):
    import pickle

    generator = np.random.default_rng(1)
    target = plan.target(simulated_records(plan, generator))
    found = curator_coupling(target, sampler, pairs=64, key=seeded_key(4))
    assert found.total_variation(1) > found.total_variation(2) > found.total_variation(10**6) == 0.0
    assert repr(found) == "CuratorCoupling(<private>)"
    with pytest.raises(WrongCall, match="curator"):
        pickle.dumps(found)
    with pytest.raises(WrongCall, match="random walk"):
        curator_coupling(target, HMC(5))
    with pytest.raises(WrongCall, match="random walk"):
        curator_coupling(target, NUTS())


# ── simulated data ───────────────────────────────────────────────────────────────────────────────────────────

MODELS = {
    "free": od.models.BinaryRegression(2),
    "box": od.models.BinaryRegression(2, bounds=(0.0, 4.0)),
    "sphere": od.models.Softmax(2, classes=[0, 1, 2], data_norm=1.5, prior=od.Gaussian(scale=3.0)),
    "normal": od.models.GaussianRegression(2, variance_floor=0.01),
    "student": od.models.StudentTRegression(2, df=3.0, variance=0.25),
    "poisson": od.models.PoissonRegression(2),
    "counts": od.models.NegativeBinomialRegression(2, dispersion=1.5),
    "durations": od.models.GammaRegression(2, rate_cap=4.0),
    "network": od.models.Network(2, hidden=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_simulated_records_follow_the_design(name):
    model, n = MODELS[name], 4000
    plan = SimpleNamespace(model=model, n=n, mechanism=SimpleNamespace(effect=1.0, noise=1.0))
    encoded = simulated_records(plan, np.random.default_rng(2))
    assert encoded.X.shape == (n, model.features.width)
    assert encoded.y.shape == (n,)
    np.testing.assert_allclose(model.features.enforce(encoded.X[:, :2]), encoded.X, rtol=1e-12)
    assert np.isfinite(encoded.y).all()
    lower, upper = model.response.interval
    assert (encoded.y >= lower).all()
    assert (encoded.y <= upper).all()


def test_the_effect_is_the_spread_of_the_linear_predictor():
    """Residuals are small, so responses are the predictor."""
    model = od.models.GaussianRegression(3, variance=1e-6, bounds=(-1.0, 1.0))
    mechanism = SimpleNamespace(effect=2.0, noise=None)
    draw = partial(simulated_records, SimpleNamespace(model=model, n=50, mechanism=mechanism))
    generator = np.random.default_rng(8)
    square = np.mean([np.mean(draw(generator).y ** 2) for _ in range(2000)])
    assert square == pytest.approx(4.0, rel=0.1)


def test_what_cannot_be_simulated_is_refused():
    model = od.models.HuberRegression(2, threshold=1.0, response_bound=2.0, data_norm=1.0, prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.Gibbs("gdp"), model, od.ApproxDP(1.0, 1e-5), n=50)
    with pytest.raises(ExactnessRefused, match="No data can be simulated for HuberRegression"):
        HMC.coupled(plan, tv=0.01)
