"""The prior of regressions whose variance is a parameter: σ² ~ InvGamma(shape, rate) cut off below the floor.

Jewson et al. (arXiv:2307.05194), appendix: θ | σ² ~ N(0, 9σ²I), σ² ~ InvGamma(1, 1) truncated to σ² ≥ 0.01 for linear
regression; N(0, 1) weights independent of σ² for networks. The floor is the model's, not the prior's: it is what the
density's bound rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

from onedraw.errors import InvalidModel
from onedraw.models.model import positive_number
from onedraw.models.priors import Prior


@dataclass(frozen=True)
class NormalInverseGamma(Prior):
    """θ | σ² ~ N(0, scale²·σ²·I), or N(0, scale²·I) if not ``conjugate``; σ² ~ InvGamma(shape, rate) on σ² ≥ floor."""

    scale: float = 3.0
    shape: float = 1.0
    rate: float = 1.0
    conjugate: bool = True

    def __post_init__(self) -> None:
        for name in ("scale", "shape", "rate"):
            value = positive_number(name, getattr(self, name))
            if not 1e-6 <= value <= 1e6:
                raise InvalidModel(f"{name} must lie between 1e-6 and 1e6, but {value!r} came. Rescale the response.")
            object.__setattr__(self, name, value)
        if not isinstance(self.conjugate, bool):
            raise InvalidModel(f"conjugate must be True or False, but a {type(self.conjugate).__name__} came.")
