"""The program of a perturbed mode, run beside the formulas (see `audit.cases.staged`).

The theorem is about weighted sums, a minimum found to a tolerance, and noises of stated sizes.
`replay_fit` runs the program on two neighbouring tables while it writes down every sum that was handed to the noise and
every noise that came back, and computes each of them a second time, in plain NumPy, from the formulas of privacy/perturbed_mode.md §2:
Σv, Σx̄x̄ᵀ, the gradient of the perturbed objective at what was found, Σaψzzᵀ, Σa²E[φ'²|x]zzᵀ. A fault that no profile can
show is seen here: rows shortened where weights are declared change no promise, only the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onedraw.audit.cases import staged
from onedraw.audit.cases.declared import Declared, neighbours
from onedraw.audit.cases.losses import slope_of
from onedraw.audit.cases.staged import Recorded, Sums
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models.fit.problem import Coordinates, coordinates
from onedraw.plans import Plan
from onedraw.samplers.noise import Noise as Drawn


def replay_fit(
    plan: Plan, tables: Any = None, *, program: Callable[..., Any] = Stages, noise: Any = Drawn, seed: int = 20176
) -> list[str]:
    """Where the program departs from its plan on these neighbouring tables (or on synthetic ones); empty if nowhere."""
    found: list[str] = []
    problem, numbers, loss = plan.mechanism.problem(plan), plan.parameters, slope_of(plan.model)
    for records in neighbours(plan) if tables is None else tables:
        recorded = Recorded(noise(np.random.default_rng(seed), pure=True))
        published = program(plan.mechanism.target(plan, plan.model.summarise(records)), recorded).run()
        declared, where = Declared(plan, records), coordinates(problem, published)
        bend = math.sqrt(max(loss.most, loss.information)) * numbers["row_bound"]
        sums: Sums = {
            **declared.sums(problem.moment_columns, published),
            "information": (partial(declared.information, published.mode, where), bend),
            "variability": (partial(declared.variability, published.mode, where), loss.steepest * numbers["row_bound"]),
        }
        found += staged.departures_of_sums(sums, numbers, recorded, len(declared.rows))
        found += _departures_of_the_mode(plan, declared, recorded, where)
    return list(dict.fromkeys(found))


def _departures_of_the_mode(plan: Plan, declared: Declared, recorded: Recorded, where: Coordinates) -> list[str]:
    numbers = plan.parameters
    if len(recorded.reals) != 2 or recorded.before_rounding is None:
        return ["the mode was not made with one random tilt and one closing noise"]
    (tilt, tilt_size), (closing, closing_size) = recorded.reals
    found = []
    if tilt_size != numbers["mode_noise"]:
        found.append("the mode got noise of another size than the plan's")
    if closing_size != numbers["closing_noise"]:
        found.append("the closing noise has another size than the plan's")
    residual = declared.gradient(recorded.before_rounding - closing, where) + tilt
    if np.linalg.norm(residual) > numbers["tolerance"]:
        found.append("the mode is not the minimum of the declared objective, to its tolerance")
    return found
