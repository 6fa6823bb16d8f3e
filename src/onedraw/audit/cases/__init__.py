"""Cases: which law a release has on a pair of tables, and a whole audit of it. The methods' own are in `onedraw.methods.<name>.audit`.

``case`` what a case is · ``losses``, ``laws``, ``conjugate``, ``predictor``, ``selections`` formulas that several methods' cases
share, written down again from the papers · ``staged`` plans in stages; ``declared`` the sums of a regression, which their programs
are held against · ``investigation`` promise and exact profile, the smallest fault caught, the draws the library really makes
attacked, with the effort stated beforehand · ``literature`` published faults, shown.

Which mechanisms are attacked, `onedraw.methods.catalog` finds out by asking them. The rest of `audit` knows none of this: it sees
densities, probability vectors and draws. Proof and audit share no formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .case import Case, DensityCase, FiniteCase, Pair, no_formula, program_draws
    from .investigation import (
        EFFORTS,
        Effort,
        Examination,
        attack_program,
        examine,
        investigate,
        smallest_caught_factor,
        tasks_for,
    )
    from .literature import Fault, faults

__all__ = [
    "EFFORTS", "Case", "DensityCase", "Effort", "Examination", "Fault", "FiniteCase", "Pair", "attack_program",
    "examine", "faults", "investigate", "no_formula", "program_draws", "smallest_caught_factor", "tasks_for",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "case": ("Case", "DensityCase", "FiniteCase", "Pair", "no_formula", "program_draws"),
        "investigation": (
            "EFFORTS", "Effort", "Examination", "attack_program", "examine", "investigate", "smallest_caught_factor", "tasks_for",
        ),
        "literature": ("Fault", "faults"),
    })  # fmt: skip
