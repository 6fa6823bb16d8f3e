"""What every estimator does: a public question, a plan, one release, and the words beside it.

The order is the same everywhere. Parameters and shapes are checked, which are public; the mechanism is chosen and
calibrated from public numbers; the ledger is charged; then the records are read, once, by `release`. Fitted estimators
hold what was released and nothing else, no diagnostics either: their attributes are as public as the
certificate. A fit that is refused leaves an estimator as it was.

**Who called fit?** An estimator cannot know from its parameters that a search chose them, or that a scaler before it in
a pipeline was fitted on the same records. scikit-learn calls `fit` from a few known places, so the call stack is looked
at (`not_covered`). This is a courtesy, not a safeguard: who does the same by hand is not noticed, and the sharp-edges
page says so.
"""

from __future__ import annotations

import abc
import numbers
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from itertools import repeat
from pathlib import Path
from types import FrameType
from typing import Any, Literal, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onedraw.arrays import Array
from onedraw.data import Records
from onedraw.data.curator import CURATOR, Declared, columns_of, find_screen, look
from onedraw.defaults import DELTA
from onedraw.errors import InvalidBudget, WrongCall
from onedraw.ledger import Ledger
from onedraw.methods import Plan
from onedraw.methods.comparisons import Comparison
from onedraw.models.batches import column_chunks
from onedraw.plain_text import shown_place
from onedraw.planning import Choices
from onedraw.privacy import Assumption, Guarantee, Promise, Provenance, epsilon_delta
from onedraw.release import Certificate, Release, release
from onedraw.release.estimates import Estimate as Estimate
from onedraw.release.estimates import Estimates
from onedraw.release.statement import accepted_words

from .parameters import KnownParameters
from .sklearn_bases import BaseEstimator

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


# ── estimators ──

FileName = str | os.PathLike[str]
Numbers = float | Sequence[float] | NDArray[Any]
"""One number for all columns, or one for each."""
Range = Sequence[float] | NDArray[Any]
"""(low, high)."""
Bounds = Sequence[Numbers] | NDArray[Any]
"""(low, high) of every column."""
Labels = Sequence[Any] | NDArray[Any]

Call = ParamSpec("Call")
Fitted = TypeVar("Fitted")


class FewRecords(UserWarning):
    """Fewer records than parameters: known from public numbers alone."""


class NotCovered(UserWarning):
    """Something around the fit used the private data in a way that no certificate speaks of."""


class NoInterval(UserWarning):
    """Some predictions rest on coefficients about which the records say too little: known from published numbers."""


def all_or_nothing(fit: Callable[Call, Fitted]) -> Callable[Call, Fitted]:
    """A `fit` after which an estimator is fitted, or what it was before: never half of each."""

    @wraps(fit)
    def whole(*arguments: Call.args, **options: Call.kwargs) -> Fitted:
        # no parameter, so that scikit-learn does not take it for one
        if options.pop("sample_weight", None) is not None:
            raise WrongCall(
                "sample_weight is not taken: a record of weight 10 can move the fit ten times as far, and the promise is "
                "about records that count once. Leave it out; fit groups apart to count some of them more."
            )
        estimator: Any = arguments[0]
        before = dict(vars(estimator))
        try:
            return fit(*arguments, **options)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return whole


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(KnownParameters, BaseEstimator, abc.ABC):
    """A released estimate with its certificate.

    Parameters are fields, so that constructors only store, as scikit-learn asks; everything is checked in `fit`. Fitted
    attributes are declared where they are set.
    """

    epsilon: float | None = field(default=None, kw_only=False)
    delta: float = DELTA
    accept: Collection[str] = ()
    check: Literal["curator"] | None = None
    ledger: Ledger | FileName | None = None
    dataset: str | None = None
    random_state: int | np.random.RandomState | None = None
    timing: Literal["padded"] | None = None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return str(BaseEstimator.__repr__(self._without_password(), N_CHAR_MAX))

    def _html_repr(self) -> str:
        return str(BaseEstimator._html_repr(self._without_password()))

    def _without_password(self) -> PrivateEstimator:
        """This estimator, or, where its ledger's URL holds a password, an unfitted one that names it without."""
        if not isinstance(self.ledger, str) or shown_place(self.ledger) == self.ledger:
            return self
        return type(self)(**{**self.get_params(deep=False), "ledger": shown_place(self.ledger)})

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge the ledger, read the records once, and keep what was released."""
        self._fit(X, y)
        return self

    @abc.abstractmethod
    def _fit(self, X: Any, y: Any) -> None:
        """The question, its release, and the names of what was published."""

    def _budget(self) -> Promise:
        return budget_of(self.epsilon, self.delta, of=type(self).__name__)

    def _accepted(self) -> frozenset[str]:
        if not isinstance(self.accept, str | Collection):
            raise WrongCall(f"accept takes 'estimated' and 'assumed', or nothing, got {self.accept!r}.")
        return accepted_words(self.accept)

    @abc.abstractmethod
    def _compared(self, plan: Plan, data: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
        """The columns of plain records, each with what is declared about it."""

    def _seed(self) -> int | None:
        """None: fresh entropy. Anything else fixes the draw, and the certificate says that it is not private."""
        if self.random_state is None:
            return None
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31))
        if is_integer(self.random_state):
            return int(self.random_state)
        raise WrongCall(
            "random_state must be None for fresh entropy, or a whole number (or RandomState) for a reproducible draw "
            f"that is not private; got a {type(self.random_state).__name__}."
        )

    def _release(self, choice: Choices, data: Any, declared: str = "") -> Array:
        """Release by the chosen plan, remember what left, and return the draws as drawn. ``declared`` stands among the assumptions."""
        plan, notes = choice.best, not_covered()
        stated = [Assumption(declared, Provenance.DECLARED)] if declared else []
        if len(plan.model.parameter_names) > plan.n and not plan.mechanism.publishes_moments:  # which have no prior
            other = (
                "response's level than about the columns"
                if plan.mechanism.no_interval
                else "prior than about the records"
            )
            warnings.warn(
                f"n = {plan.n} records for {len(plan.model.parameter_names)} parameters: the {plan.mechanism.noun} will say more "
                f"about the {other}.",
                FewRecords,
                stacklevel=5,
            )
        if self.check is not None:  # the curator sees the private columns first; refused where nobody looks
            if not isinstance(self.check, str) or self.check != CURATOR:
                raise WrongCall(
                    f"check takes {CURATOR!r}, for a look at the columns in a terminal or notebook, or None; got {self.check!r}."
                )
            screen = find_screen()
            look(columns_of(data) if isinstance(data, Records) else self._compared(plan, data), screen)
        for sentence in notes:  # before the charge: where warnings are errors nothing paid for is lost
            warnings.warn(sentence, NotCovered, stacklevel=5)
        found = release(
            plan, data, ledger=opened(self.ledger), dataset=self.dataset, accept=self._accepted(),
            random_state=self._seed(), timing=self.timing, label=type(self).__name__,
            notes=(*(Assumption(sentence, Provenance.ASSUMED) for sentence in notes), *stated),
        )  # fmt: skip
        self.choice_: Choices = choice
        self.release_: Release = replace(found, diagnostics={})
        self.certificate_: Certificate = found.certificate
        promise = Promise.from_dict(found.certificate.promise.native)
        self.guarantee_: Guarantee = replace(plan.guarantee, promise=promise)
        self.notes_: tuple[str, ...] = notes
        return found.draws

    def summary(self, level: float = 0.95) -> Estimates:
        """The estimates with their intervals, labelled, in the columns' own units; ``pandas.DataFrame`` takes it."""
        check_is_fitted(self)
        return self.release_.summary(level)

    def compare(self, level: float = 0.95) -> Comparison:
        """Differences between the groups of ``by``, with intervals and tests, and one test of all groups or of a cross table."""
        check_is_fitted(self)
        return self.release_.compare(level)

    def report(self, path: FileName, level: float = 0.95, *, ledger: Any = None, overwrite: bool = False) -> Path:
        """Write what was released and promised as one HTML page; ``ledger`` adds what is spent and left."""
        check_is_fitted(self)
        return self.release_.report(path, level=level, ledger=ledger, overwrite=overwrite)

    def plot(self, level: float = 0.95, *, ax: Any = None) -> Any:
        """Draw the estimates with their intervals on matplotlib's axes, and return these."""
        check_is_fitted(self)
        return self.release_.plot(level=level, ax=ax)


def compared_features(features: Any, X: Any) -> dict[str, tuple[Declared, Iterable[Any]]]:
    """The columns of X, each with its declared range, if there is one."""
    ends = zip(*features.ends, strict=True) if features.box is not None else repeat((-np.inf, np.inf))
    columns = zip(features.column_names, ends, column_chunks(X, dim=features.count), strict=False)
    return {name: (Declared(*pair), chunks) for name, pair, chunks in columns}


def is_integer(value: Any) -> bool:
    """Return whether this is an integer of Python or NumPy, and no bool."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral)


def is_number(value: Any) -> bool:
    """Return whether this is a real number of Python or NumPy, and no bool."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real)


def budget_of(epsilon: float | None, delta: float, *, of: str) -> Promise:
    """The budget as a promise; ``of`` is who asks for it. There is no default ε."""
    if epsilon is None:
        raise InvalidBudget(
            f"{of} needs epsilon=…, how much of the privacy budget this may spend. There is no default: it is the "
            "decision of whoever answers for the data. Pass epsilon=1.0, say."
        )
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not is_number(value):
            raise InvalidBudget(f"{name} must be a number, got {value!r}.")
    return epsilon_delta(float(epsilon), float(delta))


def opened(ledger: Any) -> Ledger | None:
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if isinstance(ledger, str | os.PathLike):
        return Ledger.open(ledger)
    raise WrongCall(
        f"ledger must be a path, a URL or a Ledger, got a {type(ledger).__name__}. Open one with Ledger.open('ledger.db')."
    )


@lru_cache(maxsize=256)
def cached(function: Any, *arguments: Any, **options: Any) -> Any:
    """A pure function of public numbers, called once: searches and cross-validations ask the same question often."""
    return function(*arguments, **options)
