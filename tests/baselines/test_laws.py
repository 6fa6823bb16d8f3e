"""Programs add what their plans say (output_perturbation.py, objective_perturbation.py): a tenth less noise, or none, is seen."""

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw import baselines, models
from onedraw.baselines.objective_perturbation import TiltedMinimum
from onedraw.methods.added_noise.run import NoisySums
from onedraw.methods.base import Mechanism

PURE, APPROX = od.PureDP(1.0), od.ApproxDP(1.0, 1e-5)
LOGISTIC = models.Logistic(features=3, bounds=(-1, 1), prior=od.Gaussian(scale=1.0))
MANY = 10_000


def sizes(drawn, budget):
    """(lengths of the rows, their law at scale 1)."""
    law = stats.gamma(drawn.shape[1]) if budget.is_pure else stats.chi(drawn.shape[1])
    return np.linalg.norm(drawn, axis=1), law


def check(values, law):
    """Shape by Kolmogorov and Smirnov; size by the mean, ten deviations from which a tenth is."""
    assert stats.kstest(values, law.cdf).pvalue > 1e-6
    size = float(law.expect(abs))
    deviation = np.abs(values).std() / size / np.sqrt(len(values))
    assert abs(np.abs(values).mean() / size - 1.0) < 5.0 * deviation < 0.055


@pytest.mark.statistical
@pytest.mark.parametrize("budget", [PURE, APPROX], ids=str)
def test_a_tilt_and_the_noise_that_closes_a_minimum_have_the_plans_sizes(budget):
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    plan, generator = od.calibrate(baselines.ObjectivePerturbation("kifer"), LOGISTIC, budget, n=30), np.random.default_rng(seed)  # fmt: skip
    tilts = np.array([TiltedMinimum().tilt(plan, generator) for _ in range(MANY)])
    lengths, law = sizes(tilts, budget)
    check(lengths / plan.parameters["tilt_noise"], law)
    found = np.array([0.3, -2.0, 0.0, 1.0])
    closing = np.array([TiltedMinimum().published(plan, found, generator) - found for _ in range(MANY)])
    check(sizes(closing, budget)[0] / plan.parameters["closing_noise"], law)


@pytest.mark.statistical
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh entropy", "seeded"])
@pytest.mark.parametrize("budget", [PURE, od.ZCDP(0.5)], ids=str)
def test_noisy_sums_of_a_family_have_the_plans_noise(budget, fresh):
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    plan = od.calibrate(baselines.SufficientStatistics(), models.BetaBernoulli(), budget, n=8)
    target = plan.target(plan.model.summarise([0, 1] * 4))
    generator = None if fresh else np.random.default_rng(seed)
    noisy = np.array([NoisySums()._noisy(target, generator)[0] for _ in range(MANY)]) - target.sums[0]
    law = stats.laplace() if plan.mechanism.law == "laplace" else stats.norm()
    check(noisy * plan.parameters["refinement"] / plan.parameters["scale"], law)


def test_every_baseline_has_an_entry_point_by_which_a_stored_certificate_finds_it():
    import tomllib
    from pathlib import Path

    points = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
    found = {name: getattr(baselines, name) for name in baselines.__all__}
    room = {name: one for name, one in found.items() if isinstance(one, type) and issubclass(one, Mechanism)}
    named = {name: place for name, place in points["onedraw.mechanisms"].items() if "onedraw.baselines." in place}
    assert named == {name: f"{one.__module__}:{name}" for name, one in room.items()}


@pytest.mark.parametrize("records", [1, 3])
def test_the_length_of_a_sampled_regression_has_the_noise_that_its_move_asks_for(records):
    """AdaOPS, stage 2: log(1 + kB²/(λ + λ̃)) over its μ, and no less."""
    model = models.LeastSquares(2, bounds=(-1, 1), prior=od.Gaussian(scale=1.0, radius=5.0), response_bound=1.0)
    plan = od.calibrate(baselines.AdaOPS(), model, APPROX, n=50, records_per_person=records)
    square = plan.parameters["row_bound"] ** 2
    for together in (square, 3.0 * square, 50.0 * square):
        asked = np.log1p(records * square / together) / plan.parameters["length_mu"]
        assert asked <= plan.mechanism.length_noise(plan, together) <= 1.001 * asked
