"""Classes from a linear predictor: logistic and exp-linear, hinge, softmax, and the log-odds of a proportion.

Constants are those of the losses (see `losses`) times the size of a row; the softmax has its own. Sources:
Minami et al. (NIPS 2016) §3.3 and supplement, Example 17; the intercept is counted where they forget it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.features import Features
from onedraw.models.fit.losses import ClassLoss, FitLoss
from onedraw.models.likelihood import Bernoulli, Categorical
from onedraw.models.likelihood.likelihood_model import Linear, WithLikelihood
from onedraw.models.model import ODDS, POSITIVE, Bound, check_fields, number, positive_number
from onedraw.models.priors import Gaussian
from onedraw.models.responses import TWO_CLASSES, Codes, Label, class_labels
from onedraw.models.row_model import DeclaredModel, TwoClasses
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import fraction_up, root_up, up
from onedraw.privacy.stored import frozen_value

from .linear_model import ConvexModel, LinearModel, enforced_bounds
from .losses import (
    SIGNS,
    ExpLinearLoss,
    HingeLoss,
    HuberisedHingeLoss,
    LinearLoss,
    LogisticLoss,
    MarginLoss,
    product_up,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Logistic(TwoClasses, LinearModel, WithLikelihood):
    """Logistic regression, or its exp-linear companion, for two classes.

    ``loss="logistic"``: log(1 + e^{−m}), m = ±θᵀx. L = r̃, smoothness r̃²/4, Δ = B, κ = cosh²(B/2).
    ``loss="exp-linear"``: ½e^{−m} for m ≥ 0, ½ − m/2 below; also consistent for the logistic parameter, with
    the smallest gradient a convex consistent loss can have for its curvature: L = r̃/2, smoothness r̃²/2,
    Δ = (B + 1 − e^{−B})/2. ``exponent`` c < 1 bends it back towards the logistic loss, L = r̃/2^c, so that it has
    curvature everywhere (the preconditioned sampler needs some).
    G = 2L is approached: with an intercept two nearly equal rows with opposite labels can both be far on the
    wrong side.
    """

    kind, title, predicts = "logistic", "Logistic regression", "probabilities"
    factor = ODDS
    # for β-divergence posteriors: the logistic model, which either loss estimates
    likelihood, predictor_function = Bernoulli(), Linear()

    loss: str = "logistic"
    exponent: float = field(default=1.0, metadata=POSITIVE)
    classes: Any = field(default=None, metadata=TWO_CLASSES)

    LOSSES: ClassVar[tuple[str, ...]] = ("logistic", "exp-linear")

    def _check(self) -> None:
        super()._check()
        if self.loss not in self.LOSSES:
            raise InvalidModel(f"loss must be 'logistic' or 'exp-linear', but {self.loss!r} was given.")
        if not 0.01 <= self.exponent <= 1.0 or (self.loss == "logistic" and self.exponent != 1.0):
            raise InvalidModel(
                f"exponent belongs to the exp-linear loss and lies in [0.01, 1], but {self.exponent!r} was given with "
                f"loss={self.loss!r}."
            )

    @property
    def kernel(self) -> MarginLoss:
        return LogisticLoss() if self.loss == "logistic" else ExpLinearLoss(self.exponent)

    @property
    def fit_loss(self) -> FitLoss:
        kernel = self.kernel
        return FitLoss(kernel, kernel.steepest, kernel.curvatures(math.inf, SIGNS)[1], "labels")


@dataclass(frozen=True, repr=False, kw_only=True)
class Hinge(TwoClasses, LinearModel):
    """The support vector machine's loss max(0, 1 − m), m = ±θᵀx: L = r̃, not smooth, Δ = min(2B, B + 1).

    The exact-draw rules need no smoothness; gradient samplers do: use `HuberisedHinge`.
    """

    kind, title, predicts = "svc", "Linear support vector classifier", "margin"
    changes = "the score, whose sign is the predicted class,"
    kernel = HingeLoss()

    classes: Any = field(default=None, metadata=TWO_CLASSES)


@dataclass(frozen=True, repr=False, kw_only=True)
class HuberisedHinge(TwoClasses, LinearModel):
    """The hinge with its kink rounded over [1 − width, 1]: L = r̃ as before, smoothness r̃²/width."""

    kind, title, predicts, changes = Hinge.kind, Hinge.title, Hinge.predicts, Hinge.changes

    width: float = field(default=0.5, metadata=POSITIVE)
    classes: Any = field(default=None, metadata=TWO_CLASSES)

    @property
    def kernel(self) -> LinearLoss:
        return HuberisedHingeLoss(self.width)

    @property
    def fit_loss(self) -> FitLoss:
        return FitLoss(self.kernel, 1.0, self.kernel.curvatures(math.inf, SIGNS)[1], "labels")


@frozen_value
class LogitNormalBernoulli(TwoClasses, LinearModel):
    """A proportion through its log-odds θ, with prior N(mean, variance): Example 17 of the supplement.

    ℓ(θ, x) = log(1 + e^θ) − xθ for x ∈ {0, 1}. Records have no features, so the slopes of two of them are taken
    at the same θ: ℓ(θ, 1) − ℓ(θ, 0) = −θ, and G = 1, not 2L = 2. Smoothness ¼, m_π = 1/variance.
    The data are the records' values alone: 1 (or the positive one of ``classes``), and all else.
    """

    quantity: ClassVar[str] = "log-odds"
    title, changes = "Log-odds", ""
    parameter_names, kernel, gradient_difference = ("log-odds",), LogisticLoss(), 1.0

    variance: float
    classes: Any = field(default=None, metadata=TWO_CLASSES)

    def __init__(self, *, variance: float, mean: float = 0.0, radius: float | None = None, classes: Any = None) -> None:
        spread = positive_number("variance", variance)
        prior = Gaussian(scale=math.sqrt(spread), mean=number("mean", mean), radius=radius)
        alone = Features(0, data_norm=0.0, intercept=True)
        self._set(features=alone, variance=spread, classes=classes, prior=prior)
        check_fields(self)
        self._check()

    @classmethod
    def example(cls, **options: Any) -> Self:
        return cls(**{"variance": 2.0, "radius": 2.0} | options)

    def _parts(self, data: Any) -> tuple[Any, Any]:
        return data, data

    def _from_arrays(self, data: Any) -> tuple[Any, Any]:
        y = self.response.from_values(data)
        return np.ones((len(y), 1)), y

    def _values(self) -> dict[str, Any]:
        return {"variance": self.variance, "mean": self.prior.mean, "radius": self.radius, "classes": self.classes}


@dataclass(frozen=True)
class SoftmaxLoss:
    """log Σ_j e^{u_j} − u_y, u = Wx, with W the parameter as a K × p matrix, row after row."""

    classes: int

    def _scores(self, theta: Any, X: Any) -> Any:
        return X @ theta.reshape(self.classes, -1).T

    def losses(self, theta: Any, X: Any, y: Any) -> Any:
        scores, codes = self._scores(theta, X), jnp.asarray(y).astype(int)
        return jax.nn.logsumexp(scores, axis=1) - jnp.take_along_axis(scores, codes[:, None], axis=1)[:, 0]

    def total(self, theta: Any, X: Any, y: Any) -> Any:
        return self.losses(theta, X, y).sum()

    def gradient_total(self, theta: Any, X: Any, y: Any) -> Any:
        """(P − E)ᵀX, P the class probabilities and E the classes as unit vectors."""
        codes = jnp.asarray(y).astype(int)
        residuals = jax.nn.softmax(self._scores(theta, X), axis=1) - jax.nn.one_hot(codes, self.classes, dtype=X.dtype)
        return (residuals.T @ X).reshape(-1)

    def hessian_total(self, theta: Any, X: Any, y: Any) -> Any:
        """Σ (diag p − ppᵀ) ⊗ xxᵀ."""
        p = jax.nn.softmax(self._scores(theta, X), axis=1)
        inner = p[:, :, None] * (jnp.eye(self.classes) - p[:, None, :])
        blocks = jnp.einsum("nkl,ni,nj->kilj", inner, X, X)
        return blocks.reshape(theta.size, theta.size)


@dataclass(frozen=True, repr=False, kw_only=True)
class Softmax(ConvexModel, DeclaredModel, WithLikelihood):
    """Several classes, one row of coefficients each (the prior makes the redundant one proper).

    ∇ℓ = (p − e_y) xᵀ and ‖p − e_y‖ ≤ √2, so L = √2·r̃ and G = 2L. ∇²ℓ = (diag p − ppᵀ) ⊗ xxᵀ, and the largest
    eigenvalue of diag p − ppᵀ is at most ½ (half its largest absolute row sum, 2p(1−p) ≤ ½): r̃²/2.
    On a ball ‖W‖ ≤ R every u_j − u_y lies within ±√2B, B = Rr̃, so ℓ lies between the logarithms in
    Δ = log[(1 + (K−1)e^{√2B})/(1 + (K−1)e^{−√2B})]. ϱ = min(2Δ, 2RG): the difference is G-Lipschitz there.

    The parameter is flat: class by class, the features and then the intercept.
    """

    kind, title, predicts = "softmax", "Multiclass logistic regression", "probabilities"
    changes, besides = "a class's score", "; only differences between classes matter"
    slope_interval = (-1.0, 1.0)  # of each class: its probability, less 1 for the record's own

    classes: tuple[Label, ...] = field(metadata={"check": class_labels})

    @classmethod
    def example(cls) -> Self:
        prior = Gaussian(scale=2.0, radius=1.5)
        return cls(2, data_norm=1.5, intercept=False, classes=("a", "b", "c"), prior=prior)

    @property
    def kernel(self) -> SoftmaxLoss:
        return SoftmaxLoss(len(self.classes))

    @property
    def fit_loss(self) -> ClassLoss:
        return ClassLoss(len(self.classes))

    @property
    def dimension(self) -> int:
        return int(len(self.classes) * self.features.width)

    @property
    def row_blocks(self) -> int:  # type: ignore[override]  # an attribute of all others
        return len(self.classes)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"{label}: {name}" for name, label in self.terms)

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, str(label)) for label in self.classes for name in self.features.column_names)

    @property
    def response(self) -> Codes:
        return Codes(self.classes)

    @property
    def likelihood(self) -> Categorical:
        """For β-divergence posteriors."""
        return Categorical(len(self.classes))

    @property
    def predictor_function(self) -> Linear:
        return Linear(len(self.classes))

    @property
    def _bounds(self) -> dict[str, Bound]:
        proved, reach = Provenance.PROVED, self.features.reach
        squared = self.features.squared_reach
        lipschitz = root_up(2 * squared)
        found = {
            **enforced_bounds(self),
            "lipschitz": Bound(lipschitz, proved, "L = √2·r̃: ‖p − e_y‖ ≤ √2"),
            "gradient_difference": Bound(2.0 * lipschitz, proved, "G = 2L"),
            "smoothness": Bound(fraction_up(squared / 2), proved, "r̃²/2: diag p − ppᵀ ≤ ½"),
            "strong_convexity": Bound(0.0, proved, "one record's loss is flat across its row"),
        }
        if self.radius is None:
            return found
        bound = product_up(self.radius, reach)
        spread = self._spread(bound)
        largest = min(2.0 * spread, 2.0 * product_up(self.radius, 2.0 * lipschitz))
        return found | {
            "predictor_bound": Bound(bound, proved, "B = R·r̃: ‖Wx‖ on the ball"),
            "sensitivity": Bound(spread, proved, "Δ: every u_j − u_y lies within ±√2·B"),
            "range": Bound(largest, proved, "ϱ = min(2Δ, 2RG)"),
        }

    def _spread(self, bound: float) -> float:
        """log(1 + (K−1)e^a) − log(1 + (K−1)e^{−a}), a = √2·B, without overflow: a + log of a ratio."""
        a, others = up(math.sqrt(2.0) * bound), len(self.classes) - 1
        ratio = (math.exp(-a) + others) / (1.0 + others * math.exp(-a))
        return up(a + math.log(ratio))
