"""How well a Gibbs draw will predict, for the same weight that is private: PAC-Bayes for the hinge loss.

Source: Minami et al. (NIPS 2016), supplement C.2, Theorem 18 and Example 19; Alquier, Ridgway, Chopin
(arXiv:1506.04091), Theorems 4.1, 4.2. Records (z, y), ‖z‖ ≤ r, y = ±1, hinge loss without intercept, prior N(0,
I/(nλ)). For the posterior of weight w on the *sum* of losses, with probability at least 1 − α over the records,

    E R(θ)  ≤  E R_n(θ) + [f(nw, n) + KL(posterior ‖ prior) + log 1/α]/(nw),
    f(b, n) = b²/(4n) − (d/2) log(1 − r²b²/(2λn²)),        b < n√(2λ)/r,

**Two corrections** (errata 22). The theorem's β multiplies the *mean* loss and the posterior's w the sum, so β = nw;
Example 19 takes them for one. And its f, with ½ for d/2 and 4λ for 2λ, is false even in d = 1: the loss lies in
[0, 1 + r‖θ‖], Hoeffding gives b²(1 + r‖θ‖)²/(8n) ≤ b²(1 + r²‖θ‖²)/(4n), and averaging over the prior gives the f above.

R_n and KL depend on the records: the left-hand side is a statement for the curator. What is public, and can be
weighed before any record is read, is `hoeffding`, `weight_limit` and the promise of a weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from onedraw.errors import InvalidBudget, InvalidModel
from onedraw.methods.convex_bounds import Curvature, gdp_promise, gdp_weight
from onedraw.privacy import GaussianDP, Promise
from onedraw.privacy.numbers import down, positive, positive_integer, probability, up


@dataclass(frozen=True)
class HingePacBayes:
    """The hinge loss on n records of norm at most ``data_norm`` in ``features`` dimensions, prior N(0, I/(nλ)).

    ``regularisation`` is the λ of (λ/2)‖θ‖² beside the mean loss, so that the prior's precision is nλ.
    """

    n: int
    features: int
    data_norm: float
    regularisation: float

    def __post_init__(self) -> None:
        for name in ("n", "features"):
            positive_integer(name, getattr(self, name))
        if not all(math.isfinite(x) and x > 0.0 for x in (self.data_norm, self.regularisation)):
            raise InvalidModel(
                "data_norm and regularisation must be finite and above 0: the bound rests on a proper prior and on "
                "features of bounded norm."
            )

    @property
    def weight_limit(self) -> float:
        """w < √(2λ)/r: beyond it the prior's tail outweighs the bound. Rounded down."""
        return down(math.sqrt(2.0 * self.regularisation) / self.data_norm)

    @property
    def curvature(self) -> Curvature:
        """L = r and m_π = nλ: the numbers of the privacy rules for this very posterior."""
        return Curvature(2.0 * self.data_norm, down(self.n * self.regularisation), n=self.n)

    def hoeffding(self, weight: float) -> float:
        """f(nw, n), rounded up: a bound on both log-moments of b(R − R_n) averaged over prior and records."""
        filled = self._filled(weight)
        return up(self.n * weight * weight / 4.0 - self.features / 2.0 * math.log1p(-filled), relative=2.0**-40)

    def risk_bound(self, weight: float, *, empirical_risk: float, divergence: float, alpha: float) -> float:
        """The bound on E R for given E R_n and KL(posterior ‖ prior), true with probability ≥ 1 − α. Curator only."""
        terms = self.hoeffding(weight) + _at_least_zero("divergence", divergence) + self._confidence(alpha)
        return up(_at_least_zero("empirical_risk", empirical_risk) + terms / (self.n * weight), relative=2.0**-40)

    def oracle_bound(self, weight: float, *, risk: float, divergence: float, alpha: float) -> float:
        """The bound against any law ρ of risk E_ρ R and divergence KL(ρ ‖ prior), true with probability ≥ 1 − 2α."""
        terms = self.hoeffding(weight) + _at_least_zero("divergence", divergence) + self._confidence(alpha)
        return up(_at_least_zero("risk", risk) + 2.0 * terms / (self.n * weight), relative=2.0**-40)

    def public_part(self, weight: float, *, alpha: float) -> float:
        """[f(nw, n) + log 1/α]/(nw): what the bound costs before a record is read."""
        return up((self.hoeffding(weight) + self._confidence(alpha)) / (self.n * weight), relative=2.0**-40)

    def promise(self, weight: float) -> GaussianDP:
        """The privacy of one exact draw of this weight, by the GDP rule with m = nλ."""
        return gdp_promise(weight, self.curvature)

    def largest_weight(self, budget: Promise) -> float:
        """The largest weight with both promises: the privacy budget, and a finite risk bound."""
        return min(gdp_weight(budget, self.curvature), math.nextafter(self.weight_limit, 0.0))

    def both(self, weight: float, *, delta: float, alpha: float) -> str:
        """Both promises of one weight, in words and public numbers only."""
        promise = self.promise(weight)
        return (
            f"One exact draw of weight {weight:.6g} keeps {promise}, that is (ε = {_shown(promise.epsilon(delta))}, δ = "
            f"{delta:g}), and with probability at least {1.0 - alpha:g} over the records its expected hinge risk is at "
            f"most its empirical hinge risk + KL(posterior ‖ prior)/{self.n * weight:.6g} + "
            f"{_shown(self.public_part(weight, alpha=alpha))}."
        )

    def _filled(self, weight: float) -> float:
        """r²b²/(2λn²) = (w/limit)², rounded up, refused from 1 on."""
        ratio = self.data_norm * positive("the weight", weight)
        filled = up(ratio * ratio / (2.0 * self.regularisation))
        if not filled < 1.0:
            raise InvalidBudget(
                f"The weight must be below √(2λ)/r = {self.weight_limit:.6g}, got {weight:g}: the average of the "
                "squared loss over the prior is infinite there, so no bound exists. Use a smaller weight or a larger "
                "regularisation."
            )
        return filled

    def _confidence(self, alpha: float) -> float:
        if not probability("α", alpha) > 0.0:
            raise InvalidBudget("α is the probability that the risk bound fails; it must be above 0, for example 0.05.")
        return -math.log(alpha)


def _at_least_zero(name: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0.0):
        raise InvalidBudget(f"{name} must be a finite number of at least 0; a hinge risk and a divergence both are.")
    return value


def _shown(value: float) -> str:
    """Five digits, rounded up: words must not promise more than the number does."""
    step = 10.0 ** (math.floor(math.log10(value)) - 4) if value > 0.0 else 1.0
    return f"{math.ceil(value / step * (1.0 - 1e-12)) * step:.5g}"
