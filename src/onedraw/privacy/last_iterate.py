"""What the last iterate of noisy gradient descent promises, for finite step size and time.

    θ ← Π(θ − h∇U(θ) + √(2h) ξ),   T steps from a public start, all records in every step,

Π the identity or the projection onto one fixed convex set. U = w Σ ℓ(θ, x_i) − log π(θ), and ℓ(·, x) − ℓ(·, x')
is G-Lipschitz, so replacing a record moves a step by at most hwG, against noise of standard deviation √(2h).

`path_mu`: one step is GaussianDP(wG√(h/2)), so the whole path, every iterate included, is GaussianDP(wG√(hT/2)),
whatever U is (the Gaussian mechanism, composed).

`last_iterate_mu`: if U is m-strongly convex and M-smooth for every data set and 0 < h < 2/M, each step contracts
by c = max(|1 − hm|, |1 − hM|) and forgets what the steps before it revealed. The T-th iterate *alone* is
GaussianDP with

    μ = wG√(h/2) · √( (1 − c^T)/(1 + c^T) · (1 + c)/(1 − c) )          (Bok, Su, Altschuler, arXiv:2403.00278)

For h ≤ 2/(M + m) this never exceeds wG/√m, what an exact draw from the posterior promises: stopping early and
discretising cost nothing. It is attained by quadratics of curvature m. Both are rounded up.

**Rounded gradients.** Where a record's gradient is rounded, so that at one θ those of two records differ by up to G + ρ, the first
bound holds with G + ρ in the place of G. The second is about steps that contract, and a step of rounded gradients does so only up to
their rounding, in every record at once: it is not claimed for them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from onedraw.errors import WrongCall

from .numbers import fraction_down, fraction_up, positive, positive_integer, real, root_up, text, up


def path_mu(*, step_size: float, steps: int, weight: float, gradient_difference: float) -> float:
    """μ of the whole path: wG√(hT/2). Neither convexity nor smoothness is needed."""
    step_size, steps = _step_size(step_size), _steps(steps)
    return root_up(_one_step(step_size, weight, gradient_difference) * steps)


def last_iterate_mu(
    *, step_size: float, steps: int, weight: float, gradient_difference: float, strong_convexity: float, smoothness: float
) -> float:  # fmt: skip
    """μ of the last iterate alone, for a potential that is m-strongly convex (m ≥ 0) and M-smooth."""
    step_size, steps = _step_size(step_size), _steps(steps)
    strong, smooth = _curvatures(strong_convexity, smoothness)
    step = Fraction(step_size)
    if step * smooth >= 2:
        raise WrongCall(
            f"The step size must lie in (0, 2/M) = (0, {text(fraction_down(2 / smooth))}) for smoothness M = "
            f"{text(float(smooth))}, not {text(step_size)}. Beyond it a step no longer contracts: the chain "
            "diverges and its last iterate has no promise of its own. Use a smaller step."
        )
    gap = min(step * strong, 2 - step * smooth)  # 1 − c, exactly
    return root_up(_one_step(step_size, weight, gradient_difference) * _growth(fraction_down(gap), steps))


def rounded_difference(gradient_difference: float, rounding: float) -> float:
    """G + ρ, rounded up."""
    return fraction_up(Fraction(gradient_difference) + Fraction(rounding))


def _one_step(step_size: float, weight: float, gradient_difference: float) -> Fraction:
    """μ² of one step: (hwG)²/(2h)."""
    weight = positive("the weight", weight)
    gradient_difference = positive("the gradient difference G", gradient_difference)
    return (Fraction(weight) * Fraction(gradient_difference)) ** 2 * Fraction(step_size) / 2


def _growth(gap: float, steps: int) -> Fraction:
    """(1 − c^T)/(1 + c^T) · (1 + c)/(1 − c) at c = 1 − gap, rounded up: between 1 and T, falling in the gap.

    As tanh(−T·log(c)/2)·(2 − gap)/gap nothing cancels: not for a gap of 1e-300, nor where c^T underflows.
    """
    if gap >= 1.0 or steps == 1:
        return Fraction(1)
    if gap < 1e-290:
        return Fraction(steps)
    exponent = -0.5 * math.log1p(-gap) * float(min(steps, 10**308))
    product = up(math.tanh(min(exponent, 1e3)) * (2.0 - gap) / gap)
    return min(max(Fraction(1), Fraction(product)), Fraction(steps))


def _curvatures(strong_convexity: float, smoothness: float) -> tuple[Fraction, Fraction]:
    smooth = positive("the smoothness M", smoothness)
    strong = real("the strong convexity m", strong_convexity)
    if not 0.0 <= strong <= smooth:
        raise WrongCall(
            f"The strong convexity m must lie between 0 and the smoothness M = {text(smooth)}, not {strong!r}: "
            "no function has less curvature above than below. Check the model's bounds and the prior."
        )
    return Fraction(strong), Fraction(smooth)


_step_size = partial(
    real, "the step size", above=0.0, below=math.inf,
    otherwise="The step size must be a finite number above 0, not {number!r}. Without a step there is neither a draw nor noise. "
    "Use a step below 2/M.",
)  # fmt: skip


def _steps(value: int) -> int:
    number = value if isinstance(value, int) and not isinstance(value, bool) else positive_integer("steps", value)
    if number < 1:
        raise WrongCall(
            f"steps must be a whole number of at least 1, not {number}. After no steps the start itself would be "
            "released, a constant without information. Use T ≥ 1."
        )
    return number
