"""Private neural networks with one hidden layer: a β-divergence posterior, whose promise needs no clipped gradients.

No chain is proven to draw from such a posterior, so a fit is refused unless ``accept`` names what it rests on:
"assumed" (NUTS is assumed to have converged) or "estimated" (HMC, checked on simulated data). The first line of the
certificate then says so.

Single weights mean nothing (units can be exchanged), so predictions of the draws are averaged, never their weights, and
there is no interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.data import Measure
from onedraw.defaults import DELTA
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.planning import Regression
from onedraw.release.summary import Estimate

from .base import all_or_nothing
from .base_regression import RegressionEstimator, regression
from .classification import classifier_tags, declared_classes, two_declared
from .linear import encoded
from .regression import regressor_tags, response_range
from .validation import Incoming, Measured

Array = NDArray[np.float64]

NO_INTERVAL = "single weights of a network mean nothing: units can be exchanged. Use its predictions"

SPREAD = 2.0
"""Responses are scaled to [−2, 2]: the size that weights of N(0, 1) expect."""


class NetworkEstimator(RegressionEstimator):
    """Draws of a network's weights."""

    hidden: Any

    def _fit_network(self, came: Incoming, question: Regression, y: Any) -> None:
        draws = self._release_regression(came, question, y)
        self.draws_ = self.choice_.best.model.in_column_units(draws)
        self.interval_reason_ = NO_INTERVAL

    def _outputs(self, X: Any) -> Array:
        """(draws, n) or (draws, n, K): each draw's predictor."""
        check_is_fitted(self)
        rows, model = encoded(self, X), self.choice_.best.model
        return np.stack([np.asarray(model.predictor(draw, rows)) for draw in self.release_.draws])

    def conf_int(self, level: float = 0.95) -> Array:
        """Always refused: see the head of this file."""
        check_is_fitted(self)
        raise PromiseRefused(f"This release gives no interval: {NO_INTERVAL}.")

    def _estimates(self, level: float) -> tuple[list[Estimate], str]:
        unknown = (float("nan"),) * 4
        names = self.certificate_.draw.names
        rows = [Estimate(name, "", float(value), *unknown) for name, value in zip(names, self.draws_[0], strict=True)]
        return rows, NO_INTERVAL


class DPMLPClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier with one hidden layer of ``hidden`` tanh units, under differential privacy.

    ``DPMLPClassifier(epsilon=1.0, bounds=(0, 1), classes=[0, 1], accept="assumed").fit(X, y)``

    Parameters as in `DPLogisticRegression`, and ``hidden``, the number of units. ``prior_scale`` is the standard
    deviation of all weights and biases (None: 1). ``n_draws``, 1 by default, are averaged in their predictions.

    Attributes: ``draws_``, ``classes_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``,
    ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        hidden: Any = 10,
        delta: Any = DELTA,
        bounds: Any = None,
        data_norm: Any = None,
        classes: Any = None,
        mechanism: Any = "auto",
        prior_scale: Any = None,
        effect: Any = None,
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.hidden = hidden
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.classes = classes
        self.mechanism = mechanism
        self.prior_scale = prior_scale
        self.effect = effect
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> DPMLPClassifier:
        """Charge the ledger, read the records once, and keep what was released."""
        came = self._incoming(X, y)
        labels = declared_classes(self)
        self._fit_network(came, self._question(came), came.y)
        self.classes_ = labels
        return self

    def _question(self, came: Incoming) -> Regression:
        labels = declared_classes(self).tolist()
        return regression("network-classifier", came.features, **self._common(came), classes=labels, hidden=self.hidden)

    def predict_proba(self, X: Any) -> Array:
        """(n, K), in the order of ``classes_``: the mean of the draws' probabilities."""
        outputs = self._outputs(X)
        if outputs.ndim == 2:
            positive = special.expit(outputs).mean(axis=0)
            return np.column_stack([1.0 - positive, positive])
        probabilities: Array = special.softmax(outputs, axis=2).mean(axis=0)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Tags:
        tags = classifier_tags(super().__sklearn_tags__())
        tags.classifier_tags.multi_class = not two_declared(self.classes)
        return tags


class DPMLPRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regression with one hidden layer of ``hidden`` tanh units, under differential privacy.

    ``response_bound``, Y or (low, high), is needed: responses are clamped to it and scaled by it. ``variance_floor`` is the
    least variance of the residuals, in squared units of the response; None: that of a twentieth of the bound. Other
    parameters as in `DPMLPClassifier`.

    Attributes: ``draws_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``, ``release_``,
    ``choice_``, ``interval_reason_``, ``notes_``.
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        hidden: Any = 10,
        delta: Any = DELTA,
        bounds: Any = None,
        data_norm: Any = None,
        response_bound: Any = None,
        variance_floor: Any = None,
        mechanism: Any = "auto",
        prior_scale: Any = None,
        effect: Any = None,
        n_draws: Any = 1,
        accept: Any = (),
        check: Any = None,
        ledger: Any = None,
        dataset: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.hidden = hidden
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.response_bound = response_bound
        self.variance_floor = variance_floor
        self.mechanism = mechanism
        self.prior_scale = prior_scale
        self.effect = effect
        self.n_draws = n_draws
        self.accept = accept
        self.check = check
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> DPMLPRegressor:
        """Charge the ledger, read the records once, and keep what was released."""
        came = self._incoming(X, y)
        middle, scale = self._units()
        question = self._question(came)
        self._fit_network(came, question, Measured(came.y, Measure(middle, scale)))
        self._middle, self._scale = middle, scale
        return self

    def _units(self) -> tuple[float, float]:
        middle, half = response_range(self)
        if half is None:
            raise InvalidModel(
                "DPMLPRegressor needs response_bound, Y or (low, high): the public range of the responses, by which they are "
                "scaled. It is never computed from the records."
            )
        return middle, half / SPREAD

    def _question(self, came: Incoming) -> Regression:
        _, scale = self._units()
        floor = (0.05 * SPREAD) ** 2 if self.variance_floor is None else self.variance_floor / scale**2
        return regression(
            "network-regressor", came.features, **self._common(came), hidden=self.hidden, variance_floor=floor
        )

    def predict(self, X: Any) -> Array:
        """The expected response of each row: the mean over the draws, within the declared bound."""
        outputs = np.clip(self._outputs(X), -SPREAD, SPREAD)
        return np.asarray(self._middle + self._scale * outputs.mean(axis=0))

    def __sklearn_tags__(self) -> Tags:
        return regressor_tags(super().__sklearn_tags__())
