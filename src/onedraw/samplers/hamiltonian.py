"""Hamiltonian Monte Carlo and NUTS on a posterior: fast, and never proven.

A chain starts from the Laplace approximation at the mode and runs in the coordinates of `mode`, in which a posterior of
many records is nearly N(0, I): step size and length of a trajectory then depend on the dimension alone, and little or
no warm-up is needed. That start and frame come from the records is no matter, since nothing is proven anyway:

- `NUTS` (Hoffman and Gelman, JMLR 2014) and plain `HMC` (Neal 2011) are `Assumed` to have converged;
- `HMC.coupled` is `Estimated`: L-lag couplings of the very chain, on data simulated from the public reference design,
  choose how many steps it makes (`coupling`).

A release accepts neither unless the caller names it. The kernels are BlackJAX's (`blackjax_kernels`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onedraw import privacy
from onedraw.errors import ExactnessRefused, WrongCall
from onedraw.privacy.rounding import text
from onedraw.samplers.coupling_bound import Meetings
from onedraw.samplers.sample import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEP_SIZE = 0.7
"""Times d^{−1/4}: nine of ten proposals are accepted on N(0, I), in any dimension."""

TRAJECTORY = math.pi / 2.0
"""A quarter turn forgets the start entirely on N(0, I)."""

WALK = 0.2
"""Over √d: the random walk of a coupled chain, far shorter than the posterior is wide."""

MOST_DOUBLINGS = 10
"""Of a NUTS trajectory: at most 1023 leapfrog steps."""


def default_step_size(dimension: int) -> float:
    return float(STEP_SIZE / dimension**0.25)


@dataclass(frozen=True)
class HMC:
    """``steps`` Hamiltonian steps of ``leapfrog`` leapfrogs, each of ``step_size`` times a random factor near 1.

    ``step_size`` is in units of the posterior's own spread; None: 0.7·d^{−1/4}. ``leapfrog`` None: a quarter turn. With
    ``walk`` a random-walk Metropolis step of that standard deviation follows each Hamiltonian step, as two coupled
    chains need it to meet. ``meetings`` is what couplings on simulated data found: see `HMC.coupled`.
    """

    randomness: ClassVar[str] = "jax"

    steps: int
    leapfrog: int | None = None
    step_size: float | None = None
    walk: float = 0.0
    meetings: Meetings | Any = None

    def __post_init__(self) -> None:
        _whole("steps", self.steps)
        if self.leapfrog is not None:
            _whole("leapfrog", self.leapfrog)
        object.__setattr__(self, "step_size", _step_size(self.step_size))
        if isinstance(self.walk, bool) or not isinstance(self.walk, float | int) or not 0.0 <= self.walk <= 10.0:
            raise WrongCall(
                f"walk must be a standard deviation from 0 (none) to 10, but {self.walk!r} came. It is in units of the "
                "posterior's own spread; 0.1 is enough."
            )
        object.__setattr__(self, "walk", float(self.walk))
        if isinstance(self.meetings, Mapping):
            object.__setattr__(self, "meetings", Meetings.from_dict(self.meetings))
        elif not isinstance(self.meetings, Meetings | None):
            raise WrongCall(f"meetings is made by HMC.coupled(plan), but a {type(self.meetings).__name__} came.")

    @classmethod
    def coupled(cls, plan: Any, **options: Any) -> HMC:
        """The chain for a plan with as many steps as couplings on simulated data ask for: see `coupling.coupled`."""
        from onedraw.samplers.coupling import coupled

        return coupled(plan, **options)

    def exactness(self, plan: Any) -> privacy.Exactness:
        """Assumed; Estimated where couplings were run for this plan and these settings."""
        check_potential(plan, "HMC")
        if self.meetings is not None:
            return self.meetings.exactness(plan, self)
        walk = f", a random-walk step of {text(self.walk)} after each" if self.walk else ""
        return privacy.Assumed(
            f"{self.steps:,} steps of Hamiltonian Monte Carlo ({_shown(self.leapfrog, 'leapfrogs')}, "
            f"{_shown(self.step_size, 'step size')}{walk}) from a Laplace approximation draw from the posterior"
        )

    def settings(self, dimension: int) -> tuple[float, int, float]:
        """(step size, leapfrogs, walk) for a dimension."""
        step_size = self.step_size or default_step_size(dimension)
        return step_size, self.leapfrog or max(1, math.ceil(TRAJECTORY / step_size)), self.walk

    def passes(self, plan: Any) -> int:
        """Over the records, for all draws."""
        return self.steps * self.settings(len(plan.model.parameter_names))[1] * int(plan.draws)

    def to_dict(self) -> dict[str, object]:
        return {
            "name": "HMC", "steps": self.steps, "leapfrog": self.leapfrog, "step_size": self.step_size,
            "walk": self.walk, "meetings": None if self.meetings is None else self.meetings.to_dict(),
        }  # fmt: skip

    def draw(self, target: Any, key: Any, *, size: int | None = None) -> NDArray[np.float64]:
        """One draw (d,), or ``size`` of them (size, d), in the model's unconstrained coordinates."""
        draws = self.run(target, key, size=1 if size is None else size).draws
        return draws[0] if size is None else draws

    def run(self, target: Any, key: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains; nothing but their ends is kept."""
        from onedraw.samplers import hamiltonian_chain

        return hamiltonian_chain.run_hmc(self, target, key, size=size)


@dataclass(frozen=True)
class NUTS:
    """``steps`` steps of the No-U-Turn sampler after ``warmup`` steps that adapt the step size.

    In the coordinates it runs in, generalised linear models need no warm-up; a network does: a few hundred.
    """

    randomness: ClassVar[str] = "jax"

    steps: int = 100
    warmup: int = 0
    step_size: float | None = None
    doublings: int = MOST_DOUBLINGS

    def __post_init__(self) -> None:
        _whole("steps", self.steps)
        _whole("warmup", self.warmup, least=0)
        _whole("doublings", self.doublings)
        if self.doublings > 15:
            raise WrongCall(f"doublings is at most 15, 32,767 leapfrog steps, but {self.doublings} came.")
        object.__setattr__(self, "step_size", _step_size(self.step_size))

    def exactness(self, plan: Any) -> privacy.Exactness:
        """Assumed, whatever the model."""
        check_potential(plan, "NUTS")
        return privacy.Assumed(
            f"{self.steps:,} steps of NUTS ({_shown(self.step_size, 'step size')}, at most {self.doublings} doublings, "
            f"{self.warmup:,} steps of warm-up) from a Laplace approximation draw from the posterior"
        )

    def passes(self, plan: Any) -> int:
        """Over the records, for all draws, at most: a step that never turns doubles to the end."""
        return (self.steps + self.warmup) * int(2**self.doublings) * int(plan.draws)

    def to_dict(self) -> dict[str, object]:
        return {"name": "NUTS", "steps": self.steps, "warmup": self.warmup, "step_size": self.step_size, "doublings": self.doublings}  # fmt: skip

    def draw(self, target: Any, key: Any, *, size: int | None = None) -> NDArray[np.float64]:
        """One draw (d,), or ``size`` of them (size, d), in the model's unconstrained coordinates."""
        draws = self.run(target, key, size=1 if size is None else size).draws
        return draws[0] if size is None else draws

    def run(self, target: Any, key: Any, *, size: int = 1) -> Sample:
        """``size`` independent chains; nothing but their ends is kept."""
        from onedraw.samplers import hamiltonian_chain

        return hamiltonian_chain.run_nuts(self, target, key, size=size)


def check_potential(plan: Any, sampler: str) -> None:
    """Refuse a plan whose law has no potential to follow: a closed form, or an algorithm of its own."""
    if getattr(plan, "closed_form", True):
        raise ExactnessRefused(
            f"This plan's law has a closed form; {sampler} would only come near it. Use Exact(), or leave the sampler out."
        )
    if getattr(plan, "requires", "exact") != "exact":
        raise ExactnessRefused(
            f"{type(plan.mechanism).__name__} is an algorithm of its own and not a posterior, so {sampler} would draw "
            "something its promise is not about. Leave out sampler=."
        )


def _shown(value: float | None, name: str) -> str:
    return f"default {name}" if value is None else f"{name} {text(value)}"


def _whole(name: str, value: Any, *, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**9:
        raise WrongCall(f"{name} must be a whole number of at least {least}, but {value!r} came.")


def _step_size(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, float | int) or not 1e-6 <= value <= 2.0:
        raise WrongCall(
            f"step_size must be a number from 1e-6 to 2 (beyond 2 leapfrog steps are unstable on a standard normal law), "
            f"but {value!r} came. Leave it out for 0.7·d^(−1/4)."
        )
    return float(value)
