"""Losses of a fit: what a perturbed mode needs to know of φ(u, y).

A `FitLoss` is a convex loss of one predictor with the constants of its theorem. Responses are in the fit's own unit:

| | classes (exp-linear, logistic, hinge) | numbers (log-cosh) | quantiles | counts |
| --- | --- | --- | --- | --- |
| response | ±1 | (y − centre)/t | (y − centre)/t | min(y, Y) |
| slopes | one-sided in the margin, L | two-sided, L = 1 | −τ … 1−τ | m_Y(e^u) − y, L = Y |
| curvature M | ½, ¼, 1/h | 1 | 1/2h | sup λ·P(Poisson(λ) ≤ Y−1) |

`information` is the expected curvature given the row where the model gives one (classes, counts), otherwise the
curvature itself; `variability` likewise the expected square of the slope. Standard errors are made of H = Σ a·information·zzᵀ
and K = Σ a²·variability·zzᵀ. Neither depends on the response where the model gives it, and a record's share is smaller: of counts
Var min(N, Y) ≤ M against Y². ``robust`` fits measure the curvature and the squared slope themselves.

**Several classes** (privacy/perturbed_mode.md §1): φ(u, y), u holding a score for each class. Scores count by their differences alone, so
a mode holds K − 1 *contrasts* of them: u = C·contrasts, the columns of C orthonormal and adding up to 0. A record's pull is as
long in either, and the coefficients of all classes add up to 0.

| | pull of a record | longest | largest eigenvalue of its Hessian | its trace |
| --- | --- | --- | --- | --- |
| `ClassLoss` | p − e_y | √2 | ½ | 1 − 1/K |

Two classes are better fitted by `Logistic(loss="exp-linear")`, which pulls half as much for the same information.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from onedraw.arrays import Array
from onedraw.models.convex.losses import ExpLinearLoss, HuberisedHingeLoss, LogisticLoss, array_module
from onedraw.models.convex.number_losses import CappedPoissonLoss
from onedraw.privacy.numbers import up
from onedraw.privacy.perturbed_mode import ridge_for, softmax_ridge_for, softmax_volume_cost, volume_cost

Of = Literal["information", "curvature", "variability", "squares"]


def measured_of(*, robust: bool) -> tuple[Of, Of]:
    """What H and K are sums of: as the model expects them given the row, or as they are."""
    return ("curvature", "squares") if robust else ("information", "variability")


EXPECTED_INFORMATION = {"labels": 0.15, "counts": 0.5, "measured": 0.5, "quantile": 0.25, "hinge": 0.3}
"""Information of a record in measured coordinates that a plan counts on when it decides whether to measure it at all: pq
at a predictor of standard deviation 1.5, a rate of about one half, log-cosh at its threshold, a density at a quartile, a window of width ½
with a seventh of the records."""


@dataclass(frozen=True)
class FitLoss:
    """A loss, its ``kernel``, with the constants L and M.

    ``unit``: "labels" (±1), "measured" (numbers, divided by a threshold that is measured) or "counts".
    ``level`` is the τ of a quantile.
    """

    kernel: Any
    slope_bound: float
    curvature_bound: float
    unit: Literal["labels", "measured", "counts"]
    level: float | None = None

    blocks: ClassVar[int] = 1
    """Coefficient vectors in a mode; several classes have more."""
    usual_information: ClassVar[float] = 0.2
    """Of a record in a usual design, what a ridge is chosen for: the mean of pq·s at a predictor of standard deviation 1.5."""

    spends: str = field(init=False, repr=False, compare=False)
    """What kind of responses it is for: the unit, "quantile" or "hinge"."""
    expected_information: float = field(init=False, repr=False, compare=False)
    """Of a record in a usual design: what will be measured."""

    def __post_init__(self) -> None:
        spends: str = self.unit if self.level is None else "quantile"
        if isinstance(self.kernel, HuberisedHingeLoss):
            spends = "hinge"
        object.__setattr__(self, "spends", spends)
        object.__setattr__(self, "expected_information", EXPECTED_INFORMATION[spends])

    @property
    def words(self) -> str:
        """Name of the loss for people."""
        if isinstance(self.kernel, LogisticLoss):
            return "logistic loss"
        names = {"labels": "exp-linear", "counts": "Poisson", "quantile": "pinball", "hinge": "hinge"}
        return f"{names.get(self.spends, 'log-cosh')} loss"

    def volume_cost(self, row: float, ridge: float) -> float:
        """κ: how much one record can change the volume."""
        return volume_cost(curvature=self.curvature_bound, radius_squared=row**2, ridge=ridge)

    def ridge_for(self, kappa: float, row: float) -> float:
        """The ridge for which one record's volume costs κ."""
        return ridge_for(kappa, curvature=self.curvature_bound, radius_squared=row**2)

    def curvature(self, predictor: Any, response: Any) -> Any:
        return self.kernel.curvature(predictor, response)

    def information(self, predictor: Any, response: Any) -> Any:
        """E[φ'' | x] under the model: pq·s for the logistic model by either loss; φ'' itself where none is assumed."""
        if isinstance(self.kernel, ExpLinearLoss | LogisticLoss):
            return self._certainty(predictor, power=1)
        return self.kernel.curvature(predictor, response)

    def variability(self, predictor: Any, response: Any) -> Any:
        """E[φ'² | x] under the model: pq·s², or Var min(N, Y) of counts; φ'² itself where none is assumed."""
        if isinstance(self.kernel, ExpLinearLoss | LogisticLoss):
            return self._certainty(predictor, power=2)
        if isinstance(self.kernel, CappedPoissonLoss):
            return self.kernel.variance(predictor)
        return self.squares(predictor, response)

    def _certainty(self, predictor: Any, power: int) -> Any:
        """pq·s^power, s = ((1 + e^{−|u|})/2)^c the even part of the slope."""
        xp = array_module(predictor)
        decay = xp.exp(-abs(predictor))
        exponent = self.kernel.exponent if isinstance(self.kernel, ExpLinearLoss) else 0.0
        return decay / (1.0 + decay) ** 2 * (0.5 * (1.0 + decay)) ** (power * exponent)

    def squares(self, predictor: Any, response: Any) -> Any:
        return self.kernel.slope(predictor, response) ** 2

    def largest(self, of: Of) -> float:
        """The largest of it, and so the trace of a record's matrix for r = 1: ¼ for what the logistic model expects, at
        u = 0; M for that of counts."""
        if of in ("information", "variability") and isinstance(self.kernel, ExpLinearLoss | LogisticLoss):
            return 0.25
        expected = of == "variability" and isinstance(self.kernel, CappedPoissonLoss)
        return self.curvature_bound if expected or of in ("information", "curvature") else self.slope_bound**2


# ── several classes ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ClassLoss:
    """log Σe^u − u_y of K classes: ``slopes`` (n, K−1) and ``factors`` (n, parts, K−1) in contrasts, y the codes 0 … K−1.

    A record's Hessian, or the one expected of its row, is Σ ffᵀ over its factors f.
    """

    classes: int

    unit: ClassVar[Literal["labels"]] = "labels"
    level: ClassVar[None] = None
    words: ClassVar[str] = "softmax loss"
    """Name of the loss for people."""
    spends: ClassVar[str] = "softmax"
    """What kind of responses it is for."""
    slope_bound: ClassVar[float] = up(math.sqrt(2.0))
    """The longest pull of a record with ‖z‖ = 1."""
    curvature_bound: ClassVar[float] = 0.5
    """The largest eigenvalue of its Hessian."""

    @property
    def blocks(self) -> int:
        """Coefficient vectors in a mode."""
        return self.classes - 1

    @cached_property
    def contrasts(self) -> Array:
        """C: each class in turn against the mean of those before it."""
        C = np.zeros((self.classes, self.blocks))
        for j in range(1, self.classes):
            C[:j, j - 1], C[j, j - 1] = 1.0, -float(j)
        return np.asarray(C / np.linalg.norm(C, axis=0))

    @property
    def usual_information(self) -> float:
        """Of a record in measured coordinates, where scores have a standard deviation of about 1."""
        return 0.75 / self.classes

    @property
    def expected_information(self) -> float:
        return self.usual_information

    def largest(self, of: Of) -> float:
        """The largest trace: 1 − Σp² of Σ ffᵀ = diag p − ppᵀ ("information", "curvature"), or of the pull's square."""
        return up(1.0 - 1.0 / self.classes) if of in ("information", "curvature") else 2.0

    def _probabilities(self, contrasts: Any) -> Any:
        xp, scores = array_module(contrasts), contrasts @ self.contrasts.T
        powers = xp.exp(scores - scores.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def slopes(self, contrasts: Any, y: Any) -> Any:
        """The pull of each record: its probabilities less its class as a unit vector."""
        own = (y[:, None] == np.arange(self.classes)) * 1.0
        return (self._probabilities(contrasts) - own) @ self.contrasts

    def factors(self, contrasts: Any, y: Any, of: Of) -> Any:
        """Of the Hessian, √p_j·(e_j − p): it does not depend on y, so it is also the one that the model expects."""
        p = self._probabilities(contrasts)
        xp = array_module(p)
        return xp.sqrt(p)[:, :, None] * (self.contrasts - (p @ self.contrasts)[:, None, :])

    def volume_cost(self, row: float, ridge: float) -> float:
        """κ: how much one record can change the volume."""
        return softmax_volume_cost(self.classes, radius_squared=row**2, ridge=ridge)

    def ridge_for(self, kappa: float, row: float) -> float:
        """The ridge for which one record's volume costs κ."""
        return softmax_ridge_for(kappa, self.classes, radius_squared=row**2)


ROBUST_LINES = {
    "measured": "a robust line", "labels": "a robust line for the log-odds", "counts": "a robust line for the logarithm of the rate",
    "softmax": "robust lines for the scores of the classes",
}  # fmt: skip
"""Names of what minimizers of a loss over weighted rows estimate."""

USUAL = {
    "measured": "least squares", "labels": "maximum likelihood", "counts": "maximum likelihood", "softmax": "maximum likelihood",
    "quantile": "the unweighted quantile",
}  # fmt: skip
"""Names of what people usually mean instead."""


def robust_words(loss: FitLoss | ClassLoss, target: str | None = None) -> str:
    """Return what a minimizer of the loss over weighted rows estimates, in words."""
    of = f" of {target}" if target else ""
    if loss.level is not None:
        quantile = "median" if loss.level == 0.5 else f"{loss.level:g}-quantile"
        return f"coefficients of a robust line for the {quantile}{of}"
    if loss.spends not in ROBUST_LINES:
        return f"coefficients{of} that minimize a weighted {loss.words}"
    joined = f" for {target}" if target and loss.spends == "measured" else of
    return f"coefficients of {ROBUST_LINES[loss.spends]}{joined}"


def robust_note(loss: FitLoss | ClassLoss) -> str:
    """Return how a minimizer of the loss over weighted rows differs from what people usually mean, in words."""
    far = "Rows and residuals" if loss.spends == "measured" else "Rows"
    note = f"{far} far out count less; how much less depends on n and ε."
    if loss.spends not in USUAL:
        return note
    return (
        f"{note} Where the model does not hold, these coefficients differ from those of {USUAL[loss.spends]} by an amount that "
        "hardly shrinks with n. It can be several standard errors."
    )
