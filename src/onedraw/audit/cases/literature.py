"""Faults of the literature, shown by the audit: what is published, on a concrete pair, against what it promises.

Each function writes the published procedure down as a test double, computes what it gives away, and returns both
numbers. Rows refer to docs/errata-of-the-literature.md, where MAS (Minami et al., NIPS 2016), JGH (Jewson et al.,
NeurIPS 2023), GSC (Geumlek et al., NIPS 2017) and ZZ (Zhang and Zhang, ICML 2023) are named. Nothing here is used by a
mechanism.
`onedraw audit literature` prints the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import optimize, special

from onedraw import audit
from onedraw.arrays import Array

from .losses import bernoulli_loss, gaussian_loss


@dataclass(frozen=True)
class Fault:
    """What is claimed where, why it is false, the pair that shows it, and both numbers."""

    row: str
    paper: str
    claim: str
    wrong: str
    pair: str
    quantity: str
    """What is compared: ε, δ at an ε, a Rényi divergence, a slope."""
    claimed: float
    value: float

    @property
    def shown(self) -> bool:
        """Whether more was found than claimed: otherwise our erratum would be wrong."""
        return self.value > self.claimed

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "shown": self.shown}


def faults() -> tuple[Fault, ...]:
    """All of them, with the numbers of the errata."""
    return (
        intercept(), output_perturbation(), gaussian_calibration(), attack_rates(), clipping(), corollary8(),
        first_corollary8(), divergence_gradient(), uniform_noise(), uniform_noise_moment(), noiseless_step(),
        minibatch_sensitivity(), scale_from_records(), metropolis(), tries_of_a_selection(), tries_of_rejection(),
        stopped_by_an_envelope(),
    )  # fmt: skip


def profile_of(
    logdensity: Callable[[float, Array], Array], low: float, high: float, records: Sequence[float] = (1.0, -1.0)
) -> Any:
    """Of a posterior of one number on (low, high), given one record or another."""

    def law(record: float) -> Any:
        return lambda points: logdensity(record, np.asarray(points, dtype=np.float64).reshape(-1))

    first, second = map(law, records)
    return audit.exact_profile(first, second, ((low, high),))


def published_weight(epsilon: float, delta: float, lipschitz: float) -> float:
    """MAS Corollary 8, prior N(0, 1): w = (ε/2L)√(m/(1 + 2 log 1/δ))."""
    return epsilon / (2.0 * lipschitz) * math.sqrt(1.0 / (1.0 + 2.0 * math.log(1.0 / delta)))


def intercept(*, epsilon: float = 1.0, delta: float = 1e-5, norm: float = 0.1) -> Fault:
    """Errata 1: with an intercept the gradient is along (x, 1). One record, the law of u = θᵀ(x, 1) under N(0, 1)²."""
    weight, variance = published_weight(epsilon, delta, norm), norm**2 + 1.0
    laws = profile_of(lambda y, u: -0.5 * u**2 / variance - weight * np.logaddexp(0.0, -y * u), -20.0, 20.0)
    return Fault(
        "1", "MAS §3.3", f"the logistic loss with an intercept is r-Lipschitz for rows of norm r = {norm:g}",
        "the gradient is along (x, 1): √(r² + 1)", f"one record of norm {norm:g}, its label flipped",
        f"ε at δ = {delta:g}", epsilon, laws.epsilon(delta),
    )  # fmt: skip


def output_perturbation(
    *, n: int = 10, dimension: int = 20, penalty: float = 10.0, epsilon: float = 1.0, positive: int | None = None
) -> Fault:
    """Errata 2: ridge logistic regression plus Laplace noise of scale 2/(nλε) in each coordinate, as published.

    On n rows of ones with one label flipped both minimisers are t·(1, …, 1), so each of the p coordinates gives away as
    much as the first, and the losses of a product add up.
    """
    labels = np.where(np.arange(n) < (n if positive is None else positive), 1.0, -1.0)
    flipped = np.append(-labels[:1], labels[1:])
    scale = 2.0 / (n * penalty * epsilon)
    found = [minimiser(y, dimension=dimension, penalty=penalty) for y in (labels, flipped)]
    ends = min(found) - 40.0 * scale, max(found) + 40.0 * scale
    each = profile_of(lambda centre, at: -np.abs(at - centre) / scale, *ends, found).largest_log_ratio
    return Fault(
        "2", "JGH Theorem 4, output perturbation", f"Laplace noise of scale 2/(nλε), λ = {penalty:g}, is ε-private",
        "the inequality between the norms goes the other way: the scale is 2p/(nλε)",
        f"{n} rows of ones, p = {dimension}, one label flipped", "ε", epsilon, dimension * each,
    )  # fmt: skip


def minimiser(labels: Array, *, dimension: int, penalty: float) -> float:
    """t with θ = t·1 the minimiser of mean log(1 + e^{−y·p·t}) + (λ/2)·p·t²: rows of ones, equal coordinates."""

    def slope(t: float) -> float:
        return float(-np.mean(labels * special.expit(-labels * dimension * t)) + penalty * t)

    return float(optimize.brentq(slope, -1.0 / penalty, 1.0 / penalty, xtol=1e-15))


def gaussian_calibration(
    *, epsilon: float = 1.0, variance: float = 0.01, prior_variance: float = 9.0, n: int = 10
) -> Fault:
    """Errata 3: β from the *prior's* variance in place of the variance's floor, w = 1, as in the published code.

    One parameter θ ~ N(0, 9), responses N(θ, s²) with s² at its floor; n − 1 responses agree and one moves across.
    """
    beta = published_beta(epsilon, prior_variance)

    def posterior(last: float, theta: Array) -> Array:
        agreeing, own = (gaussian_loss(y - theta, np.full(len(theta), variance), beta) for y in (1.0, last))
        return np.asarray(-0.5 * theta**2 / prior_variance - (n - 1) * agreeing - own)

    found = profile_of(posterior, -30.0, 30.0).largest_log_ratio
    return Fault(
        "3", "JGH, published code, Gaussian models", "β calibrated with the prior's variance is ε-private at weight 1",
        "the floor of σ² decides, not the prior", f"σ² = {variance:g}, {n - 1} responses agree, one moves from 1 to −1",
        "ε", epsilon, found,
    )  # fmt: skip


def published_beta(epsilon: float, variance: float) -> float:
    """The smallest β with 2Δ = 2(2πv)^{−(β−1)/2}/(β−1) ≤ ε, v the variance that is believed to be the least."""

    def excess(power: float) -> float:
        return float(2.0 * (2.0 * math.pi * variance) ** (-power / 2.0) / power - epsilon)

    return 1.0 + float(optimize.brentq(excess, 1e-6, 100.0, xtol=1e-14))


def attack_rates(*, rounds: int = 1000, confidence: float = 0.95, seed: int = 6) -> Fault:
    """Errata 6c: error counts over *all* rounds, as in the published attack, on a mechanism that ignores its records."""
    generator = np.random.default_rng(seed)
    draws, truth = generator.normal(size=rounds), generator.integers(2, size=rounds)
    fp, fn = (int(np.sum((draws > 0.0)[truth == which] != which)) for which in (0, 1))
    published = audit.epsilon_lower_bound(fp, fn, rounds, rounds, 0.0, confidence)
    right = audit.epsilon_lower_bound(fp, fn, int(np.sum(truth == 0)), int(np.sum(truth == 1)), 0.0, confidence)
    return Fault(
        "6c", "JGH, published attack", f"error counts over all {rounds:,} rounds bound ε from below",
        f"rates belong to each class, and then show ε ≥ {right:.3g}", "any: the draw does not depend on the records",
        f"ε, at confidence {confidence:g}", 0.0, published,
    )  # fmt: skip


def clipping(*, order: float = 2.0, bound: float = 1.0, worth: float = 10.0) -> Fault:
    """Errata 10: the mean of N(θ, 1), clipped to [−Δ, Δ]; neighbours are N(±Δ/N, 1/N), N the prior's worth and n."""
    laws = profile_of(lambda x, theta: -0.5 * worth * (theta - x / worth) ** 2, -8.0, 8.0, (bound, -bound))
    return Fault(
        "10", "GSC A.6.2", "clipping to [−Δ, Δ] moves the posterior's parameter by at most Δ",
        "replacing −Δ by Δ moves it by 2Δ", f"one record moved from −{bound:g} to {bound:g}",
        f"Rényi divergence of order {order:g}", order * bound**2 / (2.0 * worth), laws.renyi(order),
    )  # fmt: skip


def corollary8(*, epsilon: float = 20.0, delta: float = 1e-5, norm: float = 0.1) -> Fault:
    """Errata 16: the hinge of one record, rows of norm 0.1, prior N(0, 1)."""
    weight = published_weight(epsilon, delta, norm)
    laws = profile_of(lambda y, theta: -0.5 * theta**2 - weight * np.maximum(0.0, 1.0 - y * norm * theta), -20.0, 20.0)
    return Fault(
        "16", "MAS Corollary 8", "w = (ε/2L)√(m/(1 + 2 log 1/δ)) is (ε, δ)-private for every ε",
        "true up to ε ≈ 8.99 at δ = 1e-5, false beyond", f"the hinge of one row of norm {norm:g}, its label flipped",
        f"δ at ε = {epsilon:g}", delta, laws.delta(epsilon),
    )  # fmt: skip


def first_corollary8(*, epsilon: float = 5.0) -> Fault:
    """Errata 17: w = √(mε/2L²) for the loss θx, L = m = 1: neighbours are N(±w, 1)."""
    weight = math.sqrt(epsilon / 2.0)
    found = profile_of(lambda row, theta: -0.5 * theta**2 - weight * row * theta, -20.0, 20.0).delta(epsilon)
    return Fault(
        "17", "MAS v1, Corollary 8 (i)", "w = √(mε/2L²) is (ε, e^{−(1+ε)/4})-private", "false from ε = 3.11 on",
        "the loss θx, x moved from 1 to −1", f"δ at ε = {epsilon:g}", math.exp(-(1.0 + epsilon) / 4.0), found,
    )  # fmt: skip


def divergence_gradient(*, beta: float = 2.0) -> Fault:
    """Errata 18: the steepest slope of a label's β-loss in its log-odds; G = ¼ and M = 1 for the logistic model."""
    margins = np.linspace(-10.0, 10.0, 200_001)
    slopes = np.abs(np.gradient(bernoulli_loss(margins, beta), margins))
    place = float(special.expit(margins[int(np.argmax(slopes))]))
    return Fault(
        "18", "JGH Proposition 3, proof", f"the gradient of the β-loss is at most max(G, GM) = 0.25 at β = {beta:g}",
        "2G is a bound, max(G, GM) is none below β = 3", f"a label of probability {place:.3f}", "slope", 0.25,
        float(slopes.max()),
    )  # fmt: skip


def uniform_acceptance(log_ratio: float, deviation: float) -> float:
    """E min(1, e^{λ + sd·U − sd²/2}) with U uniform on (0, 1), where the penalty algorithm has a standard normal."""
    start = log_ratio - deviation**2 / 2.0
    if start >= 0.0 or deviation == 0.0:
        return math.exp(min(start, 0.0))
    reached = min(1.0, -start / deviation)
    return (math.exp(start + deviation * reached) - math.exp(start)) / deviation + 1.0 - reached


def published_deviation(sensitivity: float, epsilon: float, delta: float) -> float:
    """ZZ: √(2 log 1.25/δ)·Δ/ε, the classical Gaussian mechanism; none at all where Δ < ε."""
    return 0.0 if sensitivity < epsilon else math.sqrt(2.0 * math.log(1.25 / delta)) * sensitivity / epsilon


def decision_delta(acceptances: Sequence[float], epsilon: float) -> float:
    """δ at ε of one decision: accepted with these probabilities under two neighbouring data sets."""
    decisions = ([one, 1.0 - one] for one in acceptances)
    return float(audit.finite_profile(*decisions).delta(epsilon))


def uniform_noise(*, epsilon: float = 0.05, delta: float = 1e-5) -> Fault:
    """Errata 30: `rand()` for `randn()`. Noise that is never negative never rejects where λ ≥ sd²/2, on one of the pair."""
    sensitivity = epsilon  # the smallest that gets noise
    deviation = published_deviation(sensitivity, epsilon, delta)
    log_ratio = deviation**2 / 2.0
    decisions = [uniform_acceptance(one, deviation) for one in (log_ratio, log_ratio - sensitivity)]
    return Fault(
        "30", "ZZ, published code", f"noise of deviation √(2 log 1.25/δ)·Δ/ε makes a decision (ε, {delta:g})-private",
        "the noise is uniform on [0, sd): where λ ≥ sd²/2 no move is rejected, so a rejection gives λ away",
        f"log-ratios sd²/2 and sd²/2 − Δ, Δ = {sensitivity:g}", f"δ at ε = {epsilon:g}, and at every other", delta,
        decision_delta(decisions, epsilon),
    )  # fmt: skip


def uniform_noise_moment(*, deviation: float = 1.0) -> Fault:
    """Errata 30: detailed balance needs E e^{noise − sd²/2} = 1; a uniform's moment generating function is (e^t − 1)/t."""
    moment = math.expm1(deviation) / deviation * math.exp(-(deviation**2) / 2.0)
    return Fault(
        "30", "ZZ, published code", "taking sd²/2 off makes up for the noise: the posterior is left invariant",
        "true of normal noise; of uniform noise the mean of e^{noise − sd²/2} is not 1", f"noise of deviation {deviation:g}",
        "mean acceptance ratio at λ = 0", 1.0, moment,
    )  # fmt: skip


def noiseless_step(*, sensitivity: float = 0.05, epsilon: float = 1.0, delta: float = 1e-5) -> Fault:
    """Errata 31: no noise where Δ < ε, on the ground that the loss is at most Δ; a test that never rejects has no such bound."""
    deviation = published_deviation(sensitivity, epsilon, delta)
    decisions = [uniform_acceptance(one, deviation) for one in (0.0, -sensitivity)]
    return Fault(
        "31", "ZZ, published code", f"a step with Δ < ε needs no noise to be (ε, {delta:g})-private",
        "min(1, e^λ) has no bounded loss: λ = 0 never rejects, λ = −Δ does", f"log-ratios 0 and −Δ, Δ = {sensitivity:g}",
        f"δ at ε = {epsilon:g}, and at every other", delta, decision_delta(decisions, epsilon),
    )  # fmt: skip


def minibatch_sensitivity(*, reach: float = 200.0, rate: float = 10.0) -> Fault:
    """Errata 32: one term log(1 + Lφ'/λM) − log(1 + L(M − φ')/λM) of the minibatch ratio, φ' anywhere in [0, M].

    λ is the rate that governs the size of batches and L = Ψ‖θ − θ'‖.
    """
    share = np.linspace(0.0, 1.0, 1001)
    term = np.log1p(reach / rate * share) - np.log1p(reach / rate * (1.0 - share))
    return Fault(
        "32", "ZZ, published code, logistic regression", "a record moves the minibatch ratio by 2 log(1 + 1/(λΨ‖θ−θ'‖))",
        "one term moves by 2 log(1 + Ψ‖θ−θ'‖/λ), and a record may be in the batch several times",
        f"Ψ‖θ−θ'‖ = {reach:g}, λ = {rate:g}, one term", "how far λ moves", 2.0 * math.log1p(1.0 / (rate * reach)),
        float(np.ptp(term)),
    )  # fmt: skip


def scale_from_records(*, epsilon: float = 0.05, delta: float = 1e-5, shorter: float = 0.99) -> Fault:
    """Errata 33: Δ = 2 max‖x_i‖·‖θ − θ'‖ is read from the records, and decides whether there is noise at all.

    All rows are orthogonal to θ − θ', so λ = 0 whatever they are; the longest one is replaced by a shorter one.
    """
    deviations = [published_deviation(size * epsilon, epsilon, delta) for size in (1.0, shorter)]
    decisions = [uniform_acceptance(0.0, deviation) for deviation in deviations]
    return Fault(
        "33", "ZZ, published code", f"the chain is ({epsilon:g}, {delta:g})-private at each step",
        "‖x_i‖, their sum, their largest and the switch to full batches are functions of the records",
        f"rows orthogonal to θ − θ', the longest made {1.0 - shorter:.0%} shorter: Δ falls below ε",
        f"δ at ε = {epsilon:g}", delta, decision_delta(decisions, epsilon),
    )  # fmt: skip


def metropolis(*, sensitivity: float = 0.05, epsilon: float = 1.0) -> Fault:
    """Errata 34: a step without noise is as private as the test that makes it: Barker's has the loss s, Metropolis' none."""
    decisions = [min(1.0, math.exp(one)) for one in (0.0, -sensitivity)]
    return Fault(
        "34", "a common reading", "the accept step's own randomness makes a chain private, for s small enough purely so",
        "true of Barker's test 1/(1 + e^{−λ}); Metropolis' min(1, e^λ) has infinite loss",
        f"log-ratios 0 and −s, s = {sensitivity:g}", f"δ at ε = {epsilon:g}, and at every other", 0.0,
        decision_delta(decisions, epsilon),
    )  # fmt: skip


# ── how long a draw takes ────────────────────────────────────────────────────────────────────────────────────────────


def tries_of_a_selection(*, candidates: int = 1000, epsilon: float = 1.0) -> Fault:
    """Errata 37: our own exact selection, seen with the number of its proposals (samplers/selection.py).

    A record that costs all candidates alike is replaced by one that costs all but one ε/2 more. Before, the first proposal is
    accepted for sure; afterwards it is another candidate, and rejected, with a probability that no ε covers.
    """
    again = (candidates - 1) / candidates * -math.expm1(-epsilon / 2.0)
    return Fault(
        "37", "this project, unpadded", "the number of proposals of an exact selection is for the curator alone",
        "whoever can time the draw sees it too: a second proposal is impossible on one data set",
        f"{candidates:,} candidates, a record that costs all alike against one that favours the first",
        f"δ of draw and proposals at ε = {epsilon:g}, and at every other", 0.0, again,
    )  # fmt: skip


def tries_of_rejection(*, accepted: float = 0.5, other: float = 0.3033, tries: int = 100) -> Fault:
    """Errata 39: the tries of a rejection sampler are geometric, and their tails differ without bound."""
    claimed, found = (math.log(a / b) for a, b in ((accepted, other), (1.0 - other, 1.0 - accepted)))
    return Fault(
        "39", "a common reading", "a draw by rejection is as private as its law, whatever else is seen",
        "P(more than t tries) differs by ((1 − a')/(1 − a))^t: 1.39 at t = 1, 27.6 at 10, 2.6e14 at 100",
        f"acceptance {accepted:g} against {other:g}", f"ε of the event of more than {tries} tries", claimed, tries * found,
    )  # fmt: skip


def stopped_by_an_envelope(*, time: int = 20) -> Fault:
    """Errata 40: two atoms under an envelope of ½ each, stop at the first proposal under a public lower bound of ¼ each, return the
    first accepted. The time has one law, the pair has not."""
    first, second, stop = (0.25, 0.4), (0.3, 0.4), 0.25

    def seen(kept: tuple[float, float]) -> float:
        """P(the first atom, stopped at ``time``)."""
        nothing, go_on = 1.0 - sum(kept), 1.0 - 2.0 * stop
        before = [
            nothing ** (at - 1) * (kept[0] - stop) * go_on ** (time - at - 1) * 2.0 * stop for at in range(1, time)
        ]
        return nothing ** (time - 1) * stop + math.fsum(before)

    claimed = max(abs(math.log(first[k] / sum(first) / (second[k] / sum(second)))) for k in (0, 1))
    return Fault(
        "40", "a common reading", "a time whose law is the same on every data set may be seen beside the draw",
        "the pair counts: the ratio of (first atom, t) is 1, 2.35, 12.5, 439 at t = 1, 5, 10, 20",
        "two atoms, (.25, .4) against (.3, .4), stopped under the lower bound (.25, .25)", f"ε of the pair at t = {time}",
        claimed, math.log(seen(second) / seen(first)),
    )  # fmt: skip
