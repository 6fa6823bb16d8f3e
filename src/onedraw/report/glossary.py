"""The words a report uses, in plain words: one sentence each, the same as on the documentation's glossary page."""

from __future__ import annotations

WORDS = (
    ("epsilon", "ε (epsilon)", "How much one record may change what comes out: the smaller, the more private."),
    ("delta", "δ (delta)", "The small chance with which ε may be exceeded; 0 where it never is."),
    ("neighbours", "Neighbours", "Two data sets that differ in one record only: the promise is that nobody can tell them apart well."),
    ("unit", "Unit", "Whose data the promise is about: one record, or all records of one person up to a declared number."),
    ("ledger", "Ledger", "The account book of a data set: its budget, and what every release has spent of it."),
    ("certificate", "Certificate", "The released file: the numbers, what was promised about them, and everything needed to check it."),
    ("proven", "Exact, proven, accounted", "How the promise is known to hold: the draw follows its law exactly, a theorem covers what "
     "ran, or the distance to the exact law is part of what was charged."),
    ("fit", "Fit", "An estimate of a model's coefficients, made private by noise in the equations it solves."),
    ("draw", "Draw", "Numbers picked at random from those that the records make likely; the chance in it is what protects."),
    ("standard-error", "Standard error", "How far an estimate typically is from the truth: chance in the sample and noise for privacy "
     "together."),
    ("refused-interval", "Refused interval", "No interval is given because it could not keep what it says; the estimate stands."),
)  # fmt: skip
"""(anchor, word, what it means)."""
