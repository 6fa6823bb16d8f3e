"""What an attack on the mechanism found, as the report quotes it: a lower bound on ε beside the promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onedraw.errors import WrongCall
from onedraw.privacy import Promise


@dataclass(frozen=True)
class AuditFinding:
    """Attacked ``rounds`` times on neighbours of the attacker's choice: at ``delta``, ε is at least this, with this
    confidence. ``broken``: the audit itself says that more was found than is promised."""

    epsilon_lower_bound: float
    delta: float
    confidence: float
    rounds: int = 0
    attack: str = ""
    broken: bool = False

    def __post_init__(self) -> None:
        if not (self.epsilon_lower_bound >= 0 and 0 <= self.delta < 1 and 0 < self.confidence < 1):
            raise WrongCall("An audit finding needs a lower bound of at least 0, δ in [0, 1) and confidence in (0, 1).")

    @classmethod
    def read(cls, found: Any) -> AuditFinding:
        """From anything that says the same by the same names, such as a result or a report of the audit room."""
        if isinstance(found, cls):
            return found
        try:
            return cls(
                float(found.epsilon_lower_bound), float(found.delta), float(found.confidence),
                rounds=getattr(found, "rounds0", 0) + getattr(found, "rounds1", 0),
                attack=", ".join(_methods(found)),
                broken=getattr(found, "passed", True) is False,
            )  # fmt: skip
        except (AttributeError, TypeError) as error:
            raise WrongCall(
                "audit= takes a finding with epsilon_lower_bound, delta and confidence, but a "
                f"{type(found).__name__} came. Pass onedraw.report.AuditFinding(...)."
            ) from error

    def contradicts(self, promise: Promise) -> bool:
        """Whether the promise allows less than was found."""
        return self.broken or self.epsilon_lower_bound > promise.epsilon(self.delta)


def _methods(found: Any) -> list[str]:
    """What was tried, each way once, in order."""
    tried = [found, *getattr(found, "findings", ())]
    return list(dict.fromkeys(str(one.method) for one in tried if getattr(one, "method", "")))
