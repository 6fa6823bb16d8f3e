"""NumPyro models as users write them, and as they should not."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.handlers import mask, scale

from onedraw.models import from_numpyro

FLOOR = 0.04


def weights(size, name="w", spread=3.0):
    return numpyro.sample(name, dist.Normal(0, spread).expand([size]).to_event(1))


# ── good ones ────────────────────────────────────────────────────────────────────────────────────────────────


def logistic(X, y=None):
    numpyro.sample("y", dist.Bernoulli(logits=X @ weights(X.shape[1])), obs=y)


def logistic_in_a_plate(X, y=None, n=None):
    with numpyro.plate("features", X.shape[1]):
        w = numpyro.sample("w", dist.Normal(0.0, 3.0))
    with numpyro.plate("records", n or X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


def logistic_of_probabilities(X, y=None):
    odds = numpyro.deterministic("odds", X @ weights(X.shape[1]))
    numpyro.sample("y", dist.Bernoulli(probs=jax.nn.sigmoid(odds)), obs=y)


def softmax(X, y=None):
    W = numpyro.sample("W", dist.Normal(0, 3).expand([3, X.shape[1]]).to_event(2))
    numpyro.sample("y", dist.Categorical(logits=X @ W.T), obs=y)


def softmax_of_probabilities(X, y=None):
    W = numpyro.sample("W", dist.Normal(0, 3).expand([3, X.shape[1]]).to_event(2))
    numpyro.sample("y", dist.Categorical(probs=jax.nn.softmax(X @ W.T)), obs=y)


def poisson(X, y=None):
    numpyro.sample("y", dist.Poisson(jnp.exp(X @ weights(X.shape[1]))), obs=y)


def negative_binomial(X, y=None):
    numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(X @ weights(X.shape[1])), 1.5), obs=y)


def negative_binomial_logits(X, y=None):
    logits = X @ weights(X.shape[1]) - jnp.log(1.5)
    numpyro.sample("y", dist.NegativeBinomialLogits(1.5, logits=logits), obs=y)


def negative_binomial_probs(X, y=None):
    logits = X @ weights(X.shape[1]) - jnp.log(1.5)
    numpyro.sample("y", dist.NegativeBinomialProbs(1.5, probs=jax.nn.sigmoid(logits)), obs=y)


def normal(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 0.5), obs=y)


def normal_of_unknown_scale(X, y=None):
    w = weights(X.shape[1])
    variance = numpyro.sample("variance", dist.InverseGamma(1.0, 1.0))
    numpyro.sample("y", dist.Normal(X @ w, jnp.sqrt(variance)), obs=y)


def normal_of_changing_scale(X, y=None):
    w, v = weights(X.shape[1]), weights(X.shape[1], "v", 1.0)
    numpyro.sample("y", dist.Normal(X @ w, jnp.exp(X @ v)), obs=y)


def student(X, y=None):
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.StudentT(3.0, X @ weights(X.shape[1]), sigma), obs=y)


def cauchy(X, y=None):
    numpyro.sample("y", dist.Cauchy(X @ weights(X.shape[1]), 0.5), obs=y)


def durations(X, y=None):
    rate = 1.0 / (1.0 / 4.0 + jnp.exp(X @ weights(X.shape[1])) / 2.5)
    numpyro.sample("y", dist.Gamma(2.5, rate), obs=y)


def waiting(X, y=None):
    numpyro.sample("y", dist.Exponential(jnp.exp(-X @ weights(X.shape[1]))), obs=y)


def groups(X, y=None):
    """A column of X is the number of a group."""
    level = numpyro.sample("level", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", 4):
        effect = numpyro.sample("effect", dist.Normal(level, spread))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Bernoulli(logits=effect[X[:, 0].astype(int)] + slope * X[:, 1]), obs=y)


# Each model with the responses to search among; with a bound that the first sixteen searches should nearly reach.
SEARCHED = [
    (logistic_in_a_plate, "signs"),
    (logistic_of_probabilities, "signs"),
    (softmax, "codes"),
    (poisson, "counts"),
    (negative_binomial, "counts"),
    (normal_of_unknown_scale, "numbers"),
    (normal_of_changing_scale, "numbers"),
    (student, "numbers"),
    (waiting, "durations"),
]
LIMITS = {
    normal_of_unknown_scale: {"variance_floor": FLOOR},
    normal_of_changing_scale: {"variance_floor": FLOOR},
    student: {"variance_floor": FLOOR},
    waiting: {"rate_cap": 4.0},
}


@functools.cache
def searched(fn):
    """Made when a test asks for it, once: examining a model takes JAX half a second, which collecting tests need not wait for."""
    return from_numpyro(fn, features=2, **LIMITS.get(fn, {}))


# ── priors ───────────────────────────────────────────────────────────────────────────────────────────────────


def constrained():
    numpyro.sample("half", dist.HalfNormal(2.0))
    numpyro.sample("log", dist.LogNormal(0.3, 0.8))
    numpyro.sample("between", dist.Uniform(-1.0, 4.0))
    numpyro.sample("share", dist.Beta(2.0, 3.0))
    numpyro.sample("simplex", dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])))


def nested():
    centre = numpyro.sample("centre", dist.Normal(1.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", 3):
        numpyro.sample("effect", dist.StudentT(4.0, centre, spread))
    top = numpyro.sample("top", dist.Exponential(1.0))
    numpyro.sample("below", dist.Uniform(0.0, top))  # its support depends on another site


def correlated():
    numpyro.sample("root", dist.LKJCholesky(3, concentration=2.0))
    numpyro.sample("point", dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.6], [0.6, 1.0]])))
    numpyro.sample("cut", dist.TruncatedNormal(0.0, 1.0, low=-0.5))
    numpyro.sample("ordered", dist.TransformedDistribution(dist.Normal(0, 1).expand([3]).to_event(1), dist.transforms.OrderedTransform()))  # fmt: skip


PRIORS = [constrained, nested, correlated]


def with_observations(latents):
    @functools.wraps(latents)
    def model(X, y=None):
        latents()
        numpyro.sample("y", dist.Bernoulli(logits=weights(1, "slope")[0] * X[:, 0]), obs=y)

    del model.__wrapped__  # its signature is its own
    return model


# ── bad ones: (model, options, words of the message) ─────────────────────────────────────────────────────────


def two_observed(X, y=None):
    eta = X @ weights(X.shape[1])
    numpyro.sample("a", dist.Normal(eta, 1.0), obs=y)
    numpyro.sample("b", dist.Normal(2 * eta, 1.0), obs=y)


def pseudo_observation(X, y=None):
    w = weights(X.shape[1])
    numpyro.sample("sum", dist.Normal(w.sum(), 0.1), obs=0.0)
    numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def none_observed(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0))


def no_latent(X, y=None):
    numpyro.sample("y", dist.Normal(X[:, 0], 1.0), obs=y)


def log_normal(X, y=None):
    numpyro.sample("y", dist.LogNormal(X @ weights(X.shape[1]), 1.0), obs=y)


def laplace(X, y=None):
    numpyro.sample("y", dist.Laplace(X @ weights(X.shape[1]), 1.0), obs=y)


class Normal(dist.Normal):
    """Not NumPyro's, whatever its name."""


def impostor(X, y=None):
    numpyro.sample("y", Normal(X @ weights(X.shape[1]), 1.0), obs=y)


def factor(X, y=None):
    w = weights(X.shape[1])
    numpyro.factor("more", -jnp.abs(w).sum())
    numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def parameter(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), numpyro.param("sigma", 1.0)), obs=y)


def subsampled(X, y=None):
    w = weights(X.shape[1])
    with numpyro.plate("records", X.shape[0], subsample_size=1) as index:
        numpyro.sample("y", dist.Normal(X[index] @ w, 1.0), obs=y[index])


def scaled(X, y=None):
    with scale(scale=2.0):
        numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=y)


def masked(X, y=None):
    eta = X @ weights(X.shape[1])
    with mask(mask=X[:, 0] > 0):
        numpyro.sample("y", dist.Normal(eta, 1.0), obs=y)


def column_vector(X, y=None):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([X.shape[1], 1]).to_event(2))
    numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def event(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0).to_event(1), obs=y)


def fixed_plate(X, y=None):
    with numpyro.plate("records", 100):
        numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=y)


def one_latent_each(X, y=None):
    with numpyro.plate("records", X.shape[0]):
        effect = numpyro.sample("effect", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(effect, 1.0), obs=y)


def prior_of_rows(X, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, X.std()))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def prior_of_responses(X, y=None):
    centre = 0.0 if y is None else y.mean()
    w = numpyro.sample("w", dist.Normal(centre, 1.0))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def support_of_rows(X, y=None):
    w = numpyro.sample("w", dist.Uniform(0.0, 1.0 + jnp.abs(X).max()))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def prior_of_count(X, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 1.0 / X.shape[0]))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def prior_of_presence(X, y=None):
    w = numpyro.sample("w", dist.Normal(0.0, 2.0 if y is None else 1.0))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def predictor_of_responses(X, y=None):
    w = weights(X.shape[1])
    numpyro.sample("y", dist.Normal(X @ w + 0.9 * y, 1.0), obs=y)


def scale_of_responses(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), y.std()), obs=y)


def transformed_response(X, y=None):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=jnp.log(jnp.abs(y) + 1.0))


def standardised(X, y=None):
    w = weights(X.shape[1])
    numpyro.sample("y", dist.Normal((X - X.mean(0)) @ w, 1.0), obs=y)


def neighbours(X, y=None):
    eta = X @ weights(X.shape[1])
    numpyro.sample("y", dist.Bernoulli(logits=eta + jnp.roll(eta, 1)), obs=y)


def python_branch(X, y=None):
    w = weights(X.shape[1])
    if X.mean() > 0:
        w = 2.0 * w
    numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def discrete_latent(X, y=None):
    which = numpyro.sample("which", dist.Bernoulli(0.5))
    numpyro.sample("y", dist.Normal(which * X[:, 0], 1.0), obs=y)


def improper(X, y=None):
    w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.sample("y", dist.Normal(w * X[:, 0], 1.0), obs=y)


def improper_vector(X, y=None):
    w = numpyro.sample("w", dist.ImproperUniform(dist.constraints.real, (2,), ()).to_event(1))
    numpyro.sample("y", dist.Normal(X @ w, 1.0), obs=y)


def random_inside(X, y=None):
    noise = jax.random.normal(numpyro.prng_key())
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]) + noise, 1.0), obs=y)


def printing(X, y=None):
    jax.debug.print("{}", X)
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=y)


def calling_back(X, y=None):
    eta = jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((X.shape[0],), float), X @ weights(X.shape[1]))
    numpyro.sample("y", dist.Normal(eta, 1.0), obs=y)


def latent_dispersion(X, y=None):
    r = numpyro.sample("r", dist.HalfNormal(1.0))
    numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(X @ weights(X.shape[1])), r), obs=y)


def short_shape(X, y=None):
    numpyro.sample("y", dist.Gamma(0.5, jnp.exp(X @ weights(X.shape[1]))), obs=y)


def reciprocal(X, y=None):
    numpyro.sample("y", dist.Normal(weights(1)[0] / X[:, 0], 1.0), obs=y)


def wrong_signature(X):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=jnp.zeros(3))


def needs_more(X, y, groups):
    numpyro.sample("y", dist.Normal(X @ weights(X.shape[1]), 1.0), obs=y)


REFUSED = [
    (two_observed, {}, "exactly one observed site, got 2: a, b"),
    (pseudo_observation, {}, "exactly one observed site, got 2: sum, y"),
    (none_observed, {}, "exactly one observed site, got none"),
    (no_latent, {}, "has no latent site"),
    (log_normal, {}, "LogNormal.*unbounded near 0: pass log y"),
    (laplace, {}, "distribution Laplace"),
    (impostor, {}, "not one of NumPyro's own"),
    (factor, {}, r"numpyro\.factor\('more'\)"),
    (parameter, {}, r"numpyro\.param\('sigma'\) is a parameter without a prior"),
    (subsampled, {}, "'records' takes a subsample"),
    (scaled, {}, "scaled or masked"),
    (masked, {}, "scaled or masked"),
    (column_vector, {}, r"one response per record.*\(5, 1\)"),
    (event, {}, "one response per record.*to_event"),
    (fixed_plate, {}, "plates over records must come from"),
    (one_latent_each, {}, "effect have another size on 5 rows than on one"),
    (prior_of_rows, {}, "prior of a latent site depends on X"),
    (prior_of_responses, {}, "prior of a latent site depends on y"),
    (support_of_rows, {}, "prior of a latent site depends on X"),
    (prior_of_count, {}, "prior depends on how many rows"),
    (prior_of_presence, {}, "prior depends on whether y is given"),
    (predictor_of_responses, {}, "distribution of the observed site depends on y"),
    (scale_of_responses, {"variance_floor": 1.0}, "distribution of the observed site depends on y"),
    (transformed_response, {}, "is not y but something computed from it"),
    (standardised, {}, "changes with the other rows of X"),
    (neighbours, {}, "changes with the other rows of X"),
    (python_branch, {}, "uses the values of X or y outside of JAX"),
    (discrete_latent, {}, "'which' .* is discrete"),
    (improper, {}, "no proper density"),
    (improper_vector, {}, "no proper density"),
    (random_inside, {}, "numpyro.prng_key"),
    (printing, {}, "could see other people.s rows or show them"),
    (calling_back, {}, "could see other people.s rows or show them"),
    (latent_dispersion, {}, "dispersion of the observed NegativeBinomial site must be a constant"),
    (short_shape, {"rate_cap": 3.0}, "Below 1 the density is unbounded"),
    (reciprocal, {}, "not finite at the public row"),
    (wrong_signature, {}, r"callable as model\(X, y\)"),
    (needs_more, {}, r"callable as model\(X, y\)"),
    (normal_of_unknown_scale, {}, "no floor, so no density bound exists"),
    (student, {}, "no floor, so no density bound exists"),
    (waiting, {}, "has no cap"),
    (logistic, {"variance_floor": 0.1}, "variance_floor belongs to Normal"),
    (normal, {"rate_cap": 0.1}, "rate_cap belongs to Exponential"),
    (normal, {"classes": [0, 1]}, "classes belong to"),
    (softmax, {"classes": ["a", "b"]}, "3 classes, got 2 labels"),
    (normal, {"variance_floor": 0.5}, "below its floor"),
    (3, {}, "must be a JAX function"),
    (logistic, {"features": 0}, "whole number of at least 1"),
]
