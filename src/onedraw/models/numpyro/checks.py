"""Is a NumPyro model one whose β-divergence posterior is what its author means? Looked at before any record is.

The promise does not rest on this file: what runs takes the prior from a public row and each predictor from its own
row (`trace`). A model that is *written* otherwise, though, would quietly become another one, so it is refused:

| written | found by |
| --- | --- |
| none or several observed sites, factors, parameters, subsampled plates, weights, masks, discrete latents | a run |
| a latent for every record, one response for several records | runs on 1 and on 5 rows |
| a prior or constant that depends on X or y, a predictor that depends on y | the compiled program's data flow |
| a prior that depends on n, or on whether y is there | its density at public points |
| a predictor that depends on other rows (X.mean(0), say) | 5 rows together against one at a time, at public points |
| printing, callbacks, rules of its own for many rows | the operations of a run on one row (`one_row`) |

Data flow is exact in one direction: a value on which no path of operations leads from X cannot depend on X. (A path
whose effect cancels, 0·X, is refused too.) X and y have no values while the model's Python code runs, so nothing can
pass by it. What no check can see is a number computed from the records *before* the model was written, a constant
``X.std()`` in a closure: that no prior was chosen by looking at the records is declared by the caller.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from onedraw.errors import InvalidModel
from onedraw.models.compute import jax, jnp
from onedraw.models.design import Design
from onedraw.models.features import Features

from .distributions import family_of
from .trace import Choice, Program, Site, choices, examined, prior_draws

# isort: split
from jax.interpreters.partial_eval import dce_jaxpr

from onedraw.arrays import Array

ROWS = 5
"""Rows of a public probe: more than one, and rarely a size a model has of its own."""

PUBLIC_SEED = 20_230_705
"""Of the probes: fixed, so that a model is accepted everywhere or nowhere."""


@dataclass(frozen=True)
class Facts:
    """What the checks found out: the program, how many numbers its predictor has, and its constants."""

    program: Program
    outputs: int
    constants: dict[str, float]
    known_variance: float | None


def examine(fn: Any, called: str, features: Features) -> Facts:
    """All checks; an `InvalidModel` that says what was expected, what was found and what to do, or the facts."""
    _check_signature(fn, called)
    rows = Design(features).rows(np.random.default_rng(PUBLIC_SEED), ROWS)

    def run(n: int) -> tuple[Choice, ...]:
        call = partial(choices, fn, rows[:n], np.zeros(n))
        return tuple(_attempt(call, called, f"on {n} row(s) of {features.width} features"))

    found = run(ROWS)
    for choice in found:
        _check_choice(choice, called)
    observed = _observed(found, called)
    latents = _latents(found, run(1), called)
    family = family_of(called, observed.name, observed.distribution)
    # a public row at which a model should have a value: the middle of the declared box, otherwise 0
    middle = np.zeros(features.width) if features.box is None else 0.5 * np.array(features.encoded_ends).sum(axis=0)
    program = Program(fn, latents, observed.name, family, tuple(middle.tolist()))
    for what in ("parts", "log_prior", "constrain"):
        _attempt(partial(examined, program, what), called, "on one row")
    _attempt(lambda: _check_data_flow(program, called, rows), called, "on public rows")
    probe = Probe.of(program, called, rows)
    _check_prior(program, called, probe, rows)
    _check_rows(program, called, probe)
    constants, variance = _constants(program, called, probe, rows)
    shape = probe.together["predictor"].shape
    return Facts(program, 1 if len(shape) == 2 else shape[-1], constants, variance)


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_signature(fn: Any, called: str) -> None:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return  # a callable without a signature: the run will tell
    takes = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    free = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    others = [p for p in parameters if p not in takes[:2] and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if (len(takes) < 2 and not free) or any(p.default is p.empty for p in others):
        raise InvalidModel(
            f"{called} must be callable as model(X, y), rows and responses; further arguments need defaults. Its signature is "
            f"{called}{inspect.signature(fn)}. Public constants can be bound with functools.partial."
        )


def _attempt(call: Callable[[], Any], called: str, what: str) -> Any:
    """The result of running the user's function on public numbers, or why it did not run."""
    try:
        return call()
    except jax.errors.JAXTypeError as error:
        raise InvalidModel(
            f"{called} uses the values of X or y outside of JAX ({type(error).__name__}): an if, float() or NumPy function "
            "on them. What a model does may not depend on records in that way. Write it with jax.numpy."
        ) from error
    except InvalidModel:
        raise
    except Exception as error:  # whatever a user's function raises, the model is what is wrong
        raise InvalidModel(
            f"{called} could not be run {what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} "
            "It is called as model(X, y) on rows of any number, also one; sizes of plates over records must come from "
            "X.shape[0]. Nothing was spent."
        ) from error


def _check_choice(choice: Choice, called: str) -> None:
    name = choice.name
    if choice.kind not in ("latent", "observed", "plate", "deterministic"):
        raise InvalidModel(f"{called}: {_REFUSED.get(choice.kind, _UNKNOWN).format(name=name, kind=choice.kind)}")
    if choice.weighted:
        raise InvalidModel(
            f"{called}: the site {name!r} is scaled or masked. The weight of the records is what the budget calibrates, "
            "and every record counts once. Leave out handlers.scale, handlers.mask and obs_mask."
        )
    if choice.kind != "latent":
        return
    if choice.proper and (choice.discrete or choice.free_shape is None):
        why = "is discrete" if choice.discrete else "lives on a set without coordinates in R^d"
        raise InvalidModel(
            f"{called}: the latent site {name!r} ({choice.distribution}) {why}, and the samplers move on R^d. Sum it out, "
            "or give it a continuous distribution."
        )
    if not choice.proper:
        raise InvalidModel(
            f"{called}: the latent site {name!r} ({choice.distribution}) has no proper density. A bounded loss cannot make "
            "up for it: the posterior would not exist. Use a proper prior, or numpyro.deterministic for a fixed value."
        )


_REFUSED = {
    "factor": "numpyro.factor({name!r}) adds a term that is neither prior nor a density with a known bound, so no "
    "sensitivity exists. Write it as the prior of a latent site, or leave it out.",
    "param": "numpyro.param({name!r}) is a parameter without a prior, which would have to be estimated from the records "
    "outside the promise. Give it a prior with numpyro.sample.",
    "subsampled plate": "the plate {name!r} takes a subsample. Which records count would be left to chance, and the "
    "promise is about all of them. Leave out subsample_size.",
    "control_flow": "scan and cond of numpyro.contrib hide their sites from the adapter. Write the loop in Python, or with "
    "jax.lax outside of any sample statement.",
    "prng_key": "numpyro.prng_key makes the model's outcome random beyond its sites. Use numpyro.sample.",
    "mutable": "numpyro.mutable({name!r}) keeps a state between runs; a model must be a pure function.",
}
_UNKNOWN = "the statement {name!r} is of NumPyro's kind {kind!r}, which the adapter does not know. Leave it out."


def _observed(found: Iterable[Choice], called: str) -> Choice:
    observed = [choice for choice in found if choice.kind == "observed"]
    if len(observed) != 1:
        got = "none" if not observed else f"{len(observed)}: {', '.join(choice.name for choice in observed)}"
        why = "Without one no loss exists; write numpyro.sample(name, distribution, obs=y)."
        if observed:
            why = "Their losses add up to a larger sensitivity than one has. Fit them as models of their own."
        raise InvalidModel(f"{called} must have exactly one observed site, got {got}. {why}")
    (site,) = observed
    if site.event_shape or site.batch_shape not in ((), (ROWS,)) or site.shape != (ROWS,):
        raise InvalidModel(
            f"{called}: the observed site {site.name!r} must have one response per record, batch shape (n,) and no event; on "
            f"{ROWS} rows it has batch shape {site.batch_shape}, event shape {site.event_shape}, a value of shape {site.shape}. "
            "Look for a column vector (n, 1) that should be (n,), for .to_event, or for a plate whose size is not X.shape[0]."
        )
    if not site.own:
        raise InvalidModel(f"{called}: {site.distribution} is not one of NumPyro's own distributions.")
    return site


def _latents(found: Iterable[Choice], on_one_row: Iterable[Choice], called: str) -> tuple[Site, ...]:
    several, one = ({c.name: c for c in run if c.kind == "latent"} for run in (found, on_one_row))
    growing = [name for name in several.keys() | one.keys() if name not in several or name not in one or several[name].shape != one[name].shape]  # fmt: skip
    if growing:
        raise InvalidModel(
            f"{called}: the latent site(s) {', '.join(sorted(growing))} have another size on {ROWS} rows than on one: a draw would "
            "publish single records. Let latents belong to groups or features, of a number fixed in advance."
        )
    if not several:
        raise InvalidModel(f"{called} has no latent site, so there is nothing to draw. Give its parameters priors.")
    return tuple(Site(c.name, c.shape, c.free_shape or ()) for c in several.values())


# ── data flow ────────────────────────────────────────────────────────────────────────────────────────────────


def _check_data_flow(program: Program, called: str, rows: Array) -> None:
    def everything(theta: Any, X: Any, y: Any) -> dict[str, Any]:
        found = program.run(theta, X, y)
        values = [found[site.name]["value"] for site in program.sites]
        return {"prior": [program.log_prior(theta, X, y), values], "parts": program.parts(theta, X, y)}

    uses = _flow(everything, program, rows)
    _, on_rows, on_responses = uses("prior")
    if on_rows or on_responses:
        found = " and ".join(name for name, used in (("X", on_rows), ("y", on_responses)) if used)
        raise InvalidModel(
            f"{called}: the prior of a latent site depends on {found}. A prior computed from the records is outside the promise, "
            "which holds for one fixed in advance. Write public numbers in its place."
        )
    if uses("parts")[2]:
        raise InvalidModel(
            f"{called}: the distribution of the observed site depends on y. The prediction of a response may not know it, "
            "or the density's bound says nothing. Use y as obs=y only."
        )


def _flow(fn: Callable[..., Any], program: Program, rows: Array) -> Callable[[str], list[bool]]:
    """Which of (θ, X, y) a named part of a function's result can depend on, by the operations that lead to it."""
    given = jnp.zeros(program.dimension), rows, np.zeros(len(rows))
    closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*given)
    parts = [str(getattr(path[0], "key", path[0])) for path, _ in jax.tree_util.tree_flatten_with_path(shapes)[0]]
    return lambda part: list(dce_jaxpr(closed.jaxpr, [name == part for name in parts])[1])


def _constants(program: Program, called: str, probe: Probe, rows: Array) -> tuple[dict[str, float], float | None]:
    """The constants of the family, and the variance if it is one: what depends on nothing, the same for every record."""
    fixed: dict[str, float] = {}
    uses = _flow(program.parts, program, rows)
    for name in (*program.family.constants, "variance"):
        values = probe.together.get(name)
        if values is not None and not any(uses(name)) and not np.ptp(values):
            fixed[name] = float(values.flat[0])
        elif name != "variance":
            raise InvalidModel(
                f"{called}: the {name} of the observed {program.family.name} site must be a constant, but it depends on latent sites "
                "or records. The density's bound and integral are worked out for a fixed one. Write a number."
            )
    variance = fixed.pop("variance", None)
    return fixed, variance


# ── values at public points ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Probe:
    """The model's values at prior draws of a public seed and public rows; the first axis are the draws."""

    thetas: Array
    responses: Array
    observed: Array
    prior: Array
    prior_of_several: Array
    together: dict[str, Array]
    alone: dict[str, Array]
    middle: list[Array]
    """Predictor and variance at the public row, and their derivatives."""

    @classmethod
    def of(cls, program: Program, called: str, rows: Array) -> Probe:
        thetas = _attempt(partial(prior_draws, program, PUBLIC_SEED, 3), called, "on a public row")
        if not np.isfinite(thetas).all():
            raise InvalidModel(f"{called}: a draw from its prior is not finite. Look for a scale of 0, or for NaN.")

        def at(theta: Any, X: Any, y: Any) -> dict[str, Any]:
            def middle(theta: Any) -> list[Any]:
                parts = program.parts(theta, jnp.asarray([program.row]))
                return [parts[name] for name in ("predictor", "variance") if name in parts]

            return {
                "observed": program.run(theta, X, y)[program.observed]["value"],
                "prior": program.log_prior(theta),
                "prior_of_several": program.log_prior(theta, X, jnp.zeros_like(y)),
                "together": program.parts(theta, X),
                "alone": jax.vmap(examined(program, "parts"), in_axes=(None, 0))(theta, X),
                "middle": [middle(theta), jax.jacobian(middle)(theta)],
            }

        y = _probe_responses(program, len(rows))
        compiled = jax.jit(jax.vmap(at, in_axes=(0, None, None)))
        found = _attempt(lambda: jax.tree.map(np.asarray, compiled(thetas, rows, y)), called, "on public rows")
        return cls(thetas, y, **{**found, "middle": jax.tree.leaves(found["middle"])})


def _probe_responses(program: Program, n: int) -> Array:
    """Responses that occur: numbers of either sign, durations, or 0 and 1."""
    generator = np.random.default_rng(PUBLIC_SEED)
    match program.family.name:
        case "Normal" | "StudentT":
            return generator.standard_normal(n)
        case "Gamma":
            return generator.exponential(size=n)
    return np.asarray(generator.permutation(n) % 2, dtype=np.float64)


def _check_prior(program: Program, called: str, probe: Probe, rows: Array) -> None:
    if not np.isfinite(probe.prior).all():
        raise InvalidModel(f"{called}: its prior has no finite density at a draw from it. Look for NaN or a bad scale.")
    if not np.allclose(probe.prior_of_several, probe.prior, rtol=1e-9, atol=1e-12):
        raise InvalidModel(
            f"{called}: its prior depends on how many rows there are. n is public, but the prior must be written out: "
            "put the number itself in the place of X.shape[0]."
        )
    try:
        without = float(jax.jit(program.log_prior_without_responses)(probe.thetas[0], rows))
    except Exception:  # a model that needs y has one prior only
        return
    if not np.isclose(without, probe.prior[0], rtol=1e-9, atol=1e-12):
        raise InvalidModel(
            f"{called}: its prior depends on whether y is given. Priors must be the same with and without responses; use "
            "y as obs=y only."
        )


def _check_rows(program: Program, called: str, probe: Probe) -> None:
    # What is observed must be y itself: responses are read by the likelihood's own rules.
    if not np.allclose(probe.observed, probe.responses, rtol=1e-9, atol=1e-12):
        raise InvalidModel(
            f"{called}: what is observed at {program.observed!r} is not y but something computed from it. Pass the "
            "transformed response as y, and write obs=y."
        )
    for name, expected in probe.together.items():
        if not np.allclose(probe.alone[name], expected, rtol=1e-7, atol=1e-9, equal_nan=True):
            raise InvalidModel(
                f"{called}: the {name} of a record changes with the other rows of X, so one record would move everybody's loss and "
                "no sensitivity exists. Standardise with public numbers instead of X.mean(0), and leave out whatever mixes rows."
            )
    if not all(np.isfinite(value).all() for value in probe.middle):
        raise InvalidModel(
            f"{called}: its predictor or the derivative of it is not finite at the public row {list(program.row)}, which "
            "stands in for rows where it has no value. Declare bounds=(lo, hi) in whose middle it is finite."
        )
