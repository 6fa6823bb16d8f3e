"""Private bounds: charged first, an answer for every data set, named by schema and certificate, right about what they clip."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onedraw as od
from onedraw.data.magnitudes import LEVELS, PLACES, magnitudes_of
from onedraw.errors import BudgetSpent, Unfinished, WrongCall
from onedraw.methods import AddedNoise, calibrate
from onedraw.models import MagnitudeTable
from onedraw.release.private_bounds import FALSE_ALARM, FALSE_STEP, bounds_from, bounds_of, check_worthwhile, thresholds

N = 4000


def plan_of(columns=1, epsilon=0.5, n=N, law=None, delta=0.0):
    budget = od.ApproxDP(epsilon, delta) if delta else od.PureDP(epsilon)
    return calibrate(AddedNoise(law), MagnitudeTable(tuple(f"c{place}" for place in range(columns))), budget, n=n)


def counts_of(values):
    return np.bincount(magnitudes_of(np.asarray(values, dtype=float)), minlength=LEVELS).astype(float)


@pytest.fixture
def ledger(tmp_path):
    opened = od.Ledger.open(tmp_path / "ledger.db", create=True)
    opened.init("d", od.ApproxDP(2.0, 1e-6))
    return opened


def frame(n=N, seed=3):
    random = np.random.default_rng(seed)
    age = np.where(random.random(n) < 0.2, np.nan, random.integers(18, 95, n).astype(float))
    return pd.DataFrame({"age": age, "cost": random.lognormal(7.0, 1.0, n), "zero": np.zeros(n)})


# The rule


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(-1e15, 1e15), min_size=LEVELS, max_size=LEVELS))
def test_every_noisy_table_has_an_answer(noisy):
    found = bounds_from(np.array(noisy), plan_of())
    assert found.lower < found.upper
    assert all(value == 0.0 or np.frexp(abs(value))[0] == 0.5 for value in (found.lower, found.upper))
    assert 0.0 <= found.clipped <= found.clipped_at_most <= 1.0
    assert 0.0 <= found.missing <= 1.0


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([18.0, 94.0], (16.0, 128.0)),
        ([0.0, 94.0], (0.0, 128.0)),
        ([0.0], (0.0, 1.0)),
        ([-3.0, 5.0], (-4.0, 8.0)),
        ([-94.0, -18.0], (-128.0, -16.0)),
        ([64.0], (32.0, 64.0)),
        ([1e30], (2.0**39, 2.0**40)),
        ([np.nan], None),
    ],
)
def test_without_noise_the_bounds_are_the_nearest_of_the_grid(values, ends):
    found = bounds_from(counts_of(values * (N // len(values))), plan_of())
    if ends is None:
        assert found.missing == 1.0
    else:
        assert (found.lower, found.upper) == ends
        assert found.clipped == 0.0


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_empty_magnitudes_are_seen_and_stepped_onto_as_rarely_as_stated(law):
    """α = 10⁻⁶ by the binomial law; thresholds of half the size are caught."""
    from scipy import stats

    plan, rounds = plan_of(law=law, delta=1e-6 if law == "gaussian" else 0.0), 4000
    noise = plan.mechanism.simulated_noise(plan, (rounds, PLACES), np.random.default_rng(5))
    for factor, fine in ((1.0, True), (0.5, False)):
        seen, beside = (factor * one for one in thresholds(plan))
        alarms, steps = int((noise.max(axis=1) >= seen).sum()), int((noise[:, 0] >= beside).sum())
        likely = (
            stats.binom.sf(alarms - 1, rounds, FALSE_ALARM) > 1e-6
            and stats.binom.sf(steps - 1, rounds, FALSE_STEP) > 1e-6
        )
        assert bool(likely) is fine


@pytest.mark.statistical
def test_what_is_clipped_is_about_what_is_said():
    """The upper end of 95% covers in at least 93% less two standard errors of 300 releases of a long-tailed column."""
    values = np.random.default_rng(11).lognormal(3.0, 2.0, N)
    plan, counts = plan_of(columns=2, epsilon=1.0), counts_of(values)
    noise = plan.mechanism.simulated_noise(plan, (300, LEVELS), np.random.default_rng(12))
    found = [bounds_from(counts + one, plan) for one in noise]
    truth = np.array([np.mean((values < one.lower) | (values > one.upper)) for one in found])
    covered = np.mean([share <= one.clipped_at_most + 1e-12 for share, one in zip(truth, found, strict=True)])
    assert covered >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)
    assert abs(np.mean([one.clipped for one in found]) - truth.mean()) < 0.01


def test_a_budget_that_would_give_luck_is_refused_before_the_charge(ledger):
    check_worthwhile(plan_of(epsilon=0.1))
    with pytest.raises(WrongCall, match=r"Nothing was charged. Use about .* times this ε"):
        od.private_bounds(frame(200), ["age"], epsilon=0.01, ledger=ledger, dataset="d")
    assert {event.kind for event in ledger.events()} == {"book-opened", "dataset-opened"}


# The release


def test_bounds_are_charged_and_named_by_schema_and_certificate(ledger, tmp_path):
    found = od.private_bounds(
        frame(),
        ["age", "cost", "zero"],
        epsilon=0.9,
        ledger=ledger,
        dataset="d",
        out=tmp_path / "b.json",
        random_state=1,
    )  # a fixed seed, since noise looks like a magnitude in one column of a hundred
    assert (found.bounds["age"].lower, found.bounds["age"].upper) == (16.0, 128.0)
    assert (found.bounds["zero"].lower, found.bounds["zero"].upper) == (0.0, 1.0)
    assert found.bounds["age"].missing == pytest.approx(0.2, abs=0.05)
    checked = od.verify(tmp_path / "b.json", ledger=ledger)
    assert checked.answer == "authentic"
    assert bounds_of(checked.certificate, od.load(tmp_path / "b.json").plan) == found.bounds
    entry = found.release.certificate.ledger.entry
    columns = {name: one | {"missing": one["lower"]} for name, one in found.declarations().items()}
    schema = od.Schema.from_dict({"dataset": "d", "private_bounds": found.source, "columns": columns})
    assert schema.private_bounds.entry == entry
    planned = od.plan(schema, "age", "mean", n=N, epsilon=0.5)
    later = planned.release(frame(), ledger=ledger, out=tmp_path / "m.json")
    assert later.certificate.data.private_bounds.entry == entry
    assert any(entry in one.statement and "'cost'" in one.statement for one in later.certificate.assumptions)
    assert od.verify(tmp_path / "m.json", ledger=ledger).answer == "authentic"
    with pytest.raises(BudgetSpent):
        od.private_bounds(frame(), ["age"], epsilon=0.9, ledger=ledger, dataset="d")


def test_an_interrupted_release_of_bounds_is_finished_without_a_second_charge(ledger, tmp_path, monkeypatch):
    asked = {"epsilon": 0.5, "ledger": ledger, "dataset": "d", "out": tmp_path / "b.json"}
    with monkeypatch.context() as broken:
        broken.setattr(MagnitudeTable, "summarise", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(Unfinished) as stopped:
            od.private_bounds(frame(), ["age"], **asked)
    entry = stopped.value.fields["entry"]
    with pytest.raises(od.errors.CannotWrite):
        od.private_bounds(frame(), ["age"], **asked)
    found = od.private_bounds(frame(), ["age"], **asked, resume=entry)
    assert found.release.certificate.ledger.entry == entry
    again = od.private_bounds(frame(), ["age"], **asked, resume=entry)  # settled: the same certificate
    assert again.bounds == found.bounds
    assert od.verify(tmp_path / "b.json", ledger=ledger).answer == "authentic"


def test_a_person_with_several_records_pays_for_all_of_them(ledger, tmp_path):
    records = frame().assign(who=np.arange(N) // 2)
    with pytest.raises(WrongCall, match="unit"):
        od.private_bounds(records, ["age"], epsilon=0.5, ledger=ledger, dataset="d", person="who", max_records=2)


def test_records_are_read_alike_as_a_frame_and_as_a_file(tmp_path):
    table = MagnitudeTable(("age", "cost"))
    frame().to_csv(tmp_path / "d.csv", index=False)
    schema = od.Schema.from_dict({"columns": {name: {"kind": "magnitude"} for name in ("age", "cost")}})
    sums = table.summarise(od.read(tmp_path / "d.csv", schema)).total
    assert (
        sums
        == table.summarise(od.read(frame(), schema)).total
        == table.summarise(frame()[["age", "cost"]].to_numpy()).total
    )


@pytest.mark.parametrize("columns", ["age", []])
def test_columns_are_a_list(ledger, columns):
    with pytest.raises(WrongCall, match="columns is a list"):
        od.private_bounds(frame(), columns, epsilon=0.5, ledger=ledger, dataset="d")
