"""How exact a draw is: what a sampler says before it runs, and what a release pays for it (architecture.md).

Strongest first: ``Exact``, ``LastIterate`` (the law actually sampled carries its own promise),
``WithinTV(γ)`` (proven total variation distance), ``Estimated`` (evidence), ``Assumed`` (a named
assumption).
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from onedraw.errors import InvalidBudget
from onedraw.privacy.promises import Promise, exactly, promise_from_dict
from onedraw.privacy.rounding import text
from onedraw.privacy.validation import probability


class Exactness(abc.ABC):
    """The relation between the law a theorem is about and the law a sampler draws from."""

    kind: ClassVar[str]

    @property
    @abc.abstractmethod
    def sentence(self) -> str:
        """The words for a certificate."""

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]: ...

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Exactness:
        """The inverse of ``to_dict``; an unknown kind or field is an error."""
        kind = stored.get("kind") if isinstance(stored, Mapping) else None
        known: dict[str, type[Exactness]] = {
            member.kind: member for member in (Exact, WithinTV, LastIterate, AsRun, Estimated, Assumed)
        }
        if not isinstance(kind, str) or kind not in known:
            raise InvalidBudget(f"unknown kind of exactness {kind!r}; the known ones are {sorted(known)}")
        fields = {name: value for name, value in stored.items() if name != "kind"}
        return known[kind]._from_fields(fields)

    @classmethod
    @abc.abstractmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Exactness: ...


@dataclass(frozen=True)
class Exact(Exactness):
    """A draw from the very law the theorem is about; ``numeric`` names the number model it is exact in."""

    kind: ClassVar[str] = "exact"
    numeric: str = ""

    @property
    def sentence(self) -> str:
        return f"exact draw ({self.numeric})" if self.numeric else "exact draw"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "numeric": self.numeric}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Exact:
        return cls(*exactly(fields, ("numeric",), cls.kind))


@dataclass(frozen=True)
class WithinTV(Exactness):
    """The law drawn from is proven to be within total variation ``gamma``, for every data set."""

    kind: ClassVar[str] = "within-tv"
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", probability("γ", self.gamma))

    @property
    def sentence(self) -> str:
        return f"proven to be within total variation {text(self.gamma)} of an exact draw"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "gamma": self.gamma}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> WithinTV:
        return cls(*exactly(fields, ("gamma",), cls.kind))


@dataclass(frozen=True)
class LastIterate(Exactness):
    """The last iterate of a noisy algorithm: its own law is proven to keep ``promise``."""

    kind: ClassVar[str] = "last-iterate"
    promise: Promise

    @property
    def sentence(self) -> str:
        return f"last iterate, itself proven to keep {self.promise}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "promise": self.promise.to_dict()}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> LastIterate:
        (promise,) = exactly(fields, ("promise",), cls.kind)
        return cls(promise_from_dict(promise))


@dataclass(frozen=True)
class AsRun(Exactness):
    """The theorem is about the program itself, its rounding and early stopping included: what ran keeps ``promise``."""

    kind: ClassVar[str] = "as-run"
    promise: Promise

    @property
    def sentence(self) -> str:
        return f"the program that ran is itself proven to keep {self.promise}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "promise": self.promise.to_dict()}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> AsRun:
        (promise,) = exactly(fields, ("promise",), cls.kind)
        return cls(promise_from_dict(promise))


@dataclass(frozen=True)
class Estimated(Exactness):
    """Estimated to be within total variation ``gamma`` for every data set: evidence, not proof.

    Never pure: even where the estimate is right, a promise pays for γ as it does for `WithinTV`.
    """

    kind: ClassVar[str] = "estimated"
    gamma: float
    evidence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", probability("γ", self.gamma))

    @property
    def sentence(self) -> str:
        return (
            f"estimated, not proven, to be within total variation {text(self.gamma)} of an exact draw ({self.evidence})"
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "gamma": self.gamma, "evidence": self.evidence}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Estimated:
        return cls(*exactly(fields, ("gamma", "evidence"), cls.kind))


@dataclass(frozen=True)
class Assumed(Exactness):
    """Taken to be exact on the strength of a statement the caller accepted in so many words."""

    kind: ClassVar[str] = "assumed"
    statement: str

    @property
    def sentence(self) -> str:
        return f"assumed, not proven: {self.statement}"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "statement": self.statement}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Assumed:
        return cls(*exactly(fields, ("statement",), cls.kind))
