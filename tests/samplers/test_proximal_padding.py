"""Padded proximal chains: the proofs of padding.md attacked by quadrature, and work that is the same for every data set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import io_callback
from scipy.stats import binom

import onedraw as od
from onedraw import errors
from onedraw.models import Gaussian, Logistic
from onedraw.models.compute import jax
from onedraw.models.convex.draw_cost import Geometry
from onedraw.models.convex.losses import LogisticLoss
from onedraw.samplers import Perfect, Proximal, proximal_chain, seeded_key
from onedraw.samplers.ball import least_hit
from onedraw.samplers.chains import arguments_for, numbers_of_plan, numbers_of_target
from onedraw.samplers.padding import AT_BALL, MOST_IDLE, PASSES
from onedraw.samplers.preconditioner import curvature_preconditioner, local_quadratic, minimum, most_descent
from onedraw.samplers.proximal import geometry_of, least_accepted, refinements
from onedraw.samplers.proximal_chain import ChainContext, Idle, ProximalSettings, Quota, Tries, _attempt, _idle, chains
from tests.samplers.cases import Array, cdf_on_line, follows, logistic

N = 30


def planned(n: int = N, features: int = 2, radius: float = 2.0) -> od.Plan:
    model = Logistic(features, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=radius))
    return od.calibrate(od.Gibbs("bounded"), model, od.ApproxDP(1.0, 1e-6), n=n)


def data_sets(count: int, n: int = N, features: int = 2, seed: int = 0) -> list[tuple[Array, Array]]:
    """Extreme ones first: all alike, all zero, separated, contradictory, one outlier; then random ones."""
    generator = np.random.default_rng(seed)

    def random() -> tuple[Array, Array]:
        X = generator.standard_normal((n, features)) * 10.0 ** generator.uniform(-3, 0)
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
        return X, generator.integers(0, 2, n).astype(float)

    X, y = random()
    alike, one = np.tile(np.eye(features)[0], (n, 1)), np.zeros((n, features))
    one[0, -1] = 1.0
    known = [
        (alike, np.ones(n)), (alike, np.zeros(n)), (alike, y), (0.0 * X, y), (X, (X[:, 0] > 0.0).astype(float)),
        (X, np.ones(n)), (one, np.ones(n)), (-alike, np.arange(n) % 2.0),
    ]  # fmt: skip
    return [*known, *(random() for _ in range(count - len(known)))][:count]


def target_of(plan: od.Plan, data: tuple[Array, Array]) -> Any:
    return plan.target(plan.model.summarise(data))


# ── the proofs ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.integers(1, 6), st.floats(0.05, 1.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(0.05, 3.0), st.data()
)
@settings(max_examples=25, deadline=None)
def test_a_try_from_a_refined_guess_succeeds_as_often_as_is_proven(terms, m, y, guess, radius, data) -> None:
    """On an interval, all by quadrature: U = mθ²/2 + Σ of softplus with curvatures that add up to M − m."""
    bends = np.array([data.draw(st.floats(-4.0, 4.0)) for _ in range(2 * terms)]).reshape(2, terms)
    slopes, shifts = bends
    bent = max(float((slopes**2).sum()) / 4.0, 1e-6)
    slopes, M = slopes / math.sqrt(bent), m + 1.0
    points = np.linspace(-radius, radius, 20_001)

    def U(x: Any) -> Any:
        return 0.5 * m * np.asarray(x) ** 2 + np.logaddexp(0.0, np.multiply.outer(x, slopes) + shifts).sum(axis=-1)

    def slope(x: float) -> float:
        return float(m * x + (slopes / (1.0 + np.exp(-(slopes * x + shifts)))).sum())

    geometry = Geometry(1, m, M, ball=True)
    eta, a = geometry.step, M + m

    def better(x: float) -> float:
        return float(np.clip(x - (slope(x) + (x - y) / eta) / a, -radius, radius))

    x = float(np.clip(guess, -radius, radius))
    for _ in range(refinements(geometry, diameter=2.0 * radius)):
        x = better(x)
    mode = better(x)
    assert abs(mode - x) <= 0.5 * math.sqrt(1.0 / a) * (1.0 + 1e-9)
    law = np.exp(-(slope(x) * (points - x) + 0.5 * m * (points - x) ** 2 + (points - y) ** 2 / (2.0 * eta)))
    law /= law.sum()
    assert law @ (points - mode) ** 2 <= 1.0 / a * (1.0 + 1e-3)
    excess = U(points) - U(x) - slope(x) * (points - x) - 0.5 * m * (points - x) ** 2
    assert excess.min() > -1e-9
    assert law @ np.exp(-excess) >= least_accepted(geometry)


def test_the_numbers_are_those_of_the_reference() -> None:
    kappa = math.cosh(2.83 / 2.0) ** 2
    geometry = Geometry(6, 1.0 / kappa, 1.0, ball=True, preconditioned=True)
    contraction = (1.0 - 1.0 / kappa) / (6.0 + 1.0 / kappa)
    assert contraction == pytest.approx(0.12713, abs=5e-6)
    assert math.exp(-9.0 / 8.0) <= least_accepted(geometry) == pytest.approx(0.42396, abs=1e-5)
    assert least_accepted(Geometry(500, 1e-9, 1.0, ball=True)) == pytest.approx(math.exp(-9.0 / 8.0), rel=1e-6)
    found = {}
    for n in (10**3, 10**5):
        numbers = numbers_of_plan(planned(n, 6, 2.83), sampler="Proximal")
        assert numbers.smoothness is not None
        found[n] = refinements(geometry, diameter=2.0 * 2.83 * math.sqrt(numbers.smoothness))
    assert found == {10**3: 3, 10**5: 4}
    assert refinements(geometry, diameter=1e-9) == 0
    assert refinements(Geometry(2, 1.0, 1.0, ball=True), diameter=10.0) == 1


@pytest.mark.parametrize("pull", [0.0, 3.0])
def test_the_map_that_refines_contracts_as_is_proven(pull: float) -> None:
    from onedraw.samplers.ball import peak_on_ball

    generator, m, M, d = np.random.default_rng(4), 0.2, 1.0, 3
    a, eta, bend = M * d + m, 1.0 / (M * d), np.diag([0.0, 0.5, 0.8])
    metric = np.array([0.5, 1.0, 30.0])

    def better(x: Array) -> Array:
        slope = metric * (m * x + bend @ np.tanh(x)) + metric * (x - y) / eta
        return np.asarray(peak_on_ball(a * metric, a * metric * x - slope, xp=np))

    for _ in range(200):
        y = pull * generator.standard_normal(d)
        x, z = (v / max(1.0, float(np.linalg.norm(v))) for v in generator.standard_normal((2, d)))
        apart, left = x - z, better(x) - better(z)
        assert (metric * left) @ left <= ((M - m) / a) ** 2 * ((metric * apart) @ apart) * (1.0 + 1e-6)


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_work_is_the_same_for_every_data_set_and_the_draws_are_those_of_an_empty_quota() -> None:
    """The empty quota is a planted fault, too: it is reached early and reported, and tells data sets apart."""
    plan, sampler = planned(), Proximal(gamma=1e-7)
    padding, quota = sampler.padding(plan), sampler._quota(*_geometry(plan))
    assert (padding.work["tries"], padding.work[AT_BALL]) == (quota.tries, quota.at_ball)
    assert binom.cdf(quota.tries - 1, quota.at_ball, least_hit(2)) <= 1e-12  # every try at the records needs a hit
    early: dict[str, set[int]] = {"tries": set(), AT_BALL: set()}
    for seed, data in enumerate(data_sets(10)):
        target = target_of(plan, data)
        padded = sampler.run_padded(target, seeded_key(seed), padding)
        assert padded.diagnostics["work"] == padding.work
        plain = sampler._run(target, seeded_key(seed), 1, Quota(quota.refinements))
        assert np.array_equal(padded.draws, plain.draws)
        for name, found in early.items():
            found.add(plain.diagnostics["work"][name])
    for name, found in early.items():
        assert len(found) > 3
        assert max(found) < padding.work[name]


@dataclass(frozen=True, eq=False)
class CountedLoss(LogisticLoss):
    """It counts how often compiled code evaluates it, on the host while that runs."""

    made: list[int] = field(default_factory=list)

    def value(self, predictor: Any, response: Any) -> Any:
        io_callback(lambda: self.made.append(1), None)
        return super().value(predictor, response)


QUOTA, STEPS = Quota(2, 150, 900), 20


def worked(kernel: Any, quota: Quota, seed: int = 4) -> tuple[Tries, Idle, Idle]:
    """(tries, idle tries, the same idle tries made once more by hand) of a short chain with a loss of one's own."""
    plan = planned()
    target, (_, geometry) = target_of(plan, data_sets(5)[4]), _geometry(plan)
    m, M = geometry.strong_convexity, geometry.smoothness
    preconditioner = curvature_preconditioner(target)
    u, _ = minimum(preconditioner, target, strong_convexity=m, smoothness=M, tolerance=0.01)
    preconditioner, quadratic = local_quadratic(preconditioner, target, u, rotate=False)
    settings = ProximalSettings(geometry.step, geometry.step, m, M, STEPS, quota)
    keys = jax.random.split(seeded_key(seed), 1)
    draws, tries, idle = jax.tree.map(
        lambda one: np.asarray(one)[0],
        chains(kernel, True, True, 1, keys, preconditioner, quadratic, settings, arguments_for(target)),
    )
    jax.effects_barrier()
    context = ChainContext(LogisticLoss(), True, True, preconditioner, quadratic, settings, arguments_for(target))
    ended = preconditioner.axes.T @ draws / preconditioner.scale
    return tries, idle, again(context, jax.random.split(keys[0])[0], ended, idle)


def again(context: ChainContext, key: Any, point: Array, idle: Idle) -> Idle:
    """The idle tries side by side, from the chain's last point."""
    attempt, at_ball = _attempt(context, point)

    def fold(number: Any) -> Any:
        return jax.random.fold_in(key, number)

    _, aimed, accepted = jax.jit(jax.vmap(lambda number: attempt(fold(number))))(np.arange(idle.records))
    records, aimed = int(idle.records), int(aimed.sum())
    _, hits = jax.jit(jax.vmap(lambda number: at_ball(fold(number))))(np.arange(records + aimed, records + idle.ball))
    return Idle(records, int(accepted.sum()), aimed + len(hits), int(hits.sum()))


def honest(kernel: Any, quota: Quota = QUOTA) -> bool:
    """Whether idle tries were made: as many, with the successes they have, and each with a look at the records."""
    tries, idle, repeated = worked(kernel, quota)
    assert (tries.records + idle.records, tries.ball + idle.ball) == (quota.tries, quota.at_ball)  # so much is said
    read = len(kernel.made) == quota.tries + STEPS + 1 if isinstance(kernel, CountedLoss) else True
    return read and tuple(map(int, idle)) == tuple(repeated)


@pytest.mark.parametrize("kernel", [CountedLoss(), LogisticLoss()], ids=["counted", "as compiled"])
def test_idle_tries_are_made_and_not_only_reported(kernel: Any) -> None:
    """Counted, compiled code may not leave an evaluation out; uncounted it might, but knows the successes only if it does not."""
    assert honest(kernel)


def _said(context: Any, key: Any, point: Any, tries: Tries) -> Idle:
    quota = context.numbers.quota
    return Idle(quota.tries - tries.records, 0, quota.at_ball - tries.ball, 0)


def _thrown_away(context: Any, key: Any, point: Any, tries: Tries) -> Idle:
    return _idle(context, key, point, tries)._replace(accepted=0, hits=0)


def _without_records(context: Any, key: Any, point: Any, tries: Tries) -> Idle:
    """Points are proposed and none is looked at: as if all were accepted."""
    blind = context._replace(arguments=(0.0 * context.arguments[0], *context.arguments[1:]))
    return _idle(blind, key, point, tries)


def _ball_unfilled(context: Any, key: Any, point: Any, tries: Tries) -> Idle:
    idle = _idle(context._replace(numbers=context.numbers._replace(quota=QUOTA._replace(at_ball=0))), key, point, tries)
    return idle._replace(ball=context.numbers.quota.at_ball - tries.ball)


@pytest.mark.parametrize("fault", [_said, _thrown_away, _without_records, _ball_unfilled])
def test_idle_tries_that_are_reported_but_not_made_are_caught(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proximal_chain, "_idle", fault)
    assert not honest(CountedLoss())


def _geometry(plan: od.Plan) -> tuple[Any, Geometry]:
    numbers = numbers_of_plan(plan, sampler="Proximal")
    return numbers, geometry_of(numbers)


def test_a_plan_and_its_target_have_the_same_quota() -> None:
    plan = planned()
    numbers = numbers_of_target(target_of(plan, data_sets(1)[0]))
    assert Proximal(gamma=1e-7)._quota(numbers, geometry_of(numbers)) == Proximal(gamma=1e-7)._quota(*_geometry(plan))


def test_every_one_of_several_chains_has_its_quota_and_may_miss_it() -> None:
    model = planned().model
    one, three = (
        Proximal(gamma=1e-9).padding(od.calibrate(od.Gibbs("bounded", weight=0.01), model, od.ApproxDP(1.0, 1e-6), n=N, draws=draws))
        for draws in (1, 3)
    )  # fmt: skip
    assert (one.gamma, three.gamma) == (2e-12, 6e-12)
    for name in ("tries", AT_BALL):
        assert three.work[name] == 3 * one.work[name]


def test_without_a_ball_it_refuses() -> None:
    numbers = {"strong_convexity": 1.0, "smoothness": 2.0}
    plan = SimpleNamespace(
        parameters=numbers, closed_form=False, requires="exact", draws=1, model=SimpleNamespace(parameter_names=("a",))
    )
    with pytest.raises(errors.ExactnessRefused, match=r"Proximal\(\) cannot pad .*radius=…"):
        Proximal(gamma=1e-7).padding(plan)  # type: ignore[arg-type]


@pytest.mark.parametrize(("sampler", "n"), [(Proximal(gamma=1e-7), 10**9), (Perfect(), N)])
def test_a_descent_of_more_steps_than_anybody_waits_for_is_refused_with_their_number(sampler: Any, n: int) -> None:
    """κ = cosh²(radius/2) for features of length 1: below and above what a million steps allow."""
    few, many = (planned(n, radius=radius) for radius in (10.8, 11.0))
    assert sampler.padding(few).passes > 0.9 * MOST_IDLE
    kappa = math.cosh(11.0 / 2.0) ** 2
    steps = most_descent(1.0 / kappa, 1.0)
    assert steps > MOST_IDLE
    with pytest.raises(
        errors.ExactnessRefused, match=rf"{steps:,} passes .*1,000,000 .*smaller ball .*Nothing was spent"
    ):
        sampler.padding(many)
    sampler.exactness(many)  # without padding nothing is in the way


@pytest.mark.slow
@pytest.mark.statistical
def test_padded_draws_follow_the_posterior(test_seed: int) -> None:
    case = logistic(1, weight=2.0, radius=2.0)
    sampler = Proximal(gamma=1e-4)
    numbers = numbers_of_target(case.target)
    quota = sampler._quota(numbers, geometry_of(numbers))
    draws = sampler._run(case.target, seeded_key(test_seed), 4096, quota).draws[:, 0]
    assert follows(draws, cdf_on_line(case.potential, -2.0, 2.0))
    assert not follows(draws, cdf_on_line(lambda points: 1.5 * case.potential(points), -2.0, 2.0))


@pytest.mark.slow
def test_fifty_data_sets_a_hundred_chains_each_make_the_same_passes() -> None:
    """No chain makes fewer tries than its quota says, so a sum that is as small as it can be shows that none made more."""
    plan, sampler = planned(), Proximal(gamma=1e-7)
    padding = sampler.padding(plan)
    for number, data in enumerate(data_sets(50)):
        found = sampler.run_padded(target_of(plan, data), seeded_key(number), padding, size=100).diagnostics["work"]
        for name in ("tries", AT_BALL):
            assert found[name] == 100 * padding.work[name]
        assert found[PASSES] < 100 * padding.work[PASSES]
