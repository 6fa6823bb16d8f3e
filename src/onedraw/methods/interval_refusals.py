"""Why coefficients of a fit have no interval, and what to do about it, in plain words.

`refusal_lines` groups coefficients with the same cause: a rare level, or two columns that vary alike, can refuse many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from onedraw.models.normal_estimates import NormalEstimates, Reason, Refusal

MOST_NAMED = 6
"""Coefficients that a sentence names; others are counted."""

LEAST_SHARE = 0.0005
"""A published share below this is not told as a figure."""


def why_refused(fit: NormalEstimates, names: Sequence[str], columns: Sequence[str] | None = None) -> str:
    """Return all of `refusal_lines` as one text; empty if no coefficient is refused an interval."""
    return " ".join(refusal_lines(fit, names, columns))


def refusal_lines(fit: NormalEstimates, names: Sequence[str], columns: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return for each cause the coefficients without an interval, the columns that cause it, and the remedy.

    ``columns`` are the names of the columns, if coefficients are called otherwise.
    """
    called = names if columns is None else columns
    groups: dict[tuple[Reason, frozenset[int]], list[tuple[str, Refusal]]] = {}
    for name, refusal in zip(names, fit.refusals, strict=True):
        if refusal is not None:
            groups.setdefault((refusal.reason, frozenset(refusal.causes)), []).append((name, refusal))
    ordered = sorted(groups.values(), key=lambda group: -len(group))
    return tuple(refusal_line([name for name, _ in group], [one for _, one in group], called) for group in ordered)


def refusal_line(refused: Sequence[str], refusals: Sequence[Refusal], names: Sequence[str]) -> str:
    """Return the sentences about coefficients that are refused for one cause."""
    first = refusals[0]
    causes = [names[place] for place in sorted(first.causes)]
    factor = max(one.factor for one in refusals)
    others = [name for name in refused if name not in causes]
    which = "the others depend" if len(others) < len(refused) else "it depends" if len(others) == 1 else "they depend"
    reach = f", on which {which}" if causes and others and first.reason != Reason.BASE else ""
    return f"{listed(refused)}: {cause_words(first, causes)}{reach}. {remedy(first, causes, factor)}."


def cause_words(refusal: Refusal, causes: Sequence[str]) -> str:
    """Return what is wrong with the columns, as the rest of a sentence."""
    these = listed(causes)
    match refusal.reason:
        case Reason.RARE:
            level = "level" if len(causes) == 1 else "levels"
            some = f"few records (about {100.0 * refusal.share:.1g} %)"
            return f"{some if refusal.share >= LEAST_SHARE else 'hardly any records'} have the {level} {these}"
        case Reason.BASE:
            some = f"few records (about {100.0 * refusal.share:.1g} %)"
            some = some if refusal.share >= LEAST_SHARE else "hardly any records"
            return f"{some} have the base level, which {these} {'is' if len(causes) == 1 else 'are'} compared with"
        case Reason.MERGED:
            return (
                "hardly any records have such a level by the published noisy moments, so it is counted with the base level of its "
                "category"
            )
        case Reason.CONSTANT:
            return "the declared range has one value, so that nothing is estimated"
        case Reason.NARROW:
            return f"{these} varies too little over its declared range"
        case Reason.ALIKE | Reason.LEVELS:
            return f"the noise cannot tell {these} apart"
        case Reason.UNSETTLED:
            return f"the steps did not converge along {these or 'the columns'}"
    return f"the noise at this n and ε hides how the records vary along {these or 'the columns'}"


def remedy(refusal: Refusal, causes: Sequence[str], factor: float) -> str:
    """Return what to do about it, as a sentence without its period."""
    larger = f"use about {factor:g} times this ε" if math.isfinite(factor) else "use more records"
    larger = "use a larger ε, more records" if math.isnan(factor) else larger
    them = "it" if len(causes) == 1 else "them"
    match refusal.reason:
        case Reason.RARE:
            return f"Merge {them} with a common level, or {larger}"
        case Reason.BASE:
            return "Compare with a common level: declare one first, name it in the formula, or read summary(base='commonest')"
        case Reason.MERGED:
            return "Merge rare levels with those that they are most like, or use more records"
        case Reason.CONSTANT:
            return "Leave the column out, or declare its range"
        case Reason.NARROW:
            return f"Narrow its declared bounds, or {larger}"
        case Reason.ALIKE:
            return f"Leave one of them out, combine them into one column, or {larger}"
        case Reason.LEVELS:
            return f"Merge them, or {larger}"
        case Reason.UNSETTLED:
            whose = "its" if len(causes) == 1 else "their"
            return f"Narrow {whose} declared bounds, or take {whose} logarithm"
    return f"Use {larger.removeprefix('use ')}{'' if math.isfinite(factor) else ' or fewer columns'}"


def listed(names: Sequence[str]) -> str:
    """Return "a, b and c"; long lists end with how many more there are."""
    shown = list(names)
    if len(shown) > MOST_NAMED:
        shown = [*shown[: MOST_NAMED - 1], f"{len(shown) - MOST_NAMED + 1} more"]
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))
