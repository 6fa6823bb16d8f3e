"""How much weight the records may have in a Gibbs posterior, and what a given weight promises: one pair each.

The posterior is ∝ exp(−w Σ ℓ(θ, x_i)) π(θ) on one convex set, every ℓ(·, x) convex and m_ℓ-strongly convex
(m_ℓ ≥ 0), −log π m_π-strongly convex; m = n·w·m_ℓ + m_π, and ℓ(·, x) − ℓ(·, x') is G-Lipschitz, G ≤ 2L. Every
rule but the last is a limit on one number, μ(w) = wG/√m:

| rule | the limit on μ | source |
| --- | --- | --- |
| ``gdp`` | GaussianDP(μ), nothing lost | arXiv:2203.00263 |
| ``theorem7`` | μ²/2 ≤ (√(k+ε) − √k)², k = log 1/δ | Minami et al. (NIPS 2016), Theorem 7; 15 for the Gaussian mean |
| ``corollary8`` | μ ≤ ε/√(1 + 2 log 1/δ), where that is true | the same, Corollary 8 |
| ``theorem10`` | GaussianDP(μ) on a ball: no unknown constant | the same, Theorem 10, sharpened |
| ``rdp`` | ZCDP(μ²/2) | Geumlek et al. (NIPS 2017), A.7.1, Lemma 1 |
| ``bounded`` | BoundedRange(wϱ), ϱ the range of ℓ(·, x) − ℓ(·, x') | McSherry and Talwar; Theorems 3, 4 |

Pure functions of public numbers. Promises are rounded up, weights down: μ and wϱ are computed in rational
arithmetic and rounded once. Proofs and departures from the papers: gibbs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.privacy import ZCDP, ApproxDP, BoundedRange, GaussianDP, Promise, search
from onedraw.privacy.conversions import gaussian_delta, gaussian_mu
from onedraw.privacy.rounding import SLACK, TINY, down, fraction_down, fraction_up, root_up, text, up
from onedraw.privacy.validation import positive, probability

from .calibration import PRECISION


@dataclass(frozen=True)
class Curvature:
    """The public numbers a Lipschitz rule rests on; ``reach`` is k·√J for k records in J draws together.

    Several records of one person add their gradients, and J independent draws are one draw from a product,
    along which the log-ratio is √J times as steep: both only stretch G.
    """

    gradient_difference: float
    prior_strong_convexity: float
    strong_convexity: float = 0.0
    """m_ℓ, for one record."""
    n: int = 1
    records_per_person: int = 1
    draws: int = 1

    def __post_init__(self) -> None:
        positive("the gradient difference G", self.gradient_difference)
        if not (self.prior_strong_convexity >= 0.0 and self.strong_convexity >= 0.0):
            raise InvalidModel("Strong convexity is never below 0: a loss or prior that is not convex has no promise.")
        if not self.prior_strong_convexity + self.strong_convexity > 0.0:
            raise InvalidModel(
                "The prior has a flat coordinate (m_π = 0) and the loss has no curvature of its own, so nothing "
                "keeps two neighbouring posteriors together: no promise exists. Use a prior of finite scale."
            )

    @property
    def reach_squared(self) -> Fraction:
        """(G·k)²·J: the squared slope of the log-ratio per unit of weight."""
        return (Fraction(self.gradient_difference) * self.records_per_person) ** 2 * self.draws

    def total(self, weight: float) -> Fraction:
        """m = n·w·m_ℓ + m_π, exactly."""
        return self.n * Fraction(weight) * Fraction(self.strong_convexity) + Fraction(self.prior_strong_convexity)

    def mu_squared(self, weight: float) -> Fraction:
        """w²G²/m, exactly; it increases in the weight."""
        return Fraction(positive("the weight", weight)) ** 2 * self.reach_squared / self.total(weight)


def weight_at(mu: float, curvature: Curvature) -> float:
    """The largest w with wG/√m ≤ μ, rounded down.

    w²G² = μ²(n·m_ℓ·w + m_π) has the positive root w = [μ²nm_ℓ + √(μ⁴n²m_ℓ² + 4G²μ²m_π)]/(2G²); at G = 2L this is
    mathematics.md §4's [μ²nm_ℓ + √(μ⁴n²m_ℓ² + 16L²μ²m_π)]/(8L²), and μ√m_π/G where m_ℓ = 0.
    """
    square, reach = Fraction(mu) ** 2, curvature.reach_squared
    linear = square * curvature.n * Fraction(curvature.strong_convexity)
    root = root_up(linear**2 + 4 * reach * square * Fraction(curvature.prior_strong_convexity))
    weight = fraction_down((linear + Fraction(root)) / (2 * reach))
    while weight > 0.0 and curvature.mu_squared(weight) > square:
        weight = math.nextafter(weight, 0.0)
    if not weight > 0.0:
        raise PromiseRefused(
            f"No weight that a floating-point number can hold keeps μ = {text(mu)} with these bounds: the records "
            "would not matter. Use a larger budget, tighter bounds on the records, or a narrower prior."
        )
    return weight


# ── gdp, and theorem10 on a ball ───────────────────────────────────────────────────────────────────────────


def gdp_weight(budget: Promise, curvature: Curvature) -> float:
    """The largest weight whose GaussianDP(wG/√m) implies the budget."""
    return weight_at(gdp_mu(budget), curvature)


def gdp_promise(weight: float, curvature: Curvature) -> GaussianDP:
    """GaussianDP(wG/√m), exact draw, no differentiability needed (arXiv:2203.00263)."""
    return GaussianDP(root_up(curvature.mu_squared(weight)))


@lru_cache(maxsize=256)
def gdp_mu(budget: Promise) -> float:
    """The largest μ with GaussianDP(μ) ⇒ budget, rounded down."""
    if isinstance(budget, GaussianDP):
        return budget.mu
    if isinstance(budget, ApproxDP):
        mu = gaussian_mu(budget.stated_epsilon, budget.stated_delta)
        return mu if mu > 0.0 else _none(GaussianDP, budget)
    return largest_number(GaussianDP, budget)


# ── Theorem 7 (and 15) ─────────────────────────────────────────────────────────────────────────────────────


def theorem7_weight(epsilon: float, delta: float, curvature: Curvature) -> float:
    """The largest weight whose tail bound at ε is δ: 2L²w²/m ≤ (√(k+ε) − √k)², k = log 1/δ."""
    weight = weight_at(theorem7_mu(epsilon, delta), curvature)
    while theorem7_delta(weight, epsilon, curvature) > delta:
        weight = down(weight)
    return weight


def theorem7_promise(weight: float, epsilon: float, curvature: Curvature) -> ApproxDP:
    """(ε, exp(−(m/(8L²w²))(ε − 2L²w²/m)²)) at a given ε > 2L²w²/m, with G for 2L; refused below."""
    delta = theorem7_delta(weight, epsilon, curvature)
    if not delta < 1.0:
        raise PromiseRefused(
            f"Theorem 7 says nothing about weight {text(weight)} at ε = {text(epsilon)}: it needs ε > 2L²w²/m = "
            f"{float(curvature.mu_squared(weight) / 2):.6g}. Use a smaller weight, a larger ε, or the rule gdp."
        )
    return ApproxDP(epsilon, delta)


def theorem7_mu(epsilon: float, delta: float) -> float:
    """√2·(√(k+ε) − √k), rounded down, written without its cancellation."""
    k = -math.log(_small(delta))
    return down(math.sqrt(2.0) * positive("ε", epsilon) / (math.sqrt(k + epsilon) + math.sqrt(k)))


def theorem7_delta(weight: float, epsilon: float, curvature: Curvature) -> float:
    """exp(−(ε − s)²/(4s)) with s = w²G²/(2m) (2L²w²/m at G = 2L), rounded up; 1 where ε ≤ s."""
    spread = fraction_up(curvature.mu_squared(weight) / 2)
    gap = positive("ε", epsilon) - spread
    if not gap > 0.0:
        return 1.0
    exponent = gap * gap / (4.0 * spread)
    return min(1.0, up(math.exp(-exponent), relative=SLACK * (1.0 + exponent), absolute=TINY))


# ── Corollary 8 ────────────────────────────────────────────────────────────────────────────────────────────


def corollary8_weight(epsilon: float, delta: float, curvature: Curvature) -> float:
    """w = (ε/2L)√(m_π/(1 + 2 log 1/δ)), as printed: the loss's own strong convexity is not used."""
    return weight_at(corollary8_mu(epsilon, delta), _prior_only(curvature))


def corollary8_promise(weight: float, delta: float, curvature: Curvature) -> ApproxDP:
    """(2Lw√((1 + 2 log 1/δ)/m_π), δ) as printed; whether it is true is `corollary8_holds`."""
    mu = root_up(_prior_only(curvature).mu_squared(weight))
    return ApproxDP(up(mu * math.sqrt(1.0 - 2.0 * math.log(_small(delta)))), delta)


def corollary8_mu(epsilon: float, delta: float) -> float:
    """ε/√(1 + 2 log 1/δ), rounded down."""
    return down(positive("ε", epsilon) / math.sqrt(1.0 - 2.0 * math.log(_small(delta))))


def corollary8_holds(epsilon: float, delta: float) -> bool:
    """Whether Corollary 8 is true at (ε, δ): the exact δ of GaussianDP(ε/√(1 + 2 log 1/δ)) is at most δ.

    The linear loss attains GaussianDP(wG/√m), so the test is necessary as well as sufficient (errata 16).
    """
    return gaussian_delta(corollary8_mu(epsilon, delta), epsilon) <= delta


def _prior_only(curvature: Curvature) -> Curvature:
    return Curvature(
        curvature.gradient_difference,
        curvature.prior_strong_convexity,
        records_per_person=curvature.records_per_person,
        draws=curvature.draws,
    )


# ── rdp ────────────────────────────────────────────────────────────────────────────────────────────────────


def rdp_weight(budget: Promise, curvature: Curvature) -> float:
    """The largest weight whose ZCDP(2w²L²/m) implies the budget."""
    rho = largest_number(ZCDP, budget)
    weight = weight_at(down(math.sqrt(2.0 * rho)), curvature)
    while rdp_promise(weight, curvature).rho > rho:
        weight = math.nextafter(weight, 0.0)
    return weight


def rdp_promise(weight: float, curvature: Curvature) -> ZCDP:
    """ZCDP(w²G²/(2m)), which is 2w²L²/m at G = 2L (Geumlek et al., Lemma 1)."""
    return ZCDP(fraction_up(curvature.mu_squared(weight) / 2))


# ── the Gaussian mean, Theorem 15 ──────────────────────────────────────────────────────────────────────────


def gaussian_mean(norm: float, *, precision: float, n: int, draws: int = 1, records_per_person: int = 1) -> Curvature:
    """ℓ = ½‖θ − x‖², ‖x‖ ≤ r, prior N(0, I/λ): G = 2r, m_ℓ = 1, so μ = 2wr/√(nw + λ), and that is exact."""
    return Curvature(
        2.0 * norm, precision, strong_convexity=1.0, n=n, draws=draws, records_per_person=records_per_person
    )


# ── bounded ────────────────────────────────────────────────────────────────────────────────────────────────


def bounded_weight(epsilon: float, loss_range: float, *, records_per_person: int = 1, draws: int = 1) -> float:
    """ε/(k·J·ϱ), rounded down; with ϱ = 2Δ this is the exponential mechanism's ε/(2Δ)."""
    copies = records_per_person * draws
    return fraction_down(Fraction(positive("ε", epsilon)) / (Fraction(positive("ϱ", loss_range)) * copies))


def bounded_promise(weight: float, loss_range: float, *, records_per_person: int = 1, draws: int = 1) -> BoundedRange:
    """BoundedRange(k·J·w·ϱ): the range of a sum of log-ratios is at most the sum of their ranges."""
    copies = records_per_person * draws
    return BoundedRange(fraction_up(Fraction(positive("the weight", weight)) * Fraction(loss_range) * copies))


def loss_range(sensitivity: float, known_range: float | None = None) -> float:
    """ϱ = sup over records of the oscillation of ℓ(·, x) − ℓ(·, x'): at most 2Δ, or a sharper known bound."""
    doubled = 2.0 * positive("the sensitivity Δ", sensitivity)
    return doubled if known_range is None else min(doubled, positive("the range ϱ", known_range))


# ── shared ─────────────────────────────────────────────────────────────────────────────────────────────────


def largest_number(kind: Callable[[float], Promise], budget: Promise) -> float:
    """The largest number with ``kind(number)`` ⇒ budget, to a relative 2⁻⁴⁰, rounded down; refused if none."""
    found = search.largest(
        lambda value: kind(value).implies(budget), least=2.0**-498, most=2.0**39, precision=PRECISION
    )
    return _none(kind, budget) if found is None else found


def _none(kind: Callable[[float], Promise], budget: Promise) -> float:
    raise PromiseRefused(
        f"No {getattr(kind, '__name__', 'promise')} is proven to imply {budget}, however small its number. Choose "
        "another kind of budget, or one with a δ above 0."
    )


def _small(delta: float) -> float:
    if not probability("δ", delta) > 0.0:
        raise PromiseRefused("δ = 0 leaves nothing for the tail a Lipschitz loss has. Choose a δ above 0.")
    return delta
