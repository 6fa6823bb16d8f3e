"""Draws in measured coordinates, attacked: the moments on the pair that is worst for them, the draw on the one worst for it.

The promise covers an inner mechanism that is chosen in view of the moments, whatever pair it meets, so the audit gives each
stage its own worst pair, as it does for fits. For the draw these are two rows of norm r in opposite directions, both where
their slopes are steepest, with a pull of the other records that keeps them there: then every step's gradients differ by
2L·r, and the iterates of both data sets are AR(1) processes of one variance, apart by the recursion below.

`replay_measured` runs the program on two neighbouring tables and computes a second time, in plain NumPy, what was handed to
the noise and what the inner sampler was given: rows in published coordinates with their weights, and the plan's numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import WrongCall
from onedraw.mechanisms import Measured, NoisyGradient, Plan
from onedraw.models import Gaussian, LogCoshRegression, Logistic, Quantile
from onedraw.privacy import Promise
from onedraw.samplers import default_sampler
from onedraw.samplers import measured_first as program
from onedraw.samplers.fit_noise import Noise

from .case import Case, Pair
from .convex import eligible
from .fit_laws import Noise as Spread
from .fit_laws import shifted, slope_of
from .fit_replay import Declared, Recorded, neighbours

AR1 = "the bound on the last iterate is attained by AR(1) processes, that on Gaussian sums by a shift"
NOISES = ("mean_noise", "moments_noise")
PAIRS = (Pair("each stage on its own worst pair", None, None),)


@dataclass(frozen=True)
class MeasuredCase(Case):
    """``ran`` are numbers of the program that differ from the plan's: the planted faults."""

    ran: tuple[tuple[str, float], ...] = ()

    weights: ClassVar[tuple[str, ...]] = ("weight",)
    without_draws: ClassVar[str] = "its program is replayed instead, stage by stage, from --budget quick on"

    @property
    def mechanism(self) -> str:
        return "measured noisy-gradient"

    @property
    def numbers(self) -> dict[str, float]:
        return {**self.plan.parameters, **dict(self.ran)}

    def running(self, **times: float) -> MeasuredCase:
        """The same promise of a program whose numbers are these multiples of the plan's."""
        return replace(self, ran=tuple((name, factor * self.numbers[name]) for name, factor in times.items()))

    def faulty(self, factor: float) -> Plan:
        """Records ``factor`` times as heavy, in the draw and beside the noise of their moments."""
        numbers = dict(self.plan.numbers)
        changed = {"weight": numbers["weight"] * factor, **{name: numbers[name] / factor for name in NOISES}}
        return replace(self.plan, numbers=tuple({**numbers, **changed}.items()))

    def replayed(self) -> tuple[str, ...]:
        return tuple(replay_measured(self.plan))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        distances = [*self._sums(), self._path()]
        return shifted(factor * math.hypot(*distances), Spread(1.0, 1, False)).profile()

    def _sums(self) -> list[float]:
        """How far rows at opposite corners move the mean, and orthogonal ones the moments, in deviations of their noise."""
        numbers, features = self.numbers, self.plan.model.features
        measures_response = isinstance(self.plan.model, LogCoshRegression | Quantile)
        categories: Any = self.plan.mechanism.categories  # type: ignore[attr-defined]
        coded = sum(stop - start for start, stop in categories)
        squared = 4.0 if features.data_norm is not None else 4.0 * (features.count - coded) + 2.0 * len(categories)
        apart = math.sqrt(2.0) if features.count + measures_response > 1 else 1.0
        stages = {
            "mean": math.sqrt(squared + 4.0 * measures_response),
            "moments": apart * numbers["moment_radius"] ** 2,
        }
        return [far / numbers[f"{name}_noise"] for name, far in stages.items() if numbers[f"{name}_noise"]]

    def _path(self) -> float:
        """The distance of the last iterates of two AR(1) processes, in their common deviation."""
        numbers, steepest = self.numbers, slope_of(self.plan.model).steepest
        step, steps = numbers["step_size"], int(numbers["steps"])
        kept = 1.0 - step * numbers["prior_deviation"] ** -2.0
        pull = step * numbers["weight"] * 2.0 * steepest * numbers["row_bound"]
        apart = pull * (1.0 - kept**steps) / (1.0 - kept)
        return float(apart) / math.sqrt(2.0 * step * (1.0 - kept ** (2 * steps)) / (1.0 - kept**2))


def measured_case(plan: Plan, *, label: str = "") -> MeasuredCase:
    """The case of any plan of noisy gradients in measured coordinates."""
    slope_of(plan.model)
    if not isinstance(getattr(plan.mechanism, "of", None), NoisyGradient):
        raise WrongCall(f"The audit follows noisy gradients in measured coordinates, not {plan.heading}.")
    return MeasuredCase(plan, PAIRS, AR1, True, label)


def _cases(model: Any, budget: Promise, *, n: int = 3000, label: str = "") -> list[Case]:
    plan = eligible(Measured(NoisyGradient()), model, budget, n=n)
    return [] if plan is None else [measured_case(plan, label=label)]


def logistic_cases(budget: Promise) -> list[Case]:
    model = Logistic(3, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
    return _cases(model, budget, label="exp-linear loss")


def log_cosh_cases(budget: Promise) -> list[Case]:
    return _cases(
        LogCoshRegression(3, bounds=(-1, 1), scaled=True, response_bound=2.0, prior=Gaussian(scale=1.0)), budget
    )


# ── the replay ─────────────────────────────────────────────────────────────────────────────────────────────


def replay_measured(plan: Plan, tables: Any = None, *, seed: int = 20176) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    for records in neighbours(plan) if tables is None else tables:
        target: Any = plan.mechanism.target(plan, plan.model.summarise(records))
        recorded: Any = Recorded(Noise(np.random.default_rng(seed), pure=target.problem.pure))
        published = program.design(target, recorded)
        declared = Declared(plan, records)
        found += _departures_of_the_sums(plan, declared, recorded, published)
        found += _departures_of_the_draw(plan, declared, target, published)
    return list(dict.fromkeys(found))


def _departures_of_the_sums(plan: Plan, declared: Declared, recorded: Recorded, published: Any) -> list[str]:
    numbers, columns = plan.parameters, plan.mechanism.problem(plan).moment_columns  # type: ignore[attr-defined]
    sums = {
        "mean": (declared.mean, 1.0),
        "moments": (lambda: declared.moments(columns.centre(published.mean)), numbers["moment_radius"]),
    }
    ran = [name for name in sums if numbers[f"{name}_noise"]]
    found = [] if len(ran) == len(recorded.sums) else ["other stages ran than the plan's"]
    for name, (seen, steps, size) in zip(ran, recorded.sums, strict=False):
        compute, largest = sums[name]
        cell = 1.0 / steps if name == "mean" else 1.0 / math.sqrt(steps)
        if size != numbers[f"{name}_noise"]:
            found.append(f"the {name} got noise of another size than the plan's")
        if np.abs(seen - compute()).max() > len(declared.rows) * 3.0 * (largest + cell) * cell:
            found.append(f"the {name} is not the sum that the plan declares")
    return found


def _departures_of_the_draw(plan: Plan, declared: Declared, target: Any, published: Any) -> list[str]:
    """The inner law's gradient at some places, against Σ a·φ'·z; its rows' reach; its numbers, and its sampler's."""
    numbers, where = plan.parameters, target.problem.coordinates(published)
    law = target.within(where)
    found = []
    if np.linalg.norm(law.encoded.X * law.encoded.y[:, 1:], axis=1).max() > numbers["row_bound"]:
        found.append("a row is longer than the plan declares")
    for theta in np.random.default_rng(3).standard_normal((4, law.encoded.X.shape[1])):
        pulls = declared.pulls(theta, where).sum(axis=0)
        wanted = numbers["weight"] * pulls + theta / numbers["prior_deviation"] ** 2
        if not np.allclose(law.gradient(theta), wanted, rtol=1e-6, atol=1e-6):
            found.append("the draw follows another gradient than the plan declares")
    sampler = default_sampler(plan)[0].of
    if (sampler.steps, sampler.step_size) != (int(numbers["steps"]), numbers["step_size"]):
        found.append("the draw takes other steps than the plan declares")
    return found
