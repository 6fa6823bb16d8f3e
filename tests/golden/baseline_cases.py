"""The literature's other methods are no part of the command line: what is kept of them is released in Python, from the same patients."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import onedraw as od
from onedraw import baselines, models


def patients(column: str) -> list[str]:
    with open("patients.csv", newline="") as file:
        return [row[column] for row in csv.DictReader(file)]


def _released(mechanism: Any, model: Any, data: Any, budget: Any) -> od.Release:
    return od.release(od.calibrate(mechanism, model, budget, n=400), data, random_state=1)


def sufficient_statistics() -> od.Release:
    ill = [float(cell == "yes") for cell in patients("ill")]
    return _released(baselines.SufficientStatistics(), models.BetaBernoulli(), ill, od.PureDP(2.0))


def dp_sgd() -> od.Release:
    """With compiled gradients, so that it is the same where torch is not installed."""
    rows = [[float(cell or 50.0)] for cell in patients("age")]
    ill = [int(cell == "yes") for cell in patients("ill")]
    model = models.Logistic(1, bounds=(18, 90), scaled=True, prior=od.Gaussian(scale=3.0))
    plan = od.calibrate(baselines.DPSGD(epochs=3, batch_size=50), model, od.ApproxDP(2.0, 1e-5), n=400)
    return od.release(plan, (rows, ill), sampler=baselines.Training("jax"), random_state=1)


def regularised(mechanism: Any, budget: Any) -> Callable[[], od.Release]:
    """Whether somebody is ill, by age and smoking: a logistic regression."""

    def release() -> od.Release:
        X = [
            [float(age), float(smokes == "yes")]
            for age, smokes in zip(patients("age"), patients("smoker"), strict=True)
        ]
        ill = [float(cell == "yes") for cell in patients("ill")]
        prior = od.Gaussian(scale=2.0)
        model = models.Logistic(2, bounds=((0, 0), (100, 1)), scaled=True, feature_names=("age", "smoker"), prior=prior)
        return _released(mechanism, model, (X, ill), budget)

    return release


def noise_aware() -> od.Release:
    visits, model = [float(cell) for cell in patients("visits")], models.GammaPoisson(prior=(2.0, 1.0), cap=8)
    return _released(baselines.NoiseAware(), model, visits, od.PureDP(2.0))


def regression(mechanism: Any, budget: Any) -> Callable[[], od.Release]:
    """How many visits somebody made, by age and smoking."""

    def release() -> od.Release:
        X = [
            [float(age), float(smokes == "yes")]
            for age, smokes in zip(patients("age"), patients("smoker"), strict=True)
        ]
        visits = [float(cell) for cell in patients("visits")]
        model = models.LeastSquares(
            features=2, bounds=((0, 0), (100, 1)), scaled=True, feature_names=("age", "smoker"), response_bound=10.0,
            prior=od.Gaussian(scale=5.0, radius=20.0),
        )  # fmt: skip
        return _released(mechanism, model, (X, visits), budget)

    return release


BASELINES: dict[str, Callable[[], od.Release]] = {
    "ada-ops": regression(baselines.AdaOPS(), od.ApproxDP(2.0, 1e-6)),
    "ada-ssp": regression(baselines.AdaSSP(), od.ApproxDP(2.0, 1e-6)),
    "dp-hmc": regularised(baselines.DPHMC(leapfrogs=4, relaxations=1.0), od.ApproxDP(2.0, 1e-6)),
    "dp-hmc-as-published": regularised(
        baselines.DPHMC(leapfrogs=4, relaxations=1.0, test="barker", clip_ratios=0.5, as_published=True),
        od.ApproxDP(2.0, 1e-6),
    ),
    "dp-sgd": dp_sgd,
    "dp-sgld": regularised(baselines.DPSGLD(batch_size=50, relaxations=1.0, steps=60), od.ApproxDP(2.0, 1e-5)),
    "kng": regularised(baselines.KNG(count=30_000), od.PureDP(2.0)),
    "minami": regularised(baselines.Minami(), od.ApproxDP(2.0, 1e-6)),
    "multi-proposal": regularised(baselines.MultiProposal(relaxations=1.0), od.ApproxDP(2.0, 1e-6)),
    "noise-aware": noise_aware,
    "one-posterior-sample": regression(baselines.OnePosteriorSample(), od.PureDP(2.0)),
    "penalty": regularised(baselines.Penalty(relaxations=1.0), od.ApproxDP(2.0, 1e-6)),
    "sufficient-statistics": sufficient_statistics,
    "output-perturbation": regularised(baselines.OutputPerturbation(regularisation=0.05), od.PureDP(2.0)),
    "output-perturbation-gaussian": regularised(baselines.OutputPerturbation(), od.ApproxDP(2.0, 1e-6)),
    "output-perturbation-as-published": regularised(
        baselines.OutputPerturbation("laplace", as_published=True), od.PureDP(2.0)
    ),
    "objective-perturbation-chaudhuri": regularised(baselines.ObjectivePerturbation(), od.PureDP(2.0)),
    "objective-perturbation-kifer": regularised(baselines.ObjectivePerturbation("kifer"), od.ApproxDP(2.0, 1e-6)),
}
