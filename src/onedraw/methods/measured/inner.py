"""What a noisy gradient in measured coordinates is calibrated to: columns, loss, noise and what promises add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from onedraw.errors import PromiseRefused, UnsupportedBudget, WrongCall
from onedraw.methods.calibration import MARGIN
from onedraw.methods.convex_bounds import gdp_mu
from onedraw.methods.fits import layout_of
from onedraw.methods.gibbs.noisy_gradient import NoisyGradient
from onedraw.methods.stages import (
    LEAST_SPREAD,
    Categories,
    row_bound,
)
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.models.fit.losses import FitLoss
from onedraw.models.moments.measured import MomentColumns
from onedraw.models.moments.measured_model import MeasuredModel
from onedraw.models.priors import Gaussian
from onedraw.plans import Request
from onedraw.privacy import GaussianDP, Promise
from onedraw.privacy.numbers import root_up

MOMENTS_SHARE = 0.15
"""Share of μ² for the moments."""

PREDICTOR_DEVIATION = 2.0
"""Under the default prior the predictor of a row of norm r has this standard deviation, as in declared coordinates."""


EARLIER = (
    "This draw is of an earlier version of onedraw, which also drew from Gibbs and β-divergence posteriors in measured coordinates. Verify it "
    "with the version that made it, which the certificate names under software. Ledgers go on counting what it cost."
)


def check_inner(of: Any) -> None:
    """Refuse any mechanism within but noisy gradients."""
    if not isinstance(of, NoisyGradient):
        raise WrongCall(
            f"Measured(of=…) takes NoisyGradient(), and {type(of).__name__} was given. Take a fit, which was at least as accurate on "
            "every table, or leave out Measured: then the mechanism keeps the columns' declared coordinates."
        )


@dataclass(frozen=True)
class Weighted:
    """A convex loss of one predictor with Mallows' weights, and Gaussian noise throughout."""

    def columns(self, model: Any, categories: Categories) -> MomentColumns:
        """What is measured; a model that has no place in measured coordinates is refused."""
        loss = model.measured_loss if isinstance(model, ConvexModel) else None
        if not isinstance(loss, FitLoss):
            raise UnsupportedBudget(
                f"{type(model).__name__} has no loss of one predictor, convex, smooth and of bounded slope, that could "
                "be put into measured coordinates. Use Logistic, LogCoshRegression, HuberRegression, Quantile, "
                "HuberisedHinge or CountRegression."
            )
        return MomentColumns(layout_of(model, categories), loss.unit == "measured")

    def total(self, budget: Promise) -> float:
        """μ, or ε: what both stages may spend together."""
        return gdp_mu(budget)

    def share(self, model: Any) -> float:
        """The usual part of it for the moments."""
        return MOMENTS_SHARE

    def row_bound(self, model: Any, columns: MomentColumns, n: int, total: float, share: float) -> float:
        """r, or 0 where rows are not weighted."""
        return row_bound(columns.layout, n, total * math.sqrt(1.0 - share), measured=share > 0.0) * (1.0 + 1e-12)

    def prior_deviation(self, model: Any, row: float) -> float:
        """Of each coefficient of measured columns, unless one was asked for."""
        return PREDICTOR_DEVIATION / row

    def model(
        self, model: Any, columns: MomentColumns, row: float, deviation: float, *, measured: bool
    ) -> MeasuredModel:
        """The inner model."""
        layout, prior = columns.layout, Gaussian(scale=deviation)
        variance = 1.0 if measured else LEAST_SPREAD
        return MeasuredModel(model.measured_loss, layout.columns, layout.intercept, row, prior, variance)

    def left(self, budget: Promise, ratios: Sequence[float]) -> Promise:
        """What the inner mechanism is calibrated to; refused where the moments leave nothing."""
        left = gdp_mu(budget) ** 2 - sum(ratio**2 for ratio in ratios)
        if left <= 0.0:
            raise _nothing_left(budget)
        return GaussianDP(math.sqrt(left) * (1.0 - MARGIN))

    def within(self, request: Request, model: Any, left: Promise) -> Request:
        """The whole's budget, which a part keeps as well: its δ carries the variates, its γ a chain's distance."""
        return replace(request, model=model)

    def together(self, ratios: Sequence[float], inner: Promise) -> Promise:
        """The adaptive composition of the moments and what keeps ``inner`` whatever they are."""
        assert isinstance(inner, GaussianDP)
        return GaussianDP(root_up(sum((Fraction(ratio) ** 2 for ratio in (*ratios, inner.mu)), Fraction(0))))


def _nothing_left(budget: Promise) -> PromiseRefused:
    return PromiseRefused(
        f"Measuring the columns leaves nothing of {budget} for the draw. Use a smaller share, or none."
    )
