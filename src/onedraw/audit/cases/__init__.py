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

# name → the file it lives in
_NAMES = {
    **dict.fromkeys(("Case", "DensityCase", "Pair"), "case"),
    **dict.fromkeys(("BUILDERS", "case_for", "cases", "every_case"), "catalogue"),
    **dict.fromkeys(("EFFORTS", "Effort", "Examination", "attack_program", "examine"), "investigation"),
    **dict.fromkeys(("investigate", "program_draws", "smallest_caught_factor", "tasks_for"), "investigation"),
    **dict.fromkeys(("replay_fit",), "fits"),
    **dict.fromkeys(("replay_measured",), "measured"),
    **dict.fromkeys(("provoke_moments", "replay_moments"), "moments"),
    **dict.fromkeys(("Fault", "faults"), "literature"),
}

__all__ = sorted(_NAMES)

__getattr__, __dir__ = names_on_demand(__name__, _NAMES)
