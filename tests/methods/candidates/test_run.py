"""Picks of candidates: whom the sampler serves, and work that is the same for all costs."""

import numpy as np
import pytest
from scipy import special

from onedraw import errors
from onedraw.methods.candidates import run
from onedraw.methods.candidates.run import Selection, _padded
from onedraw.samplers import seeded_generator
from onedraw.samplers.selection import PROPOSALS, Envelope, select
from tests.samplers.cases import ALPHA, chi_squared_p, int64

TIMES = 8000


def test_the_sampler_serves_plans_of_candidates_only():
    class Mechanism:
        def own_sampler(self):
            return None

    class Plan:
        mechanism = Mechanism()

    with pytest.raises(errors.ExactnessRefused, match="Candidates"):
        Selection().exactness(Plan())


class Rounds:
    """Two rounds of public candidates, whose costs are given; draws come from the generator in between."""

    rounds, bits = 2, 4

    def __init__(self, costs):
        self.given = costs

    def propose(self, number, picks, generator):
        return generator.standard_normal((len(self.given), 1)) + len(picks), np.zeros(len(self.given), dtype=np.int64)

    def costs(self, number, candidates):
        return self.given

    def publish(self, picks):
        return [picks[-1]]


EXTREME = [
    int64(*[0] * 7),
    int64(*range(7)),
    int64(0, 1, 10, 100, 1000, 10_000, 2**40),
    int64(*[0, *[2**61] * 6]),
    int64(*[0, *[11] * 6]),  # at the end of the first bucket: half of them fail
]


def counted(monkeypatch):
    """A list that grows with every proposal that is made, by whoever makes it."""
    propose, made = Envelope.proposal, []
    monkeypatch.setattr(Envelope, "proposal", lambda *of: made.append(1) or propose(*of))
    return made


@pytest.mark.parametrize("costs", EXTREME)
def test_padded_picks_are_the_same_picks_after_the_same_work(costs, monkeypatch):
    target, sampler, made = Rounds(costs), Selection(), counted(monkeypatch)
    for seed in range(10):
        plain = sampler.run(target, seeded_generator(seed), size=2)
        made.clear()
        padded = sampler.run_padded(target, seeded_generator(seed), None, size=2)
        assert np.array_equal(plain.draws, padded.draws)
        assert padded.diagnostics == {"proposals": 4 * PROPOSALS} == {"proposals": len(made)}  # made, not only said


def test_proposals_that_are_reported_but_not_made_are_caught(monkeypatch):
    """The planted fault: a pick without its idle proposals, and a report that has them."""

    def said(costs, *, generator, idle, bits, made):
        made.append(PROPOSALS)
        return select(costs, generator, bits=bits)

    monkeypatch.setattr(run, "_padded", said)
    made = counted(monkeypatch)
    padded = Selection().run_padded(Rounds(EXTREME[0]), seeded_generator(1), None, size=2)
    assert padded.diagnostics == {"proposals": 4 * PROPOSALS}
    assert len(made) < 4 * PROPOSALS


@pytest.mark.statistical
def test_a_quota_that_is_reached_early_is_seen_and_a_cap_changes_the_law(monkeypatch, test_seed):
    """The planted fault: B proposals were made, the last is taken whether accepted or not, and B is reported."""
    generator, costs = np.random.default_rng(test_seed), int64(*np.repeat([0, 11], [1, 9]))
    probabilities = special.softmax(-costs / 2.0**4)

    def capped(most):
        envelope, alone = Envelope(costs, np.ones(10, dtype=np.int64), 4), Envelope(0 * costs, np.ones(10, np.int64), 4)
        found = next((one for one in (envelope.proposal(generator) for _ in range(most)) if one is not None), None)
        return (found or alone.proposal(generator))[0]

    assert chi_squared_p(np.bincount([capped(1) for _ in range(3 * TIMES)], minlength=10), probabilities) < ALPHA
    monkeypatch.setattr(run, "PROPOSALS", 1)
    made = []
    options = {"generator": generator, "idle": generator, "bits": 4, "made": made}
    counts = np.bincount([_padded(costs, **options) for _ in range(TIMES)], minlength=10)
    assert chi_squared_p(counts, probabilities) > ALPHA
    assert max(made) > 1  # it ran on, and said so
