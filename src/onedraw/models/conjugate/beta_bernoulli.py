"""A proportion, or the average of any statistic with values in a public range, with a Beta prior.

The Beta–Bernoulli system of Geumlek et al. (A.1). Records may be any numbers in [lower, upper]: their place
in the range is a statistic in [0, 1], which is all the theorem needs (A.3, the Beta-sampled statistical
query).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models.model import (
    Array,
    Bound,
    ConjugateModel,
    Summary,
    count,
    number,
    prior_numbers,
    register_model,
    set_fields,
    shown,
)
from onedraw.models.sums.clamped_sums import STEPS, LatticeSum, summed
from onedraw.privacy import Provenance

from .distributions import Beta


@register_model
@dataclass(frozen=True)
class BetaBernoulli(ConjugateModel):
    """Beta(a, b) prior on a proportion.

    | record | counts as |
    | --- | --- |
    | below lower, above upper | lower, upper |
    | NaN, ±inf, None, not a number | ``missing`` (lower, unless declared) |
    """

    quantity: ClassVar[str] = "proportion"
    kinds: ClassVar[tuple[str, ...]] = ("binary", "number")
    error_is_telling = True

    prior: tuple[float, float] = (1.0, 1.0)
    lower: float = 0.0
    upper: float = 1.0
    missing: float | None = None
    public_records: int = 0

    def __post_init__(self) -> None:
        lower, upper = number("lower", self.lower), number("upper", self.upper)
        if not 1e-290 < upper - lower < 1e290:
            raise InvalidModel(f"lower must be below upper, but the range [{lower!r}, {upper!r}] came.")
        missing = lower if self.missing is None else number("missing", self.missing)
        if not lower <= missing <= upper:
            raise InvalidModel(f"missing must lie in [{lower!r}, {upper!r}] like every record, but {missing!r} came.")
        prior = prior_numbers("Beta", self.prior, length=2)
        set_fields(self, prior=prior, lower=lower, upper=upper, missing=missing,
                   public_records=count("public_records", self.public_records))  # fmt: skip

    @property
    def title(self) -> str:
        return "Proportion" if (self.lower, self.upper) == (0.0, 1.0) else "Average"

    @property
    def meaning(self) -> str:
        if self.title == "Proportion":
            return "The share of records with the positive value."
        return f"The average of the column, declared to lie between {shown(self.lower)} and {shown(self.upper)}."

    def unit(self, name: str) -> str:
        return "share" if self.title == "Proportion" else ""

    @property
    def public_range(self) -> tuple[float, float]:
        return self.lower, self.upper

    def column_units(self, centre: float = 0.0, scale: float = 1.0) -> tuple[Array, Array, Array]:
        """A share of the range lower … upper."""
        change, ones, zeros = super().column_units()
        return change, ones * (self.upper - self.lower), zeros + self.lower

    @property
    def prior_law(self) -> Beta:
        return Beta(*self.prior)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return ("proportion",)

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "statistic": Bound((0.0, 1.0), Provenance.ENFORCED, "records are clamped and rounded to a public lattice"),
            "sensitivity": Bound(1.0, Provenance.PROVED, "replacing a record moves the exact sum by at most 1"),
            "order_limit": Bound(1.0 + min(self.prior), Provenance.PROVED, "λ* = 1 + min(a, b) of the plain posterior"),
        }

    def _check_column(self, column: Any) -> None:
        if column.kind == "number" and not (self.lower <= column.lower and column.upper <= self.upper):
            raise InvalidModel(
                f"The target is declared on [{column.lower!r}, {column.upper!r}], the model on "
                f"[{self.lower!r}, {self.upper!r}]: most records would be clamped. Pass "
                f"lower={column.lower!r}, upper={column.upper!r}."
            )

    def _summarise(self, data: Any) -> Summary:
        assert self.missing is not None
        rows, total = summed(data, LatticeSum(self.lower, self.upper, self.missing))
        return Summary(rows, (Fraction(int(total[0]), STEPS),))

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Beta:
        (successes,), r, m = summary.total, Fraction(weight), Fraction(prior_factor)
        a, b = (Fraction(value) / m for value in self.prior)
        return Beta(float(a + r * successes), float(b + r * (summary.n - successes)))

    def _with_prior_from(self, summary: Summary) -> BetaBernoulli:
        law = self.posterior(summary)
        return replace(self, prior=(law.a, law.b))
