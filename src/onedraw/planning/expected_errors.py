"""How good will a release be? Predicted from public numbers, before any record is read.

For regressions the error follows from the moments of a draw under the public reference design (`moments`), and
`simulated_error` checks it by running the mechanism itself on data simulated from that design.

For the conjugate families the truth is drawn from the model's own prior, n records from the model at that truth (clamped as the real ones will
be), one private draw from the calibrated posterior; the root mean squared distance between draw and truth is what an
analyst may expect. The same simulation without privacy (a plain posterior draw, and the plain estimate) says how
much of the error is the price of the promise. Only the sums of the records are simulated, so n costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw import samplers  # whose parts load when they are needed: a question about one column needs no JAX
from onedraw.errors import WrongCall
from onedraw.mechanisms import AddedNoise, ExponentialQuantiles, Measured, PerturbedMode, Plan
from onedraw.mechanisms.added_noise import expected_noise
from onedraw.models import ConjugateModel, Summary
from onedraw.models.features import Features
from onedraw.models.row_model import RowModel
from onedraw.release.intervals.design import Design, design_of
from onedraw.release.intervals.moments import estimands, moments_of

from .coordinates import Directions

SIMULATIONS = 400
PUBLIC_SEED = 20170704  # a simulation of public numbers: the seed protects nothing and makes plans reproducible


@dataclass(frozen=True)
class Expectation:
    """Root mean squared errors per parameter: of the private draw (or the mean of several), and without privacy.

    Averaged over the prior, for regressions over the reference design. ``bias`` is the part of ``private`` that no
    repetition would average out: the prior's pull, and the start of a path. Not a number where nothing is known.
    """

    private: float
    sampling: float
    bias: float = math.nan

    @property
    def price(self) -> float:
        """How many times larger the error is than without privacy."""
        return self.private / self.sampling if self.sampling else math.inf

    def times(self, unit: float) -> Expectation:
        """The same errors in another unit."""
        return Expectation(self.private * unit, self.sampling * unit, self.bias * unit)


def expected_error(plan: Plan, *, effect: float | None = None, noise: float | None = None) -> Expectation:
    """What to expect of the mean of the plan's draws.

    ``effect`` and ``noise`` are the standard deviations of a regression's linear predictor and of a response about it;
    None: those the mechanism declares, or the usual ones.
    """
    if isinstance(plan.mechanism, ExponentialQuantiles):
        return expected_quantile_error(plan)
    if isinstance(plan.mechanism, AddedNoise):
        noise, sampling = expected_noise(plan), plan.model.sampling_error(plan.n)
        return Expectation(math.hypot(noise, sampling), sampling, 0.0)
    if not isinstance(plan.model, RowModel):
        return _by_prior_predictive(plan)
    design = design_of(plan, effect=effect, noise=noise)
    if isinstance(plan.mechanism, PerturbedMode):
        from .fit_expectation import expected_fit_error  # which builds on this file

        return expected_fit_error(plan, effect=design.effect, noise=design.noise)
    if isinstance(plan.mechanism, Measured):
        return _in_measured_coordinates(plan, design)
    found = moments_of(plan, design)
    return UNKNOWN if found is None else Expectation(*found.errors(plan.draws))


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


def simulated_error(
    plan: Plan,
    *,
    data_sets: int,
    generator: np.random.Generator,
    effect: float | None = None,
    noise: float | None = None,
    sampler: Any = None,
) -> Expectation:
    """Run the real mechanism on simulated data sets: a check of `expected_error`. Seeded by ``generator``: not private."""
    if not isinstance(plan.model, RowModel):
        return _by_prior_predictive(plan, data_sets, generator)
    if any(stop - start > 1 for start, stop in getattr(plan.mechanism, "categories", ())):
        raise WrongCall(
            "No design with categories is simulated: their levels exclude each other. Look at the plan's range."
        )
    design, sampler = design_of(plan, effect=effect, noise=noise), sampler or samplers.default_sampler(plan)[0]
    expected = expected_error(plan, effect=effect, noise=noise)
    if math.isnan(expected.sampling):
        raise WrongCall(f"What {type(plan.model).__name__} would estimate is not known, so no error can be simulated.")
    private, varying = [], np.tile(design.varying, design.classes)
    truths = design.parameters(generator, data_sets)
    for theta, wanted in zip(truths, estimands(plan, design, truths), strict=True):
        draws = simulated_draws(plan, design, theta, generator, sampler)[:, : len(theta)]
        private.append((design.identified(draws).mean(axis=0) - wanted)[varying])
    return Expectation(private=root_mean_square(private), sampling=expected.sampling)


def simulated_draws(
    plan: Plan, design: Design, theta: NDArray[np.float64], generator: np.random.Generator, sampler: Any
) -> NDArray[np.float64]:
    """The plan's draws for one simulated data set, as the release would make them, one row each."""
    target = plan.target(design.data_set(theta, plan.n, generator))
    seed = int(generator.integers(2**62))
    source = samplers.seeded_key(seed) if sampler.randomness == "jax" else samplers.seeded_generator(seed)
    return np.asarray(sampler.run(target, source, size=plan.draws).draws).reshape(plan.draws, -1)


UNKNOWN = Expectation(math.nan, math.nan)


def _by_prior_predictive(
    plan: Plan, data_sets: int = SIMULATIONS, generator: np.random.Generator | None = None
) -> Expectation:
    """Simulate the release on data the prior predicts."""
    if not isinstance(plan.model, ConjugateModel):
        raise WrongCall(f"No simulation is known for {type(plan.model).__name__}, so its error cannot be predicted.")
    generator, exact = generator or np.random.default_rng(PUBLIC_SEED), samplers.Exact()
    private, plain = [], []
    for _ in range(data_sets):
        truth, total, estimate = plan.model.simulate(plan.n, generator)
        summary = Summary(plan.n, tuple(Fraction(float(value)) for value in total))
        draws = exact.draw(plan.target(summary), generator, size=plan.draws).reshape(plan.draws, -1)
        private.append(draws.mean(axis=0) - truth)
        plain.append(estimate - truth)
    return Expectation(private=root_mean_square(private), sampling=root_mean_square(plain))


def root_mean_square(errors: list[NDArray[np.float64]]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


# ── quantiles, selected by rank ──────────────────────────────────────────────────────────────────────────────


def why_selected(plan: Plan) -> str:
    """What to expect, in a sentence, from public numbers."""
    levels, selecting = plan.model.levels, plan.mechanism.rank_errors(plan)  # type: ignore[attr-defined]
    level, error = max(zip(levels, selecting, strict=True), key=lambda pair: pair[1])
    sampling = (level * (1.0 - level) / plan.n) ** 0.5
    return (
        f"selection by rank. Expected error of the rank of the {level:g}-quantile: {100 * error:.2g} % of the records from the "
        f"selection, {100 * sampling:.2g} % from sampling. Decided from public numbers, before any record was read."
    )


def expected_quantile_error(plan: Plan) -> Expectation:
    """Root mean squared error of the released ranks, as a share of the records: sampling and selection together, and the
    first alone."""
    selecting = np.array(plan.mechanism.rank_errors(plan))  # type: ignore[attr-defined]
    levels = np.array(plan.model.levels)
    sampling = levels * (1.0 - levels) / plan.n
    return Expectation(float(np.sqrt(np.mean(selecting**2 + sampling))), float(np.sqrt(np.mean(sampling))), 0.0)
