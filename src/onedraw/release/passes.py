"""How often a draw reads the records, and how much: refused before the charge where it would be too often, by public numbers alone.

| what | where | refused |
| --- | --- | --- |
| sums of whole numbers (counts, fits, picks from candidates, noisy gradients) | one machine | beyond `MOST_READ` bytes in all passes |
| the same | a cluster | beyond its ``most_passes`` |
| a chain on a posterior, which holds the rows in memory | one machine | rows of more than `MOST_HELD` bytes, or beyond `MOST_READ` |
| the same | a cluster | always |
"""

from __future__ import annotations

from typing import Any

from onedraw.data import Records
from onedraw.errors import WrongCall
from onedraw.plans import Plan
from onedraw.samplers.sampler import Sampler

MOST_HELD = 2**31
"""Bytes of encoded rows that a chain holds in memory, with a copy or two beside; of a source that is not in memory already."""

MOST_READ = 2**46
"""Bytes that all passes of one release read: some hours on one machine."""


def check_passes(plan: Plan, sampler: Sampler, data: Any) -> None:
    """Before anything is spent; n, the width of a row and the steps are public."""
    passes = sampler.passes(plan)
    row = 8 * (plan.model.features.width + 1) if hasattr(plan.model, "features") else 8
    engine = data.engine if isinstance(data, Records) else None
    chain = not plan.sums_exactly and not plan.closed_form
    if engine is not None and chain and engine.most_passes is not None:
        raise _refused(
            plan, f"needs all records in the memory of one machine, and on {engine.name} they stay where they are"
        )
    if engine is not None and chain and plan.n * row > MOST_HELD:
        raise _refused(
            plan,
            f"needs all records in memory, and {plan.n:,} encoded rows take {_gib(plan.n * row)}, more than the {_gib(MOST_HELD)} "
            "that are held there",
        )
    if engine is not None and engine.most_passes is not None and passes > engine.most_passes:
        raise _refused(
            plan,
            f"reads all records up to {passes:,} times; on {engine.name}, where a pass takes a third of a second or more, not "
            f"more than {engine.most_passes:,} are made",
        )
    if passes > 1 and passes * plan.n * row > MOST_READ:
        raise _refused(
            plan,
            f"reads all records up to {passes:,} times, {_gib(passes * plan.n * row)} in all and more than the {_gib(MOST_READ)} "
            "that are read for one release, some hours' work",
        )


def _refused(plan: Plan, why: str) -> WrongCall:
    return WrongCall(f"{plan.heading[:1].upper()}{plan.heading[1:]} {why}. Nothing was spent. {_remedy(plan)}")


def _remedy(plan: Plan) -> str:
    if getattr(plan.model, "fit_loss", None) is not None:
        return 'Ask for a fit, which takes about 20 passes: mechanism="fit", or --mechanism fit.'
    if "beta" in plan.parameters and not plan.sums_exactly:
        return "Use Candidates(of=BetaDivergence()), which selects by sums and takes a few passes, or fewer steps."
    return "Use fewer steps or fewer draws."


def _gib(size: float) -> str:
    return f"{size / 2**30:,.3g} GiB"
