"""Standard errors by person: how far a person can move their covariance, what they cover, and what a fit without them says (sums.py, sizes.py)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.data.person_sums import ByPerson, passes_by_person, sum_by_person
from onedraw.data.persons import NOBODY, owners_by_key
from onedraw.errors import CertificateRejected, WrongCall
from onedraw.methods import calibrate
from onedraw.methods.fit import AveragedSteps, sums
from onedraw.methods.fit.mechanism import INDEPENDENT
from onedraw.methods.fit.result import StepsResult
from onedraw.methods.fit.run import Stages, passes_of, vector_steps
from onedraw.methods.fit.scores import score_of
from onedraw.methods.fit.sizes import COVARIANCE_SHARE, covariance_bound, person_square
from onedraw.methods.fit.sums import PersonCovariance, RecordScores, Responses, StepRows
from onedraw.models.moments.measured import Layout
from onedraw.models.sums.exact_sums import gram_steps, held
from onedraw.planning import ask
from onedraw.plans import Plan
from onedraw.release import release, verify
from onedraw.release.verification import check_schema
from onedraw.samplers.noise import Noise

from .cases import BUDGET, KINDS, TRUTH, model_of, plan_of, table_of
from .test_fit_sensitivities import ODD, ROUNDING, squared_norm, uncut

K = 4


@cache
def plan_by_person(kind: str, n: int, budget: Any = BUDGET, *, records: int = K, persons: bool = True) -> Plan:
    plan: Plan = calibrate(AveragedSteps(persons=persons), model_of(kind), budget, n=n, records_per_person=records)
    return plan


# The sensitivity, attacked: every table of two records of one person among others'

RECORDS = [((1.0, 1.0), 4.0), ((1.0, 1.0), -4.0), ((-1.0, 1.0), 4.0), ((0.1, 0.0), 0.1)]
"""Opposite and orthogonal scores, long and short."""

OTHERS = [((1.0, 1.0), 4.0), ((0.3, -0.2), 1.0), ((0.0, 0.0), 0.0)]
"""Two records of somebody else and the missing record, of nobody."""

NEITHER, BOTH = ("N", "N"), (None, None)


def summed(records: Any, names: Any, radius: float, *, own: Any = None, factor: float = 1.0) -> list[int]:
    """Return the covariance of two records in places 0 and 3 under these names, beside the others'."""
    table = [records[0], OTHERS[0], OTHERS[2], records[1], OTHERS[1]]
    whose = [names[0], "C", None, names[1], "C"]
    keys = np.array([0 if name is None else ord(name) for name in whose], dtype=np.uint64)
    owners = owners_by_key(keys, keys == 0) if own is None else own(keys)
    X, y = np.array([[*row, 1.0] for row, _ in table]), np.array([y for _, y in table])
    score, layout, n = score_of(model_of("number")), Layout(2), len(table)
    rows = held(X, y).read_as(Responses(score.scale, score.shift))
    rows = rows.read_as(StepRows(layout, score), np.zeros(2), np.eye(2), 0.0, 0.25)
    fine, steps, bound = vector_steps(2.0, n), gram_steps(radius**2, n), 2.0
    by = ByPerson(RecordScores(score), (fine, bound, np.zeros(3), 1.0 / factor), 3)
    return [int(value) for value in sum_by_person(rows, owners, by, PersonCovariance(), steps, radius, fine)]


def farthest(radius: float, namings: Any, **options: Any) -> float:
    """Return how far replacing both records moves the sum, in units of B_P²."""
    before = [summed(pair, ("A", "A"), radius, **options) for pair in product(RECORDS, repeat=2)]
    after = [summed(pair, names, radius, **options) for pair in product(RECORDS, repeat=2) for names in namings]
    moved = max(squared_norm([a - b for a, b in zip(*both, strict=True)], True) for both in product(before, after))
    unit = (Fraction(radius) * Fraction(gram_steps(radius**2, 5))) ** 2
    return float(Fraction(moved) / unit**2) ** 0.5


@pytest.mark.parametrize("radius", [1.0, 2.5, 10.0])
def test_replaced_person_moves_the_covariance_by_at_most_root_two(radius: float) -> None:
    """Also where the new records name nobody, all of them or one."""
    found = farthest(radius, (NEITHER, BOTH, ("N", None), (None, "N")))
    assert found <= np.sqrt(2.0 * float(ROUNDING))
    if radius == 1.0:  # then sums that are orthogonal are as long as this
        assert found > 0.99 * np.sqrt(2.0)


def test_records_that_pass_to_several_persons_would_move_it_farther() -> None:
    """Why neighbors replace a person by one person: k new ones would need √(1 + k²)."""
    found = farthest(1.0, (("N", "M"),))
    assert 1.05 * np.sqrt(2.0) < found <= np.sqrt(1.0 + 2.0**2 * float(ROUNDING))


def test_owner_for_every_record_is_caught() -> None:
    """The planted fault: each record counts for a person of its own."""
    assert farthest(1.0, (NEITHER,), own=lambda keys: np.arange(len(keys))) > 1.4 * np.sqrt(2.0)


def test_sums_that_are_not_shortened_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(PersonCovariance, "of_block", lambda self, *given: self.block(*given))
        patched.setattr(sums, "cut", uncut)
        assert farthest(1.0, (NEITHER,), factor=1.5) > 4.0


@pytest.mark.parametrize("factor", ODD[:-1])
def test_norms_hold_at_absurd_numbers(factor: float) -> None:
    for pair in product(RECORDS, repeat=2):
        total = summed(pair, ("A", "A"), 1.0, factor=factor)
        unit = Fraction(gram_steps(1.0, 5)) ** 2
        assert squared_norm(total, True) <= (2 * unit) ** 2 * ROUNDING


# The plan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [20_000, 2_000_000])
def test_length_of_a_person_lies_between_independent_and_equal_records(kind: str, n: int) -> None:
    plan = plan_by_person(kind, n)
    setting = plan.mechanism.setting(plan.request)  # type: ignore[attr-defined]
    one = covariance_bound(setting, plan.parameters["step_bound"]) ** 2
    square = plan.parameters["covariance_radius"] ** 2
    assert K * one * (1 - 1e-9) <= square <= K**2 * one * (1 + 1e-9)
    if kind in ("number", "label"):
        assert square == pytest.approx(K**2 * one) if n == 2_000_000 else square < 0.9 * K**2 * one
    assert person_square(setting, plan.parameters["step_bound"], 1e-9) == pytest.approx(K * one)


def test_promise_counts_a_person_once_in_the_covariance_and_k_times_elsewhere() -> None:
    plan, numbers = plan_by_person("number", 20_000), plan_by_person("number", 20_000).parameters
    mu = plan.guarantee.promise.gaussian_mu  # type: ignore[attr-defined]
    ratio = np.sqrt(2.0) * numbers["covariance_radius"] ** 2 / numbers["covariance_noise"]
    assert (ratio / mu) ** 2 == pytest.approx(COVARIANCE_SHARE, rel=1e-6)
    step = K * 2.0 * numbers["step_bound"] * np.sqrt(30) / numbers["step_noise"]
    assert 0.3 < (step / mu) ** 2 < 0.8


@pytest.mark.parametrize("records", [2, 4, 9])
def test_all_but_the_sum_by_person_is_promised_k_times(records: int) -> None:
    one = plan_by_person("number", 100_000, od.GaussianDP(0.3), records=1)
    several = one.mechanism.plan(
        replace(one.request, records_per_person=records, budget=od.GaussianDP(9.0)), one.parameters
    )
    person = np.sqrt(2.0) * one.parameters["covariance_radius"] ** 2 / one.parameters["covariance_noise"]
    alone, together = (plan.guarantee.promise.gaussian_mu**2 - person**2 for plan in (one, several))  # type: ignore[attr-defined]
    assert together == pytest.approx(records**2 * alone, rel=1e-6)


def test_half_the_noise_is_refused_as_a_plan() -> None:
    plan = plan_by_person("number", 20_000)
    halved = dict(plan.parameters) | {"covariance_noise": plan.parameters["covariance_noise"] / 2.0}
    with pytest.raises(od.errors.PromiseRefused):
        plan.mechanism.plan(plan.request, halved)


def test_passes_are_public_and_counted() -> None:
    problem = plan_by_person("number", 20_000).mechanism.problem(plan_by_person("number", 20_000))  # type: ignore[attr-defined]
    alone = replace(problem, persons=False)
    assert passes_of(problem) - passes_of(alone) == passes_by_person(20_000, 3) - 1 == 1


# Coverage, on persons who are alike


def alike(kind: str, n: int, seed: int, *, share: float = 0.8) -> tuple[Any, np.ndarray]:
    """Simulate persons with K records: one column and most of the error are the person's."""
    rng = np.random.default_rng([seed, n])
    person = np.repeat(np.arange(n // K), K)
    X = np.column_stack([rng.uniform(-1, 1, n // K)[person], rng.uniform(-1, 1, n)])
    u = X @ TRUTH[:2] + TRUTH[2]
    shared, own = rng.standard_normal(n // K)[person], rng.standard_normal(n)
    errors = np.sqrt(share) * shared + np.sqrt(1.0 - share) * own
    if kind == "number":
        return (X, u + 0.5 * errors), person * K
    from scipy import stats

    return (X, (u + stats.logistic.ppf(stats.norm.cdf(errors)) > 0.0).astype(int)), person * K


def fitted(plan: Plan, table: Any, owners: Any, seed: int) -> StepsResult:
    target = replace(plan.target(plan.model.summarise(table)), whose=owners)
    published = Stages(target, Noise(np.random.default_rng(seed), pure=False)).run()
    found = plan.mechanism.result(plan, published.to_dict())  # type: ignore[attr-defined]
    assert isinstance(found, StepsResult)
    return found


@cache
def covered(kind: str, persons: bool, *, runs: int = 120, n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """Return coverage of 95 % intervals and median standard error over realized error, of each coefficient."""
    plan = plan_by_person(kind, n, od.ApproxDP(5.0, 1e-6), persons=persons)
    results = [fitted(plan, *alike(kind, n, seed), seed) for seed in range(runs)]
    errors = np.array([one.estimate for one in results]) - TRUTH
    given = np.array([one.standard_errors for one in results])
    assert np.isfinite(given).all()
    return (np.abs(errors) < 1.96 * given).mean(axis=0), np.median(given, axis=0) / np.sqrt((errors**2).mean(axis=0))


@pytest.mark.parametrize("kind", ["number", "label"])
def test_intervals_by_person_cover_where_records_of_one_person_are_alike(kind: str) -> None:
    """Seeds are fixed. Of 120 intervals that cover 95 %, fewer than 106 (88 %) do with probability 0.002."""
    coverage, printed = covered(kind, True)
    assert coverage.min() >= 0.90
    assert printed.min() >= 0.85
    assert printed.max() <= 1.25


@pytest.mark.parametrize("kind", ["number", "label"])
def test_intervals_by_record_are_too_narrow_there(kind: str) -> None:
    """The column and the intercept that persons share; what varies within a person is covered either way."""
    coverage, printed = covered(kind, False)
    _, by_person = covered(kind, True)
    assert coverage[2] <= 0.90  # the intercept, which no allowance widens
    assert (printed / by_person)[[0, 2]].max() <= 0.9
    assert coverage[1] >= 0.90


def test_errors_by_person_are_those_by_record_where_records_are_independent() -> None:
    n, kind = 20_000, "number"
    ratios = []
    for seed in range(20):
        table, owners = alike(kind, n, seed, share=0.0)
        two = [fitted(plan_by_person(kind, n, persons=persons), table, owners, seed) for persons in (True, False)]
        ratios.append(two[0].standard_errors / two[1].standard_errors)
    assert np.median(ratios, axis=0) == pytest.approx(1.0, abs=0.1)


# Records that say whose they are, and records that do not

COLUMNS: dict[str, Any] = {
    "dose": {"kind": "number", "lower": -1, "upper": 1, "missing": 0},
    "age": {"kind": "number", "lower": -1, "upper": 1, "missing": 0},
    "cost": {"kind": "number", "lower": -4, "upper": 4, "missing": 0},
}


def schema_of(**persons: Any) -> od.Schema:
    return od.Schema.from_dict({"dataset": "visits", **persons, "columns": COLUMNS})


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    (X, y), owners = alike("number", 8000, 3)
    frame = pd.DataFrame({"dose": X[:, 0], "age": X[:, 1], "cost": y, "who": [f"p{owner}" for owner in owners]})
    frame.loc[::97, "who"] = None
    return frame.sample(frac=1.0, random_state=1, ignore_index=True)


def test_schema_with_persons_plans_by_person_and_releases(visits: pd.DataFrame, tmp_path: Any) -> None:
    planned = od.plan(schema_of(person="who", max_records=K), "cost", "linear", epsilon=3.0, n=8000, mechanism="fit")
    assert planned.plan.mechanism.by_person
    found = planned.release(visits, random_state=1, out=tmp_path / "r.json")
    assert verify(tmp_path / "r.json").answer == "consistent"
    assert found.fit.problem.persons
    assert not any("independent" in one.statement for one in found.certificate.assumptions)
    assert any("a person's scores are added up" in one.statement for one in found.certificate.assumptions)
    assert "independent" not in str(found.summary())
    assert found.plan == planned.plan


def test_release_is_the_same_from_memory_and_from_a_stream(visits: pd.DataFrame, tmp_path: Any) -> None:
    schema = schema_of(person="who", max_records=K)
    plan = od.plan(schema, "cost", "linear", epsilon=3.0, n=8000, mechanism="fit").plan
    visits.to_csv(tmp_path / "v.csv", index=False)
    measure = ask(schema, "cost", "linear").measure
    drawn = []
    for source, memory in ((visits, None), (tmp_path / "v.csv", None), (visits, 0)):
        records = od.read(source, schema, target="cost", measure=measure, memory=memory)
        drawn.append(release(plan, records, random_state=2).certificate.draw.stages)
    assert drawn[0] == drawn[1] == drawn[2]


def test_persons_count_only_where_they_have_several_records() -> None:
    for persons, expected in (({"person": "who", "max_records": 4}, True), ({"person": "who"}, False), ({}, False)):
        plan = od.plan(schema_of(**persons), "cost", "linear", epsilon=1.0, n=20_000, mechanism="fit").plan
        assert plan.mechanism.by_person is expected
        assert ("persons" in plan.mechanism.to_dict()) is expected


def test_plan_says_what_records_that_are_alike_cost() -> None:
    named, alone = ({"person": "who", "max_records": 4}, {})
    said = [
        od.plan(schema_of(**one), "cost", "linear", epsilon=1.0, n=20_000, mechanism="fit").choices
        for one in (named, alone)
    ]
    assert "up to 2 times as large where one person's records are alike" in said[0].expectation
    assert "alike" not in said[1].expectation


def test_certificate_without_a_column_of_persons_is_rejected(visits: pd.DataFrame, tmp_path: Any) -> None:
    planned = od.plan(schema_of(person="who", max_records=K), "cost", "linear", epsilon=3.0, n=8000, mechanism="fit")
    certificate = planned.release(visits, random_state=1).certificate
    data = certificate.data.model_copy(update={"person": None, "declared": None})
    with pytest.raises(CertificateRejected, match="names no column of persons"):
        check_schema(certificate.model_copy(update={"data": data}), planned.plan)


def test_estimator_with_a_schema_adds_up_by_person(visits: pd.DataFrame) -> None:
    schema = schema_of(person="who", max_records=K)
    fit = od.DPLinearRegression(3.0, schema=schema, target="cost", random_state=0).fit(visits)
    assert fit.choice_.best.mechanism.by_person


def test_arrays_are_refused_before_the_charge() -> None:
    with pytest.raises(WrongCall, match="do not say whose a record is"):
        release(plan_by_person("number", 8000, od.ApproxDP(3.0, 1e-6)), table_of("number", 8000))


def test_fit_of_several_records_without_persons_says_what_it_takes_for_granted() -> None:
    plan = plan_of("number", 8000, records=K)
    found = release(plan, table_of("number", 8000))
    assert INDEPENDENT in [one.statement for one in found.certificate.assumptions]
    assert "take the records of one person for independent" in str(found.summary())
    assert plan_of("number", 8000).guarantee.assumptions[-1].statement != INDEPENDENT


def test_records_of_nobody_change_no_sum_but_their_own() -> None:
    plan = plan_by_person("number", 8000, od.ApproxDP(3.0, 1e-6))
    (X, y), owners = alike("number", 8000, 5)

    class Silent(Noise):
        def _each(self, sums: Any, deviations: Any) -> Any:
            return sums

    some = np.where(np.arange(8000) < 4000, owners, NOBODY)
    target = replace(plan.target(plan.model.summarise((X, y))), whose=some)
    half = Stages(target, Silent(np.random.default_rng(0), pure=False)).run()
    full = Stages(replace(target, whose=owners), Silent(np.random.default_rng(0), pure=False)).run()
    assert np.array_equal(half.step, full.step)
    assert half.covariance[0] == pytest.approx(0.5 * full.covariance[0], rel=0.1)
