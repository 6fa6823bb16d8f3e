"""Carrying out added noise: exact sums in, noisy whole numbers out.

With fresh entropy every variate is OpenDP's, exact on whole numbers; its measurement is built before anything is charged, and
its own map must confirm the promise. A seeded run is not private and draws the same laws from NumPy. `CenteredSums` does so
twice: the second sums are of squares about the mean that the first one gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.arrays import Array
from onedraw.plans import Plan
from onedraw.samplers.noise import measurement, with_noise
from onedraw.samplers.padding import Padding, constant_work
from onedraw.samplers.randomness import OPENDP, is_secure
from onedraw.samplers.sampler import Sample, Sampler


@dataclass(frozen=True)
class NoisySums(Sampler):
    """The plan's own algorithm; it has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "noise on exact sums"
    compiling: ClassVar[float] = 0.0

    def exactness(self, plan: Plan) -> privacy.Exact:
        """Exact, on whole numbers; refused unless OpenDP's map gives what the plan promises."""
        size, numbers = sum(plan.mechanism.stage_sizes(plan).values()), plan.parameters
        rho = numbers["mu"] ** 2 / 2.0 if "mu" in numbers else numbers.get("rho")  # stated, or what Gaussian DP implies
        noise = measurement(plan.mechanism.law, size, numbers["scale"])
        noise.check(plan.guarantee.promise, numbers["sensitivity"], epsilon=numbers.get("epsilon"), rho=rho)
        return privacy.Exact()

    def entropy(self, plan: Plan) -> str:
        return OPENDP

    def padding(self, plan: Plan) -> Padding:
        """One pass, then noise whose law no record enters."""
        return constant_work(self.passes(plan))

    def seconds_each(self, plan: Plan) -> float:
        return 6e-5 + 2e-6 * int(sum(plan.mechanism.stage_sizes(plan).values()))

    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` estimates, and the noisy sums the first follows from."""
        plan, generator = target.plan, None if is_secure(randomness) else randomness
        noisy = [self._noisy(target, generator) for _ in range(size)]
        estimates = [plan.mechanism.estimate(plan, {"noisy sums": one}) for one in noisy]
        return Sample(np.array(estimates), {}, {"noisy sums": noisy[0].tolist()})

    def _noisy(self, target: Any, generator: Any) -> Array:
        """Sums and noise on the finer lattice, rounded back to the steps of the sums: post-processing."""
        law, numbers = target.plan.mechanism.law, target.plan.parameters
        scale, finer = numbers["scale"], int(numbers["refinement"])
        noisy = with_noise(law, [value * finer for value in target.sums], scale, generator)
        return np.array([float((2 * value + finer) // (2 * finer)) if finer > 1 else float(value) for value in noisy])


@dataclass(frozen=True)
class CenteredSums(Sampler):
    """The plan's own algorithm, in two stages; it has no options."""

    randomness: ClassVar[str] = "numpy"
    why: ClassVar[str] = "noise on an exact sum, then on exact sums of squares about the mean that follows"
    compiling: ClassVar[float] = 0.0

    def exactness(self, plan: Plan) -> privacy.Exact:
        """Exact, on whole numbers; refused unless OpenDP's maps give what the two stages promise."""
        sizes, numbers, k = plan.mechanism.stage_sizes(plan), plan.parameters, plan.request.records_per_person
        for stage, reach in plan.mechanism.reaches(plan).items():
            noise = measurement("laplace", sizes[stage], numbers[f"{stage}_scale"])
            noise.check(plan.guarantee.promise, float(k * reach), epsilon=numbers[f"{stage}_epsilon"])
        return privacy.Exact()

    def entropy(self, plan: Plan) -> str:
        return OPENDP

    def passes(self, plan: Plan) -> int:
        return 2

    def padding(self, plan: Plan) -> Padding:
        """Two passes, then noise whose law no record enters."""
        return constant_work(self.passes(plan))

    def seconds_each(self, plan: Plan) -> float:
        return 2e-4 + 2e-6 * int(sum(plan.mechanism.stage_sizes(plan).values()))

    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` estimates, and the noisy sums the first follows from."""
        plan, generator = target.plan, None if is_secure(randomness) else randomness
        drawn = [self._stages(target, generator) for _ in range(size)]
        estimates = [plan.mechanism.estimate(plan, stages) for stages in drawn]
        return Sample(np.array(estimates), {}, drawn[0])

    def _stages(self, target: Any, generator: Any) -> dict[str, list[float]]:
        """The noisy sums of places, then those of squares about the centers that follow from them."""
        plan, numbers = target.plan, target.plan.parameters
        first = with_noise("laplace", target.places, numbers["mean_scale"], generator)
        squares = target.squares(plan.mechanism.centers(plan, first))
        second = with_noise("laplace", squares.tolist(), numbers["squares_scale"], generator)
        return {"mean": [float(value) for value in first], "squares": [float(value) for value in second]}
