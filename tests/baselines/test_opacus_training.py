"""Training with Opacus, where torch and Opacus are installed: the same numbers as compiled JAX, and as Opacus' own optimiser."""

import numpy as np
import pytest

import onedraw as od
from onedraw.baselines import DPSGD, Training
from onedraw.baselines.sgd_steps import Numbers, by_jax, drawn_steps, objective_of, one_by_one

from .test_sgd_steps import MODELS, records

torch = pytest.importorskip("torch", reason="pip install torch==2.13.0, then opacus==1.6.0")
pytest.importorskip("opacus", reason="pip install torch==2.13.0, then opacus==1.6.0")

from onedraw.baselines.opacus_training import _loss, _module, record_gradients  # noqa: E402


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODELS)
def test_opacus_and_jax_agree_on_the_same_coins_and_noise(name):
    model, objective = MODELS[name], objective_of(MODELS[name])
    encoded = model.summarise(records(name, n=200))
    drawn = drawn_steps(np.random.default_rng(5), n=200, batch_size=20, steps=100, size=objective.size)
    numbers, start = Numbers(0.7, 2.0, 0.05), objective.start(3)
    ours = by_jax(objective, encoded.X, encoded.y, start, drawn.split(1), numbers)[0]
    theirs = one_by_one(record_gradients(objective), encoded.X, encoded.y, start, drawn, numbers)
    assert np.abs(ours - start).max() > 0.1
    assert np.abs(ours - theirs).max() < 1e-6


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["logistic", "network", "network of classes", "network of numbers"])
def test_the_steps_are_those_of_opacus_own_optimiser(name):
    """Its DPOptimizer, handed the same batches and noise; it adds 1e-6 to a norm before it clips, so digits differ there."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model, objective = MODELS[name], objective_of(MODELS[name])
    encoded = model.summarise(records(name, n=200))
    batch, clip, multiplier, rate, steps = 20, 0.7, 1.5, 0.8, 40
    drawn = drawn_steps(np.random.default_rng(6), n=200, batch_size=batch, steps=steps, size=objective.size)
    start = objective.start(3)
    ours = by_jax(
        objective, encoded.X, encoded.y, start, drawn.split(1), Numbers(clip, multiplier * clip, rate / batch)
    )[0]

    class Handed(DPOptimizer):
        noise = None

        def add_noise(self):
            parts = split(objective, self.noise)
            for parameter, part in zip(self.params, parts, strict=True):
                parameter.grad = parameter.summed_grad + multiplier * clip * torch.from_numpy(part)

    module = GradSampleModule(_module(torch, objective), loss_reduction="sum")
    with torch.no_grad():
        for parameter, part in zip(module.parameters(), split(objective, start), strict=True):
            parameter.copy_(torch.from_numpy(part))
    optimiser = Handed(
        torch.optim.SGD(module.parameters(), lr=rate), noise_multiplier=multiplier, max_grad_norm=clip,
        expected_batch_size=batch, loss_reduction="mean",
    )  # fmt: skip
    for rows, present, noise in zip(drawn.rows, drawn.present, drawn.noise, strict=True):
        chosen = rows[present]
        optimiser.zero_grad()
        X, y = torch.from_numpy(encoded.X[chosen]), torch.from_numpy(encoded.y[chosen])
        _loss(torch, objective, module(X.requires_grad_()), y).backward()
        optimiser.noise = noise
        optimiser.step()
    theirs = joined(objective, [parameter.detach().numpy() for parameter in module.parameters()])
    assert np.abs(ours - theirs).max() < 1e-4
    assert np.abs(ours - start).max() > 0.1


def split(objective, theta):
    from onedraw.baselines.opacus_training import _parts

    return _parts(objective, np.asarray(theta))


def joined(objective, parts):
    from onedraw.baselines.opacus_training import _whole

    return _whole(objective, [part[None] for part in parts])[0]


def test_a_release_is_trained_by_opacus_and_is_the_same_as_by_jax():
    model = MODELS["network"]
    plan = od.calibrate(DPSGD(epochs=2, batch_size=50, learning_rate=0.5), model, od.ApproxDP(2.0, 1e-5), n=200)
    data = records("network", n=200)
    theirs = od.release(plan, data, random_state=4)
    ours = od.release(plan, data, random_state=4, sampler=Training("jax"))
    assert "by Opacus" in theirs.certificate.sampler_choice
    assert np.abs(theirs.draw - ours.draw).max() < 1e-6
    assert od.verify(theirs).answer == "consistent"
    assert od.verify(od.release(plan, data)).answer == "consistent"


@pytest.mark.parametrize("cell", [np.nan, np.inf, 1e300])
def test_no_cell_makes_it_fail_with_opacus(cell):
    plan = od.calibrate(DPSGD(epochs=2, batch_size=3), MODELS["network of numbers"], od.ApproxDP(2.0, 1e-5), n=20)
    X, y = records("network of numbers", n=20)
    X[:5], y[:5] = cell, cell
    assert np.isfinite(od.release(plan, (X, y), random_state=1).draw).all()
