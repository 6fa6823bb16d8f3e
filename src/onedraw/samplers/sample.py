"""What a sampler returns: the draws, and apart from them what it noticed on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Sample:
    """``draws`` has one row per draw. ``diagnostics`` depends on the records and is for the curator alone."""

    draws: NDArray[np.float64]
    diagnostics: dict[str, Any] = field(default_factory=dict, repr=False)
    stages: dict[str, list[float]] | None = None
    """Of a sampler that publishes in stages, everything it publishes; the draws follow from it."""
