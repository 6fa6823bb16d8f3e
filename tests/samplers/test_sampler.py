"""What every sampler of the room keeps: it is read back as it was written, and answers for itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

import onedraw as od
from onedraw import errors, samplers
from onedraw.methods.measured.run import MeasuredFirst
from onedraw.models import Gaussian, Logistic
from onedraw.samplers import Sampler
from onedraw.samplers.choice import own_sampler

pytestmark = pytest.mark.contract

MADE = {
    "HMC": samplers.HMC(5),
    "Langevin": samplers.Langevin(1e-3),
    "LastIterateLangevin": samplers.LastIterateLangevin(10, 0.1),
    "MeasuredFirst": MeasuredFirst(samplers.LastIterateLangevin(10, 0.1)),
    "Proximal": samplers.Proximal(gamma=1e-6),
}


def made(name: str) -> Sampler:
    return MADE[name] if name in MADE else getattr(samplers, name)()


@pytest.mark.parametrize("name", samplers.SAMPLERS)
def test_a_sampler_is_read_back_as_it_was_written(name: str) -> None:
    sampler = made(name)
    stored = sampler.to_dict()
    assert stored["name"] == name
    assert Sampler.from_dict(stored) == sampler
    for wrong in ({**stored, "more": 1}, {"name": name + "x"}, {}, None, [name]):
        with pytest.raises(errors.CertificateRejected):
            Sampler.from_dict(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", samplers.SAMPLERS)
def test_a_sampler_says_what_it_runs_on(name: str) -> None:
    sampler = made(name)
    assert sampler.randomness in ("jax", "numpy")
    assert sampler.compiling >= 0.0
    with pytest.raises(AttributeError):
        sampler.randomness_of = "elsewhere"  # type: ignore[attr-defined]


def test_a_plan_that_is_an_algorithm_has_its_one_sampler_and_a_posterior_none() -> None:
    model, budget = Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0)), od.ApproxDP(1.0, 1e-6)
    path = od.calibrate(od.NoisyGradient(), model, budget, n=100)
    assert own_sampler(path) is samplers.LastIterateLangevin
    assert own_sampler(od.calibrate(od.Gibbs("gdp"), model, budget, n=100)) is None
    with pytest.raises(errors.ExactnessRefused, match="LastIterateLangevin"):
        samplers.check_sampler(path, samplers.Proximal(gamma=1e-6))


def test_reading_all_samplers_loads_neither_jax_nor_blackjax() -> None:
    code = (
        "import sys; from onedraw import samplers; [getattr(samplers, name) for name in samplers.SAMPLERS];"
        "print({'jax', 'blackjax', 'randomgen', 'opendp'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "set()"
