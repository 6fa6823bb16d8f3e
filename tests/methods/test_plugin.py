"""A mechanism of another package (other_package.py; base.py) is served like our own, without a change in this one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import onedraw as od
from onedraw import cli
from onedraw.audit.cases import examine
from onedraw.methods import catalog
from onedraw.methods.catalog import case_for
from onedraw.models import NumberTable
from onedraw.plain_text import brief
from onedraw.planning import expected_error
from onedraw.release import verify
from onedraw.samplers import Sampler, default_sampler, seeded_generator

from .other_package import Careless, GeometricMean, GeometricNoise

ROOT = Path(__file__).resolve().parents[2]
BUDGET = od.PureDP(1.0)
AGES = np.random.default_rng(1).uniform(20.0, 80.0, 400)
TABLE = NumberTable(0.0, 100.0)


@pytest.fixture(scope="module")
def plan():
    return od.calibrate(GeometricMean(), TABLE, BUDGET, n=len(AGES))


@pytest.fixture(scope="module")
def released(plan, tmp_path_factory):
    """Release with a ledger; (release, ledger, the stored file)."""
    place = tmp_path_factory.mktemp("plugin")
    ledger = od.Ledger.open(place / "ledger.db", create=True)
    ledger.init("ages", od.PureDP(3.0))
    release = od.release(plan, AGES, ledger=ledger, dataset="ages")
    release.save(place / "mean.json")
    return release, ledger, place / "mean.json"


def test_it_is_calibrated_and_charged_and_its_certificate_says_what_it_is(plan, released):
    release, ledger, _ = released
    assert plan.guarantee.promise.implies(BUDGET)
    assert plan.guarantee.promise.stated_epsilon > 1.0 - 1e-9
    assert "geometric noise of 2 half ranges on one exact sum" in release.certificate.sentence + plan.heading
    assert release.certificate.mechanism.name == "GeometricMean"
    assert [event.kind for event in ledger.events("ages")] == ["dataset-opened", "reserved", "settled"]
    assert abs(release.draw - AGES.mean()) < 5.0


def test_its_stored_file_is_verified_and_an_edited_number_is_not(released):
    release, ledger, path = released
    assert verify(release, ledger=ledger).answer == "authentic"
    stored = json.loads(path.read_text())
    assert od.load(path).plan.mechanism == GeometricMean()
    stored["draw"]["values"][0][0] += 1.0
    path.with_name("edited.json").write_text(json.dumps(stored))
    with pytest.raises(od.errors.CertificateRejected):
        od.load(path.with_name("edited.json"))


def test_its_intervals_hold_and_are_in_the_summary_and_on_the_page(plan, released, tmp_path):
    release, ledger, _ = released
    (row,) = release.summary()
    sampling, added = plan.mechanism.errors(plan)
    assert row.given
    assert row.low < row.estimate < row.high
    assert (row.sampling_error, row.privacy_error) == (sampling, added)
    page = release.report(tmp_path / "page.html", ledger=ledger).read_text()
    assert "geometric noise of 2 half ranges" in page
    assert brief(row.low) in page
    sums, sampler = plan.model.summarise(AGES), GeometricNoise()
    drawn = [sampler.run(plan.target(sums), seeded_generator(seed)).draws[0, 0] for seed in range(200)]
    wide = release.conf_int()[0, 1] - release.conf_int()[0, 0]
    assert np.mean(np.abs(np.array(drawn) - AGES.mean()) < wide / 2.0) > 0.95
    assert np.std(drawn) == pytest.approx(added, rel=0.3)


def test_the_error_to_expect_is_what_it_says(plan):
    found = expected_error(plan)
    assert found.private > found.sampling == plan.mechanism.errors(plan)[0]
    assert found == plan.mechanism.expected_error(plan)


def test_its_own_sampler_is_chosen_and_read_back(plan):
    sampler, why = default_sampler(plan)
    assert sampler == GeometricNoise() == Sampler.from_dict(sampler.to_dict())
    assert why == "the plan's own algorithm: noise on one exact sum"


def test_its_audit_attains_the_promise_and_catches_a_planted_fault(released):
    case = case_for(released[0].plan)
    found = examine(case)
    assert found.passed
    assert found.gap == pytest.approx(1.0, abs=1e-6)
    assert case.profile(case.pairs[0], 1.01).breaks(case.promise) is not None


def test_a_promise_for_half_the_noise_it_takes_is_caught():
    careless = od.calibrate(Careless(), TABLE, BUDGET, n=len(AGES))
    found = examine(case_for(careless))
    assert not found.passed
    assert found.gap == pytest.approx(0.5, abs=1e-6)


def test_a_mechanism_without_a_case_is_refused_by_the_audit(plan):
    class Silent(GeometricMean):
        def audit_case(self, plan):
            return None

    with pytest.raises(od.errors.WrongCall, match="cannot attack"):
        case_for(replace(plan, mechanism=Silent()))


def in_a_new_process(place, *command):
    """Run onedraw where the other package is installed, as its metadata says, and not yet imported."""
    installed = place / "other_package-1.0.dist-info"
    installed.mkdir(exist_ok=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[onedraw.mechanisms]\nGeometricMean = tests.methods.other_package:GeometricMean\n"
        "Careless = tests.methods.other_package:Careless\n"
        "[onedraw.samplers]\nGeometricNoise = tests.methods.other_package:GeometricNoise\n"
    )
    searched = os.pathsep.join([str(place), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", "from onedraw.cli import main; main()", *map(str, command)],
        env=os.environ | {"PYTHONPATH": searched}, cwd=place, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_audit_finds_the_cases_that_it_names(monkeypatch):
    """By its own word for a model; `Careless` derives from it, and its cases are not taken for a second mechanism's."""

    def cases(budget):
        return [case_for(od.calibrate(GeometricMean(), TABLE, budget, n=50))]

    monkeypatch.setattr(GeometricMean, "audit_cases", classmethod(lambda cls: {"geometric-mean": cases}))
    assert "geometric-mean" in catalog.model_words()
    (case,) = catalog.cases("geometric-mean", BUDGET)
    assert case.key == "geometric-mean"
    assert examine(case).passed


def test_the_command_line_finds_it_by_its_entry_points(released):
    path = released[2]
    found = in_a_new_process(path.parent, "verify", path)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_command_line_audits_it_and_says_when_a_promise_is_broken(released, monkeypatch, capsys):
    path = released[2]
    careless = od.release(od.calibrate(Careless(), TABLE, BUDGET, n=len(AGES)), AGES, random_state=1)
    careless.save(path.with_name("careless.json"))
    for file, code in (("mean.json", 0), ("careless.json", 3)):
        monkeypatch.setattr(sys, "argv", ["onedraw", "audit", str(path.with_name(file)), "--effort", "demo"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == code, capsys.readouterr()
    assert "careless" in capsys.readouterr().out
