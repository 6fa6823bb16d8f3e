"""Does a plan's expected error come true, and does ``mechanism="auto"`` pick well? Twenty public settings, every mechanism.

Data sets are simulated from each setting's reference design, the one the plan is made for. Noisy-gradient draws, closed
forms and candidates that take less than a second are the library's own. Exact-draw rules are judged by the law their
theorem is about, drawn by a long Metropolis chain, and so are larger sets of candidates (a finite selection tends to
that law); the first rows of the table show the library's own chains beside it.

Contract: every expected error of a logistic or linear plan within 20 % of the simulated one, and the error of the
mechanism that "auto" picks at most 1.3 times the smallest of all proven ones. Ends with 1 if that is missed. Writes
benchmarks/results/plan_accuracy.md; ten minutes on two idle cores.

    python benchmarks/plan_accuracy.py [--data-sets 60] [--settings 20]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import math
import multiprocessing
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import onedraw as od
from onedraw.mechanisms import Candidates, NoisyGradient
from onedraw.mechanisms.candidate_plan import shares
from onedraw.planning import Choice, Regression, choose
from onedraw.planning.design import Design, design_of
from onedraw.planning.expectation import simulated_draws
from onedraw.planning.moments import moments_of

RESULT = Path(__file__).parent / "results" / "plan_accuracy.md"
DELTA = 1e-6
MOVES = 200
"""Metropolis moves of a chain that starts at the truth, where its target is."""

MOST_RECORDS = 400_000
"""Simulated for one figure by such chains; at least 20 data sets."""

WITHIN, FACTOR = 0.20, 1.3
ERRORS_OF_SIMULATION = 2.0
"""A figure counts as missed if it is, by as many standard errors of the simulation."""


@dataclass(frozen=True)
class Setting:
    question: Regression
    n: int
    epsilon: float

    @property
    def name(self) -> str:
        bound = "box" if self.question.bounds is not None else "ball"
        return f"{self.question.kind}, d = {self.question.features}, {bound}"


BOX, BALL = {"bounds": (0.0, 1.0)}, {"data_norm": 1.0}


def logistic(features: int, **options) -> Regression:
    return Regression("logistic", features, **options)


def linear(features: int, **options) -> Regression:
    return Regression("linear", features, response_bound=4.0, **options)


SETTINGS = (
    Setting(logistic(2, **BOX), 500, 0.5), Setting(logistic(2, **BOX), 2000, 1.0), Setting(logistic(2, **BALL), 500, 5.0),
    Setting(logistic(3, **BOX), 1000, 1.0), Setting(logistic(3, **BALL), 5000, 0.5), Setting(logistic(5, **BOX), 500, 1.0),
    Setting(logistic(5, **BOX), 5000, 2.0), Setting(logistic(5, **BALL), 2000, 5.0),
    Setting(logistic(10, **BOX), 1000, 0.5), Setting(logistic(10, **BOX), 5000, 1.0),
    Setting(logistic(10, **BALL), 2000, 1.0), Setting(logistic(10, **BALL), 20_000, 1.0),
    Setting(linear(2, **BOX), 500, 0.5), Setting(linear(2, **BALL), 2000, 1.0), Setting(linear(3, **BOX), 500, 5.0),
    Setting(linear(5, **BOX), 1000, 1.0), Setting(linear(5, **BALL), 5000, 0.5), Setting(linear(5, **BOX), 5000, 2.0),
    Setting(linear(10, **BOX), 1000, 1.0), Setting(linear(10, **BALL), 20_000, 1.0),
)  # fmt: skip


# ── simulation ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Simulated:
    error: float
    uncertainty: float
    """Its standard error, relatively."""


def simulate(choice: Choice, design: Design, data_sets: int, generator, *, own: bool = False) -> Simulated:
    """The error of the mechanism on simulated data sets; by the library's own sampler where asked or where it is quick."""
    plan = choice.plan
    quick = (
        choice.seconds < 1.0 if isinstance(plan.mechanism, Candidates) else isinstance(plan.mechanism, NoisyGradient)
    )
    by_library = own or quick or plan.closed_form
    count = data_sets if by_library else min(data_sets, max(20, MOST_RECORDS // plan.n))
    truths = design.parameters(generator, count)
    if by_library:
        sampler, _ = od.samplers.default_sampler(plan)
        draws = np.array([simulated_draws(plan, design, theta, generator, sampler)[0] for theta in truths])
    else:
        draws = by_law(plan, design, truths, generator)
    squares = ((draws - truths) ** 2).mean(axis=1)
    error = math.sqrt(squares.mean())
    return Simulated(error, float(squares.std() / math.sqrt(count) / (2 * squares.mean())))


def by_law(plan, design: Design, truths: np.ndarray, generator) -> np.ndarray:
    """One draw a data set from the posterior, or the weighted mean of one a round."""
    rounds = shares(int(plan.parameters["rounds"])) if isinstance(plan.mechanism, Candidates) else (1,)
    expected, draws = moments_of(plan, design).information.mean(axis=0), []
    for theta in truths:
        data = design.data_set(theta, plan.n, generator)
        picks = [
            metropolis(plan, data, float(part) * plan.parameters["weight"], theta, expected, generator)
            for part in rounds
        ]
        draws.append(np.average(picks, axis=0, weights=[float(part) for part in rounds]))
    return np.array(draws)


def metropolis(plan, data, weight: float, start: np.ndarray, expected: np.ndarray, generator) -> np.ndarray:
    """The last of many random-walk moves, shaped by the curvature that the plan expects."""
    model = plan.model
    precision, location = model.prior.precision(model.dimension), model.prior.location(model.dimension)
    radius, beta = model.prior.radius or math.inf, plan.parameters.get("beta")

    def log_density(theta: np.ndarray) -> float:
        if theta @ theta > radius**2:
            return -math.inf
        if beta is None:
            loss = float(np.sum(model.kernel.value(data.X @ theta, data.y)))
        else:
            margins = data.y * (data.X @ theta)
            log_p = -np.logaddexp(0.0, -margins)
            power = np.exp((beta - 1.0) * log_p)
            p, q = np.exp(log_p), np.exp(beta * (log_p - margins))
            loss = float(np.sum(-power / (beta - 1.0) + (p * power + q) / beta))
        return -weight * loss - 0.5 * float(precision @ (theta - location) ** 2)

    curvature = plan.n * weight * expected + np.diag(precision)
    root = 2.4 / math.sqrt(len(start)) * np.linalg.cholesky(np.linalg.inv(curvature))
    theta = start * min(1.0, 0.9 * radius / (np.linalg.norm(start) + 1e-12))
    level = log_density(theta)
    for _ in range(MOVES):
        proposal = theta + root @ generator.standard_normal(len(theta))
        proposed = log_density(proposal)
        if generator.exponential() >= level - proposed:
            theta, level = proposal, proposed
    return theta


# ── the table ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Row:
    setting: Setting
    choices: list[Choice]
    found: list[Simulated]

    @classmethod
    def measure(cls, setting: Setting, data_sets: int) -> Row:
        generator = np.random.default_rng(SETTINGS.index(setting))
        question = setting.question
        found = choose(question, od.ApproxDP(setting.epsilon, DELTA), n=setting.n)
        choices = list(found.eligible)
        design = design_of(choices[0].plan, effect=question.expected_effect, noise=question.unit)
        return cls(setting, choices, [simulate(choice, design, data_sets, generator) for choice in choices])

    @property
    def ratio(self) -> float:
        return self.found[0].error / min(found.error for found in self.found)

    @property
    def picks_well(self) -> bool:
        best = min(self.found, key=lambda found: found.error)
        slack = 1.0 + ERRORS_OF_SIMULATION * math.hypot(best.uncertainty, self.found[0].uncertainty)
        return self.ratio <= FACTOR * slack

    def misses(self) -> list[str]:
        return [
            choice.name
            for choice, found in zip(self.choices, self.found, strict=True)
            if abs(choice.expected.private / found.error - 1.0) > WITHIN + ERRORS_OF_SIMULATION * found.uncertainty
        ]

    @property
    def text(self) -> str:
        parts = [
            f"{choice.name} {choice.expected.private:.3f}/{found.error:.3f}"
            for choice, found in zip(self.choices, self.found, strict=True)
        ]
        head = f"| {self.setting.name} | {self.setting.n:,} | {self.setting.epsilon:g} | "
        return head + f"**{parts[0]}** | {', '.join(parts[1:])} | {self.ratio:.2f} |"


HEAD = """# Expected errors beside simulated ones

Root mean squared error per coefficient of one draw, expected/simulated, δ = {delta:g}; at most {data_sets} data sets a figure,
whose standard error is 2 to 6 % of it. Bold: what "auto" picks; last column: its simulated error over the smallest of all proven
mechanisms. Written by `benchmarks/plan_accuracy.py`.

| setting | n | ε | picked | the others | ratio |
| --- | ---: | ---: | --- | --- | ---: |
"""


def own_samplers(data_sets: int) -> list[str]:
    """The law of exact-draw rules by Metropolis, beside the library's own chains."""
    lines = ["## Metropolis beside the library's own chains", "", "| setting | mechanism | expected | law | own chain |",
             "| --- | --- | ---: | ---: | ---: |"]  # fmt: skip
    for setting in (SETTINGS[1], SETTINGS[15]):
        generator, question = np.random.default_rng(7), setting.question
        for choice in choose(question, od.ApproxDP(setting.epsilon, DELTA), n=setting.n).eligible:
            if not choice.name.startswith("gdp"):
                continue
            design = design_of(choice.plan, effect=question.expected_effect, noise=question.unit)
            law, own = (simulate(choice, design, 2 * data_sets, generator, own=flag) for flag in (False, True))
            lines.append(
                f"| {setting.name}, n = {setting.n:,} | {choice.name} | {choice.expected.private:.3f} | {law.error:.3f} | "
                f"{own.error:.3f} |"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-sets", type=int, default=60)
    parser.add_argument("--settings", type=int, default=len(SETTINGS))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    start, rows = time.perf_counter(), []
    wanted = SETTINGS[: arguments.settings]
    with concurrent.futures.ProcessPoolExecutor(
        arguments.workers, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        for row in pool.map(Row.measure, wanted, [arguments.data_sets] * len(wanted)):
            rows.append(row)
            print(row.text, flush=True)
    misses = [f"{row.setting.name}, n = {row.setting.n:,}: {', '.join(row.misses())}" for row in rows if row.misses()]
    poor = [f"{row.setting.name}, n = {row.setting.n:,} ({row.ratio:.2f})" for row in rows if not row.picks_well]
    ratios = [
        choice.expected.private / found.error
        for row in rows
        for choice, found in zip(row.choices, row.found, strict=True)
    ]
    verdict = [
        f"{len(ratios)} figures: expected over simulated between {min(ratios):.2f} and {max(ratios):.2f}; more than 20 % off: "
        f"{'; '.join(misses) or 'none'}.",
        f"Largest ratio of what auto picks to the best: {max(row.ratio for row in rows):.2f}; above 1.3: {'; '.join(poor) or 'none'}.",
    ]
    text = HEAD.format(delta=DELTA, data_sets=arguments.data_sets) + "\n".join(row.text for row in rows)
    parts = [text, "", *verdict, "", *own_samplers(arguments.data_sets), ""]
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(parts), encoding="utf-8")
    print("\n".join(verdict), f"\nwritten to {RESULT.name}, {time.perf_counter() - start:.0f} s")
    sys.exit(1 if misses or poor else 0)


if __name__ == "__main__":
    main()
