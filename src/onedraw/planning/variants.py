"""The ways to answer a regression: every model and mechanism that could, ranked by nothing; some will refuse the budget.

The loss of a kind is written in `LOSSES`; noisy gradients and Gibbs posteriors take any of them. A likelihood adds its β-divergence,
by selection among candidates or, where somebody accepts a chain by name, from the posterior itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onedraw import models
from onedraw.errors import InvalidModel
from onedraw.methods import (
    AveragedSteps,
    BarkerPath,
    BetaDivergence,
    Candidates,
    ClippedGradients,
    Gibbs,
    Measured,
    NoisyGradient,
    PerturbedMode,
)
from onedraw.models.convex.linear_model import LinearModel
from onedraw.models.likelihood import Categorical
from onedraw.models.likelihood.reference_design import mean_information

from .effects import check_effects_fit
from .estimands import check_named
from .options import RESIDUALS, RegressionOptions

if TYPE_CHECKING:
    from onedraw.privacy import Promise

    from .regression import Regression

AVERAGED_STEPS, PERTURBED_MODE = FIT_NAMES = ("averaged-steps", "perturbed-mode")
"""What people type to have one fit and no other."""

OPTIONS = {one.name for one in fields(RegressionOptions)}

HUBER = 1.345
HINGE_WIDTH, QUANTILE_WIDTH = 0.5, 0.25
"""How much of a kink is rounded off, in units: gradient samplers need a smooth loss."""

HIDDEN = 10
"""Units of a network."""


@dataclass(frozen=True)
class Variant:
    """One way to answer: the name people type, the model it rests on and the mechanism that draws."""

    name: str
    model: Any
    mechanism: Any
    alone: str = ""
    """Of a fit, what people type to have it and no other; "fit" is the first that the budget allows."""


Loss = Callable[["Regression", bool], Any]

LOSSES: dict[str, Loss] = {
    "logistic": lambda asked, ball: models.Logistic(**_rows(asked, ball), classes=asked.classes),
    "exp-linear": lambda asked, ball: models.Logistic(**_rows(asked, ball), loss="exp-linear", classes=asked.classes),
    "softmax": lambda asked, ball: models.Softmax(**_rows(asked, ball), classes=asked.classes),
    "svc": lambda asked, ball: models.HuberisedHinge(**_rows(asked, ball), width=HINGE_WIDTH, classes=asked.classes),
    "least-squares": lambda asked, ball: models.LeastSquares(**_rows(asked, ball), response_bound=asked.response_bound),
    "log-cosh": lambda asked, ball: models.LogCoshRegression(**_rows(asked, ball), response_bound=asked.response_bound),
    "ordinary": lambda asked, ball: models.OrdinaryLeastSquares(**_rows(asked, ball), response_bound=asked.response_bound),
    "pinball": lambda asked, ball: models.Quantile(
        **_rows(asked, ball), level=0.5 if asked.quantile is None else asked.quantile, response_bound=asked.response_bound
    ),
    "huber": lambda asked, ball: models.HuberRegression(
        **_rows(asked, ball), response_bound=asked.response_bound,
        threshold=HUBER * asked.unit if asked.threshold is None else asked.threshold,
    ),
    "quantile": lambda asked, ball: models.Quantile(
        **_rows(asked, ball), level=0.5 if asked.quantile is None else asked.quantile,
        smoothing=QUANTILE_WIDTH * asked.unit, response_bound=asked.response_bound,
    ),
    "poisson": lambda asked, ball: models.CountRegression(**_rows(asked, ball), largest=cast(int, asked.largest)),
}  # fmt: skip
"""By the name of the loss, on all of space or on the ball; of a kind that is not here, the model says how it is made (`_loss`)."""

FITS = {"logistic": "exp-linear", "softmax": "softmax", "svc": "svc", "linear": "log-cosh", "quantile": "quantile", "poisson": "poisson"}  # fmt: skip
"""The loss of a perturbed mode, which serves pure budgets, by kind; the others have none."""


STEPS = {
    "logistic": "logistic", "softmax": "softmax", "svc": "svc", "linear": "ordinary", "quantile": "pinball", "poisson": "poisson",
}  # fmt: skip
"""What averaged steps solve, by kind: maximum likelihood, the hinge, least squares and the quantile itself."""

CLIPPED = {"logistic": "logistic", "softmax": "softmax", "linear": "ordinary", "poisson": "poisson"}
"""What clipped gradients predict by, by kind."""


def _rows(asked: Regression, ball: bool) -> dict[str, Any]:
    """The columns, and a prior on all of space or on the ball."""
    return {**asked.columns, "prior": models.Gaussian(scale=asked.scale, radius=asked.ball if ball else None)}


def _loss(asked: Regression, loss: str, ball: bool) -> Any:
    """A loss of the table, or else the convex model that says it is of this kind, made with what was asked by the names of its
    fields; of a size (``in_units``) about which nothing was said, so many units of the noise."""
    if loss in LOSSES:
        return LOSSES[loss](asked, ball)
    known: list[Any] = list(LinearModel.members().values())
    model = next(one for one in known if one.kind == loss)
    own: dict[str, Any] = {}
    for one in fields(model):
        said = getattr(asked, one.name) if one.name in OPTIONS else None
        usual = one.metadata["in_units"] * asked.unit if "in_units" in one.metadata else None
        own |= {one.name: usual if said is None else said} if (said, usual) != (None, None) else {}
    return model(**_rows(asked, ball), **own)


def fit_of(asked: Regression) -> Variant | None:
    """A perturbed mode, which serves pure budgets; None where the question has none."""
    if asked.kind not in FITS or (asked.kind in RESIDUALS and asked.response_bound is None):
        return None
    mechanism = PerturbedMode(categories=asked.categories, prior=asked.prior_scale is not None, robust=asked.robust)
    return Variant("fit", _loss(asked, FITS[asked.kind], False), mechanism, PERTURBED_MODE)


def steps_of(asked: Regression) -> Variant | None:
    """Return averaged steps, which estimate what people mean and give intervals; None where the question has none.

    Under a declared prior they estimate its posterior mode, which is no usual estimand.
    """
    unbounded = asked.kind in RESIDUALS and asked.response_bound is None
    prior = asked.prior_scale is not None
    if asked.kind not in STEPS or unbounded or (prior and asked.estimand not in (None, "robust")):
        return None
    mechanism = AveragedSteps(
        categories=asked.categories, persons=asked.persons, effects=asked.effect_places,
        robust=asked.estimand == "robust", prior=prior,
    )  # fmt: skip
    return Variant("fit", _loss(asked, STEPS[asked.kind], False), mechanism, AVERAGED_STEPS)


def fits_of(asked: Regression) -> tuple[Variant, ...]:
    """Return the fits that estimate what is asked for: averaged steps, and the perturbed mode, which is for a pure ε."""
    mode = fit_of(asked) if asked.estimand in (None, "robust") and asked.effects is None else None
    return tuple(fit for fit in (steps_of(asked), mode) if fit is not None)


def fits_under(asked: Regression, budget: Promise) -> tuple[Variant, ...]:
    """Return the fits that this kind of budget is for."""
    return tuple(fit for fit in asked.fits if budget.is_pure or not fit.mechanism.for_pure_budgets)


def variants_of(asked: Regression) -> tuple[Variant, ...]:
    """The fit, draws in measured coordinates, and draws in declared ones."""
    return (*asked.fits[:1], *_measured(asked, fit_of(asked)), *_declared(asked))


def variant_of(asked: Regression, name: str) -> Variant:
    """The variant of this name."""
    check_named(asked, name, FIT_NAMES)
    check_effects_fit(asked, name)
    found = {variant.name: variant for variant in (*variants_of(asked), *_by_name_alone(asked))}
    found |= {one.alone: one for one in fits_of(asked)}
    if name not in found:
        raise InvalidModel(
            f"No mechanism for a {asked.kind} regression is called {name!r}. Choose 'auto' or one of: {', '.join(found)}."
        )
    if asked.robust and name not in ("fit", *FIT_NAMES):
        raise InvalidModel(
            f"robust=True is about the standard errors of a fit, and {name!r} is none: it would do nothing. Leave one of them out."
        )
    return found[name]


def _by_name_alone(asked: Regression) -> list[Variant]:
    """Return what is no candidate to be ranked: clipped gradients (predictors.py), and paths of private decisions."""
    predictor = predictor_for(asked)
    return [*([] if predictor is None else [predictor]), *_paths(asked)]


def predictor_for(asked: Regression) -> Variant | None:
    """Return clipped gradients, for a model with an intercept and without a declared prior, which would do nothing."""
    unbounded = asked.kind in RESIDUALS and asked.response_bound is None
    if asked.kind not in CLIPPED or unbounded or asked.prior_scale is not None or not asked.intercept:
        return None
    mechanism = ClippedGradients(categories=asked.categories)
    return Variant("clipped-gradients", _loss(asked, CLIPPED[asked.kind], False), mechanism)


def _paths(asked: Regression) -> list[Variant]:
    """Return paths of private decisions: noisy gradients err less, and of a kink nothing is predicted. Kinks are left as they are."""
    smooth = {"logistic": "exp-linear", "softmax": "softmax", "linear": "huber", "huber": "huber"}
    if asked.kind == "svc":
        model: Any = models.Hinge(**_rows(asked, False), classes=asked.classes)
    elif asked.kind == "quantile":
        level = 0.5 if asked.quantile is None else asked.quantile
        model = models.Quantile(**_rows(asked, False), level=level, response_bound=asked.response_bound)
    elif asked.kind in smooth:
        model = _loss(asked, smooth[asked.kind], False)
    else:
        return []
    return [Variant("barker-path", model, BarkerPath(**asked.tuning))]


def _measured(asked: Regression, fit: Variant | None) -> list[Variant]:
    """Noisy gradients of the fit's loss after the columns' moments, unless a prior was declared, which is about columns as they are."""
    huber = _loss(asked, "huber", False) if asked.kind in ("huber", "linear") and fit is None else None
    model = huber if fit is None else fit.model
    if model is None or asked.outputs > 1 or asked.prior_scale is not None:
        return []
    tuned = {} if asked.kind in RESIDUALS else asked.tuning  # numbers are measured in units of their residuals
    mechanism = Measured(NoisyGradient(**tuned), categories=asked.categories)
    return [Variant("noisy-gradient measured", model, mechanism)]


def _declared(asked: Regression) -> list[Variant]:
    match asked.kind:
        case "logistic":
            plain, other = _by_loss(asked, "logistic"), _by_loss(asked, "exp-linear", " exp-linear")
            return [plain[0], other[0], plain[1], other[1], plain[2], *_by_density(asked, plain[0].model)]
        case "softmax":
            several = BetaDivergence(**asked.tuning, beta=best_beta(len(asked.classes), asked.sizes["effect"]))
            found = _by_loss(asked, "softmax")
            return [*found, *_by_density(asked, found[0].model, several)]
        case "svc":
            found = _by_loss(asked, "svc")
            return [*found, Variant("candidates", found[2].model, Candidates(of=Gibbs("bounded")))]
        case "linear":
            return [*_least_squares(asked), *_by_loss(asked, "huber", " huber"), *_gaussian(asked)]
        case "poisson":
            return _by_density(asked, models.PoissonRegression(**_rows(asked, False)))
        case "negative-binomial":
            assert asked.dispersion is not None
            return _by_density(
                asked, models.NegativeBinomialRegression(**_rows(asked, False), dispersion=asked.dispersion)
            )
        case "network-classifier" | "network-regressor":  # candidates score a linear predictor, which a network is not
            return [Variant("beta-divergence", _network(asked), BetaDivergence(**asked.tuning))]
        case kind:
            return _by_loss(asked, kind)


def _by_loss(asked: Regression, loss: str, name: str = "") -> list[Variant]:
    """A convex loss with noisy gradients, and as Gibbs posterior under its two rules."""
    free, on_ball = (_loss(asked, loss, ball) for ball in (False, True))
    return [
        Variant(f"noisy-gradient{name}", free, NoisyGradient(**asked.tuning)),
        Variant(f"gdp{name}", free, Gibbs("gdp")),
        Variant(f"bounded{name}", on_ball, Gibbs("bounded")),
    ]


def _least_squares(asked: Regression) -> list[Variant]:
    """Its slopes are bounded on the ball alone, for responses with a bound."""
    if asked.response_bound is None:
        return []
    model = _loss(asked, "least-squares", True)
    return [
        Variant("least-squares", model, Gibbs("bounded")),
        Variant("least-squares gdp", model, Gibbs("gdp")),
        Variant("noisy-gradient", model, NoisyGradient(**asked.tuning)),
    ]


def _by_density(asked: Regression, model: Any, beta: BetaDivergence | None = None) -> list[Variant]:
    """The β-divergence of a likelihood, whose sensitivity needs no largest count."""
    beta = beta or BetaDivergence(**asked.tuning)
    return [Variant("candidates", model, Candidates(of=beta)), Variant("beta-divergence", model, beta)]


def _gaussian(asked: Regression) -> list[Variant]:
    """The β-divergence of normal residuals, whose sensitivity rests on a floor of their variance."""
    if asked.variance_floor is None:
        return []
    prior = models.NormalInverseGamma(scale=asked.scale, conjugate=False)
    return _by_density(
        asked, models.GaussianRegression(**asked.columns, variance_floor=asked.variance_floor, prior=prior)
    )


def _network(asked: Regression) -> models.Network:
    columns = {name: value for name, value in asked.columns.items() if name != "intercept"}
    hidden = HIDDEN if asked.hidden is None else asked.hidden
    scale = 1.0 if asked.prior_scale is None else asked.prior_scale
    if asked.kind == "network-classifier":
        prior = models.Gaussian(scale=scale)
        return models.Network(**columns, hidden=hidden, task="classification", classes=asked.classes, prior=prior)
    floor = (asked.unit / 10) ** 2 if asked.variance_floor is None else asked.variance_floor
    variance = models.NormalInverseGamma(scale=scale, conjugate=False)
    return models.Network(**columns, hidden=hidden, task="regression", variance_floor=floor, prior=variance)


@lru_cache(maxsize=64)
def best_beta(classes: int, effect: float) -> float:
    """β with the smallest private variance Δ(β)/H(β) for several classes whose scores have this standard deviation.

    The same for every ε; searched here, over scores alone, because the design with all its rows takes minutes."""
    variances = np.array([effect**2])

    def variance(beta: float) -> float:
        found = mean_information(Categorical(classes), variances, beta, None)
        assert found is not None
        return float(1.0 / ((beta - 1.0) * found[0][0]))

    from scipy import optimize

    return round(float(optimize.minimize_scalar(variance, bounds=(1.2, 4.0), method="bounded").x), 3)
