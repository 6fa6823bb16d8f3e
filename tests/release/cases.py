"""Editing a certificate field by field, as someone who wants to be believed might."""

import copy

from onedraw import errors
from onedraw.release import certificate as parts
from onedraw.release import verify


def paths(document, where=()):
    """Every leaf of a JSON document."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from paths(value, (*where, name))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from paths(value, (*where, index))
    else:
        yield where, document


def edits(value):
    """What someone might write instead."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value * 2, 0]
    if isinstance(value, float):
        return [value * 0.9, value * 1.1, value / 2, value * 2, -value, 0.0]
    if isinstance(value, str):
        return [value + "x", ""]
    return ["edited"]


def edited(document, where, value):
    changed = copy.deepcopy(document)
    place = changed
    for step in where[:-1]:
        place = place[step]
    place[where[-1]] = value
    return changed


def missed_edits(certificate, ledger=None):
    """Edits of single fields that are neither rejected nor in a field that `verify` names as not checked: there should be none.

    With a ledger one edit of each field is tried, and any that is accepted counts.
    """
    document = certificate.model_dump(mode="json")
    missed = []
    for where, value in paths(document):
        for replacement in edits(value)[: None if ledger is None else 1]:
            if replacement == value:
                continue
            try:
                found = verify(parts.certificate_from(edited(document, where, replacement)), ledger=ledger)
            except (errors.CertificateRejected, ValueError):
                continue
            if ledger is not None or not parts.is_under(".".join(map(str, where)), found.unchecked):
                missed.append((where, value, replacement))
    return missed


# ── whatever else may stand in a file ────────────────────────────────────────────────────────────────────────

ODD_VALUES = (None, True, "", {}, [], 0, -1, 10**30, 1e308, 5e-324, "\ud800", "x\x1b[8m", [[]], {"kind": []}, "2000")


def nodes(document, where=()):
    """Every place of a JSON document, leaves and branches."""
    if where:
        yield where, document
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in children:
        yield from nodes(value, (*where, name))


def mutations(document):
    """Documents that differ in one place: another value or type, one field less, one more. Thousands of them."""
    for where, value in nodes(document):
        for odd in ODD_VALUES:
            if odd != value or type(odd) is not type(value):
                yield (where, odd), edited(document, where, odd)
        if isinstance(value, dict):
            yield (where, "more"), edited(document, where, value | {"more": 1})
        shorter = copy.deepcopy(document)
        place = shorter
        for step in where[:-1]:
            place = place[step]
        del place[where[-1]]
        yield (where, "less"), shorter


def torn(text, pieces=60):
    """The file cut off, doubled, or with a character exchanged, at places spread over it."""
    for place in range(1, len(text), max(1, len(text) // pieces)):
        before, after = text[:place], text[place + 1 :]
        yield from (
            before,
            before + text,
            f"{before}\x00{after}",
            f"{before}{'7' if text[place] == '9' else '9'}{after}",
        )
