"""What is a promise; when is one at least as strong as another; how do promises convert and compose.

``promises`` the six values · ``perturbed_mode`` what a randomly tilted minimum promises · ``retired`` promises of earlier versions, read and
counted · ``composition`` several together, and from a record to a person · ``curves`` and ``posterior_curves`` Rényi
curves, ``averaged_directions`` that of a decision along a random public direction · ``conversions`` the table of promises.md, one function each · ``sampled_gaussian`` noisy sums of samples · ``pld`` the other
accountant, and ``second_opinion`` what it says to every release · ``promise`` what stands on a certificate · ``numbers`` rounded,
kept in range, searched for · ``tradeoff`` what a promise leaves the best attacker.

Plain Python, NumPy and SciPy: a reviewer who knows nothing else can check it.
"""

from .averaged_directions import AveragedDirectionsCurve
from .composition import Composed, compose, group, ungroup
from .curves import AtOrderCurve, BoundedRangeCurve, Curve, LinearCurve, PureCurve, RepeatedCurve, SumCurve, add_curves
from .posterior_curves import DirichletPosterior, GammaExponentialPosterior, GammaPoissonPosterior
from .promise import (
    Accounted,
    AsRun,
    Assumed,
    Assumption,
    Estimated,
    Exact,
    Exactness,
    Guarantee,
    LastIterate,
    Neighbours,
    Promise,
    Provenance,
    Unit,
    WithinTV,
)
from .promises import ZCDP, ApproxDP, BoundedRange, GaussianDP, PureDP, RenyiDP, epsilon_delta, with_total_variation
from .retired import Corner, CornerCurve, CornerDP
from .second_opinion import certify, pld_optimistic_epsilon
from .stored import Stored
from .tradeoff import Attacker

__all__ = [
    "ZCDP", "Accounted", "ApproxDP", "AsRun", "Assumed", "Assumption", "AtOrderCurve", "Attacker", "AveragedDirectionsCurve", "BoundedRange",
    "BoundedRangeCurve", "Composed", "Corner", "CornerCurve", "CornerDP", "Curve", "DirichletPosterior",
    "Estimated", "Exact", "Exactness", "GammaExponentialPosterior", "GammaPoissonPosterior", "GaussianDP",
    "Guarantee", "LastIterate", "LinearCurve", "Neighbours", "Promise", "Provenance", "PureCurve", "PureDP",
    "RenyiDP", "RepeatedCurve", "Stored", "SumCurve", "Unit", "WithinTV", "add_curves", "certify", "compose",
    "epsilon_delta", "group", "pld_optimistic_epsilon", "ungroup", "with_total_variation",
]  # fmt: skip
