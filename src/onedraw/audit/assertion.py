"""One line for the tests of anyone who adds a mechanism: ``assert_private(mechanism, promise, pairs=…)``.

Where a density or a probability vector is given the pair's exact profile decides (and the Bayes-optimal attack tests
the draws, if there are any); where there are only draws, the black-box attacks do. The allowed failure 1 − confidence
is divided among all attacks that are run, so that a mechanism that keeps its promise is accused with at most that
probability in the whole call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.audit import bounds
from onedraw.audit.attacks import Method, blackbox_lower_bound, many_draws, membership_attack
from onedraw.audit.profiles import Profile, exact_profile, finite_profile
from onedraw.audit.results import AttackResult, AuditReport, PairFinding, Violation, promise_of
from onedraw.audit.search import Domain, differing_record, worst_pair
from onedraw.errors import WrongCall
from onedraw.privacy.numbers import positive_integer, probability, text
from onedraw.privacy.promises import Promise

Mechanism = Callable[..., Any]
Pair = tuple[Any, Any]


class NotPrivate(AssertionError):
    """The promise is broken. ``report`` holds everything that was tried, ``violation`` the place."""

    def __init__(self, message: str, *, report: AuditReport, violation: Violation) -> None:
        super().__init__(message)
        self.report, self.violation = report, violation


@dataclass(frozen=True)
class _Audit:
    """What is known about the mechanism, and how hard to try."""

    mechanism: Mechanism | None
    promise: Promise
    logdensity: Callable[[Any], Callable[[Any], Any]] | None
    support: Sequence[tuple[float, float]] | None
    probabilities: Callable[[Any], Any] | None
    methods: tuple[Method, ...]
    rounds: int
    delta: float
    generator: np.random.Generator


def assert_private(
    mechanism: Mechanism | None, promise: Promise, *, pairs: Sequence[Pair] | None = None, domain: Domain | None = None,
    n: int | None = None, logdensity: Callable[[Any], Callable[[Any], Any]] | None = None,
    support: Sequence[tuple[float, float]] | None = None, probabilities: Callable[[Any], Any] | None = None,
    confidence: float = 0.999999, rounds: int = 20_000, delta: float | None = None,
    methods: Sequence[Method] = ("histogram", "classifier"), evaluations: int = 60,
    generator: np.random.Generator | None = None,
) -> AuditReport:  # fmt: skip
    """Try to break ``promise`` on every pair; raise ``NotPrivate`` where it breaks, return the report where not.

    ``mechanism(dataset, generator)`` gives a draw (with a parameter ``size``, that many draws). ``pairs`` are data sets
    that differ in one record; without them the worst pair of ``n`` records of ``domain`` is searched for with
    ``evaluations`` tries, on draws that are not counted. ``logdensity(dataset)`` gives an unnormalised log density
    (N, d) → (N,) on ``support``, (lo, hi) pairs, d ≤ 2; ``probabilities(dataset)`` a probability vector. Either makes
    the audit exact, and then ``mechanism`` may be None.

    | what | then |
    | --- | --- |
    | the promise is missing, a pair is no pair, a record lies outside the domain | ``WrongCall`` |
    | so few rounds that no mechanism could fail | ``TooFewRounds`` |
    | draws that are not finite | an outcome of their own |
    | an exception in the mechanism | passed on: decide what it must do, a failure is a release too |

    **Guarantee.** A mechanism that keeps the promise is accused with probability at most 1 − confidence; exact profiles
    accuse only beyond their error bound. Passing is not a proof.
    """
    audit = _Audit(
        mechanism, promise_of(promise), logdensity, support, probabilities, tuple(methods),
        positive_integer("rounds", rounds), _delta(promise, delta), generator or np.random.default_rng(),
    )  # fmt: skip
    _check(audit, pairs, domain, n)
    failure = 1.0 - bounds.confidence_of(confidence)
    attacks = len(audit.methods) + (logdensity is not None)  # on each pair, if there are draws
    each = 1.0 - failure / max(1, (1 if pairs is None else len(pairs)) * attacks)
    promised = promise.epsilon(audit.delta)
    if mechanism is not None and promised < math.inf:
        bounds.check_rounds(max(1, audit.rounds // 4), promised, audit.delta, each)
    chosen = pairs if pairs is not None else [_searched(audit, domain, n, evaluations)]
    findings = []
    for index, pair in enumerate(chosen):
        profile, attacked = _profile(audit, pair), tuple(_attacks(audit, pair, each))
        tried: list[Any] = [*attacked] if profile is None else [profile, *attacked]
        found = next((broken for one in tried if (broken := one.breaks(audit.promise)) is not None), None)
        findings.append(PairFinding(index, attacked, profile, found))
    report = AuditReport(promise, tuple(findings), audit.delta, float(confidence))
    if report.violation is not None:
        raise NotPrivate(_message(report, pairs is None), report=report, violation=report.violation)
    return report


def _profile(audit: _Audit, pair: Pair) -> Profile | None:
    if audit.probabilities is not None:
        return finite_profile(audit.probabilities(pair[0]), audit.probabilities(pair[1]))
    if audit.logdensity is not None and audit.support is not None:
        return exact_profile(audit.logdensity(pair[0]), audit.logdensity(pair[1]), audit.support)
    return None


def _attacks(audit: _Audit, pair: Pair, confidence: float) -> list[AttackResult]:
    mechanism = audit.mechanism
    if mechanism is None:
        return []
    found = [
        blackbox_lower_bound(
            mechanism, *pair, rounds=audit.rounds, delta=audit.delta, confidence=confidence, method=method,
            generator=audit.generator,
        )
        for method in audit.methods
    ]  # fmt: skip
    if audit.logdensity is not None:
        found.append(
            membership_attack(
                lambda which, generator, size: many_draws(mechanism, pair[which], size, generator),
                audit.logdensity(pair[0]), audit.logdensity(pair[1]), rounds=audit.rounds // 2,
                calibration_rounds=max(1, audit.rounds // 6), threshold="held-out", delta=audit.delta,
                confidence=confidence, generator=audit.generator,
            )
        )  # fmt: skip
    return found


def _searched(audit: _Audit, domain: Domain | None, n: int | None, evaluations: int) -> Pair:
    """The worst pair by exact profile where there is one, else by short attacks at a confidence of no consequence."""
    assert domain is not None and n is not None  # noqa: PT018

    def score(dataset: Any, neighbour: Any) -> float:
        profile = _profile(audit, (dataset, neighbour))
        if profile is not None:
            return -profile.gap(audit.promise)
        assert audit.mechanism is not None
        return blackbox_lower_bound(
            audit.mechanism, dataset, neighbour, rounds=max(400, audit.rounds // 10), delta=audit.delta, confidence=0.6,
            generator=audit.generator,
        ).epsilon_lower_bound  # fmt: skip

    exact = audit.probabilities is not None or audit.logdensity is not None
    tries = evaluations if exact else min(evaluations, 24)
    found = worst_pair(score, domain, n, generator=audit.generator, evaluations=tries)
    return found.dataset, found.neighbour


def _check(audit: _Audit, pairs: Sequence[Pair] | None, domain: Domain | None, n: int | None) -> None:
    if audit.mechanism is None and audit.logdensity is None and audit.probabilities is None:
        raise WrongCall("there is nothing to audit: pass a mechanism, a logdensity or probabilities")
    if audit.logdensity is not None and audit.support is None:
        raise WrongCall(
            "an exact profile integrates the density over its support, which was not given. Pass support=[(lo, hi)], one "
            "pair per coordinate of a draw (at most two; ends may be infinite), or leave logdensity out."
        )
    if audit.mechanism is not None and not audit.methods:
        raise WrongCall("no attack was named: pass methods=('histogram',), ('classifier',) or both")
    if pairs is None:
        if domain is None or n is None:
            raise WrongCall("an audit needs data sets: pass pairs=[(dataset, neighbour), …], or domain=… and n=…")
        positive_integer("n", n)
        return
    if len(pairs) == 0:
        raise WrongCall("an audit of no pairs passes everything: pass at least one pair")
    for index, (dataset, neighbour) in enumerate(pairs):
        differing_record(dataset, neighbour, n=n)
        if domain is not None:
            domain.check(dataset, f"the first data set of pair {index}")
            domain.check(neighbour, f"the second data set of pair {index}")


def _delta(promise: Promise, delta: float | None) -> float:
    """The δ at which the lower bound on ε is reported: 0 if the promise is pure, else its own or the default."""
    if delta is not None:
        return probability("δ", delta)
    return 0.0 if promise.pure_epsilon < math.inf else promise.quoted_delta


def _message(report: AuditReport, searched: bool) -> str:
    broken = next(finding for finding in report.findings if finding.violation is not None)
    assert broken.violation is not None
    pair = "the worst pair found" if searched else f"pair {broken.pair}"
    return (
        f"the promise {report.promise} is broken on {pair}: {broken.violation}. "
        f"Lower bound on ε at δ = {text(report.delta)}: {broken.epsilon_lower_bound(report.delta):.4g} against "
        f"{report.promised_epsilon:.4g} promised (method: {broken.violation.method}). "
        "Do not release with this mechanism: look for a sensitivity that is too small (replacing a record moves it twice "
        "as far as removing one), a bound read from the data, a clip that is missing, or noise drawn once and used twice."
    )
