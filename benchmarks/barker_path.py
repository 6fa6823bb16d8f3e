"""How near does a path of private decisions come? `BarkerPath` on five designs, beside noisy gradients and an exact
draw.

RMSE = √E‖θ̃ − θ₀‖² at (ε, δ) = (1, 1e-5), six parameters, n = 1000, θ₀ of norm 1 in a random direction, prior N(0, I),
exp-linear loss. Paths are the library's own; the exact draw of the ``gdp`` rule is judged by the law its theorem is
about, drawn by a long Metropolis chain (`noisy_gradient_designs.py`, whose designs these are, and one more that lies
off centre).

Contract: sphere, at most 0.40, and at most 0.75 of the exact draw's error. Ends with 1 if that is missed. Writes
benchmarks/results/barker_path.md; about five minutes of one core. NumPy, SciPy and JAX are all it needs.

    python benchmarks/barker_path.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from noisy_gradient_designs import BUDGET, DESIGNS, Cell, Design, by_law, noisy_gradient, without_privacy

import onedraw as od
from onedraw.methods import BarkerPath
from onedraw.methods.private_chain.run import Secret, walk

RESULT = Path(__file__).parent / "results" / "barker_path.md"
LIMIT, SHARE = 0.40, 0.75
N, REPETITIONS, CONTRACT_REPETITIONS = 1000, 40, 60

OFF_CENTRE = Design(
    "off centre",
    {"features": 5, "bounds": (0.0, 2.0), "intercept": True},
    lambda generator, shape: generator.uniform(0.0, 2.0, shape),
)
COLUMNS = ("path", "mean of its half", "noisy gradient", "gdp rule", "not private")


def simulated(design: Design, repetitions: int) -> Cell:
    if design in DESIGNS:
        return Cell.simulate(design, N, 1.0, repetitions)
    generator = np.random.default_rng([N, 1, len(DESIGNS)])
    X = design.features(generator, (repetitions, N, design.declared["features"]))
    truth = generator.standard_normal((repetitions, 6))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    predictor = (np.concatenate([X, np.ones((*X.shape[:-1], 1))], axis=-1) @ truth[:, :, None])[:, :, 0]
    y = (generator.random(predictor.shape) < 1.0 / (1.0 + np.exp(-predictor))).astype(float)
    return Cell(design, 1.0, X, y, truth)


def paths(cell: Cell) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """(last states, means of second halves, the plan's numbers): one path a data set."""
    model = cell.model("exp-linear")
    plan = od.calibrate(BarkerPath(), model, BUDGET, n=cell.n)
    averaged = BarkerPath(publish="mean")
    last, means = [], []
    for number, data in enumerate(zip(cell.X, cell.y, strict=True)):
        target = plan.target(model.summarise(data))
        states, _ = walk(target, number.to_bytes(32, "little"), Secret(od.samplers.seeded_generator(number)))
        last.append(plan.mechanism.published(states))
        means.append(averaged.published(states))
    return np.array(last), np.array(means), dict(plan.parameters)


def measured(design: Design, repetitions: int) -> tuple[dict[str, float], dict[str, float]]:
    """Errors by column, and the plan's numbers."""
    cell = simulated(design, repetitions)
    last, means, numbers = paths(cell)
    exact = by_law(cell, od.Gibbs("gdp"), cell.model("exp-linear"))
    draws = (last, means, noisy_gradient(cell), exact, without_privacy(cell))
    return {name: cell.error(found) for name, found in zip(COLUMNS, draws, strict=True)}, numbers


HEAD = """# Paths of private decisions on five designs

RMSE = √E‖θ̃ − θ₀‖² of one release at (ε, δ) = (1, 1e-5), n = 1,000, six parameters, ‖θ₀‖ = 1, prior N(0, I),
exp-linear loss; {repetitions} data sets a row ({contract} on the sphere), so a figure's standard error is about 4% of
it. Designs: noisy_gradient_designs.md, and "off centre", five features uniform on their declared box [0, 2] with an
intercept. "gdp rule" is an exact posterior draw. Written by `benchmarks/barker_path.py`.
"""


def main() -> None:
    start, rows, kept, words = time.process_time(), [], True, ""
    for design in (*DESIGNS, OFF_CENTRE):
        errors, numbers = measured(design, CONTRACT_REPETITIONS if design.name == "sphere" else REPETITIONS)
        shown = " | ".join(f"{errors[name]:.3f}" for name in COLUMNS)
        rows.append(f"| {design.name} | {numbers['weight']:.3f} | {numbers['steps']:,.0f} | {shown} |")
        print(rows[-1], flush=True)
        if design.name == "sphere":
            path, exact = errors[COLUMNS[0]], errors["gdp rule"]
            kept = path <= LIMIT and path <= SHARE * exact
            words = (
                f"Sphere, {CONTRACT_REPETITIONS} data sets: {path:.3f}, at most {LIMIT} asked; {path / exact:.2f} of "
                f"the exact draw's {exact:.3f}, at most {SHARE} asked: {'kept' if kept else 'MISSED'}."
            )
    heads = ["design", "weight", "T", *COLUMNS]
    table = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1), *rows]
    head = HEAD.format(repetitions=REPETITIONS, contract=CONTRACT_REPETITIONS)
    RESULT.write_text("\n".join([head, *table, "", "## The contract", "", words, ""]), encoding="utf-8")
    print(words, f"{time.process_time() - start:.0f} s of CPU", sep="\n")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
