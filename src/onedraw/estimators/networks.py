"""Private neural networks with one hidden layer: a β-divergence posterior, whose promise needs no clipped gradients.

No chain is proven to draw from such a posterior, so a fit is refused unless ``accept`` names what it rests on:
"assumed" (NUTS is assumed to have converged) or "estimated" (HMC, checked on simulated data). The first line of the
certificate then says so.

Single weights mean nothing (units can be exchanged), so predictions of the draws are averaged, never their weights, and
there is no interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from onedraw.arrays import Array
from onedraw.data import Measure
from onedraw.errors import InvalidModel, PromiseRefused
from onedraw.planning.regression import FLOOR, HALF_WIDTH
from onedraw.release.estimates import Estimate, Estimates

from .base import Labels, Numbers
from .classification import Classifier
from .linear import RegressionEstimator, encoded
from .regression import regressor_tags, response_range
from .sklearn_bases import RegressorMixin
from .validation import MeasuredResponse, check_rows

NO_INTERVAL = "single weights of a network mean nothing: units can be exchanged. Use its predictions"

SPREAD = HALF_WIDTH["network-regressor"]


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(RegressionEstimator):
    """Draws of a network's weights."""

    hidden: int = 10
    n_draws: int | Literal["auto"] = 1
    missing: str = "middle"

    def _fit(self, X: Any, y: Any) -> None:
        rows = check_rows(self, X, y, reset=True)
        draws = self._answered(self._question(rows), (rows.X, self._responses(rows.y)), rows.n)
        self.draws_: Array = self.choice_.best.model.in_column_units(draws)
        self.interval_reason_ = NO_INTERVAL

    def _scores(self, X: Any) -> Array:
        """(draws, n, outputs): each draw's predictor."""
        check_is_fitted(self)
        return self.release_.predictor.scores(encoded(self, X))

    def conf_int(self, level: float = 0.95) -> Array:
        """Always refused: see the head of this file."""
        check_is_fitted(self)
        raise PromiseRefused(f"This release gives no interval: {NO_INTERVAL}.")

    def summary(self, level: float = 0.95) -> Estimates:
        """The weights by name, as drawn first; they have no intervals."""
        check_is_fitted(self)
        names = self.certificate_.draw.names
        rows = [Estimate(name, "", float(value)) for name, value in zip(names, self.draws_[0], strict=True)]
        remarks = [self.certificate_.sentence, f"No interval: {NO_INTERVAL}."]
        return Estimates(rows, level=level, reason=NO_INTERVAL, remarks=remarks)


@dataclass(eq=False, repr=False, kw_only=True)
class DPMLPClassifier(Classifier, NetworkEstimator):
    """A classifier with one hidden layer of ``hidden`` tanh units, under differential privacy.

    ``DPMLPClassifier(epsilon=1.0, bounds=(0, 1), classes=[0, 1], accept="assumed").fit(X, y)``

    Parameters as in `DPLogisticRegression`, and ``hidden``, the number of units. ``prior_scale`` is the standard
    deviation of all weights and biases (None: 1). ``missing`` is "middle" by default, since networks cannot leave out records: missing cells
    are read as the middle of their bounds, which the certificate states. ``n_draws``, 1 by default, are averaged in their predictions.

    Attributes: ``draws_``, ``classes_``, ``n_features_in_``, ``feature_names_in_``, ``certificate_``, ``guarantee_``,
    ``release_``, ``choice_``, ``interval_reason_``, ``notes_``.
    """

    kind = "network-classifier"

    classes: Labels | None = None

    def _fit(self, X: Any, y: Any) -> None:
        super()._fit(X, y)
        self.classes_ = self._labels()

    def predict_proba(self, X: Any) -> Array:
        """(n, K), in the order of ``classes_``: the mean of the draws' probabilities."""
        scores = self._scores(X)  # first: it refuses one that is not fitted
        return self.release_.predictor.expected(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])


@dataclass(eq=False, repr=False, kw_only=True)
class DPMLPRegressor(RegressorMixin, NetworkEstimator):
    """A regression with one hidden layer of ``hidden`` tanh units, under differential privacy.

    ``response_bound``, Y or (low, high), is needed: responses are clamped to it and scaled by it. ``variance_floor`` is
    the least variance of the residuals, in squared units of the response; None: that of a twentieth of the bound. Other
    parameters as in `DPMLPClassifier`.

    Attributes: those of `DPMLPClassifier` but ``classes_``.
    """

    kind = "network-regressor"

    response_bound: Numbers | None = None
    variance_floor: float | None = None

    def _responses(self, y: Any) -> Any:
        return MeasuredResponse(y, Measure(*self._units()))

    def _units(self) -> tuple[float, float]:
        middle, half = response_range(self)
        if half is None:
            raise InvalidModel(
                "DPMLPRegressor needs response_bound, Y or (low, high): the public range of the responses, by which they are "
                "scaled. It is never computed from the records."
            )
        return middle, half / SPREAD

    def _options(self) -> dict[str, Any]:
        _, scale = self._units()
        floor = FLOOR if self.variance_floor is None else self.variance_floor / scale**2
        return super()._options() | {"variance_floor": floor, "response_bound": None}

    def predict(self, X: Any) -> Array:
        """The expected response of each row: the mean over the draws, within the declared bound."""
        scores = np.clip(self._scores(X), -SPREAD, SPREAD)
        return self.release_.predictor.expected(scores)[:, 0]

    def __sklearn_tags__(self) -> Tags:
        return regressor_tags(super().__sklearn_tags__())
