"""What to use instead: the mechanisms that keep a budget for a model that another mechanism has refused.

A message written beside the refusal cannot know the model and the budget of the next caller, and proposed mechanisms that were
refused in turn. Here each one is calibrated before it is named, and its sampler is looked up, so that a release of it is not
refused either. All of that is public: no record is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, wraps
from typing import Any, ParamSpec

from onedraw.errors import OnedrawError, UnsupportedBudget
from onedraw.methods import base
from onedraw.methods.base import Mechanism
from onedraw.plans import Plan

Options = ParamSpec("Options")


def _with_offer(function: Callable[Options, Plan]) -> Callable[Options, Plan]:
    """Add to a refusal what keeps the same budget for the same model."""

    @wraps(function)
    def calibrate(*given: Options.args, **options: Options.kwargs) -> Plan:
        try:
            return function(*given, **options)
        except UnsupportedBudget as error:
            instead = offer(*given[1:], **{name: value for name, value in options.items() if name != "mechanism"})
            raise type(error)(f"{error}{' ' if instead else ''}{instead}", **error.fields) from None

    calibrate.__module__ = __name__  # where it is found again by its name
    return calibrate


def offer(*given: Any, **options: Any) -> str:
    """Return a sentence that names a mechanism which keeps this budget for this model; nothing if none is known."""
    asked = (given, *sorted(options.items()))
    try:
        return _offer(*asked)
    except TypeError:  # a model with a part that has no hash
        return _offer.__wrapped__(*asked)


@lru_cache(maxsize=64)
def _offer(given: tuple[Any, ...], *options: tuple[str, Any]) -> str:
    from onedraw.samplers import default_sampler

    for name, mechanism in _alternatives():
        with suppress(OnedrawError):
            default_sampler(base.calibrate(mechanism, *given, **dict(options)))
            return f"For this model and budget use {name}."
    return ""


def _alternatives() -> Iterator[tuple[str, Mechanism]]:
    """Yield mechanisms by what is written for them: draws from a posterior first, the costliest to calibrate last."""
    from onedraw.methods import (
        AddedNoise,
        AveragedSteps,
        Candidates,
        Diffused,
        Gibbs,
        Moments,
        NoisyGradient,
        PerturbedMode,
    )

    yield "Diffused()", Diffused()
    yield "Gibbs()", Gibbs()
    yield "Gibbs('bounded')", Gibbs("bounded")
    yield "AveragedSteps()", AveragedSteps()
    yield "PerturbedMode()", PerturbedMode()
    yield "AddedNoise()", AddedNoise()
    yield "Moments()", Moments()
    yield "NoisyGradient()", NoisyGradient()
    yield "Candidates()", Candidates()


calibrate = _with_offer(base.calibrate)
