"""Releases: order of events, refusals, marks."""

import copy
import math

import numpy as np
import pytest

import onedraw as od
from onedraw import errors, privacy, samplers
from onedraw.release import promise_of
from onedraw.samplers import Sample


class Told(samplers.Sampler):
    """A sampler that says what the test wants it to say, and records whether it ran."""

    randomness = "numpy"

    def __init__(self, exactness, *, fails=False):
        self.said, self.fails, self.ran = exactness, fails, False

    def exactness(self, plan):
        return self.said

    def to_dict(self):
        return {"name": "Exact"}

    def run(self, law, generator, *, size):
        self.ran = True
        if self.fails:
            raise RuntimeError("power cut")
        return Sample(np.full(size, 0.25), {"seconds": 1.0})


def test_a_release_has_a_draw_a_certificate_and_an_entry_in_the_ledger(plan, records, ledger):
    release = od.release(plan, records, ledger=ledger, dataset="patients")
    assert 0 <= release.draw <= 1
    assert release.draws.shape == (1, 1)
    assert release.certificate.sentence.startswith("Exact: this draw is (ε = 1, δ = 1e-06)-differentially private")
    kinds = [event.kind for event in ledger.events("patients")]
    assert kinds == ["dataset-opened", "reserved", "settled"]
    entry = release.certificate.ledger
    assert ledger.certificate_digest(entry.entry) == release.certificate.digest
    assert entry.head == ledger.events("patients")[1].hash


def test_the_ledger_is_charged_before_the_draw_and_a_crash_loses_no_spend(plan, records, ledger):
    with pytest.raises(RuntimeError, match="power cut"):
        od.release(plan, records, ledger=ledger, dataset="patients", sampler=Told(privacy.Exact(), fails=True))
    assert [event.kind for event in ledger.events("patients")] == ["dataset-opened", "reserved"]


def test_a_certificate_that_cannot_be_written_costs_nothing(plan, records, ledger):
    sampler = Told(privacy.Exact())
    sampler.to_dict = lambda: {"name": "Exact", "width": object()}  # no JSON holds it
    with pytest.raises(Exception, match=r"object|serial"):
        od.release(plan, records, ledger=ledger, dataset="patients", sampler=sampler)
    assert not sampler.ran
    assert len(ledger.events("patients")) == 1


def test_a_spent_budget_stops_the_release_before_the_sampler_runs(plan, records, ledger):
    ledger.init("small", od.ApproxDP(1.0, 1e-6))
    od.release(plan, records, ledger=ledger, dataset="small")
    sampler = Told(privacy.Exact())
    with pytest.raises(errors.BudgetSpent):
        od.release(plan, records, ledger=ledger, dataset="small", sampler=sampler)
    assert not sampler.ran
    assert ledger.spent("small").epsilon(1e-6) <= 1.0


def test_another_n_is_an_error_and_costs_nothing(plan, ledger):
    with pytest.raises(errors.CountMismatch, match="n = 200 records, the data have 3"):
        od.release(plan, [0, 1, 1], ledger=ledger, dataset="patients")
    assert len(ledger.events("patients")) == 1


def file_of(path, names, *lines):
    """A file without a line end after its last line."""
    path.write_text("\n".join([names, *lines]))
    columns = {name: {"kind": "binary", "missing": "no"} for name in names.split(",")}
    return od.data.read(path, od.Schema.from_dict({"columns": columns}), target="v")


@pytest.mark.finding("reliability N7e", commit="8a7c0fb")
def test_a_file_of_one_column_says_how_its_last_record_is_counted(plan, tmp_path):
    path = tmp_path / "d.csv"
    with pytest.raises(errors.CountMismatch, match=r'the data have 199.*d\.csv has one column.*Write it as ""'):
        od.release(plan, file_of(path, "v", *["1"] * 199, ""))
    assert od.release(plan, file_of(path, "v", *["1"] * 199, '""')).draws.size == 1
    assert od.release(plan, file_of(path, "v,w", *["1,1"] * 199, ",")).draws.size == 1
    with pytest.raises(errors.CountMismatch, match=r"Nothing was spent\.$"):
        od.release(plan, file_of(path, "v,w", *["1,1"] * 199))


def test_without_a_ledger_the_first_line_says_so(plan, records):
    assert od.release(plan, records).certificate.sentence.endswith("Not recorded in any ledger.")


def test_a_ledger_needs_a_dataset_name(plan, records, ledger):
    with pytest.raises(errors.WrongCall, match="no dataset name"):
        od.release(plan, records, ledger=ledger)


def test_a_seed_is_reproducible_marked_not_private_and_charged(plan, records, ledger):
    first = od.release(plan, records, ledger=ledger, dataset="patients", random_state=7)
    second = od.release(plan, records, random_state=7)
    assert first.draw == second.draw
    assert first.certificate.sentence.startswith("SEEDED: REPRODUCIBLE, NOT PRIVATE.")
    reserved = next(event for event in ledger.events("patients") if event.kind == "reserved")
    assert reserved.payload["seeded"] is True


def test_two_unseeded_releases_differ(plan, records):
    assert od.release(plan, records).draw != od.release(plan, records).draw


def test_draws_share_the_budget():
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    plan = od.calibrate(od.Diffused(), model, od.GaussianDP(0.5), n=100, draws=8)
    release = od.release(plan, np.zeros(100))
    assert release.draws.shape == (8, 1)
    assert "these 8 draws together are" in release.certificate.sentence


@pytest.mark.parametrize("word", ["estimated", "assumed"])
def test_unproven_samplers_are_refused_unless_named(records, word):
    model = od.models.BetaBernoulli(prior=(1, 1))
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=200, gamma=1e-7)
    exactness = {
        "estimated": privacy.Estimated(1e-7, "couplings"),
        "assumed": privacy.Assumed("the chain converged"),
    }[word]
    sampler = Told(exactness)
    with pytest.raises(errors.ExactnessRefused, match=f'accept="{word}"'):
        od.release(plan, records, sampler=sampler)
    assert not sampler.ran
    release = od.release(plan, records, sampler=sampler, accept=word)
    assert release.certificate.sentence.startswith(f"{word.upper()}, NOT PROVEN")


def test_an_unknown_word_of_acceptance_is_an_error(plan, records):
    with pytest.raises(errors.WrongCall, match="accept takes"):
        od.release(plan, records, accept="whatever")


def test_total_variation_is_paid_from_the_reserve():
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    reserve = 1e-9
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=100, gamma=reserve)
    promise = promise_of(plan, privacy.WithinTV(reserve))
    assert promise.delta(1.0) <= 1e-6
    assert promise.delta(1.0) > plan.guarantee.promise.delta(1.0) + (1 + math.e) * reserve * 0.999
    with pytest.raises(errors.PromiseRefused, match="does not imply the budget"):
        promise_of(plan, privacy.WithinTV(1e-6))


def test_total_variation_is_paid_at_the_budgets_own_epsilon_and_refused_without_a_delta(mean_plan):
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(0.5, 1e-3), n=100, gamma=1e-5)
    assert promise_of(plan, privacy.WithinTV(1e-5)).implies(od.ApproxDP(0.5, 1e-3))
    with pytest.raises(errors.ExactnessRefused, match="only a δ can pay"):
        promise_of(mean_plan, privacy.WithinTV(1e-12))


@pytest.mark.finding("F3")
def test_an_estimated_draw_is_refused_where_no_delta_can_pay_for_it(mean_plan):
    """If the estimate is right the law is within γ, and a law within γ is never pure: the promise would not follow."""
    model = od.models.BinaryRegression(1)
    for budget in (od.PureDP(1.0), od.BoundedRange(1.0), od.ZCDP(0.5)):
        plan = od.calibrate(od.BetaDivergence(), model, budget, n=100)
        with pytest.raises(errors.ExactnessRefused, match=r"only a δ can pay.*ApproxDP\(epsilon, delta\).*gamma="):
            promise_of(plan, privacy.Estimated(0.00946, "couplings"), accept="estimated")
    with pytest.raises(errors.ExactnessRefused, match="only a δ can pay"):
        promise_of(mean_plan, privacy.Estimated(0.00946, "couplings"), accept="estimated")


@pytest.mark.finding("F3")
def test_an_estimated_draw_is_quoted_and_charged_like_one_within_a_proven_distance(records, ledger):
    ledger.init("estimates", od.ApproxDP(5.0, 0.5))
    model, gamma = od.models.BetaBernoulli(prior=(1, 1)), 0.00946
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 0.1), n=200, draws=2, gamma=2 * gamma)
    sampler = Told(privacy.Estimated(gamma, "couplings"))
    release = od.release(plan, records, sampler=sampler, accept="estimated", ledger=ledger, dataset="estimates")
    paid = (1 + math.e) * 2 * gamma
    stated = privacy.Promise.from_dict(release.certificate.promise.native)
    assert paid <= stated.delta(1.0) <= 0.1
    assert stated == promise_of(plan, privacy.WithinTV(gamma))
    assert stated.pure_epsilon == math.inf
    reserved = next(event for event in ledger.events("estimates") if event.kind == "reserved")
    assert reserved.payload["gamma"] == 2 * gamma
    with pytest.raises(errors.PromiseRefused, match="does not imply the budget"):
        promise_of(plan, privacy.Estimated(2 * gamma, "couplings"), accept="estimated")


def test_a_last_iterate_carries_its_own_promise(mean_plan):
    assert promise_of(mean_plan, privacy.LastIterate(od.GaussianDP(0.4))) == od.GaussianDP(0.4)
    with pytest.raises(errors.PromiseRefused):
        promise_of(mean_plan, privacy.LastIterate(od.GaussianDP(0.6)))


def test_the_gaussian_promise_gets_a_second_opinion(mean_plan):
    release = od.release(mean_plan, np.zeros(100))
    assert "confirmed" in release.certificate.second_opinion


def test_the_renyi_promise_says_that_no_second_opinion_exists(plan, records):
    assert "skipped" in od.release(plan, records).certificate.second_opinion


def test_draws_lie_on_the_lattice(plan, records):
    release = od.release(plan, records, lattice=2.0**-8)
    assert np.array_equal(release.draws, np.rint(release.draws * 2.0**8) / 2.0**8)
    assert release.certificate.lattice == 2.0**-8


@pytest.mark.parametrize("records", [[math.nan] * 200, [math.inf] * 200, [None] * 200, ["x"] * 200, [[1, 2]] * 200])
def test_no_record_can_make_a_release_fail(plan, records):
    assert 0 <= od.release(plan, records).draw <= 1


def test_diagnostics_stay_with_the_curator(plan, records, tmp_path):
    release = od.release(plan, records, sampler=Told(privacy.Exact()))
    assert release.diagnostics == {"seconds": 1.0}
    assert "seconds" not in repr(release)
    release.save(tmp_path / "out.json")
    assert "seconds" not in (tmp_path / "out.json").read_text()


def test_a_release_is_never_overwritten(plan, records, tmp_path):
    release = od.release(plan, records)
    release.save(tmp_path / "out.json")
    with pytest.raises(errors.CannotWrite, match="exists already"):
        release.save(tmp_path / "out.json")
    assert od.Release.load(tmp_path / "out.json").certificate == release.certificate


def test_a_missing_folder_is_explained(plan, records, tmp_path):
    with pytest.raises(errors.CannotWrite, match="does not exist"):
        od.release(plan, records).save(tmp_path / "nowhere" / "out.json")


def test_the_ledger_and_the_plan_must_mean_the_same_person(plan, records, tmp_path):
    ledger = od.Ledger.open(tmp_path / "other.db", create=True)
    ledger.init("patients", od.ApproxDP(3.0, 1e-5), unit=privacy.Unit(4))
    with pytest.raises(errors.WrongCall, match="records_per_person=4"):
        od.release(plan, records, ledger=ledger, dataset="patients")


def test_copying_a_ledger_spends_from_the_same_budget(plan, records, ledger):
    od.release(plan, records, ledger=copy.deepcopy(ledger), dataset="patients")
    assert len(ledger.events("patients")) == 3


def test_the_certificate_depends_on_the_records_through_the_draw_alone(plan):
    """Replay: same randomness, neighbouring and opposite data sets; everything but the draw is the same."""
    documents = []
    for records in (np.zeros(200), np.ones(200), np.full(200, np.nan)):
        certificate = od.release(plan, records, random_state=3).certificate.model_dump(mode="json")
        assert certificate["draw"].pop("values")
        certificate.pop("prepared_at")
        documents.append(certificate)
    assert documents[0] == documents[1] == documents[2]


def test_a_part_is_charged_alone_and_must_have_its_public_size(plan, records, ledger):
    ledger.declare_parts("patients", "hospital", {"north": 200, "south": 10})
    with pytest.raises(errors.CountMismatch, match="'south' of 'patients' has 10 records"):
        od.release(plan, records, ledger=ledger, dataset="patients", part="south")
    od.release(plan, records, ledger=ledger, dataset="patients", part="north")
    assert ledger.spent("patients", part="south").epsilon(1e-5) == 0
    assert 0 < ledger.spent("patients", part="north").epsilon(1e-5) <= 1


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    from onedraw.release import files

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(errors.CannotWrite, match="No space left"):
        files.write_whole(tmp_path / "release.json", "{}", "release")
    assert list(tmp_path.iterdir()) == []
