"""Many fits of one plan on simulated data sets: for studies of coverage and accuracy, not for releases.

Every data set runs the very program of a release (`fit.Stages`). On a processor as many run at a time as there are cores, because
compiled code lets go of Python's lock; mapping them inside one compiled call (`jax.vmap`, `jax.lax.map`) was tried there: a
fit's passes are bound by arithmetic, not by calls, and vmap's batched products were nine times slower at 8,000 records. On an
accelerator it is the other way round: a pass over 1,000 records is all call, so the fits of a `_Gang` wait for each other, their
next sums are one call, and their minima are searched side by side (`many_minima`), a step of all of them at a time.
Not private: seeds are given, nothing is accounted for or certified, and records leave through `release` alone.

    published = fit_many(plan, X, y, seeds)        # X (m, n, columns), y (m, n): parts (m, …)
    draws = fits(targets, HMC(steps), key=key)     # a draw for each of m targets

`fits` are chains: compiled together, the modes and chains of all data sets share every step; one at a time, most of a small
fit's time goes to starting it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from experiments.many_minima import minima
from onedraw.arrays import Array, Integers
from onedraw.data.sums import block_rows, check_room, weights
from onedraw.errors import WrongCall
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models.compute import accelerated, check_arithmetic, jax, jit, jnp
from onedraw.models.fit.problem import PARTS, FitTarget, Published
from onedraw.models.fit.sums import Objective
from onedraw.models.sums.exact_sums import Scaled
from onedraw.plans import Plan, Potential
from onedraw.samplers.hamiltonian import HMC, HMCSettings, hmc_chain
from onedraw.samplers.laplace import LaplaceApproximation, laplace_approximations, stacked
from onedraw.samplers.noise import Noise

GANG = 256
"""Fits that wait for each other on an accelerator: each is a thread."""


def fit_many(plan: Plan, X: Any, y: Any, seeds: Sequence[int]) -> Published:
    """What m fits would publish, a seed each: simulation only, never private. Parts have a first axis of length m."""
    rows, responses = np.asarray(X), np.asarray(y)
    if plan.requires != "perturbed-mode":
        raise WrongCall(
            f"fit_many repeats the fits of a PerturbedMode; a {type(plan.mechanism).__name__} was given. Use fits."
        )
    fits = len(seeds)
    if not fits or rows.ndim != 3 or rows.shape[:2] != (fits, plan.n) or responses.shape != (fits, plan.n):
        raise WrongCall(
            f"fit_many needs m seeds, X of shape (m, n, columns) and y of shape (m, n), n = {plan.n:,} as planned; "
            f"{fits} seeds, X {rows.shape} and y {responses.shape} were given."
        )

    together = _in_gangs if accelerated() and plan.n <= block_rows(plan.n) else _on_cores
    found = together(plan, rows, responses, seeds)
    parts = {name: [getattr(one, name) for one in found] for name in PARTS}
    return Published(**{name: np.stack(values) for name, values in parts.items() if values[0] is not None})


def _stages(target: Any, seed: int) -> Stages:
    return Stages(target, Noise(np.random.default_rng(seed), pure=True))


def _on_cores(plan: Plan, rows: Any, responses: Any, seeds: Sequence[int]) -> list[Published]:
    def fit(index: int) -> Published:
        return _stages(plan.target(plan.model.summarise((rows[index], responses[index]))), seeds[index]).run()

    first = fit(0)  # compiles
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        return [first, *cores.map(fit, range(1, len(seeds)))]


# ── on an accelerator ────────────────────────────────────────────────────────────────────────────────────────────


def _in_gangs(plan: Plan, rows: Any, responses: Any, seeds: Sequence[int]) -> list[Published]:
    """Gangs of one size, so that all share one compilation; the last is filled up by fits that are made twice."""
    found: list[Published] = []
    size = min(GANG, len(seeds))
    for start in range(0, len(seeds), size):
        chosen = [index % len(seeds) for index in range(start, start + size)]
        encoded = [plan.model.summarise((rows[index], responses[index])) for index in chosen]
        found += _gang(plan, encoded, [seeds[index] for index in chosen])
    return found[: len(seeds)]


def _gang(plan: Plan, encoded: Sequence[Any], seeds: Sequence[int]) -> list[Published]:
    problem, rows = plan.target(encoded[0]).problem, block_rows(plan.n)
    X, y = (
        np.zeros((len(seeds), rows, *encoded[0].X.shape[1:])),
        np.zeros((len(seeds), rows)),
    )  # as a block is filled up
    for index, one in enumerate(encoded):
        X[index, : plan.n], y[index, : plan.n] = one.X, one.y
    gang = _Gang(plan.n, jnp.asarray(X), jnp.asarray(y / problem.response_scale))

    def fit(index: int) -> Published:
        gang.wait(index)
        try:
            stages = _stages(FitTarget(problem, _Member(gang, index, 0)), seeds[index])  # type: ignore[arg-type]
            return replace(stages, minimum=_Member.minimum).run()
        finally:
            gang.go_on()

    with ThreadPoolExecutor(len(seeds)) as threads:  # all of them run, also where one failed: the others wait for each
        fits = [threads.submit(fit, index) for index in range(len(seeds))]
        gang.go_on()
    return [one.result() for one in fits]


@dataclass(frozen=True)
class _Member:
    """One fit's records among the gang's, as `FitTarget` reads them; ``level`` counts how often they were rewritten."""

    gang: Any
    index: int
    level: int

    @property
    def n(self) -> int:
        return int(self.gang.n)

    @property
    def records(self) -> _Member:
        return self

    def sum(self, statistic: Any, *public: Any) -> Integers:
        check_room(self.n, statistic, *public)
        answer: Integers = self.gang.ask(self.index, ("sum", self.level, statistic), public)
        return answer

    def read_as(self, reading: Any, *public: Any) -> _Member:
        if isinstance(reading, Scaled):  # the gang's arrays are
            return self
        self.gang.ask(self.index, ("read", self.level, reading), public)
        return _Member(self.gang, self.index, self.level + 1)

    def minimum(self, loss: Any, objective: Objective) -> tuple[Any, int]:
        found: tuple[Any, int] = self.gang.ask(self.index, ("minimum", self.level, loss), objective)
        return found


class _Gang:
    """Arrays of all members' records, by level. One member runs at a time, until it asks or leaves; when all have, equal questions are
    answered by one call. (Were all awake at once, two hundred threads would quarrel for Python's lock, which took most of the time.)"""

    def __init__(self, n: int, X: Any, y: Any) -> None:
        check_arithmetic()
        self.n, self.size = n, len(X)
        self._levels: list[Any] = [(X, y)]
        self._weight = jnp.asarray(weights(n, X.shape[1]))
        self._asked: dict[int, tuple[Any, Any]] = {}
        self._answers: dict[int, Any] = {}
        self._ready = deque(range(self.size))
        self._turns = [threading.Lock() for _ in range(self.size)]
        for turn in self._turns:  # free again when it is a member's turn; half a semaphore's time
            turn.acquire()

    def wait(self, index: int) -> None:
        self._turns[index].acquire()

    def ask(self, index: int, question: Any, public: Any) -> Any:
        self._asked[index] = question, public
        self.go_on()
        self.wait(index)
        answer = self._answers.pop(index)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def go_on(self) -> None:
        """The next member's turn, after the answers where all have asked or left."""
        if not self._ready:
            self._answer()
        if self._ready:
            self._turns[self._ready.popleft()].release()

    def _answer(self) -> None:
        asked, self._asked = self._asked, {}
        for question in dict.fromkeys(question for question, _ in asked.values()):
            members = [index for index, (other, _) in asked.items() if other == question]
            try:
                self._answers |= self._answered(question, members, [asked[index][1] for index in members])
            except BaseException as error:  # every member must wake up, and say what happened
                self._answers |= dict.fromkeys(members, error)
        self._ready.extend(asked)

    def _answered(self, question: Any, members: list[int], publics: list[Any]) -> dict[int, Any]:
        asked, level, what = question
        if asked == "minimum":
            sums = partial(self._sums, level, np.asarray(members))
            return dict(zip(members, zip(*minima(sums, what, publics), strict=True), strict=True))
        public = [None if values[0] is None else np.stack(values) for values in zip(*publics, strict=True)]
        found = self._of_all(level, members, what, *public)
        if asked == "sum":
            return dict(zip(members, np.asarray(found).astype(np.int64)[members], strict=True))
        if len(self._levels) == level + 1:
            self._levels.append(found)
        else:
            chosen = np.isin(np.arange(self.size), members)

            def mixed(new: Any, old: Any) -> Any:
                return jnp.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old)

            self._levels[level + 1] = jax.tree.map(mixed, found, self._levels[level + 1])
        return dict.fromkeys(members)

    def _sums(self, level: int, members: Any, which: Any, statistic: Any, coarse: Any, row_bound: Any, thetas: Any) -> Integers:  # fmt: skip
        chosen = members[which]
        check_room(self.n, statistic, coarse, row_bound, thetas)
        public = (np.full(len(chosen), coarse), np.full(len(chosen), row_bound), thetas)
        found: Integers = np.asarray(self._of_all(level, chosen, statistic, *public))[chosen].astype(np.int64)
        return found

    def _of_all(self, level: int, members: Any, what: Any, *public: Any) -> Any:
        """Always over all members, so that one compiled program serves: of those who did not ask, the answer means nothing."""
        place = np.zeros(self.size, dtype=np.int64)
        place[members] = np.arange(len(members))
        spread = (None if values is None else values[place] for values in public)
        return _mapped(what, accelerated(), self._levels[level], self._weight, *spread)


@jit(0, 1)
def _mapped(what: Any, side_by_side: bool, arrays: Any, weight: Any, *public: Any) -> Any:
    """One block of every member. On a processor one after the other, where a product of many may round otherwise than each alone:
    there a gang's sums are, integer for integer, those of single fits."""
    one: Any = lambda member: what.block(*member[0], weight, *member[1])  # noqa: E731
    return jax.vmap(one)((arrays, public)) if side_by_side else jax.lax.map(one, (arrays, public))


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────


def fits(targets: Sequence[Potential], sampler: HMC, *, key: Any) -> Array:
    """(m, d): a draw for each of m targets of one model and one number of records, in unconstrained coordinates."""
    if not isinstance(sampler, HMC):
        raise WrongCall(
            f"fits runs HMC, whose steps are the same for every data set; a {type(sampler).__name__} was given. Use HMC(steps)."
        )
    shapes = {(target.kernel, target.encoded.n, target.dimension) for target in targets}
    if len(shapes) != 1:
        raise WrongCall(
            f"fits needs targets of one model and one number of records, but {len(shapes)} kinds were given. Call it for each."
        )
    arguments, first = stacked(targets), targets[0]
    laplace, settings = laplace_approximations(targets, arguments), HMCSettings(*sampler.settings(first.dimension))
    keys = jax.random.split(key, len(targets))
    return np.asarray(_chains(first.kernel, sampler.walk > 0.0, keys, laplace, settings, sampler.steps, arguments))


@jit(0, 1)
def _chains(
    kernel: Any, walks: bool, keys: Any, laplace: LaplaceApproximation, settings: HMCSettings, steps: Any,
    arguments: Any,
) -> Any:  # fmt: skip
    fit: Any = jax.vmap(lambda key, laplace, own: hmc_chain(kernel, walks, key, laplace, settings, steps, own)[0])
    return fit(keys, laplace, arguments)
