"""Private classifiers with a linear predictor: logistic regression (two classes or more) and a support vector machine.

Which theorem makes a draw private, which loss it rests on and how many draws share the budget is decided by `planning`
from public numbers; ``choice_.why`` says what was taken and why.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from onedraw.arrays import Array
from onedraw.data import Schema
from onedraw.data.curator import Declared
from onedraw.errors import InvalidModel
from onedraw.models.responses import class_labels
from onedraw.plans import Plan

from .base import Labels
from .linear import Expected, LinearEstimator
from .sklearn_bases import ClassifierMixin
from .validation import schema_classes


class Classifier(ClassifierMixin):
    """What classifiers share: labels as declared, never as they occur in the records."""

    classes: Labels | None

    def _declared_response(self, plan: Plan, y: Any) -> Declared:
        return Declared.levels(self._labels())

    def _labels(self) -> NDArray[Any]:
        return declared_classes(self.classes, of=type(self).__name__)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = super()._options()  # type: ignore[misc]  # the estimator's beside this class
        return options | {"classes": self._labels().tolist()}

    def __sklearn_tags__(self) -> Tags:
        """A draw scores as well as its budget allows, rows that are not numbers are read by the declared rule, and of
        two declared classes a third label among the records counts as the first."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        tags.classifier_tags.multi_class = not (
            isinstance(self.classes, list | tuple | np.ndarray) and len(self.classes) == 2
        )
        tags.input_tags.allow_nan = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(Classifier, LinearEstimator):
    """A score for the second of two classes, or for each of several."""

    classes: Labels | None = None
    radius: float | None = None

    def _fit(self, X: Any, y: Any) -> None:
        if self.schema is None:
            self._labels()
        super()._fit(X, y)
        if self.schema is None:
            self.classes_: NDArray[Any] = self._labels()
        else:
            declared = Schema.from_dict(self.certificate_.data.declared or {})
            self.classes_ = schema_classes(self, declared, self.certificate_.data.target or "")

    def decision_function(self, X: Any) -> Array:
        """The second class's log-odds, or its margin, (n,); for more than two classes one score each, (n, K)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row, or that on whose side it lies.

        A label cannot be NaN as probabilities and scores are: a row with a missing cell, where such records contributed nothing, has the
        class that it would have in the middle of that cell's range (of a category, at its first level), and a warning says for how many.
        """
        scores = self.decision_function(X)
        if lost := int(np.isnan(scores).reshape(len(scores), -1).any(axis=1).sum()):
            warnings.warn(
                f"{lost:,} of {len(scores):,} rows lack a cell: their class is that in the middle of the cell's range. predict_proba and "
                "decision_function give NaN for them.",
                stacklevel=2,
            )
            filled = self._scores(X, filled=True)
            scores = filled[:, 0] if filled.shape[1] == 1 else filled
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


@dataclass(eq=False, repr=False, kw_only=True)
class DPLogisticRegression(LinearClassifier):
    """Logistic regression for two classes, multinomial for more, released under differential privacy.

    ``DPLogisticRegression(epsilon=1.0, bounds=(0, 1), classes=[0, 1]).fit(X, y)``

    Parameters
    ----------
    epsilon : float
        How much this fit may spend. There is no default.
    delta : float, default=onedraw.defaults.DELTA
        0 means pure ε-differential privacy.
    schema : Schema, file name or dictionary
        Instead of bounds and classes: what is public about every column, categories and missing cells included. Frames are
        read by the names of their columns, and a category has a coefficient for each level but the first.
    target : str
        With a schema: the column that is explained; None: what the series y is called. y may be left out where X has it.
    formula : str
        With a schema: the terms that explain the target, such as "healed ~ age + C(ward)*treated + log(1 + income)"; docs/formulas.md
        lists what they may be. target is then left out.
    features : list of str
        With a schema: the columns that explain the target; None: all others.
    bounds : (low, high), numbers or one each per column
        The public range of the features; values outside are clamped. Never read from the data.
    data_norm : float
        Instead of bounds: rows longer than this are shortened to it.
    classes : list
        All labels there can be; of two the negative one first. Another label is a missing one.
    mechanism : str, default="auto"
        "auto" (a fit wherever there is one), or one of "fit", "noisy-gradient", "noisy-gradient exp-linear", "gdp", "gdp exp-linear", "bounded",
        "candidates", "beta-divergence" (the last only with ``accept``). "noisy-gradient measured"
        spends a part of the budget on the columns' moments first (two classes; without ``prior_scale``).
        "clipped-gradients" is for prediction: it clips each record's gradient, which biases coefficients, and gives no intervals.
    prior_scale : float
        Standard deviation of the prior of each coefficient (of columns scaled to [−1, 1]); None: 2/r̃.
    radius : float
        Of the ball that some mechanisms restrict the coefficients to; None: prior_scale·(√d + 2).
    effect : float
        How far the linear predictor is expected to vary (its standard deviation); bears on accuracy only. None: 1.
    fit_intercept : bool, default=True
    robust : bool, default=False
        Standard errors of a fit that hold where the model does not, at some cost of width.
    estimand : "maximum-likelihood" or "robust"
        What the fit must estimate. If budget and n do not allow it, `fit` refuses before anything is spent. "robust" counts rows far out
        less, by a rule that is the same at every n and ε. None: maximum likelihood, under a pure ε "robust".
        `summary` names what was estimated.
    effects : list of str or int
        Columns whose effects are of interest, by name (or place, if none is a category), fixed before the records are seen. The noise of the fit is smaller along
        them and larger along others. A category stands for all its levels. Of two classes.
    n_draws : "auto" or int, default="auto"
        "auto": one fit, or one draw of full weight. 4 or 8 draws of a named mechanism share its budget, so that their
        spread gives an interval.
    missing : "skip" or "middle", default="skip"
        Without a schema: "skip" leaves out records with a missing cell, their number being private. "middle" reads the cell as the middle of
        its bounds (with data_norm as 0) and a missing label as the first class, which the certificate and `summary` state. Mechanisms that
        have to know how many records contribute (all but fits and clipped gradients) refuse "skip" before anything is spent.
    accept : str or list of str
        "estimated", "assumed": samplers short of a proof that may be used. Default: none.
    check : "curator"
        Show, before the charge and in a terminal or, once confirmed, in a notebook, how many cells of each private column are not as declared.
    ledger, dataset : path, URL or Ledger; str
        The ledger that is charged before a row is read, and the name of the budget in it.
    random_state : int
        None: fresh entropy. A number makes the draw reproducible, and the certificate says that it is not private.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, d) and (1,); (K, d) and (K,) for K > 2 classes
        In the columns' own units: the fit's estimate, or the mean of the draws. Of K > 2 classes a fit's rows add up to 0: each
        is its class against the average of all, the difference of two rows the log-odds between them.
    bse_, pvalues_ : arrays of shape (terms,)
        Of a fit: standard errors, and tests of "this coefficient is 0", in the order of `summary`; NaN where refused.
    draws_ : array of shape (draws, parameters)
        The estimate, or all draws, in the columns' own units.
    classes_, n_features_in_, feature_names_in_ certificate_, guarantee_, release_
        What is promised. Only these and the draws leave.
    n_complete_, n_complete_interval_
        Where records with a missing cell are left out: the noisy number of the others, and its interval.
    choice_ : planning.Choices
        What was picked, from what, and why.
    interval_reason_ : str
        Why there is no interval, or none for some coefficients; empty if each has one.
    notes_ : tuple of str
        What around this fit used the private data and is not covered.
    """

    kind = "logistic"

    estimand: str | None = None
    effects: Sequence[str | int] | None = None

    def _options(self) -> dict[str, Any]:
        found = super()._options()
        return found | {"kind": "logistic" if len(found["classes"]) == 2 else "softmax"}

    def predict_proba(self, X: Any, interval: float | None = None) -> Array | Expected:
        """(n, K), in the order of ``classes_``; with ``interval=0.95`` also the ends of their intervals, which are free."""
        return self._expected(X, interval)


@dataclass(eq=False, repr=False, kw_only=True)
class DPLinearSVC(LinearClassifier):
    """A linear support vector machine for two classes (hinge loss, its kink rounded), under differential privacy.

    Parameters as in `DPLogisticRegression`; ``classes`` are two, the negative one first. mechanism: "auto",
    "noisy-gradient measured", "noisy-gradient", "gdp", "bounded" or "candidates". There are no probabilities: the hinge
    does not estimate any.

    Attributes as in `DPLogisticRegression`, without ``bse_`` and ``pvalues_``.
    """

    kind = "svc"

    def _options(self) -> dict[str, Any]:
        found = super()._options()
        if len(found["classes"]) != 2:
            raise InvalidModel(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(found['classes'])} classes are declared. Use DPLogisticRegression for more than two."
            )
        return found

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def declared_classes(classes: Any, name: str = "classes", *, of: str = "") -> NDArray[Any]:
    """The labels as declared, at least two; never those that occur in the records. ``of`` is who needs them."""
    if classes is None:
        raise InvalidModel(
            f"{of} needs {name}=[…], all labels there can be, the negative one first. They are never read from the records: a "
            "label that only one person has would give that person away. Pass classes=[0, 1], say."
        )
    class_labels(name, classes)
    mixed = len({isinstance(label, str) for label in classes}) > 1
    return np.asarray(classes, dtype=object if mixed else None)
