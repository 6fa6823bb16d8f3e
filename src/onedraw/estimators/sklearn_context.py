"""Who called fit? What was learned from the private data around it, and is not covered by the certificate.

An estimator cannot know from its parameters that a search chose them, or that a scaler before it in a pipeline was
fitted on the same records. scikit-learn calls `fit` from a few known places, so the call stack is looked at. This is a
courtesy, not a safeguard: who does the same by hand is not noticed, and the sharp-edges page says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sklearn.utils import get_tags

CHOSEN = "hyper-parameters chosen on the private data: not covered"
SCORED = "fitted inside a cross-validation, whose scores and any choice made from them are for the curator alone: not covered"
SELECTED = "features chosen on the private data: not covered"
RESAMPLED = "fitted on a resample, in which one record may stand more than once: not covered"

# module of the caller → what it does with the private data
CALLERS = {
    "sklearn.model_selection._search": CHOSEN,
    "sklearn.model_selection._classification_threshold": CHOSEN,
    "sklearn.feature_selection": SELECTED,
    "sklearn.ensemble": RESAMPLED,
    "sklearn.model_selection._validation": SCORED,
}


def not_covered() -> tuple[str, ...]:
    """What happened to the private data around this fit, one sentence each; empty for a plain call."""
    found: dict[str, None] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        for caller, sentence in CALLERS.items():
            if module.startswith(caller):
                found[sentence] = None
        for step in _fitted_before(module, frame.f_locals.get("self")):
            found[f"{step} was fitted on the private data before it: not covered"] = None
        frame = frame.f_back
    if SCORED in found:  # one of a search's trials: nothing has been chosen yet
        found.pop(CHOSEN, None)
    return tuple(found)


def _fitted_before(module: str, caller: Any) -> list[str]:
    """Steps of a pipeline, or the transformer of a target, that learn something when fitted."""
    if module == "sklearn.pipeline" and hasattr(caller, "steps"):
        steps = [step for _, step in caller.steps[:-1]]
    elif module == "sklearn.compose._target" and hasattr(caller, "transformer_"):
        steps = [caller.transformer_]
    else:
        return []
    return [type(part).__name__ for step in steps for part in _parts(step) if _learns(part)]


def _parts(step: Any) -> Iterator[Any]:
    """A step, or the steps inside it: of a pipeline, union or column transformer; words like "passthrough" are none."""
    holders = ("steps", "transformers", "transformer_list")
    inner = [each[1] for name in holders for each in getattr(step, name, None) or ()]
    if inner:
        for part in (*inner, getattr(step, "remainder", None)):
            yield from _parts(part)
    elif step is not None and not isinstance(step, str):
        yield step


def _learns(step: Any) -> bool:
    """Whether fitting it looks at the records; one that does not say is taken to."""
    if type(step).__module__ == "sklearn.preprocessing._encoders":
        # not if its levels are declared, all of them kept, and a record with another one does not stop the program
        listed, kept = isinstance(step.categories, list | tuple), ("min_frequency", "max_categories")
        declared = listed and all(getattr(step, name, None) is None for name in kept)
        return not declared or step.handle_unknown == "error"
    try:
        return bool(get_tags(step).requires_fit)
    except (AttributeError, TypeError):
        return True
