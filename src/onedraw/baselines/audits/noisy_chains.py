"""The literature's chains under attack: everything they count as public, on a record as steep as its bound and its opposite.

Slopes −c and c along every move, as a hinge has them inside its margin: a move by Δ shifts the log-ratio λ by 2wc|Δ·x|, the gradient
by 2wc‖x‖. What is shown is how much of the promise such a pair takes; a logistic loss has half the shift.

* penalty: T pairs (e, λ + σξ). Given the directions the best test has a normal statistic, of means 0 and M = (2wcrR/σ)·√Σ(e_t·u)², and
  (e·u)² is Beta(½, (d−1)/2). The sum's law is a convolution of cells, rounded down: it can only hide.
* DP-HMC: T(L + 1) gradients with noise: means 0 and M = √(T(L+1))·2wcr/σ_g. The test of where a trajectory ends is left out.
* multi-proposal: T selections, each from a layout with half of its points at either end of the ball, as the theorem allows:
  T coins of probability 1/(1 + e^{±s/2}).

Replayed, the steps that are shipped (`chain_program`) ask for the noise that the plan counts, no less often than it counts, and decide with
the chances of the formulas.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.cases.case import Case, Pair
from onedraw.audit.cases.laws import normal_cells
from onedraw.audit.cases.losses import flips
from onedraw.baselines import DPHMC, MultiProposal, Penalty
from onedraw.methods.catalog import cases_of
from onedraw.methods.private_chain.audit import ORDERS_BELOW, ROUNDING, circle, log_ratios, potentials
from onedraw.methods.private_chain.replay import Program
from onedraw.models import Gaussian, Logistic
from onedraw.models.sums.gradient_sums import row_lattice, steps_of
from onedraw.models.sums.loss_changes import BITS
from onedraw.privacy import Promise, RenyiDP

GROUPS = 30
"""Of the values that a normal statistic's shift takes."""

FINEST, MOST_PLACES = 4000, 2**20
"""Cells of one squared cosine, at most, and of the sum of all."""

PAIR = Pair("a record of the steepest loss, and its opposite", 1, -1)
NO_DRAWS = "a path is many steps; what all of them show is summed over instead"

DIRECTIONS = (
    "slopes as steep as declared along every move, as a hinge has in its margin: attained, but for what cells hide"
)
GRADIENTS = "gradients alone: where a trajectory ends is tested too, and counted at its longest"
LAYOUTS = "every step is given a layout with half of its points at either end, as the promise covers"

FEWER = "a step asks for less noise than its plan counts"
CHANCE = "a step is not taken with the chance of its formula"
FAR = "a point of a layout lies outside its ball"
SEEDS = 6
"""Public seeds whose first steps are replayed."""


class ReplayedCase(Case):
    """One whose steps are run beside their formulas, on records that are a flipped response apart."""

    def replayed(self) -> tuple[str, ...]:
        found = [one for records in flips(self.plan.model, self.plan.n)[0] for one in self.departures(records)]
        return tuple(dict.fromkeys(found))

    @abc.abstractmethod
    def departures(self, records: Any) -> Iterator[str]:
        """What is wrong with the steps on these records."""

    def publics(self) -> Iterator[Any]:
        """The public part of a few paths' first steps."""
        mechanism: Any = self.plan.mechanism
        for number in range(SEEDS):
            yield lambda seed=bytes([number]) * 32: mechanism.public(self.plan, seed)

    def near(self, chances: Any, formula: Any) -> bool:
        return bool(np.all(np.abs(chances - formula) <= ROUNDING * self.plan.n))


class PenaltyCase(ReplayedCase):
    """Directions and noisy log-ratios of a whole path."""

    without_draws = NO_DRAWS

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        numbers, size = self.numbers(factor), self.plan.model.dimension // self.plan.model.row_blocks
        reach = 2.0 * numbers["weight"] * numbers["lipschitz"] * numbers["step_length"] / numbers["noise"]
        squares, masses = squared_cosines(size, int(numbers["steps"]))
        return shifted_normals(reach * np.sqrt(squares), masses)

    def departures(self, records: Any) -> Iterator[str]:
        """Given noise 0 a move is taken with probability min(1, exp(λ − σ²/2))."""
        model, numbers = self.plan.model, self.plan.parameters
        program, noise = Program.of_plan(self.plan, records), numbers["noise"]
        around = circle(24) if model.dimension == 2 else np.array([[1.0], [-1.0]])
        ratios = log_ratios(model, numbers, records, model.prior.location(model.dimension), around)
        for direction, ratio in zip(around, ratios, strict=True):
            found = program.outcomes(program.start, program.along(direction))
            if not all(counted(one.noises, [np.array([noise * 2.0**BITS])]) for one in found):
                yield FEWER
            taken = math.fsum(one.chance for one in found if one.decision)
            if not self.near(taken, math.exp(min(0.0, float(ratio) - noise**2 / 2.0))):
                yield CHANCE


class LeapfrogCase(ReplayedCase):
    """The noisy gradients of a whole path."""

    without_draws = NO_DRAWS

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        numbers = self.numbers(factor)
        one = numbers["weight"] * numbers["gradient_difference"] / numbers["gradient_noise"]
        positions = numbers["steps"] * (numbers["leapfrogs"] + 1.0)
        return shifted_normals(np.array([one * math.sqrt(positions)]), np.ones(1))

    def departures(self, records: Any) -> Iterator[str]:
        """Fresh noise at each of L + 1 positions, and on the test where it has some and is made."""
        plan, numbers = self.plan, self.plan.parameters
        lattice = row_lattice(plan.model, plan.n)
        assert lattice is not None
        each = numbers["gradient_noise"] / (numbers["weight"] * steps_of(lattice))
        positions = [each] * (int(numbers["leapfrogs"]) + 1)
        tested = [np.array([numbers["test_noise"] * 2.0**BITS])] if "test_noise" in numbers else []
        program = Program.of_plan(plan, records)
        for public in self.publics():
            for one in program.outcomes(program.start, public):
                if not (
                    counted(one.noises, [*positions, *tested]) or (not one.decision and counted(one.noises, positions))
                ):
                    yield FEWER


class LayoutCase(ReplayedCase):
    """The selections of a whole path: how many go to one end. Held against its Rényi curve; a pure ε is not what is certified."""

    without_draws = NO_DRAWS

    @property
    def promise(self) -> Promise:
        whole = self.plan.guarantee.promise
        assert isinstance(whole, RenyiDP)
        return RenyiDP(whole.curve, below=ORDERS_BELOW)

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        numbers = self.numbers(factor)
        reach = 4.0 * numbers["weight"] * numbers["lipschitz"] * numbers["ball"]
        chances = special.expit(np.array([0.5, -0.5]) * reach)
        count = np.arange(int(numbers["steps"]) + 1)
        return audit.finite_profile(*(stats.binom.logpmf(count, len(count) - 1, one) for one in chances), log=True)

    def departures(self, records: Any) -> Iterator[str]:
        """A point is chosen with probability ∝ π·exp(−wΣℓ), and none is further than r from the middle."""
        program = Program.of_plan(self.plan, records)
        kernel: Any = program.kernel
        for public in self.publics():
            middle, points = kernel.layout(program.start, public())
            if not np.linalg.norm(points - middle, axis=1).max() <= self.plan.parameters["ball"] * (1.0 + 2.0**-20):
                yield FAR
            formula = special.softmax(-potentials(self.plan.model, self.plan.parameters, records, points))
            if not self.near(program.chances(program.start, public), formula):
                yield CHANCE


def counted(noises: list[Array], planned: list[Array]) -> bool:
    """Whether noise was asked for as often as planned, and never less of it."""
    enough = (bool(np.all(one >= least * (1.0 - 1e-12))) for one, least in zip(noises, planned, strict=False))
    return len(noises) == len(planned) and all(enough)


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def squared_cosines(size: int, steps: int) -> tuple[Array, Array]:
    """(values, masses) of Σ(e_t·u)² over uniform directions, rounded down to cells, and then to a few of them."""
    if size == 1:
        return np.array([float(steps)]), np.ones(1)
    cells = min(FINEST, MOST_PLACES // steps)
    edges = special.betainc(0.5, (size - 1) / 2.0, np.linspace(0.0, 1.0, cells + 1))
    one, length = np.diff(edges), steps * cells
    masses = np.maximum(np.fft.irfft(np.fft.rfft(one, 2 * length) ** steps, 2 * length)[:length], 0.0)
    up_to = np.cumsum(masses) / masses.sum()
    first = np.searchsorted(up_to, [0.0, 1e-9, 1e-6, 1e-4, 1e-3, *np.linspace(0.01, 0.99, GROUPS), 0.999, 0.9999])
    return first / cells, np.add.reduceat(masses, first) / masses.sum()


def shifted_normals(shifts: Array, masses: Array) -> Any:
    """N(0, 1) against N(M, 1) in cells, M public and drawn with these masses: the profile of both."""
    laws = zip(*(normal_cells(float(shift)) for shift in shifts), strict=True)
    return audit.finite_profile(*((masses[:, None] * np.array(law)).ravel() for law in laws))


# ── cases ────────────────────────────────────────────────────────────────────────────────────────────────────────────


penalty_case = partial(PenaltyCase, pairs=(PAIR,), reason=DIRECTIONS)
leapfrog_case = partial(LeapfrogCase, pairs=(PAIR,), reason=GRADIENTS, attained=False)
layout_case = partial(LayoutCase, pairs=(PAIR,), reason=LAYOUTS, attained=False)


def _model(coefficients: int) -> Logistic:
    return Logistic(coefficients, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0))


def _chains(build: Any, asked: list[tuple[str, Any, Any]], budget: Promise) -> list[Case]:
    return [] if budget.is_pure else cases_of(build, asked, budget, n=800)


def penalty_cases(budget: Promise) -> list[Case]:
    """The penalty algorithm on two coefficients, and along its worst directions on one."""
    asked = [("", Penalty(), _model(2)), ("worst direction", Penalty(directions="worst"), _model(1))]
    return _chains(penalty_case, asked, budget)


def leapfrog_cases(budget: Promise) -> list[Case]:
    """Hamiltonian paths on two coefficients, with either test."""
    return _chains(
        leapfrog_case, [(f"{test} test", DPHMC(test=test), _model(2)) for test in ("penalty", "barker")], budget
    )


def layout_cases(budget: Promise) -> list[Case]:
    """Several proposals on two coefficients."""
    return _chains(layout_case, [("", MultiProposal(), _model(2))], budget)
