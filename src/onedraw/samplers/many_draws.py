"""One draw for each of many simulated data sets, in one call: for studies of accuracy, not for releases.

Compiled together, the modes and chains of all data sets share every step; one at a time, most of a small fit's time
goes to starting it. Nothing here is accounted for or certified: private records leave through `release` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.errors import WrongCall
from onedraw.samplers.hamiltonian import HMC


def fits(targets: Sequence[Any], sampler: HMC, *, key: Any) -> NDArray[np.float64]:
    """(m, d): a draw for each of m targets of one model and one number of records, in unconstrained coordinates."""
    if not isinstance(sampler, HMC):
        raise WrongCall(
            f"fits runs HMC, whose steps are the same for every data set; a {type(sampler).__name__} came. Use HMC(steps)."
        )
    shapes = {(target.kernel, target.encoded.n, target.dimension) for target in targets}
    if len(shapes) != 1:
        raise WrongCall(
            f"fits needs targets of one model and one number of records, but {len(shapes)} kinds came. Call it for each."
        )
    from onedraw.samplers import hamiltonian_chain

    return hamiltonian_chain.run_fits(sampler, targets, key)
