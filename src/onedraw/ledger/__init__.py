"""What has been spent on this dataset?

Append-only, hash-chained events in SQLite or PostgreSQL: `Ledger.open`, `Ledger.init`, then reserve → draw →
settle. Events are kept, not totals (`events`); what they add up to is asked of `onedraw.privacy`
(`accounts`). A SQLite ledger has a mark beside it, so that spends cannot get lost silently (`mark`).
"""

from __future__ import annotations

from .accounts import Account
from .answers import Remaining, Verification
from .events import Event, Kind, Reservation
from .ledger import Ledger
from .relocation import Restored

__all__ = ["Account", "Event", "Kind", "Ledger", "Remaining", "Reservation", "Restored", "Verification"]
