"""Every class of the package's models and losses, and an example of each: a new one joins the contract tests by itself."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from contextlib import suppress
from typing import Any

from onedraw import models
from onedraw.models import Model
from onedraw.models.convex.losses import LinearLoss


def load_every_module() -> None:
    """Import all of onedraw.models: a class is known once its file was read."""
    for module in pkgutil.walk_packages(models.__path__, "onedraw.models."):
        importlib.import_module(module.name)


load_every_module()


def model_classes(kind: type = Model) -> list[type[Any]]:
    """List the models of one kind, those of the package alone: a test may have made others in this process."""
    ours = (member for member in Model.members().values() if member.__module__.startswith("onedraw.models"))
    return sorted((member for member in ours if issubclass(member, kind)), key=lambda member: member.__name__)


def loss_classes() -> list[type[LinearLoss]]:
    """List the losses of one predictor."""
    found, left = [], [LinearLoss]
    while left:
        below = [kind for kind in left.pop().__subclasses__() if kind.__module__.startswith("onedraw.")]
        left += below
        found += [kind for kind in below if not inspect.isabstract(kind)]
    return sorted(found, key=lambda kind: kind.__name__)


def examples(kind: type = Model) -> list[Any]:
    """Make one of each class that can. `test_every_model` fails for the others; here they would stop every test of a file."""
    made = []
    for member in model_classes(kind):
        with suppress(AttributeError, NotImplementedError):
            made.append(member.example())
    return made


def name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
