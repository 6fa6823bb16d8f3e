"""Standard errors are those of all fits, multipliers those of the law they come from. The tables: benchmarks/."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from onedraw.models.fit import result as fit_result
from onedraw.models.sums.exact_sums import deviation, drawn, mixed_variances


@pytest.fixture(scope="module")
def study():
    folder = str(Path(__file__).parents[3] / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module("fit_coverage")
    sys.path.remove(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell", ["logistic/rare 0.05/20000/5", "logistic/heavy/20000/1", "linear/common/20000/5", "counts/uniform/20000/1"]
)
def test_a_printed_standard_error_is_within_a_quarter_of_the_realised_one(study, cell):
    """Of coefficients that are usually given an interval."""
    _, found = study.run_chunk((cell, range(study.FRESH, study.FRESH + 120)))
    given, *_, squared, variance = np.moveaxis(np.array(found), 1, 0)
    usual = given.mean(axis=0) >= 0.5
    printed = (given * np.sqrt(variance)).sum(axis=0) / given.sum(axis=0)
    ratio = printed / np.sqrt((given * squared).sum(axis=0) / given.sum(axis=0))
    assert usual.any()
    assert np.all((ratio[usual] >= 0.75) & (ratio[usual] <= 1.25)), ratio


def fitted(study, plan, design):
    from onedraw.methods.perturbed_mode.run import Stages
    from onedraw.models.row_model import Encoded
    from onedraw.samplers.noise import Noise

    rng = np.random.default_rng(2)
    X, y, _ = study.simulated("logistic", design, rng, plan.n)
    target = plan.target(Encoded(plan.n, X, y))
    return fit_result.FitResult.of(target.problem, Stages(target, Noise(rng, pure=True)).run())


def test_a_multiplier_covers_just_its_level_over_normals_of_different_spreads():
    means, deviations = np.array([[0.0, 0.5], [0.0, -0.5]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    first, second = fit_result._covering(means, deviations, 0.95)
    assert first == pytest.approx(special.ndtri(0.975))
    covered = [stats.norm.cdf(second, m, s) - stats.norm.cdf(-second, m, s) for m, s in ((0.5, 1.0), (-0.5, 2.0))]
    assert np.mean(covered) == pytest.approx(0.95)


def test_pure_noise_is_a_mixture_of_normals_of_these_variances():
    rng = np.random.default_rng(3)
    variances = mixed_variances(rng, 2.0, 5, 100_000, pure=True)
    mixed = np.sqrt(variances) * rng.standard_normal(100_000)
    assert stats.ks_2samp(mixed, drawn(rng, 2.0, (100_000, 5), pure=True)[:, 0]).pvalue > 1e-3
    assert np.sqrt(variances.mean()) == pytest.approx(deviation(2.0, 5, pure=True), rel=0.01)
    assert (mixed_variances(rng, 2.0, 5, 3, pure=False) == 4.0).all()


@pytest.mark.parametrize("name", ["mode_noise", "closing_noise"])
def test_more_noise_in_the_mode_widens_every_simulated_pivot(study, name):
    """The mode's noises add to the estimate's variance given the same information and variability."""
    fit = fitted(study, study.plan_of("logistic", 20_000, 5.0), "common")
    numbers = {**fit.problem.numbers, name: 3.0 * fit.problem.numbers[name]}
    noisier = replace(fit, problem=replace(fit.problem, numbers=numbers))
    errors = fit._pivots[0] / noisier._pivots[0]  # the bias is the same, in other standard errors
    change = (noisier._pivots[1] * errors) ** 2 - fit._pivots[1] ** 2
    assert np.all(change[np.isfinite(change)] > 0.0)
