"""Released moments, attacked: see `staged`; and the program replayed and provoked.

Rows at opposite corners of the box are the worst pair for means and squares (whose squares agree there: they add
nothing), orthogonal rows of the largest norm for products and fourth moments. `replay_moments` computes every sum a
second time in NumPy. `provoke_moments` answers the first stage with numbers of its own choice, the same on both tables,
and measures how far a record moves what is asked next: a radius that is not enforced shows there, whatever the plan
says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.methods import Moments, Plan
from onedraw.methods.moments.run import measure_all
from onedraw.models import Columns
from onedraw.models.sums.exact_sums import symmetric
from onedraw.privacy import Promise
from onedraw.samplers.noise import Noise

from . import staged
from .case import Case
from .staged import Moves, Recorded, Sums, categories_of, coded_columns, lower_triangle, shortened, tables

STAGES = ("sums", "moments", "fourth")

EACH = (
    "opposite corners for the sums, orthogonal rows of the largest norm for the others: every sensitivity is attained"
)
FEWER = "one column has no orthogonal rows, and a 0/1 column moves by 1 where √2 is allowed for"

PROVOKED = 20
"""Pairs of tables the program is provoked with."""

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0


class MomentsCase(staged.StagedCase):
    """Means and squares, then products of standardised columns, then fourth moments."""

    noises = tuple(f"{stage}_noise" for stage in STAGES)

    def replayed(self) -> tuple[str, ...]:
        return (*replay_moments(self.plan), *provoke_moments(self.plan))

    def moves(self, numbers: Mapping[str, float]) -> Moves:
        columns = int(self.plan.model.features.count)
        widths = [stop - start for start, stop in categories_of(self.plan)]
        box = math.sqrt(4.0 * (columns - sum(widths)) + sum(2.0 if width > 1 else 1.0 for width in widths))
        return {
            "sums": (box, 2 * columns - sum(widths), None),
            "moments": staged.matrix(numbers["moments_radius"] ** 2, columns, pure=self.pure),
            "fourth": staged.matrix(numbers["fourth_radius"] ** 2, columns, pure=self.pure),
        }


def moments_case(plan: Plan, *, label: str = "") -> MomentsCase:
    """The case of any release of moments."""
    attained = plan.model.features.count > 1 and all(stop - start > 1 for start, stop in categories_of(plan))
    return MomentsCase(plan, staged.EACH_STAGE, EACH if attained else FEWER, attained, label)


def covariance_cases(budget: Promise) -> list[Case]:
    """Three columns, with Gaussian and with pure noise."""
    plans = staged.with_either_noise(Moments, Columns(3, bounds=(0, 1)), budget, n=2000)
    return [moments_case(plan, label="pure" if plan.parameters["pure"] else "") for plan in plans]


def replay_moments(
    plan: Plan, given: Any = None, *, program: Callable[..., Any] = measure_all, seed: int = 20176
) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    for records in tables(plan, np.random.default_rng(7)) if given is None else given:
        recorded, published = _run(plan, records, program, seed=seed)
        rows = _rows(plan, records)
        found += staged.departures_of_sums(_declared(plan, rows, published), plan.parameters, recorded, len(rows))
        if not np.allclose(recorded.sums[0][3], _weights(plan) ** -1.0, rtol=1e-9):
            found.append("squares got another share of the noise than the lemma allows")
    return list(dict.fromkeys(found))


def provoke_moments(plan: Plan, *, program: Callable[..., Any] = measure_all, seed: int = 11) -> list[str]:
    """Stages that a record moves further than the plan's noise hides, over random pairs of tables; empty if none."""
    generator, numbers, pure = np.random.default_rng(seed), plan.parameters, bool(plan.parameters["pure"])
    coded, far = coded_columns(plan), staged.apart(2, pure=pure)
    allowed = {stage: far * numbers[f"{stage}_radius"] ** 2 for stage in STAGES[1:]}
    allowed["sums"] = staged.opposite_ends(plan)[0]
    stages = [stage for stage in STAGES if numbers[f"{stage}_noise"]]
    found: dict[str, None] = {}
    for _ in range(PROVOKED):
        mean = generator.uniform(-1.2, 1.2, len(coded))
        answer = plan.n * np.append(mean, generator.choice([-0.5, 1e-4, 0.3], int((~coded).sum())))
        pair = tables(plan, generator, rows=2)
        asked = [_run(plan, records, program, seed=0, answer=answer)[0].sums for records in pair]
        for stage, (one, *_), (other, *_) in zip(stages, *asked, strict=True):
            if stage == "sums":
                size = float(np.linalg.norm(_weights(plan) * (one - other)))
            else:
                values = np.linalg.eigvalsh(symmetric(one - other, len(coded)))
                added, taken = values[values > 0.0].sum(), -values[values < 0.0].sum()
                size = max(added, taken) if pure else float(np.linalg.norm(values))
            if size > allowed[stage] * (1.0 + 1e-9):
                found[f"a record moves the {stage} further than their noise hides"] = None
    return list(found)


def _run(
    plan: Plan, records: Any, program: Callable[..., Any], *, seed: int, answer: Array | None = None
) -> tuple[Recorded, Any]:
    problem = plan.mechanism.problem(plan)
    recorded = Recorded(Noise(np.random.default_rng(seed), pure=problem.pure), answer)
    return recorded, program(plan.mechanism.target(plan, plan.model.summarise(records)).records.sum, problem, recorded)


def _weights(plan: Plan) -> Array:
    """How much each of the sums counts: squares φ^{5/2}/2 times as much as numbers."""
    coded = coded_columns(plan)
    return np.append(np.ones(len(coded)), np.full(int((~coded).sum()), GOLDEN**2.5 / 2.0))


def _rows(plan: Plan, records: Any) -> Array:
    """v: numbers in [−1, 1], a category's columns at least 0 and of norm at most 1."""
    lower, upper = (np.array(end) for end in plan.model.features.ends)
    share = (np.clip(np.asarray(records, dtype=np.float64), lower, upper) - lower) / np.maximum(upper - lower, 1e-300)
    rows = np.where(coded_columns(plan), share, np.where(upper > lower, 2.0 * share - 1.0, 0.0))
    for start, stop in categories_of(plan):
        rows[:, start:stop] = shortened(rows[:, start:stop], 1.0)
    return np.asarray(rows)


def _declared(plan: Plan, rows: Array, published: Any) -> Sums:
    """Every sum, from the plan and what was published before it, with the largest entry of a row in it."""
    numbers, coded, n = plan.parameters, coded_columns(plan), plan.n
    sums = np.append(rows.sum(axis=0), (rows[:, ~coded] ** 2).sum(axis=0))
    noise = numbers["sums_noise"] / n * (math.sqrt(len(sums) + 1.0) if numbers["pure"] else 1.0)
    mean = np.asarray(published["mean"])
    second, slope, own = mean.copy(), 1.0 - 2.0 * mean, np.zeros(len(mean))
    second[~coded], slope[~coded] = published.get("squares", ()), -2.0 * mean[~coded]
    own[~coded] = noise * 2.0 / GOLDEN**2.5
    unsure = np.sqrt(own**2 + (slope * noise) ** 2 + 2.0 * noise**4)
    variance = np.maximum(second - mean**2 + noise**2, 3.0 * unsure)
    z = (rows - np.clip(mean, np.where(coded, 0.0, -1.0), 1.0)) / np.sqrt(variance)
    radii = numbers["moments_radius"], numbers["fourth_radius"]
    return {
        "sums": (lambda: sums, 1.0),
        "moments": (lambda: lower_triangle(shortened(z, radii[0])), radii[0]),
        "fourth": (lambda: lower_triangle(shortened(z**2, radii[1])), radii[1]),
    }
