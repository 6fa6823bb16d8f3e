"""Plain noise on tables: sensitivities by brute force, promises, what OpenDP says of them, and who draws the variates."""

import itertools
import math

import numpy as np
import pytest

import onedraw as od
from onedraw import samplers
from onedraw.methods import AddedNoise, plan_from_dict
from onedraw.models import CategoryTable, Grouped, NumberTable
from onedraw.models.tables.category_table import condition
from onedraw.models.tables.table import STEPS
from onedraw.samplers import noise

PLACES = np.concatenate([np.linspace(0.0, 10.0, 41), np.random.default_rng(3).uniform(0, 10, 40), [1e308, -1e308]])
SEXES = {"by": ("sex",), "groups": (("F", "M"),)}

TABLES = {
    "share": CategoryTable(("no", "yes"), show="shares", only="yes"),
    "histogram": CategoryTable(("a", "b", "c")),
    "counts by group": CategoryTable(("no", "yes"), **SEXES),
    "counts by public group": CategoryTable(("no", "yes"), **SEXES, sizes=(1, 1)),
    "count within ends": CategoryTable(**condition((4, 6))),
    "count within ends by group": CategoryTable(**condition((4, None)), **SEXES),
    "mean": NumberTable(0, 10),
    "variance": NumberTable(0, 10, show="variance"),
    "mean by group": NumberTable(0, 10, **SEXES),
    "mean by public group": NumberTable(0, 10, **SEXES, sizes=(1, 1)),
}


def one_record(table):
    """The weighted sums of every record there can be, by group."""
    levels = isinstance(table, CategoryTable) and table.between is None
    values = list(range(len(table.levels))) if levels else PLACES.tolist()
    groups = range(table.cells)
    free = type(table)(**{**{k: v for k, v in table.to_dict().items() if k != "model"}, "sizes": None})
    for value, group in itertools.product(values, groups):
        sums = np.zeros((table.cells, table.block), dtype=np.int64)
        table.add(sums, np.array([group]) if table.groups else None, np.array([value], dtype=float))
        yield group, sums
    assert free.cells == table.cells


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_no_replaced_record_moves_the_sums_further_than_the_table_says(name, law):
    table = TABLES[name]
    weights = np.array(table.weights(law))
    records = list(one_record(table))
    moved = 0
    for (here, first), (there, second) in itertools.combinations(records, 2):
        if table.sizes is not None and here != there:
            continue
        change = ((first - second) * weights).reshape(-1)
        size = sum(abs(int(x)) for x in change) if law == "laplace" else sum(int(x) ** 2 for x in change)
        moved = max(moved, size)
    assert 0.999 * table.reach(law) < moved <= table.reach(law), (moved, table.reach(law))


def test_a_second_moment_costs_a_mean_nothing():
    """The noise on Σv is that of a mean alone: 2 in units of the half range."""
    plan = od.calibrate(AddedNoise("laplace"), NumberTable(0, 10), od.PureDP(1.0), n=100)
    assert plan.parameters["scale"] / 2 / STEPS == pytest.approx(2.0, rel=1e-8)
    gaussian = od.calibrate(AddedNoise("gaussian"), NumberTable(0, 10), od.ZCDP(0.5), n=100)
    assert gaussian.parameters["scale"] / 2 / STEPS == pytest.approx(2.0, rel=1e-7)


BUDGETS = [od.PureDP(0.3), od.ApproxDP(1.0, 1e-6), od.ZCDP(0.02), od.GaussianDP(0.5), od.RenyiDP.at(8.0, 0.5)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", ["share", "histogram", "mean", "mean by group"])
def test_a_plan_keeps_its_budget_and_is_read_back_as_it_was(name, budget):
    for law in (None, "laplace", "gaussian"):
        try:
            plan = od.calibrate(AddedNoise(law), TABLES[name], budget, n=1000, records_per_person=2)
        except od.errors.UnsupportedBudget:
            assert isinstance(budget, od.PureDP)
            assert law == "gaussian"
            continue
        assert plan.guarantee.promise.implies(budget)
        assert plan_from_dict(plan.to_dict()) == plan
        assert samplers.default_sampler(plan)[0].exactness(plan).tag == "exact"


def test_k_records_per_person_need_k_times_the_noise():
    one, three = (
        od.calibrate(AddedNoise("laplace"), TABLES["histogram"], od.PureDP(1.0), n=100, records_per_person=k)
        for k in (1, 3)
    )
    assert three.parameters["scale"] == 3 * one.parameters["scale"]
    assert one.parameters["scale"] == 2.0


def test_a_smaller_scale_than_the_promise_needs_is_refused():
    plan = od.calibrate(AddedNoise("laplace"), TABLES["histogram"], od.PureDP(1.0), n=100)
    with pytest.raises(od.errors.PromiseRefused):
        plan.mechanism.plan(plan.request, {"scale": 1.0, "refinement": 1.0})
    stored = plan.to_dict()
    stored["parameters"]["sensitivity"] = 1.0
    with pytest.raises(od.errors.CertificateRejected):
        plan_from_dict(stored)


def test_opendp_is_asked_and_its_refusal_stops_the_release_before_a_charge(monkeypatch, tmp_path):
    plan = od.calibrate(AddedNoise(), TABLES["histogram"], od.PureDP(1.0), n=3)
    monkeypatch.setattr(noise.NoiseMeasurement, "confirms", lambda *a, **k: False)
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("d", od.PureDP(5.0))
    with pytest.raises(od.errors.ExactnessRefused):
        od.release(plan, [0, 1, 2], ledger=ledger, dataset="d")
    assert not [event for event in ledger.events() if event.kind == "reserved"]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_opendp_does_not_confirm_half_the_noise(law):
    size, scale, distance = 3, 4.0, 2
    built = noise.measurement(law, size, scale)
    epsilon, rho = distance / scale, distance**2 / (2 * scale**2)
    assert built.confirms(distance, epsilon=epsilon, rho=rho * (1 + 1e-12))
    assert not built.confirms(distance, epsilon=epsilon / 2, rho=rho / 2)


class Forbidden:
    """A generator that nobody may draw from; it calls itself the secure one."""

    def __init__(self):
        self.bit_generator = type("SecureChaCha", (), {"secure": True})()

    def __getattr__(self, name):
        raise AssertionError(f"a variate was drawn by NumPy: {name}")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("budget", [od.PureDP(1.0), od.ZCDP(0.5), od.GaussianDP(1.0)], ids=str)
def test_every_variate_of_a_plain_noise_release_is_opendps(name, budget, monkeypatch, tmp_path):
    drawn = []
    release = noise.NoiseMeasurement.release
    monkeypatch.setattr(
        noise.NoiseMeasurement, "release", lambda self, sums: drawn.append(len(sums)) or release(self, sums)
    )
    monkeypatch.setattr(samplers, "secure_generator", Forbidden)
    table = TABLES[name]
    plan = od.calibrate(AddedNoise(), table, budget, n=2)
    data = Grouped([1, 0], ([0, 1],)) if table.groups else [1, 0]
    found = od.release(plan, data)
    found.save(tmp_path / "release.json")
    assert drawn == [table.cells * table.block]
    assert od.verify(tmp_path / "release.json").answer == "consistent"
    assert found.certificate.exactness["kind"] == "exact"
    assert found.certificate.sentence.startswith("Exact")


def test_a_seeded_release_is_marked_and_follows_the_same_law():
    plan = od.calibrate(AddedNoise("laplace"), TABLES["histogram"], od.PureDP(0.5), n=300)
    assert "NOT PRIVATE" in od.release(plan, [0, 1, 2] * 100, random_state=1).certificate.sentence
    generator = np.random.default_rng(5)
    scale = 4.0
    seeded = noise.laplace_steps(scale, 12_000, generator)
    exact = np.array(noise.measurement("laplace", 12_000, scale).release([0] * 12_000))
    q = math.exp(-1 / scale)
    for drawn in (seeded, exact):
        for place in (0, 1, 5, 12):
            mass = (1 - q) / (1 + q) * q**place
            found = np.mean(drawn == place)
            assert abs(found - mass) < 5 * math.sqrt(mass / 12_000)
            assert abs(found - 1.3 * mass) > 3 * math.sqrt(mass / 12_000) or mass < 0.01
    for deviation in (0.7, 3.0):
        spread = np.std(noise._gaussian(deviation, 12_000, generator))
        other = np.std(noise.measurement("gaussian", 12_000, deviation).release([0] * 12_000))
        assert spread == pytest.approx(other, rel=0.05)


def test_the_law_with_the_smaller_error_is_taken():
    laplace = od.calibrate(AddedNoise(), TABLES["share"], od.ApproxDP(1.0, 1e-6), n=100)
    gaussian = od.calibrate(AddedNoise(), TABLES["histogram"], od.ZCDP(0.5), n=100)
    assert (laplace.mechanism.law, gaussian.mechanism.law) == ("laplace", "gaussian")


@pytest.mark.parametrize(
    "change",
    [{"draws": 2}, {"n": 10**12}],
)
def test_what_cannot_be_done_is_refused_in_words(change):
    with pytest.raises(od.errors.OnedrawError) as refused:
        od.calibrate(AddedNoise(), TABLES["mean"], od.PureDP(1.0), **({"n": 10} | change))
    assert len(str(refused.value)) > 40
    with pytest.raises(od.errors.OnedrawError):
        od.calibrate(AddedNoise(), od.models.BetaBernoulli(), od.PureDP(1.0), n=10)
    with pytest.raises(od.errors.InvalidModel):
        AddedNoise("normal")


ODD = [float("nan"), None, float("inf"), -1e308, 10**400, "x", b"", [1.0], (), object()]


def test_no_record_can_make_a_release_fail():
    for name, table in TABLES.items():
        n = 2 * len(ODD)
        plan = od.calibrate(
            AddedNoise(),
            table if table.sizes is None else NumberTable(0, 1, **SEXES, sizes=(n, 0)),
            od.PureDP(1.0),
            n=n,
        )
        data = Grouped([*ODD, *ODD], ([*ODD, *ODD],)) if table.groups else [*ODD, *ODD]
        assert np.isfinite(od.release(plan, data, random_state=1).draws).all(), name


def test_an_odd_cell_counts_as_declared():
    table = NumberTable(0, 10, missing=4.0)
    assert table.summarise([float("nan"), "x", None]).total == table.summarise([4.0, 4.0, 4.0]).total
    counted = CategoryTable(("a", "b", "c"), missing=2).summarise([0, 7, None, 1.5, 1])
    assert counted.total == (1, 1, 3)


def test_published_counts_are_whole_and_sum_to_the_public_n():
    table = CategoryTable(("a", "b", "c", "d"), **SEXES)
    noisy = np.array([[-7.0, 3.0, 30.0, 2.0], [1.0, 0.0, -3.0, 80.0]])
    counts = table.estimate(noisy, 100)
    assert counts.sum() == 100
    assert (counts >= 0).all()
    assert (counts == np.rint(counts)).all()
    rows = CategoryTable(("a", "b", "c"), **SEXES, sizes=(40, 60)).estimate(
        np.array([[-7.0, 30, 30], [10, 20, 20.0]]), 100
    )
    assert rows.reshape(2, 3).sum(axis=1).tolist() == [40.0, 60.0]


def test_tables_that_make_no_sense_are_refused():
    for make in (
        lambda: CategoryTable(("a",)),
        lambda: CategoryTable(("a", "a")),
        lambda: CategoryTable(("a", "b", "c"), only="d"),
        lambda: CategoryTable(("a", "b"), missing=2),
        lambda: CategoryTable(("a", "b"), by=("x", "y", "z", "u"), groups=(("1",),) * 4),
        lambda: CategoryTable(("a", "b"), **SEXES, sizes=(1,)),
        lambda: NumberTable(1, 1),
        lambda: NumberTable(0, 1, show="median"),
        lambda: NumberTable(0, 1, missing=3),
    ):
        with pytest.raises(od.errors.InvalidModel):
            make()
