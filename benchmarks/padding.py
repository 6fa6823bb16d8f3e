"""Does padded work tell data sets apart? Fifty of them, extreme ones first, many runs each; and what tells them apart without.

Candidates, a Gibbs posterior on a disc by the proximal chain and by exact rejection, and a fit, each on 30 records and two columns. Work is counted by the
samplers themselves: passes over the records, tries, proposals. Without padding, whoever sees the count guesses which of two data sets was
drawn from; "right guesses" is the share that the best threshold gets right on other runs than those it was chosen on, of a coin ½.

Contract: padded, one number in every run of every data set, and it is the plan's. Ends with 1 if that is missed. Writes
benchmarks/results/padding.md; half an hour of one core for a thousand runs each, of which fits take twenty-five minutes. ``--only`` runs the
samplers that are named and keeps the other rows, if the plans behind them still ask for the work that they show.

    python benchmarks/padding.py [--runs 1000] [--processes 2] [--only Fit]
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import onedraw as od
from onedraw.methods import BetaDivergence, Candidates, PerturbedMode
from onedraw.methods.candidates.run import Selection
from onedraw.methods.perturbed_mode.run import Fit
from onedraw.models import Gaussian, Logistic
from onedraw.samplers import Perfect, Proximal, Sampler, seeded_generator, seeded_key
from onedraw.samplers.padding import AT_BALL, PASSES
from onedraw.samplers.selection import Envelope

RESULT = Path(__file__).parent / "results" / "padding.md"
N, SETS, RUNS = 30, 50, 1000
PAIR, GUESSES = (0, 3), 200
"""The two data sets that are guessed between, and runs of each without padding."""

HEAD = """# Padded work

Written by `benchmarks/padding.py`: {sets} data sets of {n} records (all alike, all zero, separated, one label, one row, random ones of all sizes). Right guesses
are those between "all rows alike, all labels 1" and "all rows zero", from the number of tries, proposals or passes alone. Constant
work is not constant time: see [running time](../../docs/limitations.md#running-time).

| sampler | the plan's work | γ₂ | runs of each data set | works seen | work without padding | right guesses without | padded |
| --- | --- | ---: | ---: | ---: | --- | ---: | ---: |
"""


def data_sets(count: int = SETS) -> list[tuple[np.ndarray, np.ndarray]]:
    """All alike with either label or both, all zero, separated, one label, one row that is not zero; then random rows of all sizes."""
    generator = np.random.default_rng(0)

    def rows() -> np.ndarray:
        X = generator.standard_normal((N, 2)) * 10.0 ** generator.uniform(-3, 0)
        return X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]

    X, mixed, alike = rows(), np.arange(N) % 2.0, np.tile([1.0, 0.0], (N, 1))
    one = np.zeros((N, 2))
    one[0, 1] = 1.0
    known = [(alike, np.ones(N)), (alike, np.zeros(N)), (alike, mixed), (0.0 * X, mixed), (X, (X[:, 0] > 0.0) * 1.0),
             (X, np.ones(N)), (one, np.ones(N)), (-alike, mixed)]  # fmt: skip
    return known + [(rows(), generator.integers(0, 2, N) * 1.0) for _ in range(count - len(known))]


@dataclass(frozen=True)
class Case:
    """A plan with its sampler; ``plain`` counts one run without padding, ``padded`` is the work of each of so many runs."""

    name: str
    plan: od.Plan
    sampler: Sampler
    plain: Callable[[Case, Any, int], int]
    padded: Callable[[Case, Any, int, int], list[dict[str, int]]]

    @property
    def public(self) -> str:
        """The cells of its row that no run can change."""
        padding = self.sampler.padding(self.plan)
        words = ", ".join(f"{count:,} {name}" for name, count in padding.work.items())
        return f"| {self.name} | {words} | {padding.gamma:.3g} |"

    def target(self, data: Any) -> Any:
        return self.plan.target(self.plan.model.summarise(data))


@cache
def cases() -> tuple[Case, ...]:
    disc = Logistic(2, data_norm=1.0, intercept=False, prior=Gaussian(scale=1.0, radius=2.0))
    scaled = Logistic(2, bounds=(-np.ones(2), np.ones(2)), scaled=True, prior=Gaussian(scale=1.0))
    chain = od.calibrate(od.Gibbs("bounded"), disc, od.ApproxDP(1.0, 1e-6), n=N)
    exact = od.calibrate(od.Gibbs("bounded"), disc, od.PureDP(1.0), n=N)
    fit = od.calibrate(PerturbedMode(), scaled, od.PureDP(4.0), n=N)
    pick = od.calibrate(Candidates(of=BetaDivergence(), count=200, rounds=1), scaled, od.PureDP(8.0), n=N)
    return (
        Case("Proximal, Gibbs on a disc", chain, Proximal(gamma=1e-3), tries_of_chain, work_of_chains),
        Case("Selection, 200 candidates", pick, Selection(), proposals_of_pick, work_of_each),
        Case("Perfect, Gibbs on a disc", exact, Perfect(), tries_of_draw, work_of_each),
        Case("Fit, perturbed mode", fit, Fit(), passes_of_fit, work_of_each),
    )


def tries_of_chain(case: Case, target: Any, seed: int) -> int:
    noticed = case.sampler.run(target, seeded_key(seed)).diagnostics
    return round(noticed["tries_per_step"] * noticed["iterations"])


def tries_of_draw(case: Case, target: Any, seed: int) -> int:
    return int(case.sampler.run(target, seeded_generator(seed)).diagnostics["tries"])


def work_of_chains(case: Case, target: Any, seed: int, runs: int) -> list[dict[str, int]]:
    """All in one call: no chain makes fewer tries than its quota says, so where the sum is the least possible each made as many."""
    padding = case.sampler.padding(case.plan)
    total, one = case.sampler.run_padded(target, seeded_key(seed), padding, size=runs).diagnostics["work"], padding.work
    last = {name: total[name] - (runs - 1) * one[name] for name in ("tries", AT_BALL)}
    return [dict(one)] * (runs - 1) + [{PASSES: one[PASSES] - one["tries"] + last["tries"], **last}]


def proposals_of_pick(case: Case, target: Any, seed: int) -> int:
    generator = seeded_generator(seed)
    candidates, public_costs = target.propose(0, [], generator)
    envelope = Envelope(
        target.costs(0, candidates) + public_costs, np.ones(len(candidates), dtype=np.int64), target.bits
    )
    return next(count for count in range(1, 10**6) if envelope.proposal(generator) is not None)


def passes_of_fit(case: Case, target: Any, seed: int) -> int:
    return int(case.sampler.run(target, seeded_generator(seed)).diagnostics["passes"])


def work_of_each(case: Case, target: Any, seed: int, runs: int) -> list[dict[str, int]]:
    padding, found = case.sampler.padding(case.plan), []
    for run in range(runs):
        noticed = case.sampler.run_padded(target, seeded_generator(runs * seed + run), padding).diagnostics
        found.append(noticed.get("work") or {PASSES: case.sampler.passes(case.plan), "proposals": noticed["proposals"]})
    return found


def right_guesses(first: list[int], second: list[int]) -> float:
    """Half of the runs choose a threshold and which side is whose, the other half is guessed."""
    counts, other = np.array(first).reshape(2, -1), np.array(second).reshape(2, -1)

    def right(threshold: float, half: int) -> float:
        return float(0.5 * ((counts[half] <= threshold).mean() + (other[half] > threshold).mean()))

    best = max({*first, *second}, key=lambda threshold: abs(right(threshold, 0) - 0.5))
    return right(best, 1) if right(best, 0) >= 0.5 else 1.0 - right(best, 1)


def works_on(number: int, which: int, runs: int) -> list[dict[str, int]]:
    """Of the runs of one case on one data set, in whatever process: seeds belong to the data set."""
    case = cases()[which]
    return case.padded(case, case.target(data_sets()[number]), number, runs)


def row(which: int, runs: int, processes: int) -> tuple[str, bool]:
    case = cases()[which]
    spawn = multiprocessing.get_context("spawn")  # a fork would inherit JAX's threads, and hang
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        works = list(pool.map(partial(works_on, which=which, runs=runs), range(SETS)))
    seen = {tuple(work.items()) for one in works for work in one}
    padded = right_guesses(*([sum(work.values()) for work in works[side]] for side in PAIR))
    targets = [case.target(data) for data in data_sets()]
    plain = [case.plain(case, target, seed) for seed, target in enumerate(targets)]
    guessed = [[case.plain(case, targets[side], 100 + seed) for seed in range(GUESSES)] for side in PAIR]
    counted = sorted({*plain, *guessed[0], *guessed[1]})
    return (
        f"{case.public} {runs:,} | {len(seen)} | {counted[0]} to {counted[-1]} | {right_guesses(*guessed):.2f} | {padded:.2f} |"
    ), seen == {tuple(case.sampler.padding(case.plan).work.items())}


def kept_row(case: Case) -> str:
    """As an earlier run wrote it, of the same plan and as many runs."""
    found = [
        line for line in RESULT.read_text(encoding="utf-8").splitlines() if line.startswith(f"{case.public} {RUNS:,} |")
    ]
    if len(found) != 1:
        raise SystemExit(f"{RESULT.name} has no row of {RUNS:,} runs for {case.public} Run without --only.")
    return found[0]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=RUNS, help="of each data set, an even number")
    arguments.add_argument("--processes", type=int, default=1)
    arguments.add_argument("--only", nargs="+", choices=[type(case.sampler).__name__ for case in cases()])
    asked, held, lines = arguments.parse_args(), True, []
    if asked.runs % 2:
        arguments.error("half of the runs choose a threshold and half are guessed: --runs takes an even number")
    for which, case in enumerate(cases()):
        if asked.only and type(case.sampler).__name__ not in asked.only:
            lines.append(kept_row(case))
            continue
        line, same = row(which, asked.runs, asked.processes)
        print(line, flush=True)
        lines.append(line)
        held &= same
    if asked.runs >= RUNS:
        RESULT.write_text(HEAD.format(sets=SETS, n=N) + "\n".join(lines) + "\n", encoding="utf-8")
    print("every run did the plan's work" if held else "WORK DIFFERED: padding is broken")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
