"""What a promise is, and what every promise answers; the values themselves are in ``promises`` (mathematics.md §1).

Always rounded against ourselves: ``epsilon(delta)``, ``delta(epsilon)`` and ``implies(other)``. To answer the last one each
promise says what it is worth in each of the other currencies (``pure_epsilon``, ``range_epsilon``, ``gaussian_mu``,
``zcdp_rho``, ``renyi``), +∞ or None where nothing is proven. A promise that is asked for, a *budget*, also says what it
allows: ``is_pure``, ``allows(kind)``, ``total_variation(share)``. Neighbours are replace-one with n public, for all of them.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from onedraw.defaults import DELTA
from onedraw.errors import InvalidBudget
from onedraw.privacy import conversions
from onedraw.privacy.numbers import epsilon_argument, largest, probability
from onedraw.privacy.stored import Stored

if TYPE_CHECKING:
    from onedraw.privacy.promises import RenyiDP


class Promise(Stored, key="kind", noun="promise", refuses=InvalidBudget):
    """A statement about every pair of neighbouring data sets.

    **Guarantee.** ``epsilon`` and ``delta`` are never below the true value for a mechanism that keeps the
    promise; ``implies`` is True only when a proof is known, so False means "not proven", not "false".
    """

    def epsilon(self, delta: float) -> float:
        """The smallest ε at this δ, rounded up; ``math.inf`` if there is none."""
        return self._epsilon(probability("δ", delta))

    def delta(self, epsilon: float) -> float:
        """The smallest δ at this ε, rounded up."""
        return self._delta(epsilon_argument(epsilon))

    @abc.abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abc.abstractmethod
    def _delta(self, epsilon: float) -> float: ...

    @property
    def pure_epsilon(self) -> float:
        """The smallest ε for which PureDP(ε) is proven to follow."""
        return math.inf

    @property
    def range_epsilon(self) -> float:
        """The smallest ε for which BoundedRange(ε) is proven to follow."""
        return 2.0 * self.pure_epsilon  # the log-ratio lies in [−ε, ε]

    @property
    def gaussian_mu(self) -> float:
        """The smallest μ for which GaussianDP(μ) is proven to follow."""
        return conversions.pure_to_gaussian(self.pure_epsilon)

    @property
    def zcdp_rho(self) -> float:
        """The smallest ρ for which ZCDP(ρ) is proven to follow."""
        return self.renyi.curve.slope if self.renyi is not None and self.renyi.limit == math.inf else math.inf

    @property
    def renyi(self) -> RenyiDP | None:
        """The best Rényi curve that is proven to follow."""
        return None

    @property
    def failure(self) -> float:
        """An upper bound on the probability of the event outside which ``outside_failure`` is kept: an (ε, δ)'s δ."""
        return 0.0

    @property
    def outside_failure(self) -> Promise:
        """What is kept outside that event: (ε, δ) is no worse than PureDP(ε) there (arXiv:1311.0776)."""
        return self

    @property
    def counted(self) -> tuple[tuple[Promise, int], ...]:
        """The single promises it is made of, with their multiplicities: itself, unless it is a composition."""
        return ((self, 1),)

    @property
    def quoted_delta(self) -> float:
        """The δ at which ε is quoted: its own, 0 of a pure promise, the public default where it names none."""
        return DELTA

    @property
    def is_pure(self) -> bool:
        """Whether it bounds log-ratios themselves, so that a budget of it has no use for anything but a sum of ε."""
        return self.pure_epsilon < math.inf

    @property
    def number(self) -> float:
        """The number it states (ε, μ, ρ); 0 where there is no single one."""
        return 0.0

    def allows(self, kind: Callable[[float], Promise]) -> float:
        """The largest number with which ``kind(number)`` is proven to imply this promise, rounded down; 0 where none is."""
        known = self._allowed.get(kind)
        return _largest_allowed(kind, self) if known is None else known

    @property
    def _allowed(self) -> Mapping[Callable[[float], Promise], float]:
        """What it allows in closed form."""
        return {type(self): self.number} if self.number else {}

    def total_variation(self, share: float = 1.0) -> float:
        """The γ that this share of its δ can pay for at its ε, rounded down; 0 where it has no δ to pay with."""
        return 0.0

    def less(self, gamma: float) -> Promise | None:
        """What exact draws must keep so that draws within total variation γ of them keep this; None if nothing would do."""
        return None if gamma else self

    def divergence(self, order: float) -> float:
        """The bound on D_λ that is proven to follow at one order; +∞ where none is."""
        return self.renyi.at_order(order) if self.renyi is not None else math.inf

    def implies(self, other: Promise) -> bool:
        """Whether every mechanism that keeps this promise is proven to keep ``other``."""
        if not isinstance(other, Promise):
            raise InvalidBudget(f"a promise can only imply another promise, not a {type(other).__name__}")
        return self == other or other._follows_from(self)

    @abc.abstractmethod
    def _follows_from(self, stronger: Promise) -> bool: ...

    def _keeps(self, epsilon: float, delta: float) -> bool:
        """Whether (ε, δ) is proven to follow. Both profiles are asked: each rounds in its own direction."""
        return self._delta(epsilon) <= delta or self._epsilon(delta) <= epsilon


@lru_cache(maxsize=1024)
def _largest_allowed(kind: Callable[[float], Promise], promise: Promise) -> float:
    found = largest(lambda one: kind(one).implies(promise), least=2.0**-498, most=2.0**39, precision=2.0**-40)
    return found or 0.0
