"""A user's own NumPyro model, with the likelihood of its observed site replaced by the β-divergence loss.

    def model(X, y=None):
        w = numpyro.sample("w", dist.Normal(0, 3).expand([X.shape[1]]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)

    private = od.models.from_numpyro(model, features=3)

Priors are those written; the observed site must have one of the distributions of `numpyro_laws`, which brings the
bound. The loss of a record is computed from its own row alone and the prior from none (`trace`, `one_row`); a
model that is written otherwise is refused (`numpyro_checks`). The parameter is R^d: each latent
site in NumPyro's own unconstrained coordinates, in the order of the model; `constrain` gives the sites' values.

A certificate stores the model's name, a digest of its source, its sites and its likelihood. To derive a plan again
elsewhere the same function has to be registered there under that name, with `register_numpyro`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.features import Features, declared_features
from onedraw.models.likelihood import LARGEST, Bernoulli, Categorical, Gamma, Likelihood
from onedraw.models.likelihood.likelihood_model import LikelihoodModel, LossKernel, PredictorFunction
from onedraw.models.model import CANNOT_SKIP, Bound, OwnFunctions, described, source_digest
from onedraw.models.responses import Codes, Label, Signs, class_labels, two_classes
from onedraw.privacy import Provenance
from onedraw.privacy.stored import frozen_value

if TYPE_CHECKING:
    from .trace import Program

ModelFunction = Callable[..., Any]

LARGEST_VARIANCE = 1e100
"""A larger one is cut here: the loss is 0 by then, and products stay finite."""

LEAST_SCORE = -1e4
"""Of a class, relative to the likeliest one: its probability is 0 in double precision long before."""

PUBLIC_DRAWS = 4096
"""Prior draws, of a public seed, whose quartiles say how wide the prior is."""

NUMPYRO_MODELS = OwnFunctions("NumPyro model", "model(X, y=None)")
register_numpyro = NUMPYRO_MODELS.register


def _trace() -> Any:
    from . import trace  # it loads NumPyro

    return trace


@dataclass(frozen=True)
class NumpyroKernel(LossKernel, PredictorFunction):
    """Loss, predictor and prior of a NumPyro model, as a static value: what `BetaTarget` compiles."""

    likelihood: Likelihood
    program: Program

    def __call__(self, theta: Any, X: Any) -> Any:
        return self.predicted(theta, X)[0]

    def negative_log_prior(self, theta: Any, *prior: Any) -> Any:
        """∞ where there is no density."""
        log_prior: Any = _trace().examined(self.program, "log_prior")
        for _ in range(jnp.ndim(theta) - 1):
            log_prior = jax.vmap(log_prior)
        value = log_prior(jnp.asarray(theta))
        return jnp.where(jnp.isnan(value), jnp.inf, -value)

    def predicted(self, theta: Any, X: Any) -> tuple[Any, Any]:
        """u and σ² (None unless the model computes it), finite whatever the model makes of a row.

        Rows at which it has no finite value keep that value, cut, and are replaced by the public row where derivatives
        are taken: a NaN there would stop a chain, and whether a chain stops may not depend on a record.
        """
        X, family = jnp.asarray(X), self.program.family
        predictor, variance = self._of_rows(jax.lax.stop_gradient(jnp.asarray(theta)), X)
        inside = jnp.isfinite(predictor) & (abs(predictor) <= LARGEST)
        inside &= (predictor >= family.lowest) & (predictor <= family.highest)
        usable = inside if inside.ndim == 1 else inside.all(axis=-1)
        if variance is not None:
            usable &= variance <= LARGEST_VARIANCE
        rows = jnp.where(usable[:, None], X, jnp.asarray(self.program.row))
        smooth, smooth_variance = self._of_rows(theta, rows)
        across = usable if inside.ndim == 1 else usable[:, None]
        cut = jnp.clip(jnp.where(jnp.isnan(predictor), 0.0, predictor), -LARGEST, LARGEST)
        if variance is not None:
            kept = jnp.where(jnp.isnan(variance), LARGEST_VARIANCE, jnp.clip(variance, 0.0, LARGEST_VARIANCE))
            variance = jnp.where(usable, smooth_variance, kept)
        return self._enforced(jnp.where(across, smooth, cut)), variance

    def _of_rows(self, theta: Any, X: Any) -> tuple[Any, Any]:
        """Predictor and variance as the model computes them, each row on its own."""
        parts = jax.vmap(_trace().examined(self.program, "parts"), in_axes=(None, 0))(theta, X)
        return parts["predictor"], parts["variance"] if self.likelihood.samples_variance else None

    def _enforced(self, predictor: Any) -> Any:
        """u as the likelihood takes it, finite; scores of classes relative to the largest, which changes no density but
        keeps differences of them from rounding to nonsense."""
        if predictor.ndim == 2:
            largest = jax.lax.stop_gradient(predictor.max(axis=-1, keepdims=True))
            return jnp.maximum(predictor - largest, LEAST_SCORE)
        value = self.program.family.predictor(predictor, self.likelihood)
        return jnp.clip(jnp.where(jnp.isnan(value), 0.0, value), -LARGEST, LARGEST)


@dataclass(frozen=True)
class WrittenPrior:
    """The prior as the model's latent sites state it: names and shapes."""

    sites: tuple[tuple[str, tuple[int, ...]], ...]

    def to_dict(self) -> dict[str, Any]:
        return {"prior": "as written", "sites": {name: list(shape) for name, shape in self.sites}}


@frozen_value
class NumpyroModel(LikelihoodModel):
    """``fn(X, y=None)``, a NumPyro model of rows X (n × features) and one response each; see `from_numpyro`.

    | argument | says |
    | --- | --- |
    | features | how many columns X has |
    | variance_floor | the least σ² of an observed Normal, StudentT or Cauchy whose scale the model computes; enforced |
    | rate_cap | the largest rate of an observed Exponential or Gamma; enforced |
    | classes | the labels of an observed Bernoulli (negative, positive) or Categorical; left out: 0, 1, … |
    | data_norm, bounds | a public bound on the rows, enforced; the promise needs none |
    | name | what a certificate calls the model; left out: the function's name |

    **Guarantee.** For every θ two records' losses differ by at most ``likelihood.sensitivity(beta)``, whatever fn
    computes; the prior used does not depend on the records; row i of `summarise` depends on record i alone.
    """

    row_blocks = 0  # what the model makes of a row is not known
    prior_arguments = ()  # the prior's numbers are in the program

    quantity: ClassVar[str] = "parameters"

    fn: ModelFunction
    features: Features
    law: Likelihood
    program: Program
    classes: tuple[Label, ...] | None
    name: str

    def __init__(
        self, fn: Any, *, features: int, variance_floor: float | None = None, rate_cap: float | None = None,
        classes: Any = None, data_norm: float | None = None, bounds: Any = None, feature_names: Any = None,
        missing: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        if missing is not None:
            raise InvalidModel(CANNOT_SKIP.format("A NumPyro model"))
        from .checks import examine
        from .distributions import likelihood_of

        given = {"own function": fn.get("own model")} if isinstance(fn, Mapping) else fn
        function, called = NUMPYRO_MODELS.find(given, name)
        rows = {"data_norm": data_norm, "bounds": bounds, "feature_names": feature_names}
        declared = declared_features("NumpyroModel", features, **rows, intercept=False, needed=False)
        facts = examine(function, called, declared)
        law = likelihood_of(called, facts, variance_floor, rate_cap)
        labels = _class_labels(called, law, classes)
        self._set(fn=function, features=declared, law=law, program=facts.program, classes=labels, name=called)
        if isinstance(fn, Mapping) and dict(fn) != self._described():
            raise InvalidModel(
                f"The NumPyro model registered as {called!r} is not the one described: its source, sites or likelihood "
                "differ. Register the model the certificate was made with."
            )

    @classmethod
    def example(cls) -> Self:
        register_numpyro("logistic regression of an example", _trace().logistic_regression)
        return cls("logistic regression of an example", features=2)

    # Likelihood and prior

    @property
    def likelihood(self) -> Likelihood:
        return self.law

    @property
    def response(self) -> Any:
        if self.classes is None:
            return self.law.response
        return Signs(self.classes) if isinstance(self.law, Bernoulli) else Codes(self.classes)

    @property
    def beta_kernel(self) -> NumpyroKernel:
        return NumpyroKernel(self.law, self.program)

    @property
    def predictor_function(self) -> NumpyroKernel:
        return self.beta_kernel

    @property
    def prior(self) -> WrittenPrior:  # type: ignore[override]  # not one of the library's own
        return WrittenPrior(tuple((site.name, site.shape) for site in self.program.sites))

    def log_prior(self, theta: Any) -> Array:
        """log π(θ), for one θ or for the rows of an array, compiled; −∞ where there is no density."""
        found = self._by_rows("log_prior", theta, self.dimension)
        return np.where(np.isnan(found), -np.inf, found)

    # Parameters

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        return tuple(name for site in self.program.sites for name in site.names)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.coefficient_names

    @property
    def dimension(self) -> int:
        """Of the unconstrained parameter; a simplex of K numbers has K − 1."""
        return self.program.dimension

    @cached_property
    def prior_scale(self) -> float:
        """The smallest prior spread of a released number, from quartiles (a Cauchy law has no deviation)."""
        from .checks import PUBLIC_SEED

        draws = _trace().prior_draws(self.program, PUBLIC_SEED, PUBLIC_DRAWS)
        low, high = np.quantile(self.constrain(draws), (0.25, 0.75), axis=0)
        spreads = (high - low)[high > low] / 1.349  # a quarter of the normal law lies beyond ±0.6745
        return float(spreads.min()) if len(spreads) else 1.0

    def draw_prior(self, generator: np.random.Generator, size: int) -> Array:
        """``size`` independent draws from the prior, unconstrained, one per row."""
        if size == 0:
            return np.zeros((0, self.dimension))
        return np.asarray(_trace().prior_draws(self.program, int(generator.integers(2**63)), size))

    def constrain(self, theta: Any) -> Array:
        """The sites' values, in the order of `parameter_names`; for one θ or for the rows of an array."""
        return self._by_rows("constrain", theta, self.dimension)

    def unconstrain(self, theta: Any) -> Array:
        """The inverse of `constrain`."""
        return self._by_rows("unconstrain", theta, len(self.parameter_names))

    def _by_rows(self, what: str, theta: Any, width: int) -> Array:
        given = np.asarray(theta, dtype=np.float64)
        found: Array = _trace().by_blocks(self.program, what, given.reshape(-1, width))
        return found.reshape(given.shape[:-1] + found.shape[1:])

    # Bounds and storage

    @property
    def own_functions(self) -> tuple[str, ...]:
        return (described(self.fn, self.name),)

    @property
    def _bounds(self) -> dict[str, Bound]:
        found = super()._bounds
        if self.law.samples_variance:
            why = "the scale the model computes is brought to it where it is smaller"
            found["variance_floor"] = Bound(found["variance_floor"].value, Provenance.ENFORCED, why)
        if isinstance(self.law, Gamma):
            why = "the rate the model computes is brought to it where it is larger"
            found["rate_cap"] = Bound(self.law.rate_cap, Provenance.ENFORCED, why)
        return found

    def _values(self) -> dict[str, Any]:
        """The function itself is not stored: it is the user's own, known by name, and by its source where there is one."""
        features = self.features.to_dict()
        del features["intercept"]  # a model writes its own
        declared = {name: getattr(self.law, name, None) for name in ("variance_floor", "rate_cap")}
        return {"fn": self._described(), **features, **declared, "classes": self.classes, "name": self.name}

    def _described(self) -> dict[str, Any]:
        return {
            "own model": self.name,
            "source": source_digest(self.fn),
            "sites": self.prior.to_dict()["sites"],
            "likelihood": self.law.to_dict(),
        }


from_numpyro = NumpyroModel
"""The public name: ``from_numpyro(model, features=3)`` reads as what it does."""


def _class_labels(called: str, law: Likelihood, classes: Any) -> tuple[Label, ...] | None:
    if classes is None:
        return None
    if isinstance(law, Bernoulli):
        return two_classes("classes", classes)
    if not isinstance(law, Categorical):
        raise InvalidModel(f"{called}: classes belong to an observed Bernoulli or Categorical site. Leave them out.")
    labels = class_labels("classes", classes)
    if len(labels) != law.classes:
        raise InvalidModel(f"{called}: the observed site has {law.classes} classes, got {len(labels)} labels.")
    return labels
