"""One exact draw from a Gibbs posterior on a ball, by rejection: the law a theorem is about, and nothing to converge.

Let 0 < c_low ≤ φ'' ≤ c_up for |u| ≤ B, and x̂ any point of the ball. With û_i = x̂ᵀx_i, u_i = θᵀx_i, Taylor's theorem gives for
every record

    e_i(θ) = φ(u_i) − φ(û_i) − φ'(û_i)(u_i − û_i) − ½c_low(u_i − û_i)² ≥ 0,

and U(θ) = U(x̂) + g·(θ − x̂) + ½‖θ − x̂‖²_A + w·Σe_i(θ) with g = ∇U(x̂), A = Λ + w·c_low·XᵀX: the prior is a quadratic itself.
So propose from N(x̂ − A⁻¹g, A⁻¹) cut to the ball (`ball`) and accept with probability exp(−w·Σe_i) ≤ 1. What is accepted
first has the law ∝ exp(−U) on the ball, for every x̂ and every data set: it is the inner draw of the proximal sampler at
η = ∞, without a chain around it. With κ = c_up/c_low a try is accepted with probability at least κ^{−d/2}·e^{−gap}, where
gap is by how much U may fall from x̂ to first order. There is no cap on tries: a cap would change the law. Proofs: perfect.md.

An acceptance above 1 would mean that the envelope is wrong, and so the law: it stops the program before anything is
released. In real arithmetic no record can bring that about; what rounding may do is bounded by `rounding_of`.
How many tries a draw took depends on the records and stays with the curator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.errors import ExactnessRefused
from onedraw.models.compute import jit, jnp
from onedraw.models.conjugate.distributions import BallGaussian
from onedraw.models.convex.draw_cost import GAP, least_acceptance, most_tries
from onedraw.models.convex.gibbs_target import GibbsTarget
from onedraw.models.convex.linear_model import LinearModel
from onedraw.plans import Plan
from onedraw.privacy.numbers import up
from onedraw.samplers.ball import Hitting, hitting, into_ball, most_made
from onedraw.samplers.chains import numbers_of_plan, numbers_of_target
from onedraw.samplers.padding import AT_BALL, PASSES, TRIES_GAMMA, Padding, no_padding, tries_for
from onedraw.samplers.preconditioner import MOST_DESCENT, curvature_preconditioner, minimum, padded_descent
from onedraw.samplers.sampler import Sample, Sampler
from onedraw.samplers.variates import TRIES as TIMES
from onedraw.samplers.variates import check_delta

NUMERIC_MODEL = "float64"

MOST_TRIES = 1e6
"""On average, of one draw, however it was asked for: more would look like a program that hangs."""

AT_ONCE, FEWEST, MOST = 2**20, 4, 256
"""Losses computed together, tries times records, as one matrix product; and how few or many tries that may be for one draw."""

BEFORE_TRIES = 5
"""Passes besides those of the descent: the metric, the first gradient, and the envelope's predictors, precision and gradient."""

SECONDS_A_LOSS = 1e-8

ROUNDING = 2.0**-30
"""Of a record's largest term, besides what adding up loses: far above some dozens of operations in double precision, far below
what a wrong envelope shows."""


class WrongEnvelope(AssertionError):
    """An acceptance above 1: a mistake in a loss or in its curvature bounds, never something a record can do."""


@dataclass(frozen=True)
class Perfect(Sampler):
    """Draws from the posterior itself, on a ball where the loss is curved everywhere; there is nothing to tune."""

    randomness: ClassVar[str] = "numpy"
    compiling: ClassVar[float] = 2.0

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """Exact wherever the plan's public numbers bound the tries."""
        tries = tries_of(plan)
        # of one draw: a chance for every try, and what a Gaussian on a ball takes
        each = math.ceil(TIMES * tries) * (1 + TIMES * (len(plan.model.parameter_names) + 2) ** 2)
        check_delta(plan, plan.guarantee.promise, plan.draws * each, randomness=self.randomness)
        return privacy.Exact(numeric=NUMERIC_MODEL)

    def passes(self, plan: Plan) -> int:
        """One a try, on average at most."""
        return math.ceil(plan.draws * tries_of(plan) * math.exp(GAP))

    def seconds(self, plan: Plan) -> float:
        return float(self.passes(plan) * (1e-5 + plan.n * SECONDS_A_LOSS))

    def seconds_each(self, plan: Plan) -> float:
        return self.seconds(plan) / plan.draws

    def padding(self, plan: Plan) -> Padding:
        """A start after as many steps as theory asks for, and tries that suffice for all draws on every data set (perfect.md)."""
        tries_of(plan)  # or a refusal
        ratio, gap, batch = plan.parameters["curvature_ratio"], gap_left(plan), batch_of(plan.n, plan.draws)
        if not gap <= GAP:
            raise no_padding("Perfect", f"after its steps the start may be off by {gap:.3g}, more than {GAP}")
        least = least_acceptance(ratio, len(plan.model.parameter_names), gap=GAP)
        batches = math.ceil(tries_for(plan.draws, least, TRIES_GAMMA) / batch)
        at_ball = most_made(batches, batch, TRIES_GAMMA, dimension=len(plan.model.parameter_names))
        passes = padded_descent("Perfect", 1.0 / ratio, 1.0) + BEFORE_TRIES + batches * batch
        return Padding({PASSES: passes, "tries": batches * batch, AT_BALL: at_ball}, 2.0 * TRIES_GAMMA)

    def run(self, target: GibbsTarget, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` independent draws: the first so many accepted ones among the tries."""
        return self._run(target, randomness, size, None)

    def run_padded(self, target: GibbsTarget, randomness: Generator, padding: Padding, *, size: int = 1) -> Sample:
        """The same draws; tries go on after them until there are as many as ``padding`` says, then those at the ball."""
        return self._run(target, randomness, size, padding)

    def _run(self, target: GibbsTarget, generator: Generator, size: int, padding: Padding | None) -> Sample:
        envelope, noticed = touching(target, padded=padding is not None)
        least = padding.work["tries"] if padding else 0
        found: list[Array] = []
        tries = made = at_ball = 0
        for points, accepted, hits in envelope.tries(generator, size):
            wanted = np.flatnonzero(accepted)[: size - len(found)]
            if len(found) < size:
                found += list(points[wanted])
                tries = made + (int(wanted[-1]) + 1 if len(found) == size else len(points))
            made, at_ball = made + len(points), at_ball + hits
            if len(found) == size and made >= least:
                break
        if padding is not None:
            at_ball += envelope.hitting.idle(generator, padding.work[AT_BALL] - at_ball)
            passes = noticed["descent_steps"] + BEFORE_TRIES + made
            noticed["work"] = {PASSES: passes, "tries": made, AT_BALL: at_ball}
        return Sample(np.array(found), noticed | {"tries": tries})


def tries_of(plan: Plan) -> float:
    """κ^{d/2}, or a refusal that names what is missing or too large."""
    numbers = numbers_of_plan(plan, sampler="Perfect")
    ratio, model = numbers.curvature_ratio, type(plan.model).__name__
    if numbers.radius is None or ratio is None:
        what = "no ball" if numbers.radius is None else "no least curvature above 0 on its ball"
        raise ExactnessRefused(
            f"Perfect() rejects from a Gaussian that lies above the posterior, and {model} has {what}: nothing bounds the "
            "tries. Restrict the prior to a ball and use a loss that is curved everywhere on it, such as Logistic's, or leave "
            "the sampler out."
        )
    tries = most_tries(ratio, numbers.dimension)
    if not tries <= MOST_TRIES:
        raise ExactnessRefused(
            f"Perfect() would take up to {tries:.3g} tries for one draw (κ^(d/2), κ = {ratio:.4g}, d = {numbers.dimension}), "
            f"and {MOST_TRIES:,.0f} are the most it is run for. Use a smaller ball, fewer columns, or another sampler."
        )
    return tries


def gap_left(plan: Plan) -> float:
    """What the start's gap is at most after all steps of descent: ½ρ^k·D² + ρ^{k/2}·D² (perfect.md), ρ^k = e^{−70}."""
    numbers = plan.parameters
    squared_diameter = 4.0 * numbers["radius"] ** 2 * numbers["smoothness"]
    return up(1.5 * math.exp(-MOST_DESCENT / 2.0) * squared_diameter)


# ── the envelope ─────────────────────────────────────────────────────────────────────────────────────────────────


class Touched(NamedTuple):
    """What a try's excess is made of, as JAX arrays: the records by column, their responses; û, φ(û) and φ'(û) of each; B and
    c_low."""

    columns: Any
    responses: Any
    predictors: Any
    values: Any
    slopes: Any
    bound: Any
    least_curvature: Any


@jit(0)
def total_excess(kernel: Any, points: Any, touched: Touched) -> Any:
    """Σe_i for each of the points (b, d). Predictors are cut at ±B, where rounding alone can take them."""
    predictors = jnp.clip(points @ touched.columns, -touched.bound, touched.bound)
    away = predictors - touched.predictors
    below = touched.values + away * (touched.slopes + 0.5 * touched.least_curvature * away)
    return (kernel.value(predictors, touched.responses) - below).sum(axis=1)


@dataclass(frozen=True, eq=False)
class Envelope:
    """A quadratic below U that touches it at x̂, and what is left between them. As private as the records."""

    target: GibbsTarget
    law: BallGaussian
    """∝ exp(−quadratic) on the ball."""
    touched: Touched
    hitting: Hitting
    """The same law, ready to be drawn from."""
    rounding: float
    """By how much the computed `excess` may be below its true value."""

    def tries(self, generator: Generator, size: int) -> Iterator[tuple[Array, NDArray[np.bool_], int]]:
        """Tries in batches of a public size: points, which of them are accepted, and how many tries hit the ball so often."""
        batch = batch_of(self.target.encoded.n, size)
        while True:
            points, hits = self.hitting.draws(generator, size=batch)
            excess = self.excess(points)
            if not (excess >= -self.rounding).all():
                raise WrongEnvelope(
                    "A try would be accepted with a probability above 1, so the curvature bounds of this loss are wrong and so "
                    "would be the law. Nothing was released; report this as a mistake in onedraw."
                )
            yield points, generator.standard_exponential(batch) >= excess, hits

    def excess(self, points: Array) -> Array:
        """E = w·Σe_i for each of the points (b, d)."""
        return self.target.weight * np.asarray(total_excess(self.target.kernel, points, self.touched))


def touching(target: GibbsTarget, *, padded: bool = False) -> tuple[Envelope, dict[str, Any]]:
    """The envelope at (nearly) the minimum of U on the ball, and how that was found, for the curator."""
    model, rows, responses, radius = target.model, target.encoded.X, target.encoded.y, target.radius
    assert isinstance(model, LinearModel)  # another one states no ratio of curvatures
    assert radius is not None
    (least, _), bound, kernel = model.curvature_range, model.predictor_bound, model.kernel
    preconditioner, ratio = curvature_preconditioner(target), numbers_of_target(target).curvature_ratio
    assert ratio is not None
    u, noticed = minimum(
        preconditioner, target, strong_convexity=1.0 / ratio, smoothness=1.0, tolerance=GAP, padded=padded
    )
    centre = into_ball(np.asarray(preconditioner.theta(u))[None], radius)[0]
    predictors = np.clip(rows @ centre, -bound, bound)
    values, slopes = (np.asarray(of(predictors, responses)) for of in (kernel.value, kernel.slope))
    precision = np.diag(target.precision) + (target.weight * least) * (rows.T @ rows)
    gradient = target.weight * (slopes @ rows) + target.precision * (centre - target.location)
    law = BallGaussian(precision, precision @ centre - gradient, radius)
    arrays = np.ascontiguousarray(rows.T), responses, predictors, values, slopes, bound, least
    touched = Touched(*map(jnp.asarray, arrays))
    return Envelope(target, law, touched, hitting(law), rounding_of(target)), noticed


def batch_of(n: int, size: int) -> int:
    """How many tries are made at once, from public numbers."""
    return max(FEWEST, min(max(MOST, size), AT_ONCE // n))


def rounding_of(target: GibbsTarget) -> float:
    """How far rounding may take the computed excess below 0, from public numbers (perfect.md, "Numerics")."""
    model = target.model
    assert isinstance(model, LinearModel)
    (_, largest), bound, kernel = model.curvature_range, model.predictor_bound, model.kernel
    (lower, upper), steepest = model.responses, max(map(abs, model.slope_interval))
    values = abs(float(kernel.value(0.0, lower))) + kernel.spread(bound, (lower, upper))
    term = values + (1.0 + bound) ** 2 * (steepest + largest)
    n = target.encoded.n
    return target.weight * n * term * (ROUNDING + n * 2.0**-52)
