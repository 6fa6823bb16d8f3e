"""Langevin steps, θ ← Π(θ − h∇U(θ) + √(2h) ξ): as an algorithm with a promise of its own, and as Proposition 13 has it.

`LastIterateLangevin` claims nothing about the posterior. Its last iterate, after finitely many steps of finite size
from a public start, is itself GaussianDP (`privacy.last_iterate`, mathematics.md §4.1, route 2), no less private than
an exact draw for h ≤ 2/(M + m); how near it is to the posterior is a matter of accuracy alone.

`Langevin` runs until it is within total variation γ of the posterior by Proposition 13 of Minami et al. (NIPS 2016),
which is Corollary 1 of Dalalyan (arXiv:1412.7392): with B = 4·log(1/γ) + d·log(M/m),

    h = 2mγ²/(dM²B),        T = dM²B²/(4m²γ²)        (m², errata 13),

from N(θ*, I/M). It is kept to show what the theorem costs: T is far beyond reach for any γ worth having.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.privacy.last_iterate import last_iterate_mu, path_mu, rounded_difference
from onedraw.privacy.rounding import root_up, text
from onedraw.samplers.floating_point import check_delta, check_gamma
from onedraw.samplers.public_numbers import (
    PublicNumbers,
    checked_gamma,
    closed_form,
    numbers_of_plan,
    numbers_of_target,
    smooth,
)
from onedraw.samplers.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_STEPS = 10**8

START_SHARE = 1e-3
"""The part of γ that pays for a start around a point near θ* instead of θ* itself."""


@dataclass(frozen=True)
class LastIterateLangevin:
    """``steps`` full-batch steps of ``step_size`` from the prior's location; the last iterate is the draw."""

    randomness: ClassVar[str] = "jax"

    steps: int
    step_size: float

    def __post_init__(self) -> None:
        _checked_steps(self.steps)
        if isinstance(self.step_size, bool) or not isinstance(self.step_size, float | int):
            raise WrongCall(f"step_size must be a number in (0, 2/M), but a {type(self.step_size).__name__} came.")
        object.__setattr__(self, "step_size", float(self.step_size))
        path_mu(step_size=self.step_size, steps=self.steps, weight=1.0, gradient_difference=1.0)

    def exactness(self, plan: Any) -> privacy.LastIterate:
        """The smaller of the bounds for the last iterate and for the whole path, for all draws and a person's records."""
        numbers = getattr(plan, "parameters", {})
        if getattr(plan, "closed_form", False) or not {"weight", "gradient_difference"} <= set(numbers):
            raise closed_form("LastIterateLangevin")
        self._check_algorithm(plan)
        mu = self.mu(numbers)
        people = plan.guarantee.unit.records_per_person
        promise = privacy.group(privacy.GaussianDP(mu), people) if people > 1 else privacy.GaussianDP(mu)
        together = _repeated(promise, plan.draws)
        variates = self.steps * len(plan.model.parameter_names) * plan.draws
        check_delta(plan, together, variates, randomness=self.randomness)
        return privacy.LastIterate(together)

    def mu(self, numbers: Any) -> float:
        """μ of one draw for one record, from a plan's parameters; of a path alone where gradients are rounded."""
        rounding = numbers.get("rounding", 0.0)
        public = {"step_size": self.step_size, "steps": self.steps, "weight": numbers["weight"]}
        difference = rounded_difference(numbers["gradient_difference"], rounding)
        path = path_mu(**public, gradient_difference=difference)
        if rounding or "smoothness" not in numbers or "strong_convexity" not in numbers:
            return path
        return min(
            path,
            last_iterate_mu(
                **public, gradient_difference=difference,
                strong_convexity=numbers["strong_convexity"], smoothness=numbers["smoothness"],
            ),
        )  # fmt: skip

    def _check_algorithm(self, plan: Any) -> None:
        """A noisy-gradient plan is about these very steps and no others."""
        if getattr(plan, "requires", "exact") != "noisy-gradient":
            return
        steps, step_size = plan.parameters["steps"], plan.parameters["step_size"]
        if (self.steps, self.step_size) != (int(steps), step_size):
            raise ExactnessRefused(
                f"The plan is for {int(steps):,} steps of {text(step_size)}; this sampler makes {self.steps:,} of "
                f"{text(self.step_size)}. Weight and time were calibrated together. Use the plan's numbers, or leave "
                "the sampler out."
            )

    def passes(self, plan: Any) -> int:
        """Over the records, for all draws."""
        return self.steps * int(plan.draws)

    def to_dict(self) -> dict[str, object]:
        return {"name": "LastIterateLangevin", "steps": self.steps, "step_size": self.step_size}

    def draw(self, target: Any, key: Any, *, size: int | None = None) -> NDArray[np.float64]:
        """One draw (d,), or ``size`` independent ones (size, d)."""
        draws = self.run(target, key, size=1 if size is None else size).draws
        return draws[0] if size is None else draws

    def run(self, target: Any, key: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from the public start; nothing but the last iterates is kept."""
        if getattr(target, "lattice", None) is not None:
            from onedraw.samplers.gradient_path import last_iterates as chains
        else:
            from onedraw.samplers.langevin_chain import from_location as chains
        draws = chains(target, key, steps=self.steps, step_size=self.step_size, size=size)
        return Sample(draws, {"steps": self.steps})


@dataclass(frozen=True)
class Langevin:
    """Within total variation ``gamma`` by Proposition 13, on R^d; refused where it takes more than ``most_steps``."""

    randomness: ClassVar[str] = "jax"

    gamma: float
    most_steps: int = MOST_STEPS

    def __post_init__(self) -> None:
        checked_gamma(self.gamma)
        _checked_steps(self.most_steps)

    def exactness(self, plan: Any) -> privacy.Exactness:
        """WithinTV(γ), if the steps it takes are within the limit."""
        numbers = numbers_of_plan(plan, sampler="Langevin")
        _, steps = self._path(numbers)
        check_gamma(self.gamma, (steps + 1) * numbers.dimension)
        return privacy.WithinTV(self.gamma)

    def passes(self, plan: Any) -> int:
        """Over the records, for all draws."""
        return self._path(numbers_of_plan(plan, sampler="Langevin"))[1] * int(plan.draws)

    def to_dict(self) -> dict[str, object]:
        return {"name": "Langevin", "gamma": self.gamma, "most_steps": self.most_steps}

    def draw(self, target: Any, key: Any, *, size: int | None = None) -> NDArray[np.float64]:
        """One draw (d,), or ``size`` independent ones (size, d)."""
        draws = self.run(target, key, size=1 if size is None else size).draws
        return draws[0] if size is None else draws

    def run(self, target: Any, key: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains, each from its own start around the minimum."""
        from onedraw.samplers import langevin_chain

        numbers = numbers_of_target(target)
        step_size, steps = self._path(numbers)
        draws, noticed = langevin_chain.from_minimum(
            target, key, steps=steps, step_size=step_size, size=size, share=START_SHARE * self.gamma
        )
        return Sample(draws, {"steps": steps, **noticed})

    def _path(self, numbers: PublicNumbers) -> tuple[float, int]:
        smoothness = smooth(numbers, sampler="Langevin")
        if numbers.radius is not None:
            raise ExactnessRefused(
                "Proposition 13 is about Langevin steps on all of R^d, and this posterior is restricted to a ball: no γ is "
                "known. Use Proximal(gamma=…), which is proven on balls."
            )
        step_size, steps = proposition_13(
            self.gamma * (1.0 - START_SHARE), dimension=numbers.dimension,
            strong_convexity=numbers.strong_convexity, smoothness=smoothness,
        )  # fmt: skip
        if steps > self.most_steps:
            raise ExactnessRefused(
                f"Proposition 13 needs {steps:.3g} steps to be within total variation {text(self.gamma)} of the posterior; "
                f"the limit is {self.most_steps:.3g}. Its number of steps grows like (M/m)²/γ², and M like n. Use LastIterateLangevin, "
                "whose promise needs no convergence, or Proximal(gamma=…).",
                steps=steps,
            )
        return step_size, steps


def proposition_13(gamma: float, *, dimension: int, strong_convexity: float, smoothness: float) -> tuple[float, int]:
    """(h, T) of Proposition 13. It needs d ≥ 2; in d = 1 an independent second coordinate is imagined."""
    gamma = checked_gamma(gamma)
    if not (dimension >= 1 and 0.0 < strong_convexity <= smoothness < math.inf):
        raise WrongCall(
            f"Proposition 13 needs a dimension of at least 1 and 0 < m ≤ M < ∞, but d = {dimension}, m = "
            f"{text(strong_convexity)}, M = {text(smoothness)} came."
        )
    d = max(2, dimension)
    bits = 4.0 * math.log(1.0 / gamma) + d * math.log(smoothness / strong_convexity)
    step_size = 2.0 * (strong_convexity / smoothness) * (gamma / smoothness) * (gamma / (d * bits))
    steps = d * (smoothness / strong_convexity * bits / (2.0 * gamma)) ** 2
    return step_size, math.ceil(steps * (1.0 + 1e-12))


def _repeated(promise: Any, draws: int) -> Any:
    """J independent draws: μ√J."""
    return promise if draws == 1 else privacy.GaussianDP(root_up(Fraction(promise.mu) ** 2 * draws))


def _checked_steps(steps: Any) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise WrongCall(
            f"steps must be a whole number of at least 1, but {steps!r} came. After no steps the start itself would be "
            "released, a constant without information. Use T ≥ 1."
        )
    return steps
