"""Mechanisms with `missing: skip` (base.py): a record that contributes nothing is a value of a record: it moves sums no farther than any other, and nobody who has to know n skips it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw import models
from onedraw.data import Schema, read
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.methods import (
    AddedNoise,
    AveragedSteps,
    CenteredNoise,
    ClippedGradients,
    ExponentialQuantiles,
    GroupQuantiles,
    Moments,
)
from onedraw.methods.added_noise.run import with_noise
from onedraw.methods.base import Mechanism
from onedraw.methods.clipped_gradients import sizes as clipped
from onedraw.methods.clipped_gradients.run import Stages as ClippedStages
from onedraw.methods.fit import sizes as steps
from onedraw.methods.fit.run import Stages as StepsStages
from onedraw.methods.moments.mechanism import MomentsNumbers
from onedraw.methods.moments.run import measure_all
from onedraw.methods.quantiles.selection import UNITS, quantile_tree
from onedraw.models.tables.centered_squares import CenteredSquares
from onedraw.models.tables.number_table import NumberTable
from onedraw.models.tables.table import STEPS, TableSums
from onedraw.samplers import seeded_generator
from onedraw.samplers.noise import Noise

PURE, APPROXIMATE = od.PureDP(1.0), od.ApproxDP(1.0, 1e-6)
NAN, NOBODY = math.nan, -math.inf
GROUPS = {"by": ("g",), "groups": (("x", "y", "z"),)}

# ── tables: exact distances of the weighted sums ─────────────────────────────────────────────────────────────

TABLES = [
    *[NumberTable(-3.0, 7.0, show=show, missing="skip", **more)
      for show in ("mean", "sum", "variance") for more in ({}, {"nobody": True}, GROUPS, {**GROUPS, "nobody": True}, {**GROUPS, "sizes": (1, 2, 1)})],
    *[models.CategoryTable(("a", "b", "c"), missing="skip", **more)
      for more in ({}, {"only": "b"}, {"show": "shares", "nobody": True}, GROUPS, {**GROUPS, "only": "a", "nobody": True}, {**GROUPS, "sizes": (1, 2, 1)})],
    models.CategoryTable(("other", "in"), missing="skip", between=(0.0, 2.0), only="in"),
]  # fmt: skip


def singles(table):
    """The weighted sums that one record can add: of each law, by group where membership is public."""
    values = [-3.0, 7.0, 2.0, 1.0, 0.0, 2.2, -0.9166, 6.0, NAN, NOBODY]
    codes = [[0.0, 1.0, 2.0, NAN, NOBODY]] * len(table.by)
    for value, *groups in itertools.product(values, *codes):
        columns = [np.array([one]) for one in (value, *groups)]
        yield tuple(groups), TableSums(table).of_block(*columns, np.ones(1))


def farthest(table, law):
    weights = np.array([*(table.weights(law) * table.cells), *[1] * table.apart], dtype=object)
    found = [(groups, weights * sums.astype(object)) for groups, sums in singles(table)]
    pairs = itertools.combinations(found, 2)
    public = table.sizes is not None
    moved = [one - other for (here, one), (there, other) in pairs if not public or here == there]
    return max(sum(abs(m)) if law == "laplace" else sum(m**2) for m in moved)


@pytest.mark.parametrize("table", TABLES, ids=repr)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_cell_that_comes_or_goes_moves_a_table_as_far_as_stated(table, law):
    assert farthest(table, law) <= table.reach(law)


def test_a_count_that_weighs_too_much_is_noticed(monkeypatch):
    honest = NumberTable.weights
    monkeypatch.setattr(NumberTable, "weights", lambda self, law: (*honest(self, law)[:2], 2 * honest(self, law)[2]))
    table = NumberTable(-3.0, 7.0, missing="skip")
    assert farthest(table, "laplace") > table.reach("laplace")


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_k_records_of_a_person_cost_k_times_as_much(law, k):
    table, budget = TABLES[0], PURE if law == "laplace" else APPROXIMATE
    plan = od.calibrate(AddedNoise(law), table, budget, n=10, records_per_person=k)
    reach, scale = table.reach(law), Fraction(plan.parameters["scale"]) / Fraction(plan.parameters["refinement"])
    if law == "laplace":
        assert k * reach / scale <= Fraction(plan.parameters["epsilon"])
    else:
        assert k**2 * reach / scale**2 <= Fraction(plan.parameters["mu"]) ** 2


@pytest.mark.parametrize("nobody", [False, True])
def test_squares_about_a_center_are_those_of_a_record_at_it(nobody):
    table = NumberTable(-3.0, 7.0, show="variance", missing="skip", nobody=nobody)
    values, centers = [-3.0, 7.0, 0.0, 2.0, NAN, NOBODY], [0, STEPS // 3, STEPS // 2, STEPS]
    plan = od.calibrate(CenteredNoise(), table, PURE, n=1000)
    reaches = plan.mechanism.reaches(plan)
    for center in centers:
        sums = [CenteredSquares(table).of_block(np.array([value]), np.ones(1), [center]) for value in values]
        assert max(np.abs(a - b).sum() for a, b in itertools.combinations(sums, 2)) <= reaches["squares"]
        assert not sums[-1].any()
        assert not sums[-2].any()
    first = [TableSums(table).of_block(np.array([value]), np.ones(1)) for value in values]
    means = [np.concatenate([one[:1], one[2:]]) for one in first]
    assert max(np.abs(a - b).sum() for a, b in itertools.combinations(means, 2)) <= reaches["mean"]


# ── stages: every sum of the program, on neighbors that differ in k incomplete records ───────────────────────


class Answered:
    """Noise that writes down each sum and gives the same answers on both data sets, as the composition theorem supposes."""

    def __init__(self, answers=None, *, pure=False):
        self.noise, self.answers, self.sums = Noise(seeded_generator(3), pure=pure), answers, []
        self.given = []

    def vector(self, sums, unit, noise, each=None):
        return self._answer(np.asarray(sums) / unit, self.noise.vector(sums, unit, noise, each), each)

    def triangle(self, sums, unit, noise):
        size = round((math.sqrt(8 * len(sums) + 1) - 1) / 2)
        rows, columns = np.tril_indices(size)
        doubled = np.where(rows == columns, 1.0, math.sqrt(2.0))
        return self._answer(np.asarray(sums) / unit * doubled, self.noise.triangle(sums, unit, noise), None)

    def _answer(self, sums, noisy, each):
        self.sums.append(sums if each is None else sums / each)
        self.given.append(noisy if self.answers is None else self.answers[len(self.given)])
        return self.given[-1]


ROWS = {
    "bounds": ([-1.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    "scaled": True,
    "missing": "skip",
    "prior": od.Gaussian(scale=1.0),
}
BALL = {"data_norm": 1.0, "missing": "skip", "prior": od.Gaussian(scale=1.0)}
REGRESSIONS = {
    "logistic": (models.Logistic(3, **ROWS), [0, 1]),
    "least squares": (models.OrdinaryLeastSquares(3, **ROWS, response_bound=1.0), [-1.0, 1.0]),
    "counts": (models.CountRegression(3, **ROWS, largest=5), [0, 5]),
    "classes": (models.Softmax(3, **ROWS, classes=(0, 1, 2)), [0, 2]),
    "quantile": (models.Quantile(3, **ROWS, level=0.25, response_bound=1.0), [-1.0, 1.0]),
}  # fmt: skip
N = 3000


def table_with(last, responses, response_of_last):
    """A table whose last records are these, the others all at one corner."""
    X = np.tile([1.0, 1.0, 0.0], (N, 1))
    y = np.full(N, float(responses[1]))
    X[-len(last) :], y[-len(last) :] = last, response_of_last
    return X, y


def neighbors(responses, k):
    """Tables that differ in their k last records: whole ones at either end, without a cell, without a response."""
    ends = [([1.0, 1.0, 0.0], responses[1]), ([-1.0, 0.0, 1.0], responses[0])]
    incomplete = [([NAN, 1.0, 0.0], responses[1]), ([1.0, 1.0, 0.0], NAN), ([NAN] * 3, NAN)]
    return [table_with(np.tile(row, (k, 1)), responses, y) for row, y in (*ends, *incomplete)]


def moved_by(stages_class, plan, tables, ran):
    """How far each recorded sum of the program is apart on the tables, with the answers of the first."""
    found, answers = [], None
    for data in tables:
        noise = Answered(answers)
        ran(stages_class, plan, data, noise)
        answers = noise.given if answers is None else answers
        found.append(noise.sums)
    return [max(np.linalg.norm(one[place] - found[0][place]) for one in found) for place in range(len(found[0]))]


def run_stages(stages_class, plan, data, noise):
    stages_class(plan.mechanism.target(plan, plan.model.summarise(data)), noise).run()


def in_order(names, reaches):
    """What the recorded sums are, one after another: most stages run once."""
    return [reaches[name] for name in names]


@pytest.mark.parametrize(("name", "k"), [*((name, 1) for name in REGRESSIONS), ("logistic", 4), ("classes", 2)])
def test_averaged_steps_move_as_far_as_stated(name, k):
    model, responses = REGRESSIONS[name]
    plan = od.calibrate(AveragedSteps(categories=((1, 3),)), model, od.ApproxDP(8.0, 1e-6), n=N, records_per_person=k)
    setting, numbers = plan.mechanism.setting(plan.request), plan.mechanism.problem(plan).sizes
    reaches = [k * stage.reach for stage in steps.stages_of(setting, numbers)]
    moved = moved_by(StepsStages, plan, neighbors(responses, k), run_stages)
    assert len(moved) == len(reaches)
    assert moved[0] == k  # the number of records with all cells is counted first
    assert all(one <= reach * (1 + 1e-9) + 1e-6 for one, reach in zip(moved, reaches, strict=True))


@pytest.mark.parametrize(("name", "k"), [("logistic", 1), ("least squares", 4), ("classes", 2)])
def test_clipped_gradients_move_as_far_as_stated(name, k):
    model, responses = REGRESSIONS[name]
    plan = od.calibrate(ClippedGradients(categories=((1, 3),)), model, APPROXIMATE, n=N, records_per_person=k)
    _check_clipped(plan, neighbors(responses, k), k)


def _check_clipped(plan, tables, k):
    setting, numbers = plan.mechanism.problem_setting(plan.request), plan.mechanism.problem(plan).sizes
    reaches = [k * stage.reach for stage in clipped.stages_of(setting, numbers)]
    moved = moved_by(ClippedStages, plan, tables, run_stages)
    assert len(moved) == len(reaches)
    assert moved[0] == k
    assert all(one <= reach * (1 + 1e-9) + 1e-6 for one, reach in zip(moved, reaches, strict=True))


def test_deviations_from_a_center_outside_the_ball_come_and_go_whole(monkeypatch):
    """In a ball two records' deviations differ by 2 at most; one that goes takes all of its own, which may be longer."""
    model = models.Logistic(16, **BALL)
    plan = od.calibrate(ClippedGradients(), model, od.ApproxDP(8.0, 1e-6), n=N)
    whole, gone = np.zeros((N, 16)), np.zeros((N, 16))
    gone[-1] = NAN
    tables = [(X, np.zeros(N)) for X in (whole, gone)]
    shifted = lambda self, sums, unit, noise, each=None: (  # noqa: E731
        Answered._answer(self, np.asarray(sums) / unit, np.full(len(sums), 0.9 * N), each)
    )
    monkeypatch.setattr(Answered, "vector", shifted)
    _check_clipped(plan, tables, 1)
    monkeypatch.setattr(clipped.Setting, "sensitivity", property(lambda self: clipped.Sensitivity(2.0, 2.0)))
    with pytest.raises(AssertionError):
        _check_clipped(plan, tables, 1)


@pytest.mark.parametrize(("pure", "k"), [(True, 1), (True, 4), (False, 2)])
def test_moments_move_as_far_as_stated(pure, k):
    model = models.Columns(3, bounds=ROWS["bounds"], missing="skip")
    plan = od.calibrate(Moments(pure=pure, categories=((1, 3),)), model, APPROXIMATE, n=N, records_per_person=k)
    columns = plan.mechanism.columns(plan.request)
    stages = MomentsNumbers.from_dict(plan.parameters, "it").stages(columns, pure=False)

    def ran(_, plan, data, noise):
        target = plan.mechanism.target(plan, plan.model.summarise(data[0]))
        measure_all(target.records.sum, target.problem, noise)

    moved = moved_by(None, plan, neighbors([0, 1], k), ran)
    assert len(moved) == len(stages)
    assert moved[0] == k
    assert all(one <= k * stage.reach * (1 + 1e-9) + 1e-4 for one, stage in zip(moved, stages, strict=True))


# ── quantiles: the whole law of a small plan ──────────────────────────────────────────────────────────────────


def quantile_law(plan, places, *, published=True):
    """P(number of known cells, place), by the formulas of the proof; None is a missing cell."""
    model, known = plan.model, [place for place in places if place is not None]
    steps, node = model.steps, quantile_tree(model.levels)
    eta, count = (plan.parameters[name] * UNITS / 2**40 for name in ("width_1", "width_known"))
    found = {}
    for noisy in range(-30, 40):
        size = min(max(noisy, 1), plan.n) if published else len(known)
        wanted = node.wanted(len(known), size) / UNITS
        at = np.arange(steps + 1)
        below, up_to = (np.searchsorted(np.sort(known), at, side=side) for side in ("left", "right"))
        distance = np.maximum(0.0, np.maximum(wanted - up_to, below - wanted))
        law = special.softmax(-eta * distance)
        chance = math.tanh(count / 2.0) * math.exp(-count * abs(noisy - len(known)))
        found |= {(noisy, place): chance * p for place, p in enumerate(law)}
    return found


@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.9])
def test_a_quantile_and_the_number_of_known_cells_keep_their_promise(level):
    model = models.ColumnQuantiles((level,), 0.0, 8.0, step=1.0, interval=None, missing="skip")
    plan = od.calibrate(ExponentialQuantiles(), model, od.ZCDP(0.5), n=6)
    stated = 2 * plan.parameters["width_1"] * UNITS / 2**40 + plan.parameters["width_known"] * UNITS / 2**40
    worst = 0.0
    for others in ([0, 0, 3, 8, 8], [4] * 5, [0, None, 8, 8, None], [8, 8, 8, 8, 0]):
        laws = [quantile_law(plan, [*others, last]) for last in (0, 8, 4, None)]
        for one, other in itertools.permutations(laws, 2):
            worst = max(worst, max(math.log(one[key] / other[key]) for key in one))
    assert worst <= stated * (1 + 1e-9)
    assert worst > 0.55 * stated


def test_the_count_is_paid_for_by_every_quantile_plan():
    model = models.ColumnQuantiles((0.25, 0.5), 0.0, 8.0, step=0.5, missing="skip", nobody=True)
    for budget in (PURE, APPROXIMATE, od.ZCDP(0.1)):
        for k in (1, 4):
            plan = od.calibrate(ExponentialQuantiles(), model, budget, n=2000, records_per_person=k)
            free = {name: value for name, value in plan.parameters.items() if not name.startswith("epsilon")}
            assert plan.guarantee.promise.implies(budget)
            with pytest.raises(PromiseRefused):
                plan.mechanism.plan(plan.request, {**free, "width_known": 3 * free["width_known"]})
            with pytest.raises(PromiseRefused):
                plan.mechanism.plan(plan.request, {name: v for name, v in free.items() if name != "width_known"})


def test_the_noise_of_that_count_is_discrete_laplace():
    from onedraw.methods.quantiles.run import laplace_step

    generator, weight = seeded_generator(5), UNITS * 2**18
    drawn = np.array([laplace_step(weight, 40, generator) for _ in range(4000)])
    q = math.exp(-weight / 2**40)
    assert abs(np.mean(drawn == 0) - (1 - q) / (1 + q)) < 0.03
    assert abs(drawn.std() / (math.sqrt(2 * q) / (1 - q)) - 1) < 0.06
    assert with_noise  # the same law by OpenDP, for tables


# ── who does not skip ─────────────────────────────────────────────────────────────────────────────────────────


def test_methods_that_have_to_know_n_refuse_with_the_remedy():
    skipping = {
        AddedNoise,
        AveragedSteps,
        CenteredNoise,
        ClippedGradients,
        ExponentialQuantiles,
        GroupQuantiles,
        Moments,
    }
    others = [one for one in Mechanism.members().values() if one not in skipping]
    assert all(not one.skips for one in others)
    model = REGRESSIONS["logistic"][0]
    for mechanism in (od.Gibbs("gdp"), od.NoisyGradient(), od.PerturbedMode(), od.Diffused(), od.BarkerPath()):
        with pytest.raises(PromiseRefused, match=r"missing: 55"):
            od.calibrate(mechanism, model, APPROXIMATE, n=N)


@pytest.mark.parametrize(
    "model",
    [models.BetaBernoulli(), models.NumberTable(0.0, 1.0), models.CategoryTable(("no", "yes")), models.ColumnQuantiles((0.5,), 0.0, 1.0)],
    ids=repr,
)  # fmt: skip
def test_models_that_do_not_skip_refuse_columns_that_do(model):
    kind = {"kind": "number", "lower": 0, "upper": 1} if "number" in model.kinds else {"kind": "binary"}
    records = read({"v": [1, None]}, Schema.from_dict({"columns": {"v": kind}}), target="v")
    with pytest.raises(InvalidModel, match="missing: skip"):
        model.check(records)
    declared = Schema.from_dict({"columns": {"v": {**kind, "missing": 0}}})
    model.check(read({"v": [1, None]}, declared, target="v"))


def test_rows_refuse_them_too():
    model = models.Logistic(1, bounds=(0.0, 1.0), scaled=True, prior=od.Gaussian(scale=1.0), feature_names=["v"])
    schema = Schema.from_dict({"columns": {"v": {"kind": "number", "lower": 0, "upper": 1}, "ill": {"kind": "binary"}}})
    with pytest.raises(InvalidModel, match="missing: skip"):
        model.check(read({"v": [1], "ill": [1]}, schema, target="ill"))
