"""Which sampler, if the caller names none: decided from public numbers, with a sentence that says why.

A closed form is drawn exactly, and a noisy-gradient plan is its own algorithm. On a ball where the loss is curved everywhere
a posterior is drawn exactly too, by rejection, while that takes no more passes over the records than the proximal sampler,
κ^{d/2} ≤ 4·iterations (`models.convex.draw_cost`). Otherwise there are two proven chains.
The last iterate of Langevin has a promise of its own and needs no convergence, but its law is only near the
posterior; the proximal sampler is within the plan's reserve γ of the posterior itself. The one with less work is
taken, the second if they are equal. No chain is proven for a β-divergence posterior: what the caller accepts by name
decides, an estimate rather than an assumption where the plan keeps back what an estimate costs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.models.conjugate.family import ConjugateModel
from onedraw.models.convex.draw_cost import PASSES, iterations_of, tries_worth
from onedraw.models.likelihood.likelihood_model import Linear, WithLikelihood
from onedraw.models.several import Several
from onedraw.models.tables.column_quantiles import ColumnQuantiles
from onedraw.models.tables.scores import ModelChoice
from onedraw.models.tables.table import Table
from onedraw.plans import Plan
from onedraw.samplers import randomness
from onedraw.samplers.chains import numbers_of_plan
from onedraw.samplers.coupling import LEAST_RESERVE
from onedraw.samplers.exact import Exact
from onedraw.samplers.hamiltonian import HMC, NUTS
from onedraw.samplers.langevin import LastIterateLangevin
from onedraw.samplers.perfect import Perfect, tries_of
from onedraw.samplers.proximal import Proximal, geometry_of
from onedraw.samplers.sampler import Sampler

STEP = 0.5
"""h·M: half the largest step at which a Langevin step forgets monotonically along every direction."""

LEFT_OF_START = 0.01
"""e^{−hmT}: what is left of the starting point along the flattest direction the prior allows."""

MOST_NUMBERS_READ = 2e11
"""Numbers read by a default Langevin chain, about a minute; it stops there, which costs accuracy and no privacy."""

NETWORK = (200, 300)
"""Steps and warm-up of NUTS where the predictor is not linear and the posterior far from normal."""

LANGEVIN_PASSES = 2.0
"""Over the records in one step."""


def default_sampler(plan: Plan, *, accept: Collection[str] | str = ()) -> tuple[Sampler, str]:
    """(sampler, why); ``accept`` are the kinds of exactness short of a proof that the caller takes by name."""
    check_fork(plan)
    accepted = (accept,) if isinstance(accept, str) else tuple(accept)
    own = own_sampler(plan)
    if own is not None:
        return own.chosen(plan, accepted)
    if plan.closed_form:
        return Exact(), "exact: the law has a closed form"
    if "beta" in plan.parameters:
        return _unproven(plan, accepted)
    if "smoothness" not in plan.parameters:
        raise ExactnessRefused(
            f"The loss of {type(plan.model).__name__} has a kink, and the proven chains need a smooth loss. Use "
            "HuberisedHinge(width=…) or Quantile(smoothing=…), with the same bounds and so the same weight."
        )
    perfect = _perfect(plan)
    if perfect is not None:
        return perfect
    langevin = _langevin(plan)
    try:
        proximal = _proximal(plan)
    except ExactnessRefused:  # γ is less than double precision carries
        if langevin is None:
            raise
        proximal = None
    if langevin is None and proximal is None:
        raise ExactnessRefused(
            f"No proven sampler keeps {plan.budget} for this plan: the last iterate of Langevin promises less, and the "
            "plan keeps no reserve for a sampler that is only nearly exact. Calibrate with a budget ApproxDP(epsilon, "
            "delta) and gamma above 0."
        )
    if proximal is None or (langevin is not None and langevin[0] < proximal[0]):
        assert langevin is not None
        return langevin[1:]
    return proximal[1:]


def _unproven(plan: Plan, accepted: tuple[str, ...]) -> tuple[Sampler, str]:
    """For a β-divergence posterior: what the caller accepts, or a refusal."""
    if "estimated" in accepted and ("assumed" not in accepted or plan.gamma / plan.draws > LEAST_RESERVE):
        chain = HMC.coupled(plan)
        return chain, f"HMC, {chain.steps:,} steps: couplings on data simulated from the public design ask for them"
    if "assumed" in accepted:
        linear = isinstance(plan.model, WithLikelihood) and isinstance(plan.model.predictor_function, Linear)
        sampler = NUTS() if linear else NUTS(*NETWORK)
        return sampler, "NUTS from a Laplace approximation: the caller accepts that its convergence is assumed"
    raise ExactnessRefused(
        "A β-divergence posterior is not log-concave, and no chain is proven to draw from it. Use "
        "Candidates(of=BetaDivergence()), which is exact and needs no chain, or take the risk of a chain by name: "
        'accept="estimated" for HMC whose convergence is estimated on simulated data, accept="assumed" for NUTS.'
    )


def own_sampler(plan: Plan) -> type[Sampler] | None:
    """Return the one sampler that carries out a plan which is an algorithm; None for a law that any sampler may draw from."""
    found: type[Sampler] | None = plan.mechanism.own_sampler()
    return found


def read_sampler(plan: Plan, stored: Mapping[str, Any]) -> Sampler:
    """Return the sampler that a certificate of this plan names; that of the plan's own method is loaded with it."""
    own_sampler(plan)
    return Sampler.from_dict(stored)


def check_sampler(plan: Plan, sampler: Sampler) -> None:
    """Refuse a sampler for a plan that is an algorithm of its own and needs none, and one that is not installed."""
    check_fork(plan)
    sampler.check_installed()
    own = own_sampler(plan)
    if own is not None and not isinstance(sampler, own):
        raise ExactnessRefused(
            f"{type(plan.mechanism).__name__} is an algorithm of its own and is carried out by {own.__name__} with the plan's "
            f"numbers; {type(sampler).__name__} would draw something its promise is not about. Leave out sampler=."
        )


def check_fork(plan: Plan) -> None:
    """Refuse a plan that needs JAX where JAX cannot run, before anything is charged: the draw would wait for ever.

    JAX computes in threads of its own, and no thread survives a fork. A child that is forked once JAX has begun to compute
    waits for threads that are not there; JAX warns of it, after which the charge would stand and nothing would come out.
    Closed forms of the conjugate models, and tables, need no JAX and are served in any child.

    | the child is … | a release that needs JAX |
    | --- | --- |
    | forked before JAX computed anything | works |
    | forked afterwards (also `multiprocessing` by fork) | `WrongCall`, nothing spent |
    | spawned, or a joblib (loky) worker | works |
    | forked in C without Python's hooks | *not detected* |
    """
    if randomness.jax_is_lost and not isinstance(
        plan.model, ConjugateModel | Table | ColumnQuantiles | ModelChoice | Several
    ):
        raise WrongCall(
            "This process was forked after JAX had begun to compute, and JAX's threads did not come along: the draw would "
            'wait for ever. Nothing was spent. Start workers by "spawn" or with joblib, or fork before the first fit or release.'
        )


def _perfect(plan: Plan) -> tuple[Perfect, str] | None:
    """(sampler, why), or None where it does not apply or takes too many tries."""
    numbers, sampler = plan.parameters, Perfect()
    if "curvature_ratio" not in numbers or numbers.get("radius") is None:
        return None
    try:
        tries = tries_of(plan)
        sampler.exactness(plan)
        geometry = geometry_of(numbers_of_plan(plan, sampler="Proximal"))
    except ExactnessRefused:  # far too many tries, or δ is less than double precision carries
        return None
    if tries > tries_worth(plan.gamma / plan.draws, geometry):
        return None
    return sampler, f"exact draw by rejection: at most {tries:,.3g} tries on average, for every data set"


def _langevin(plan: Plan) -> tuple[float, LastIterateLangevin, str] | None:
    """(numbers read, sampler, why), or None if its promise does not imply the budget."""
    numbers = plan.parameters
    step_size = STEP / numbers["smoothness"]
    full = math.log(1.0 / LEFT_OF_START) / (step_size * max(numbers["strong_convexity"], 1e-300))
    size = plan.n * len(plan.model.parameter_names) * plan.draws * LANGEVIN_PASSES
    steps = max(1, math.ceil(min(full, max(1000.0, MOST_NUMBERS_READ / size))))
    sampler = LastIterateLangevin(steps, step_size)
    try:
        promise = sampler.exactness(plan).promise
    except ExactnessRefused:  # δ is less than double precision carries
        return None
    if not promise.implies(plan.budget):
        return None
    left = math.exp(-step_size * numbers["strong_convexity"] * steps)
    why = (
        f"last-iterate Langevin, {steps:,} steps: its last iterate keeps the promise whether or not it has converged, "
        f"and at most {left:.2g} of the starting point is left along any direction"
    )
    return steps * size, sampler, why


def _proximal(plan: Plan) -> tuple[float, Proximal, str] | None:
    """(numbers read, sampler, why), or None if the plan keeps no reserve."""
    gamma = math.nextafter(plan.gamma / plan.draws, 0.0)
    if not gamma > 0.0:
        return None
    geometry = geometry_of(numbers_of_plan(plan, sampler="Proximal"))
    iterations = iterations_of(gamma, geometry)
    size = plan.n * len(plan.model.parameter_names) * plan.draws * PASSES
    how = "the same for any number of records" if geometry.preconditioned else "from the declared bounds"
    why = f"proximal sampler, {iterations:,} iterations ({how}): within total variation {gamma:.2g} for every data set"
    sampler = Proximal(gamma=gamma)
    sampler.exactness(plan)
    return iterations * size, sampler, why
