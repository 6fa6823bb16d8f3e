"""Noisy sums of conjugate families: how far a record moves them, what is promised, and what follows from them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import onedraw as od
from onedraw import models, samplers
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.audit.cases.investigation import attack_program
from onedraw.baselines import SufficientStatistics
from onedraw.baselines.audits.family_sums import family_sums_cases
from onedraw.baselines.sufficient_statistics import feasible, naive_posterior, quantiles, sums_of
from onedraw.methods import plan_from_dict
from onedraw.methods.catalog import case_for, cases
from onedraw.models.conjugate.distributions import Beta, Dirichlet, Gamma, Normal
from onedraw.samplers import noise
from tests.baselines.cases import FAMILIES, ODD, ODD_VECTORS, VECTORS, N

BUDGETS = [od.PureDP(0.3), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.02), od.GaussianDP(0.5), od.RenyiDP.at(8.0, 0.5)]
EVERY = {**FAMILIES, "vectors": VECTORS}


def plan_of(name, budget=od.PureDP(1.0), **besides):  # noqa: B008  # a frozen value
    return od.calibrate(SufficientStatistics(**besides), EVERY[name][0], budget, n=N)


@pytest.mark.parametrize("name", EVERY)
def test_no_cell_moves_the_sums_further_than_is_hidden_and_none_makes_it_fail(name):
    model, records = EVERY[name]
    sums, odd = sums_of(model), ODD_VECTORS if name == "vectors" else ODD
    ends = (
        [[2.0 / math.sqrt(3.0)] * 3, [-2.0 / math.sqrt(3.0)] * 3]
        if name == "vectors"
        else [-1, 0, 1, 2, 3, 8, 4.0, 1e9]
    )
    moved = [np.array(sums.whole(model.summarise([*records[:-1], last])), dtype=object) for last in [*odd, *ends]]
    distances = [one - other for one in moved for other in moved]
    in_l1, squared = (
        max(int(size(one)) for one in distances) for size in (lambda h: sum(abs(h)), lambda h: sum(h * h))
    )
    assert 0.999 * sums.reach("laplace") <= in_l1 <= sums.reach("laplace")
    assert 0.999 * sums.reach("gaussian") <= squared <= sums.reach("gaussian")
    assert all(abs(int(part)) <= N * sums.largest for one in moved for part in one)
    for last in odd:
        od.release(plan_of(name), [*records[:-1], last])


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_a_plan_keeps_its_budget_and_is_read_back_as_it_was(name, budget):
    for law in (None, "laplace", "gaussian"):
        try:
            plan = od.calibrate(SufficientStatistics(law), EVERY[name][0], budget, n=N, records_per_person=2)
        except od.errors.UnsupportedBudget:
            assert (law, type(budget)) == ("gaussian", od.PureDP)
            continue
        assert plan.guarantee.promise.implies(budget)
        assert plan_from_dict(plan.to_dict()) == plan
        assert samplers.default_sampler(plan)[0].exactness(plan).tag == "exact"


def test_the_law_with_less_noise_is_taken():
    small, large = plan_of("proportion", od.ApproxDP(1.0, 1e-6)), plan_of("proportion", od.ZCDP(0.5))
    assert (small.mechanism.law, large.mechanism.law) == ("laplace", "gaussian")
    assert small.parameters["scale"] == 2.0**32
    assert plan_of("categories").parameters["scale"] == 2.0


def test_half_the_noise_is_refused():
    plan = plan_of("counts")
    with pytest.raises(od.errors.PromiseRefused):
        plan.mechanism.plan(plan.request, {"scale": plan.parameters["scale"] / 2.0, "refinement": 1.0})


def test_what_has_no_family_and_what_asks_for_several_noises_is_refused():
    table = models.CategoryTable(("a", "b"))
    with pytest.raises(od.errors.UnsupportedBudget, match="conjugate family"):
        od.calibrate(SufficientStatistics(), table, od.PureDP(1.0), n=N)
    with pytest.raises(od.errors.UnsupportedBudget, match="cost nothing afterwards"):
        od.calibrate(SufficientStatistics(), EVERY["counts"][0], od.PureDP(1.0), n=N, draws=3)
    with pytest.raises(od.errors.InvalidModel):
        SufficientStatistics("cauchy")


@pytest.mark.oracle
@pytest.mark.parametrize("name", EVERY)
def test_without_noise_it_is_the_familys_own_posterior(name):
    model, records = EVERY[name]
    plan, summary = plan_of(name), model.summarise(records)
    found = naive_posterior(plan, sums_of(model).whole(summary))
    assert found.mean == pytest.approx(model.posterior(summary).mean, rel=1e-9)


@pytest.mark.parametrize("name", EVERY)
@given(noisy=st.lists(st.integers(-(2**60), 2**60), min_size=3, max_size=3))
def test_every_noisy_sum_has_a_posterior(name, noisy):
    """What noise can do to a sum must not make the release fail, nor leave the range of n records."""
    plan = plan_of(name)
    sums = sums_of(plan.model)
    found = naive_posterior(plan, noisy[: sums.entries])
    assert np.isfinite(found.mean).all()
    assert np.isfinite(found.interval(0.9)).all()
    total = feasible(plan.model, N, np.array(noisy[: sums.entries], dtype=float) * float(sums.unit))
    assert np.abs(total).max() <= N * float(sums.unit) * sums.largest * (1.0 + 1e-12)
    if name == "categories":
        assert total.sum() == pytest.approx(N)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "law", [Beta(2.0, 5.0), Dirichlet((1.0, 2.0, 3.0)), Gamma(3.0, 2.0), Normal((1.0, -2.0), 4.0)], ids=str
)
def test_quantiles_are_those_of_the_draws(law):
    draws = law.draws(np.random.default_rng(3), 200_000).reshape(200_000, -1)
    for level in (0.05, 0.5, 0.95):
        below = (draws <= quantiles(law, level)).mean(axis=0)
        assert np.abs(below - level).max() < 5.0 * math.sqrt(level * (1 - level) / 200_000)


def test_a_release_is_read_back_from_its_file_and_draws_cost_nothing(tmp_path):
    ledger = od.Ledger.open(tmp_path / "spent.db", create=True)
    ledger.init("d", od.PureDP(1.0))
    plan = plan_of("proportion")
    od.release(plan, EVERY["proportion"][1], ledger=ledger, dataset="d", out=tmp_path / "one.json")
    assert od.verify(tmp_path / "one.json", ledger=ledger).answer == "authentic"
    read = od.load(tmp_path / "one.json")
    draws = read.posterior(20_000, random_state=1)
    assert draws.shape == (20_000, 1)
    assert draws.mean() == pytest.approx(read.draw, abs=0.002)
    assert ledger.spent("d").epsilon(0.0) == pytest.approx(1.0)


def test_an_average_is_given_in_the_units_of_its_column():
    plan = plan_of("average", od.PureDP(50.0))
    release = od.release(plan, EVERY["average"][1], random_state=1)
    assert release.posterior(4000, random_state=1).mean() == pytest.approx(1.0, abs=0.1)
    assert release.named()["proportion"] == pytest.approx(1.0, abs=0.1)


def test_an_interval_that_leaves_out_the_noise_is_not_given_under_the_name_of_one(tmp_path):
    release = od.release(plan_of("mean"), EVERY["mean"][1])
    with pytest.raises(od.errors.PromiseRefused, match="NoiseAware"):
        release.conf_int()
    assert not release.summary().given
    assert "NoiseAware" in release.report(tmp_path / "page.html").read_text()
    with pytest.raises(od.errors.WrongCall):
        release.plan.mechanism.posterior(release.plan, release.certificate.draw.stages).interval(90)


@pytest.mark.parametrize(
    "change",
    [
        lambda draw: draw["stages"]["noisy sums"].__setitem__(0, 400.0),
        lambda draw: draw["stages"]["noisy sums"].__setitem__(0, draw["stages"]["noisy sums"][0] + 0.25),
        lambda draw: draw["values"][0].__setitem__(0, 9.0),
    ],
)
def test_an_edited_sum_or_estimate_is_rejected(change):
    release = od.release(plan_of("counts"), EVERY["counts"][1], random_state=2)
    document = release.certificate.model_dump(mode="json")
    change(document["draw"])
    with pytest.raises(od.errors.CertificateRejected):
        od.verify(type(release.certificate).model_validate(document))


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ZCDP(0.5), od.GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("name", EVERY)
def test_every_variate_is_opendps(name, budget, monkeypatch):
    drawn = []
    release = noise.NoiseMeasurement.release
    monkeypatch.setattr(
        noise.NoiseMeasurement, "release", lambda self, sums: drawn.append(len(sums)) or release(self, sums)
    )
    plan = plan_of(name, budget)
    od.release(plan, EVERY[name][1])
    assert drawn == [sums_of(plan.model).entries]


# ── attacks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ZCDP(0.5), od.GaussianDP(0.8), od.ApproxDP(1.0, 1e-5)], ids=str)
def test_every_promise_is_attained_and_a_tenth_less_noise_is_caught(budget):
    found = family_sums_cases(SufficientStatistics, budget)
    assert {type(case.plan.model) for case in found} == {type(model) for model, _ in EVERY.values()}
    for case in found:
        one = examine(case)
        assert one.passed
        assert one.gap == pytest.approx(1.0, abs=1e-4)
        assert case.profile(one.pair, 1.1).breaks(case.promise) is not None
        assert smallest_caught_factor(case, one.pair, gap=one.gap) < 1.01


def test_a_quarter_of_the_noise_shows_in_the_programs_own_sums():
    case = case_for(plan_of("proportion"))
    options = {"rounds": 4000, "delta": 0.0, "confidence": 0.999, "generator": np.random.default_rng(4)}
    honest, faulty = (
        max(one.epsilon_lower_bound for one in attack_program(case, case.pairs[0], factor=factor, **options))
        for factor in (1.0, 4.0)
    )
    assert honest <= 1.0 < faulty


def test_every_baseline_has_a_case_and_is_asked_for_by_its_word():
    found = {type(case.plan.mechanism).__name__ for case in cases("baselines", od.ApproxDP(1.0, 1e-5))}
    offered = {name for name in od.baselines.__all__ if name in od.methods.Mechanism.members()}
    assert found >= offered >= {"NoiseAware", "OutputPerturbation", "SufficientStatistics"}
    assert all(type(case_for(case.plan)) is type(case) for case in cases("baselines", od.ApproxDP(1.0, 1e-5)))
