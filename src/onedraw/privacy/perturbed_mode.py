"""What the minimum of a randomly tilted convex loss promises: its corners, and how much noise it needs (perturbed_mode.md).

    θ* = argmin Σ a(z_i) φ(z_iᵀθ) + (Λ/2)‖θ‖² + bᵀθ,        a(z) = min(1, r²/‖z‖²),  b ~ N(0, σ²I)

Replacing a record moves the gradient by a vector of a fixed parallelogram and the volume by at most e^κ, κ = log(1 + Mr²/Λ), so
the privacy loss is at most the largest of a few Gaussian losses, one for each corner. ``Corners`` holds them in units of r²/σ²
for one kind of loss; ``slopes``, ``count_slopes``, ``pairs``, ``softmax``, ``one_against_rest``, ``relieved_slopes`` are the kinds.
``calibrate`` turns a budget and public shares into noise, rounded against ourselves. Nothing here sees data.

| loss | slopes | L | M | corners |
| --- | --- | --- | --- | --- |
| exp-linear | [−½, 0] | ½ | ½ | ``slopes(0.5, 0, …)`` |
| logistic | [−1, 0] | 1 | ¼ | ``slopes(1, 0, …)``, or relieved: c = r²/Λ |
| huberised hinge over h | [−1, 0] | 1 | 1/h | ``slopes(1, 0, …)`` |
| Huber at t | [−t, t] | t | 1 | ``slopes(t, t, …)`` |
| log-cosh at t | [−t, t] | t | 1 | relieved: c = 2r²/Λ |
| quantile τ over h | [−τ, 1−τ] | max(τ, 1−τ) | 1/h | ``slopes(τ, 1−τ, …)`` |
| counts up to Y | [−y, Y−y], y the record's own | Y | ``count_curvature(Y)`` | ``count_slopes(Y, …)`` |
| K classes, every two compared | [−½, 0] each | ½√(K(K−1)) | K/2 | ``pairs(K, 0.5, …)`` |
| K classes, softmax | p − e_y | √2 | ½ | ``softmax(K, …)`` |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from scipy import optimize, special

from onedraw.errors import InvalidBudget
from onedraw.privacy.corners import Corner, CornerDP
from onedraw.privacy.promises import ApproxDP, PureDP
from onedraw.privacy.rounding import down, fraction_down, fraction_up, text, up
from onedraw.privacy.validation import positive, positive_integer, real

CLOSING_MU = 1e-3
"""μ of the noise that hides where the optimiser stopped."""

# ── volume ─────────────────────────────────────────────────────────────────────────────────────────────────


def volume_cost(*, curvature: float, radius_squared: float, ridge: float) -> float:
    """κ = log(1 + Mr²/Λ): how much one record can change the volume, rounded up."""
    return up(math.log1p(positive("M", curvature) * positive("r²", radius_squared) / positive("Λ", ridge)))


def ridge_for(kappa: float, *, curvature: float, radius_squared: float) -> float:
    """The smallest Λ whose volume costs at most κ, rounded up."""
    return up(positive("M", curvature) * positive("r²", radius_squared) / math.expm1(positive("κ", kappa)))


def softmax_volume_cost(classes: int, *, radius_squared: float, ridge: float) -> float:
    """κ = (K−1)·log(1 + r²/(KΛ)), rounded up: a Hessian of rank K−1 and trace at most (1 − 1/K)r²."""
    others = _classes(classes) - 1
    return up(others * math.log1p(positive("r²", radius_squared) / (classes * positive("Λ", ridge))))


def softmax_ridge_for(kappa: float, classes: int, *, radius_squared: float) -> float:
    """The smallest Λ whose softmax volume costs at most κ, rounded up."""
    others = _classes(classes) - 1
    return up(positive("r²", radius_squared) / (classes * math.expm1(positive("κ", kappa) / others)))


def pairs_volume_cost(classes: int, *, curvature: float, radius_squared: float, ridge: float) -> float:
    """κ = log(1 + KMr²/Λ) + (K−2)·log(1 + Mr²/Λ), rounded up: a star of K−1 comparisons has eigenvalues K, 1, …, 1."""
    bend = positive("M", curvature) * positive("r²", radius_squared) / positive("Λ", ridge)
    return up(math.log1p(_classes(classes) * bend) + (classes - 2) * math.log1p(bend))


def pairs_ridge_for(kappa: float, classes: int, *, curvature: float, radius_squared: float) -> float:
    """The smallest Λ, to ten digits, whose volume of K classes compared in pairs costs at most κ."""

    def cost(ridge: float) -> float:
        return pairs_volume_cost(classes, curvature=curvature, radius_squared=radius_squared, ridge=ridge)

    high = 1.01 * ridge_for(kappa / (classes - 1), curvature=classes * curvature, radius_squared=radius_squared)
    low = high / (2.0 * classes)
    while high > low * (1.0 + 1e-10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= kappa else (middle, high)
    return high


def count_curvature(largest: int) -> float:
    """M = sup over λ of λ·P(Poisson(λ) ≤ Y−1), rounded up: how much a record's slope can bend. One hill."""
    bound = positive_integer("the largest count", largest)
    found = optimize.minimize_scalar(
        lambda rate: -rate * float(special.gammaincc(bound, rate)), bounds=(0.0, 2.0 * bound + 2.0), method="bounded"
    )
    return up(-float(found.fun), relative=1e-7)


# ── corners ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Corners:
    """The corners of one kind of loss: squares in units of r²/σ², shifts as they are.

    ``noises`` is the number of modes with noise of their own. To Gaussian noise they are one long vector; noise ∝ e^{−η‖b‖}
    adds up their norms, Σ‖v_k‖ ≤ √noises·‖v‖.
    """

    terms: tuple[Corner, ...]
    noises: int = 1

    @property
    def widest(self) -> float:
        """The largest square: (‖v‖/r)² of the farthest corner."""
        return max(term.square for term in self.terms)

    def promise(self, ratio: float) -> CornerDP:
        """What a mode with Gaussian noise promises, ``ratio`` = r/σ."""
        return self._with(Fraction(positive("r/σ", ratio)) ** 2, Fraction(0))

    def pure_promise(self, ratio: float) -> PureDP:
        """What a mode with noise of density ∝ e^{−η‖b‖} promises, ``ratio`` = ηr: at most the worst corner's η‖v‖ + shift."""
        scale = positive("ηr", ratio)
        return PureDP(max(up(scale * math.sqrt(self.noises * term.square) + term.shift) for term in self.terms))

    def beside(self, mu: float, *, mode: float, gaussian: float) -> CornerDP:
        """The whole of μ², ``mode`` of it spent on the farthest corner and ``gaussian`` on Gaussian stages before or after."""
        square = Fraction(mu) ** 2
        return self._with(square * Fraction(mode) / Fraction(self.widest), square * Fraction(gaussian))

    def _with(self, scale: Fraction, added: Fraction) -> CornerDP:
        return CornerDP(
            tuple(
                Corner(count, fraction_up(Fraction(square) * scale + added), shift)
                for count, square, shift in self.terms
            )
        )


def slopes(low: float, high: float, kappa: float, *, records: int = 1) -> Corners:
    """Slopes of every record in [−low, high]; a person has ``records`` of them (Theorems 1 and 3).

    With h ≥ l the two ends over their sum w: squares 4h², 1, h, l times w². One-sided (l = 0): 4, 1, 1, and the corner 0
    drops out; two-sided (h = l = ½): 4, 4, 2, 2 times L². Several records: 2k slopes, each at one end or the other.
    """
    ends = sorted((_slope("low", low), _slope("high", high)))
    width, shift = Fraction(ends[0]) + Fraction(ends[1]), _total_shift(kappa, records)
    if not width:
        raise InvalidBudget("slopes in [0, 0] mean a loss that never changes: give the largest slope of one record")
    near, far = Fraction(ends[0]) / width, Fraction(ends[1]) / width
    if records == 1:
        squares = [(1, 4 * far**2), (1, Fraction(1)), (1, far), (1, near)]
    else:
        reaches = [(math.comb(2 * records, j), j * far + (2 * records - j) * near) for j in range(2 * records + 1)]
        squares = [(count, reach**2) for count, reach in reaches]
    return _corners_of((count, square * width**2, shift) for count, square in squares if square)


def count_slopes(largest: float, kappa: float, *, records: int = 1) -> Corners:
    """Slopes in an interval of width Y that contains 0 and depends on the record (Theorem 2): squares 4, 5/4, 1, ½ times Y²."""
    square, shift = Fraction(positive("Y", largest)) ** 2, _total_shift(kappa, records)
    if records == 1:
        parts = [(1, Fraction(4)), (1, Fraction(5, 4)), (1, Fraction(1)), (1, Fraction(1, 2))]
    else:
        parts = [(4**records, Fraction(4 * records**2))]
    return _corners_of((count, part * square, shift) for count, part in parts)


def relieved_slopes(low: float, high: float, relief: float, *, base: float = 0.0) -> Corners:
    """Losses that bend only where they are not steep: log(1 + φ''r²/Λ) ≤ κ₀ + c(1 − |φ'|/L), κ₀ = base, c = relief (Theorem 4).

    log-cosh: c = 2r²/Λ; logistic: c = r²/Λ; both with κ₀ = 0. The farthest corners pay κ₀ alone.
    """
    steep, flat = _slope("base", base), up(_slope("base", base) + positive("the relief c", relief))
    ends = sorted((_slope("low", low), _slope("high", high)))
    square = Fraction(positive("the largest slope", ends[1])) ** 2
    if ends[0] == 0.0:
        parts = [(1, 4, steep), (1, 1, steep), (1, 1, flat), (1, 0, flat)]
    elif ends[0] == ends[1]:
        parts = [(2, 4, steep), (2, 2, steep), (2, 1, flat)]
    else:
        raise InvalidBudget("relief is proven for slopes in [−L, 0] and [−L, L]; use slopes(…) for others")
    return _corners_of((count, part * square, shift) for count, part, shift in parts)


def softmax(classes: int, kappa: float, *, records: int = 1) -> Corners:
    """Softmax over K classes, one coefficient vector each; κ is the whole record's (Theorem 5)."""
    others, shift = _classes(classes) - 1, _total_shift(kappa, records)
    if records == 1:
        parts = [(others, 8), (others * (others - 1), 6), (2 * others, 2)]
    else:
        parts = [(math.comb(2 * records, j) * others**j, 2 * j**2) for j in range(1, 2 * records + 1)]
    return _corners_of((count, Fraction(square), shift) for count, square in parts if count)


def pairs(classes: int, slope: float, kappa: float, *, records: int = 1) -> Corners:
    """K classes, a record's own compared with every other by a one-sided loss; κ is the whole record's (Theorem 6).

    2k records have 2k(K−1) slopes. j of them at their end L pull farthest if spread evenly: j = 2ka + b.
    """
    people, shift = 2 * positive_integer("records", records), _total_shift(kappa, records)
    slopes_in_all, steepest = people * (_classes(classes) - 1), positive("L", slope)

    def reach(active: int) -> float:
        each, more = divmod(active, people)
        return up(steepest * ((people - more) * _star(each) + more * _star(each + 1)))

    return _corners_of(
        (math.comb(slopes_in_all, j), Fraction(reach(j)) ** 2, shift) for j in range(1, slopes_in_all + 1)
    )


def _star(active: int) -> float:
    """‖Σ_{j∈S} (e_y − e_j)‖ for ``active`` other classes S: √(m² + m)."""
    return math.sqrt(active * (active + 1.0))


def one_against_rest(classes: int, slope: float, kappa: float) -> Corners:
    """K one-sided modes with noise of their own; κ is one mode's: Kκ and (2x + x⁴)^K (Theorem 5)."""
    modes, square = _classes(classes), Fraction(positive("L", slope)) ** 2
    shift = fraction_up(Fraction(_slope("κ", kappa)) * modes)
    parts = ((math.comb(modes, j) * 2**j, j + 4 * (modes - j)) for j in range(modes + 1))
    return _corners_of(((count, part * square, shift) for count, part in parts), noises=modes)


def _corners_of(parts: Iterable[tuple[int, Fraction, float]], *, noises: int = 1) -> Corners:
    terms = tuple(Corner(count, fraction_up(Fraction(square)), shift) for count, square, shift in parts)
    return Corners(CornerDP(terms).terms, noises)


def _total_shift(kappa: float, records: int) -> float:
    return fraction_up(Fraction(_slope("κ", kappa)) * positive_integer("records", records))


def _slope(name: str, value: float) -> float:
    number = real(name, value)
    if not 0.0 <= number < math.inf:
        raise InvalidBudget(f"{name} must be a finite number of at least 0, but {number!r} came")
    return number


def _classes(value: int) -> int:
    if positive_integer("classes", value) < 2:
        raise InvalidBudget("a classification has at least two classes")
    return int(value)


# ── calibration ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Shares:
    """Parts of μ² for the design, the mode and the information: public, and 1 together."""

    design: float
    mode: float
    information: float = 0.0

    def __post_init__(self) -> None:
        parts = [_slope("a share", part) for part in (self.design, self.mode, self.information)]
        if not parts[1] > 0.0 or abs(math.fsum(parts) - 1.0) > 1e-9:
            raise InvalidBudget(f"shares are not negative, add up to 1, and the mode's is above 0; {parts} came")

    @property
    def gaussian(self) -> float:
        """What the Gaussian stages get: all but the mode's."""
        return up(self.design + self.information) if self.design + self.information else 0.0


@dataclass(frozen=True)
class NoiseLevel:
    """A calibrated fit: μ of everything, the promise it makes, and the mode's noise over r, rounded up."""

    mu: float
    shares: Shares
    promise: CornerDP
    sigma_over_radius: float

    @property
    def design_mu(self) -> float:
        """μ of the stage that measures the design, rounded down."""
        return max(0.0, down(self.mu * math.sqrt(self.shares.design)))

    @property
    def information_mu(self) -> float:
        """μ of the stage that measures the information, rounded down."""
        return max(0.0, down(self.mu * math.sqrt(self.shares.information)))


def calibrate(corners: Corners, budget: ApproxDP, shares: Shares, *, closing_mu: float = CLOSING_MU) -> NoiseLevel:
    """The largest μ whose promise, closing noise included, keeps the budget; rounded down."""
    epsilon, delta = budget.stated_epsilon, budget.stated_delta
    closing = Fraction(_slope("the closing μ", closing_mu)) ** 2

    def promise(mu: float) -> CornerDP:
        terms = corners.beside(mu, mode=shares.mode, gaussian=shares.gaussian).terms
        return CornerDP(
            tuple(Corner(times, fraction_up(Fraction(square) + closing), shift) for times, square, shift in terms)
        )

    mu = _largest(lambda size: promise(size).delta(epsilon) <= delta)
    if mu == 0.0:
        raise InvalidBudget(
            f"no noise is enough for (ε = {text(epsilon)}, δ = {text(delta)}): the volume alone costs "
            f"{text(max(term.shift for term in corners.terms))}, and the closing noise μ = {text(closing_mu)}.\n"
            "Raise ε or the ridge, or choose a δ above 0."
        )
    sigma = up(math.sqrt(corners.widest) / (mu * math.sqrt(shares.mode)))
    return NoiseLevel(mu, shares, promise(mu), sigma)


@dataclass(frozen=True)
class PureLevel:
    """A calibrated fit under pure ε: what each part may spend, and η·r of the mode's noise ∝ e^{−η‖b‖}, rounded down."""

    eta_times_radius: float
    design: float
    mode: PureDP
    closing: float


def calibrate_pure(corners: Corners, budget: PureDP, *, design: float = 0.25, closing: float = 1e-3) -> PureLevel:
    """The largest η for which design, mode (volume and all) and closing noise add up to at most ε.

    Volume is a shift of the corners: κ = 0.15·ε, chosen with the ridge, leaves 0.6·ε for the noise at the default shares.
    """
    total = Fraction(budget.stated_epsilon)
    first, last = (fraction_down(total * Fraction(_slope("a share", share))) for share in (design, closing))
    left = total - Fraction(first) - Fraction(last)
    rooms = [(left - Fraction(shift), square) for _, square, shift in corners.terms]
    if min(room for room, _ in rooms) <= 0:
        raise InvalidBudget(
            f"the volume of the mode costs more than the {text(fraction_down(left))} that are left for it.\n"
            "Raise ε or the ridge, or give the design a smaller share."
        )
    ratio = min(down(fraction_down(room) / math.sqrt(corners.noises * square)) for room, square in rooms if square)
    while corners.pure_promise(ratio).stated_epsilon > left:
        ratio = down(ratio)
    return PureLevel(ratio, first, corners.pure_promise(ratio), last)


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest μ found for which ``holds``, to ten digits and more; 0 if there is none above 1e-12."""
    high = 1.0
    while holds(high):
        high *= 2.0
    low = high / 2.0
    while not holds(low):
        high, low = low, low / 2.0
        if low < 1e-12:
            return 0.0
    while high - low > 2.0**-44 * high:
        middle = low + (high - low) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def closing_noise(
    *, n: int, sigma: float, ridge: float, scale: float = 1.0, mu: float = CLOSING_MU
) -> tuple[float, float]:
    """(ω, t): the deviation of the closing noise, and the residual ‖∇J‖ to reach so that it is GaussianDP(μ).

    ω = 0.02·max(σ/(n/4 + Λ), 2·scale/√n); t = μΛω/2, rounded down: two minima within t/Λ of θ* are at most 2t/Λ = μω apart.
    """
    size, stiffness = positive_integer("n", n), positive("Λ", ridge)
    omega = 0.02 * max(
        positive("σ", sigma) / (size / 4.0 + stiffness), 2.0 * positive("scale", scale) / math.sqrt(size)
    )
    return omega, down(positive("μ", mu) * stiffness * omega / 2.0)


def pure_closing_scale(*, residual: float, ridge: float, epsilon: float) -> float:
    """s of the closing noise ∝ e^{−‖v‖/s} that makes a residual t PureDP(ε): 2t/(Λε), rounded up."""
    return up(2.0 * positive("t", residual) / (positive("Λ", ridge) * positive("ε", epsilon)))


def choose_kappa(
    corners: Callable[[float], Corners],
    budget: ApproxDP,
    shares: Shares,
    *,
    n: int,
    parameters: int,
    curvature: float,
    radius_squared: float,
    information: float = 0.2,
    effect: float = 1.5,
) -> float:
    """κ with the smallest p(σ/(nλ+Λ))² + (Λ/(nλ+Λ))²·effect², on public numbers: it tunes, and can harm no promise."""

    def error(share: float) -> float:
        kappa = share * budget.stated_epsilon
        ridge = ridge_for(kappa, curvature=curvature, radius_squared=radius_squared)
        try:
            noise = calibrate(corners(kappa), budget, shares)
        except InvalidBudget:
            return math.inf  # this volume leaves nothing for the noise
        total = positive_integer("n", n) * information + ridge
        sigma = noise.sigma_over_radius * math.sqrt(radius_squared)
        return parameters * (sigma / total) ** 2 + (ridge / total * effect) ** 2

    shares_tried = [0.9 * 0.75**step for step in range(20)]
    best = min(range(len(shares_tried)), key=lambda index: error(shares_tried[index]))
    around = shares_tried[min(best + 1, len(shares_tried) - 1)], shares_tried[max(best - 1, 0)]
    found = optimize.minimize_scalar(error, bounds=around, method="bounded", options={"xatol": 1e-3 * around[0]})
    return float(found.x) * budget.stated_epsilon
