"""One posterior sample: a draw from a posterior on a bounded parameter set, whose log-likelihoods are at most B.

    p(θ) ∝ π(θ)·exp(−w Σ ℓ(θ, x_i)),        |ℓ| ≤ B on the ball,        w = ε/4B

Y.-X. Wang, S. Fienberg, A. Smola, "Privacy for free" (ICML 2015, arXiv:1502.07645), Theorem 1 and its scaling: one draw
at w = 1 is 4B-private. It is ``Gibbs(rule="bounded")`` with a worse constant: ε/4B in place of ε/ϱ, ϱ ≤ 2·(sup ℓ − inf
ℓ) the true range. Statement, and when anybody should use it (never): wang_ops.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from onedraw.errors import UnsupportedBudget
from onedraw.methods import Gibbs
from onedraw.models.convex.linear_model import LinearModel
from onedraw.models.convex.losses import MarginLoss
from onedraw.models.convex.number_losses import ResidualLoss
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, BoundedRange, PureDP
from onedraw.privacy.numbers import fraction_down, up

from .over_gibbs import OverGibbs

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases
    from onedraw.plans import Plan


@dataclass(frozen=True)
class OnePosteriorSample(OverGibbs):
    """One draw at the published weight ε/4B; several, or a person's several records, share ε. The promise stated is
    that of the true range at this weight, never weaker than ε. A pure ε takes an exact draw: `LeastSquares`."""

    title: ClassVar[str] = "one posterior sample"
    source: ClassVar[str] = "Wang, Fienberg, Smola (ICML 2015), Theorem 1, at the weight ε/4B: "

    @property
    def rule(self) -> Gibbs:
        return Gibbs("bounded")

    def weight(self, request: Request) -> float:
        budget = request.exact_budget
        if not isinstance(budget, PureDP | BoundedRange | ApproxDP):
            raise UnsupportedBudget(
                f"Wang et al. speak of a pure ε, and {budget} is another promise. Use PureDP(epsilon), or "
                "ApproxDP(epsilon, delta) where a chain draws."
            )
        bound = Fraction(likelihood_bound(request.model))
        return fraction_down(Fraction(budget.stated_epsilon) / (4 * bound * request.records_per_person * request.draws))

    def numbers(self, request: Request) -> dict[str, float]:
        return {"likelihood_bound": likelihood_bound(request.model)}

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.published_draws import sample_case

        return sample_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.published_draws import sample_cases

        return {"baselines": sample_cases}


def likelihood_bound(model: Any) -> float:
    """B: the largest ℓ on the ball, for losses that are never below 0; a convex one is largest at an end."""
    kernel = model.kernel if isinstance(model, LinearModel) else None
    if not isinstance(kernel, MarginLoss | ResidualLoss) or model.radius is None:
        raise UnsupportedBudget(
            f"One posterior sample needs a loss of one linear predictor, bounded on a ball, and {type(model).__name__} has "
            "none here. Use Logistic, HuberRegression or LeastSquares with prior=Gaussian(scale=…, radius=R)."
        )
    ends = (-model.predictor_bound, model.predictor_bound)
    return up(max(float(kernel.value(u, y)) for u in ends for y in model.responses))
