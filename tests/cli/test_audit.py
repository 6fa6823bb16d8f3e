"""`onedraw audit`: promise and lower bound side by side, files written, exit codes, and clear words for wrong calls."""

import json

import numpy as np
import pytest

import onedraw as od
from onedraw.audit.cases import conjugate, literature


def words(text):
    return " ".join(text.split())


def test_promise_and_lower_bound_stand_side_by_side(run):
    code, out, _ = run("audit", "--model", "mean", "--epsilon", 1, "--mechanism", "diffused", "--effort", "demo")
    assert code == 0
    assert "diffused, gaussian-mean" in out
    assert "Gaussian DP with μ = 0.2367" in out
    assert "no record was read" in out


def test_the_smallest_fault_that_would_be_caught_is_printed(run):
    code, out, _ = run("audit", "--model", "mean", "--epsilon", 1, "--mechanism", "gibbs-theorem7", "--effort", "quick")
    assert code == 0
    assert "× 1.41" in out  # the exact profile allows two fifths more weight than Theorem 15 does


def test_json_and_figure_are_written(run, tmp_path):
    arguments = ("--model", "mean", "--epsilon", 2, "--mechanism", "gibbs-gdp", "--effort", "demo", "--seed", 3)
    code, out, _ = run("audit", *arguments, "--json", "--out", "audit.json", "--figure", "audit.png")
    assert code == 0
    printed, written = json.loads(out), json.loads((tmp_path / "audit.json").read_text())
    assert printed == written
    (case,) = printed["cases"]
    assert case["passed"]
    assert printed["passed"]
    assert 0 <= case["attacked_epsilon"] <= case["exact_epsilon"] <= case["promised_epsilon"] == pytest.approx(2.0)
    assert (tmp_path / "audit.png").stat().st_size > 10_000
    again = json.loads(run("audit", *arguments, "--json")[1])
    assert again["cases"] == printed["cases"]


def test_a_broken_promise_has_exit_code_3(run, monkeypatch, tmp_path):
    """The planted fault: the audited law has 1.3 times the weight that was promised."""
    honest = conjugate.NormalLawCase.scaling
    monkeypatch.setattr(conjugate.NormalLawCase, "scaling", lambda self, factor: honest(self, 1.3 * factor))
    arguments = ("--model", "mean", "--epsilon", 1, "--mechanism", "diffused", "--effort", "demo")
    code, out, _ = run("audit", *arguments, "--out", "audit.json")
    assert code == 3
    assert "BROKEN: diffused, gaussian-mean" in out
    assert "Do not release with this mechanism" in out
    assert not json.loads((tmp_path / "audit.json").read_text())["passed"]


def test_a_release_file_is_attacked_at_its_own_numbers(run, tmp_path):
    model = od.models.BetaBernoulli(prior=(1, 1))
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=200)
    od.release(plan, np.arange(200) % 2).save(tmp_path / "release.json")
    code, out, err = run("audit", "release.json", "--effort", "demo", "--json")
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    assert case["name"] == "diffused, beta-bernoulli"
    assert case["gap"] == pytest.approx(1.0, abs=1e-4)
    assert json.loads(out)["plan_digest"] == plan.digest


def test_a_release_of_many_coefficients_is_attacked_along_one_row(run, tmp_path):
    model = od.models.Logistic(3, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.NoisyGradient(), model, od.ApproxDP(1.0, 1e-5), n=30)
    X = np.zeros((30, 3))
    od.release(plan, (X, np.arange(30) % 2)).save(tmp_path / "release.json")
    code, out, err = run("audit", "release.json", "--effort", "demo")
    assert code == 0, err
    assert "noisy-gradient, logistic" in out


FIT = {"features": 2, "bounds": (-1, 1), "scaled": True, "prior": od.Gaussian(scale=1.0)}
FITS = {
    "logistic": (od.models.Logistic(**FIT, loss="exp-linear"), [0, 1]),
    "hinge": (od.models.HuberisedHinge(**FIT, width=0.5), [0, 1]),
    "log-cosh": (od.models.LogCoshRegression(**FIT, response_bound=1.0), [-0.5, 0.5]),
    "quantile": (od.models.Quantile(**FIT, level=0.3, response_bound=1.0), [-0.5, 0.5]),
    "counts": (od.models.CountRegression(**FIT, largest=3), [0, 2]),
    "classes": (od.models.Softmax(**FIT, classes=("a", "b", "c")), ["a", "c"]),
}


def fitted(path, name, budget, n=2000, **options):
    """A fit of even tables, released without a ledger."""
    from onedraw.methods import PerturbedMode

    model, values = FITS[name]
    plan = od.calibrate(PerturbedMode(**options), model, budget, n=n)
    rows = np.column_stack([np.linspace(-1, 1, n), np.cos(np.arange(n))])
    od.release(plan, (rows, [values[index % 2] for index in range(n)])).save(path)
    return plan


def test_a_released_fit_is_attacked_at_its_own_numbers_and_its_program_replayed(run, tmp_path):
    plan = fitted(tmp_path / "release.json", "logistic", od.PureDP(1.0), measured=True)
    code, out, err = run("audit", "release.json", "--effort", "quick", "--json")
    assert code == 0, err
    (case,) = json.loads(out)["cases"]
    assert case["name"] == "perturbed-mode, logistic"
    assert case["delta"] == 0.0
    assert 0.7 < case["exact_epsilon"] < case["promised_epsilon"] <= 1.0
    assert case["departures"] == []
    assert 1.0 < case["smallest_caught_factor"] < 1.6
    assert json.loads(out)["plan_digest"] == plan.digest


def test_a_program_that_departs_from_its_plan_has_exit_code_3(run, tmp_path, monkeypatch):
    from onedraw.methods.perturbed_mode import run as fitting

    fitted(tmp_path / "release.json", "logistic", od.PureDP(1.0), measured=True)
    declared = fitting.Stages._objective
    lax = lambda stages, *given: declared(stages, *given)._replace(certified=float("inf"))  # noqa: E731
    monkeypatch.setattr(fitting.Stages, "_objective", lax)
    code, out, _ = run("audit", "release.json")
    assert code == 3
    assert "BROKEN: perturbed-mode, logistic: replayed on synthetic tables, the mode is not the minimum" in words(out)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("budget", [od.ApproxDP(1.0, 1e-6), od.PureDP(1.0), od.ApproxDP(4.0, 1e-8)], ids=str)
def test_every_released_fit_can_be_audited(run, tmp_path, name, budget):
    for number, options in enumerate(({}, {"measured": False}, {"measured": False, "intervals": False})):
        if name == "classes" and options.get("intervals") is None:
            options = {**options, "intervals": False}
        fitted(tmp_path / f"{number}.json", name, budget, **options)
        code, out, err = run("audit", f"{number}.json", "--effort", "quick", "--json")
        assert code == 0, err
        (case,) = json.loads(out)["cases"]
        assert case["passed"]
        assert case["exact_epsilon"] <= case["promised_epsilon"] <= budget.stated_epsilon * (1 + 1e-9)


def test_a_mechanism_and_model_without_a_case_say_what_to_use_instead(run, tmp_path):
    model = od.models.Softmax(2, classes=("a", "b", "c"), bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(od.NoisyGradient(time=0.5), model, od.ApproxDP(1.0, 1e-5), n=3)
    od.release(plan, (np.zeros((3, 2)), ["a", "b", "c"])).save(tmp_path / "release.json")
    code, out, err = run("audit", "release.json")
    assert code == 2
    assert out == ""
    assert "Softmax" in words(err)
    assert "onedraw.audit" in words(err)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to attack"),
        (("--model", "logistic"), "needs the promise"),
        (("--model", "cubic", "--epsilon", "1"), "Choose one of: choice"),
        (("--model", "mean", "--epsilon", "1", "--mechanism", "magic"), "No mechanism of mean is called 'magic'"),
        (("--model", "mean", "--epsilon", "1", "--effort", "huge"), "demo, quick, full"),
        (("--model", "mean", "--epsilon", "1", "--rounds", "10"), "counted rounds"),
        (("--model", "mean", "--epsilon", "1", "--confidence", "1.5"), "confidence must lie strictly between 0 and 1"),
        (("--model", "mean", "--epsilon", "-1"), "ε"),
        (("missing.json",), "could not be read as a release file"),
        (("missing.json", "--model", "mean"), "do not go with it"),
    ],
)
def test_wrong_calls_get_a_clear_message_and_exit_code_2(run, tmp_path, arguments, said):
    code, out, err = run("audit", *arguments, "--out", "audit.json")
    assert code == 2
    assert said in words(err)
    assert out == ""
    assert not (tmp_path / "audit.json").exists()


def test_a_file_that_is_no_certificate_is_refused(run, tmp_path):
    (tmp_path / "release.json").write_text("{}")
    code, _, err = run("audit", "release.json")
    assert code == 3
    assert "not a certificate" in words(err)


def test_an_existing_output_is_never_overwritten(run, tmp_path):
    (tmp_path / "audit.json").write_text("old")
    code, _, err = run("audit", "--model", "mean", "--epsilon", "1", "--out", "audit.json")
    assert code == 2
    assert "exists already" in words(err)
    assert (tmp_path / "audit.json").read_text() == "old"


def test_the_full_audit_says_how_long_before_it_starts(run, monkeypatch):
    from onedraw.audit.cases import investigation

    monkeypatch.setattr(investigation, "investigate", lambda *_, **__: iter(()))
    code, _, err = run(
        "audit", "--model", "mean", "--epsilon", "1", "--mechanism", "diffused", "--effort", "full", "--json"
    )
    assert code == 0
    assert "1 case(s), up to 1,000,000 rounds each: about" in words(err)


def test_the_faults_of_the_literature_are_a_table_and_a_document(run):
    code, out, _ = run("audit", "literature")
    assert code == 0
    assert "MAS Corollary 8" in words(out)
    assert "no record was read" in words(out)
    code, out, _ = run("audit", "literature", "--json")
    found = json.loads(out)["faults"]
    assert code == 0
    assert len(found) == 17
    assert all(one["value"] > one["claimed"] for one in found)


def test_a_fault_that_cannot_be_shown_has_exit_code_3(run, monkeypatch):
    """The planted fault: Corollary 8 where it is true."""
    honest = literature.corollary8
    monkeypatch.setattr(literature, "corollary8", lambda: honest(epsilon=5.0))
    assert run("audit", "literature")[0] == 3
