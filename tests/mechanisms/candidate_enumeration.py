"""All of a small world: the law of every path of picks for every data set of a few records, given the candidates."""

import itertools

import numpy as np

UNIVERSE = [(-1.0, 0), (-1.0, 1), (0.0, 1), (1.0, 0), (1.0, 1)]


def summary(model, records):
    return model.summarise((np.array([[x] for x, _ in records]), np.array([y for _, y in records])))


def log_laws(plan, seed, *, universe=UNIVERSE):
    """The logarithm of the probability of every path of picks, for every data set of the universe, given the
    candidates: those of a round are drawn from the same bits whatever the data."""
    laws = {}
    for records in itertools.product(universe, repeat=plan.n):
        target = plan.target(summary(plan.model, records))
        paths = [((), 0.0)]
        for number in range(target.rounds):
            longer = []
            for picks, log_probability in paths:
                generator = np.random.default_rng([seed, number, len(longer)])
                thetas, public = target.propose(number, list(picks), generator)
                exponents = -(target.costs(number, thetas) + public).astype(float) / 2**target.bits
                log_law = exponents - np.logaddexp.reduce(exponents)
                longer += [
                    ((*picks, theta), log_probability + value) for theta, value in zip(thetas, log_law, strict=True)
                ]
            paths = longer
        laws[records] = np.array([value for _, value in paths])
    return laws


def adjacent(laws):
    """All ordered pairs of laws whose data sets differ in one record."""
    return [
        (laws[one], laws[other])
        for one, other in itertools.permutations(laws, 2)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    ]


def largest_loss(laws):
    """The largest privacy loss over all pairs of data sets that differ in one record."""
    return max(float((one - other).max()) for one, other in adjacent(laws))


def renyi_divergence(one, other, order):
    """D_α of two laws given by their logarithms."""
    return float(np.logaddexp.reduce(order * one - (order - 1.0) * other)) / (order - 1.0)


def hockey_stick(one, other, epsilon):
    """δ(ε) = Σ max(0, p − e^ε q)."""
    return float(np.maximum(np.exp(one) - np.exp(epsilon + other), 0.0).sum())
