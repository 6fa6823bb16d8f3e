"""Posteriors that know of the noise: what noisy sums say of a parameter, the noise included, for one spend.

Bernstein and Sheldon, "Differentially Private Bayesian Inference for Exponential Families" (NeurIPS 2018,
arXiv:1809.02188) and "Differentially Private Bayesian Linear Regression" (NeurIPS 2019, arXiv:1910.13153). What is
published, and so the promise, is that of `SufficientStatistics`; what follows is the posterior p(θ | noisy sums)
instead of p(θ | sums). Theorems, what each posterior is about, and what is exact in it: noise_aware.md.

| model | law of the true sum | file |
| --- | --- | --- |
| Beta–Bernoulli, Dirichlet–categorical | exact: a finite mixture | `noisy_counts` |
| Gamma–Poisson, Gamma–Exponential, Gaussian mean | normal, with the exact moments of clamped records | `noisy_totals` |
| Gaussian regression with bounds | exact for normal rows: Wishart, normal, χ² | `noisy_products`, `noisy_regression` |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from onedraw.errors import UnsupportedBudget
from onedraw.methods.added_noise.mechanism import noise_deviation, whole_numbers
from onedraw.methods.base import Posterior
from onedraw.models import BetaBernoulli, DirichletCategorical, GaussianMean, GaussianRegression, NormalInverseGamma
from onedraw.models.model import positive_number
from onedraw.plans import Plan, Request

from . import noisy_counts
from .noisy_counts import CountPosterior
from .noisy_products import ProductSums
from .noisy_regression import Regression, RegressionPosterior
from .noisy_totals import TotalPosterior
from .sufficient_statistics import FamilyNoise, WholeSums, check_one_draw

if TYPE_CHECKING:
    from onedraw.audit.cases.case import Case
    from onedraw.methods.base import AuditCases


@dataclass(frozen=True)
class NoiseAware(FamilyNoise):
    """A whole posterior for one spend, whose intervals count sampling and privacy noise together.

    **Guarantee.** The noisy sums keep the plan's promise; posterior, draws and intervals follow from them and cost
    nothing. ``law`` is "laplace", "gaussian", or None for the one with less noise under the budget.

    Of a regression ``response_bound`` is Y, to which responses are clamped, and ``row_deviation`` the standard
    deviation that columns are believed to have, as a share of their bound, as if d + 2 records had shown it: both
    public.

    | what follows | how |
    | --- | --- |
    | the released estimate | the posterior's mean; of a regression, of the sums that its chain starts from |
    | `Release.posterior(size)` | draws, as many as one likes |
    | `Release.conf_int(level)` | credible intervals: under the model and its prior they cover as often as they say |
    """

    title: ClassVar[str] = "Noise-aware posterior"

    response_bound: Annotated[float | None, partial(positive_number, "response_bound")] = None
    row_deviation: Annotated[float, partial(positive_number, "row_deviation")] = 0.4

    def heading(self, plan: Plan) -> str:
        return f"a posterior from sums with discrete {str(self.law).capitalize()} noise, which counts that noise"

    def sums(self, request: Request) -> WholeSums:
        if isinstance(request.model, GaussianRegression):
            return self._products(request)
        if self.response_bound is not None:
            raise UnsupportedBudget(
                f"response_bound is about the responses of a regression, and {type(request.model).__name__} has none. "
                "Leave it out."
            )
        if isinstance(request.model, GaussianMean) and request.model.dim > 1:
            raise UnsupportedBudget(
                "The law of a vector that was shortened onto a ball has no closed form, so no posterior that knows of "
                "the noise is had for it. Release each coordinate by itself with dim=1, or use baselines.SufficientStatistics()."
            )
        return super().sums(request)

    def _products(self, request: Request) -> ProductSums:
        """Of a regression whose rows and responses are bounded, and whose variance has a prior."""
        check_one_draw(self.title, request)
        model: Any = request.model
        if self.response_bound is None or not model.features.bounded:
            raise UnsupportedBudget(
                "Products of rows and responses have no bound unless both are declared. Pass response_bound=Y to "
                "NoiseAware, and bounds=(lo, hi) or data_norm=r to the model."
            )
        if not isinstance(model.prior, NormalInverseGamma) or not model.prior.conjugate:
            raise UnsupportedBudget(
                "A noise-aware regression integrates coefficients and variance out, which takes the conjugate prior. "
                "Pass variance_floor=… and prior=NormalInverseGamma(…) to the model, not a known variance."
            )
        if request.n < model.features.width + 4:
            raise UnsupportedBudget(
                f"{request.n} records are too few for {model.features.width} coefficients. Use at least "
                f"{model.features.width + 4}."
            )
        return ProductSums.of(model, self.response_bound, request.n)

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        found = super().plan(request, parameters)
        if isinstance(request.model, DirichletCategorical):
            noisy_counts.check_size(self.title, request.n, len(request.model.prior), noise_deviation(found))
        return found

    def posterior(self, plan: Plan, stages: Mapping[str, Any]) -> Posterior:
        noisy: Any = np.asarray(whole_numbers(stages))
        if isinstance(plan.model, BetaBernoulli | DirichletCategorical):
            return CountPosterior.of(plan, noisy)
        if isinstance(plan.model, GaussianRegression):
            return RegressionPosterior(self.regression(plan), noisy * float(self.sums(plan.request).unit))
        return TotalPosterior.of(plan, noisy)

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        if not isinstance(plan.model, GaussianRegression):
            return super().estimate(plan, stages)
        regression = self.regression(plan)
        return regression.plug_in(whole_numbers(stages) * float(regression.sums.unit))[0]

    def regression(self, plan: Plan) -> Regression:
        """All that is public of a plan's regression."""
        return Regression.of(plan, self._products(plan.request), self.row_deviation)

    def audit_case(self, plan: Plan) -> Case | None:
        from .audits.family_sums import noise_aware_case

        return noise_aware_case(plan.for_one_draw())

    @classmethod
    def audit_cases(cls) -> AuditCases:
        from .audits.family_sums import noise_aware_cases

        return {"baselines": noise_aware_cases}
