"""Which mechanisms are attacked, on which pairs, with which planted faults: the auditor's case files.

``case`` what a case is · ``losses``, ``laws`` formulas they share · ``conjugate``, ``convex``, ``divergence``,
``finite``, ``quantiles``, ``noise`` the laws of the project's own mechanisms, written down again from the papers ·
``staged`` plans in stages: ``fits``, ``measured``, ``moments``, and their programs run beside the formulas ·
``catalogue`` all of them by model, and the case of any plan · ``investigation`` promise and exact profile, the smallest
fault caught, the draws the library really makes attacked, with the effort stated beforehand · ``literature`` published
faults, shown.

The room `audit` knows none of this: it sees densities, probability vectors and draws. Proof and audit share no formula.
"""

from __future__ import annotations

from onedraw.on_demand import names_on_demand

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
    "literature": ("Fault", "faults"),
})  # fmt: skip

__all__ = __dir__()
