"""A user's function sees one row: whatever could see more, or show it, is refused before any record is read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onedraw as od
from onedraw.errors import InvalidModel
from onedraw.models import ConvexLoss, OwnDensity, Predictor, register_density

PRIOR = od.Gaussian(scale=1.0)
ROWS = np.random.default_rng(1).normal(size=(6, 2))
CHANGED = np.vstack([ROWS[:-1], [[50.0, -50.0]]])

SEEN: list = []


def note(values) -> np.ndarray:
    SEEN.append(np.array(values))
    return np.asarray(values)


@jax.custom_batching.custom_vmap
def centred(x):
    """Does nothing to one row; rows together lose their mean."""
    return x


@centred.def_vmap
def _centred_together(axis_size, in_batched, x):
    return x - x.mean(0), in_batched[0]


def by_expansion(x):
    def back(rows):
        return np.asarray(rows) - np.asarray(rows).reshape(-1, rows.shape[-1]).mean(0)

    return jax.pure_callback(back, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")


def printed(x):
    jax.debug.print("{x}", x=x)
    return x


def told(x):
    jax.debug.callback(note, x)
    return x


def foreign(x):
    return jax.ffi.ffi_call("nobody", jax.ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")(x)


def in_a_loop(x):
    return jax.lax.fori_loop(0, 2, lambda _, row: centred(row), x)


def in_a_branch(x):
    return jax.lax.cond(x[0] > 0, jax.jit(centred), lambda row: row, x)


def remembered(x):
    return jax.checkpoint(lambda row: jax.jit(centred)(row))(x)


def random(x):
    return x + jax.random.normal(jax.random.key(0), x.shape)


ATTACKS = [centred, by_expansion, printed, told, foreign, in_a_loop, in_a_branch, remembered]


def a_predictor(fn):
    return Predictor(fn, 2, likelihood=od.models.likelihoods.Bernoulli(), features=2, prior=PRIOR)


def a_loss(fn):
    return ConvexLoss(fn, 2, features=2, data_norm=1.0, lipschitz=2.0, prior=PRIOR)


def a_model(fn):
    def model(X, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        rows = fn(X[0])[None] if X.shape[0] == 1 else X  # an innocent look on several rows, as the checks have them
        numpyro.sample("y", dist.Bernoulli(logits=rows @ w), obs=y)

    return od.models.from_numpyro(model, features=2)


@pytest.mark.finding("F4")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: getattr(attack, "__name__", "centred"))
def test_a_predictor_that_could_see_or_show_other_rows_is_refused(attack):
    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        a_predictor(lambda theta, x: theta @ attack(x))


@pytest.mark.finding("F4")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: getattr(attack, "__name__", "centred"))
def test_a_convex_loss_that_could_see_or_show_other_rows_is_refused(attack):
    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        a_loss(lambda theta, x, y: jnp.logaddexp(0.0, theta @ attack(x)))


@pytest.mark.finding("F4")
@pytest.mark.parametrize("attack", [centred, printed, told], ids=["centred", "printed", "told"])
def test_a_numpyro_model_that_could_see_or_show_other_rows_is_refused(attack):
    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        a_model(attack)


@pytest.mark.finding("F4")
def test_a_numpyro_model_whose_rule_for_many_rows_passes_every_comparison_is_refused():
    """The reviewers' model: X − X.mean(0) by a rule that answers alike together and alone at the probes."""

    def model(X, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.sample(
            "y", dist.Bernoulli(logits=jax.vmap(centred)(X) @ w if len(X) == 1 else (X - X.mean(0)) @ w), obs=y
        )

    with pytest.raises(InvalidModel):
        od.models.from_numpyro(model, features=2)

    @jax.custom_batching.custom_vmap
    def both(X):
        return X - X.mean(0)

    @both.def_vmap
    def _(axis_size, in_batched, X):
        return X - X.reshape(-1, X.shape[-1]).mean(0), in_batched[0]

    def alike(X, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=both(X) @ w), obs=y)

    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        od.models.from_numpyro(alike, features=2)


@pytest.mark.finding("F4")
def test_a_numpyro_prior_that_shows_the_parameter_is_refused():
    def model(X, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([2]).to_event(1))
        scale = numpyro.sample("s", dist.HalfNormal(told(jnp.exp(w[:1]))[0] if X.shape[0] == 1 else jnp.exp(w[0])))
        numpyro.sample("y", dist.Bernoulli(logits=X @ w * scale), obs=y)

    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        od.models.from_numpyro(model, features=2)


@pytest.mark.finding("F4")
def test_a_density_of_ones_own_sees_one_response():
    """It was given all of them: a mean over them moved everybody's loss, within the bound of each."""
    name = register_density(
        "centred laplace",
        lambda u, y: -abs(y - u - jnp.mean(y)) - jnp.log(2.0),
        lambda beta, u: (1.0 - beta) * jnp.log(2.0) - jnp.log(beta) + 0.0 * u,
    )
    density = OwnDensity(name, bound=0.5)
    predictor, responses = jnp.zeros(4), np.array([0.5, 1.0, -1.0, 2.0])
    losses = density.beta_loss(1.5, predictor, jnp.asarray(responses))
    responses[-1] = 30.0
    np.testing.assert_array_equal(losses[:-1], density.beta_loss(1.5, predictor, jnp.asarray(responses))[:-1])
    many = density.beta_loss(1.5, jnp.zeros((3, 4)), jnp.asarray(responses))
    assert many.shape == (3, 4)


@pytest.mark.finding("F4")
def test_a_density_of_ones_own_that_prints_is_refused():
    name = register_density("printed", lambda u, y: -abs(printed(y) - u), lambda beta, u: 0.0 * u)
    with pytest.raises(InvalidModel, match="could see other people's rows or show them"):
        OwnDensity(name, bound=1.0)


@pytest.mark.finding("F4")
def test_what_was_examined_is_what_runs():
    """A function that is innocent when first asked and centres rows ever after."""
    asked = []

    def moody(theta, x):
        asked.append(1)
        return theta @ (x if len(asked) <= 3 else centred(x))

    model = a_predictor(moody)
    theta = np.ones(2)
    calm = [np.asarray(model.predictor(theta, rows))[:-1] for rows in (ROWS, CHANGED)]
    np.testing.assert_array_equal(*calm)
    gradients = jax.jacobian(lambda theta: model.predictor(theta, ROWS))(theta)
    np.testing.assert_allclose(gradients, ROWS, rtol=1e-12)


@pytest.mark.finding("F4")
def test_rules_for_derivatives_never_run():
    @jax.custom_jvp
    def flat(x):
        return jnp.sin(x)

    @flat.defjvp
    def _(primals, tangents):
        jax.debug.callback(note, primals[0])
        return jnp.sin(primals[0]), 100.0 * tangents[0]

    @jax.custom_vjp
    def steep(x):
        return jnp.cos(x)

    steep.defvjp(lambda x: (jnp.cos(x), x), lambda x, g: (told(g) * 100.0,))
    SEEN.clear()
    model = a_predictor(lambda theta, x: flat(theta @ x) + jax.lax.fori_loop(0, 1, lambda _, v: steep(v), theta[0]))
    theta = np.array([0.3, -0.2])
    found = jax.hessian(lambda theta: model.predictor(theta, ROWS).sum())(theta)
    expected = jax.hessian(lambda theta: (jnp.sin(ROWS @ theta) + jnp.cos(theta[0])).sum())(theta)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    jax.effects_barrier()
    assert SEEN == []


def test_ordinary_functions_give_what_they_give():
    def network(theta, x):
        hidden = jax.nn.relu(theta[:1] * x) + jax.nn.softplus(theta[1] * x)
        folded = jax.lax.fori_loop(0, 3, lambda _, v: jnp.logaddexp(v, 0.5 * v), hidden.sum())
        turned = jax.lax.cond(folded > 1.0, jax.nn.gelu, jnp.tanh, folded)
        scanned, _ = jax.lax.scan(lambda carry, v: (carry + jax.nn.relu(v), None), turned, hidden)
        table = jnp.interp(x[0], jnp.arange(3.0), jnp.array([0.0, 1.0, 4.0]))
        solved = jnp.linalg.solve(jnp.eye(2) + jnp.outer(x, x), x)
        return scanned + table + jax.scipy.special.logsumexp(solved) + jnp.linalg.norm(x)

    model, theta = a_predictor(network), np.array([0.7, -0.4])
    plain = jax.vmap(network, in_axes=(None, 0))
    for derivative in (lambda fn: fn, jax.jacrev):
        found = jax.jit(derivative(lambda theta: model.predictor(theta, ROWS)))(theta)
        expected = jax.jit(derivative(lambda theta: plain(theta, ROWS)))(theta)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_randomness_within_a_function_is_refused():
    with pytest.raises(InvalidModel, match="randomness"):
        a_predictor(lambda theta, x: theta @ random(x))


@pytest.mark.finding("F4")
def test_a_certificate_names_the_function_and_all_it_refers_to():
    def dose(theta, x):
        return theta @ x

    plan = od.calibrate(od.BetaDivergence(), a_predictor(dose), od.PureDP(1.0), n=20)
    loss = a_loss(lambda theta, x, y: jnp.logaddexp(0.0, theta @ x))
    gibbs = od.calibrate(od.Gibbs(), loss, od.ApproxDP(1.0, 1e-5), n=20)
    for made, name in ((plan, "'dose'"), (gibbs, "'<lambda>'")):
        (found,) = [
            note.statement for note in made.guarantee.assumptions if "everything it refers to" in note.statement
        ]
        assert found.startswith(f"the function {name} (SHA-256 of its source ")
        assert found.endswith("were fixed without looking at the records")
