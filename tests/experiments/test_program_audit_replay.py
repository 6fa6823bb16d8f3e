"""Replay: nothing public depends on a record. And each fault of a program, planted, is caught."""

import contextlib
import dataclasses
import io
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from experiments.program_audit.releases import audit_releases
from experiments.program_audit.replays import (
    DATASET,
    SIZES,
    audit_freshness,
    awkward_pairs,
    awkward_rows,
    differing,
    observe,
    releasing,
    replay,
)

import onedraw as od
from onedraw import cli, samplers
from onedraw.models.sums.clamped_sums import LatticeSum, summed

BUDGET = od.ApproxDP(1.0, 1e-5)

CONJUGATE = {
    "proportion": (od.models.BetaBernoulli(prior=(1, 1)), 1),
    "histogram": (od.models.DirichletCategorical(prior=(1, 1, 1)), 2),
    "mean": (od.models.GaussianMean(bound=1.0, variance=1.0, prior_count=1.0), 0.5),
    "rate": (od.models.GammaPoisson(prior=(1.0, 1.0), cap=5), 3),
    "duration": (od.models.GammaExponential(prior=(2.0, 2.0), cap=5.0), 3.0),
}


def program_for(mechanism, model, budget=BUDGET):
    """The library's `release` for whatever n comes: n is public, so a plan for it may be made."""
    plans = {}

    def program(data, ledger):
        n = model.count(data)
        if n not in plans:
            plans[n] = od.calibrate(mechanism, model, budget, n=n)
        return releasing(plans[n])(data, ledger)

    return program


@pytest.mark.parametrize("name", CONJUGATE)
def test_no_record_shows_outside_for_conjugate_models(name):
    model, ordinary = CONJUGATE[name]
    assert replay(program_for(od.Diffused(), model), awkward_pairs(ordinary, sizes=(1, 3))) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CONJUGATE)
def test_no_record_shows_outside_for_conjugate_models_of_any_small_size(name):
    model, ordinary = CONJUGATE[name]
    for mechanism in (od.Diffused(), od.Concentrated()):
        assert replay(program_for(mechanism, model), awkward_pairs(ordinary, sizes=SIZES)) == []


def test_no_record_shows_outside_for_a_noisy_gradient():
    model = od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    program = program_for(od.NoisyGradient(time=0.5), model)
    assert replay(program, awkward_rows((0.5, -0.5), 1, sizes=(2,))) == []


FITTED = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": od.Gaussian(scale=1.0)}


def test_no_record_shows_outside_for_a_fit_in_stages():
    """Of the stages only how many numbers each has may be seen in what is compared."""
    from onedraw.methods import PerturbedMode

    fit, model = PerturbedMode(measured=True, intervals=True), od.models.Logistic(**FITTED, loss="exp-linear")
    program = program_for(fit, model)
    assert set(observe(program, ([[0.5, -0.5]] * 2, [1, 0])).certificate["draw"]["stages"]) >= {"moments", "mode"}
    assert replay(program, awkward_rows((0.5, -0.5), 1, sizes=(2,))[::9]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "response"),
    [
        (od.models.Logistic(**FITTED, loss="exp-linear"), 1),
        (od.models.LogCoshRegression(**FITTED, response_bound=1.0), 0.5),
        (od.models.Quantile(**FITTED, response_bound=1.0), 0.5),
        (od.models.CountRegression(**FITTED, largest=3), 2),
        (od.models.Softmax(**FITTED, classes=("a", "b", "c")), "b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_record_shows_outside_for_fits_of_any_kind(model, response):
    from onedraw.methods import PerturbedMode

    intervals = None if model.row_blocks > 1 else True
    for budget in (BUDGET, od.PureDP(1.0)):
        program = program_for(PerturbedMode(measured=True, intervals=intervals), model, budget)
        assert replay(program, awkward_rows((0.5, -0.5), response, sizes=(1, 3))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "model", "budget"),
    [
        (od.Gibbs("gdp"), od.models.Logistic(2, bounds=(-1, 1), prior=od.Gaussian(scale=1.0)), BUDGET),
        (od.Gibbs("gdp"), od.models.HuberRegression(2, threshold=1.0, data_norm=1.0, prior=od.Gaussian(scale=1.0)), BUDGET),
        (od.Candidates(count=64, rounds=1), od.models.BinaryRegression(2, prior=od.Gaussian(scale=0.3)), od.PureDP(1.0)),
        (od.Gibbs("bounded"), od.models.LeastSquares(2, response_bound=2.0, bounds=(-1, 1), prior=od.Gaussian(scale=1.0, radius=1.0)), od.PureDP(1.0)),
    ],
)  # fmt: skip
def test_no_record_shows_outside_for_models_of_rows(mechanism, model, budget):
    assert replay(program_for(mechanism, model, budget), awkward_rows((0.5, -0.5), 1)) == []


def test_the_draw_itself_does_differ_and_so_replay_looks_at_real_runs():
    model, _ = CONJUGATE["mean"]
    plan = od.calibrate(od.Diffused(), model, BUDGET, n=3)
    one = od.release(plan, [0.5, 0.5, 0.5], random_state=1)
    other = od.release(plan, [0.5, 0.5, -1.0], random_state=1)
    assert one.draw != other.draw
    assert observe(releasing(plan), [0.5] * 3).certificate["n"] == 3


SCHEMA = """\
dataset: replayed
columns:
  outcome: {kind: binary, levels: [no, yes], missing: no}
  age: {kind: number, lower: 0, upper: 120, missing: 50}
"""


def command_line(question, target):
    """`onedraw release` on a file with these cells in one column: exit code, words, files and certificate."""

    def program(cells, ledger):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
            Path("schema.yaml").write_text(SCHEMA)
            rows = [f"{cell},40" if target == "outcome" else f"yes,{cell}" for cell in cells]
            Path("people.csv").write_text("\n".join(["outcome,age", *rows]) + "\n")
            od.Ledger.open("ledger.db", create=True).init("replayed", od.ApproxDP(5.0, 1e-4))
            arguments = ["release", "people.csv", "--schema=schema.yaml", f"--target={target}", f"--model={question}", "--epsilon=1", "--mechanism=diffused",
                         "--ledger=ledger.db", "--out=release.json", "--seed=4", "--json"]  # fmt: skip
            patch.setattr(sys, "argv", ["onedraw", *arguments])
            printed = io.StringIO()
            try:
                with contextlib.redirect_stdout(printed):
                    cli.main()
                code = 0
            except SystemExit as stop:
                code = stop.code
            out = Path("release.json")
            certificate = json.loads(out.read_text()) if out.exists() else {}
            for changing in ("draw", "prepared_at", "ledger"):
                certificate.pop(changing, None)
            return {
                "code": code, "files": sorted(path.name for path in Path().iterdir()), "certificate": certificate,
                "events": [event.kind for event in od.Ledger.open("ledger.db").events()],
                "fields printed": sorted(json.loads(printed.getvalue() or "{}")),
            }  # fmt: skip

    return program


@pytest.mark.parametrize(("question", "target", "ordinary"), [("proportion", "outcome", "yes"), ("mean", "age", "40")])
def test_no_cell_of_a_file_shows_outside_the_command(question, target, ordinary):
    cells = ["", "nan", "inf", "-1e308", "1e400", "maybe", "é", "0x10", "40 40"]
    assert replay(command_line(question, target), awkward_pairs(ordinary, sizes=(2,), awkward=cells)) == []


def test_a_command_that_stops_on_a_cell_would_be_noticed():
    def program(cells, ledger):
        if "" in cells:
            raise SystemExit(2)
        return command_line("mean", "age")(cells, ledger)

    assert {difference.where for difference in replay(program, [("", ["40", "40"], ["40", ""])])} == {
        "outcome",
        "certificate",
    }


# ── faults of a program, planted ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def mean_model():
    return od.models.GaussianMean(bound=1.0, variance=1.0, prior_count=1.0)


@dataclasses.dataclass(frozen=True)
class UnclippedMean(od.models.GaussianMean):
    """The planted fault: the clip to [−bound, bound] is a hundred times too wide."""

    def _summarise(self, data):
        from fractions import Fraction

        from onedraw.models.sums.clamped_sums import RADIUS_STEPS, Summary

        wide = 100.0 * self.bound
        rows, steps = summed(data, LatticeSum(-wide, wide, 0.0))
        return Summary(rows, ((int(steps[0]) - rows * RADIUS_STEPS) * Fraction(wide) / RADIUS_STEPS,))


def test_a_clip_removed_is_caught():
    """Draws of the program on a record far outside: any attack tells them apart. With the clip, none does."""
    from onedraw import audit

    generator = np.random.default_rng(7)
    for model_class, caught in ((od.models.GaussianMean, False), (UnclippedMean, True)):
        model = model_class(bound=1.0, variance=1.0, prior_count=1.0)
        plan = od.calibrate(od.Diffused(), model, BUDGET, n=3)

        def mechanism(data, generator, size, plan=plan):
            law = plan.target(plan.model.summarise(data))
            return (
                samplers.Exact().run(law, samplers.seeded_generator(int(generator.integers(2**60))), size=size).values
            )

        found = audit.blackbox_lower_bound(
            mechanism,
            [0.0, 0.0, 1e9],
            [0.0, 0.0, -1e9],
            rounds=4000,
            delta=1e-5,
            confidence=0.999999,
            generator=generator,
        )
        assert (found.breaks(plan.guarantee.promise) is not None) is caught


def test_a_bound_read_from_the_data_is_caught():
    def program(data, ledger):
        bound = max(abs(float(value)) for value in data)  # the fault
        model = od.models.GaussianMean(bound=bound, variance=1.0, prior_count=1.0)
        return releasing(od.calibrate(od.Diffused(), model, BUDGET, n=len(data)))(data, ledger)

    found = {difference.where for difference in replay(program, [("", [0.5, 0.5], [0.5, 0.9])])}
    assert "certificate.fingerprint" in found
    assert any(where.startswith("events") for where in found)


def test_a_number_of_records_that_depends_on_them_is_caught(mean_model):
    def program(data, ledger):
        kept = [value for value in data if not math.isnan(value)]  # the fault: odd records are dropped
        return releasing(od.calibrate(od.Diffused(), mean_model, BUDGET, n=len(kept)))(kept, ledger)

    found = {difference.where for difference in replay(program, [("", [0.5, 0.5], [0.5, math.nan])])}
    assert "certificate.n" in found


def test_a_count_that_no_longer_fits_the_plan_is_caught(mean_model):
    """The same fault behind a fixed plan: the error message gives the record away."""
    plan = od.calibrate(od.Diffused(), mean_model, BUDGET, n=2)

    def program(data, ledger):
        return releasing(plan)([value for value in data if not math.isnan(value)], ledger)

    found = {difference.where for difference in replay(program, [("", [0.5, 0.5], [0.5, math.nan])])}
    assert "outcome" in found
    assert "events (how many)" in found


def test_a_diagnostic_in_the_certificate_is_caught(mean_model):
    plan = od.calibrate(od.Diffused(), mean_model, BUDGET, n=3)

    def program(data, ledger):
        release = releasing(plan)(data, ledger)
        certificate = release.certificate
        telling = (
            f"{certificate.sampler_choice}; {sum(abs(value) > 1 for value in data)} record(s) were clipped"  # the fault
        )
        return certificate.model_copy(update={"sampler_choice": telling})

    found = [difference.where for difference in replay(program, [("", [0.5, 0.5, 0.5], [0.5, 0.5, 1.5])])]
    assert found == ["certificate.sampler_choice"]


def test_a_record_that_raises_is_caught(mean_model):
    plan = od.calibrate(od.Diffused(), mean_model, BUDGET, n=2)

    def program(data, ledger):
        if any(not math.isfinite(value) for value in data):  # the fault: a well-meant check
            raise ValueError("records must be finite")
        return releasing(plan)(data, ledger)

    found = {difference.where for difference in replay(program, [("", [0.5, 0.5], [0.5, math.inf])])}
    assert {"outcome", "events (how many)"} <= found


def test_a_warning_or_a_printed_line_is_caught(mean_model):
    import warnings

    plan = od.calibrate(od.Diffused(), mean_model, BUDGET, n=2)

    def program(data, ledger):
        if max(data) > 1:
            warnings.warn("clipping", stacklevel=2)
            print("a record was clipped")
        return releasing(plan)(data, ledger)

    found = {difference.where.split(".")[0] for difference in replay(program, [("", [0.5, 0.5], [0.5, 2.0])])}
    assert found == {"printed", "warned (how many)"}


def test_an_exit_code_that_depends_on_a_record_is_caught():
    def program(data, ledger):
        raise SystemExit(2 if None in data else 0)

    assert [difference.where for difference in replay(program, [("", [1.0], [None])])] == ["outcome"]


def test_a_difference_names_the_place_and_never_a_value(mean_model):
    plan = od.calibrate(od.Diffused(), mean_model, BUDGET, n=1)

    def program(data, ledger):
        return {"n": plan.n, "mean": float(np.mean(data))}

    (found,) = replay(program, [("pair 1", [0.123456], [0.654321])])
    assert str(found) == "certificate.mean depends on the records (pair 1)"


# ── several releases together ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init(DATASET, od.ApproxDP(50.0, 1e-2))
    return ledger


@pytest.fixture
def plan(mean_model):
    return od.calibrate(od.Diffused(), mean_model, BUDGET, n=4)


def released(plan, ledger, **options):
    return od.release(plan, [0.1, -0.2, 0.3, 0.0], ledger=ledger, dataset=DATASET, **options).certificate


def test_honest_releases_raise_no_finding(plan, ledger):
    assert audit_releases([released(plan, ledger) for _ in range(3)], ledger) == []


def test_one_draw_released_twice_for_one_spend_is_caught(plan, ledger):
    """The same certificate twice, and the subtler case: a second draw under the first one's entry."""
    first, second = released(plan, ledger), released(plan, ledger)
    twice = {finding.what for finding in audit_releases([first, first], ledger)}
    assert "one spend paid for 2 certificates" in twice
    assert "the same draw stands in more than one place" in twice
    borrowed = second.model_copy(update={"ledger": first.ledger})
    found = {finding.what for finding in audit_releases([first, borrowed], ledger)}
    assert found == {"one spend paid for 2 certificates", "it is not the certificate that was settled"}


def test_a_draw_that_was_never_charged_is_caught(plan, ledger):
    free = od.release(plan, [0.1, -0.2, 0.3, 0.0]).certificate
    assert [finding.what for finding in audit_releases([released(plan, ledger), free], ledger)] == [
        "it was never charged"
    ]


def test_a_seed_reused_across_two_releases_is_caught(plan, ledger, monkeypatch):
    """A program whose "secure" generator starts from one seed: equal draws under two honest spends."""
    monkeypatch.setattr(samplers, "secure_generator", lambda: samplers.seeded_generator(3))
    certificates = [released(plan, ledger), released(plan, ledger)]
    assert {finding.what for finding in audit_releases(certificates, ledger)} == {
        "the same draw stands in more than one place"
    }
    assert audit_freshness(lambda data, ledger: od.release(plan, data, ledger=ledger, dataset=DATASET), [0.0] * 4) != []


def test_fresh_randomness_raises_no_finding(plan):
    assert audit_freshness(lambda data, ledger: od.release(plan, data, ledger=ledger, dataset=DATASET), [0.0] * 4) == []


def test_a_seeded_release_is_named(plan, ledger):
    assert [finding.what for finding in audit_releases([released(plan, ledger, random_state=5)], ledger)] == [
        "it was seeded and is not private"
    ]


def test_a_certificate_charged_for_another_plan_is_caught(plan, mean_model, ledger):
    heavier = od.calibrate(od.Diffused(), mean_model, od.ApproxDP(5.0, 1e-5), n=4)
    certificate = od.release(heavier, [0.0] * 4).certificate
    forged = certificate.model_copy(update={"ledger": released(plan, ledger).ledger})
    assert "another question was charged than the one it states" in {
        finding.what for finding in audit_releases([forged], ledger)
    }


def test_differing_finds_every_kind_of_difference():
    one = {"a": [1, 2], "b": {"c": 1.0}, "d": 1, "e": True}
    other = {"a": [1, 3, 4], "b": {"c": 1}, "d": 1, "f": True}
    assert sorted(differing(one, other)) == ["a (how many)", "a.1", "b.c", "e", "f"]
