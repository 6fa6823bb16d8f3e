"""The folders of a release under test, and what stands in them afterwards (exhaustive_faults.py)."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DATASET = "patients"


@dataclass(frozen=True)
class Place:
    """The folders of one run. The shim watches ``root``."""

    root: Path

    @property
    def ledger(self) -> Path:
        return self.root / "books" / "ledger.db"

    @property
    def out(self) -> Path:
        return self.root / "out" / "release.json"

    @property
    def report(self) -> Path:
        return self.root / "out" / "report.html"

    def release_words(self) -> list[str]:
        return ["release", "patients.csv", "--schema", "schema.yaml", "--target", "age", "--model", "mean", "--epsilon",
                "0.5", "--ledger", str(self.ledger), "--out", str(self.out), "--report", str(self.report)]  # fmt: skip

    def top_up_words(self) -> list[str]:
        return ["ledger", "top-up", str(self.ledger), "--dataset", DATASET, "--epsilon", "3"]

    def way_out(self) -> list[str]:
        """The command beside an unfinished release; otherwise the first command again."""
        try:
            claim = self.out.with_name(f"{self.out.name}.unfinished").read_text(encoding="utf-8")
            return shlex.split(json.loads(claim)["finish"])[1:]
        except (OSError, ValueError):
            return self.release_words()

    def charges(self) -> dict[str, str | None]:
        """Each entry that was reserved, with the digest it was settled with."""
        from onedraw.ledger import Ledger

        found: dict[str, str | None] = {}
        for event in Ledger.open(self.ledger).events():
            if event.kind in ("reserved", "settled"):
                found[event.entry] = event.payload.get("certificate")
        return found

    def budget(self) -> float:
        from onedraw.ledger import Ledger

        return float(Ledger.open(self.ledger).account(DATASET).budget.number)

    def paid_draw(self) -> str | None:
        """The digest of a draw that is whole on disk, under its name or as a draft."""
        from onedraw.errors import OnedrawError
        from onedraw.release.certificate import read_certificate

        for path in (self.out, self.out.with_name(f"{self.out.name}.draft")):
            with suppress(OnedrawError):
                return read_certificate(path).digest
        return None

    def ledger_faults(self) -> list[str]:
        from onedraw.ledger import Ledger

        try:
            return [] if Ledger.open(self.ledger).verify() else ["the ledger's budget is not kept"]
        except Exception as error:
            return [f"the ledger is refused: {error}"]

    def digest_of(self, path: Path) -> str | None:
        """The digest of a certificate that this ledger calls authentic; None of anything else."""
        from onedraw.ledger import Ledger
        from onedraw.release import load, verify

        try:
            answer = verify(path, ledger=Ledger.open(self.ledger)).answer
            return load(path).certificate.digest if answer == "authentic" else None
        except Exception:
            return None
