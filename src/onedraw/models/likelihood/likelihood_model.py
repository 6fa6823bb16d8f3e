"""Models with a likelihood: what a β-divergence posterior ∝ π(θ) exp(−w Σ ℓ_β(θ, z_i)) needs to know.

A model here is a likelihood with a bounded density (`likelihoods`), a predictor u = m(x, θ) and a prior. The
sensitivity is the likelihood's alone, so features need no bounds, though a declared one is enforced (the public reference
design, from which β is chosen, is made of it). Predictors are linear, one hidden layer or a user's own function: frozen,
hashable values that see one row at a time (that a user's does is seen to in `one_row`), static in compiled functions.

The parameter is unconstrained, R^d: the predictor's coefficients and, where the variance is a parameter, its
coordinate η last, σ² = floor + e^η. `constrain` turns η into σ², the number people want; `log_prior` counts the
Jacobian e^η. However η is chosen, σ² ≥ floor.

| a record with | is read as |
| --- | --- |
| NaN, ±inf, None or a non-number in a feature | 0 there (the nearest value of a declared box) |
| a huge feature, no bounds declared | ±1e60 |
| an unknown class | the first class |
| NaN, ±inf or a non-number as response | 0 (of durations: the shortest) |
| a negative count, a fraction | 0, rounded down |
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.convex.losses import array_module
from onedraw.models.features import Features
from onedraw.models.model import Bound
from onedraw.models.priors import Gaussian, NormalInverseGamma, Prior
from onedraw.models.row_model import DeclaredModel, RowModel
from onedraw.privacy import Provenance

from .density import LARGEST, Likelihood

if TYPE_CHECKING:
    from onedraw.models.one_row import OneRow


class PredictorFunction(abc.ABC):
    """One θ, or many, for encoded rows X of shape (n, p)."""

    @abc.abstractmethod
    def __call__(self, theta: Any, X: Any) -> Any:
        """(n,), or (n, K) for K outputs."""

    def many(self, thetas: Any, X: Any) -> Any:
        """(m, n) or (m, n, K) for m parameters, the rows of ``thetas``."""
        return jax.vmap(self, in_axes=(0, None))(thetas, X)


@dataclass(frozen=True)
class Linear(PredictorFunction):
    """θᵀx, or Wx with W the parameter as a K × p matrix, row after row: one matrix product for many θ."""

    outputs: int = 1

    def __call__(self, theta: Any, X: Any) -> Any:
        return X @ theta if self.outputs == 1 else X @ theta.reshape(self.outputs, -1).T

    def many(self, thetas: Any, X: Any) -> Any:
        if self.outputs == 1:
            return thetas @ X.T
        scores = thetas.reshape(len(thetas) * self.outputs, -1) @ X.T
        return scores.reshape(len(thetas), self.outputs, -1).swapaxes(1, 2)


@dataclass(frozen=True)
class OneLayer(PredictorFunction):
    """W₂ a(W₁x) + b₂ with ``hidden`` units; the row's last entry is the 1 that carries the first layer's biases.

    The parameter is W₁ (hidden × p) row after row, then for each output its weights and its bias.
    """

    width: int
    hidden: int
    outputs: int = 1
    activation: str = "tanh"

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return self.hidden * self.width + self.outputs * (self.hidden + 1)

    def __call__(self, theta: Any, X: Any) -> Any:
        first = theta[: self.hidden * self.width].reshape(self.hidden, self.width)
        second = theta[self.hidden * self.width :].reshape(self.outputs, self.hidden + 1)
        inner = first @ X.T  # units by rows: long rows are several times as fast as rows of a few units
        inner = jnp.tanh(inner) if self.activation == "tanh" else jnp.maximum(inner, 0.0)
        result = second[:, :-1] @ inner + second[:, -1:]
        return result[0] if self.outputs == 1 else result.T


@dataclass(frozen=True)
class OwnFunction(PredictorFunction):
    """``fn(theta, x)`` of the user's, for one row at a time, as it was examined (`one_row`)."""

    row: OneRow

    def __call__(self, theta: Any, X: Any) -> Any:
        return jax.vmap(self.row, in_axes=(None, 0))(theta, X)


class LossKernel(abc.ABC):
    """What a β-divergence posterior is compiled from: the loss of encoded rows and a prior; hashable and free of data."""

    likelihood: Likelihood

    @abc.abstractmethod
    def predicted(self, theta: Any, X: Any) -> tuple[Any, Any]:
        """u, finite whatever a user's function makes of a record, and the variance (None if it is no parameter)."""

    def losses(self, theta: Any, X: Any, y: Any, beta: Any) -> Any:
        """ℓ_β(θ, z_i), one number per record."""
        predictor, variance = self.predicted(theta, X)
        return self.likelihood.beta_loss(beta, predictor, y, variance)

    def losses_of_many(self, thetas: Any, X: Any, y: Any, beta: Any) -> Any:
        """ℓ_β(θ_k, z_i): one row per parameter, one column per record."""
        return jax.vmap(self.losses, in_axes=(0, None, None, None))(thetas, X, y, beta)

    @abc.abstractmethod
    def negative_log_prior(self, theta: Any, *prior: Any) -> Any:
        """−log π(θ) in the unconstrained coordinates, for one θ or for the rows of an array."""


@dataclass(frozen=True)
class BetaKernel(LossKernel):
    """Loss and kind of prior, free of data and numbers: the static argument of compiled functions.

    ``prior`` are the arrays of `prior_arguments`: (precision, location, squared radius, constant) for a Gaussian,
    (scale, shape, rate, constant) for a NormalInverseGamma.
    """

    likelihood: Likelihood
    function: PredictorFunction
    conjugate: bool | None
    """Of a NormalInverseGamma prior; None for a Gaussian one."""

    def parts(self, theta: Any) -> tuple[Any, Any]:
        """Coefficients and variance (None if it is no parameter); ``theta`` may have leading axes."""
        if not self.likelihood.samples_variance:
            return theta, None
        xp = array_module(theta)
        return theta[..., :-1], xp.exp(xp.minimum(self.log_variance(theta), 250.0))

    def log_variance(self, theta: Any) -> Any:
        """log(floor + e^η)."""
        return array_module(theta).logaddexp(math.log(cast(Any, self.likelihood).floor), theta[..., -1])

    def predicted(self, theta: Any, X: Any) -> tuple[Any, Any]:
        coefficients, variance = self.parts(theta)
        return _finite(self.function(coefficients, X)), variance

    def losses_of_many(self, thetas: Any, X: Any, y: Any, beta: Any) -> Any:
        coefficients, variance = self.parts(thetas)
        variance = None if variance is None else variance[:, None]
        return self.likelihood.beta_loss(beta, _finite(self.function.many(coefficients, X)), y, variance)

    def negative_log_prior(self, theta: Any, *prior: Any) -> Any:
        """Normalised, but for the mass of a Gaussian's ball."""
        xp = array_module(theta)
        if self.conjugate is None:
            precision, location, squared_radius, constant = prior
            value = 0.5 * xp.sum(precision * (theta - location) ** 2, axis=-1) + constant
            return xp.where(xp.sum(theta * theta, axis=-1) <= squared_radius, value, xp.inf)
        scale, shape, rate, constant = prior
        coefficients, log_variance = theta[..., :-1], self.log_variance(theta)
        tempered = log_variance if self.conjugate else 0.0 * log_variance
        spread = 0.5 * xp.sum(coefficients**2, axis=-1) / scale**2 * xp.exp(-tempered)
        normal = spread + 0.5 * coefficients.shape[-1] * (tempered + 2.0 * xp.log(scale))
        return normal + (shape + 1.0) * log_variance + rate * xp.exp(-log_variance) - theta[..., -1] + constant


class WithLikelihood(abc.ABC):
    """What a β-divergence posterior needs of a model; the convex models with a likelihood have it too."""

    prior: Any

    @property
    @abc.abstractmethod
    def likelihood(self) -> Likelihood:
        """The law of a response given the predictor."""

    @property
    @abc.abstractmethod
    def predictor_function(self) -> PredictorFunction:
        """u = m(x, θ)."""

    @property
    def beta_kernel(self) -> LossKernel:
        """Loss and kind of prior, as a static value."""
        prior = self.prior
        conjugate = prior.conjugate if isinstance(prior, NormalInverseGamma) else None
        return BetaKernel(self.likelihood, self.predictor_function, conjugate)

    @property
    def _size(self) -> int:
        return int(cast(Any, self).dimension)

    @property
    def prior_arguments(self) -> tuple[Any, ...]:
        """The prior's numbers, as `BetaKernel` takes them."""
        prior, size = self.prior, self._size
        if isinstance(prior, Gaussian):
            precision = prior.precision(size)
            constant = 0.5 * size * math.log(2.0 * math.pi) - 0.5 * float(np.log(precision).sum())
            squared = math.inf if prior.radius is None else prior.radius**2
            return precision, prior.location(size), squared, constant
        floor = cast(Any, self.likelihood).floor
        inside = float(special.gammainc(prior.shape, prior.rate / floor))
        inverse_gamma = math.log(inside) + float(special.gammaln(prior.shape)) - prior.shape * math.log(prior.rate)
        return prior.scale, prior.shape, prior.rate, inverse_gamma + 0.5 * (size - 1) * math.log(2.0 * math.pi)

    def log_prior(self, theta: Any) -> Any:
        """log π(θ), for one θ or for the rows of an array; normalised, but for the mass of a Gaussian's ball."""
        given = theta if array_module(theta) is not np else np.asarray(theta, dtype=np.float64)
        return -self.beta_kernel.negative_log_prior(given, *self.prior_arguments)

    def draw_prior(self, generator: np.random.Generator, size: int) -> Array:
        """``size`` independent draws from the prior, unconstrained, one per row."""
        prior, dimension = self.prior, self._size
        if isinstance(prior, NormalInverseGamma):
            floor = cast(Any, self.likelihood).floor
            inside = special.gammainc(prior.shape, prior.rate / floor)
            precision = special.gammaincinv(prior.shape, inside * (1.0 - generator.random(size))) / prior.rate
            variance = 1.0 / np.clip(precision, 1e-60, 1.0 / floor)
            spread = prior.scale * (np.sqrt(variance) if prior.conjugate else np.ones(size))
            coefficients = spread[:, None] * generator.standard_normal((size, dimension - 1))
            return np.column_stack([coefficients, self._coordinate(variance)])
        kept: list[Array] = []
        missing = size
        while missing > 0:  # on a ball: those outside are drawn again
            noise = generator.standard_normal((missing, dimension))
            draws = prior.location(dimension) + noise / np.sqrt(prior.precision(dimension))
            if prior.radius is not None:
                draws = draws[np.einsum("ij,ij->i", draws, draws) <= prior.radius**2]
            kept.append(draws)
            missing -= len(draws)
        return np.concatenate(kept) if kept else np.zeros((0, dimension))

    def predictor(self, theta: Any, X: Any) -> Any:
        """u = m(x_i, θ) for encoded rows X."""
        return self.beta_kernel.predicted(theta, X)[0]

    def constrain(self, theta: Any) -> Array:
        """θ as it is published: the variance in place of its coordinate. For one θ or for the rows of an array."""
        result = np.array(theta, dtype=np.float64)
        if self.likelihood.samples_variance:
            result[..., -1] = np.exp(np.minimum(cast(BetaKernel, self.beta_kernel).log_variance(result), 700.0))
        return result

    def unconstrain(self, theta: Any) -> Array:
        """The inverse of `constrain`; a variance at or below the floor has the coordinate −700."""
        result = np.array(theta, dtype=np.float64)
        if self.likelihood.samples_variance:
            result[..., -1] = self._coordinate(result[..., -1])
        return result

    def _coordinate(self, variance: Array) -> Array:
        excess: Array = np.maximum(variance - cast(Any, self.likelihood).floor, math.exp(-700.0))
        return np.log(excess)


class LikelihoodModel(RowModel, WithLikelihood):
    """A likelihood with a bounded density, a predictor and a proper prior.

    **Guarantee.** `summarise` never fails on the value of a record, row i of its result depends on record i alone, and
    for every θ two rows' β-losses differ by at most ``likelihood.sensitivity(beta)``.
    """

    quantity: ClassVar[str] = "coefficients"
    needs_bounds: ClassVar[bool] = False

    usual_prior: ClassVar[tuple[float, bool]] = (3.0, True)
    """Scale of the coefficients' prior where none is given, and whether a sampled variance scales it too."""

    features: Features
    prior: Prior

    def _check(self) -> None:
        """The prior, last: it must fit the likelihood and the dimension."""
        name, sampled = type(self).__name__, self.likelihood.samples_variance
        if cast(Any, self.prior) is None:
            scale, conjugate = self.usual_prior
            self._set(prior=NormalInverseGamma(scale, conjugate=conjugate) if sampled else Gaussian(scale))
        expected = NormalInverseGamma if sampled else Gaussian
        if not isinstance(self.prior, expected):
            why = "its variance is a parameter" if sampled else "it has no variance to be estimated"
            raise InvalidModel(
                f"{name} needs a {expected.__name__} prior, because {why}; got a {type(self.prior).__name__}. Pass "
                f"prior={expected.__name__}(scale=3.0), say{', or variance=… if the variance is known' if sampled else ''}."
            )
        if isinstance(self.prior, Gaussian):
            self.prior.check(self.dimension)

    @property
    @abc.abstractmethod
    def coefficient_names(self) -> tuple[str, ...]:
        """One name for each parameter of the predictor."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.coefficient_names + (("variance",) if self.likelihood.samples_variance else ())

    @property
    def least_variance(self) -> float | None:  # type: ignore[override]  # an attribute of all others
        drawn = self.likelihood.samples_variance and self.parameter_names[-1] == "variance"
        return self.likelihood.floor if drawn else None  # type: ignore[attr-defined]  # as all with a variance

    @property
    def dimension(self) -> int:
        """How many parameters there are, the variance included if it is one."""
        return len(self.coefficient_names) + self.likelihood.samples_variance

    @property
    def own_functions(self) -> tuple[str, ...]:
        return self.likelihood.own_functions

    @property
    def response(self) -> Any:
        return self.likelihood.response

    @property
    def radius(self) -> float | None:
        """R of the prior's ball, or None."""
        return self.prior.radius if isinstance(self.prior, Gaussian) else None

    @property
    def prior_scale(self) -> float:
        """With a variance of its own: of the coefficients at its floor, or the floor itself if that is smaller."""
        if isinstance(self.prior, Gaussian):
            return self.prior.deviation(self.dimension)
        prior, floor = cast(NormalInverseGamma, self.prior), float(cast(Any, self.likelihood).floor)
        return min(prior.scale * (math.sqrt(floor) if prior.conjugate else 1.0), floor)

    @property
    def _bounds(self) -> dict[str, Bound]:
        found = {"density": self.likelihood.density_bound}
        if self.features.bounded:
            why = f"rows are {self.features.enforced_by}"
            found["feature_norm"] = Bound(self.features.reach, Provenance.ENFORCED, why)
        floor = getattr(self.likelihood, "floor", None)
        if floor is not None:
            known = getattr(self.likelihood, "variance", None) is not None
            why = "the variance is known" if known else "σ² = floor + e^η, whatever η"
            found["variance_floor"] = Bound(floor, Provenance.ENFORCED, why)
        return found


@dataclass(frozen=True, repr=False, kw_only=True)
class LinearPredictorModel(LikelihoodModel, DeclaredModel):
    """A likelihood model of u = θᵀx; the options it shares with its likelihood are as that has checked them."""

    predictor_function = Linear()

    @classmethod
    def example(cls, **options: Any) -> Self:
        """Make a small one; `options` are the class's own."""
        return cls(2, **options)

    def _check(self) -> None:
        self._set(**vars(self.likelihood))
        super()._check()

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.features.column_names
        return names


def _finite(predictor: Any) -> Any:
    xp = array_module(predictor)
    return xp.clip(xp.where(xp.isnan(predictor), 0.0, predictor), -LARGEST, LARGEST)
