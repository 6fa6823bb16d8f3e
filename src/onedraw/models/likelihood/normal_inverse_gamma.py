"""The prior of regressions whose variance is a parameter: σ² ~ InvGamma(shape, rate) cut off below the floor.

Jewson et al. (arXiv:2307.05194), appendix: θ | σ² ~ N(0, 9σ²I), σ² ~ InvGamma(1, 1) truncated to σ² ≥ 0.01 for linear
regression; N(0, 1) weights independent of σ² for networks. The floor is the model's, not the prior's: it is what the
density's bound rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onedraw.errors import InvalidModel
from onedraw.models.model import positive_number


@dataclass(frozen=True)
class NormalInverseGamma:
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

    def to_dict(self) -> dict[str, Any]:
        return {"prior": "NormalInverseGamma", **vars(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> NormalInverseGamma:
        """The inverse of `to_dict`; strict."""
        expected = {"prior", "scale", "shape", "rate", "conjugate"}
        if not isinstance(stored, Mapping) or set(stored) != expected or stored["prior"] != "NormalInverseGamma":
            raise InvalidModel(
                f"A stored NormalInverseGamma prior has exactly the fields {', '.join(sorted(expected))}."
            )
        return cls(**{name: value for name, value in stored.items() if name != "prior"})
