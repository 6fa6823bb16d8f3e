"""Which distributions an observed NumPyro site may have, and the likelihood of bounded density each becomes.

| NumPyro | likelihood (`likelihoods`) | predictor u | what it needs besides |
| --- | --- | --- | --- |
| Bernoulli, logits or probs | Bernoulli | log-odds | nothing |
| Categorical, logits or probs | Categorical | K scores | nothing |
| Poisson | Poisson | log rate | nothing |
| NegativeBinomial2, NegativeBinomial (logits, probs), GammaPoisson | NegativeBinomial | log mean | a constant dispersion |
| Normal | GaussianNoise | mean; σ² beside it | a constant scale, or ``variance_floor`` |
| StudentT, Cauchy | StudentT | location; σ² beside it | the same, and constant degrees of freedom |
| Exponential, Gamma | Gamma | from the rate | ``rate_cap``, and a constant concentration ≥ 1 |

Below the floor the scale, and above the cap the rate, is brought to it: max(σ², floor), min(rate, cap). Everywhere
else the density is the one written. Whatever the model's function computes, the loss that runs is that of the
likelihood in the second column, so its Δ(β) is the one in force (`models.likelihood`).

Distributions are told apart by their class name in NumPyro's own module: this file does not import NumPyro.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onedraw.errors import InvalidModel
from onedraw.models.compute import jnp
from onedraw.models.likelihood import (
    LARGEST,
    Bernoulli,
    Categorical,
    Gamma,
    GaussianNoise,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)

if TYPE_CHECKING:
    from .checks import Facts

SUPPORTED = (
    "Bernoulli, Categorical, Poisson, NegativeBinomial2 (and the other forms of NegativeBinomial), Normal, StudentT, "
    "Cauchy, Exponential and Gamma"
)

INSTEAD = {
    "LogNormal": "Its density is unbounded near 0: pass log y as the response and observe a Normal.",
    "Beta": "Its density is unbounded near 0 and 1: pass logit y as the response and observe a Normal.",
    "Binomial": "One response per record must be one outcome: a record for each trial, or a Poisson count.",
    "Laplace": "Use StudentT, which is as robust, or od.models.Predictor with an OwnDensity.",
    "MaskedDistribution": "Masks change which records count; leave them out.",
    "Independent": "Leave out .to_event(…): each record has one response of its own.",
}


@dataclass(frozen=True)
class Family:
    """One row of the table: how the distribution's parameters become a predictor and, for some, a variance.

    ``parts`` gives "predictor", perhaps "variance", and the ``constants`` that may depend on nothing. Predictors outside
    [lowest, highest] are cut there by the likelihood.
    """

    name: str
    parts: Callable[[Any], dict[str, Any]]
    constants: tuple[str, ...] = ()
    lowest: float = -LARGEST
    highest: float = LARGEST

    def predictor(self, value: Any, likelihood: Likelihood) -> Any:
        """u as the likelihood takes it: of a Gamma, from log λ by 1/λ = 1/cap + e^u/shape."""
        if not isinstance(likelihood, Gamma):
            return value
        cap = math.log(likelihood.rate_cap)
        below = jnp.maximum(cap - value, 1e-12)  # log(cap/λ), 0 where λ is cut at the cap
        return math.log(likelihood.shape) - cap + below + jnp.log(-jnp.expm1(-below))


def _location(law: Any) -> dict[str, Any]:
    return {"predictor": law.loc, "variance": law.scale * law.scale}


_COUNTS = (("dispersion",), -50.0, 14.0)  # of the logarithm of a mean, as `NegativeBinomial` cuts it
_DURATIONS = (("shape",), -500.0, 500.0)

_FAMILIES = {
    "BernoulliLogits": Family("Bernoulli", lambda law: {"predictor": law.logits}),
    "BernoulliProbs": Family("Bernoulli", lambda law: {"predictor": jnp.log(law.probs) - jnp.log1p(-law.probs)}),
    "CategoricalLogits": Family("Categorical", lambda law: {"predictor": law.logits}),
    "CategoricalProbs": Family("Categorical", lambda law: {"predictor": jnp.log(law.probs)}),
    "Poisson": Family("Poisson", lambda law: {"predictor": jnp.log(law.rate)}, (), -50.0, 20.0),
    "GammaPoisson": Family(
        "NegativeBinomial",
        lambda law: {"predictor": jnp.log(law.concentration) - jnp.log(law.rate), "dispersion": law.concentration},
        *_COUNTS,
    ),
    "NegativeBinomialLogits": Family(
        "NegativeBinomial",
        lambda law: {"predictor": jnp.log(law.total_count) + law.logits, "dispersion": law.total_count},
        *_COUNTS,
    ),
    "Normal": Family("Normal", _location),
    "StudentT": Family("StudentT", lambda law: {**_location(law), "df": law.df}, ("df",)),
    "Cauchy": Family("StudentT", lambda law: {**_location(law), "df": 1.0}, ("df",)),
    "Gamma": Family("Gamma", lambda law: {"predictor": jnp.log(law.rate), "shape": law.concentration}, *_DURATIONS),
    "Exponential": Family("Gamma", lambda law: {"predictor": jnp.log(law.rate), "shape": 1.0}, *_DURATIONS),
}
_FAMILIES |= dict.fromkeys(("NegativeBinomial2", "NegativeBinomialProbs"), _FAMILIES["GammaPoisson"])


def family_of(called: str, site: str, distribution: str) -> Family:
    """The family of a distribution by its class name, or a message that says which there are."""
    if distribution not in _FAMILIES:
        instead = INSTEAD.get(distribution, "Choose one of those, or declare a bound with od.models.OwnDensity.")
        raise InvalidModel(
            f"{called}: the observed site {site!r} has the distribution {distribution}, but the β-divergence needs one "
            f"whose density has a known bound: {SUPPORTED}. {instead}"
        )
    return _FAMILIES[distribution]


def likelihood_of(called: str, facts: Facts, variance_floor: float | None, rate_cap: float | None) -> Likelihood:
    """The likelihood of a model's observed site; what its family does not have must not be declared."""
    family, constants = facts.program.family, facts.constants
    located = family.name in ("Normal", "StudentT")
    for name, value, belongs, where in (
        ("variance_floor", variance_floor, located, "Normal, StudentT and Cauchy"),
        ("rate_cap", rate_cap, family.name == "Gamma", "Exponential and Gamma"),
    ):
        if value is not None and not belongs:
            raise InvalidModel(f"{called}: {name} belongs to {where}; the observed site has none. Leave it out.")
    match family.name:
        case "Bernoulli":
            return Bernoulli()
        case "Categorical":
            return Categorical(facts.outputs)
        case "Poisson":
            return Poisson()
        case "NegativeBinomial":
            return NegativeBinomial(constants["dispersion"])
        case "Gamma":
            if rate_cap is None:
                raise InvalidModel(
                    f"{called}: the rate of the observed site has no cap, so the density of a short duration has no bound and "
                    "β-divergence sampling cannot be private. Pass rate_cap=…, the reciprocal of the shortest scale that matters: "
                    "a public choice, never computed from the records."
                )
            return Gamma(rate_cap, constants["shape"])
    if facts.known_variance is None and variance_floor is None:
        raise InvalidModel(
            f"{called}: the scale of the observed site is computed by the model and has no floor, so no density bound "
            "exists and β-divergence sampling cannot be private. Pass variance_floor=… (0.01 for a response of unit variance, "
            "say: a public choice, never computed from the records), or write the scale as a constant."
        )
    if family.name == "Normal":
        return GaussianNoise(variance_floor, facts.known_variance)
    return StudentT(constants["df"], variance_floor, facts.known_variance)
