"""A whole audit: every case examined, its smallest caught fault found, its draws attacked, within a stated effort.

What is done, and how many rounds an attack has, is decided beforehand from public numbers (steps of a chain, number of
records): the plan of an audit, and the time it will take, are the same for every data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onedraw import audit
from onedraw.audit.results import AttackResult

from .examination import Examination, examine, smallest_caught_factor
from .program import BLACK_BOX, attack_program


@dataclass(frozen=True)
class Effort:
    """How hard to try: at most so many rounds per attack, and so many seconds for all attacks together."""

    name: str
    rounds: int
    attack_seconds: float
    methods: tuple[str, ...]
    chains: bool
    """Whether chains are attacked and fits replayed too: compiling one takes longer than a whole demonstration."""
    faults: bool
    """Whether the smallest caught fault is sought."""
    thorough: bool
    """Whether every profile is held against the whole promise, or only against its own currency."""


ALL = ("membership", "bayes", "histogram", "classifier")
EFFORTS = {
    "demo": Effort("demo", 4_000, 1.0, ALL[:1], chains=False, faults=False, thorough=False),
    "quick": Effort("quick", 40_000, 16.0, ALL[:2], chains=True, faults=True, thorough=False),
    "full": Effort("full", 1_000_000, 600.0, ALL, chains=True, faults=True, thorough=True),
}

FEWEST = 2_000
"""Rounds of an attack that is worth making."""

REPLAYING = 4.0
"""Seconds for a fit, most of them for compiling its sums."""


@dataclass(frozen=True)
class Task:
    """One case and what will be done with it."""

    case: Any
    rounds: int
    """Of the attack on the program's draws; 0: none."""
    why: str
    """Why none, if none."""
    seconds: float
    sampler: Any = None


def tasks_for(
    cases: Sequence[Any], effort: Effort, *, rounds: int | None = None, confidence: float = 0.95, sampler: Any = None
) -> list[Task]:
    """What an audit of this effort does with each case, and about how long it takes."""
    allowed = effort.attack_seconds / len(cases)
    return [_task(case, effort, allowed, rounds, confidence, sampler) for case in cases]


def _task(case: Any, effort: Effort, allowed: float, rounds: int | None, confidence: float, named: Any) -> Task:
    exact = 4.0 if effort.thorough else 0.4
    if case.plan is None:
        _check(case, rounds or effort.rounds, effort, confidence)
        return Task(case, rounds or effort.rounds, "", exact)
    if case.without_draws:
        return Task(case, 0, case.without_draws, exact + REPLAYING * effort.chains)
    sampler = case.sampler(case.plan) if named is None else named
    if sampler is None:
        return Task(case, 0, "no proven sampler exists for it", exact)
    each, compiling = sampler.seconds_each(case.plan), sampler.compiling
    if compiling and not effort.chains:
        return Task(case, 0, f"compiling its chain takes longer than --budget {effort.name}", exact)
    passes = 1.6 * len(effort.methods) * each
    possible = int(allowed / passes)
    if rounds is None and possible < FEWEST and not effort.thorough:
        return Task(case, 0, f"drawing takes too long for --budget {effort.name}", exact)
    chosen = max(FEWEST, min(effort.rounds, possible)) if rounds is None else rounds
    _check(case, chosen, effort, confidence)
    return Task(case, chosen, "", exact + compiling + chosen * passes, sampler)


def _check(case: Any, rounds: int, effort: Effort, confidence: float) -> None:
    """Refuse rounds so few that even a mechanism that publishes its records would pass."""
    counted = max(1, rounds // (4 if set(effort.methods) & set(BLACK_BOX) else 2))
    each = 1.0 - (1.0 - confidence) / len(effort.methods)
    audit.check_rounds(counted, case.promise.epsilon(case.delta), case.delta, each)


def investigate(
    tasks: Sequence[Task], effort: Effort, *, confidence: float = 0.95, generator: np.random.Generator,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[Examination]:  # fmt: skip
    """Carry the tasks out; ``progress`` is told the name of each case as it is begun."""
    for task in tasks:
        case = task.case
        progress(case.name)
        found = examine(case, thorough=effort.thorough, confidence=confidence)
        factor: float | None = None
        attacks: tuple[AttackResult, ...] = ()
        if effort.faults:
            factor = smallest_caught_factor(case, found.pair, gap=found.gap, confirm=effort.thorough)
        if task.rounds:
            attacks = attack_program(
                case, found.open_pair, rounds=task.rounds, methods=effort.methods, delta=found.delta,
                confidence=confidence, generator=generator, sampler=task.sampler,
            )  # fmt: skip
        departures = case.replayed() if effort.chains else None
        left_out = (task.why,) if task.why else ()
        yield replace(found, factor=factor, attacks=attacks, left_out=left_out, departures=departures)
