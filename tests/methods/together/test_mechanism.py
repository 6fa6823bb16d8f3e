"""Several mechanisms for one budget: promises add up, nothing is forgotten, plans and releases are derived again."""

from __future__ import annotations

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases.investigation import examine
from onedraw.errors import CertificateRejected, InvalidModel, PromiseRefused, UnsupportedBudget
from onedraw.methods import AddedNoise, ExponentialQuantiles, GroupQuantiles, Together, plan_from_dict
from onedraw.methods.catalog import case_for
from onedraw.methods.together import audit as audited
from onedraw.methods.together.mechanism import stages_of
from onedraw.models import CategoryTable, ColumnQuantiles, NumberTable, Several
from onedraw.privacy import PureDP

GROUPS = {"by": ("sex",), "groups": (("F", "M"),)}
MODEL = Several(
    ("age", "age", "ward", "age"),
    (
        NumberTable(0.0, 100.0, **GROUPS),
        ColumnQuantiles((0.25, 0.5, 0.75), 0.0, 100.0, step=1.0, **GROUPS),
        CategoryTable(("a", "b", "c"), show="shares", **GROUPS),
        ColumnQuantiles((0.5,), 0.0, 100.0, step=1.0),
    ),
)
MECHANISM = Together((AddedNoise(), GroupQuantiles(), AddedNoise(), ExponentialQuantiles()), (1.0, 2.0, 1.0, 1.0))
BUDGETS = [od.PureDP(1.0), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.05), od.GaussianDP(0.5)]


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_promises_of_the_parts_add_up_to_the_budget(budget, k):
    plan = od.methods.calibrate(MECHANISM, MODEL, budget, n=5000, records_per_person=k)
    assert plan.guarantee.promise.implies(budget)
    parts = plan.mechanism.part_plans(plan)
    assert all(part.request.records_per_person == k for part in parts)
    if plan.parameters["pure"]:
        total, promised = (
            sum(part.guarantee.promise.pure_epsilon for part in parts),
            plan.guarantee.promise.pure_epsilon,
        )
    else:
        total, promised = sum(part.guarantee.promise.zcdp_rho for part in parts), plan.guarantee.promise.zcdp_rho
    assert promised == pytest.approx(total, rel=1e-12)
    assert promised >= total
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_no_stated_number_may_be_changed(budget):
    plan = od.calibrate(MECHANISM, MODEL, budget, n=5000)
    for name, factor in (("0 scale", 0.5), ("1 width_1", 2.0), ("2 budget", 3.0), ("3 budget", 1e-3), ("pure", 7.0)):
        stored = plan.to_dict()
        if name == "2 budget":  # a part may be stated less private than the whole budget allows, and its noise with it
            stored["parameters"]["2 scale"] /= 3.0
        stored["parameters"][name] *= factor
        if name == "pure":
            stored["parameters"][name] = 7.0
        with pytest.raises((CertificateRejected, PromiseRefused)):
            plan_from_dict(stored)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_planted_faults_are_caught(budget):
    (case,) = audited.together_cases(budget)
    assert examine(case).passed
    assert case.profile(case.pairs[0], 2.0).breaks(case.promise) is not None
    # a promise that forgets one of three parts
    kept = [part.guarantee.promise for part in case.tables[1:]]
    forgotten = (
        PureDP(sum(one.pure_epsilon for one in kept))
        if case.plan.parameters["pure"]
        else od.ZCDP(sum(one.zcdp_rho for one in kept))
    )
    assert case.profile(case.pairs[0]).breaks(forgotten) is not None
    assert case_for(case.plan).plan.mechanism == case.plan.mechanism


def test_many_parts_take_gaussian_noise_and_few_take_laplace():
    def pure(count):
        model = Several(("a",) * count, (NumberTable(0.0, 1.0),) * count)
        return od.calibrate(Together((AddedNoise(),) * count), model, od.ApproxDP(1.0, 1e-6), n=1000).parameters["pure"]

    assert (pure(2), pure(30)) == (1.0, 0.0)


@pytest.fixture(scope="module")
def frame():
    generator = np.random.default_rng(3)
    n = 3000
    sex = generator.choice(["F", "M"], n)
    return {
        "sex": sex,
        "age": generator.normal(40, 10, n).clip(0, 100) + 5 * (sex == "M"),
        "ward": generator.choice(["a", "b", "c"], n),
    }


SCHEMA = od.Schema.from_dict({
    "dataset": "wards",
    "columns": {
        "sex": {"kind": "category", "levels": ["F", "M"], "missing": "F"},
        "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 50},
        "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    },
})  # fmt: skip


@pytest.mark.parametrize("budget", [od.PureDP(2.0), od.ZCDP(0.1)], ids=str)
def test_a_release_is_what_its_parts_would_release(frame, budget, tmp_path):
    plan = od.calibrate(MECHANISM, MODEL, budget, n=3000)
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("wards", od.ApproxDP(10.0, 1e-5))
    release = od.release(plan, od.read(frame, SCHEMA), ledger=ledger, random_state=1)
    assert od.verify(release, ledger=ledger).answer == "authentic"
    assert len(release.certificate.draw.names) == len(set(release.certificate.draw.names)) == len(release.draws[0])
    named = release.named()
    assert named["age, mean: sex=M: mean"] - named["age, mean: sex=F: mean"] == pytest.approx(5.0, abs=2.0)
    low, high = release.conf_int().T
    assert np.isfinite(low).all()
    assert (low <= release.draws[0] + 1e-6).all()
    assert (release.draws[0] <= high + 1e-6).all()
    spent = ledger.account("wards")
    assert spent.reservations == 1
    stages = release.certificate.draw.stages
    own = plan.mechanism.part_plans(plan)[0]
    np.testing.assert_allclose(own.mechanism.estimate(own, stages_of(stages, 0)), release.draws[0][:4], rtol=1e-6)


def test_edited_numbers_are_noticed(frame, tmp_path):
    plan = od.calibrate(MECHANISM, MODEL, od.ZCDP(0.1), n=3000)
    release = od.release(plan, od.read(frame, SCHEMA), random_state=1)
    release.save(tmp_path / "r.json")
    text = (tmp_path / "r.json").read_text()
    stage = release.certificate.draw.stages["2 noisy sums"][0]
    (tmp_path / "edited.json").write_text(text.replace(repr(stage), repr(stage + 500.0), 1))
    with pytest.raises(CertificateRejected):
        od.load(tmp_path / "edited.json")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Together((AddedNoise(),), (0.0,)), "positive weight"),
        (lambda: Several(("a",), ()), "models, and the column of each"),
        (lambda: Several(("a",), (od.models.BetaBernoulli(prior=(1, 1)),)), "tables and quantiles"),
        (lambda: od.calibrate(Together((AddedNoise(),)), NumberTable(0.0, 1.0), od.PureDP(1.0), n=9), "one mechanism for each part"),
        (lambda: od.calibrate(MECHANISM, MODEL, od.PureDP(1.0), n=5000, draws=2), "draws=1"),
        (lambda: MODEL.check([1.0]), "Records"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_words(call, words):
    with pytest.raises((InvalidModel, UnsupportedBudget, PromiseRefused), match=words):
        call()
