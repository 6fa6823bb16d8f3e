"""The probabilities of declared categories, with a Dirichlet prior (Geumlek et al., A.6.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from onedraw.errors import InvalidModel
from onedraw.models.model import Bound, ConjugateModel, Summary, count, prior_numbers, register_model, set_fields
from onedraw.models.sums.clamped_sums import Tally, summed
from onedraw.privacy import Provenance

from .distributions import Dirichlet


@register_model
@dataclass(frozen=True)
class DirichletCategorical(ConjugateModel):
    """Dirichlet(α) prior on the probabilities of len(prior) categories; ``levels`` are their names, if they
    have any.

    | record | counts as |
    | --- | --- |
    | a code 0, …, len(prior) − 1 (2.0 is 2) | itself |
    | any other number, NaN, None, not a number | category ``missing`` (0, unless declared) |
    """

    quantity: ClassVar[str] = "category probabilities"
    title, form = "Histogram", "shares"
    meaning = "The share of each level; together they make up the whole."
    error_is_telling = True
    kinds: ClassVar[tuple[str, ...]] = ("category", "binary")

    prior: tuple[float, ...]
    levels: tuple[str, ...] | None = None
    missing: int = 0
    public_records: int = 0

    def __post_init__(self) -> None:
        prior = prior_numbers("Dirichlet", self.prior)
        if len(prior) < 2:
            raise InvalidModel(
                "A Dirichlet prior needs one parameter for each of at least two categories, but "
                f"{len(prior)} came. With one category there is nothing to estimate."
            )
        levels = None if self.levels is None else tuple(str(level) for level in self.levels)
        if levels is not None and len(set(levels)) != len(prior):
            raise InvalidModel(
                f"levels must name the {len(prior)} categories of the prior, each once; {len(levels)} came."
            )
        missing = count("missing", self.missing)
        if missing >= len(prior):
            raise InvalidModel(f"missing must be one of the codes 0 to {len(prior) - 1}, but {missing} came.")
        set_fields(self, prior=prior, levels=levels, missing=missing,
                   public_records=count("public_records", self.public_records))  # fmt: skip

    def unit(self, name: str) -> str:
        return "share"

    @property
    def prior_law(self) -> Dirichlet:
        return Dirichlet(self.prior)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        return self.levels or tuple(f"category {code}" for code in range(len(self.prior)))

    @property
    def _bounds(self) -> dict[str, Bound]:
        return {
            "categories": Bound(float(len(self.prior)), Provenance.ENFORCED, "undeclared codes become `missing`"),
            "sensitivity": Bound(
                1.0, Provenance.PROVED, "replacing a record moves one count down and one up, by 1 each"
            ),
            "order_limit": Bound(1.0 + min(self.prior), Provenance.PROVED, "λ* = 1 + min α of the plain posterior"),
        }

    def _check_column(self, column: Any) -> None:
        declared = 2 if column.levels is None else len(column.levels)
        if declared != len(self.prior):
            raise InvalidModel(
                f"The target is declared with {declared} levels, the prior has {len(self.prior)} parameters. "
                f"Each level needs its own. Pass a prior of length {declared}."
            )

    def _summarise(self, data: Any) -> Summary:
        rows, counts = summed(data, Tally(len(self.prior), self.missing))
        return Summary(rows, tuple(Fraction(int(value)) for value in counts))

    def posterior(self, summary: Summary, *, weight: float = 1.0, prior_factor: float = 1.0) -> Dirichlet:
        r, m = Fraction(weight), Fraction(prior_factor)
        pairs = zip(self.prior, summary.total, strict=True)
        return Dirichlet(tuple(float(Fraction(alpha) / m + r * counted) for alpha, counted in pairs))

    def _with_prior_from(self, summary: Summary) -> DirichletCategorical:
        return replace(self, prior=self.posterior(summary).alpha)
