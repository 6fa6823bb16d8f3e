"""How good will a release be? Predicted from public numbers, before any record is read.

| release | its error follows from |
| --- | --- |
| draws of a regression | the moments of a draw under the public reference design (`release.intervals.moments`) |
| a fit | the stages' noise, in several designs, because it depends on the columns |
| draws of a conjugate family | a simulation: a truth from the prior, n records at it, clamped as the real ones will be, one private draw |
| plain noise, quantiles by rank | the noise, or the rank's error, and the sampling error |

`simulated_error` checks the first two by running the mechanism itself on data simulated from the design. Of a conjugate family only
the sums of the records are simulated, so n costs nothing; the plain estimate from them says how much of the error is the price of
the promise.

**A fit, and draws in measured coordinates** (planning.md). A stage one shortens rows to R, so that it sees columns of variance λ as if
theirs were λ·min(1, R²/E‖row‖²), and stretches a direction by w = g/√(what it saw), at most g/√floor (`models.fit.published`). Rows are then
about √Σλw² long, and where that is beyond r they count less. A record adds H·λw² to the information and K·λw² to the variability, and noise
σ, ω and ridge Λ are the plan's (mathematics-3 §3). Responses that are numbers are read in units of the residual it sees, which its
noise may make much smaller or larger. A design is one of equally correlated columns (`designs` has those a plan speaks of): one common direction and the
rest, all alike. The wider columns spread, the less they go together and the weaker their effects, the better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special

from onedraw import samplers  # whose parts load when they are needed: a question about one column needs no JAX
from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.mechanisms import (
    AddedNoise,
    BarkerPath,
    CenteredNoise,
    ExponentialQuantiles,
    FitMechanism,
    Measured,
    PerturbedMode,
    Plan,
    PrivateChain,
)
from onedraw.models import ConjugateModel, Summary
from onedraw.models.design import Design
from onedraw.models.features import Features
from onedraw.models.fit.losses import ClassLoss, FitLoss
from onedraw.models.row_model import RowModel
from onedraw.models.sums.exact_sums import deviation, matrix_deviation
from onedraw.release.intervals.moments import design_of, estimands, moments_of

SIMULATIONS = 400
PUBLIC_SEED = 20170704  # a simulation of public numbers: the seed protects nothing and makes plans reproducible

REFERENCE = {"filled": 1.0, "correlation": 0.0}
"""The reference design: columns fill their declared ranges and do not go together."""


KEPT = 0.9
"""The average Mallows weight of rows that are typically as long as r."""

NODES, MASSES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0)), (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0)
"""A normal law by its first five moments."""

PRECISE = 0.05
"""Relative deviation of a residual variance below which it is taken for known."""


@dataclass(frozen=True)
class Expectation:
    """Root mean squared errors per parameter: of the private draw (or the mean of several), and without privacy.

    Averaged over the prior, for regressions over the reference design. ``bias`` is the part of ``private`` that no
    repetition would average out: the prior's pull, and the start of a path. Not a number where nothing is known.
    """

    private: float
    sampling: float
    bias: float = math.nan

    def times(self, unit: float) -> Expectation:
        """The same errors in another unit."""
        return Expectation(self.private * unit, self.sampling * unit, self.bias * unit)


UNKNOWN = Expectation(math.nan, math.nan)


def expected_error(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
    """What to expect of the mean of the plan's draws.

    ``effect`` and ``noise`` are the standard deviations of a regression's linear predictor and of a response about it;
    None: those the mechanism declares, or the usual ones.
    """
    if isinstance(plan.mechanism, ExponentialQuantiles):
        # of the ranks, as shares of the records: selection and sampling
        selecting, levels = np.array(plan.mechanism.rank_errors(plan)), np.array(plan.model.levels)
        squares = levels * (1.0 - levels) / plan.n
        return Expectation(float(np.sqrt(np.mean(selecting**2 + squares))), float(np.sqrt(np.mean(squares))), 0.0)
    if isinstance(plan.mechanism, AddedNoise | CenteredNoise):
        noise, sampling = plan.mechanism.expected_noise(plan), plan.model.sampling_error(plan.n)
        return Expectation(math.hypot(noise, sampling), sampling, 0.0)
    if not isinstance(plan.model, RowModel):
        return _by_prior_predictive(plan, SIMULATIONS, np.random.default_rng(PUBLIC_SEED))
    design = design_of(plan, effect=effect, noise=noise)
    if isinstance(plan.mechanism, FitMechanism):
        return fit_error(plan, **REFERENCE, effect=design.effect, noise=design.noise)
    if isinstance(plan.mechanism, PrivateChain) and not _followed(plan):
        return UNKNOWN
    if isinstance(plan.mechanism, Measured):
        return _in_measured_coordinates(plan, design)
    if plan.mechanism.no_interval:  # nothing is known of how its estimates spread
        return UNKNOWN
    found = moments_of(plan, design)
    return UNKNOWN if found is None else Expectation(*found.errors(plan.draws))


def _followed(plan: Plan) -> bool:
    """Whether the last state of a private chain follows a diffusion whose loss the design knows: one linear predictor, no kink."""
    mechanism = plan.mechanism
    known = isinstance(mechanism, BarkerPath) and mechanism.beta is None and mechanism.publish == "last"
    return known and "smoothness" in plan.model.bounds and plan.model.row_blocks == 1


def why_selected(plan: Plan) -> str:
    """What to expect, in a sentence, from public numbers."""
    levels, selecting = plan.model.levels, plan.mechanism.rank_errors(plan)
    level, error = max(zip(levels, selecting, strict=True), key=lambda pair: pair[1])
    sampling = (level * (1.0 - level) / plan.n) ** 0.5
    return (
        f"selection by rank. Expected error of the rank of the {level:g}-quantile: {100 * error:.2g} % of the records from the "
        f"selection, {100 * sampling:.2g} % from sampling. Decided from public numbers, before any record was read."
    )


# ── a fit ────────────────────────────────────────────────────────────────────────────────────────────────────


def fit_error(plan: Plan, *, filled: float, correlation: float, effect: float, noise: float) -> Expectation:
    """Return the error to expect per coefficient of a fit, the intercept included, for columns scaled to [-1, 1]."""
    design = {"filled": filled, "correlation": correlation, "effect": effect, "noise": noise}
    if not isinstance(plan.mechanism, PerturbedMode):
        return Expectation(*plan.mechanism.expected_errors(plan, **design))
    return _mode_error(plan, **design)


def fit_column_error(
    plan: Plan, *, named: bool = False, share: float | None = None, **design: float
) -> tuple[float, float, float]:
    """Return what to expect of a column's coefficient: (error, error without privacy, how many times ε an interval needs).

    ``named`` says whether it is an effect of interest, and ``share`` how many of the records have its level.
    """
    if not isinstance(plan.mechanism, PerturbedMode):
        found: tuple[float, float, float] = plan.mechanism.expected_column_error(
            plan, named=named, share=share, **design
        )
        return found
    expected = _mode_error(plan, True, **design)
    more = math.inf if plan.mechanism.why_no_interval(plan) else math.nan
    return expected.private, expected.sampling, more


def _mode_error(
    plan: Plan, slopes: bool = False, /, *, filled: float, correlation: float, effect: float, noise: float
) -> Expectation:
    """Return the error to expect of a perturbed mode; of ``slopes`` alone, or the intercept too."""
    problem = plan.mechanism.problem(plan)
    numbers, size = problem.numbers, problem.size
    along = Directions.expected(problem, effect=effect, noise=noise, filled=filled, correlation=correlation)
    rows, ridge = along.kept * problem.n * along.variance * along.stretched, numbers["ridge"]
    drowned = matrix_deviation(numbers["information_noise"], size, pure=problem.pure)
    mode, closing = (deviation(numbers[name], size, pure=problem.pure) for name in ("mode_noise", "closing_noise"))
    squares = np.zeros(3)  # of the fit, of the likelihood's estimate, of the bias alone: means per coefficient
    for mass, unit in along.units:  # responses are read in
        record, pulls, best = per_record(problem.loss, effect / unit, noise / unit)
        information = rows * record
        back = ridge * information / (information**2 + drowned**2) if drowned else 0.0
        gain = (1.0 + back) / (information + ridge)
        variance = (rows * pulls + mode**2) * gain**2 + (closing * (1.0 + back)) ** 2
        missing = (1.0 - information * gain) ** 2 * (effect / unit) ** 2 / (along.count[:-1] @ along.variance[:-1])
        missing[-1] = 0.0  # the design's intercept is 0
        count = along.count * np.array([1.0, 1.0, 0.0 if slopes else 1.0])
        share, plain = unit**2 * count / count.sum(), 1.0 / (problem.n * best * along.variance)
        squares += mass * np.array([share @ (variance * along.stretched + missing), share @ plain, share @ missing])
    return Expectation(*(np.sqrt(squares) / (problem.layout.ball or 1.0)).tolist())


def per_record(loss: FitLoss | ClassLoss, effect: float, residual: float = 1.0) -> tuple[float, float, float]:
    """(H, K, likelihood's information) of a record whose predictor has standard deviation ``effect``, and its residual too."""
    if isinstance(loss, ClassLoss):
        return _per_record_of_classes(loss, effect)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    if loss.unit == "labels":
        predictor = effect * nodes
        positive = special.expit(predictor)
        pulls = positive * loss.squares(predictor, 1.0) + (1.0 - positive) * loss.squares(predictor, -1.0)
        found = loss.information(predictor, 1.0), pulls, positive * (1.0 - positive)
        return float(weights @ found[0]), float(weights @ found[1]), float(weights @ found[2])
    if loss.unit == "counts":
        rate = np.exp(np.minimum(effect * nodes, 6.0))
        curved = float(weights @ loss.curvature(effect * nodes, 0.0))
        return curved, curved, float(weights @ rate)
    zero, off = np.zeros_like(nodes), residual * nodes
    return float(weights @ loss.curvature(zero, off)), float(weights @ loss.squares(zero, off)), residual**-2


def _per_record_of_classes(loss: ClassLoss, effect: float) -> tuple[float, float, float]:
    """The average over directions, for scores of standard deviation ``effect``: 2,000 of them, from a fixed seed."""
    contrasts = effect * np.random.default_rng(1).standard_normal((2000, loss.blocks))
    chances = special.softmax(contrasts @ loss.contrasts.T, axis=1)
    expected = loss.factors(contrasts, np.zeros(len(contrasts)), "information")
    pulls = [(loss.slopes(contrasts, np.full(len(contrasts), float(label))) ** 2).sum(axis=1) for label in range(loss.classes)]  # fmt: skip
    return (
        float((expected**2).sum(axis=(1, 2)).mean()) / loss.blocks,
        float((chances * np.transpose(pulls)).sum(axis=1).mean()) / loss.blocks,
        float((1.0 - (chances**2).sum(axis=1)).mean()) / loss.blocks,
    )


# ── coordinates that published moments will give ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Directions:
    """The common one, those across it, and the intercept's: variance, how many there are, and the w² they are stretched by."""

    variance: Array
    count: Array
    stretched: Array
    kept: float
    """The average weight of a row."""
    units: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """(probability, unit of the response): one, or several where its measurement is noisy."""

    @classmethod
    def expected(
        cls, problem: Any, *, effect: float, noise: float, filled: float = 1.0, correlation: float = 0.0
    ) -> Directions:
        """For columns that fill this share of their ranges; ``effect`` and ``noise`` are in the response's own unit.

        ``problem`` is that of a fit or of a draw in measured coordinates."""
        layout, how, numbers, d = problem.layout, problem.measuring, problem.numbers, problem.layout.columns
        spread = filled**2 / (3.0 if layout.ball is None else d)
        variance = spread * np.array([1.0 + (d - 1) * correlation, 1.0 - correlation])
        count, raised, stretch, seen, size = np.array([1.0, d - 1.0]), np.ones(2), 1.0, 1.0, float(d)
        if numbers["moments_noise"]:
            response = (effect**2 + noise**2) / problem.response_scale**2 if how.response else 0.0
            seen = min(1.0, numbers["moment_radius"] ** 2 / (d * spread + response))
            raised = np.maximum(seen * variance, how.floor)
            size = float(count @ (seen * variance / raised))
            stretch = how.stretch(layout, size) if numbers["row_bound"] else 1.0
        units: tuple[tuple[float, float], ...] = ((1.0, problem.response_scale),)
        if how.response:
            units = _units(problem, seen, size, float(count @ (1.0 / raised)), effect, noise)
        variance, count = np.append(variance, 1.0), np.append(count, float(layout.intercept))
        stretched = stretch**2 / np.append(raised, 1.0)
        row = numbers["row_bound"]
        kept = KEPT * min(1.0, row**2 / float(count @ (variance * stretched))) if row else 1.0
        return cls(variance, count, stretched, kept, units)


def _units(
    problem: Any, seen: float, size: float, inverse: float, effect: float, noise: float
) -> tuple[tuple[float, float], ...]:
    """What the residual deviation will be taken for: Var y less what the columns explain of it, each with its noise and cut as
    `fit_published.coordinates` cuts it. ``inverse`` is the trace of W²."""
    how, scale = problem.measuring, problem.response_scale
    if not problem.numbers["moments_noise"]:
        return ((1.0, how.unmeasured_unit * scale),)
    explained, left = seen * (effect / scale) ** 2, seen * (noise / scale) ** 2
    measured = matrix_deviation(problem.numbers["moments_noise"], problem.moment_columns.count, pure=problem.pure)
    entry = measured / problem.n
    spread = entry * math.sqrt(1.0 + 2.0 * explained * inverse / problem.layout.columns)
    middle = left - 0.5 * inverse * entry**2
    least = max(how.least_residual * max(explained + left, how.floor), how.floor**2)
    nodes = zip(MASSES, NODES, strict=True) if spread > PRECISE * left else ((1.0, 0.0),)
    return tuple(
        (mass, scale * how.unit(problem.layout, size, max(middle + node * spread, least))) for mass, node in nodes
    )


def _in_measured_coordinates(plan: Plan, design: Design) -> Expectation:
    """The inner draw's errors where columns fill their ranges evenly and do not go together: a column's coefficient is as much
    larger than its direction's as the direction is expected to be stretched."""
    assert isinstance(plan.mechanism, Measured)
    within, problem = plan.mechanism.inner(plan), plan.mechanism.problem(plan)
    along = Directions.expected(problem, effect=design.effect, noise=design.noise)
    stretched, columns, one = float(along.stretched[1]), problem.layout.columns, problem.layout.intercept
    features = Features(columns, math.sqrt(float(along.variance[1]) * stretched * columns), intercept=one)
    larger, squares = np.sqrt([stretched] * columns + [1.0] * one), np.zeros(3)
    for mass, unit in along.units:
        found = moments_of(within, Design(features, design.effect / unit, design.noise / unit, numeric=design.numeric))
        if found is None:
            return UNKNOWN
        squares += mass * np.square(found.errors(plan.draws, unit * larger))
    return Expectation(*np.sqrt(squares).tolist())


# ── simulated ────────────────────────────────────────────────────────────────────────────────────────────────


def simulated_error(
    plan: Plan, *, data_sets: int, generator: np.random.Generator, effect: float | None = None, noise: float | None = None,
    sampler: Any = None,
) -> Expectation:  # fmt: skip
    """Run the real mechanism on simulated data sets: a check of `expected_error`. Seeded by ``generator``: not private."""
    if not isinstance(plan.model, RowModel):
        return _by_prior_predictive(plan, data_sets, generator)
    if any(stop - start > 1 for start, stop in getattr(plan.mechanism, "categories", ())):
        raise WrongCall("No design with categories is simulated: their levels exclude each other. Look at the plan's range.")  # fmt: skip
    design, sampler = design_of(plan, effect=effect, noise=noise), sampler or samplers.default_sampler(plan)[0]
    expected = expected_error(plan, effect=effect, noise=noise)
    if math.isnan(expected.sampling):
        raise WrongCall(f"What {type(plan.model).__name__} would estimate is not known, so no error can be simulated.")
    private, varying = [], np.tile(design.varying, design.classes)
    truths = design.parameters(generator, data_sets)
    for theta, wanted in zip(truths, estimands(plan, design, truths), strict=True):
        target, seed = plan.target(design.data_set(theta, plan.n, generator)), int(generator.integers(2**62))
        source = samplers.seeded_key(seed) if sampler.randomness == "jax" else samplers.seeded_generator(seed)
        found = np.asarray(sampler.run(target, source, size=plan.draws).values)
        draws = found.reshape(plan.draws, -1)[:, : len(theta)]
        private.append((design.identified(draws).mean(axis=0) - wanted)[varying])
    return Expectation(private=root_mean_square(private), sampling=expected.sampling)


def _by_prior_predictive(plan: Plan, data_sets: int, generator: np.random.Generator) -> Expectation:
    """Simulate the release on data the prior predicts."""
    if not isinstance(plan.model, ConjugateModel):
        raise WrongCall(f"No simulation is known for {type(plan.model).__name__}, so its error cannot be predicted.")
    exact, private, plain = samplers.Exact(), [], []
    for _ in range(data_sets):
        truth, total, estimate = plan.model.simulate(plan.n, generator)
        summary = Summary(plan.n, tuple(Fraction(float(value)) for value in total))
        draws = exact.draw(plan.target(summary), generator, size=plan.draws).reshape(plan.draws, -1)
        private.append(draws.mean(axis=0) - truth)
        plain.append(estimate - truth)
    return Expectation(private=root_mean_square(private), sampling=root_mean_square(plain))


def root_mean_square(errors: list[Array]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
