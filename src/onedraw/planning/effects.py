"""Effects of interest by name: which columns of a regression they are.

An effect is named by its column, or by a term of the formula, which names all of its columns. A category names the columns of all its levels but the first; one level can be named alone, as
``sex=male``. Where columns have no names, an effect is a column's place, from 0 on; beside categories, whose levels have columns
of their own, a place could mean another column than the caller thinks, and is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onedraw.errors import InvalidModel

from .options import ESTIMANDS

if TYPE_CHECKING:
    from onedraw.data.terms import Term

    from .regression import Regression

EFFECT_KINDS = tuple(kind for kind in ESTIMANDS if kind != "softmax")
"""Regressions of one coefficient for each column, whose estimand does not depend on how far scores are shortened."""

MOST_NAMED = 12
"""Columns that a refusal lists, at most."""


def listed_effects(effects: Any) -> tuple[Any, ...]:
    """Return effects as a tuple of names and places, from whatever lists them."""
    if isinstance(effects, str | int | np.generic):
        effects = (effects,)
    try:
        return tuple(one.item() if isinstance(one, np.generic) else one for one in effects)
    except TypeError:
        raise InvalidModel(f"effects is a list of columns, by name or place, but {effects!r} was given.") from None


def effect_places(
    effects: Any, names: Sequence[str], categories: Sequence[tuple[int, int]], terms: Sequence[Term] = ()
) -> tuple[int, ...]:
    """Return the columns that effects name, in order.

    Parameters
    ----------
    names : sequence of str
        The columns' names, in order.
    categories : sequence of (int, int)
        (start, stop) of the columns of each category.
    terms : sequence of Term
        The columns of each term of a formula, or of each category.
    """
    found: set[int] = set()
    for effect in effects:
        found.update(_places(effect, names, categories, terms))
    return tuple(sorted(found))


def _places(
    effect: Any, names: Sequence[str], categories: Sequence[tuple[int, int]], terms: Sequence[Term]
) -> Sequence[int]:
    if isinstance(effect, int) and not isinstance(effect, bool) and 0 <= effect < len(names):
        if any(stop - start > 1 for start, stop in categories):
            raise InvalidModel(
                f"effects names the place {effect}, but a category has a column for each level but the first, so that places "
                f"are not those of your columns. Give the column's name, such as {names[effect]!r}."
            )
        return (effect,)
    if effect in names:
        return (list(names).index(effect),)
    for term in terms:
        if term.name == effect:
            return range(term.start, term.stop)
    coded = {place: term.name for term in terms for place in range(term.start, term.stop)}
    known = list(dict.fromkeys(coded.get(place, name) for place, name in enumerate(names)))
    category = str(effect).partition("[" if "[" in str(effect) else "=")[0]
    if category != effect and category in coded.values():
        raise InvalidModel(
            f"effects names {effect!r}, which has no coefficient: {category!r} has none for its first level, with which the others "
            f"are compared, nor for levels that are not declared. Name {category!r} for all levels."
        )
    close = difflib.get_close_matches(str(effect), [*known, *names], n=1, cutoff=0.6)
    listed = ", ".join(known[:MOST_NAMED]) + (" and more" if len(known) > MOST_NAMED else "")
    raise InvalidModel(
        f"effects names {effect!r}, which is no column besides the target.{f' Perhaps {close[0]}?' if close else ''} "
        f"Name some of: {listed}."
    )


def check_effects(asked: Regression) -> None:
    """Refuse effects that this regression cannot know better than others."""
    if asked.effects is None:
        return
    if asked.kind not in EFFECT_KINDS:
        raise InvalidModel(
            f"effects= does not belong to a {asked.kind} regression and would do nothing; it is for {', '.join(EFFECT_KINDS)}. "
            "Leave it out."
        )
    if not asked.effects:
        raise InvalidModel("effects names no column. Name the columns of interest, or leave it out.")
    if asked.estimand == "robust":
        raise InvalidModel('effects= changes how far rows count, which estimand="robust" fixes. Leave one of them out.')
    assert asked.effect_places  # reading it refuses names that are no columns


def check_effects_fit(asked: Regression, name: str) -> None:
    """Refuse a mechanism that would not use the effects."""
    if asked.effects is not None and name not in ("fit", "averaged-steps"):
        raise InvalidModel(
            f"effects= is for the fit by averaged steps, and {name!r} would not use it. Leave one of them out."
        )
