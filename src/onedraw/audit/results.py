"""What an audit finds, as values: a violation, an attack's result, a report. They print, and they go to JSON.

In JSON an unbounded number is null. No record is ever part of a result: pairs of data sets go by their index.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onedraw.audit import bounds
from onedraw.errors import WrongCall
from onedraw.privacy.promises import Promise
from onedraw.privacy.tradeoff import TradeOff

if TYPE_CHECKING:
    from onedraw.audit.profiles import Profile

_ORDERS = (1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def promise_of(value: Any) -> Promise:
    """A promise, or a clear word that one is missing."""
    if isinstance(value, Promise):
        return value
    given = "none" if value is None else f"a {type(value).__name__}"
    raise WrongCall(
        f"an audit needs the promise it is to test, but {given} was given: without one nothing can be broken. "
        "Pass a promise, such as onedraw.PureDP(1.0) or plan.guarantee.promise."
    )


def json_object(values: dict[str, Any]) -> dict[str, Any]:
    """The same with what JSON can hold: infinite and undefined numbers become null, values of ours what they say."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return json_object(value)
        if hasattr(value, "to_dict"):
            return value.to_dict()
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return {str(name): plain(value) for name, value in values.items()}


@dataclass(frozen=True)
class Violation:
    """One place where more is given away than promised.

    ``quantity`` is "log-ratio", "range", "delta" (at ε = ``at``) or "renyi" (at order ``at``); ``found`` is a lower
    bound on it, by ``method``. ``confidence`` is None where the finding is a calculation and not a statistic.
    """

    promise: Promise
    quantity: str
    at: float | None
    promised: float
    found: float
    confidence: float | None = None
    method: str = "exact profile"

    @property
    def factor(self) -> float:
        """How many times the promised value was found."""
        return self.found / self.promised if self.promised > 0.0 else math.inf

    def __str__(self) -> str:
        where = {"delta": "δ at ε = {}", "renyi": "D_λ at λ = {}", "range": "the range of the log-ratio"}
        name = where.get(self.quantity, "the largest log-ratio").format(_short(self.at))
        sure = "exactly" if self.confidence is None else f"with confidence {_short(self.confidence)}"
        return f"{name} is promised to be at most {_short(self.promised)} and is at least {_short(self.found)}, {sure}"

    def to_dict(self) -> dict[str, Any]:
        return json_object(vars(self))


@dataclass(frozen=True, kw_only=True)
class AttackResult(bounds.SweepBound):
    """What one attack on one pair of data sets showed.

    ``fp`` of ``rounds0`` draws from the first data set were taken for the neighbour's, ``fn`` of ``rounds1`` the other
    way round, at a threshold fixed before those rounds; ``alpha`` is what the two confidence limits together may fail
    with (1 − confidence, divided by the number of thresholds of a sweep). ``roc`` holds (FPR, FNR) points without
    confidence. The normaliser's log-ratio and its standard error belong to the membership attack.
    """

    method: str
    calibration_rounds: int = 0
    roc: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    log_normaliser_ratio: float | None = None
    log_normaliser_error: float | None = None
    non_finite: int = 0

    @classmethod
    def of(cls, found: bounds.SweepBound, scores: tuple[Any, Any], **more: Any) -> AttackResult:
        """What was counted, at the best of the thresholds, and the curve of all."""
        return cls(**asdict(found), roc=bounds.score_roc(*scores), **more)

    @property
    def rates(self) -> tuple[float, float]:
        """(FPR, FNR) as counted."""
        return self.fp / self.rounds0, self.fn / self.rounds1

    @property
    def accuracy(self) -> float:
        """The mean of the two success rates: what equal priors give."""
        return 1.0 - sum(self.rates) / 2.0

    @property
    def limits(self) -> tuple[float, float]:
        """Upper confidence limits of (FPR, FNR), valid together."""
        first, second = bounds.rate_limits(self.fp, self.fn, self.rounds0, self.rounds1, alpha=self.alpha)
        return float(first), float(second)

    @property
    def mu_lower_bound(self) -> float:
        """The lower bound on μ of GaussianDP, from the same limits."""
        return bounds.mu_from_rates(*self.limits)

    def renyi_lower_bound(self, order: float) -> float:
        """The lower bound on D_λ, from the same limits."""
        return bounds.renyi_from_rates(*self.limits, order)

    def breaks(self, promise: Promise) -> Violation | None:
        """Where this attack shows more than promised, at its confidence; None where it does not.

        The limits are one point (FPR, FNR); a promise is broken if the point lies below its trade-off curve, or if two
        coins with these rates are further apart in Rényi divergence than promised.
        """
        first, second = self.limits
        epsilon, promised, shown = TradeOff.of(promise_of(promise)).excess(first, second)
        if shown > promised:
            return Violation(promise, "delta", epsilon, promised, shown, self.confidence, self.method)
        if promise.renyi is None:
            return None
        for order in _ORDERS:
            bound, divergence = promise.renyi.at_order(order), bounds.renyi_from_rates(first, second, order)
            if divergence > bound:
                return Violation(promise, "renyi", order, bound, divergence, self.confidence, self.method)
        return None

    def to_dict(self) -> dict[str, Any]:
        upper = dict(zip(("fpr_upper", "fnr_upper"), self.limits, strict=True))
        return json_object({**asdict(self), "accuracy": self.accuracy, **upper, "mu_lower_bound": self.mu_lower_bound})


@dataclass(frozen=True)
class PairFinding:
    """One pair of data sets, by its index, and everything tried on it."""

    pair: int
    attacks: tuple[AttackResult, ...] = ()
    profile: Profile | None = None
    violation: Violation | None = None

    @property
    def method(self) -> str:
        """Everything that was tried, in words."""
        exact = [] if self.profile is None else ["exact profile"]
        return ", ".join([*exact, *(attack.method for attack in self.attacks)])

    def epsilon_lower_bound(self, delta: float) -> float:
        """The best lower bound on ε(δ) found on this pair."""
        shown = [attack.epsilon_lower_bound for attack in self.attacks]
        if self.profile is not None:
            shown.append(self.profile.epsilon_bracket(delta)[0])
        return max(shown, default=0.0)

    def to_dict(self) -> dict[str, Any]:
        found = {"profile": self.profile, "attacks": self.attacks, "violation": self.violation}
        return json_object({"pair": self.pair, "method": self.method, **found})


@dataclass(frozen=True)
class AuditReport:
    """A promise and what the audits made of it: promise and lower bound side by side."""

    promise: Promise
    findings: tuple[PairFinding, ...]
    delta: float
    confidence: float

    @property
    def violation(self) -> Violation | None:
        """The first place where the promise is broken."""
        return next((finding.violation for finding in self.findings if finding.violation is not None), None)

    @property
    def passed(self) -> bool:
        return self.violation is None

    @property
    def epsilon_lower_bound(self) -> float:
        """The best lower bound on ε at ``delta`` over all pairs."""
        return max((finding.epsilon_lower_bound(self.delta) for finding in self.findings), default=0.0)

    @property
    def promised_epsilon(self) -> float:
        return self.promise.epsilon(self.delta)

    def __str__(self) -> str:
        verdict = "not broken" if self.passed else f"BROKEN: {self.violation}"
        return (
            f"promise {self.promise}: ε = {_short(self.promised_epsilon)} at δ = {_short(self.delta)}; "
            f"lower bound {_short(self.epsilon_lower_bound)} over {len(self.findings)} pair(s); {verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        return json_object({
            "promise": self.promise, "promised_epsilon": self.promised_epsilon,
            "epsilon_lower_bound": self.epsilon_lower_bound, "delta": self.delta, "confidence": self.confidence,
            "passed": self.passed, "violation": self.violation, "findings": self.findings,
        })  # fmt: skip

    def to_json(self, *, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def figure(self, path: str | Path) -> Path:
        """The promise's trade-off curve against everything the audits found, as a picture."""
        from onedraw.audit.figure import tradeoff_figure

        found = [one for finding in self.findings for one in (*finding.attacks, finding.profile) if one is not None]
        return tradeoff_figure(self.promise, found, path)


def _short(value: float | None) -> str:
    return "—" if value is None else "∞" if value == math.inf else f"{value:.6g}"
