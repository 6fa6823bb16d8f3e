"""The law a β-divergence posterior is drawn from, as a value: what a mechanism hands to a sampler.

Density ∝ π(θ) exp(−w Σ ℓ_β(θ, z_i)) on R^d, in the model's unconstrained coordinates (on the ball of a Gaussian prior
with a radius: the potential is infinite outside). It is not log-concave. It holds the encoded records and is as
private as they are.

Loss and kind of prior are the static argument of what is compiled; records, weight, β and the prior's numbers are
arguments, so one compilation serves all plans and data sets of a model and size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.model import positive_number
from onedraw.models.row_model import Encoded
from onedraw.private import Private

from .density import check_beta
from .likelihood_model import LossKernel, WithLikelihood


@dataclass(frozen=True, eq=False, repr=False)
class BetaTarget(Private):
    """U(θ) = w Σ ℓ_β(θ, z_i) − log π(θ) for one data set."""

    model: WithLikelihood
    encoded: Encoded
    weight: float
    beta: float

    def __post_init__(self) -> None:
        if not isinstance(self.model, WithLikelihood):
            raise InvalidModel(
                f"A β-divergence posterior needs a model with a likelihood of bounded density, got a {type(self.model).__name__}. "
                "Logistic, Softmax and the regressions and networks with a likelihood have one."
            )
        object.__setattr__(self, "beta", check_beta(self.beta))
        object.__setattr__(self, "weight", positive_number("weight", self.weight))

    @property
    def dimension(self) -> int:
        """Of θ; not always the number of names, since a simplex of K numbers has K − 1 coordinates."""
        return int(self.model.dimension)  # type: ignore[attr-defined]  # every model with a likelihood has one

    @property
    def kernel(self) -> LossKernel:
        """The static argument of compiled functions."""
        return self.model.beta_kernel

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """(X, y, weight, beta, *prior) as JAX arrays: what follows theta in the compiled functions."""
        data = (self.encoded.X, self.encoded.y, self.weight, self.beta)
        return tuple(map(jnp.asarray, (*data, *self.model.prior_arguments)))

    def potential(self, theta: Any) -> Any:
        """U(θ)."""
        return compiled(self.kernel, "potential")(theta, *self.arguments)

    def gradient(self, theta: Any) -> Any:
        """∇U(θ)."""
        return compiled(self.kernel, "gradient")(theta, *self.arguments)

    def hessian(self, theta: Any) -> Any:
        """∇²U(θ)."""
        return compiled(self.kernel, "hessian")(theta, *self.arguments)

    def losses(self, thetas: Any) -> Array:
        """ℓ_β(θ_k, z_i), one row for each of ``thetas``, one column for each record."""
        given = np.atleast_2d(np.asarray(thetas, dtype=np.float64))
        return np.asarray(compiled(self.kernel, "losses")(given, *self.arguments[:2], self.beta))


def potential(kernel: LossKernel, theta: Any, X: Any, y: Any, weight: Any, beta: Any, *prior: Any) -> Any:
    """U(θ), not compiled."""
    return weight * kernel.losses(theta, X, y, beta).sum() + kernel.negative_log_prior(theta, *prior)


@lru_cache(maxsize=512)
def compiled(kernel: LossKernel, what: str) -> Any:
    """A compiled function of the kernel: "potential", "gradient" and "hessian" of (theta, X, y, weight, beta, *prior),
    "losses" of (thetas, X, y, beta)."""
    of_kernel = partial(potential, kernel)
    found: dict[str, Any] = {"potential": of_kernel, "gradient": jax.grad(of_kernel), "hessian": jax.hessian(of_kernel)}
    return jax.jit(found.get(what, kernel.losses_of_many))
