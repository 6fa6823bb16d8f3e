"""Fit and predict by the methods that the prediction study compares, all from scaled rows and declared bounds.

| method | what it is |
| --- | --- |
| `level` | the response's level alone: noisy class counts, or the noisy mean |
| `clipped-gd` | plain clipped gradient descent (C = 0.5, 80 full-batch steps, momentum 0.9, step size 0.2), one setting for all tables |
| `none` | without privacy, slightly penalized |
| `auto`, or another name | the package's estimator with this mechanism |
| `objective-perturbation`, `ada-ssp` | `onedraw.baselines` |
| `diffprivlib`, `dp-ebm`, `opacus` | peers, each in its own environment |

Neighbors replace one record; δ = 1e-5. Peers keep the promise that they document: diffprivlib's is pure ε. Each peer runs from its own
environment, without this package: diffprivlib 0.6.6 with scikit-learn 1.7.2, interpret-core 0.7.8, and torch 2.13.0 with Opacus 1.6.0.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from typing import Any

import numpy as np
from scipy import optimize, special, stats

DELTA = 1e-5
CLIP, STEPS, MOMENTUM, RATE = 0.5, 80, 0.9, 0.2
"""Of plain clipped gradient descent. The step size repeats the figures of earlier work on digits; nothing was tuned on other
tables."""
PEERS = {"diffprivlib": ("label", "number"), "dp-ebm": ("label", "number"), "opacus": ("label", "class")}
BASELINES = {"objective-perturbation": ("label",), "ada-ssp": ("number",)}


@cache
def gaussian_parameter(epsilon: float, delta: float = DELTA) -> float:
    """Return the μ of a Gaussian mechanism that is (ε, δ)-differentially private."""

    def excess(mu: float) -> float:
        second = math.exp(epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2))
        return float(stats.norm.cdf(-epsilon / mu + mu / 2) - second - delta)

    return float(optimize.brentq(excess, 1e-4, 20.0))


def applies(method: str, kind: str) -> bool:
    """Return whether a method has a model for a kind of response."""
    kinds = PEERS.get(method) or BASELINES.get(method)
    return kinds is None or kind in kinds


def predict(method: str, table: Any, train: np.ndarray, test: np.ndarray, epsilon: float, seed: int) -> np.ndarray:
    """Return predictions of the held-out records: probabilities (n, K), or expected values (n,)."""
    own = {
        "level": predict_level, "clipped-gd": predict_clipped, "none": predict_plain, "diffprivlib": predict_diffprivlib,
        "dp-ebm": predict_boosted, "opacus": predict_opacus, "objective-perturbation": predict_perturbed,
        "ada-ssp": predict_ada_ssp,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method in own:
            return own[method](table, train, test, epsilon, seed)
        return predict_package(method, table, train, test, epsilon, seed)


def noisy_level(table: Any, y: np.ndarray, mu: float, rng: np.random.Generator) -> np.ndarray:
    """Return class shares, or the mean, with the noise of a Gaussian mechanism of parameter μ."""
    n = len(y)
    if table.kind in ("label", "class"):
        deviation = (1.0 if table.classes == 2 else math.sqrt(2.0)) / mu
        counts = np.bincount(y.astype(int), minlength=table.classes) + rng.normal(0.0, deviation, table.classes)
        if table.classes == 2:
            counts[0] = n - counts[1]
        counts = np.clip(counts, 0.5 + deviation / 2, None)
        return counts / counts.sum()
    deviation = (table.y_upper - table.y_lower) / (n * mu)
    mean = np.clip(y, table.y_lower, table.y_upper).mean() + rng.normal(0.0, deviation)
    least = table.y_lower + deviation / 2 if table.kind == "count" else table.y_lower
    return np.array(min(max(mean, least), table.y_upper))


def predict_level(table, train, test, epsilon, seed):
    """Predict the level for every record."""
    level = noisy_level(table, table.y[train], gaussian_parameter(epsilon), np.random.default_rng([seed, 1]))
    return np.tile(level, (len(test), 1)) if level.ndim else np.full(len(test), float(level))


def predict_clipped(table, train, test, epsilon, seed):
    """Predict by plain clipped gradient descent."""
    rng = np.random.default_rng([seed, 2])
    rows = np.column_stack([table.scaled, np.ones(len(table.y))])
    X, y, n = rows[train], table.y[train], len(train)
    middle, half = (table.y_lower + table.y_upper) / 2, (table.y_upper - table.y_lower) / 2
    if table.kind == "class":
        target = np.eye(table.classes)[y.astype(int)]
    else:
        target = ((y - middle) / half if table.kind == "number" else y)[:, None]
    means = {
        "label": special.expit, "class": lambda u: special.softmax(u, axis=1), "number": lambda u: u,
        "count": lambda u: np.exp(np.clip(u, -10.0, math.log(table.y_upper))) if table.kind == "count" else u,
    }[table.kind]  # fmt: skip
    weights = np.zeros((X.shape[1], target.shape[1]))
    velocity = np.zeros_like(weights)
    deviation = 2.0 * CLIP * math.sqrt(STEPS) / (n * gaussian_parameter(epsilon))
    lengths = np.linalg.norm(X, axis=1)
    for _ in range(STEPS):
        residual = means(X @ weights) - target
        factor = np.minimum(1.0, CLIP / np.maximum(lengths * np.linalg.norm(residual, axis=1), 1e-12))
        gradient = X.T @ (residual * factor[:, None]) / n + rng.normal(0.0, deviation, weights.shape)
        velocity = MOMENTUM * velocity + gradient
        weights = weights - RATE * velocity
    found = means(rows[test] @ weights)
    if table.kind == "label":
        return np.column_stack([1.0 - found, found])
    return found if table.kind == "class" else (middle + half * found[:, 0] if table.kind == "number" else found[:, 0])


def predict_plain(table, train, test, epsilon, seed):
    """Predict without privacy."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    X, y = table.scaled, table.y
    spread = np.maximum(X[train].std(axis=0), 1e-9)
    Z = (X - X[train].mean(axis=0)) / spread
    if table.kind == "number":
        return Ridge(alpha=1.0).fit(Z[train], y[train]).predict(Z[test])
    if table.kind == "count":
        return PoissonRegressor(alpha=1e-3, max_iter=2000).fit(Z[train], y[train]).predict(Z[test])
    fitted = LogisticRegression(C=1.0, max_iter=2000).fit(Z[train], y[train])
    found = np.zeros((len(test), table.classes))
    found[:, fitted.classes_.astype(int)] = fitted.predict_proba(Z[test])
    return found


def predict_package(mechanism, table, train, test, epsilon, seed):
    """Predict by the package's estimator of the table's kind with a mechanism."""
    model = package_model(mechanism, table, train, epsilon, seed)
    return model.predict_proba(table.X[test]) if table.kind in ("label", "class") else model.predict(table.X[test])


def package_model(mechanism, table, train, epsilon, seed):
    """Return the package's estimator of the table's kind, fitted with a mechanism."""
    import onedraw as od

    options = {
        "epsilon": epsilon, "delta": DELTA, "bounds": (table.lower.tolist(), table.upper.tolist()), "mechanism": mechanism,
        "random_state": seed,
    }  # fmt: skip
    X, y = table.X, table.y
    if table.kind in ("label", "class"):
        model = od.DPLogisticRegression(classes=list(range(table.classes)), **options)
        return model.fit(X[train], y[train].astype(int))
    if table.kind == "count":
        model = od.DPPoissonRegressor(largest=int(table.y_upper), **options)
    else:
        model = od.DPLinearRegression(response_bound=(table.y_lower, table.y_upper), **options)
    return model.fit(X[train], y[train])


def predict_perturbed(table, train, test, epsilon, seed):
    """Predict labels by objective perturbation (Kifer et al. 2012, corrected)."""
    import onedraw as od
    from onedraw import baselines, models

    X, y = table.scaled, table.y
    model = models.Logistic(features=X.shape[1], bounds=(-1, 1), scaled=True, prior=od.Gaussian(scale=3.0))
    plan = od.calibrate(baselines.ObjectivePerturbation("kifer"), model, od.ApproxDP(epsilon, DELTA), n=len(train))
    draw = np.asarray(od.release(plan, (X[train], y[train].astype(int)), random_state=seed).draw).ravel()
    found = special.expit(np.column_stack([X[test], np.ones(len(test))]) @ draw)
    return np.column_stack([1.0 - found, found])


def predict_ada_ssp(table, train, test, epsilon, seed):
    """Predict numbers by AdaSSP."""
    import onedraw as od
    from onedraw import baselines, models

    X, middle, half = table.scaled, (table.y_lower + table.y_upper) / 2, (table.y_upper - table.y_lower) / 2
    y = (table.y - middle) / half
    model = models.LeastSquares(
        features=X.shape[1], bounds=(-1, 1), scaled=True, response_bound=1.0, prior=od.Gaussian(scale=1.0, radius=2.0)
    )
    plan = od.calibrate(baselines.AdaSSP(), model, od.ApproxDP(epsilon, DELTA), n=len(train))
    draw = np.asarray(od.release(plan, (X[train], y[train]), random_state=seed).draw).ravel()
    return middle + half * (np.column_stack([X[test], np.ones(len(test))]) @ draw)


def predict_diffprivlib(table, train, test, epsilon, seed):
    """Predict by diffprivlib 0.6.6 (pure ε)."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    X, y = table.scaled, table.y
    if table.kind == "label":
        model = LogisticRegression(epsilon=epsilon, data_norm=math.sqrt(X.shape[1]), random_state=seed)
        return model.fit(X[train], y[train].astype(int)).predict_proba(X[test])
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (table.y_lower, table.y_upper)}
    return LinearRegression(epsilon=epsilon, random_state=seed, **bounds).fit(X[train], y[train]).predict(X[test])


def predict_boosted(table, train, test, epsilon, seed):
    """Predict by DP-EBM (interpret-core), bounds declared."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    X, y = table.X, table.y
    options = {
        "epsilon": epsilon, "delta": DELTA, "random_state": seed, "n_jobs": 1,
        "privacy_bounds": {j: (table.lower[j], table.upper[j]) for j in range(X.shape[1])},
    }  # fmt: skip
    kinds = ["continuous"] * X.shape[1]
    if table.kind == "label":
        model = DPExplainableBoostingClassifier(feature_types=kinds, **options)
        return model.fit(X[train], y[train].astype(int)).predict_proba(X[test])
    model = DPExplainableBoostingRegressor(
        feature_types=kinds, privacy_target_min=table.y_lower, privacy_target_max=table.y_upper, **options
    )
    return model.fit(X[train], y[train]).predict(X[test])


def predict_opacus(table, train, test, epsilon, seed):
    """Predict classes by DP-SGD of Opacus 1.6.0; settings and the weaker neighbors as in peers/opacus_scores.py."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    X = torch.tensor(table.scaled, dtype=torch.float32)
    model: Any = torch.nn.Linear(X.shape[1], table.classes)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    data = torch.utils.data.TensorDataset(X[train], torch.tensor(table.y[train], dtype=torch.long))
    loader = torch.utils.data.DataLoader(data, batch_size=min(128, len(train)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    private, optimizer, loader = PrivacyEngine(accountant="rdp").make_private_with_epsilon(
        module=model, optimizer=optimizer, data_loader=loader, target_epsilon=epsilon, target_delta=DELTA, epochs=30,
        max_grad_norm=1.0,
    )  # fmt: skip
    for _ in range(30):
        for rows, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(rows), labels).backward()
            optimizer.step()
    with torch.no_grad():
        return torch.softmax(private(X[test]), dim=1).numpy().astype(float)
