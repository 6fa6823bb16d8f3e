"""diffprivlib 0.6.6's LogisticRegression and LinearRegression on the six data sets, pure ε.

    python -m venv build/peers/diffprivlib
    build/peers/diffprivlib/bin/pip install diffprivlib==0.6.6 scikit-learn==1.7.2
    build/peers/diffprivlib/bin/python benchmarks/peers/diffprivlib_scores.py > benchmarks/results/peers_diffprivlib.json

Defaults otherwise. Both promise pure ε, which is more than (ε, δ). LogisticRegression perturbs the objective (Chaudhuri,
Monteleoni, Sarwate 2011), LinearRegression is the functional mechanism (Zhang et al. 2012).
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression
from tables import EPSILONS, quality, scaled, splits, tables

warnings.simplefilter("ignore")


def main() -> None:
    found = []
    for table in tables():
        X = scaled(table)
        for epsilon in EPSILONS:
            scores = []
            for seed, train, test in splits(table):
                if table.response is None:
                    model = LogisticRegression(epsilon=epsilon, data_norm=np.sqrt(X.shape[1]), random_state=seed)
                    model.fit(X[train], table.y[train].astype(int))
                    predicted = model.decision_function(X[test])
                else:
                    model = LinearRegression(
                        epsilon=epsilon, bounds_X=(-1.0, 1.0), bounds_y=table.response, random_state=seed
                    )
                    model.fit(X[train], table.y[train])
                    predicted = np.clip(model.predict(X[test]), *table.response)
                scores.append(quality(table, test, predicted))
            found.append({"table": table.name, "epsilon": epsilon, "scores": scores})
            print(table.name, epsilon, np.mean(scores), file=sys.stderr)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
