"""Released moments, attacked: each stage on the pair that is worst for it, and the program replayed and provoked.

The promise covers stages that are chosen in view of those before, whatever pair each meets; so each gets its own worst pair:
rows at opposite corners of the box for means and squares (whose squares agree there: they add nothing), orthogonal rows of
the largest norm for products and fourth moments. Their distances and noises are written down again here.

`replay_moments` runs the program on neighbouring tables and computes every sum a second time in NumPy. `provoke_moments`
answers the first stage with numbers of its own choice, the same on both tables, and measures how far a record moves what is
asked next: a radius that is not enforced shows there, whatever the plan says.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from onedraw.mechanisms import Moments, Plan
from onedraw.models import Columns
from onedraw.models.fit.published import symmetric
from onedraw.privacy import Promise
from onedraw.samplers.fit_noise import Noise
from onedraw.samplers.moments import measure_all

from .case import Array, Case, Pair
from .convex import eligible
from .fit_laws import Noise as Spread
from .fit_laws import moved, shifted
from .fits import apart

NOISES = ("sums_noise", "moments_noise", "fourth_noise")
STAGES = ("sums", "moments", "fourth")
PAIRS = (Pair("each stage on its own worst pair", None, None),)

EACH = (
    "opposite corners for the sums, orthogonal rows of the largest norm for the others: every sensitivity is attained"
)
FEWER = "one column has no orthogonal rows, and a 0/1 column moves by 1 where √2 is allowed for"

ROWS, PROVOKED = 24, 20
"""Records of the tables replayed, and pairs of tables the program is provoked with."""

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0


@dataclass(frozen=True)
class MomentsCase(Case):
    """``ran`` are numbers of the program that differ from the plan's: the planted faults."""

    ran: tuple[tuple[str, float], ...] = ()

    weights: ClassVar[tuple[str, ...]] = NOISES
    without_draws: ClassVar[str] = "its program is replayed instead, stage by stage, from --budget quick on"

    @property
    def delta(self) -> float:
        """The δ that was asked for, if one was."""
        asked = getattr(self.plan.request.budget, "stated_delta", None)
        return 0.0 if self.promise.pure_epsilon < math.inf else 1e-5 if asked is None else float(asked)

    @property
    def numbers(self) -> dict[str, float]:
        return {**self.plan.parameters, **dict(self.ran)}

    def running(self, **times: float) -> MomentsCase:
        """The same promise of a program whose numbers are these multiples of the plan's."""
        return replace(self, ran=tuple((name, factor * self.numbers[name]) for name, factor in times.items()))

    def faulty(self, factor: float) -> Plan:
        """Records ``factor`` times as heavy are noises so many times as small."""
        numbers = self.plan.parameters
        return replace(
            self.plan, numbers=tuple({**numbers, **{name: numbers[name] / factor for name in NOISES}}.items())
        )

    def replayed(self) -> tuple[str, ...]:
        return (*replay_moments(self.plan), *provoke_moments(self.plan))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        numbers = self.numbers
        ratios = [
            (factor * distance / numbers[f"{stage}_noise"], entries, size)
            for stage, (distance, entries, size) in self._distances().items()
            if numbers[f"{stage}_noise"]
        ]
        if not numbers["pure"]:
            return shifted(math.sqrt(sum(ratio**2 for ratio, *_ in ratios)), Spread(1.0, 1, False)).profile()
        return functools.reduce(operator.mul, [moved(*one) for one in ratios]).profile()

    def _distances(self) -> dict[str, tuple[float, int, int | None]]:
        """How far the worst pair moves each sum, how many numbers it has, and of a matrix how many rows."""
        columns, widths = _columns(self.plan), [stop - start for start, stop in _categories(self.plan)]
        coded = sum(widths)
        box = math.sqrt(4.0 * (columns - coded) + sum(2.0 if width > 1 else 1.0 for width in widths))
        far, entries = apart(columns, pure=bool(self.numbers["pure"])), columns * (columns + 1) // 2
        return {
            "sums": (box, 2 * columns - coded, None),
            "moments": (far * self.numbers["moments_radius"] ** 2, entries, columns),
            "fourth": (far * self.numbers["fourth_radius"] ** 2, entries, columns),
        }


def moments_case(plan: Plan, *, label: str = "") -> MomentsCase:
    """The case of any release of moments."""
    attained = _columns(plan) > 1 and all(stop - start > 1 for start, stop in _categories(plan))
    return MomentsCase(plan, PAIRS, EACH if attained else FEWER, attained, label)


def covariance_cases(budget: Promise) -> list[Case]:
    """Three columns, with Gaussian and with pure noise."""
    found: list[Case] = []
    for pure in (False, True):
        plan = eligible(Moments(pure=pure), Columns(3, bounds=(0, 1)), budget, n=2000)
        if plan is not None and bool(plan.parameters["pure"]) is pure:
            found.append(moments_case(plan, label="pure" if pure else ""))
    return found


def _columns(plan: Plan) -> int:
    return int(plan.model.features.count)


def _categories(plan: Plan) -> tuple[tuple[int, int], ...]:
    assert isinstance(plan.mechanism, Moments)
    return plan.mechanism.categories


# ── the program ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Recorded:
    """A noise that remembers what it was asked for; with ``answer`` it gives that for the first sums instead."""

    noise: Any
    answer: Array | None = None
    asked: list[tuple[Array, float, float, Any]] = field(default_factory=list)

    def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> Array:
        self.asked.append((np.asarray(sums) / steps, steps, noise, each))
        given = self.noise.vector(sums, steps, noise, each)
        return np.asarray(given if self.answer is None else self.answer)

    def triangle(self, sums: Any, steps: float, noise: float) -> Array:
        self.asked.append((np.asarray(sums) / steps, steps, noise, None))
        return np.asarray(self.noise.triangle(sums, steps, noise))


def replay_moments(plan: Plan, tables: Any = None, *, program: Callable[..., Any] = measure_all, seed: int = 20176) -> list[str]:  # fmt: skip
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    problem, numbers = _problem(plan), plan.parameters
    for records in _neighbours(plan, np.random.default_rng(7)) if tables is None else tables:
        recorded = Recorded(Noise(np.random.default_rng(seed), pure=problem.pure))
        published = program(plan.mechanism.target(plan, plan.model.summarise(records)).sum, problem, recorded)
        rows = _rows(plan, records)
        expected = _declared(plan, rows, published)
        if len(recorded.asked) != len(expected):
            return ["other stages ran than the plan's"]
        for (stage, declared), (seen, steps, size, each) in zip(expected.items(), recorded.asked, strict=True):
            largest = 1.0 if stage == "sums" else numbers[f"{stage}_radius"]
            if size != numbers[f"{stage}_noise"]:
                found.append(f"the {stage} got noise of another size than the plan's")
            if np.abs(seen - declared).max() > len(rows) * 3.0 * (largest + 1.0) / math.sqrt(steps):
                found.append(f"the {stage} are not the sums that the plan declares")
            if stage == "sums" and not np.allclose(each, _weights(plan) ** -1.0, rtol=1e-9):
                found.append("squares got another share of the noise than the lemma allows")
    return list(dict.fromkeys(found))


def provoke_moments(plan: Plan, *, program: Callable[..., Any] = measure_all, seed: int = 11) -> list[str]:
    """Stages that a record moves further than the plan's noise hides, over random pairs of tables; empty if none."""
    generator, problem, numbers = np.random.default_rng(seed), _problem(plan), plan.parameters
    coded, far = sum(stop - start for start, stop in _categories(plan)), apart(2, pure=problem.pure)
    allowed = {
        "sums": math.sqrt(4.0 * (_columns(plan) - coded) + 2.0 * len(_categories(plan))),
        **{stage: far * numbers[f"{stage}_radius"] ** 2 for stage in ("moments", "fourth")},
    }
    stages = [stage for stage in STAGES if numbers[f"{stage}_noise"]]
    found: dict[str, None] = {}
    for _ in range(PROVOKED):
        mean = generator.uniform(-1.2, 1.2, _columns(plan))
        squares = generator.choice([-0.5, 1e-4, 0.3], _columns(plan) - coded)
        asked = []
        for records in _neighbours(plan, generator, rows=2):
            answer = problem.n * np.concatenate([mean, squares])
            recorded = Recorded(Noise(np.random.default_rng(0), pure=problem.pure), answer)
            program(plan.mechanism.target(plan, plan.model.summarise(records)).sum, problem, recorded)
            asked.append([seen for seen, *_ in recorded.asked])
        for stage, one, other in zip(stages, *asked, strict=True):
            moves = one - other
            if stage == "sums":
                size = float(np.linalg.norm(_weights(plan) * moves))
            else:
                values = np.linalg.eigvalsh(symmetric(moves, _columns(plan)))
                size = max(values[values > 0.0].sum(), -values[values < 0.0].sum()) if problem.pure else float(np.linalg.norm(values))  # fmt: skip
            if size > allowed[stage] * (1.0 + 1e-9):
                found[f"a record moves the {stage} further than their noise hides"] = None
    return list(found)


# ── what the plan declares, in NumPy ─────────────────────────────────────────────────────────────────────────────


def _problem(plan: Plan) -> Any:
    assert isinstance(plan.mechanism, Moments)
    return plan.mechanism.problem(plan)


def _coded(plan: Plan) -> Any:
    coded = np.zeros(_columns(plan), dtype=bool)
    for start, stop in _categories(plan):
        coded[start:stop] = True
    return coded


def _weights(plan: Plan) -> Array:
    """How much each of the sums counts: squares φ^{5/2}/2 times as much as numbers."""
    return np.append(np.ones(_columns(plan)), np.full(int((~_coded(plan)).sum()), GOLDEN**2.5 / 2.0))


def _rows(plan: Plan, records: Any) -> Array:
    """v: numbers in [−1, 1], a category's columns at least 0 and of norm at most 1."""
    lower, upper = (np.array(end) for end in plan.model.features.ends)
    share = (np.clip(np.asarray(records, dtype=np.float64), lower, upper) - lower) / np.maximum(upper - lower, 1e-300)
    rows = np.where(_coded(plan), share, np.where(upper > lower, 2.0 * share - 1.0, 0.0))
    for start, stop in _categories(plan):
        rows[:, start:stop] = _shortened(rows[:, start:stop], 1.0)
    return np.asarray(rows)


def _declared(plan: Plan, rows: Array, published: Any) -> dict[str, Array]:
    """Every sum that runs, from the plan and what was published before it."""
    numbers, coded, n = plan.parameters, _coded(plan), plan.n
    sums = np.append(rows.sum(axis=0), (rows[:, ~coded] ** 2).sum(axis=0))
    noise = numbers["sums_noise"] / n * (math.sqrt(len(sums) + 1.0) if numbers["pure"] else 1.0)
    mean = np.asarray(published["mean"])
    second, slope, own = mean.copy(), 1.0 - 2.0 * mean, np.zeros(len(mean))
    second[~coded], slope[~coded], own[~coded] = published.get("squares", ()), -2.0 * mean[~coded], noise * 2.0 / GOLDEN**2.5  # fmt: skip
    unsure = np.sqrt(own**2 + (slope * noise) ** 2 + 2.0 * noise**4)
    variance = np.maximum(second - mean**2 + noise**2, 3.0 * unsure)
    z = (rows - np.clip(mean, np.where(coded, 0.0, -1.0), 1.0)) / np.sqrt(variance)
    found = {"sums": sums}
    for stage, columns in (("moments", z), ("fourth", z**2)):
        if numbers[f"{stage}_noise"]:
            short = _shortened(columns, numbers[f"{stage}_radius"])
            found[stage] = np.asarray((short.T @ short)[np.tril_indices(len(mean))])
    return found


def _shortened(rows: Array, radius: float) -> Array:
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(size, 1e-300)))


def _neighbours(plan: Plan, generator: Any, *, rows: int = ROWS) -> tuple[Array, Array]:
    """Two synthetic tables that differ in the last record, some records at the corners of their box."""
    lower, upper = (np.array(end) for end in plan.model.features.ends)
    shares = generator.uniform(size=(rows + 1, len(lower)))
    shares[::2] = np.round(shares[::2])
    for start, stop in _categories(plan):
        levels = generator.integers(stop - start + 1, size=rows + 1)
        shares[:, start:stop] = levels[:, None] == np.arange(stop - start)
    if generator.uniform() < 0.5:
        shares[-1] = np.where(_coded(plan), shares[-1], 1.0 - shares[-2])
    table = lower + shares * (upper - lower)
    return table[:-1], np.concatenate([table[:-2], table[-1:]])
