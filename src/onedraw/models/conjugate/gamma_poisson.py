"""The rate of counts, with a Gamma prior; counts are clipped to [0, cap], as in A.6.2 of Geumlek et al."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models.model import Bound, ConjugateModel, Summary, count, prior_numbers, register_model, set_fields, shown
from onedraw.models.sums.clamped_sums import STEPS, CountSum, summed
from onedraw.privacy import Provenance

from .distributions import Gamma


@register_model
@dataclass(frozen=True)
class GammaPoisson(ConjugateModel):
    """Poisson counts whose rate has a Gamma(shape, rate) prior: ``shape`` events seen in ``rate`` records.

    | record | counts as |
    | --- | --- |
    | below 0, above cap | 0, cap |
    | not whole | the nearest whole number |
    | NaN, ±inf, None, not a number | ``missing`` (0, unless declared) |
    """

    quantity: ClassVar[str] = "rate of counts"
    title = "Rate of counts"
    kinds: ClassVar[tuple[str, ...]] = ("count", "binary")

    prior: tuple[float, float]
    cap: int
    missing: int = 0
    public_records: int = 0

    def __post_init__(self) -> None:
        cap, missing = count("cap", self.cap, least=1), count("missing", self.missing)
        if cap > STEPS:
            raise InvalidModel(f"cap must be at most {STEPS} for exact sums, but {cap} came. Count in larger units.")
        if missing > cap:
            raise InvalidModel(f"missing must lie in [0, {cap}] like every record, but {missing} came.")
        prior = prior_numbers("Gamma", self.prior, length=2)
        set_fields(self, prior=prior, cap=cap, missing=missing,
                   public_records=count("public_records", self.public_records))  # fmt: skip

    @property
    def meaning(self) -> str:
        return f"The expected count of a record; counts above {shown(self.cap)} were read as {shown(self.cap)}."

    @property
    def public_range(self) -> tuple[float, float]:
        return 0.0, float(self.cap)

    @property
    def prior_law(self) -> Gamma:
        return Gamma(*self.prior)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("rate",)

    @property
    def _bounds(self) -> dict[str, Bound]:
        limit = 1.0 + self.prior[0] / self.cap
        return {
            "cap": Bound(float(self.cap), Provenance.ENFORCED, "counts are clipped to [0, cap]"),
            "sensitivity": Bound(
                float(self.cap), Provenance.PROVED, "replacing a record moves the sum by at most the cap"
            ),
            "order_limit": Bound(limit, Provenance.PROVED, "λ* = 1 + shape/cap of the plain posterior"),
        }

    def _summarise(self, data: Any) -> Summary:
        rows, total = summed(data, CountSum(self.cap, self.missing))
        return Summary(rows, (Fraction(int(total[0])),))

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Gamma:
        (events,), r, m = summary.total, Fraction(weight), Fraction(prior_factor)
        shape, rate = (Fraction(value) / m for value in self.prior)
        return Gamma(float(shape + r * events), float(rate + r * summary.n))

    def _with_prior_from(self, summary: Summary) -> GammaPoisson:
        law = self.posterior(summary)
        return replace(self, prior=(law.shape, law.rate))
