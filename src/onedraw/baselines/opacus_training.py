"""Gradients of single records by Opacus: the one file that meets torch and Opacus.

Opacus' `GradSampleModule` gives each record's own gradient. Its noise and its sampler are not used: torch's generator is
no cipher (Opacus' ``secure_mode`` needs torchcsprng, which does not install beside this torch), a run could not be told from a
seeded one, and its accountant is for records that are added or left out. Coins, clipping and noise are those of `sgd_steps`, from our own generator.

    pip install torch==2.13.0
    pip install opacus==1.6.0          # in this order, Python 3.11: alone it brings CUDA builds
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import MissingExtra
from onedraw.models.likelihood.likelihood_model import OneLayer

from .sgd_steps import Gradients, Objective

INSTALL = "pip install torch==2.13.0, and then pip install opacus==1.6.0"


def lacking_for_opacus() -> list[str]:
    """Return the libraries that training with Opacus needs and that are not installed."""
    return [name for name in ("torch", "opacus") if find_spec(name) is None]


def check_opacus() -> None:
    """Refuse where it is missing, with what to do."""
    if missing := lacking_for_opacus():
        raise MissingExtra(
            f"This training was asked to use Opacus, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not "
            "installed here. Leave out sampler=, or pass baselines.Training('jax'), which draws from the same law. Or install "
            f"them in two steps, in this order: {INSTALL}.",
            extra="opacus",
        )


def record_gradients(objective: Objective) -> Gradients:
    """(θ, rows, responses) ↦ the gradient of each record, (records, d), in double precision."""
    import torch
    from opacus import GradSampleModule

    module = GradSampleModule(_module(torch, objective), loss_reduction="sum")
    parameters = list(module.parameters())

    def gradients(theta: Array, X: Array, y: Array) -> Array:
        with torch.no_grad():
            for parameter, values in zip(parameters, _parts(objective, theta), strict=True):
                parameter.copy_(torch.from_numpy(values))
        module.zero_grad()
        with warnings.catch_warnings():  # rows have no gradient of their own, which torch's hooks remark on
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            _loss(torch, objective, module(torch.from_numpy(X)), torch.from_numpy(y)).backward()
        found = [parameter.grad_sample.numpy() for parameter in parameters]
        return _whole(objective, found)

    return gradients


def _module(torch: Any, objective: Objective) -> Any:
    """In torch's words; a row brings its own 1, so that the first layer has no bias."""
    net, double = objective.predictor, {"dtype": torch.float64}
    if not isinstance(net, OneLayer):
        return torch.nn.Linear(objective.size, 1, bias=False, **double)
    activation = torch.nn.Tanh() if net.activation == "tanh" else torch.nn.ReLU()
    first = torch.nn.Linear(net.width, net.hidden, bias=False, **double)
    return torch.nn.Sequential(first, activation, torch.nn.Linear(net.hidden, net.outputs, **double))


def _loss(torch: Any, objective: Objective, u: Any, y: Any) -> Any:
    """The batch's sum: each record's share has that record's gradient."""
    if objective.loss == "classes":
        return objective.scale * torch.nn.functional.cross_entropy(u, y.long(), reduction="sum")
    if objective.loss == "squares":
        return objective.scale * 0.5 * ((u[:, 0] - y) ** 2).sum()
    return objective.scale * torch.logaddexp(torch.zeros(()).double(), -y * u[:, 0]).sum()


def _parts(objective: Objective, theta: Array) -> list[Array]:
    """θ as the module's parameters: W₁, W₂, b₂ of a network."""
    net = objective.predictor
    if not isinstance(net, OneLayer):
        return [theta[None].copy()]
    cut = net.hidden * net.width
    second = theta[cut:].reshape(net.outputs, net.hidden + 1)
    return [theta[:cut].reshape(net.hidden, net.width).copy(), second[:, :-1].copy(), second[:, -1].copy()]


def _whole(objective: Objective, parts: list[Any]) -> Array:
    """The parts of each record's gradient in the order of θ."""
    records = len(parts[0])
    if not isinstance(objective.predictor, OneLayer):
        return np.asarray(parts[0].reshape(records, -1))
    first, weights, biases = parts
    second = np.concatenate([weights, biases[:, :, None]], axis=2)
    return np.concatenate([first.reshape(records, -1), second.reshape(records, -1)], axis=1)
