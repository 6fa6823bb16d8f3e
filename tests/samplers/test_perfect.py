"""Exact draws on a ball by rejection: the law against quadrature and against the chain, the work against its bound, the defence
against a wrong envelope, and what rounding may do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, nbinom

import onedraw as od
from onedraw.errors import ExactnessRefused, Unfinished
from onedraw.models import Gaussian, Logistic
from onedraw.models.compute import jax
from onedraw.models.convex.draw_cost import GAP, least_acceptance, most_tries
from onedraw.models.convex.losses import LogisticLoss
from onedraw.models.convex.regression import HuberRegression
from onedraw.privacy import Exact, Exactness
from onedraw.samplers import Perfect, Proximal, Sampler, default_sampler, seeded_generator
from onedraw.samplers.perfect import WrongEnvelope, touching
from onedraw.samplers.preconditioner import curvature_preconditioner, minimum
from tests.samplers.cases import ALPHA, Array, Case, gibbs_target, huber, logistic, passes, rows

DRAWS = 8_000

CASES = {
    "disc": logistic(2, weight=40.0, scale=0.2, radius=2.0, pull=True),
    "disc, minimum on its edge": logistic(2, weight=40.0, radius=0.8, pull=True),
    "disc, wide": logistic(2, weight=30.0, radius=3.0),
    "disc, small": logistic(2, weight=2.0, radius=0.03),
    "interval": logistic(1, weight=2.0, radius=2.0),
    "squares by another name": huber(2, weight=0.5, threshold=50.0, radius=0.6),
}


def kappa(bound: float) -> float:
    return math.cosh(bound / 2) ** 2


# ── the law ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_it_follows_the_posterior(name: str, test_seed: int) -> None:
    case = CASES[name]
    draws = Perfect().run(case.target, seeded_generator(test_seed), size=DRAWS).draws
    assert (np.linalg.norm(draws, axis=1) <= case.target.radius).all()
    assert passes(draws, case)


@pytest.mark.statistical
def test_from_any_point_of_the_ball_the_law_is_the_same(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a point far from the minimum there are more tries, and the same law."""
    case = CASES["disc, wide"]
    ordinary = Perfect().run(case.target, seeded_generator(test_seed), size=2000).diagnostics["tries"]
    monkeypatch.setattr(
        "onedraw.samplers.perfect.minimum", lambda *a, **k: (minimum(*a, **k)[0] + np.array([0.04, -0.02]), {})
    )
    sample = Perfect().run(case.target, seeded_generator(test_seed), size=2000)
    assert passes(sample.draws, case)
    assert sample.diagnostics["tries"] > 1.2 * ordinary


@pytest.mark.statistical
def test_a_weight_five_percent_too_large_is_rejected(test_seed: int) -> None:
    heavier = logistic(2, weight=42.0, scale=0.2, radius=2.0, pull=True)
    draws = Perfect().run(heavier.target, seeded_generator(test_seed), size=5000).draws
    assert passes(draws, heavier)
    assert not passes(draws, CASES["disc"])


@pytest.mark.statistical
def test_an_excess_that_is_left_out_is_rejected(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onedraw.samplers.perfect.Envelope.excess", lambda self, points: np.zeros(len(points)))
    case = CASES["disc, wide"]
    assert not passes(Perfect().run(case.target, seeded_generator(test_seed), size=5000).draws, case)


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_proposal_and_acceptance_together_are_the_potential(name: str) -> None:
    """−log of a proposal's density and the excess add up to U, but for a constant: at points, so that no fault of any size hides
    behind the number of draws."""
    case = CASES[name]
    target, d = case.target, case.target.dimension
    assert target.radius is not None
    envelope, _ = touching(target)
    points = np.random.default_rng(8).standard_normal((200, d))
    points *= target.radius * np.random.default_rng(9).random((200, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    law = envelope.law
    proposed = 0.5 * np.einsum("ij,jk,ik->i", points, law.precision, points) - points @ law.linear
    left = proposed + envelope.excess(points) - case.potential(points)
    assert np.ptp(left) <= 1e-11 * (1.0 + np.ptp(case.potential(points)))


# ── six dimensions, B = 2.83, PureDP(1), ten thousand records ───────────────────────────────────────────────────

BOUND, D = 2.83, 6


def model_of(scale: float = 1.0, columns: int = D, bound: float = BOUND) -> Logistic:
    return Logistic(columns, data_norm=1.0, intercept=False, prior=Gaussian(scale=scale, radius=bound))


def data_sets(n: int) -> dict[str, tuple[Array, Any]]:
    generator = np.random.default_rng(16)
    X = generator.standard_normal((n, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    positive = np.where(X[:, :1] < 0.0, -X, X)  # all rows on one side, so that equal labels pull to the edge
    labels = (generator.random(n) < 1.0 / (1.0 + np.exp(-X @ np.full(D, 1.0)))).astype(int)
    copies = np.repeat(X[: n // 100], 100, axis=0)
    return {
        "as the model has it": (X, labels),
        "all labels 1": (positive, np.ones(n, dtype=int)),
        "duplicated rows": (copies, np.repeat(labels[: n // 100], 100)),
    }


@pytest.mark.parametrize("name", data_sets(100))
def test_two_hundred_draws_take_fewer_tries_than_the_bound(name: str, test_seed: int) -> None:
    n = 10_000
    plan = od.calibrate(od.Gibbs("bounded"), model_of(), od.PureDP(1.0), n=n)
    target = plan.target(plan.model.summarise(data_sets(n)[name]))
    tries = Perfect().run(target, seeded_generator(test_seed), size=200).diagnostics["tries"]
    print(f"{name}: {tries / 200:.1f} tries a draw, at most {most_tries(kappa(BOUND), D):.1f} on average")
    assert tries / 200 <= 107


@pytest.mark.statistical
def test_the_bound_is_nearly_attained_and_kept_where_labels_cancel(test_seed: int) -> None:
    """Where φ'' is largest all over the posterior the probability to accept is hardly above κ^{−d/2}."""
    X = np.random.default_rng(1).standard_normal((4000, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X, labels = np.concatenate([X, X]), np.repeat([0, 1], 4000)
    sample = Perfect().run(gibbs_target(model_of(10.0), X, labels, 1.0), seeded_generator(test_seed), size=200)
    tries, least = sample.diagnostics["tries"], least_acceptance(kappa(BOUND), D, gap=GAP)
    print(f"{tries / 200:.1f} tries a draw")
    assert tries / 200 >= 60
    assert nbinom.sf(tries - 200, 200, least) >= ALPHA


@pytest.mark.slow
@pytest.mark.statistical
def test_draws_agree_with_the_proximal_chain_and_a_weight_five_percent_off_does_not(test_seed: int) -> None:
    """A prior as strong as the records, so that their weight shows in where the posterior is."""
    n, size = 400, 5000
    X, y = data_sets(n)["all labels 1"]
    right, wrong = (gibbs_target(model_of(0.3), X, y, factor * 3.0 / (2 * BOUND)) for factor in (1.0, 1.05))
    chain = Proximal(gamma=1e-6).run(right, jax.random.key(test_seed % 2**63), size=size).draws
    exact, faulty = (
        Perfect().run(target, seeded_generator(test_seed), size=size).draws for target in (right, wrong)
    )  # fmt: skip
    agree = [ks_2samp(chain[:, i], exact[:, i]).pvalue for i in range(D)]
    differ = [ks_2samp(chain[:, i], faulty[:, i]).pvalue for i in range(D)]
    print(f"p-values by coordinate: right {min(agree):.3g}, weight × 1.05 {min(differ):.3g}")
    assert min(agree) > ALPHA
    assert min(differ) < ALPHA


# ── the work, by quadrature ──────────────────────────────────────────────────────────────────────────────────────


def accepted_share(case: Case, centre: Array) -> tuple[float, float]:
    """(the probability to accept a try, its bound) of an envelope that touches at ``centre``, on a disc by quadrature."""
    target, radius = case.target, case.target.radius
    assert radius is not None
    nodes, weights = np.polynomial.legendre.leggauss(96)
    r, angle = radius * (nodes + 1) / 2, 2 * np.pi * np.arange(96) / 96
    points = (r[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)).reshape(-1, 2)
    mass = np.repeat(weights * r, len(angle))
    g, X = np.asarray(target.gradient(centre)), target.encoded.X
    least, largest = target.model.curvature_range
    A, z = np.diag(target.precision) + target.weight * least * X.T @ X, points - centre
    quadratic = z @ g + 0.5 * np.einsum("ij,jk,ik->i", z, A, z)
    excess = case.potential(points) - case.potential(centre) - quadratic
    assert excess.min() >= -1e-9
    below = mass * np.exp(-(quadratic - quadratic.min()))
    gap = max(0.0, float(g @ centre + radius * np.linalg.norm(g)))
    kept = float((below * np.exp(-excess)).sum() / below.sum())
    return kept, least_acceptance(largest / least, 2, gap=gap * (1.0 - math.sqrt(least / largest)))


def test_a_try_is_accepted_at_least_as_often_as_proved_from_the_minimum_and_from_anywhere_else() -> None:
    generator, ratios = np.random.default_rng(216), []
    for _ in range(12):
        weight, radius = 10.0 ** generator.uniform(-1.0, 2.0), generator.uniform(0.3, 4.0)
        case = logistic(
            2, weight=weight, radius=radius, scale=10.0 ** generator.uniform(-1, 1), pull=generator.random() < 0.5
        )
        preconditioner, (least, largest) = curvature_preconditioner(case.target), case.target.model.curvature_range
        u, _ = minimum(preconditioner, case.target, strong_convexity=least / largest, smoothness=1.0, tolerance=GAP)
        at_minimum = np.asarray(preconditioner.theta(u))
        anywhere = generator.standard_normal(2)
        anywhere *= radius * generator.random() / np.linalg.norm(anywhere)
        for centre in (at_minimum, anywhere):
            kept, bound = accepted_share(case, centre)
            assert kept >= bound * (1.0 - 1e-9)
            ratios.append(kept / bound if bound > 0.0 else math.inf)
    print(f"the least ratio to the bound is {min(ratios):.4f}")


def test_the_reference_ratios_tries_and_quotas() -> None:
    """Curvature ratios of the logistic loss to every digit printed, the table of κ^{d/2}, and enough tries for all but 1e-12."""
    assert [f"{kappa(b):.6f}" for b in (1, 2, 2.83, 4)] == ["1.271540", "2.381098", "4.751118", "14.154116"]
    for b, ratio in ((1.0, 1.271540), (2.0, 2.381098), (2.83, 4.751118), (4.0, 14.154116)):
        assert model_of(bound=b).bounds["curvature_ratio"].value == pytest.approx(ratio, abs=5e-7)
    table = {
        1: (1.43, 2.06, 3.32, 6.06),
        2: (3.67, 13.5, 76.5, 670),
        2.83: (10.4, 107, 2421, 1.2e5),
        4: (53.3, 2836, 5.7e5),
    }
    for b, line in table.items():
        for d, tries in zip((3, 6, 10, 15), line, strict=False):
            assert most_tries(kappa(b), d) == pytest.approx(tries, rel=8e-3)
    for d, quota in ((6, 2950), (3, 273)):
        least = least_acceptance(kappa(2.83), d)
        assert math.ceil(math.log(1e-12) / math.log1p(-least)) == quota
        within = least_acceptance(kappa(2.83), d, gap=GAP)
        assert math.ceil(math.log(1e-12) / math.log1p(-within)) <= 1.1 * quota


# ── a wrong envelope, and rounding ───────────────────────────────────────────────────────────────────────────────


def at_the_edge(n: int = 300) -> tuple[Logistic, Array, Any]:
    """Equal rows with equal labels: predictors press against B, where the curvature is least."""
    return model_of(columns=2, bound=2.0), np.tile([1.0, 0.0], (n, 1)), np.ones(n, dtype=int)


def test_an_acceptance_above_one_stops_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    model, X, y = at_the_edge()
    plan = od.calibrate(od.Gibbs("bounded"), model, od.PureDP(4.0), n=len(X))
    od.release(plan, (X, y), random_state=1)
    right = LogisticLoss.curvatures
    monkeypatch.setattr(LogisticLoss, "curvatures", lambda *a: (1.2 * right(*a)[0], right(*a)[1]))
    with pytest.raises(WrongEnvelope, match="probability above 1"):
        od.release(plan, (X, y), random_state=1)
    with pytest.raises(Unfinished, match="WrongEnvelope"):
        od.release(plan, (X, y), random_state=1, out=tmp_path / "draw.json")
    assert not (tmp_path / "draw.json").exists()


WIDE = np.longdouble


def softplus(u: Any) -> Any:
    return np.logaddexp(WIDE(0), u)


SIMPLE = {
    "logistic": (model_of(bound=12.0), 1, lambda u: softplus(-u), lambda u: -1 / (1 + np.exp(u))),
    "squares": (
        HuberRegression(2, threshold=60.0, response_bound=20.0, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=2.0)),
        20.0, lambda u: (u - 20) ** 2 / 2, lambda u: u - 20,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
def test_rounding_is_far_within_what_is_granted_to_it(name: str) -> None:
    """Beside numbers of more digits, at the ends of the range and where predictors hardly differ."""
    model, response, loss, slope = SIMPLE[name]
    X = rows(50, model.dimension)
    X[::3], X[1::7] = X[0], -X[0]
    target = gibbs_target(model, X, np.full(50, response), 3.0)
    envelope, _ = touching(target)
    points = np.random.default_rng(7).standard_normal((64, model.dimension))
    points *= model.prior.radius / np.linalg.norm(points, axis=1, keepdims=True)
    points[1:9] = points[0] * np.logspace(-16, -1, 8)[:, None]
    touched, least = np.asarray(envelope.touched.predictors).astype(WIDE), WIDE(model.curvature_range[0])
    away = points.astype(WIDE) @ target.encoded.X.astype(WIDE).T - touched
    true = 3 * (loss(touched + away) - loss(touched) - slope(touched) * away - least * away**2 / 2).sum(axis=1)
    error = np.abs(envelope.excess(points) - true.astype(float)).max()
    print(f"{name}: off by {error:.2g}, {envelope.rounding:.2g} are granted")
    assert error < 1e-3 * envelope.rounding
    assert envelope.rounding < 1e-3


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308, -1e-308, "1e400"], ids=str)
def test_one_odd_cell_neither_fails_nor_is_seen_beyond_its_bound(odd: Any) -> None:
    """The law with the odd record is the law with the record it becomes, and that one lies within the declared bounds."""
    model, n = model_of(columns=2, bound=2.0), 40
    X, y = rows(n, 2), np.tile([0, 1], n // 2)
    broken = X.copy()
    broken[3, 1] = float(odd)
    plan = od.calibrate(od.Gibbs("bounded"), model, od.PureDP(1.0), n=n)
    release = od.release(plan, (broken, y), random_state=5)
    assert np.isfinite(release.draw).all()
    assert od.verify(release)
    clean, dirty = (plan.target(model.summarise((table, y))) for table in (X, broken))
    assert np.linalg.norm(dirty.encoded.X[3]) <= 1.0 + 1e-12
    angles = np.linspace(0.0, 2 * np.pi, 50)
    places = np.concatenate([r * np.stack([np.cos(angles), np.sin(angles)], axis=1) for r in (0.5, 1.0, 2.0)])
    moved = np.array([float(clean.potential(p) - dirty.potential(p)) for p in places])
    assert np.ptp(moved) <= 1.0 + 1e-9


# ── choice and promise ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_pure_release_says_exact_draw_and_delta_zero() -> None:
    X, y = data_sets(10_000)["as the model has it"]
    plan = od.calibrate(od.Gibbs("bounded"), model_of(), od.PureDP(1.0), n=len(X))
    sampler, why = default_sampler(plan)
    assert (sampler, sampler.exactness(plan)) == (Perfect(), Exact(numeric="float64"))
    assert "exact draw by rejection: at most 107 tries" in why
    release = od.release(plan, (X, y), random_state=3)
    certificate = release.certificate
    assert (certificate.promise.epsilon, certificate.promise.delta) == (1.0, 0.0)
    assert Exactness.from_dict(certificate.exactness).sentence == "exact draw (float64)"
    assert "Exact: this draw is (ε = 1)-differentially private" in certificate.sentence
    assert "δ" not in certificate.sentence
    assert "tries" not in certificate.to_json().replace(certificate.sampler_choice, "")
    assert od.verify(certificate).answer == "consistent"
    assert Sampler.from_dict(certificate.sampler) == Perfect()


def test_it_is_chosen_while_it_takes_fewer_passes_than_the_chain() -> None:
    for columns, bound, chosen in ((6, 2.83, Perfect), (10, 2.83, Perfect), (3, 4.0, Perfect), (15, 2.83, Proximal)):
        plan = od.calibrate(
            od.Gibbs("bounded"), model_of(columns=columns, bound=bound), od.ApproxDP(1.0, 1e-10), n=1000
        )
        sampler, why = default_sampler(plan)
        assert type(sampler) is chosen, why
    smooth = od.calibrate(od.Gibbs(), model_of(), od.GaussianDP(0.5), n=1000)
    assert isinstance(default_sampler(smooth)[0], Perfect)


def test_what_it_cannot_draw_is_refused_with_the_number_or_what_is_missing() -> None:
    for model, said in (
        (model_of(columns=30, bound=2.83), r"1\.42e\+10 tries.*κ = 4\.751, d = 30"),
        (Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0)), "has no ball"),
        (Logistic(2, data_norm=1.0, loss="exp-linear", prior=Gaussian(scale=1.0, radius=1.0)), "no least curvature"),
    ):
        plan = od.calibrate(od.Gibbs(), model, od.ApproxDP(1.0, 1e-6), n=100)
        with pytest.raises(ExactnessRefused, match=said):
            Perfect().exactness(plan)
