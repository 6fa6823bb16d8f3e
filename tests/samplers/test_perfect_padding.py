"""Padded draws by rejection: work that is the same for every data set, that is done and not only reported, and what it promises."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import onedraw as od
from onedraw.models.convex.draw_cost import GAP
from onedraw.samplers import Perfect, ball, perfect, seeded_generator
from onedraw.samplers.padding import AT_BALL
from tests.samplers.cases import rows
from tests.samplers.test_perfect import BOUND, at_the_edge, kappa, model_of


def test_padded_tries_are_the_same_for_every_data_set_and_the_draws_are_those_without(test_seed: int) -> None:
    plan = od.calibrate(od.Gibbs("bounded"), model_of(10.0, columns=3), od.PureDP(100.0), n=30)
    padding, sampler = Perfect().padding(plan), Perfect()
    assert padding.gamma == 2e-12
    assert 288 <= padding.work["tries"] < 288 + 256  # whole batches
    generator, needed, hits = np.random.default_rng(3), set(), set()
    for number in range(20):
        X = generator.standard_normal((30, 3)) * (0.0 if number == 0 else 10.0 ** generator.uniform(-1, 1))
        X = np.tile([1.0, 0.0, 0.0], (30, 1)) if number == 1 else X
        y = np.ones(30, dtype=int) if number < 3 else generator.integers(0, 2, 30)
        target = plan.target(plan.model.summarise((X, y)))
        plain = sampler.run(target, seeded_generator(test_seed + number))
        padded = sampler.run_padded(target, seeded_generator(test_seed + number), padding)
        assert np.array_equal(plain.draws, padded.draws)
        assert padded.diagnostics["work"] == dict(padding.work)
        assert padded.diagnostics["descent_gap"] <= GAP
        needed.add(plain.diagnostics["tries"])
        hits.add(
            sampler._run(
                target, seeded_generator(test_seed), 1, replace(padding, work=padding.work | {AT_BALL: 0})
            ).diagnostics["work"][AT_BALL]
        )
    assert len(needed) > 3
    assert len(hits) > 1  # what the ball takes depends on the records
    assert max(hits) < padding.work[AT_BALL]


class Counts:
    """Tries at the records and at the ball, counted by what makes them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tries = self.at_ball = 0
        excess, hits = perfect.total_excess, ball._accepted

        def looked(kernel: Any, points: Any, touched: Any) -> Any:
            self.tries += len(points)
            return excess(kernel, points, touched)

        def aimed(tilt: Any, generator: Any, *, batch: int) -> Any:
            self.at_ball += batch
            return hits(tilt, generator, batch=batch)

        monkeypatch.setattr(perfect, "total_excess", looked)
        monkeypatch.setattr(ball, "_accepted", aimed)


def honest(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether padded work was done that is said to have been done, on the extreme records of `at_the_edge`."""
    model, X, y = at_the_edge()
    plan = od.calibrate(od.Gibbs("bounded"), model, od.PureDP(1200.0), n=len(X), draws=300)
    padding, counts, target = Perfect().padding(plan), Counts(monkeypatch), plan.target(model.summarise((X, y)))
    work = Perfect().run_padded(target, seeded_generator(3), padding, size=300).diagnostics["work"]
    assert work == dict(padding.work)  # so much is said
    return (counts.tries, counts.at_ball) == (work["tries"], work[AT_BALL])


def test_padded_tries_are_made_and_not_only_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert honest(monkeypatch)


def one_batch_said_to_be_all(self: Any, generator: Any, size: int) -> Any:
    """Points of one batch again and again, with fresh chances: as many tries as are wanted, one look at the records."""
    batch = perfect.batch_of(self.target.encoded.n, size)
    points, hits = self.hitting.draws(generator, size=batch)
    excess = self.excess(points)
    while True:
        yield points, generator.standard_exponential(batch) >= excess, hits


WORK_FAULTS = {
    "the ball's idle tries": (ball.Hitting, "idle", lambda self, generator, tries: tries),
    "tries after the first batch": (perfect.Envelope, "tries", one_batch_said_to_be_all),
}


@pytest.mark.parametrize("fault", WORK_FAULTS)
def test_tries_that_are_reported_but_not_made_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WORK_FAULTS[fault])
    assert not honest(monkeypatch)


@pytest.mark.parametrize(("draws", "tries"), [(1, 288), (3, 356), (50, 1240)])
def test_a_quota_counts_the_gap_and_every_draw(draws: int, tries: int) -> None:
    """With so many records that a batch is four tries and hides nothing."""
    plan = od.calibrate(od.Gibbs("bounded"), model_of(10.0, columns=3), od.PureDP(1.0), n=300_000, draws=draws)
    least = kappa(BOUND) ** -1.5 * math.exp(-GAP)
    work = Perfect().padding(plan).work
    assert work["tries"] == tries
    needed = work[AT_BALL] - tries // 4 * ball.BATCH  # a batch too many for each four
    assert (
        binom.cdf(tries - 1, needed, ball.least_hit(3)) <= 1e-12 < binom.cdf(tries - 1, needed - 1, ball.least_hit(3))
    )
    assert binom.cdf(draws - 1, tries, least) <= 1e-12 < binom.cdf(draws - 1, tries - 4, least)


def test_a_padded_certificate_says_what_the_draw_and_its_work_promise_together() -> None:
    plan = od.calibrate(od.Gibbs("bounded"), model_of(columns=2, bound=1.0), od.PureDP(1.0), n=40)
    release = od.release(plan, (rows(40, 2), np.tile([0, 1], 20)), timing="padded", random_state=1)
    assert release.certificate.promise.delta == 0.0
    assert release.certificate.timing.delta == pytest.approx((1 + math.e) * 2e-12, rel=1e-3)
    assert release.diagnostics["work"] == release.certificate.timing.work  # it was done, not only said
    assert od.verify(release)
    unpadded = od.release(plan, (rows(40, 2), np.tile([0, 1], 20)), random_state=1)
    assert "Running time is not covered" in unpadded.certificate.timing.sentence
