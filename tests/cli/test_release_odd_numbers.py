"""Numbers nobody means: every numeric option answers in words, quickly, and nothing is charged where nothing is released."""

import time

import numpy as np
import pytest

import onedraw as od
from onedraw import errors

SCHEMA = """\
dataset: p
columns:
  ill: {kind: binary, levels: [no, yes], missing: no}
  age: {kind: number, lower: 0, upper: 100, missing: 50}
  visits: {kind: count, cap: 1000000000, missing: 0}
"""
REALS = ["0", "-1", "1e-320", "1e-30", "1e308", "1e400", "inf", "nan", "99999999999999999999999", "0.9999999999999999"]
WHOLE = ["0", "-1", "9223372036854775808", "99999999999999999999999", "1" + "0" * 400, "1.5", "x"]
PLAN = {"schema": "schema.yaml", "target": "ill", "model": "proportion", "epsilon": 1, "rows": 100}
REGRESSION = PLAN | {"model": "logistic", "draws": 1}
LINEAR = REGRESSION | {"target": "age", "model": "linear"}


@pytest.fixture
def place(tmp_path, run):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    rows = "\n".join(f"{'yes' if i % 3 else 'no'},{i},{i}" for i in range(100))
    (tmp_path / "patients.csv").write_text(f"ill,age,visits\n{rows}\n")
    assert run("ledger", "init", "ledger.db", "--dataset=p", "--epsilon=1000", "--delta=1e-3")[0] == 0
    return tmp_path


def options(**values):
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


@pytest.mark.finding("C7")
@pytest.mark.parametrize(
    "asked",
    [
        REGRESSION | {"epsilon": "1e308"},
        LINEAR | {"epsilon": "1e308"},
        LINEAR | {"model": "mean", "rows": -1},
        PLAN | {"rows": "99999999999999999999999"},
        LINEAR | {"rows": "1" + "0" * 400},
        REGRESSION | {"for_error": "1e-320"},
        PLAN | {"draws": "9223372036854775808"},
        LINEAR | {"effect": "1e308"},
        LINEAR | {"model": "mean", "mechanism": "diffused", "order": "1e308"},
    ],
    ids=lambda asked: " ".join(options(**{key: str(value)[:25] for key, value in asked.items() if key != "schema"})),
)
def test_a_plan_for_numbers_nobody_means_is_refused_quickly(run, place, asked):
    begun = time.process_time()
    code, _, message = run("plan", *options(**asked))
    assert code == 2, message
    assert message.startswith("onedraw: ")
    assert "\n" not in message.strip()
    assert time.process_time() - begun < 8


@pytest.mark.finding("C7")
@pytest.mark.timeout(60)
def test_a_count_of_up_to_a_billion_is_planned_without_counting(run, place):
    code, out, message = run("plan", *options(**PLAN | {"model": "rate", "target": "visits"}))
    assert code == 0, message
    assert "expected error" in out


CONJUGATE = [
    *((name, value) for name in ("epsilon", "delta", "order") for value in REALS),
    *((name, value) for name in ("rows", "draws") for value in WHOLE),
    *(("prior", f"{value},1") for value in REALS),
    *(("prior", f"{value},{value}") for value in ("1e-30", "1e-17")),
    ("for_error", "1"),
    ("simulate", "-1"),
]


@pytest.mark.slow
def test_no_numeric_option_of_plan_breaks_it(run, place):
    for name, value in CONJUGATE:
        assert run("plan", *options(**PLAN | {name: value}))[0] in (0, 2, 3), (name, value)


@pytest.mark.slow
def test_no_numeric_option_of_release_breaks_it_or_charges_what_is_not_released(run, place):
    ledger = od.Ledger.open(place / "ledger.db")
    asked = PLAN | {"epsilon": "0.001", "ledger": "ledger.db"}
    for index, (name, value) in enumerate([*CONJUGATE[::2], ("seed", "-1"), ("seed", "1" + "0" * 400), ("seed", "x")]):
        if name in ("for_error", "simulate"):
            continue
        before = ledger.account("p").reservations
        code, _, message = run("release", "patients.csv", *options(**asked | {name: value, "out": f"{index}.json"}))
        assert code in (0, 2, 3, 4), (name, value, message)
        assert ledger.account("p").reservations - before == (code == 0), (name, value)


@pytest.mark.slow
def test_no_numeric_option_of_the_ledger_or_of_audit_breaks_it(run, place):
    for index, value in enumerate(REALS):
        assert run("ledger", "init", "ledger.db", f"--dataset=e{index}", f"--epsilon={value}")[0] in (0, 2)
        assert run("ledger", "init", "ledger.db", f"--dataset=f{index}", "--epsilon=1", f"--delta={value}")[0] in (0, 2)
        assert run("ledger", "top-up", "ledger.db", "--dataset=p", f"--epsilon={value}")[0] in (0, 2)
    for index, value in enumerate(WHOLE):
        assert run("ledger", "init", "ledger.db", f"--dataset=m{index}", "--epsilon=1", f"--max-records={value}")[
            0
        ] in (
            0,
            2,
        )
        assert run("audit", "--model=proportion", "--epsilon=1", f"--rounds={value}")[0] == 2
    for value in ("-1", "1.5", "x"):
        assert run("audit", "--model=proportion", "--epsilon=1", f"--seed={value}")[0] == 2


# ── paid for, and then? ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.finding("C7")
@pytest.mark.parametrize("epsilon", ["1e-30", "1e-320"])
def test_a_release_whose_delta_covers_everything_states_an_epsilon_of_0(run, place, epsilon):
    """It was charged, drawn, and then lost: its certificate refused an ε of 0, which is what δ = 1e-6 leaves of 1e-30."""
    asked = PLAN | {"epsilon": epsilon, "ledger": "ledger.db", "out": "release.json"}
    code, out, message = run("release", "patients.csv", *options(**asked))
    assert code == 0, message
    assert "ε = 0, δ" in out
    assert run("verify", "release.json", "--ledger=ledger.db")[0] == 0


@pytest.mark.finding("C7")
@pytest.mark.parametrize("seed", ["x", 1.5, True])
def test_a_seed_that_is_none_is_refused_before_the_charge(place, seed):
    ledger = od.Ledger.open(place / "ledger.db")
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=50)
    with pytest.raises(errors.WrongCall, match="seed"):
        od.release(plan, np.zeros(50), ledger=ledger, dataset="p", random_state=seed)
    assert ledger.account("p").reservations == 0
