"""The columns' moments first, then a posterior mechanism in the coordinates they give: one budget, two stages.

    mean and second moments of the columns, with noise  →  z = g·(W(v − m), 1), weights a(z) = min(1, r²/‖z‖²)
    →  the inner mechanism on a(z)·φ(zᵀθ, y), its prior and r fixed beforehand  →  coefficients of the columns as declared

Real columns neither fill their ranges nor are uncorrelated, and a posterior mechanism pays for the longest row there
could be; in measured coordinates a typical row is nearly as long as the longest. The inner promise holds for every value
of the published moments, so the two compose adaptively. Statement, proof and limits: measured_first.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.models import fit_constants as constant
from onedraw.models.fit_losses import FitLoss
from onedraw.models.fit_published import Published
from onedraw.models.fit_target import FitProblem
from onedraw.models.measured_model import MeasuredModel, MeasuredTarget, published_draws
from onedraw.models.priors import Gaussian
from onedraw.privacy import Assumption, GaussianDP, Guarantee, Neighbours, Promise, Provenance
from onedraw.privacy.rounding import root_up
from onedraw.privacy.validation import positive

from .fit_numbers import Setting, measuring, row_bound, shares_of, stage_one
from .gibbs_rules import gdp_mu
from .moments_stage import MomentsStage, Spending
from .noisy_gradient import NoisyGradient
from .perturbed_mode import MARGIN, layout_of
from .plan import Mechanism, Plan, Request, mechanism_from_dict, register_mechanism

PREDICTOR_DEVIATION = 2.0
"""Under the default prior the predictor of a row of norm r has this standard deviation, as in declared coordinates."""

NOTHING = MomentsStage(0.0, 0.0, 0.0)
"""The columns are taken as declared."""


@dataclass(frozen=True)
class DesignNumbers:
    """What runs before the inner mechanism. Noises are 0 where the columns are taken as declared."""

    mean_noise: float
    moments_noise: float
    moment_radius: float
    row_bound: float
    prior_deviation: float

    @property
    def moments(self) -> MomentsStage:
        return MomentsStage(self.mean_noise, self.moments_noise, self.moment_radius)

    def to_dict(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, float]) -> DesignNumbers | None:
        """None unless every number is there, finite and not negative, and those a promise rests on are above 0."""
        values = {field.name: stored.get(field.name, math.nan) for field in fields(cls)}
        needed = ("row_bound", "prior_deviation", *(("moment_radius",) if values["moments_noise"] else ()))
        in_range = all(0.0 <= value < 1e75 for value in values.values())
        return cls(**values) if in_range and all(values[name] > 1e-75 for name in needed) else None


@register_mechanism
@dataclass(frozen=True)
class Measured(Mechanism):
    """``of`` in privately measured coordinates.

    ``share`` of the budget (of μ²) measures the columns; None: the usual one where public numbers say that the moments will
    stand out of their noise, and none otherwise. 0 takes the columns as declared, and weights their rows all the same.
    ``categories`` are the (start, stop) of 0/1 columns that code one category. The prior is on the coefficients of measured
    columns, N(0, ``prior_scale``²) each (None: 2/r): the model's own prior, which is about declared ones, is not used.
    """

    title: ClassVar[str] = "in measured coordinates"
    requires: ClassVar[str] = "measured"
    """The plan *is* an algorithm: `samplers.MeasuredFirst` carries it out."""

    of: Any = field(default_factory=NoisyGradient)
    share: float | None = None
    categories: tuple[tuple[int, int], ...] = ()
    prior_scale: float | None = None

    def __post_init__(self) -> None:
        of = mechanism_from_dict(self.of) if isinstance(self.of, Mapping) else self.of
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "categories", tuple((int(start), int(stop)) for start, stop in self.categories))
        if not isinstance(of, NoisyGradient):
            raise WrongCall(
                f"Measured(of=…) takes NoisyGradient(…), but {type(of).__name__} came. Leave out Measured to have it in "
                "the columns' declared coordinates."
            )
        if self.share is not None and not (isinstance(self.share, float | int) and 0.0 <= self.share < 1.0):
            raise WrongCall(
                f"share is the part of the budget that measures the columns, from 0 up to less than 1, but {self.share!r} "
                "came. Leave it out for the usual one."
            )
        if self.prior_scale is not None:
            object.__setattr__(self, "prior_scale", positive("the prior's scale", self.prior_scale))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "of": self.of.to_dict(), "categories": [list(pair) for pair in self.categories]}

    def closed_form(self, model: Any) -> bool:
        return False

    def heading(self, plan: Plan) -> str:
        where = "in measured coordinates" if plan.parameters["moments_noise"] else "with weighted rows"
        return f"{self.of.heading(self.inner(plan))}, {where}"

    # ── from a budget to numbers ───────────────────────────────────────────────────────────────────────────

    def calibrate(self, request: Request) -> Plan:
        setting, total = self._setting(request), gdp_mu(request.exact_budget)
        numbers = self._numbers(setting, total)
        model = self._model(setting, numbers)
        inner = self.of.calibrate(
            replace(request, model=model, budget=self._left(request, setting, numbers), gamma=0.0)
        )
        return self._plan(request, numbers, inner.parameters)

    def _numbers(self, setting: Setting, total: float) -> DesignNumbers:
        """Noise and r; without the stage before where its noise would drown most columns (`fit_constants.LARGEST_EDGE`)."""
        usual, _, _ = shares_of(setting, measured=True, pure=False, robust=False)
        share = usual if self.share is None else self.share
        stage, edge = stage_one(setting, Spending(total, False), share) if share else (NOTHING, 0.0)
        if self.share is None and edge > constant.LARGEST_EDGE:
            share, stage = 0.0, NOTHING
        row = row_bound(setting, total * math.sqrt(1.0 - share), measured=share > 0.0) * (1.0 + 1e-12)
        prior = self.prior_scale or PREDICTOR_DEVIATION / row
        return DesignNumbers(stage.mean_noise, stage.moments_noise, stage.moment_radius, row, prior)

    def _left(self, request: Request, setting: Setting, numbers: DesignNumbers) -> Promise:
        """What the inner mechanism may spend: μ² less that of the moments."""
        total, spent = gdp_mu(request.exact_budget), self._design_promise(setting, numbers)
        left = total**2 - (0.0 if spent is None else spent.mu**2)
        if left <= 0.0:
            raise PromiseRefused(
                f"Measuring the columns alone spends {spent}, which leaves nothing of {request.budget}. Calibrate with a "
                "smaller share, or leave it out."
            )
        return GaussianDP(math.sqrt(left) * MARGIN)

    # ── from numbers to a promise ──────────────────────────────────────────────────────────────────────────

    def plan(self, request: Request, parameters: Mapping[str, float]) -> Plan:
        numbers = DesignNumbers.from_dict(parameters)
        if numbers is None:
            raise PromiseRefused(
                "A draw in measured coordinates needs its noises, radius, r and prior; those stated are not."
            )
        if self.prior_scale not in (None, numbers.prior_deviation):
            raise PromiseRefused("The prior stated is not the one the mechanism was made with.")
        return self._plan(request, numbers, parameters)

    def _plan(self, request: Request, numbers: DesignNumbers, parameters: Mapping[str, float]) -> Plan:
        setting = self._setting(request)
        inner = self._inner(request, setting, numbers, parameters)
        before = "the columns' moments (Gaussian noise), then, adaptively: " if numbers.moments_noise else ""
        guarantee = Guarantee(
            self._together(setting, numbers, inner.guarantee.promise), Neighbours.REPLACE_ONE, request.unit,
            before + inner.guarantee.theorem, (*self._assumptions(numbers), *inner.guarantee.assumptions),
        )  # fmt: skip
        return Plan(self, request, tuple({**numbers.to_dict(), **inner.parameters}.items()), guarantee)

    def inner(self, plan: Plan) -> Plan:
        """The plan of the mechanism within: about measured rows, under what the moments leave of the budget."""
        setting, numbers = self._read(plan)
        return self._inner(plan.request, setting, numbers, plan.parameters)

    def promise_with(self, plan: Plan, inner: Promise) -> Promise:
        """What the moments and something that keeps ``inner`` for all values of theirs promise together."""
        return self._together(*self._read(plan), inner)

    def _inner(
        self, request: Request, setting: Setting, numbers: DesignNumbers, parameters: Mapping[str, float]
    ) -> Plan:
        own = set(numbers.to_dict())
        within = replace(
            request, model=self._model(setting, numbers), budget=self._left(request, setting, numbers), gamma=0.0
        )
        inner: Plan = self.of.plan(within, {name: value for name, value in parameters.items() if name not in own})
        return inner

    def _together(self, setting: Setting, numbers: DesignNumbers, inner: Promise) -> Promise:
        spent = self._design_promise(setting, numbers)
        if spent is None:
            return inner
        assert isinstance(inner, GaussianDP)
        return GaussianDP(root_up(Fraction(spent.mu) ** 2 + Fraction(inner.mu) ** 2))

    @staticmethod
    def _design_promise(setting: Setting, numbers: DesignNumbers) -> GaussianDP | None:
        """Of mean and second moments, for a person's records: sensitivity over noise, squares added."""
        ratios = numbers.moments.ratios(setting.moment_columns, setting.k)
        return GaussianDP(root_up(sum((Fraction(ratio) ** 2 for ratio in ratios), Fraction(0)))) if ratios else None

    @staticmethod
    def _assumptions(numbers: DesignNumbers) -> tuple[Assumption, ...]:
        enforced = Provenance.ENFORCED
        found = [
            Assumption(
                f"prior of deviation {numbers.prior_deviation:.6g} on coefficients of measured columns", enforced
            )
        ]
        if numbers.moments_noise:
            found.append(Assumption("moments of the columns are sums of whole numbers on a public lattice", enforced))
        return tuple(found)

    # ── what runs ──────────────────────────────────────────────────────────────────────────────────────────

    def target(self, plan: Plan, summary: Any) -> MeasuredTarget:
        return MeasuredTarget(self.problem(plan), summary, self.inner(plan))

    def problem(self, plan: Plan) -> FitProblem:
        """Everything public of the stage before, and of the way back to the columns."""
        setting, numbers = self._read(plan)
        return FitProblem(
            plan.n, setting.layout, setting.loss, numbers.to_dict(), measuring(setting, numbers, False), pure=False,
            robust=False, response_scale=plan.model.response_scale,
        )  # fmt: skip

    def stage_sizes(self, plan: Plan) -> dict[str, int]:
        setting, numbers = self._read(plan)
        sizes = {
            "mean": setting.moment_columns.count if numbers.mean_noise else 0,
            "moments": setting.moment_columns.entries if numbers.moments_noise else 0,
            "draws": plan.draws * setting.layout.width,
        }
        return {name: size for name, size in sizes.items() if size}

    def estimate(self, plan: Plan, stages: Mapping[str, Any]) -> Any:
        """All draws, for encoded rows."""
        found = {name: np.asarray(values, dtype=np.float64) for name, values in stages.items()}
        published = Published(np.zeros(0), found.get("mean"), found.get("moments"))
        return published_draws(self.problem(plan), published, found["draws"].reshape(plan.draws, -1))

    # ── parts ──────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, plan: Plan) -> tuple[Setting, DesignNumbers]:
        numbers = DesignNumbers.from_dict(plan.parameters)
        assert numbers is not None
        return self._setting(plan.request), numbers

    def _setting(self, request: Request) -> Setting:
        model: Any = request.model
        loss = getattr(model, "fit_loss", None)
        if not isinstance(loss, FitLoss):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss of one predictor, convex, smooth and of bounded slope, that could be put "
                "into measured coordinates. Use Logistic, LogCoshRegression, Quantile, HuberisedHinge or CountRegression."
            )
        layout = layout_of(model, self.categories)
        return Setting(layout, loss, request.n, request.records_per_person, intervals=False)

    @staticmethod
    def _model(setting: Setting, numbers: DesignNumbers) -> MeasuredModel:
        assert isinstance(setting.loss, FitLoss)
        prior = Gaussian(scale=numbers.prior_deviation)
        layout, variance = setting.layout, 1.0 if numbers.moments_noise else constant.LEAST_SPREAD
        return MeasuredModel(setting.loss, layout.columns, layout.intercept, numbers.row_bound, prior, variance)
