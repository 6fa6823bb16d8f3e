"""Exact draws from closed-form laws: a conjugate law draws from itself (`models.conjugate.distributions`, which says how
and how exactly); any Gaussian, and a Gaussian cut to a ball, by `ball`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.random import Generator

from onedraw import errors, privacy
from onedraw.arrays import Array
from onedraw.models.conjugate import distributions
from onedraw.models.conjugate.gaussian_mean import GaussianMean
from onedraw.models.convex.linear_model import ConvexModel
from onedraw.plans import Plan
from onedraw.samplers.ball import ball_gaussian_draws, gaussian_draws
from onedraw.samplers.padding import Padding, constant_work, no_padding
from onedraw.samplers.sampler import Sample, Sampler
from onedraw.samplers.variates import TRIES, check_delta

AnyLaw = distributions.Law | distributions.GaussianLaw

NUMERIC_MODEL = "real-number sampler in double precision"


@dataclass(frozen=True)
class Exact(Sampler):
    """Draws from a closed-form law itself; there is nothing to tune and nothing to diagnose."""

    randomness: ClassVar[str] = "numpy"
    compiling: ClassVar[float] = 0.0
    each: ClassVar[float] = 4e-7

    def exactness(self, plan: Plan) -> privacy.Exactness:
        """Exact wherever the plan's law has a closed form: decided by the plan, never by the records."""
        if not plan.closed_form:
            raise errors.ExactnessRefused(
                f"Exact() draws from closed-form laws, and a posterior of {type(plan.model).__name__} has none. Use "
                "LastIterateLangevin, whose last iterate has a promise of its own, or Proximal(gamma=…); without a "
                "sampler the release chooses one."
            )
        count, model = len(plan.model.parameter_names), plan.model
        # of one draw: two for each of the two parts of a number, or tries at a ball, of which 3.2(d+2) are expected at most (ball.md)
        on_ball = isinstance(model, ConvexModel) and model.radius is not None
        variates = plan.draws * (TRIES * (count + 2) ** 2 if on_ball else 4 * count)
        check_delta(plan, plan.guarantee.promise, variates, randomness=self.randomness)
        return privacy.Exact(numeric=NUMERIC_MODEL)

    def padding(self, plan: Plan) -> Padding:
        """A normal law is standard normal numbers, moved and stretched: nothing that depends on the records is tried. Gamma, Beta
        and Dirichlet variates come by NumPy's rejection, which nobody can count."""
        model = plan.model
        if isinstance(model, GaussianMean) or (isinstance(model, ConvexModel) and model.radius is None):
            return constant_work(self.passes(plan))
        raise no_padding("Exact", "how often this law is tried depends on its parameters, and so on the records")

    def draw(self, target: AnyLaw, randomness: Generator, *, size: int | None = None) -> Array:
        """One draw, or ``size`` independent draws along a first axis.

        A draw has the law's own shape: () for Beta and Gamma, (K,) for Dirichlet, (d,) for Normal and Gaussian.
        """
        draws, _ = _draws(target, randomness, size=1 if size is None else size)
        return draws[0, ...] if size is None else draws

    def run(self, target: AnyLaw, randomness: Generator, *, size: int = 1) -> Sample:
        """``size`` draws, one row each, with the tries that rejection took."""
        if isinstance(target, distributions.Normal):
            return Sample(target.noise(randomness, size), origin=target.location)
        draws, diagnostics = _draws(target, randomness, size=size)
        bits = distributions.GAMMA_BITS if isinstance(target, distributions.Gamma) else None
        return Sample(draws.reshape(size, -1), diagnostics, bits=bits)


def _draws(law: AnyLaw, generator: Generator, *, size: int) -> tuple[Array, dict[str, Any]]:
    """Draws, and what only a curator may see of how they were made."""
    match law:
        case distributions.Law():
            return law.draws(generator, size), {}
        case distributions.Gaussian():
            return gaussian_draws(law, generator, size=size), {}
        case distributions.BallGaussian():
            draws, tries = ball_gaussian_draws(law, generator, size=size)
            return draws, {"tries": tries}
    raise errors.WrongCall(
        f"Exact() draws from a Beta, Dirichlet, Gamma, Normal or Gaussian law; {type(law).__name__} was given. No "
        "closed form is known for it, so the draw would not be exact. Use a sampler for log densities."
    )
