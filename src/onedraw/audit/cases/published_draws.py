"""Gibbs posteriors at the weights of their papers: Minami et al. (NIPS 2016), Corollary 8; Wang, Fienberg, Smola (ICML
2015), ε/4B.

The laws are those of `convex`; what is attacked is the paper's weight. Corollary 8 is false at ε = 20, on the loss and
the record of `minami_case` (errata 16).
"""

from __future__ import annotations

from onedraw.baselines.minami import Minami
from onedraw.baselines.wang_ops import OnePosteriorSample
from onedraw.models import Gaussian, Hinge, LeastSquares
from onedraw.plans import Plan
from onedraw.privacy import ApproxDP, Promise

from .case import Case, eligible, pure
from .convex import RANGE, TAIL, PredictorCase, linear_model, predictor_case
from .losses import flips

FALSE = "the weight is larger than any that keeps this promise on a loss that is as good as linear"


def minami_case(plan: Plan, *, label: str = "") -> PredictorCase:
    reason = TAIL if plan.mechanism.proven else FALSE
    predictor_case(plan)  # which refuses what has no formula
    return PredictorCase(plan, flips(plan.model, plan.n), reason, False, label)


def sample_case(plan: Plan, *, label: str = "") -> PredictorCase:
    predictor_case(plan)
    return PredictorCase(plan, flips(plan.model, plan.n), RANGE, True, label)


def minami_cases(budget: Promise) -> list[Case]:
    return [minami_case(plan) for plan in eligible(Minami(), linear_model(), budget, n=4)]


def sample_cases(budget: Promise) -> list[Case]:
    model = LeastSquares(
        features=1, intercept=False, data_norm=1.0, response_bound=1.0, prior=Gaussian(scale=1.0, radius=1.0)
    )
    return [sample_case(plan) for plan in eligible(OnePosteriorSample(), model, pure(budget), n=4)]


def published_minami(epsilon: float = 20.0, delta: float = 1e-5) -> PredictorCase:
    """Errata 16: the hinge of one row of norm 0.1, prior N(0, 1)."""
    model = Hinge(features=1, intercept=False, data_norm=0.1, prior=Gaussian(scale=1.0))
    (plan,) = eligible(Minami(as_published=True), model, ApproxDP(epsilon, delta), n=1)
    return minami_case(plan, label="as published")
