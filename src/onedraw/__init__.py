"""onedraw: differentially private estimation by posterior sampling.

Fit a model on records that must not leak and publish one draw of its parameters, with a certificate that says
which theorem makes it private, on which assumptions, and what was spent.

    import onedraw as od
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1, 1e-6), n=5000)
    release = od.release(plan, records, ledger=od.Ledger.open("ledger.db"), dataset="patients-2026")

Packages are loaded when first touched, so importing this package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.estimators import PUBLIC as _ESTIMATORS  # their names; the files are loaded when first touched
from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from onedraw import (
        audit,
        baselines,
        data,
        errors,
        estimators,
        ledger,
        methods,
        models,
        planning,
        privacy,
        report,
        samplers,
    )
    from onedraw.data import DatabaseTable, Records, Schema, read
    from onedraw.estimators import (
        DPCount,
        DPCovariance,
        DPHistogram,
        DPLinearRegression,
        DPLinearSVC,
        DPLogisticRegression,
        DPMean,
        DPMLPClassifier,
        DPMLPRegressor,
        DPPoissonRegressor,
        DPProportion,
        DPQuantile,
        DPQuantileRegressor,
        DPRate,
        DPSum,
        DPVariance,
        choose,
        evaluate,
    )
    from onedraw.ledger import Ledger
    from onedraw.methods import (
        AddedNoise,
        BarkerPath,
        BetaDivergence,
        Candidates,
        Concentrated,
        Diffused,
        Direct,
        ExponentialQuantiles,
        Gibbs,
        Measured,
        NoisyGradient,
        PerturbedMode,
    )
    from onedraw.methods.base import calibrate  # planning wraps calibrate, and editors show the wrapped one
    from onedraw.methods.clipped_gradients import ClippedGradients
    from onedraw.methods.fit import AveragedSteps
    from onedraw.models import Gaussian, NormalInverseGamma
    from onedraw.planning import plan, private_bounds
    from onedraw.plans import Plan
    from onedraw.privacy import (
        ZCDP,
        ApproxDP,
        BoundedRange,
        Composed,
        GaussianDP,
        Guarantee,
        PureDP,
        RenyiDP,
        compose,
    )
    from onedraw.release import Certificate, Release, load, verify
    from onedraw.release.release import release  # the verb, not the package of this name

__version__ = "0.1.0"

_PACKAGES = (
    "privacy", "data", "models", "methods", "samplers", "ledger", "planning", "audit", "estimators", "baselines", "report", "errors",
)  # fmt: skip

# package → its names that are public here too
_NAMES = {
    "privacy": ("PureDP", "ApproxDP", "BoundedRange", "ZCDP", "GaussianDP", "RenyiDP", "Composed", "compose", "Guarantee"),
    "data": ("Schema", "Records", "DatabaseTable", "read"),
    "methods": (
        "AddedNoise", "Direct", "Diffused", "Concentrated", "Gibbs", "NoisyGradient", "BarkerPath", "Measured", "BetaDivergence",
        "Candidates", "ExponentialQuantiles", "PerturbedMode",
    ),
    "methods.clipped_gradients": ("ClippedGradients",),
    "methods.fit": ("AveragedSteps",),
    "plans": ("Plan",),
    "models": ("Gaussian", "NormalInverseGamma"),
    "ledger": ("Ledger",),
    "planning": ("calibrate", "plan", "private_bounds"),
    "release": ("release", "Release", "Certificate", "load", "verify"),
    "estimators": [name for names in _ESTIMATORS.values() for name in names],
}  # fmt: skip

if not TYPE_CHECKING:  # with a `__getattr__` a type checker would accept any name
    __getattr__, __dir__ = names_on_demand(__name__, _NAMES, {"": _PACKAGES})

__all__ = [
    "ZCDP", "AddedNoise", "ApproxDP", "AveragedSteps", "BarkerPath", "BetaDivergence", "BoundedRange", "Candidates", "Certificate",
    "ClippedGradients", "Composed", "Concentrated", "DPCount", "DPCovariance", "DPHistogram", "DPLinearRegression", "DPLinearSVC",
    "DPLogisticRegression", "DPMLPClassifier", "DPMLPRegressor", "DPMean", "DPPoissonRegressor", "DPProportion",
    "DPQuantile", "DPQuantileRegressor", "DPRate", "DPSum", "DPVariance", "DatabaseTable", "Diffused", "Direct",
    "ExponentialQuantiles", "Gaussian", "GaussianDP", "Gibbs", "Guarantee", "Ledger", "Measured", "NoisyGradient",
    "NormalInverseGamma", "PerturbedMode", "Plan", "PureDP", "Records", "Release", "RenyiDP", "Schema",
    "__version__", "audit", "baselines", "calibrate", "choose", "compose", "data", "errors", "estimators",
    "evaluate", "ledger", "load", "methods", "models", "plan", "planning", "privacy", "private_bounds", "read", "release",
    "report", "samplers", "verify",
]  # fmt: skip
