"""Draws in measured coordinates, attacked: the moments on the pair that is worst for them, the draw on the one worst for it.

The promise covers an inner mechanism that is chosen in view of the moments, whatever pair it meets, so the audit gives each
stage its own worst pair, as it does for fits. For a draw by a convex loss these are two rows of norm r in opposite
directions, both where their slopes are steepest, with a pull of the other records that keeps them there: then gradients
differ by 2L·r, exact draws are two Gaussians, and the iterates of noisy gradients AR(1) processes of one variance. For one
by a β-divergence a record changes the odds of a rare outcome by the whole range.

`replay_measured` runs the program on two neighbouring tables and computes a second time, in plain NumPy, what was handed to
the noise and what the inner sampler was given: rows in published coordinates with their weights, and the plan's numbers.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from onedraw.mechanisms import BetaDivergence, Candidates, Gibbs, Measured, NoisyGradient, Plan
from onedraw.models import Gaussian, LogCoshRegression, Logistic, Quantile
from onedraw.privacy import Promise
from onedraw.samplers import default_sampler
from onedraw.samplers import measured_first as program
from onedraw.samplers.fit_noise import Noise

from .case import Case, Pair
from .convex import eligible
from .fit_laws import Law, moved, shifted, slope_of
from .fit_laws import Noise as Spread
from .fit_replay import Declared, Recorded, departures_of_sums, neighbours
from .fits import apart

AR1 = "the last iterate of an AR(1) process shows what its path may, where records outweigh the prior; Gaussian sums are shifted"
LINEAR = (
    "where losses are linear the posteriors are two Gaussians at the distance the rule allows, and sums are shifted"
)
RARE = "a rare outcome that a record makes as likely as its range allows attains it, up to the share it takes from the others"
NOISES = ("mean_noise", "moments_noise")
PAIRS = (Pair("each stage on its own worst pair", None, None),)

RARELY = 1e-3
"""The chance of the outcome that a record makes likelier: the smaller, the nearer its log-ratio comes to the range."""


@dataclass(frozen=True)
class MeasuredCase(Case):
    """``ran`` are numbers of the program that differ from the plan's: the planted faults."""

    ran: tuple[tuple[str, float], ...] = ()

    without_draws: ClassVar[str] = "its program is replayed instead, stage by stage, from --budget quick on"

    @property
    def mechanism(self) -> str:
        inner = type(self.plan.mechanism.of).__name__  # type: ignore[attr-defined]
        return "measured " + {"NoisyGradient": "noisy-gradient", "BetaDivergence": "beta-divergence"}.get(
            inner, inner.lower()
        )

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
        sums = [one for one in self._sums() if one[0]]
        if not self._pure:
            distances = [distance for distance, *_ in sums]
            return shifted(factor * math.hypot(*distances, self._shift()), Spread(1.0, 1, False)).profile()
        laws = [moved(factor * distance, entries, size) for distance, entries, size in sums]
        return functools.reduce(operator.mul, [*laws, rare_outcome(factor * self._range())]).profile()

    @property
    def _pure(self) -> bool:
        return not self.numbers["row_bound"]

    def _sums(self) -> list[tuple[float, int, int | None]]:
        """How far rows at opposite corners move the mean, and orthogonal ones the moments, in scales of their noise; how many numbers
        that are, and of a matrix how many rows."""
        numbers, features = self.numbers, self.plan.model.features
        measures_response = not self._pure and isinstance(self.plan.model, LogCoshRegression | Quantile)
        categories: Any = self.plan.mechanism.categories  # type: ignore[attr-defined]
        coded = sum(stop - start for start, stop in categories)
        squared = 4.0 if features.data_norm is not None else 4.0 * (features.count - coded) + 2.0 * len(categories)
        columns = features.count + measures_response
        far = math.sqrt(squared + 4.0 * measures_response)
        across = apart(columns, pure=self._pure) * numbers["moment_radius"] ** 2
        found = [
            (far, numbers["mean_noise"], columns, None),
            (across, numbers["moments_noise"], columns * (columns + 1) // 2, columns),
        ]
        return [(distance / noise, entries, size) for distance, noise, entries, size in found if noise]

    def _shift(self) -> float:
        """The distance of the two draws, in their common deviation: both records where they are steepest, at opposite rows."""
        numbers, steepest = self.numbers, slope_of(self.plan.model).steepest
        precision = numbers["prior_deviation"] ** -2.0
        pull = numbers["weight"] * 2.0 * steepest * numbers["row_bound"]
        if "steps" not in numbers:  # an exact draw: Gaussians of the prior's precision
            return pull / math.sqrt(precision)
        step, steps = numbers["step_size"], int(numbers["steps"])
        kept = 1.0 - step * precision
        apart = step * pull * (1.0 - kept**steps) / (1.0 - kept)
        return float(apart) / math.sqrt(2.0 * step * (1.0 - kept ** (2 * steps)) / (1.0 - kept**2))

    def _range(self) -> float:
        """2wΔ of a β-divergence; of rounds of candidates Σ 2·W·2^−b."""
        numbers = self.numbers
        if "bits" in numbers:
            widths = [numbers[f"width_{number}"] for number in range(1, int(numbers["rounds"]) + 1)]
            planned = self.plan.parameters["weight"]
            return float(2.0 * sum(widths) * 2.0 ** -numbers["bits"] * numbers["weight"] / planned)
        power, model = numbers["beta"] - 1.0, self.plan.model
        density = 1.0 if hasattr(model, "classes") else (2.0 * math.pi * model.likelihood.floor) ** -0.5
        return float(2.0 * numbers["weight"] * density**power / power)


def rare_outcome(largest: float) -> Law:
    """Two outcomes whose odds a record changes by e^``largest``."""
    odds = np.log(RARELY) - np.log1p(-RARELY)
    return Law(*(np.array([-np.logaddexp(0.0, -one), -np.logaddexp(0.0, one)]) for one in (odds, odds - largest)))


def measured_case(plan: Plan, *, label: str = "") -> MeasuredCase:
    """The case of any plan in measured coordinates."""
    of = plan.mechanism.of  # type: ignore[attr-defined]
    if isinstance(of, NoisyGradient | Gibbs):
        slope_of(plan.model)
        return MeasuredCase(plan, PAIRS, AR1 if isinstance(of, NoisyGradient) else LINEAR, True, label)
    return MeasuredCase(plan, PAIRS, RARE, True, label)


def _cases(inner: tuple[Any, ...], model: Any, budget: Promise, *, n: int = 3000, label: str = "") -> list[Case]:
    plans = [eligible(Measured(of), model, budget, n=n) for of in inner]
    return [measured_case(plan, label=label) for plan in plans if plan is not None]


def logistic_cases(budget: Promise) -> list[Case]:
    rows: dict[str, Any] = {"features": 3, "bounds": (-1, 1), "scaled": True, "prior": Gaussian(scale=1.0)}
    return [
        *_cases((NoisyGradient(), Gibbs()), Logistic(**rows, loss="exp-linear"), budget, label="exp-linear loss"),
        *_cases((Candidates(), BetaDivergence()), Logistic(**rows), budget),
    ]


def log_cosh_cases(budget: Promise) -> list[Case]:
    model = LogCoshRegression(3, bounds=(-1, 1), scaled=True, response_bound=2.0, prior=Gaussian(scale=1.0))
    return _cases((NoisyGradient(), Gibbs()), model, budget)


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
    return departures_of_sums(sums, numbers, recorded, len(declared.rows))


LATTICE = 2.0**-14
"""Much coarser than a row's lattice, much finer than a row."""


def _departures_of_the_draw(plan: Plan, declared: Declared, target: Any, published: Any) -> list[str]:
    """The inner law's gradient at some places, against Σ a·φ'·z; its rows' reach; its numbers, and its sampler's."""
    numbers, where = plan.parameters, target.problem.coordinates(published)
    law = target.within(where)
    if not numbers["row_bound"]:
        same = np.allclose(law.encoded.X, declared.measured(where)[0]) and np.array_equal(
            law.encoded.y, target.encoded.y
        )
        return [] if same else ["the draw is about other rows than the plan declares"]
    found = []
    if np.linalg.norm(law.encoded.X * law.encoded.y[:, 1:], axis=1).max() > numbers["row_bound"]:
        found.append("a row is longer than the plan declares")
    for theta in np.random.default_rng(3).standard_normal((4, law.encoded.X.shape[1])):
        pulls = declared.pulls(theta, where).sum(axis=0)
        wanted = numbers["weight"] * pulls + theta / numbers["prior_deviation"] ** 2
        coarse = LATTICE * plan.n * numbers["weight"] * numbers["row_bound"]  # rows are cut onto a lattice first
        if not np.allclose(law.gradient(theta), wanted, rtol=1e-6, atol=1e-6 + coarse):
            found.append("the draw follows another gradient than the plan declares")
    if "steps" not in numbers:
        return found
    sampler = default_sampler(plan)[0].of
    if (sampler.steps, sampler.step_size) != (int(numbers["steps"]), numbers["step_size"]):
        found.append("the draw takes other steps than the plan declares")
    return found
