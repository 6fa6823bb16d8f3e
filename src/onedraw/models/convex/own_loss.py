"""A user's own convex loss, written in JAX, with bounds that the user declares.

Nothing can be proved about a function one is handed, so its constants are marked *declared* and the certificate
says so. What can be done is to look at public points: the loss, its gradient and pairs of gradients are checked
where the prior puts its mass and at the corners of the declared features, and a violation is refused with the
point. Passing the probe proves nothing; failing it proves the declaration wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import InvalidModel
from onedraw.models.compute import jax
from onedraw.models.model import MOST_PARTS, POSITIVE, Bound, OwnFunctions, count, described, number
from onedraw.models.priors import Gaussian
from onedraw.models.responses import Clamped
from onedraw.models.row_model import DeclaredModel
from onedraw.privacy import Provenance
from onedraw.privacy.numbers import text
from onedraw.privacy.stored import frozen_value

from .linear_model import ConvexModel, enforced_bounds
from .losses import product_up

if TYPE_CHECKING:
    from onedraw.models.one_row import OneRow

LossFunction = Callable[[Any, Any, Any], Any]

TOLERANCE = 1e-6
"""Relative; differences below it may be rounding."""

LOSSES = OwnFunctions("loss", "fn(theta, x, y)")
register_loss = LOSSES.register


def _logistic_loss(theta: Any, x: Any, y: Any) -> Any:
    """Compute log(1 + e^{−yθᵀx}), the loss of `ConvexLoss.example`."""
    return jax.nn.softplus(-y * (theta @ x))


@dataclass(frozen=True)
class OwnLoss:
    """fn(theta, x, y) over all records, as it was examined for one of them (`one_row`); derivatives by JAX."""

    row: OneRow

    def losses(self, theta: Any, X: Any, y: Any) -> Any:
        return jax.vmap(self.row, in_axes=(None, 0, 0))(theta, X, y)

    def total(self, theta: Any, X: Any, y: Any) -> Any:
        return self.losses(theta, X, y).sum()

    def gradient_total(self, theta: Any, X: Any, y: Any) -> Any:
        return jax.grad(self.total)(theta, X, y)

    def hessian_total(self, theta: Any, X: Any, y: Any) -> Any:
        return jax.hessian(self.total)(theta, X, y)


@frozen_value
class ConvexLoss(ConvexModel, DeclaredModel):
    """``fn(theta, x, y)``: a pure JAX function, convex in theta (d,) for every row x and response y.

    | argument | declares, for every admissible record and θ (of the ball, if the prior has one) |
    | --- | --- |
    | lipschitz | ‖∇fn‖ ≤ L |
    | gradient_difference | ‖∇fn(θ, z) − ∇fn(θ, z')‖ ≤ G; 2L if left out |
    | smoothness | largest eigenvalue of ∇²fn; left out: not smooth |
    | strong_convexity | least eigenvalue of ∇²fn |
    | sensitivity | fn(θ, z) − fn(θ, z') within ±Δ; left out: not known |
    | response | (lower, upper), what y is clamped to; left out: the data are X alone and y is 0 |
    | probes | further public points (theta, x, y) to check, besides the built-in ones |

    With a radius R, ϱ = 2RG: the difference of two losses is G-Lipschitz on a ball of diameter 2R.
    """

    row_blocks = 0  # what the user's function makes of a scaled row is not known

    title = "Minimiser of a convex loss"

    fn: LossFunction
    parameters: int
    responses: tuple[float, float] | None
    lipschitz: float | None = field(default=None, metadata=POSITIVE)
    gradient_difference: float | None = field(default=None, metadata=POSITIVE)
    smoothness: float | None = field(default=None, metadata=POSITIVE)
    strong_convexity: float = 0.0
    sensitivity: float | None = field(default=None, metadata=POSITIVE)
    name: str = ""

    def __init__(
        self, fn: Any, dimension: int, *, features: int, data_norm: float | None = None, bounds: Any = None,
        scaled: bool = False, missing: Any = None, intercept: bool = False, feature_names: Any = None, response: Any = None,
        lipschitz: float | None = None, gradient_difference: float | None = None, smoothness: float | None = None,
        strong_convexity: float = 0.0, sensitivity: float | None = None, name: str | None = None,
        probes: Iterable[Any] = (), prior: Gaussian | None = None,
    ) -> None:  # fmt: skip
        from onedraw.models.one_row import checked_row  # it loads JAX

        function, called = LOSSES.find(fn, name)
        self._set(fn=function, parameters=count("dimension", dimension, least=1, most=MOST_PARTS), features=features,
            responses=_interval(response), lipschitz=lipschitz, gradient_difference=gradient_difference,
            smoothness=smoothness, strong_convexity=number("strong_convexity", strong_convexity),
            sensitivity=sensitivity, name=called, prior=prior,
        )  # fmt: skip
        self.__post_init__(data_norm, bounds, scaled, missing, intercept, feature_names)
        checked_row(function, called, "fn(theta, x, y)", *self._shapes)
        probe(self, probes)

    @classmethod
    def example(cls) -> Self:
        prior = Gaussian(scale=2.0, radius=1.5)
        bounds: dict[str, Any] = {
            "lipschitz": 1.5,
            "gradient_difference": 3.0,
            "smoothness": 2.25 / 4.0,
            "sensitivity": 2.25,
        }
        register_loss("logistic loss of an example", _logistic_loss)
        return cls(
            "logistic loss of an example", 2, features=2, data_norm=1.5, response=(-1.0, 1.0), prior=prior, **bounds
        )

    def _check(self) -> None:
        super()._check()
        if self.lipschitz is None and self.gradient_difference is None:
            raise InvalidModel(
                "ConvexLoss needs lipschitz=L, or gradient_difference=G: how far one record's gradient reaches is what "
                "privacy is made of, and it cannot be read off a function. Derive it for every admissible record and θ."
            )
        if self.strong_convexity < 0.0 or (self.smoothness is not None and self.strong_convexity > self.smoothness):
            raise InvalidModel(
                "strong_convexity must be at least 0 and at most the smoothness; a negative one is not convex."
            )
        if self.strong_convexity > 0.0 and self.lipschitz is not None and self.radius is None:
            raise InvalidModel(
                "A strongly convex loss has no Lipschitz constant on all of R^d: its gradient grows without bound. Give "
                "the prior a radius, declare gradient_difference instead of lipschitz, or strong_convexity=0."
            )

    @property
    def kernel(self) -> OwnLoss:
        return OwnLoss(self.row)

    @property
    def row(self) -> OneRow:
        """The function for one record, as it was examined."""
        from onedraw.models.one_row import one_row

        return one_row(self.fn, self.name, *self._shapes)

    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.dimension,), (self.features.width,), ()

    @property
    def own_functions(self) -> tuple[str, ...]:
        return (described(self.fn, self.name),)

    @property
    def dimension(self) -> int:
        return self.parameters

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return tuple(f"parameter {index}" for index in range(self.parameters))

    @property
    def response(self) -> Clamped | None:
        return None if self.responses is None else Clamped(*self.responses)

    @property
    def _bounds(self) -> dict[str, Bound]:
        by_user, why = Provenance.DECLARED, f"declared by the caller for {self.name}"
        difference = self.gradient_difference
        if difference is None or (self.lipschitz is not None and difference > 2.0 * self.lipschitz):
            assert self.lipschitz is not None
            difference = 2.0 * self.lipschitz
        found = {
            **enforced_bounds(self),
            "gradient_difference": Bound(difference, by_user, why + ", or twice the Lipschitz constant"),
            "strong_convexity": Bound(self.strong_convexity, by_user, why),
        }
        for key, value in (("lipschitz", self.lipschitz), ("smoothness", self.smoothness)):
            if value is not None:
                found[key] = Bound(value, by_user, why)
        if self.radius is None:
            return found
        largest = 2.0 * product_up(self.radius, difference)
        if self.sensitivity is not None:
            found["sensitivity"] = Bound(self.sensitivity, by_user, why)
            largest = min(largest, 2.0 * self.sensitivity)
        return found | {"range": Bound(largest, by_user, "ϱ = min(2RG, 2Δ) of the declared constants")}

    def _values(self) -> dict[str, Any]:
        """The function itself is not stored: it is the user's own, known by name."""
        known = {"fn": {"own function": self.name}, "dimension": self.parameters, "response": self.responses}
        own = super()._values()
        for name in ("fn", "parameters", "responses"):
            del own[name]
        return {**known, **own, "probes": ()}


# ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Probe:
    """A public place to look, and what the loss is there: parameter and record, value and gradient; and at another
    parameter with the same record."""

    theta: Array
    x: Array
    y: float
    value: float
    gradient: Array
    other: Array
    other_value: float
    other_gradient: Array

    def __str__(self) -> str:
        return f"theta = {_shown(self.theta)}, x = {_shown(self.x)}, y = {self.y:.6g}"

    def check(self, model: ConvexLoss) -> None:
        """Refuse a loss that breaks its declarations here. Convexity: ∇ is monotone and the loss lies above its
        tangent. Smoothness: ∇ moves by at most M‖move‖."""
        name, steep = model.name, float(np.linalg.norm(self.gradient))
        if not (np.isfinite(self.value) and np.all(np.isfinite(self.gradient))):
            raise InvalidModel(f"{name} or its gradient is not finite at the public probe point {self}.")
        if model.lipschitz is not None and steep > model.lipschitz * (1.0 + TOLERANCE):
            raise InvalidModel(
                f"{name} is declared {text(model.lipschitz)}-Lipschitz, but its gradient has norm {steep:.6g} at the "
                f"public probe point {self}. A promise made with it would be false. Correct lipschitz, or the bounds."
            )
        move, change, rise = self.other - self.theta, self.other_gradient - self.gradient, self.other_value - self.value
        length, size = float(np.linalg.norm(move)), float(np.linalg.norm(change))
        slack = TOLERANCE * length * (1.0 + steep + size)
        turns_back = float(change @ move) < model.strong_convexity * length**2 - slack
        if turns_back or rise < float(self.gradient @ move) - slack - TOLERANCE * abs(rise):
            what = "convex" if model.strong_convexity == 0.0 else f"{text(model.strong_convexity)}-strongly convex"
            raise InvalidModel(
                f"{name} is not {what}: its gradient turns back between the public probe point {self} and theta = "
                f"{_shown(self.other)}. Every rule for convex losses would be void. Use another loss, or a smaller "
                "strong_convexity."
            )
        if model.smoothness is not None and size > (model.smoothness * length) * (1.0 + TOLERANCE) + slack:
            raise InvalidModel(
                f"{name} is declared {text(model.smoothness)}-smooth, but its gradient moves by {size:.6g} over a "
                f"distance of {length:.6g} between the public probe point {self} and theta = {_shown(self.other)}. "
                "Correct smoothness."
            )


def probe(model: ConvexLoss, given: Iterable[Any] = ()) -> None:
    """Refuse a loss that breaks its declarations at a public point, always the same ones: fixed pseudo-random numbers,
    the prior's scale at several sizes, rows at the corners or on the sphere of the features, responses at their ends."""
    generator, features = np.random.default_rng(20160), model.features
    dimension, location = model.dimension, model.prior.location(model.dimension)
    scales = np.repeat([1e-3, 0.1, 1.0, 10.0], 16)[:, None] * model.prior.precision(dimension) ** -0.5
    thetas = location + scales * generator.standard_normal((64, dimension))
    others = thetas + scales * generator.standard_normal((64, dimension))
    rows = 1e6 * generator.standard_normal((64, features.count))
    rows[::8] = 0.0
    rows = features.enforce(rows * features.norm)
    low, high = (0.0, 0.0) if model.responses is None else model.responses
    responses = np.where(np.arange(64) % 2 == 0, low, high)
    for theta, x, y in given:
        thetas, others = np.vstack([thetas, np.array(theta, float)]), np.vstack([others, location])
        rows, responses = np.vstack([rows, features.enforce(np.array([x], float))]), np.append(responses, float(y))
    thetas, others = (_inside(model, points) for points in (thetas, others))
    compiled = jax.jit(jax.vmap(jax.value_and_grad(model.row)))
    found = (map(np.asarray, compiled(points, rows, responses)) for points in (thetas, others))
    (values, gradients), (other_values, other_gradients) = found
    for place in zip(thetas, rows, responses, values, gradients, others, other_values, other_gradients, strict=True):
        Probe(*place).check(model)


def _inside(model: ConvexLoss, thetas: Array) -> Array:
    if model.radius is None:
        return thetas
    norms = np.linalg.norm(thetas, axis=1, keepdims=True)
    return np.asarray(thetas * np.minimum(1.0, model.radius / np.maximum(norms, 1e-300)))


def _interval(response: Any) -> tuple[float, float] | None:
    if response is None:
        return None
    if not isinstance(response, list | tuple) or len(response) != 2:
        raise InvalidModel("response must be a pair (lower, upper), what responses are clamped to.")
    lower, upper = (number("response", end) for end in response)
    if not lower <= upper:
        raise InvalidModel("response=(lower, upper) needs lower ≤ upper.")
    return lower, upper


def _shown(vector: Array) -> str:
    entries = ", ".join(f"{value:.6g}" for value in vector[:8])
    return f"({entries}, …)" if len(vector) > 8 else f"({entries})"
