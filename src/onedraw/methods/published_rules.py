"""Rules as the literature has them, to compare or reproduce: the defaults of `Gibbs` and `BetaDivergence` allow more.

| rule | what it says | source |
| --- | --- | --- |
| ``theorem7`` | μ²/2 ≤ (√(k+ε) − √k)², k = log 1/δ, for μ = wG/√m | Minami et al. (NIPS 2016), Theorem 7 (15) |
| ``corollary8`` | μ ≤ ε/√(1 + 2 log 1/δ), where that is true (errata 16) | the same, Corollary 8 |
| ``theorem10`` | GaussianDP(μ) on a ball: no unknown constant | the same, Theorem 10, sharpened |
| ``jewson`` | w = 1 and the smallest β with 2Δ(β) ≤ ε (errata 3) | Jewson, Ghalebikesabi, Holmes (NeurIPS 2023) |

Functions of public numbers; promises are rounded up, weights down. Proofs, departures: methods/gibbs/proof.md and
methods/beta_divergence/proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from onedraw.errors import PromiseRefused, UnsupportedBudget
from onedraw.methods.convex_bounds import GDP, ConvexBounds, Curvature, Rule, weight_at
from onedraw.models.likelihood import LARGEST_BETA, GaussianNoise
from onedraw.plans import Request
from onedraw.privacy import ApproxDP, numbers
from onedraw.privacy.conversions import gaussian_delta
from onedraw.privacy.numbers import SLACK, TINY, down, fraction_up, positive, probability, root_up, text, up

# ── Theorem 7 (and 15) ─────────────────────────────────────────────────────────────────────────────────────


def theorem7_weight(epsilon: float, delta: float, curvature: Curvature) -> float:
    """The largest weight whose tail bound at ε is δ: 2L²w²/m ≤ (√(k+ε) − √k)², k = log 1/δ."""
    k = -math.log(_small(delta))  # √2·(√(k+ε) − √k), rounded down, is written without its cancellation
    mu = down(math.sqrt(2.0) * positive("ε", epsilon) / (math.sqrt(k + epsilon) + math.sqrt(k)))
    weight = weight_at(mu, curvature)
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
    return weight_at(corollary8_mu(epsilon, delta), replace(curvature, strong_convexity=0.0))


def corollary8_promise(weight: float, delta: float, curvature: Curvature) -> ApproxDP:
    """(2Lw√((1 + 2 log 1/δ)/m_π), δ) as printed; whether it is true is `corollary8_holds`."""
    mu = root_up(replace(curvature, strong_convexity=0.0).mu_squared(weight))
    return ApproxDP(up(mu * math.sqrt(1.0 - 2.0 * math.log(_small(delta)))), delta)


def corollary8_mu(epsilon: float, delta: float) -> float:
    """ε/√(1 + 2 log 1/δ), rounded down."""
    return down(positive("ε", epsilon) / math.sqrt(1.0 - 2.0 * math.log(_small(delta))))


def corollary8_holds(epsilon: float, delta: float) -> bool:
    """Whether Corollary 8 is true at (ε, δ): the exact δ of GaussianDP(ε/√(1 + 2 log 1/δ)) is at most δ.

    The linear loss attains GaussianDP(wG/√m), so the test is necessary as well as sufficient (errata 16).
    """
    return gaussian_delta(corollary8_mu(epsilon, delta), epsilon) <= delta


def corollary8_true_at(request: Request, weight: float, bounds: ConvexBounds) -> bool:
    """The (ε, δ) the corollary claims of this very weight, put to the exact Gaussian profile."""
    return corollary8_holds(_printed(request, weight, bounds).stated_epsilon, _pair(request)[1])


def _corollary8(request: Request, weight: float, bounds: ConvexBounds) -> ApproxDP:
    """As printed, and refused where that is not true."""
    (epsilon, delta), printed = _pair(request), _printed(request, weight, bounds).stated_epsilon
    if not corollary8_holds(printed, delta):
        true_delta = gaussian_delta(corollary8_mu(printed, delta), printed)
        raise PromiseRefused(
            f"Corollary 8 claims (ε = {epsilon:.6g}, δ = {delta:.3g}) for weight {weight:.6g}, and that is false: a "
            f"linear loss with these bounds has δ = {true_delta:.3g} there. The corollary does not follow from "
            "Theorem 7 beyond ε ≈ 1 and fails from ε ≈ 9 on (errata 16). Use rule='gdp', which allows the largest "
            "weight that is true, or as_published=True to release the paper's figure marked as not proven."
        )
    return _corollary8_as_published(request, weight, bounds)


def _corollary8_as_published(request: Request, weight: float, bounds: ConvexBounds) -> ApproxDP:
    printed = _printed(request, weight, bounds)
    return ApproxDP(*_pair(request)) if printed.implies(request.exact_budget) else printed


def _printed(request: Request, weight: float, bounds: ConvexBounds) -> ApproxDP:
    return corollary8_promise(weight, _pair(request)[1], _as_printed(request, bounds))


def _as_printed(request: Request, bounds: ConvexBounds) -> Curvature:
    """The paper's own constants: 2L, and the prior's curvature alone."""
    if bounds.lipschitz is None:
        raise UnsupportedBudget(
            f"Corollary 8 needs a Lipschitz loss, and that of {type(request.model).__name__} is not: only the "
            "difference of two records is. Use rule='gdp' or 'theorem7' (Theorem 15 here)."
        )
    return replace(bounds.curvature(request), gradient_difference=2.0 * bounds.lipschitz)


def _pair(request: Request) -> tuple[float, float]:
    """(ε, δ), the only kind of budget these theorems speak of."""
    budget = request.exact_budget
    assert isinstance(budget, ApproxDP)
    return budget.stated_epsilon, budget.stated_delta


def _small(delta: float) -> float:
    if not probability("δ", delta) > 0.0:
        raise PromiseRefused("δ = 0 leaves nothing for the tail a Lipschitz loss has. Choose a δ above 0.")
    return delta


_COROLLARY8 = Rule(
    "Corollary 8, Minami et al. (NIPS 2016), where the exact Gaussian profile confirms it (errata 16)",
    (ApproxDP,),
    lambda request, bounds: corollary8_weight(*_pair(request), _as_printed(request, bounds)),
    _corollary8,
)

AS_PUBLISHED = replace(
    _COROLLARY8,
    theorem="Corollary 8, Minami et al. (NIPS 2016), as published; NOT PROVEN (errata 16)",
    promise=_corollary8_as_published,
)

RULES: dict[str, Rule] = {
    "theorem7": Rule(
        "Theorem 7, Minami et al. (NIPS 2016), with G for 2L",
        (ApproxDP,),
        lambda request, bounds: theorem7_weight(*_pair(request), bounds.curvature(request)),
        lambda request, weight, bounds: theorem7_promise(weight, _pair(request)[0], bounds.curvature(request)),
        of_a_mean="Theorem 15, Minami et al. (NIPS 2016), supplement B",
    ),
    "corollary8": _COROLLARY8,
    "theorem10": replace(
        GDP, theorem="Theorem 10, Minami et al. (NIPS 2016), sharpened: GaussianDP(wG/√m) on a ball (arXiv:2203.00263)"
    ),
}


# ── w = 1, and β as the budget asks for it ───────────────────────────────────────────────────────────────────────────


def jewson_beta(sensitivity: Callable[[float], float], largest_range: float, *, records_per_person: int = 1) -> float:
    """The smallest β with 2Δ(β)·k within the range at w = 1: 1 + 2/ε for discrete models.

    Where the density exceeds 1, Δ has a least value and a small ε has no β at all (errata 3).
    """

    def reached(distance: float) -> float:
        return fraction_up(2 * Fraction(sensitivity(1.0 + distance)) * records_per_person)

    low = high = 2.0**-19
    while reached(high) > largest_range:
        if reached(high) > reached(low):
            return 1.0 + _first_kept(reached, low / 2.0, _least(reached, low / 2.0, high, largest_range), largest_range)
        low, high = high, 2.0 * high
        if high >= LARGEST_BETA:
            raise PromiseRefused(
                f"With w = 1 a range of {text(largest_range)} needs a β above {LARGEST_BETA:g}, where the loss no "
                "longer sees the records. Use rule='optimal', which lowers the weight, or a larger budget."
            )
    return 1.0 + _first_kept(reached, low, high, largest_range)


def _least(reached: Callable[[float], float], low: float, high: float, largest_range: float) -> float:
    """Where Δ is least between the two, if that is small enough."""
    from scipy import optimize

    found = optimize.minimize_scalar(reached, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * high})
    if reached(found.x) > largest_range:
        raise PromiseRefused(
            f"With w = 1 no β at all certifies a range of {text(largest_range)}: the density may exceed 1 and the least "
            f"range is {reached(found.x):.6g}, at β = {1.0 + found.x:.6g} (2e·ln M for a density of at most M). Use "
            "rule='optimal', whose weight makes every ε possible, a larger budget, or a higher variance floor."
        )
    return float(found.x)


def _first_kept(reached: Callable[[float], float], low: float, high: float, largest_range: float) -> float:
    """The smallest distance β − 1 that keeps the range, Δ decreasing between the two; kept at the end returned.

    β itself is what is stored, so β is searched for, and rounded as it will be.
    """
    if reached((1.0 + high) - 1.0) > largest_range:
        return high
    found, _ = numbers.narrowed(lambda beta: reached(beta - 1.0) <= largest_range, true=1.0 + high, false=1.0 + low)
    return found - 1.0


def normal_sensitivity(variance: float) -> Callable[[float], float]:
    """Δ(β) = M^{β−1}/(β−1), M = 1/√(2πv), rounded up: of a normal density whose variance is at least v."""
    logarithm = -0.5 * math.log(2.0 * math.pi * positive("the variance", variance))

    def sensitivity(beta: float) -> float:
        exponent = (beta - 1.0) * logarithm
        size = math.exp(exponent) if exponent < 700.0 else math.inf
        return up(size / (beta - 1.0), relative=2.0**-44 * (1.0 + abs(exponent)), absolute=2.0**-1000)

    return sensitivity


def published_variance(model: Any) -> float | None:
    """The variance the published code takes for the floor of a Gaussian model: that of its coefficients' prior.

    9 for the linear model, 1 for the network. None for every other likelihood, where the code is right.
    """
    gaussian = isinstance(getattr(model, "likelihood", None), GaussianNoise)
    scale = getattr(model.prior, "scale", None) if gaussian else None
    return None if scale is None else float(scale) ** 2
