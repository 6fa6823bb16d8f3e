"""Transition kernels of BlackJAX on a plain log density, in coordinates where the momentum is N(0, I). The one adapter.

`hmc_step` and `coupled_hmc_step` are the same transition: BlackJAX's coupled kernel moves each of two chains as its HMC
does, on one shared momentum and one shared uniform. BlackJAX is imported when the first step is compiled.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from onedraw.errors import check_extra
from onedraw.models.compute import double_precision, jnp

TARGET_ACCEPTANCE = 0.8


@cache
def _blackjax() -> SimpleNamespace:
    double_precision()
    try:
        from blackjax.adaptation.step_size import dual_averaging_adaptation
        from blackjax.mcmc import coupled_hmc, hmc, nuts
    except ModuleNotFoundError:
        check_extra("chains", "blackjax", "HMC or NUTS")
        raise
    adaptation = dual_averaging_adaptation(TARGET_ACCEPTANCE)
    kernels = {"hmc": hmc.build_kernel(), "coupled": coupled_hmc.build_kernel(), "nuts": nuts.build_kernel()}
    return SimpleNamespace(init=hmc.init, pair=coupled_hmc.CoupledHMCState, adaptation=adaptation, **kernels)


def state_at(position: Any, log_density: Any) -> Any:
    """A chain's state: position, log density and its gradient."""
    return _blackjax().init(position, log_density)


def hmc_step(key: Any, state: Any, log_density: Any, *, step_size: Any, leapfrog: Any) -> Any:
    """(state, acceptance probability)."""
    state, info = _blackjax().hmc(key, state, log_density, step_size, jnp.ones_like(state.position), leapfrog)
    return state, info.acceptance_rate


def coupled_hmc_step(key: Any, first: Any, second: Any, log_density: Any, *, step_size: Any, leapfrog: Any) -> Any:
    """(first, second) after one step each, momentum and uniform shared."""
    both = [(value, value) for value in (log_density, step_size, jnp.ones_like(first.position), leapfrog)]
    state, _ = _blackjax().coupled(key, _blackjax().pair(first, second), *both)
    return state.first, state.second


def nuts_step(key: Any, state: Any, log_density: Any, *, step_size: Any, doublings: int) -> Any:
    """(state, average acceptance probability along the trajectory)."""
    state, info = _blackjax().nuts(key, state, log_density, step_size, jnp.ones_like(state.position), doublings)
    return state, info.acceptance_rate


def dual_averaging() -> Any:
    """(start, update, end) of the adaptation of a step size (Hoffman and Gelman, JMLR 2014); a state has ``log_step_size``."""
    return _blackjax().adaptation
