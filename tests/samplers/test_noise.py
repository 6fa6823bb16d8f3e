"""Noise on whole sums: what is added is exact, whatever the size of the sums."""

import numpy as np
import pytest

from onedraw.samplers.noise import Noise
from onedraw.samplers.randomness import seeded_generator

BITS = 16


class Known(Noise):
    """A pure noise of which every number is known."""

    known = ()

    def real(self, size, noise):
        return np.array(self.known)


def added(sums, noise, scale):
    """What is published of these sums with this noise, in whole steps."""
    made = Known(seeded_generator(1), pure=True)
    made.known = noise
    return made.vector(np.array(sums), 1.0, scale)


@pytest.mark.finding("mathematics M9", commit="8a7c0fb")
@pytest.mark.parametrize("above", [1, 3, 5])
def test_pure_noise_adds_to_sums_beyond_two_to_the_53_exactly(above):
    """A float of the sum would be even: one record would move it by 0 or 2 instead of 1."""
    assert added([2**53 + above], [-(2.0**53)], 1.0).tolist() == [float(above)]


@pytest.mark.parametrize("size", [2**40, 2**53 + 1, 2**61 + 12345])
@pytest.mark.parametrize("moved", [1, 37, 2**20 + 1])
def test_neighbor_sums_move_what_is_published_by_no_more(size, moved):
    for real in (-float(size), 0.25 - float(size), 1e5 - float(size)):
        one, other = (added([total], [real], 3.0)[0] for total in (size, size + moved))
        assert other - one == moved


@pytest.mark.parametrize("scale", [1.0, 2.0**16, 2.0**40, 2.0**59])
def test_real_noise_is_published_without_the_digits_it_has_not(scale):
    sums = np.arange(100) + 2**55
    values = added(sums, scale * seeded_generator(2).standard_normal(100), scale)
    unit = max(1.0, scale / 2.0**BITS)
    assert np.all(values % unit == 0.0)
    assert np.abs(values - sums).max() < 6.0 * scale + 8.0  # and the rounding to a float of the sum's size
