"""What a coefficient does, as a multiple people speak of: odds of a class, or rates of counts, for a sensible step of its column.

For one dollar more the odds are multiplied by 1.0003, which says nothing. The step is the one that the schema declares
(``step:``); otherwise 1 where a column is 0 or 1, and else 1, 2 or 5 times a power of ten, the one nearest to a tenth of the
declared range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onedraw.models import Model
from onedraw.release import Certificate

from .coefficients import Row
from .formatting import brief

LARGEST_EXPONENT = 20.0
"""Beyond e^20 a factor is no news any more."""


@dataclass(frozen=True)
class Ratios:
    """``name`` heads the column of the table; ``steps`` are by the coefficient's name."""

    name: str
    what: str
    steps: dict[str, float]

    def note(self, *, interval: bool) -> str:
        factor = ", and the interval of the factor" if interval else ""
        return f"{self.name}: by how much {self.what} multiplied for so much more of the column (one, if nothing is said){factor}."

    def words(self, row: Row) -> tuple[str, str]:
        """("× 1.3", "1.2 to 1.5, per 10"); empty for what is no coefficient of a column."""
        if row.name not in self.steps:
            return "", ""
        step = self.steps[row.name]
        ends = None if row.interval is None else " to ".join(factor(step * end) for end in row.interval)
        per = "" if step == 1.0 else f"per {brief(step)}"
        return f"× {factor(step * row.value)}", ", ".join(filter(None, (ends, per)))


def ratios_of(certificate: Certificate, model: Model) -> Ratios | None:
    """None for a model whose coefficients multiply nothing."""
    if model.factor is None:
        return None
    name, what = model.factor
    return Ratios(name, what, steps_of(certificate, model))


def steps_of(certificate: Certificate, model: Any) -> dict[str, float]:
    """By the name of each column."""
    features = model.features
    names = features.column_names[: features.count]
    declared = (certificate.data.declared or {}).get("columns", {})
    if features.box is None:
        return dict.fromkeys(names, 1.0)
    return {
        name: float(declared.get(name, {}).get("step") or usual_step(low, high))
        for name, low, high in zip(names, *features.ends, strict=True)
    }


def usual_step(low: float, high: float) -> float:
    """Of 1, 2 and 5 times powers of ten the one nearest, as a factor, to a tenth of the range; 1 for 0 to 1."""
    tenth = (high - low) / 10.0
    if (low, high) == (0.0, 1.0) or not tenth > 0.0:
        return 1.0
    power = math.floor(math.log10(tenth))
    steps = [float(f"{lead}e{power}") for lead in (1, 2, 5, 10)]
    return min(steps, key=lambda step: abs(math.log(step / tenth)))


def factor(exponent: float) -> str:
    if exponent > LARGEST_EXPONENT:
        return "very many"
    return "nearly 0" if exponent < -LARGEST_EXPONENT else brief(math.exp(exponent))
