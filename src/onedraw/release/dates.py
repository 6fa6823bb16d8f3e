"""Which released numbers are dates, and how they are written.

A model sees a date as days since the first declared day. A mean, a median or a quantile of such numbers is a date again; a
standard error, a variance or a coefficient is not, and stays in days. Everything needed is on the certificate (`data.dates`).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onedraw.data.dates import compiled, shown_day
from onedraw.models import ColumnQuantiles, Columns, GaussianMean, NumberTable
from onedraw.plans import Plan

from .certificate import Certificate


@dataclass(frozen=True)
class DayScale:
    """The first declared day of a column, and whether the time of day counts."""

    first: datetime.date
    has_time: bool

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> DayScale | None:
        """Return the scale of a column by what is declared; None where a part of the date makes levels of it."""
        if "part" in stated:
            return None
        return cls(datetime.date.fromisoformat(stated["first"]), compiled(stated["format"]).has_time)

    def write(self, days: float) -> str:
        return shown_day(self.first, days, clock=self.has_time)


def scales_of(certificate: Certificate, plan: Plan) -> dict[str, DayScale]:
    """Return the scale of each released number that is a date, by its name."""
    stated, target, model = certificate.data.dates or {}, certificate.data.target, plan.model
    scales = {name: scale for name, one in stated.items() if (scale := DayScale.of(one)) is not None}
    if isinstance(model, Columns):
        return {f"mean of {name}": scale for name, scale in scales.items()}
    dated = isinstance(model, ColumnQuantiles | GaussianMean) or (isinstance(model, NumberTable) and model.is_mean)
    if not dated or target not in scales:
        return {}
    return {name: scales[target] for name in certificate.draw.names if not model.unit(name)}
