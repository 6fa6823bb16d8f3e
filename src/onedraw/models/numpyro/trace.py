"""A user's NumPyro model as functions of an unconstrained parameter and rows. The one file that imports NumPyro.

A model is a program of named random choices (Phan, Pradhan, Jankowiak, "Composable effects for flexible and
accelerated probabilistic programming in NumPyro", arXiv:1912.11554). `Program` runs it by `numpyro.infer.util`: each
latent site gets the value T(θ) of its part of θ ∈ R^d, T the bijection onto the site's support, and the prior is
Σ log p(site) + log|det T'|. Supports may depend on other sites.

Only two things are ever taken from a run, and both are free of other people's records:

* the **prior**, from a run on a fixed public row and a fixed response;
* the **predictor** of a record, from a run on that record's row alone, again with a fixed response.

The model's code runs once, on one row without values; the operations it leaves behind are what runs on the records, and
none of them can see two rows or show one (`examined`, by the rules of `one_row`). Whether the model as written *means*
this (its prior free of the data, its rows independent) is checked in `numpyro_checks`; the promise does not rest on those
checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import check_extra
from onedraw.models.compute import double_precision, jax, jnp
from onedraw.models.one_row import OneRow, one_row

from .distributions import Family

double_precision()  # first: NumPyro asks JAX for its default
try:
    from numpyro import distributions as laws
    from numpyro.handlers import block, seed, substitute, trace
    from numpyro.infer import util
    from numpyro.primitives import Messenger, sample
except ModuleNotFoundError:
    check_extra("numpyro", "numpyro", "A NumPyro model")
    raise

ModelFunction = Callable[..., Any]


@dataclass(frozen=True)
class Site:
    """A latent site: the shape of its value, and that of its part of θ (smaller for a simplex, say)."""

    name: str
    shape: tuple[int, ...]
    free_shape: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """ "w" for a number, "w[0]", "w[1]", … or "W[0,0]", … for an array."""
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}[{','.join(map(str, index))}]" for index in np.ndindex(*self.shape))


@dataclass(frozen=True)
class Program:
    """The model with what is known of its sites; hashable, a static argument of compiled functions.

    ``row`` is the public row (and 0 the response) on which the prior is evaluated.
    """

    fn: ModelFunction
    sites: tuple[Site, ...]
    observed: str
    family: Family
    row: tuple[float, ...]

    @property
    def dimension(self) -> int:
        return sum(math.prod(site.free_shape) for site in self.sites)

    def run(self, theta: Any, X: Any, y: Any) -> dict[str, Any]:
        """All sites at θ."""
        values = util.constrain_fn(self.fn, (X, y), {}, self._by_site(theta, [site.free_shape for site in self.sites]))
        found: dict[str, Any] = trace(substitute(self.fn, data=values)).get_trace(X, y)
        return found

    def log_prior(self, theta: Any, X: Any = None, y: Any = None) -> Any:
        """log π(θ) in the unconstrained coordinates; of the public row, unless a check asks for another."""
        return self._log_density(self.fn, theta, self._rows if X is None else X, jnp.zeros(1) if y is None else y)

    def log_prior_without_responses(self, theta: Any, X: Any) -> Any:
        """log π(θ) of a run in which y is None, so that the observed site is drawn like any other."""
        return self._log_density(seed(self.fn, jax.random.key(0)), theta, X, None)

    def _log_density(self, fn: ModelFunction, theta: Any, X: Any, y: Any) -> Any:
        """Of the latent sites alone."""
        free = self._by_site(theta, [site.free_shape for site in self.sites])
        return -util.potential_energy(block(fn, hide=[self.observed]), (X, y), {}, free)

    def parts(self, theta: Any, X: Any, y: Any = None) -> dict[str, Any]:
        """Predictor, variance and constants for rows X, as `Family` names them; one entry per row."""
        found = self.run(theta, X, jnp.zeros(len(X)) if y is None else y)
        law, rows = innermost(found[self.observed]["fn"]), len(X)
        result = {}
        for name, value in self.family.parts(law).items():
            several = jnp.shape(value)[-1:] if name == "predictor" and self.family.name == "Categorical" else ()
            result[name] = jnp.broadcast_to(jnp.asarray(value, dtype=float), (rows, *several))
        return result

    def constrain(self, theta: Any) -> Any:
        """The sites' values, one after the other."""
        return self._joined({name: site["value"] for name, site in self.run(theta, self._rows, jnp.zeros(1)).items()})

    def unconstrain(self, values: Any) -> Any:
        """The inverse of `constrain`."""
        return self._freed(self._by_site(values, [site.shape for site in self.sites]))

    def draw(self, key: Any) -> Any:
        """One θ from the prior, of the numbers of a key."""
        found = trace(seed(self.fn, jax.random.wrap_key_data(key))).get_trace(self._rows, jnp.zeros(1))
        return self._freed({site.name: found[site.name]["value"] for site in self.sites})

    def _freed(self, values: dict[str, Any]) -> Any:
        return self._joined(util.unconstrain_fn(self.fn, (self._rows, jnp.zeros(1)), {}, values))

    @property
    def _rows(self) -> Any:
        return jnp.asarray(self.row)[None, :]

    def _by_site(self, joined: Any, shapes: list[tuple[int, ...]]) -> dict[str, Any]:
        result, start = {}, 0
        for site, shape in zip(self.sites, shapes, strict=True):
            stop = start + math.prod(shape)
            result[site.name], start = joined[start:stop].reshape(shape), stop
        return result

    def _joined(self, values: dict[str, Any]) -> Any:
        return jnp.concatenate([jnp.ravel(jnp.asarray(values[site.name], dtype=float)) for site in self.sites])


def innermost(law: Any) -> Any:
    """The distribution itself, without the wrapper that a plate puts around it."""
    while isinstance(law, laws.ExpandedDistribution):
        law = law.base_dist
    return law


def layers(law: Any) -> Iterator[Any]:
    """A distribution, and those its wrappers (plates, events, masks) hold."""
    yield law
    while isinstance(law, laws.ExpandedDistribution | laws.Independent | laws.MaskedDistribution):
        law = law.base_dist
        yield law


@cache
def examined(program: Program, what: str) -> OneRow:
    """ "parts" of (theta, row), "log_prior" and "constrain" of theta: what runs on records and on draws made from them."""

    def parts(theta: Any, row: Any) -> dict[str, Any]:
        return {name: value[0] for name, value in program.parts(theta, row[None]).items()}

    called, theta, row = getattr(program.fn, "__name__", "the model"), (program.dimension,), (len(program.row),)
    return one_row(parts, called, theta, row) if what == "parts" else one_row(getattr(program, what), called, theta)


@lru_cache(maxsize=256)
def compiled(program: Program, what: str) -> Any:
    """ "constrain", "unconstrain" and "log_prior" for the rows of an array, "draw" for the numbers of several keys."""
    public = what in ("unconstrain", "draw")  # never called with anything that was computed from a record
    return jax.jit(jax.vmap(getattr(program, what) if public else examined(program, what)))


BLOCK = 512
"""Rows of a compiled program, unless there is one row only: to compile it takes far longer than to run it on a full block."""


def by_blocks(program: Program, what: str, rows: Any) -> Array:
    """What `compiled` makes of the rows, however many there are, by one program."""
    run, given = compiled(program, what), np.asarray(rows)
    if len(given) < 2:
        return np.array(run(given), dtype=np.float64)
    whole = np.concatenate([given, np.repeat(given[:1], -len(given) % BLOCK, axis=0)])
    found = [np.asarray(run(block), dtype=np.float64) for block in whole.reshape(-1, BLOCK, *given.shape[1:])]
    return np.concatenate(found)[: len(given)]


def prior_draws(program: Program, start: int, size: int) -> Array:
    """``size`` independent θ from the prior, one per row."""
    # in whole blocks: the first keys are the same however many there are
    keys = jax.random.split(jax.random.key(start), size + -size % BLOCK)
    return by_blocks(program, "draw", jax.random.key_data(keys))[:size]


# ── what a run shows, as plain facts ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Choice:
    """A site of a run as a check sees it, without its values."""

    name: str
    kind: str
    """"latent", "observed", "factor", "plate" (whole or "subsampled plate"), "deterministic", or NumPyro's own word."""

    distribution: str = ""
    shape: tuple[int, ...] = ()
    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()
    free_shape: tuple[int, ...] | None = None
    """None where the support has no bijection from R^d."""

    discrete: bool = False
    proper: bool = True
    weighted: bool = False
    own: bool = True
    """Whether the distribution is NumPyro's own; a class of the user's that bears the same name is not."""


def choices(fn: ModelFunction, X: Any, y: Any) -> tuple[Choice, ...]:
    """The sites of a run in their order, on rows and responses whose values the model's Python code cannot see."""
    found: list[Choice] = []

    def run(X: Any, y: Any) -> None:
        with _Watch(found):
            seeded = seed(substitute(fn, substitute_fn=_stand_in), jax.random.key(0))
            found.extend(map(_choice, trace(seeded).get_trace(X, y).values()))

    jax.eval_shape(run, X, y)
    return tuple(found)


class _Watch(Messenger):  # type: ignore[misc]  # NumPyro has no types
    """Notes what a trace does not: statements without a name."""

    def __init__(self, found: list[Choice]) -> None:
        self.found = found
        super().__init__()

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg.get("name") is None:
            self.found.append(Choice("", msg["type"]))


def _stand_in(site: dict[str, Any]) -> Any:
    """A value for a site that cannot be drawn, so that the run goes on and it can be named."""
    if site["type"] != "sample" or not any(isinstance(law, laws.ImproperUniform) for law in layers(site["fn"])):
        return None
    return jnp.zeros(site["fn"].shape())


def _choice(site: dict[str, Any]) -> Choice:
    if site["type"] == "plate":
        size, subsample = site["args"]
        return Choice(site["name"], "plate" if subsample in (None, size) else "subsampled plate")
    if site["type"] != "sample":
        return Choice(site.get("name") or "", site["type"])
    law, within = innermost(site["fn"]), tuple(layers(site["fn"]))
    if isinstance(within[-1], laws.Unit):
        return Choice(site["name"], "factor")
    proper = not isinstance(within[-1], laws.ImproperUniform | laws.Delta)
    shape = tuple(jnp.shape(site["value"]))
    return Choice(
        site["name"], "observed" if site["is_observed"] else "latent", type(law).__name__, shape,
        tuple(site["fn"].batch_shape), tuple(site["fn"].event_shape),
        None if site["is_observed"] else _free_shape(site["fn"], shape), proper and bool(site["fn"].is_discrete),
        proper,
        site["scale"] is not None or any(isinstance(one, laws.MaskedDistribution) for one in within),
        type(law).__module__.startswith("numpyro.distributions"),
    )  # fmt: skip


def _free_shape(law: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return tuple(laws.biject_to(law.support).inverse_shape(shape))
    except NotImplementedError:
        return None


def logistic_regression(X: Any, y: Any = None) -> None:
    """State the program of `NumpyroModel.example`, as a user writes one."""
    weights = sample("weights", laws.Normal(0.0, 3.0).expand([X.shape[1]]).to_event(1))
    sample("y", laws.Bernoulli(logits=X @ weights), obs=y)
