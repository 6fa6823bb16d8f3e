"""The fingerprint of a question: one digest, on the plan page, in the ledger and on the certificate.

`fingerprint_of` is the only place that computes it. It covers everything that decides which numbers a release publishes:

| part | what it fixes |
| --- | --- |
| plan | mechanism, model (with groups, levels, ranges and conditions), n, draws, budget, promise |
| target, schema | the column, and every declaration of every column |
| dataset | the name that is charged |
| measure | center and unit of a regression's response |
| notes | what the caller states about the data, such as which model an evaluation is of |

Records given as arrays have no schema and no target. Their fingerprint covers the plan, the data set's name and the notes:
two arrays of one data set are told apart by the label in the ledger alone.

The sentences of a plan (its theorem and assumptions) are left out, so a new wording does not change a fingerprint.
"""

from __future__ import annotations

import unicodedata

from onedraw.plans import Plan, digest_of

from .certificate import DataStatement


def fingerprint_of(plan: Plan, data: DataStatement) -> str:
    """Return the SHA-256 of the question's canonical JSON."""
    stated = data.model_dump(mode="json")
    document = {name: stated.get(name) for name in ("dataset", "target", "measure", "notes")}
    return digest_of({"plan": plan.without_words(), "schema": data.schema_digest, **document})


def dataset_name(given: str | None, declared: str | None) -> str | None:
    """Return the name that a release is charged to: the caller's or the schema's, spelled as the ledger does."""
    name = given or declared
    return unicodedata.normalize("NFC", name) if isinstance(name, str) and name else None
