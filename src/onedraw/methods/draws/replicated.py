"""Confidence intervals from replicated draws, for sampling and privacy noise together.

Construction and proof: proof.md. J draws with mean θ̄ and standard deviation S between them give, per coefficient or per linear
functional aᵀθ,

    θ̄ ± m · S · √((1 + w_tot·s)/J),     w_tot = J·w,   K ⪯ s·H:  s = 1 for logistic losses,

because S² estimates one draw's own variance, and the sample adds at most w·s of it. "Under the model": without it the
sample's share is not bounded. The multiplier m is at least Student's t with J − 1 degrees of freedom. It is calibrated
by simulating releases from the mechanism's law on a small family of public designs (the declared effect and one and a
half times it, features that fill half of their range), so that the worst of them covers: the Clopper–Pearson lower limit
of its coverage is at least the level. What that law leaves out, bent posteriors, is why there is a regime
(`informed`). Where the draws of a
noisy-gradient path show that it may still remember its start, the interval is refused, for the coefficients concerned or
for all (`remembers_start`); where it was only slower than planned it is widened by what may be left.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from onedraw.arrays import Array
from onedraw.errors import PromiseRefused, WrongCall
from onedraw.methods.base import Posterior
from onedraw.methods.draws.law import Moments, design_of, moments_of
from onedraw.methods.draws.path_start import SLOW, can_show, left_of_start, remembers_start
from onedraw.methods.intervals import Interval, Published
from onedraw.models import ConjugateModel
from onedraw.models.convex.losses import ExpLinearLoss, LogisticLoss
from onedraw.models.convex.number_losses import ResidualLoss
from onedraw.models.design import PREDICTOR_DEVIATION, Design, residual_information, smallest_curvature
from onedraw.models.likelihood import Bernoulli
from onedraw.models.row_model import RowModel
from onedraw.plans import Plan, digest_of

SIMULATIONS = 20_000
PUBLIC_SEED = 20_190_905
CONFIDENCE = 0.99
"""Of the Clopper–Pearson limit for the simulated coverage."""

LEAST_INFORMED = 25.0
"""n·w·λ·s₀² of one draw, at least."""

REGIME_LEVEL = 0.95
"""The regime does not depend on the level asked for; the multiplier does."""

LARGEST_STRETCH = 1.6
"""m over Student's t, at most: beyond, a bias is hidden rather than covered."""

FAMILY = ((1.0, 1.0), (1.5, 1.0), (1.0, 0.7))
"""(effect, width of the features), as multiples of what is declared."""


def interval(
    draws: ArrayLike, plan: Plan, level: float = 0.95, *, functional: ArrayLike | None = None,
    effect: float | None = None, noise: float | None = None, lattice: float = 0.0,
) -> Interval:  # fmt: skip
    """The interval that the plan's draws give: post-processing, it costs nothing.

    ``functional`` has one row a for each wanted aᵀθ; None: every coefficient. ``effect`` and ``noise`` as in
    `expected_error`; ``lattice`` is the step that draws were rounded to. Conjugate families have closed forms and need one
    draw only. `PromiseRefused` outside the regime, and where no coefficient has an interval; where only some have none,
    theirs is NaN.
    """
    _check_level(level)
    values = np.asarray(draws, dtype=np.float64).reshape(plan.draws, -1)
    if not isinstance(plan.model, RowModel):
        if not isinstance(plan.model, ConjugateModel):
            raise PromiseRefused(f"No interval is known for {type(plan.model).__name__}.")
        if plan.draws != 1:
            raise PromiseRefused(
                "The closed form is about one draw, which is as precise as several that share the budget. Calibrate with draws=1."
            )
        return _of_one_draw(values[0], plan, plan.model, level, noise, lattice)
    refusal = why_no_interval(plan, REGIME_LEVEL, effect=effect, noise=noise)
    if refusal is not None:
        raise PromiseRefused(f"These draws give no interval: {refusal}. The draws themselves stand.")
    rows = np.eye(values.shape[1]) if functional is None else np.atleast_2d(np.asarray(functional, dtype=np.float64))
    refused = remembers_start(values, plan, rows)
    if refused.all():
        raise PromiseRefused(f"These draws give no interval: {SLOW}. The draws themselves stand.")
    wanted = values @ rows.T
    centre, spread = wanted.mean(axis=0), wanted.std(axis=0, ddof=1)
    share = plan.parameters["weight"] * largest_ratio(plan, design_of(plan, effect=effect, noise=noise))
    sampling, privacy = spread * math.sqrt(share), spread / math.sqrt(plan.draws)
    start = np.sqrt(rows**2 @ left_of_start(values, plan) ** 2)
    half = _multipliers(plan, level, rows, effect, noise) * np.hypot(sampling, privacy) + start
    half, sampling, privacy, start = (np.where(refused, np.nan, part) for part in (half, sampling, privacy, start))
    return Interval(centre, centre - half, centre + half, sampling, privacy, start)


def interval_of_draws(
    plan: Plan, published: Published, level: float, *, effect: float | None = None, noise: float | None = None
) -> Interval:
    """Return the interval that draws give, or the posterior that follows from what was published in stages."""
    rows = published.change if isinstance(plan.model, RowModel) else None
    posterior = None if published.stages is None else plan.mechanism.posterior(plan, published.stages)
    found = (
        interval(published.draws, plan, level, functional=rows, effect=effect, noise=noise, lattice=published.lattice)
        if posterior is None
        else _of_posterior(posterior, level, rows)
    )
    return found.in_units(published.scale, published.shift)


def _of_posterior(posterior: Posterior, level: float, change: Array | None) -> Interval:
    """Return credible intervals, where the posterior knows of the noise."""
    if posterior.too_narrow:
        raise PromiseRefused(posterior.too_narrow)
    low, high = posterior.interval(level, change).T
    centre, errors = posterior.mean, posterior.errors
    if change is not None:
        centre, errors = change @ centre, tuple(np.sqrt(change**2 @ part**2) for part in errors)
    return Interval(centre, low, high, *errors)


def _of_one_draw(
    draw: Array, plan: Plan, model: ConjugateModel, level: float, noise: float | None, lattice: float
) -> Interval:
    """Return the closed form for all draws that are rounded to this one: with a weak prior a step may be wide."""
    numbers = plan.parameters
    weight, factor = numbers.get("r", numbers.get("weight", 1.0)), numbers.get("prior_factor", 1.0)
    below, found, above = (
        model.interval(
            np.clip(draw + side * lattice, *model.support),
            level,
            n=plan.n,
            weight=weight,
            prior_factor=factor,
            noise=noise,
        )
        for side in (-0.5, 0.0, 0.5)
    )
    return Interval(draw, below.low, above.high, found.sampling, found.privacy)


def interval_multiplier(
    plan: Plan, level: float = 0.95, *, functional: ArrayLike | None = None, effect: float | None = None,
    noise: float | None = None,
) -> float:  # fmt: skip
    """The largest m of the plan's coefficients (or functionals) at this level: at least Student's t."""
    size = len(plan.model.parameter_names)
    rows = np.eye(size) if functional is None else np.atleast_2d(np.asarray(functional, dtype=np.float64))
    return float(_multipliers(plan, _check_level(level), rows, effect, noise).max())


def expected_half_width(
    plan: Plan, level: float = 0.95, *, effect: float | None = None, noise: float | None = None
) -> float:
    """What to expect of an interval's half-width, a root mean square over the coefficients; not a number if unknown."""
    design = design_of(plan, effect=effect, noise=noise)
    law = moments_of(plan, design)
    if law is None or plan.draws < 2:
        return math.nan
    share = plan.parameters["weight"] * largest_ratio(plan, design) + 1.0 / plan.draws
    spread = np.diagonal(law.drawing, axis1=1, axis2=2).mean()
    return interval_multiplier(plan, level, effect=effect, noise=noise) * math.sqrt(spread * share)


def student(level: float, draws: int) -> float:
    """The two-sided quantile of Student's t with J − 1 degrees of freedom."""
    return float(special.stdtrit(draws - 1, 0.5 + level / 2.0))


def largest_ratio(plan: Plan, design: Design) -> float:
    """s with K ⪯ s·H under the model: how much the sample adds to one draw's variance, per unit of weight."""
    model, numbers = plan.model, plan.parameters
    kernel = getattr(model, "kernel", None)
    if "beta" in numbers and isinstance(model.likelihood, Bernoulli):
        p = np.linspace(0.0, 1.0, 2001)[1:-1]
        power = numbers["beta"] - 1.0
        return float((p**power * (1.0 - p) + (1.0 - p) ** power * p).max())
    if isinstance(kernel, LogisticLoss | ExpLinearLoss):
        return 1.0
    if isinstance(kernel, ResidualLoss):
        information, variability = residual_information(kernel, design.noise)
        return variability / information
    found = moments_of(plan, design)
    if found is None:
        raise PromiseRefused("How much the sample adds to the noise of these draws is not known.")
    inverse = np.linalg.pinv(found.information, rcond=1e-8, hermitian=True)
    return float(np.abs(np.linalg.eigvals(inverse @ found.variability)).max())


def informed(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> float:
    """n·w·λ·s₀² of one draw, along the direction of which the records say least; not a number if λ is unknown."""
    design, model = design_of(plan, effect=effect, noise=noise), plan.model
    numbers, scale = plan.parameters, model.prior_scale
    if "scaled_curvature" in numbers:  # of candidates: λ·s₀² along the flattest direction
        scaled = numbers["scaled_curvature"]
    else:
        curvature = numbers.get("curvature") or smallest_curvature(model, design.effect, design.noise)
        scaled = math.nan if curvature is None else curvature * scale**2
    if not model.features.bounded:
        return math.nan
    usual = PREDICTOR_DEVIATION * (design.noise if design.numeric else 1.0) / model.features.reach
    return float(plan.n * numbers["weight"] * scaled * min(1.0, usual / scale) ** 2)


def why_no_interval(plan: Plan, level: float, *, effect: float | None = None, noise: float | None = None) -> str | None:
    """The reason why the plan's draws give no interval, from public numbers; None if they do.

    A fit decides coefficient by coefficient once it is made, from the information it published, if it measures that.
    """
    why: str | None = plan.mechanism.why_no_interval(plan)
    if why is not None or plan.mechanism.publishes_fit:
        return why
    if "weight" not in plan.parameters:  # no draw from a posterior
        return f"nothing is known about how far estimates by {plan.mechanism.title} are from the truth; a fit has standard errors"
    if plan.draws < 2:
        return "one draw does not show how noisy it is; ask for several (8, say)"
    known = informed(plan, effect=effect, noise=noise)
    if math.isnan(known):
        return "nothing is proven about how its draws spread"
    if known < LEAST_INFORMED:
        return (
            f"the records weigh only {known:.3g} times as much as the prior in each of {plan.draws} draws; an interval needs "
            f"{LEAST_INFORMED:g} times. Use more records, a larger ε or fewer draws"
        )
    if plan.mechanism.replicates and not can_show(plan, design_of(plan, effect=effect, noise=noise)):
        return f"{plan.draws} draws could not show that they have left their common starting point behind"
    multiplier = interval_multiplier(plan, level, effect=effect, noise=noise)
    stretch = multiplier / student(level, plan.draws)
    if not stretch <= LARGEST_STRETCH:
        return (
            f"the pull of the prior or of the starting point would make the interval of {plan.draws} draws {stretch:.2g} times as "
            f"wide as their noise does, more than {LARGEST_STRETCH:g}"
        )
    return None


def _check_level(level: Any) -> float:
    if not isinstance(level, float) or not 0.5 <= level < 1.0:
        raise WrongCall(f"level must be a number from 0.5 to below 1, such as 0.95, but {level!r} was given.")
    return level


def _multipliers(plan: Plan, level: float, rows: Array, effect: float | None, noise: float | None) -> Array:
    """One for each row, from memory, from the cache on disk, or calibrated now."""
    key = digest_of({
        "plan": plan.digest, "level": level, "rows": rows.tolist(), "effect": effect, "noise": noise,
        "family": [list(member) for member in FAMILY], "simulations": SIMULATIONS, "version": 2,
    })  # fmt: skip
    if key not in _KNOWN:
        folder = os.environ.get("ONEDRAW_CACHE")
        path = None if folder is None else Path(folder) / "intervals" / f"{key}.json"
        stored = _stored(path, len(rows))
        if stored is None:
            stored = _calibrated(plan, level, rows, effect, noise)
            if path is not None:
                with suppress(OSError):  # a cache that cannot be written is no reason to fail
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(stored.tolist()), encoding="utf-8")
        _KNOWN[key] = stored
    return _KNOWN[key]


_KNOWN: dict[str, Array] = {}


def _calibrated(plan: Plan, level: float, rows: Array, effect: float | None, noise: float | None) -> Array:
    """The worst over the family, for each functional."""
    # A declared bound on the responses is taken at its word: the interval is about responses as they are clamped.
    declared = replace(design_of(plan, effect=effect, noise=noise), limit=math.inf)
    share = plan.parameters["weight"] * largest_ratio(plan, declared)
    found = np.full(len(rows), student(level, plan.draws))
    for stronger, narrower in FAMILY:
        design = replace(declared, effect=stronger * declared.effect, narrowness=narrower)
        law = moments_of(plan, design)
        if law is None:
            raise PromiseRefused("How the draws of this plan spread is not known, so no interval can be calibrated.")
        found = np.maximum(
            found, [_covering(law, row, plan.draws, share, level) for row in rows[:, : law.mean.shape[1]]]
        )
    return found


def _covering(law: Moments, row: Array, draws: int, share: float, level: float) -> float:
    """The least m that covers aᵀθ in simulated releases, over the family's truths together."""
    standard, spreads = _simulated(draws)
    ratios = []
    for bias, sampling, drawing in zip(law.bias @ row, law.sampling, law.drawing, strict=True):
        of_draw = row @ drawing @ row
        if not of_draw > 0.0:  # a column that is always 0
            continue
        total = math.sqrt(row @ sampling @ row + of_draw / draws)
        half = np.sqrt(of_draw * (share + 1.0 / draws)) * spreads
        ratios.append(np.abs(bias + total * standard) / half)
    if not ratios:
        return 0.0
    ordered = np.sort(np.concatenate(ratios))
    return float(ordered[_rank(len(ordered), level) - 1])


@lru_cache(maxsize=8)
def _simulated(draws: int) -> tuple[Array, Array]:
    """Centres and standard deviations of J normal draws; independent of each other."""
    generator = np.random.default_rng(PUBLIC_SEED)
    standard = generator.standard_normal(SIMULATIONS)
    return standard, np.sqrt(generator.chisquare(draws - 1, SIMULATIONS) / (draws - 1))


@lru_cache(maxsize=32)
def _rank(count: int, level: float) -> int:
    """The least number of covered simulations whose Clopper–Pearson lower limit is at least the level."""

    def enough(covered: int) -> bool:
        return bool(special.betaincinv(covered, count - covered + 1, 1.0 - CONFIDENCE) >= level)

    least = math.ceil(level * count)
    return least + bisect_left(range(least, count), True, key=enough)


def _stored(path: Path | None, size: int) -> Array | None:
    """From the cache on disk, which holds public numbers only; anything odd there is calibrated again."""
    try:
        values = np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.float64) if path else None
    except (OSError, ValueError, TypeError):
        return None
    return values if values is not None and values.shape == (size,) and np.all(values > 0.0) else None
