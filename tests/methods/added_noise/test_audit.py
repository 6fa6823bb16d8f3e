"""Plain noise as the auditor sees it: promises attained, and the classic faults caught."""

import math

import numpy as np
import pytest
from experiments.program_audit.replays import replay

import onedraw as od
from onedraw import audit
from onedraw.audit.cases.investigation import attack_program, examine, smallest_caught_factor
from onedraw.methods import AddedNoise, catalog
from onedraw.methods.added_noise import audit as noise
from onedraw.models import CategoryTable, NumberTable
from onedraw.release import Certificate

BUDGETS = [od.PureDP(1.0), od.ZCDP(0.5), od.GaussianDP(0.8)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", noise.TABLES)
def test_every_promise_is_attained_and_a_sensitivity_of_one_for_two_is_caught(name, budget):
    for case in noise.noise_cases(name, budget):
        found = examine(case)
        assert found.violation is None
        assert found.gap == pytest.approx(1.0, abs=1e-4)
        assert case.profile(found.pair, 2.0).breaks(case.promise) is not None


def test_noise_too_small_by_a_hundredth_is_caught():
    case = noise.noise_cases("histogram", od.PureDP(1.0))[0]
    assert smallest_caught_factor(case, case.pairs[0]) < 1.01


def test_half_the_noise_shows_in_the_programs_own_draws():
    """ε = 1 is promised; a quarter of the noise gives 4."""
    (case,) = noise.noise_cases("proportion", od.PureDP(1.0), n=40)
    options = {"rounds": 4000, "delta": 0.0, "confidence": 0.999, "generator": np.random.default_rng(4)}
    honest, faulty = (
        max(one.epsilon_lower_bound for one in attack_program(case, case.pairs[0], factor=factor, **options))
        for factor in (1.0, 4.0)
    )
    assert honest <= 1.0 < faulty


def test_continuous_noise_without_a_lattice_gives_the_count_away():
    """Mironov (CCS 2012): 1 + z has no digits below 2^−53, z itself has. Whole noise has none either way."""

    def below_the_last_digit(values):
        inside = (values > 0.25) & (values < 0.5)
        return (inside & (np.ldexp(values, 53) % 1.0 != 0.0)).astype(float).reshape(-1, 1)

    def continuous(which, generator, size):
        return below_the_last_digit(which + generator.laplace(scale=1.0, size=size))

    def whole(which, generator, size):
        added = np.floor(generator.exponential(size=size)) - np.floor(generator.exponential(size=size))
        return below_the_last_digit(which + added)

    options = {"rounds": 4000, "delta": 0.0, "method": "histogram", "generator": np.random.default_rng(1)}
    assert audit.blackbox_lower_bound(continuous, 0, 1, **options).epsilon_lower_bound > 1.0
    assert audit.blackbox_lower_bound(whole, 0, 1, **options).epsilon_lower_bound == 0.0


def test_a_certificate_with_noise_between_the_whole_numbers_is_rejected():
    table = CategoryTable(("a", "b", "c"))
    plan = od.calibrate(AddedNoise(), table, od.PureDP(1.0), n=30)
    document = od.release(plan, [0, 1, 2] * 10, random_state=1).certificate.model_dump(mode="json")
    document["draw"]["stages"]["noisy sums"][0] += 0.25
    with pytest.raises(od.errors.CertificateRejected):
        od.verify(Certificate.model_validate(document))


def test_the_size_of_a_private_group_used_as_public_is_caught():
    """A subset's n changes with one record: it stands in the plan, the certificate and the ledger. Grouped by, it does not."""
    ages, sexes = [30.0] * 20, [0, 1] * 10
    neighbour = (ages, [*sexes[:-1], 0])

    def subset(data, ledger):
        kept = [age for age, sex in zip(*data, strict=True) if sex == 1]
        plan = od.calibrate(AddedNoise(), NumberTable(0, 100), od.PureDP(1.0), n=len(kept))
        return od.release(plan, kept, ledger=ledger, dataset="replayed", random_state=1)

    def grouped(data, ledger):
        table = NumberTable(0, 100, by=("sex",), groups=(("F", "M"),))
        plan = od.calibrate(AddedNoise(), table, od.PureDP(1.0), n=len(data[0]))
        return od.release(
            plan, od.models.Grouped(data[0], (data[1],)), ledger=ledger, dataset="replayed", random_state=1
        )

    pair = [("one record moves", (ages, sexes), neighbour)]
    assert any(one.where == "certificate.n" for one in replay(subset, pair))
    assert replay(grouped, pair) == []


def test_groups_declared_public_do_not_hide_a_record_that_changes_its_group():
    """The promise of public groups says nothing about such a pair, and the audit shows that it would be broken."""
    plan = od.calibrate(
        AddedNoise(), NumberTable(0, 1, by=("g",), groups=(("x", "y"),), sizes=(5, 5)), od.PureDP(1.0), n=10
    )
    case = catalog.case_for(plan)
    first = od.models.Grouped([1.0] * 10, ([0] * 10,))
    second = od.models.Grouped([1.0] * 10, ([0] * 9 + [1],))
    assert examine(case).violation is None
    assert case.profile(noise.Pair("changes its group", first, second)).breaks(case.promise) is not None


@pytest.mark.parametrize(
    "made",
    [
        lambda: od.DPProportion(1.0, classes=[0, 1]),
        lambda: od.DPHistogram(1.0, levels=[0, 1, 2]),
        lambda: od.DPCount(1.0, levels=[0, 1], level=1),
        lambda: od.DPMean(1.0, bounds=(0, 2)),
        lambda: od.DPVariance(0.5, bounds=(0, 2)),
        lambda: od.DPSum(1.0, delta=0, bounds=(0, 2)),
        lambda: od.DPRate(1.0, bounds=(0, 2)),
    ],
)
def test_every_default_release_of_a_column_can_be_audited(made):
    model = made().fit(np.array([0, 1] * 30))
    case = catalog.case_for(od.methods.plan_from_dict(model.certificate_.plan))
    found = examine(case)
    assert found.violation is None
    assert math.isclose(found.gap, 1.0, rel_tol=1e-3)
