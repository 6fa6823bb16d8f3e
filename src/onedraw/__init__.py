"""onedraw: differentially private estimation by posterior sampling.

Fit a model on records that must not leak and publish one draw of its parameters, with a certificate that says
which theorem makes it private, on which assumptions, and what was spent.

    import onedraw as od
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1, 1e-6), n=5000)
    release = od.release(plan, records, ledger=od.Ledger.open("ledger.db"), dataset="patients-2026")

Rooms are loaded when first touched, so importing this package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.estimators import PUBLIC as _ESTIMATORS  # their names; the files are loaded when first touched
from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from onedraw.release.release import release as release  # to a checker of types it is the verb, not the room

__version__ = "0.1.0"

_ROOMS = (
    "privacy", "data", "models", "mechanisms", "samplers", "ledger", "planning", "audit", "estimators", "baselines", "report", "errors",
)  # fmt: skip

# room → its names that are public here too
_NAMES = {
    "privacy": ("PureDP", "ApproxDP", "BoundedRange", "ZCDP", "GaussianDP", "RenyiDP", "Composed", "compose", "Guarantee"),
    "data": ("Schema", "Records", "DatabaseTable", "read"),
    "mechanisms": (
        "AddedNoise", "Direct", "Diffused", "Concentrated", "Gibbs", "NoisyGradient", "BarkerPath", "Measured", "BetaDivergence",
        "Candidates", "ExponentialQuantiles",
    ),
    "plans": ("Plan",),
    "models": ("Gaussian", "NormalInverseGamma"),
    "ledger": ("Ledger",),
    "planning": ("calibrate", "plan"),
    "release": ("release", "Release", "Certificate", "load", "verify"),
    "estimators": [name for names in _ESTIMATORS.values() for name in names],
}  # fmt: skip

__getattr__, __dir__ = names_on_demand(__name__, _NAMES, {"": _ROOMS})

__all__ = sorted([*__dir__(), "__version__"])
