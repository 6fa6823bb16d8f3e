"""A chain's noise is drawn for many steps at once, and is what each step alone would draw, on both ways of looping."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.models.compute import jax, jnp
from onedraw.samplers import langevin_chain
from onedraw.samplers.chacha import seeded_key
from onedraw.samplers.variates import normal


class Bowl:
    """U(θ) = ‖θ‖²/2 without records: the kernel of a chain that can be followed by hand."""

    def gradient_total(self, theta, X, y):
        return theta


@jax.jit
def alone(key, number):
    return normal(jax.random.fold_in(key, number), (3,))


def by_hand(key, start, steps, step_size, radius):
    theta = np.asarray(start)
    for number in range(steps):
        noise = np.asarray(alone(key, number))
        theta = theta - step_size * theta + np.sqrt(2.0 * step_size) * noise
        theta = theta * min(1.0, radius / np.linalg.norm(theta))
    return theta


@pytest.mark.parametrize("accelerator", [False, True])
def test_every_step_has_the_noise_of_its_own_key(accelerator: bool, monkeypatch) -> None:
    monkeypatch.setattr(langevin_chain, "accelerated", lambda: accelerator)
    ahead, kernel = langevin_chain.AHEAD, Bowl()  # a kernel of its own: nothing compiled the other way is found again
    keys, starts = jax.random.split(seeded_key(5), 2), jnp.ones((2, 3))
    none = (jnp.zeros(()), jnp.zeros(()), 1.0, jnp.zeros(3), jnp.zeros(3))
    for steps in (1, ahead - 1, ahead, ahead + 1, 2 * ahead + 3):
        found = np.asarray(langevin_chain._chains(kernel, 1, keys, starts, steps, 0.1, 2.0, none))
        for key, start, theta in zip(keys, starts, found, strict=True):
            assert theta == pytest.approx(by_hand(key, start, steps, 0.1, 2.0), rel=1e-9)
