"""Gibbs posteriors at the weights of their papers: Minami et al. (NIPS 2016), Corollary 8; Wang, Fienberg, Smola (ICML
2015), ε/4B.

The laws are those of `audit.cases.predictor`; what is attacked is the paper's weight. Corollary 8 is false at ε = 20, on the hinge of
one short row (errata 16).
"""

from __future__ import annotations

from dataclasses import replace

from onedraw.audit.cases.case import Case, pure
from onedraw.audit.cases.predictor import RANGE, TAIL, PredictorCase, linear_model, predictor_case
from onedraw.baselines import Minami, OnePosteriorSample
from onedraw.methods.catalog import cases_of
from onedraw.models import Gaussian, LeastSquares
from onedraw.plans import Plan
from onedraw.privacy import Promise

FALSE = "the weight is larger than any that keeps this promise on a loss that is as good as linear"


def minami_case(plan: Plan, *, label: str = "") -> PredictorCase:
    reason = TAIL if plan.mechanism.proven else FALSE
    return replace(predictor_case(plan, label=label), reason=reason, attained=False)


def sample_case(plan: Plan, *, label: str = "") -> PredictorCase:
    return replace(predictor_case(plan, label=label), reason=RANGE, attained=True)


def minami_cases(budget: Promise) -> list[Case]:
    return cases_of(minami_case, [("", Minami(), linear_model())], budget, n=4)


def sample_cases(budget: Promise) -> list[Case]:
    model = LeastSquares(
        features=1, intercept=False, data_norm=1.0, response_bound=1.0, prior=Gaussian(scale=1.0, radius=1.0)
    )
    return cases_of(sample_case, [("", OnePosteriorSample(), model)], pure(budget), n=4)
