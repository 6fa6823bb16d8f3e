"""Exact draws on a ball by rejection, attacked: the promise on the worst pair along one row, and the program replayed.

A replay draws from the library on both tables of a pair whose posterior presses against the ball, where the curvature that the
envelope rests on is least, and holds the linear predictors of the draws against their law, written down again in one dimension
(`audit.cases.predictor`). A weight that is 5 % off shows in it, and an envelope with too much curvature accepts with a probability above 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from onedraw.arrays import Array
from onedraw.audit.cases.case import pure
from onedraw.audit.cases.losses import flips
from onedraw.audit.cases.predictor import RANGE, PredictorCase
from onedraw.methods.catalog import eligible
from onedraw.methods.gibbs import Gibbs
from onedraw.models import Gaussian, Logistic
from onedraw.plans import Plan
from onedraw.privacy import Promise
from onedraw.samplers import Perfect, seeded_generator
from onedraw.samplers.perfect import WrongEnvelope

RECORDS, DRAWS, ALPHA = 400, 60_000, 1e-6
"""Of a replay: 5 % of the weight move the distribution function by 0.02, twice what so many draws leave to chance at this level."""


class RejectionCase(PredictorCase):
    """A pure promise that only an exact draw keeps."""

    @property
    def mechanism(self) -> str:
        return f"{super().mechanism} by rejection"

    def replayed(self) -> tuple[str, ...]:
        return self.departures(self.plan)

    def departures(self, plan: Plan) -> tuple[str, ...]:
        """Where draws with the numbers of ``plan`` depart from the law of this case's own."""
        pair = self.pairs[-1]
        return tuple(found for records in pair for found in self._departures(plan, records))

    def _departures(self, plan: Plan, records: Any) -> list[str]:
        target = plan.target(plan.model.summarise(records))
        try:
            draws = Perfect().run(target, seeded_generator(16), size=DRAWS).draws
        except WrongEnvelope:
            return ["a try would be accepted with a probability above 1"]
        same = stats.kstest(self._distribution(records, draws @ self.row), "uniform").pvalue >= ALPHA
        return [] if same else ["the draws do not follow the posterior's formula"]

    def _distribution(self, records: Any, predictors: Array) -> Array:
        """The distribution function of u = θᵀx at these values."""
        ((low, high),) = self.domain(self.pairs[-1], 1.0)
        grid = np.linspace(low, high, 200_001)
        logs = self.integrand(records, 1.0)(grid)
        density = np.exp(logs - logs.max())
        mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        return np.asarray(np.interp(predictors, grid, mass / mass[-1]))


def rejection_cases(budget: Promise) -> list[RejectionCase]:
    """Logistic regression of two columns on the ball of radius 2, under the pure part of a budget."""
    model = Logistic(features=2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=2.0))
    plans = eligible(Gibbs("bounded"), model, pure(budget), n=RECORDS)
    return [RejectionCase(plan, flips(model, plan.n), RANGE, attained=True) for plan in plans]
