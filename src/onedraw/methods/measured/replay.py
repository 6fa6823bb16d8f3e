"""The program of draws in measured coordinates, run beside the formulas (see `audit.cases.staged`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from onedraw.audit.cases.declared import Declared, neighbours
from onedraw.audit.cases.staged import Recorded, departures_of_sums
from onedraw.methods.measured import run as program
from onedraw.plans import Plan
from onedraw.samplers import default_sampler
from onedraw.samplers.noise import Noise


def replay_measured(plan: Plan, tables: Any = None, *, seed: int = 20176) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    for records in neighbours(plan) if tables is None else tables:
        target: Any = plan.mechanism.target(plan, plan.model.summarise(records))
        recorded: Any = Recorded(Noise(np.random.default_rng(seed), pure=False))
        published = program.design(target, recorded)
        declared = Declared(plan, records)
        sums = declared.sums(target.problem.moment_columns, published)
        found += departures_of_sums(sums, plan.parameters, recorded, len(declared.rows))
        found += _departures_of_the_draw(plan, declared, target, published)
    return list(dict.fromkeys(found))


LATTICE = 2.0**-14
"""Much coarser than a row's lattice, much finer than a row."""


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
        coarse = LATTICE * plan.n * numbers["weight"] * numbers["row_bound"]  # rows are cut onto a lattice first
        if not np.allclose(law.gradient(theta), wanted, rtol=1e-6, atol=1e-6 + coarse):
            found.append("the draw follows another gradient than the plan declares")
    sampler: Any = default_sampler(plan)[0].to_dict()["of"]
    if (sampler["steps"], sampler["step_size"]) != (int(numbers["steps"]), numbers["step_size"]):
        found.append("the draw takes other steps than the plan declares")
    return found
