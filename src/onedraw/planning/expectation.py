"""How good will a release be? Predicted from public numbers, before any record is read.

The truth is drawn from the model's own prior, n records from the model at that truth (clamped as the real ones will
be), one private draw from the calibrated posterior; the root mean squared distance between draw and truth is what an
analyst may expect. The same simulation without privacy (a plain posterior draw, and the plain estimate) says how
much of the error is the price of the promise. Only the sums of the records are simulated, so n costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from onedraw.errors import WrongCall
from onedraw.mechanisms import Plan
from onedraw.models import (
    BetaBernoulli,
    DirichletCategorical,
    GammaExponential,
    GammaPoisson,
    GaussianMean,
    Summary,
)
from onedraw.samplers import Exact

SIMULATIONS = 400
PUBLIC_SEED = 20170704  # a simulation of public numbers: the seed protects nothing and makes plans reproducible


@dataclass(frozen=True)
class Expectation:
    """Root mean squared errors, averaged over the prior: of the private draw, and of the estimate without privacy."""

    private: float
    sampling: float

    @property
    def price(self) -> float:
        """How many times larger the error is than without privacy."""
        return self.private / self.sampling if self.sampling else math.inf


def expected_error(plan: Plan) -> Expectation:
    """Simulate the release on data the prior predicts."""
    generator, exact = np.random.default_rng(PUBLIC_SEED), Exact()
    private, plain = [], []
    for _ in range(SIMULATIONS):
        truth, total, estimate = simulate(plan.model, plan.n, generator)
        summary = Summary(plan.n, tuple(Fraction(float(value)) for value in total))
        draws = exact.draw(plan.target(summary), generator, size=plan.draws).reshape(plan.draws, -1)
        private.append(draws.mean(axis=0) - truth)
        plain.append(estimate - truth)
    return Expectation(private=root_mean_square(private), sampling=root_mean_square(plain))


def root_mean_square(errors: list[NDArray[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


Simulated = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@singledispatch
def simulate(model: Any, n: int, generator: np.random.Generator) -> Simulated:
    """A truth the prior believes in, the sum of n clamped records at that truth, and the plain estimate from it."""
    raise WrongCall(f"No simulation is known for {type(model).__name__}, so its error cannot be predicted.")


@simulate.register
def _(model: BetaBernoulli, n: int, generator: np.random.Generator) -> Simulated:
    truth = np.atleast_1d(generator.beta(*model.prior))
    total = generator.binomial(n, truth).astype(float)
    return truth, total, total / n


@simulate.register
def _(model: DirichletCategorical, n: int, generator: np.random.Generator) -> Simulated:
    truth = generator.dirichlet(model.prior)
    total = generator.multinomial(n, truth).astype(float)
    return truth, total, total / n


@simulate.register
def _(model: GaussianMean, n: int, generator: np.random.Generator) -> Simulated:
    """Truth in the middle half of the range, records with a standard deviation of half the bound.

    The model's own variance is a tuning number of the release, so it says nothing about real records.
    """
    middle = np.array(model.centre, dtype=np.float64).reshape(-1)
    offset = generator.uniform(-0.5, 0.5, size=model.dim) * model.bound / math.sqrt(model.dim)
    total = n * offset + math.sqrt(n / model.dim) * model.bound / 2 * generator.standard_normal(model.dim)
    return middle + offset, total, middle + total / n


@simulate.register
def _(model: GammaPoisson, n: int, generator: np.random.Generator) -> Simulated:
    truth = generator.gamma(model.prior[0], 1 / model.prior[1])
    counts = np.arange(int(model.cap) + 1)
    tail = gammainc(counts[1:], truth)  # P(X ≥ k) = P(k, truth), k = 1 … cap: the clamped mean is their sum
    mean, square = tail.sum(), ((2 * counts[1:] - 1) * tail).sum()
    total = np.clip(
        n * mean + math.sqrt(n * max(square - mean**2, 0.0)) * generator.standard_normal(1), 0, n * model.cap
    )
    return np.atleast_1d(truth), total, total / n


@simulate.register
def _(model: GammaExponential, n: int, generator: np.random.Generator) -> Simulated:
    truth = generator.gamma(model.prior[0], 1 / model.prior[1])
    kept = math.exp(-truth * model.cap)
    mean = -math.expm1(-truth * model.cap) / truth
    square = 2 * (mean - model.cap * kept) / truth
    total = n * mean + math.sqrt(n * max(square - mean**2, 0.0)) * generator.standard_normal(1)
    total = np.clip(total, 1e-12 * model.cap, n * model.cap)
    return np.atleast_1d(truth), total, n / total
