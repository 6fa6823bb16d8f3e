"""Which mechanisms are attacked, on which pairs, with which planted faults: the auditor's case files.

``case`` what a case is · ``losses``, ``laws`` formulas they share · ``conjugate``, ``convex``, ``divergence``,
``finite``, ``quantiles``, ``noise`` the laws of the project's own mechanisms, written down again from the papers ·
``staged`` plans in stages: ``fits``, ``steps``, ``measured``, ``moments``, and their programs run beside the formulas ·
``catalogue`` all of them by model, and the case of any plan · ``investigation`` promise and exact profile, the smallest
fault caught, the draws the library really makes attacked, with the effort stated beforehand · ``literature`` published
faults, shown.

The room `audit` knows none of this: it sees densities, probability vectors and draws. Proof and audit share no formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .case import Case, DensityCase, Pair
    from .catalogue import BUILDERS, case_for, cases, every_case
    from .clipped import replay_clipped
    from .fits import replay_fit
    from .investigation import (
        EFFORTS,
        Effort,
        Examination,
        attack_program,
        examine,
        investigate,
        program_draws,
        smallest_caught_factor,
        tasks_for,
    )
    from .literature import Fault, faults
    from .measured import replay_measured
    from .moments import provoke_moments, replay_moments
    from .steps import replay_steps

__all__ = [
    "BUILDERS", "EFFORTS", "Case", "DensityCase", "Effort", "Examination", "Fault", "Pair", "attack_program",
    "case_for", "cases", "every_case", "examine", "faults", "investigate", "program_draws", "provoke_moments",
    "replay_clipped", "replay_fit", "replay_measured", "replay_moments", "replay_steps", "smallest_caught_factor",
    "tasks_for",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "case": ("Case", "DensityCase", "Pair"),
        "catalogue": ("BUILDERS", "case_for", "cases", "every_case"),
        "investigation": (
            "EFFORTS", "Effort", "Examination", "attack_program", "examine", "investigate", "program_draws", "smallest_caught_factor",
            "tasks_for",
        ),
        "fits": ("replay_fit",),
        "measured": ("replay_measured",),
        "moments": ("provoke_moments", "replay_moments"),
        "steps": ("replay_steps",),
        "clipped": ("replay_clipped",),
        "literature": ("Fault", "faults"),
    })  # fmt: skip
