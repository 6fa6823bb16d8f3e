"""What a sampler is: a frozen value that draws from a law with a source of randomness, and says before it runs how exactly.

A new one is a file of this package with a class like this, and its name in ``__init__``:

    @dataclass(frozen=True)
    class Mine(Sampler):
        steps: int                                    # options, which stand on the certificate
        def exactness(self, plan): ...                # from public numbers alone: `release` makes a promise of it
        def run(self, target, randomness, *, size=1): ...
        def padding(self, plan): ...                  # work that suffices for every data set; left out: it cannot pad
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import CertificateRejected, ExactnessRefused, check_extra
from onedraw.plans import Plan
from onedraw.privacy import Exactness
from onedraw.privacy.stored import Stored
from onedraw.samplers.padding import Padding, no_padding
from onedraw.samplers.randomness import OPERATING_SYSTEM

NUMBERS_A_SECOND = 2e9
"""Entries of the records that are read, measured on two cores."""


@dataclass(frozen=True, eq=False)
class Sample:
    """``draws`` has one row per draw. ``diagnostics`` depends on the records and is for the curator alone."""

    draws: Array
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)
    stages: dict[str, list[float]] | None = None
    """Of a sampler that publishes in stages, everything it publishes; the draws follow from it."""
    origin: tuple[Fraction | float, ...] | None = None
    """The exact point that ``draws`` are measured from, in a law that has one: it is added in whole lattice steps."""
    bits: int | None = None
    """Significant bits to publish, of draws whose floating-point error is relative to their size."""

    @property
    def values(self) -> Array:
        """The draws as floats, measured from 0."""
        return self.draws if self.origin is None else self.draws + np.array(self.origin, dtype=np.float64)


class Sampler(Stored, key="name", noun="sampler", refuses=CertificateRejected):
    """A way to draw. What it answers besides `run` follows from public numbers."""

    randomness: ClassVar[str] = "jax"
    """What it is run with: a "jax" key, or a "numpy" generator."""
    why: ClassVar[str] = ""
    """What a certificate says of the choice, of a sampler that is a method's own algorithm."""
    compiling: ClassVar[float] = 20.0
    """Seconds before its first draw."""
    each: ClassVar[float] = 0.1
    """About, seconds on one core of one among many draws that are made together, whatever the plan is."""
    needs: ClassVar[tuple[str, str] | None] = None
    """(extra, package) that must be installed."""

    @abc.abstractmethod
    def exactness(self, plan: Plan) -> Exactness:
        """How exactly it draws, decided before it runs; refused where it does not draw what the plan is about."""

    @abc.abstractmethod
    def run(self, target: Any, randomness: Any, *, size: int = 1) -> Sample:
        """``size`` independent draws from the plan's target."""

    @classmethod
    def chosen(cls, plan: Plan, accept: Collection[str]) -> tuple[Sampler, str]:
        """(sampler, why) for a plan that is its own algorithm."""
        return cls(), f"the plan's own algorithm: {cls.why}"

    def draw(self, target: Any, randomness: Any, *, size: int | None = None) -> Array:
        """One draw (d,), or ``size`` independent ones (size, d); in unconstrained coordinates, if the model has such."""
        draws = self.run(target, randomness, size=1 if size is None else size).values
        return draws[0] if size is None else draws

    def passes(self, plan: Plan) -> int:
        """Over the records, for all draws, at most."""
        return 1

    def padding(self, plan: Plan) -> Padding:
        """The work of all draws together where it is padded (`padding`), from public numbers; refused where none is proven."""
        raise no_padding(type(self).__name__)

    def run_padded(self, target: Any, randomness: Any, padding: Padding, *, size: int = 1) -> Sample:
        """`run`, then idle work up to what ``padding`` says: draws of the same law, and where `run` has the same steps the same
        draws under the same randomness. An algorithm of always as many steps has nothing to pad."""
        return self.run(target, randomness, size=size)

    def adds_in_numpy(self, plan: Plan) -> bool:
        """Return whether NumPy makes the sums over the records in place of JAX, if they are read in this process.

        Public numbers alone may decide: the plan, and neither the records nor what is loaded already.
        """
        return False

    def entropy(self, plan: Plan) -> str:
        """What its variates are made of, in a certificate's words; of a run without a seed."""
        return OPERATING_SYSTEM

    def whole_numbers(self, plan: Plan) -> bool:
        """Whether what it draws is decided in whole numbers alone, so that no variate is taken to be real."""
        return False

    def seconds(self, plan: Plan) -> float:
        """About, for all of the plan's draws, apart from compiling. It decides what a choice leaves out, nothing else."""
        return plan.n * len(plan.model.parameter_names) / NUMBERS_A_SECOND

    def seconds_each(self, plan: Plan) -> float:
        """The same of a plan."""
        return self.each

    def check_installed(self) -> None:
        """Refuse, before anything is spent, what needs a library that is not here."""
        if self.needs is not None:
            check_extra(*self.needs, type(self).__name__)

    def check_own(self, plan: Plan, what: str) -> None:
        """Refuse a plan that is not about this very algorithm."""
        own = plan.mechanism.own_sampler()
        if own is None or not isinstance(self, own):
            raise ExactnessRefused(
                f"{type(self).__name__}() {what}, and this plan has none. Leave the sampler out to have one chosen."
            )

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_dict``, so that `verify` can ask it again; an unknown sampler or option is an error."""
        from onedraw import samplers

        name = stored.get("name") if isinstance(stored, Mapping) else None
        for one in (name,) if isinstance(name, str) and name in samplers.SAMPLERS else samplers.SAMPLERS:
            getattr(samplers, one)  # a class is known once its file has been read, and the others need not be
        if isinstance(name, str) and name not in cls.members():  # it comes with a method, perhaps of another package
            for found in entry_points(group="onedraw.samplers", name=name):
                found.load()
        return super().from_dict(stored)
