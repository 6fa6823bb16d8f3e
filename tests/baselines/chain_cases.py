"""Kernels of private chains on a law that is known: N(0, 1) in one dimension, in the place of records. Their own steps run; only the
potential is another, and decisions are made in floating point, which is quick (exact ones are tested by themselves). Without
mixing, chains that begin with exact draws show whether the law is left as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

import onedraw as od
from onedraw.baselines.dp_hmc import NoisyLeapfrog, PublicMomenta
from onedraw.baselines.multi_proposal import OneOfMany
from onedraw.baselines.penalty import BEST, PenaltyTest
from onedraw.methods.private_chain.barker_path import Barker
from onedraw.methods.private_chain.kernel import PublicStep
from onedraw.models.public_directions import PublicDirections
from onedraw.models.sums.loss_changes import BITS

MODEL = od.models.Logistic(1, bounds=(-1, 1), intercept=False, prior=od.Gaussian(scale=1.0))


class QuickSecret:
    """The laws of a `Secret` in floating point."""

    def __init__(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.uniforms = iter(lambda: generator.random(2**16).tolist(), None)
        self.normals = iter(lambda: generator.standard_normal(2**16).tolist(), None)
        self.random, self.gauss = (
            chain.from_iterable(self.uniforms).__next__,
            chain.from_iterable(self.normals).__next__,
        )

    def accepts(self, cost, bits):
        return self.random() * (1.0 + math.exp(min(cost * 2.0**-bits, 700.0))) < 1.0

    def coin(self, cost, bits):
        return self.random() < math.exp(-cost * 2.0**-bits)

    def noise(self, deviations):
        return np.array([round(one * self.gauss()) for one in deviations.tolist()])

    def normal(self, size):
        return np.array([self.gauss() for _ in range(size)])

    def select(self, costs, bits):
        """The least of cost less Gumbel noise."""
        behind = [cost * 2.0**-bits + math.log(-math.log(self.random() or 1e-300)) for cost in costs.tolist()]
        return behind.index(min(behind))


def potential(theta: Any, weight: float = 1.0) -> int:
    """⌊2^b·w·θ²/2⌉."""
    return math.floor(weight * 2.0**BITS * 0.5 * float(theta[0]) ** 2 + 0.5)


@dataclass(frozen=True)
class NormalWalk(Barker):
    """Barker's walk on a normal law; ``heavy`` is a planted factor on the weight."""

    heavy: float = 1.0

    def cost(self, state, proposal, records, public):
        return potential(proposal, self.heavy) - potential(state, self.heavy)


@dataclass(frozen=True)
class NormalLayout(OneOfMany):
    def costs(self, middle, points, records, public):
        heavy = self.walk.heavy
        return np.array([potential(point, heavy) - potential(points[0], heavy) for point in points])


@dataclass(frozen=True)
class CentredLayout(NormalLayout):
    """The planted fault: proposals around the state."""

    def layout(self, state, public):
        middle, points = super().layout(state, public)
        return middle, np.concatenate([points[:1], points[1:] - middle + state])


@dataclass(frozen=True)
class NormalLeapfrog(NoisyLeapfrog):
    def gradient(self, theta, records, public, secret):
        return theta + public.numbers["gradient_noise"] * secret.normal(len(theta))


@dataclass(frozen=True)
class ReusedGradient(NormalLeapfrog):
    """The planted fault: after a rejection the first gradient is that of the last trajectory, noise and all."""

    kept: Any = field(default_factory=list)

    def step(self, state, records, public, secret):
        if not (self.kept and np.array_equal(self.kept[0], state)):
            self.kept[:] = [state, super().gradient(state, records, public, secret)]
        return super().step(state, records, public, secret)

    def gradient(self, theta, records, public, secret):
        if np.array_equal(self.kept[0], theta):
            return self.kept[1]
        return super().gradient(theta, records, public, secret)


def penalty(heavy=1.0, kind=PenaltyTest):
    return kind(NormalWalk(heavy=heavy), BEST)


def layout(heavy=1.0, kind=NormalLayout, proposals=5):
    return kind(NormalWalk(heavy=heavy), proposals)


def leapfrog(heavy=1.0, kind=NormalLeapfrog, test="penalty", leapfrogs=3):
    return kind(NormalWalk(heavy=heavy), leapfrogs, test)


def public_of(kernel, seed: int, numbers: dict[str, float]) -> PublicStep:
    """As a mechanism makes it: directions, of two dimensions more for layouts, momenta for leapfrogs."""
    given = seed.to_bytes(32, "little")
    if isinstance(kernel, NoisyLeapfrog):
        source = PublicMomenta(given, 1)
    else:
        source = PublicDirections(given, 3 if isinstance(kernel, OneOfMany) else 1)
    return PublicStep(MODEL, numbers, 1, source)


NUMBERS = {
    "step_length": 2.0, "ball": 1.5, "step_size": 0.4, "gradient_noise": 1.0, "test_noise": 1.5, "longest": 2.5,
}  # fmt: skip


def variance_z(kernel, *, chains: int, steps: int, seed: int, numbers: dict[str, float] | None = None) -> float:
    """How many standard errors the variance is from 1, after so many steps from exact draws."""
    public, secret = public_of(kernel, seed, {**NUMBERS, **(numbers or {})}), QuickSecret(seed)
    starts = np.rint(np.random.default_rng(seed).standard_normal(chains) * 2.0**29) / 2.0**29
    ends = []
    for start in starts:
        state = np.array([start])
        for _ in range(steps):
            state, _ = kernel.step(state, None, public, secret)
        ends.append(state[0])
    return float((np.mean(np.square(ends)) - 1.0) / np.sqrt(2.0 / chains))


def logistic_records(n: int, columns: int = 1, seed: int = 5):
    """(X, y) inside [−1, 1] with labels 0 and 1."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (n, columns))
    return X, (generator.random(n) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))).astype(int)
