"""The program of released moments, run beside the formulas, and provoked (see `audit.cases.staged`).

`replay_moments` computes every sum a second time in NumPy. `provoke_moments` answers the first stage with numbers of its own
choice, the same on both tables, and measures how far a record moves what is asked next: a radius that is not enforced shows
there, whatever the plan says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.audit.cases import staged
from onedraw.audit.cases.staged import Recorded, Sums, categories_of, coded_columns, lower_triangle, shortened, tables
from onedraw.methods.moments.run import measure_all
from onedraw.models.sums.exact_sums import symmetric
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise

STAGES = ("sums", "moments", "fourth")

PROVOKED = 20
"""Pairs of tables the program is provoked with."""

GOLDEN = (1.0 + math.sqrt(5.0)) / 2.0


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
