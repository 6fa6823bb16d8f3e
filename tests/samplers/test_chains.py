"""Keys and noise of a chain are made for many steps at once, and are what each step alone would draw, on both ways of looping."""

from __future__ import annotations

import numpy as np
import pytest

from onedraw.models.compute import jax, jnp
from onedraw.samplers import chains as ahead_of_steps
from onedraw.samplers import langevin
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
    monkeypatch.setattr(ahead_of_steps, "accelerated", lambda: accelerator)
    ahead, kernel = ahead_of_steps.AHEAD, Bowl()  # a kernel of its own: nothing compiled the other way is found again
    keys, starts = jax.random.split(seeded_key(5), 2), jnp.ones((2, 3))
    none = (jnp.zeros(()), jnp.zeros(()), 1.0, jnp.zeros(3), jnp.zeros(3))
    for steps in (1, ahead - 1, ahead, ahead + 1, 2 * ahead + 3):
        found = np.asarray(langevin._chains(kernel, 1, keys, starts, steps, 0.1, 2.0, none))
        for key, start, theta in zip(keys, starts, found, strict=True):
            assert theta == pytest.approx(by_hand(key, start, steps, 0.1, 2.0), rel=1e-9)


@pytest.mark.parametrize("accelerator", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 4, 5, 11])
def test_keys_made_ahead_are_those_of_each_step(steps: int, accelerator: bool, monkeypatch) -> None:
    """What a step draws may be a key, from which it draws on: proximal and Hamiltonian steps do."""
    monkeypatch.setattr(ahead_of_steps, "accelerated", lambda: accelerator)
    key = seeded_key(6)

    def draw(number):
        first, second = jax.random.split(jax.random.fold_in(key, number))
        return jax.random.bits(first, dtype="uint32"), second

    def step(state, given):
        bits, own = given
        return state * 3 + bits ^ jax.random.bits(jax.random.fold_in(own, 1), dtype="uint32")

    @jax.jit
    def chain(steps):
        return ahead_of_steps.advanced(jnp.uint32(1), steps, draw=draw, step=step, ahead=4)

    expected = jnp.uint32(1)
    for number in range(steps):
        expected = step(expected, draw(number))
    assert int(chain(steps)) == int(expected)
