"""Questions that several files of planning are tested with."""

from __future__ import annotations

import onedraw as od
from onedraw.planning import Regression

BUDGET = od.ApproxDP(1.0, 1e-6)
LOGISTIC = Regression("logistic", 3, bounds=(0, 1), classes=[0, 1])
LINEAR = Regression("linear", 2, bounds=((0, -5), (10, 5)), response_bound=8.0)

QUESTIONS = {
    "logistic": LOGISTIC,
    "softmax": Regression("softmax", 2, bounds=(0, 1), classes=["a", "b", "c"]),
    "svc": Regression("svc", 2, data_norm=1.0),
    "linear": LINEAR,
    "huber": Regression("huber", 2, bounds=(0, 1), threshold=1.0),
    "quantile": Regression("quantile", 2, bounds=(0, 1), quantile=0.9, response_bound=4.0),
}
