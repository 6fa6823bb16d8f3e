"""Noise on a mean, then on squares about it: promises, refusals, who draws the variates, and what is published."""

import numpy as np
import pytest

import onedraw as od
from onedraw import samplers
from onedraw.methods import AddedNoise, CenteredNoise, plan_from_dict
from onedraw.methods.added_noise.centered import MEAN_REACH, mean_share
from onedraw.methods.added_noise.run import CenteredSums
from onedraw.models import CategoryTable, Grouped, NumberTable
from onedraw.models.tables.centered_squares import REACH
from onedraw.models.tables.table import STEPS
from onedraw.samplers import noise

TABLE = NumberTable(0.0, 10.0, show="variance")
GROUPS = {"by": ("sex",), "groups": (("F", "M"),)}
PUBLIC = NumberTable(0.0, 10.0, show="variance", **GROUPS, sizes=(400, 600))
VALUES = np.random.default_rng(2).gamma(2.0, 1.0, 1000).clip(0, 10)
BUDGETS = [od.PureDP(0.3), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.02), od.RenyiDP.at(8.0, 0.5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("table", [TABLE, PUBLIC], ids=["column", "public groups"])
def test_plan_keeps_its_budget_and_is_read_back(budget, table):
    plan = od.calibrate(CenteredNoise(), table, budget, n=1000, records_per_person=2)
    assert plan.guarantee.promise.implies(budget)
    assert plan_from_dict(plan.to_dict()) == plan
    assert samplers.default_sampler(plan)[0].exactness(plan).tag == "exact"


def test_stages_add_up_to_the_budget_and_no_more():
    numbers = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000).parameters
    assert numbers["mean_epsilon"] + numbers["squares_epsilon"] == pytest.approx(1.0, rel=1e-12)
    assert numbers["mean_epsilon"] == pytest.approx(mean_share(1000.0), rel=1e-9)
    assert numbers["mean_scale"] == pytest.approx(MEAN_REACH / numbers["mean_epsilon"])
    assert numbers["squares_scale"] == pytest.approx(REACH / numbers["squares_epsilon"])


@pytest.mark.parametrize("records", [1, 2, 4])
@pytest.mark.parametrize("table", [TABLE, PUBLIC], ids=["column", "public groups"])
def test_replaced_records_move_each_stage_by_what_its_epsilon_pays_for(table, records):
    """From end to end of the range, and between random places: the losses of both stages reach the promise and do not exceed it."""
    plan = od.calibrate(CenteredNoise(), table, od.PureDP(1.0), n=1000, records_per_person=records)
    codes, generator, losses = np.repeat([0, 1], [400, 600]), np.random.default_rng(records), []
    who = generator.choice(1000, records, replace=False)
    for here, there in [(0.0, 10.0), (np.nan, -3.0), *generator.uniform(0.0, 10.0, (4, 2))]:
        one, other = (VALUES.copy() * 0.3 for _ in range(2))
        one[who], other[who] = here, there
        data = [Grouped(each, (codes,)) if table.by else each for each in (one, other)]
        targets = [plan.target(table.summarise(each)) for each in data]
        for center in (0, 1, STEPS // 3, STEPS):
            squares = [target.squares([center] * table.cells) for target in targets]
            moved = {
                "mean": sum(abs(a - b) for a, b in zip(*(target.places for target in targets), strict=True)),
                "squares": int(np.abs(squares[0] - squares[1]).sum()),
            }
            parts = {stage: moved[stage] / plan.parameters[f"{stage}_scale"] for stage in moved}
            assert all(loss <= plan.parameters[f"{stage}_epsilon"] for stage, loss in parts.items())
            losses.append(sum(parts.values()))
    assert max(losses) == pytest.approx(plan.guarantee.promise.stated_epsilon, rel=1e-8)


@pytest.mark.parametrize("name", ["mean_scale", "squares_scale"])
def test_smaller_scale_than_the_promise_needs_is_refused(name):
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    with pytest.raises(od.errors.PromiseRefused):
        plan.mechanism.plan(plan.request, {**plan.parameters, name: 0.9 * plan.parameters[name]})
    stored = plan.to_dict()
    stored["parameters"][name.replace("scale", "epsilon")] *= 0.9
    with pytest.raises(od.errors.CertificateRejected):
        plan_from_dict(stored)


@pytest.mark.parametrize("parameters", [{}, {"mean_scale": 1e10}, {"mean_scale": -1.0, "squares_scale": 1e10}])
def test_numbers_that_are_missing_or_negative_are_refused(parameters):
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    with pytest.raises(od.errors.PromiseRefused):
        plan.mechanism.plan(plan.request, parameters)


@pytest.mark.parametrize(
    "model",
    [
        NumberTable(0.0, 10.0),
        NumberTable(0.0, 10.0, show="variance", **GROUPS),
        CategoryTable(("a", "b")),
        od.models.BetaBernoulli(),
    ],
    ids=["mean", "private groups", "levels", "posterior"],
)
def test_other_models_are_refused(model):
    with pytest.raises(od.errors.UnsupportedBudget, match="for the variance of numbers"):
        od.calibrate(CenteredNoise(), model, od.PureDP(1.0), n=1000)


def test_several_draws_and_sizes_that_do_not_add_up_are_refused():
    with pytest.raises(od.errors.UnsupportedBudget):
        od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000, draws=2)
    with pytest.raises(od.errors.InvalidModel):
        od.calibrate(CenteredNoise(), PUBLIC, od.PureDP(1.0), n=999)


def test_sums_beyond_64_bits_are_refused_before_a_charge():
    with pytest.raises(od.errors.PromiseRefused, match="64-bit"):
        od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=10**9)
    with pytest.raises(od.errors.PromiseRefused, match="64-bit"):
        od.calibrate(CenteredNoise(), TABLE, od.PureDP(1e-9), n=1000)


@pytest.mark.parametrize("stage", ["mean", "squares"])
@pytest.mark.parametrize("records", [1, 3])
def test_opendps_refusal_of_either_stage_stops_the_release(stage, records, monkeypatch):
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000, records_per_person=records)
    reach, true = float(records * plan.mechanism.reaches(plan)[stage]), noise.NoiseMeasurement.confirms
    monkeypatch.setattr(
        noise.NoiseMeasurement,
        "confirms",
        lambda self, sensitivity, **k: sensitivity != reach and true(self, sensitivity, **k),
    )
    with pytest.raises(od.errors.ExactnessRefused):
        od.release(plan, VALUES)


@pytest.mark.parametrize("table", [TABLE, PUBLIC], ids=["column", "public groups"])
def test_every_variate_is_opendps_and_the_release_is_verified(table, monkeypatch, tmp_path):
    drawn, release = [], noise.NoiseMeasurement.release
    monkeypatch.setattr(
        noise.NoiseMeasurement, "release", lambda self, sums: drawn.append(len(sums)) or release(self, sums)
    )
    plan = od.calibrate(CenteredNoise(), table, od.PureDP(3.0), n=1000)
    data = Grouped(VALUES, (np.repeat([0, 1], [400, 600]),)) if table.by else VALUES
    found = od.release(plan, data)
    found.save(tmp_path / "release.json")
    assert od.verify(tmp_path / "release.json").answer == "consistent"
    assert drawn == [table.cells, 3 * table.cells]
    assert found.draw == pytest.approx(VALUES.var(), rel=0.5)


def test_squares_are_centered_on_what_the_first_stage_published(monkeypatch):
    """A first stage that is far off moves the center, not the clear mean."""
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    target, asked = plan.target(TABLE.summarise(VALUES)), []
    from onedraw.methods.added_noise.centered import CenteredTarget

    told = CenteredTarget(plan, target.places, lambda centers: asked.append(centers) or target.squares(centers))
    stages = CenteredSums().run(told, samplers.seeded_generator(4)).stages
    assert asked == [plan.mechanism.centers(plan, stages["mean"])]
    assert asked[0] != plan.mechanism.centers(plan, target.places)


@pytest.mark.parametrize("stage", ["mean", "squares"])
def test_certificate_with_noise_between_the_whole_numbers_is_rejected(stage):
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    document = od.release(plan, VALUES, random_state=1).certificate.model_dump(mode="json")
    document["draw"]["stages"][stage][0] += 0.25
    with pytest.raises(od.errors.CertificateRejected):
        od.verify(od.Certificate.model_validate(document))


def test_estimates_are_centered_on_the_variance_and_as_noisy_as_expected():
    """400 releases of the same records; both within five standard errors."""
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    target, generator = plan.target(TABLE.summarise(VALUES)), samplers.seeded_generator(9)
    found = CenteredSums().run(target, generator, size=400).draws[:, 0]
    center = plan.mechanism.squares(plan, CenteredSums().run(target, generator).stages)[0].farthest
    expected = plan.mechanism.expected_noise(plan) * center / 0.75**2
    assert abs(found.mean() - VALUES.var(ddof=1)) < 5 * found.std() / 20
    assert found.std() == pytest.approx(expected, rel=0.25)


def test_whole_release_keeps_to_two_passes_and_can_be_padded():
    plan = od.calibrate(CenteredNoise(), TABLE, od.PureDP(1.0), n=1000)
    sampler = CenteredSums()
    assert sampler.passes(plan) == 2
    assert sampler.padding(plan).passes == 2


def test_added_noise_on_a_variance_is_what_it_was():
    """Earlier certificates are derived again from the same weights and reach."""
    plan = od.calibrate(AddedNoise("laplace"), TABLE, od.PureDP(1.0), n=1000)
    assert plan.model.weights("laplace") == (5, 6)
    assert plan.parameters["scale"] == -(-289 * 2**30 // 24) + 7
