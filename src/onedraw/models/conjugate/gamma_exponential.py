"""The rate of durations, with a Gamma prior; durations are clipped to [0, cap].

Here a record moves the *rate* of the posterior and n its shape, so the divergence between neighbours of a
plain posterior grows like n: only Diffused and Concentrated sampling make a useful promise (see mechanisms).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models.model import (
    Bound,
    ConjugateModel,
    Summary,
    count,
    number,
    positive_number,
    prior_numbers,
    register_model,
    set_fields,
)
from onedraw.models.sums.clamped_sums import STEPS, LatticeSum, summed
from onedraw.privacy import Provenance

from .distributions import Gamma


@register_model
@dataclass(frozen=True)
class GammaExponential(ConjugateModel):
    """Exponential durations whose rate has a Gamma(shape, rate) prior: ``shape`` events in a total time
    ``rate``.

    | record | counts as |
    | --- | --- |
    | below 0, above cap | 0, cap |
    | NaN, ±inf, None, not a number | ``missing`` (0, unless declared) |
    """

    quantity: ClassVar[str] = "rate of durations"
    title = "Rate of durations"
    meaning = "Events per unit of time; its inverse is the mean duration."
    kinds: ClassVar[tuple[str, ...]] = ("number", "count")

    prior: tuple[float, float]
    cap: float
    missing: float = 0.0
    public_records: int = 0

    def __post_init__(self) -> None:
        cap, missing = positive_number("cap", self.cap), number("missing", self.missing)
        if not 0.0 <= missing <= cap:
            raise InvalidModel(f"missing must lie in [0, {cap!r}] like every record, but {missing!r} came.")
        prior = prior_numbers("Gamma", self.prior, length=2)
        set_fields(self, prior=prior, cap=cap, missing=missing,
                   public_records=count("public_records", self.public_records))  # fmt: skip

    @property
    def prior_law(self) -> Gamma:
        return Gamma(*self.prior)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("rate",)

    @property
    def _bounds(self) -> dict[str, Bound]:
        limit = 1.0 + self.prior[1] / self.cap
        return {
            "cap": Bound(
                self.cap,
                Provenance.ENFORCED,
                "durations are clipped to [0, cap] and rounded to a public lattice",
            ),
            "sensitivity": Bound(
                self.cap, Provenance.PROVED, "replacing a record moves the exact sum by at most the cap"
            ),
            "order_limit": Bound(limit, Provenance.PROVED, "λ* = 1 + rate/cap of the plain posterior"),
        }

    def _summarise(self, data: Any) -> Summary:
        rows, steps = summed(data, LatticeSum(0.0, self.cap, self.missing))
        return Summary(rows, (int(steps[0]) * Fraction(self.cap) / STEPS,))

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Gamma:
        (time,), r, m = summary.total, Fraction(weight), Fraction(prior_factor)
        shape, rate = (Fraction(value) / m for value in self.prior)
        return Gamma(float(shape + r * summary.n), float(rate + r * time))

    def _with_prior_from(self, summary: Summary) -> GammaExponential:
        law = self.posterior(summary)
        return replace(self, prior=(law.shape, law.rate))
