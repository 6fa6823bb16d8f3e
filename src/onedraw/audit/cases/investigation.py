"""A whole audit: every case examined, its smallest caught fault found, its draws attacked, within a stated effort.

What is done, and how many rounds an attack has, is decided beforehand from public numbers (steps of a chain, number of
records): the plan of an audit, and the time it will take, are the same for every data set.

**Examining a case**: the exact profile of its pairs beside the promise. The *gap* is what is promised over what is
attained, in the promise's own currency (ε, range, μ, Rényi divergence at the plan's order): 1 is attained. The planted
fault multiplies the weight by a factor; the smallest factor at which the audit says "broken" is found by false position
and confirmed by the profile's own verdict.

**The program's own draws**: plan, summary, target and sampler as a release runs them. `release` draws once and charges
the ledger each time. Here the same steps run with a seeded generator and many draws at a go, without ledger and
certificate: an attack needs thousands of draws of synthetic records, and none of them is private.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import special

from onedraw import audit
from onedraw.arrays import Array
from onedraw.audit.attacks import Method
from onedraw.audit.comparison import excess, share
from onedraw.audit.results import AttackResult, AuditReport, PairFinding, Violation, json_object
from onedraw.privacy import Promise, PureDP

from .case import LogDensity, Pair

# ── the program's own draws ──

Draw = Callable[[int, np.random.Generator, int], Array]


def draws_of(case: Any, pair: Pair, *, factor: float = 1.0, sampler: Any = None) -> Draw | None:
    """``draw(which, generator, size)`` of the program with the planted fault; None where nothing proven can be run."""
    if isinstance(case, RandomisedResponse):
        return lambda which, generator, size: case.draws(which, factor, generator, size)
    plan = case.faulty(factor)
    chosen = case.sampler(plan) if sampler is None else sampler
    if chosen is None:
        return None

    def draw(which: int, generator: np.random.Generator, size: int) -> Array:
        records, seed = (pair.first, pair.second)[which], int(generator.integers(2**62))
        drawn: Array = case.draws(plan, records, chosen, size=size, seed=seed)
        return drawn

    return draw


@dataclass(frozen=True)
class RandomisedResponse:
    """The yardstick: tells the truth with probability e^ε/(1 + e^ε). Its ε is its weight, and attained exactly."""

    epsilon: float
    name: str = "randomised response"
    model: str = "one bit"
    mechanism: str = "randomised response"
    key: str = "randomised-response"
    reason: str = "the definition of ε"
    attained: bool = True
    pairs: tuple[Pair, ...] = (Pair("0 and 1", [0], [1]),)
    plan: None = None
    delta: float = 0.0
    orders: tuple[float, ...] = ()

    @property
    def promise(self) -> Promise:
        return PureDP(self.epsilon)

    def replayed(self) -> None:
        return None

    def truth(self, factor: float) -> float:
        return float(special.expit(factor * self.epsilon))

    def profile(self, pair: Pair, factor: float = 1.0) -> Any:
        law = np.array([self.truth(factor), 1.0 - self.truth(factor)])
        return audit.finite_profile(*(law if records == [0] else law[::-1] for records in pair))

    def logdensity(self, records: Any, factor: float = 1.0) -> LogDensity:
        truth = self.truth(factor)
        return lambda draws: np.log(np.where(draws.reshape(-1) == records[0], truth, 1.0 - truth))

    def draws(self, bit: int, factor: float, generator: np.random.Generator, size: int) -> Array:
        return np.where(generator.random((size, 1)) < self.truth(factor), bit, 1.0 - bit)


BLACK_BOX = ("histogram", "classifier")
THRESHOLDS: dict[str, Any] = {"membership": "held-out", "bayes": 0.5}
"""Of the membership attack: the one that shows the largest ε, chosen on held-out rounds; and the Bayes rule, which
tells two data sets apart most often and so is the one to break a Gaussian or Rényi promise with."""


CONFIRMING_ROUNDS, CONFIRMING_CONFIDENCE = 4, 0.9999
"""How a suspicion is confirmed: by so many times the rounds, all new, at this confidence. The limits need four times the
rounds to be as far from the counts as at 95 %; an honest case is then accused once in 200,000 audits, not once in 20."""


def attack_program(
    case: Any, pair: Pair, *, rounds: int, methods: tuple[str, ...] = ("membership",), factor: float = 1.0,
    delta: float, confidence: float = 0.95, generator: np.random.Generator, sampler: Any = None,
) -> tuple[AttackResult, ...]:  # fmt: skip
    """Attacks on what the library really draws, at ``factor`` times the weight; none where nothing proven can be run.

    Every method shares the failure probability, so that all bounds hold together. Without a formula for the density the
    membership attack is replaced by the histogram. An attack that shows more than promised is repeated with new draws
    (``CONFIRMING_ROUNDS``), and the repetition is what is returned: a mechanism is not accused by one chance in twenty.
    """
    draw = draws_of(case, pair, factor=factor, sampler=sampler)
    if draw is None:
        return ()
    # the attacker's formulas are those of the plan: nobody tells the attacker about a fault
    logs = [case.logdensity(records) for records in pair]
    known = logs[0] is not None
    chosen = dict.fromkeys(method if known or method in BLACK_BOX else "histogram" for method in methods)
    each = 1.0 - (1.0 - confidence) / len(chosen)

    def attack(method: str, rounds: int, confidence: float) -> AttackResult:
        if method in BLACK_BOX:
            return audit.blackbox_lower_bound(
                draw, 0, 1, rounds=rounds, delta=delta, confidence=confidence, method=cast(Method, method),
                generator=generator,
            )  # fmt: skip
        return audit.membership_attack(
            draw, *logs, rounds=rounds, calibration_rounds=max(200, rounds // 5), threshold=THRESHOLDS[method],
            delta=delta, confidence=confidence, generator=generator,
        )  # fmt: skip

    def attack_and_confirm(method: str) -> AttackResult:
        found = attack(method, rounds, each)
        if found.breaks(case.promise) is None:
            return found
        return attack(method, CONFIRMING_ROUNDS * rounds, max(each, CONFIRMING_CONFIDENCE))

    return tuple(attack_and_confirm(method) for method in chosen)


# ── a case ──

LARGEST_FACTOR = 64.0
PRECISION = 0.002
"""How far above the smallest caught factor the reported one may lie, relatively."""


@dataclass(frozen=True)
class Examination:
    """What was found about one case."""

    case: Any
    pair: Pair
    """The pair that comes closest to the promise."""
    profile: Any
    gap: float
    delta: float
    exact_epsilon: float
    """ε at δ on that pair, from below."""
    open_pair: Pair
    """The pair whose draws are told apart most often: the one to attack with draws."""
    confidence: float = 0.95
    violation: Violation | None = None
    factor: float | None = None
    """The smallest factor on the weight that the exact audit catches; None where none up to 64, or none was sought."""
    attacks: tuple[AttackResult, ...] = ()
    left_out: tuple[str, ...] = ()
    departures: tuple[str, ...] | None = None
    """Where the program departs from its plan; None where it was not replayed."""

    @property
    def report(self) -> AuditReport:
        shown = next((one for one in (attack.breaks(self.case.promise) for attack in self.attacks) if one), None)
        finding = PairFinding(0, self.attacks, self.profile, self.violation or shown)
        return AuditReport(self.case.promise, (finding,), self.delta, self.confidence)

    @property
    def passed(self) -> bool:
        return self.report.passed and not self.departures

    @property
    def promised_epsilon(self) -> float:
        return float(self.case.promise.epsilon(self.delta))

    @property
    def attacked_epsilon(self) -> float | None:
        """The best lower bound from draws; None where no draws were made."""
        return max((attack.epsilon_lower_bound for attack in self.attacks), default=None)

    def to_dict(self) -> dict[str, Any]:
        case = self.case
        return json_object({
            "name": case.name, "model": case.model, "mechanism": case.mechanism, "key": case.key,
            "promise": case.promise, "promise_text": in_words(case.promise), "delta": self.delta,
            "promised_epsilon": self.promised_epsilon, "exact_epsilon": self.exact_epsilon, "gap": self.gap,
            "attained": case.attained, "reason": case.reason, "pair": self.pair.name,
            "smallest_caught_factor": self.factor, "attacked_epsilon": self.attacked_epsilon, "confidence": self.confidence,
            "attacks": self.attacks, "left_out": self.left_out, "departures": self.departures, "passed": self.passed,
            "violation": self.report.violation,
        })  # fmt: skip


def examine(case: Any, *, thorough: bool = True, confidence: float = 0.95) -> Examination:
    """Promise against the exact profile of every pair; the pair that comes closest is kept."""
    profiles = [(pair, case.profile(pair)) for pair in case.pairs]
    delta, orders = case.delta, case.orders
    shares = [share(profile, case.promise, delta=delta, orders=orders) for _, profile in profiles]
    best = max(shares)
    closest = [one for one, attained in zip(profiles, shares, strict=True) if attained >= best * (1.0 - 1e-6)]
    shown = [max(0.0, profile.epsilon_bracket(delta)[0]) for _, profile in closest]
    pair, profile = closest[int(np.argmax(shown))]
    open_pair = max(profiles, key=lambda one: one[1].delta_bracket(0.0)[0])[0]
    broken = profile.breaks(case.promise) if thorough or best > 1.0 else None
    gap = 1.0 / best if best > 0 else math.inf
    return Examination(case, pair, profile, gap, delta, max(shown), open_pair, confidence, broken)


def smallest_caught_factor(case: Any, pair: Pair, *, gap: float = 1.0, confirm: bool = True) -> float | None:
    """The smallest factor on the weight at which the exact audit says "broken", found to 0.2 % and confirmed there.

    What is attained grows with the weight. The logarithm of the excess is nearly linear in that of the factor, so false
    position is quick; every other step is a bisection, for promises of which it is not. ``gap`` is where to begin.
    """

    def height(logarithm: float) -> float:
        profile = case.profile(pair, math.exp(logarithm))
        return math.log(max(excess(profile, case.promise, delta=case.delta, orders=case.orders), 1e-12))

    low, high, limit = 0.0, max(min(1.1 * math.log(gap), 3.0), 2.0 * PRECISION), math.log(LARGEST_FACTOR)
    at_low, at_high = height(low), height(high)
    if at_low > 0.0:
        return 1.0
    while at_high <= 0.0:
        if high >= limit:
            return None
        low, at_low, high = high, at_high, min(2.0 * high, limit)
        at_high = height(high)
    straight = True
    while high - low > PRECISION:
        step = (high - low) * (-at_low / (at_high - at_low) if straight else 0.5)
        middle = min(max(low + step + straight * PRECISION / 2, low + PRECISION / 4), high - PRECISION / 4)
        at_middle, straight = height(middle), not straight
        if at_middle > 0.0:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    factor = math.exp(high)
    while confirm and case.profile(pair, factor).breaks(case.promise) is None:
        factor *= 1.0 + PRECISION
        if factor > LARGEST_FACTOR:
            return None
    return factor


def in_words(promise: Promise) -> str:
    """A promise for a table: what it says of itself, its numbers to four digits."""
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.4g}", str(promise))


# ── all of them ──


@dataclass(frozen=True)
class Effort:
    """How hard to try: at most so many rounds per attack, and so many seconds for all attacks together."""

    name: str
    rounds: int
    attack_seconds: float
    methods: tuple[str, ...]
    chains: bool
    """Whether chains are attacked and fits replayed too: compiling one takes longer than a whole demonstration."""
    faults: bool
    """Whether the smallest caught fault is sought."""
    thorough: bool
    """Whether every profile is held against the whole promise, or only against its own currency."""


ALL = ("membership", "bayes", "histogram", "classifier")
EFFORTS = {
    "demo": Effort("demo", 4_000, 1.0, ALL[:1], chains=False, faults=False, thorough=False),
    "quick": Effort("quick", 40_000, 16.0, ALL[:2], chains=True, faults=True, thorough=False),
    "full": Effort("full", 1_000_000, 600.0, ALL, chains=True, faults=True, thorough=True),
}

FEWEST = 2_000
"""Rounds of an attack that is worth making."""

REPLAYING = 4.0
"""Seconds for a fit, most of them for compiling its sums."""


@dataclass(frozen=True)
class Task:
    """One case and what will be done with it."""

    case: Any
    rounds: int
    """Of the attack on the program's draws; 0: none."""
    why: str
    """Why none, if none."""
    seconds: float
    sampler: Any = None


def tasks_for(
    cases: Sequence[Any], effort: Effort, *, rounds: int | None = None, confidence: float = 0.95, sampler: Any = None
) -> list[Task]:
    """What an audit of this effort does with each case, and about how long it takes."""
    allowed = effort.attack_seconds / len(cases)
    return [_task(case, effort, allowed, rounds, confidence, sampler) for case in cases]


def _task(case: Any, effort: Effort, allowed: float, rounds: int | None, confidence: float, named: Any) -> Task:
    exact = 4.0 if effort.thorough else 0.4
    if case.plan is None:
        _check(case, rounds or effort.rounds, effort, confidence)
        return Task(case, rounds or effort.rounds, "", exact)
    if case.without_draws:
        return Task(case, 0, case.without_draws, exact + REPLAYING * effort.chains)
    sampler = case.sampler(case.plan) if named is None else named
    if sampler is None:
        return Task(case, 0, "no proven sampler exists for it", exact)
    each, compiling = sampler.seconds_each(case.plan), sampler.compiling
    if compiling and not effort.chains:
        return Task(case, 0, f"compiling its chain takes longer than --effort {effort.name}", exact)
    passes = 1.6 * len(effort.methods) * each
    possible = int(allowed / passes)
    if rounds is None and possible < FEWEST and not effort.thorough:
        return Task(case, 0, f"drawing takes too long for --effort {effort.name}", exact)
    chosen = max(FEWEST, min(effort.rounds, possible)) if rounds is None else rounds
    _check(case, chosen, effort, confidence)
    return Task(case, chosen, "", exact + compiling + chosen * passes, sampler)


def _check(case: Any, rounds: int, effort: Effort, confidence: float) -> None:
    """Refuse rounds so few that even a mechanism that publishes its records would pass."""
    counted = max(1, rounds // (4 if set(effort.methods) & set(BLACK_BOX) else 2))
    each = 1.0 - (1.0 - confidence) / len(effort.methods)
    audit.check_rounds(counted, case.promise.epsilon(case.delta), case.delta, each)


def investigate(
    tasks: Sequence[Task], effort: Effort, *, confidence: float = 0.95, generator: np.random.Generator,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[Examination]:  # fmt: skip
    """Carry the tasks out; ``progress`` is told the name of each case as it is begun."""
    for task in tasks:
        case = task.case
        progress(case.name)
        found = examine(case, thorough=effort.thorough, confidence=confidence)
        factor: float | None = None
        attacks: tuple[AttackResult, ...] = ()
        if effort.faults:
            factor = smallest_caught_factor(case, found.pair, gap=found.gap, confirm=effort.thorough)
        if task.rounds:
            attacks = attack_program(
                case, found.open_pair, rounds=task.rounds, methods=effort.methods, delta=found.delta,
                confidence=confidence, generator=generator, sampler=task.sampler,
            )  # fmt: skip
        departures = case.replayed() if effort.chains else None
        left_out = (task.why,) if task.why else ()
        yield replace(found, factor=factor, attacks=attacks, left_out=left_out, departures=departures)
