"""Less noise along the effects of interest: scores are stretched along them before they are shortened.

Steps add noise of the same deviation σ in every direction, in proportion to the length B of scores. So a coefficient a·θ has noise
σ·|H⁻¹a|. If scores are multiplied by a matrix R before they are shortened to B, and the noisy sum by R⁻¹ afterwards, it has

    σ·|R⁻¹H⁻¹a|,        and with M = R² scores have the mean square trace M in place of p.

M = κ(1 + X), X positive semidefinite, κ = p/(p + trace X): scores are as long as before, and no combination of
coefficients has more than 1/κ times the variance of noise that it had. With u = H⁻¹a/|H⁻¹a| an effect's variance is uᵀM⁻¹u times
what it was. The sum of these over the effects is trace M⁻¹U, U = Σ uuᵀ. For a given trace X it is least if M has the axes of U and

    1 + x_i = max(1, c·√λ_i),        λ the eigenvalues of U, c from trace X.

**How far.** m effects whose u are orthogonal are all stretched by the same t, and shortened to B/t along them. Noise and what
shortening leaves are balanced in sizes.py: B = β√p, β in proportion to p^(−1/5). By the same balance m coefficients alone are to be
shortened to β(p/m)^(1/5)·√m. So t² = (p/m)^(3/5). Their noise has 1/t times its deviation: 0.41 for one of 20 coefficients. That of
all others has 1/√κ times its deviation, 1/κ = (1 − q)/(1 − q^(2/5)) with q = m/p: 1.17. A longer t would have less noise, and cut off
more of the effects themselves. 1/κ is at most `sizes.LARGEST_LOSS`, which many effects would exceed.

**Rare values.** Records in which a column is far from its mean carry much of what is known of its effect. Shortening them
changes the effect, that on log-odds by the logarithm of the share that is left. A column of two values whose rarer one has the share s
of the records is √((1 − s)/s) deviations away there. A record this far with |ψ| = `long_score` (kinds.py) is not to be shortened by the stretch:
t²·(1 − s)/s ≤ B²/ψ² − κp. Effects of rarer values are stretched less. Other columns are judged as if they took the ends of
their range alone: s is then where the published mean lies between them.

R is made of published moments and the plan alone. It has no part between columns and intercept, so that the 1 of a row stays a
number of its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.plans import Plan

from .coordinates import StepsProblem, Where, encoded_map
from .sizes import stretch_for
from .steps import LEAST_INFORMATION, information_at

LEAST_DISTANCE = 1e-3
"""Of a column's mean from the ends of its range, in half-ranges, as far as rare values are judged by it."""

MOST_NAMED = 6
"""Effects that a sentence names; others are counted."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """R and its inverse, both symmetric: rows are multiplied by R before their scores are shortened."""

    matrix: Array
    inverse: Array

    @property
    def noise(self) -> Array:
        """Return the covariance of noise after R⁻¹, of noise that had variance 1 in every direction before."""
        return np.asarray(self.inverse @ self.inverse)

    def back(self, sums: Array) -> Array:
        """Return sums of stretched scores as sums of scores."""
        return np.asarray(self.inverse @ sums)

    def coefficients(self, theta: Array) -> Array:
        """Return the coefficients of stretched rows that give the same predictors."""
        return np.asarray(self.inverse @ theta)

    def rows(self, where: Where) -> tuple[Array, float]:
        """Return (root, factor): stretched rows are factor·((v − mean) @ root, 1)."""
        d = len(where.spread)
        factor = float(self.matrix[-1, -1]) if len(self.matrix) > d else 1.0
        return np.asarray(where.root @ self.matrix[:d, :d] / factor), factor


def stretch_of(problem: StepsProblem, where: Where) -> Stretch | None:
    """Return how scores are stretched for the effects of interest; None if none or all are named, or no record has
    them."""
    if not problem.effects:
        return None
    directions, effects = noise_directions(problem, where)
    if not 0 < len(effects) < np.sum(~where.merged):
        return None
    size, present = problem.size, np.flatnonzero(~where.absent)
    goal, loss = stretch_for(len(effects) / len(present))
    limits = np.clip(loss * usual_limits(problem, where, effects, loss), 1.0, goal)
    weighted = directions * (limits / goal)[:, None]
    squares = weighted.T @ weighted
    if problem.layout.intercept:
        squares[:-1, -1] = squares[-1, :-1] = 0.0
    values, axes = np.linalg.eigh(squares[np.ix_(present, present)])
    stretched = np.sqrt(shares_of(values, goal, loss))
    matrix, inverse = np.eye(size), np.eye(size)
    matrix[np.ix_(present, present)] = (axes * stretched) @ axes.T
    inverse[np.ix_(present, present)] = (axes / stretched) @ axes.T
    return Stretch(matrix, inverse)


def noise_directions(problem: StepsProblem, where: Where) -> tuple[Array, Array]:
    """Return H⁻¹a of unit length at the start of the steps, and the columns of the effects that any record has.

    H is what published moments imply, with its doubt added: noise must not turn the directions.
    """
    present = ~where.absent
    effects = np.array([column for column in problem.effects if not where.merged[column]], dtype=np.intp)
    change, _ = encoded_map(problem, where)
    information, mean = information_at(problem, where, where.start)
    doubt = np.append(where.spread_noise, np.zeros(int(problem.layout.intercept)))
    values, axes = np.linalg.eigh((information + mean * np.diag(doubt))[np.ix_(present, present)])
    inverse = (axes / np.maximum(values / mean, LEAST_INFORMATION)) @ axes.T
    found = np.zeros((len(effects), problem.size))
    found[:, present] = change[np.ix_(effects, present)] @ inverse
    lengths = np.linalg.norm(found, axis=1)
    known = lengths > 0.0
    return found[known] / lengths[known, None], effects[known]


def usual_limits(problem: StepsProblem, where: Where, effects: Array, loss: float) -> Array:
    """Return t² up to which records with the rarer end of each effect's range are not shortened."""
    lower = np.full(problem.layout.columns, -1.0)
    for start, stop in problem.layout.categories:
        lower[start:stop] = 0.0
    below, above = (np.maximum(part[effects], LEAST_DISTANCE) for part in (where.mean - lower, 1.0 - where.mean))
    far = np.sqrt(np.maximum(above / below, below / above))
    return np.asarray(usual_limit(problem, far, loss))


def usual_limit(problem: StepsProblem, far: Any, loss: float) -> Any:
    """Return t² up to which a record this many deviations from the mean and with `long_score` (kinds.py) is not shortened."""
    longest = problem.sizes.step_bound / problem.factor / problem.score.constants.long_score
    return max(longest**2 - problem.size / loss, 0.0) / far**2


def shares_of(values: Array, goal: float, loss: float) -> Array:
    """Return the eigenvalues of M for those of U: their sum is their number, and none is below 1/loss.

    Parameters
    ----------
    goal : float
        c at most.
    """
    roots, count = np.sqrt(np.maximum(values, 0.0)), len(values)
    room, order, level = (loss - 1.0) * count, np.sort(roots)[::-1], goal
    for used in range(1, count + 1):
        level = (room + used) / max(float(order[:used].sum()), 1e-300)
        if used == count or level * order[used] <= 1.0:
            break
    stretched = np.maximum(1.0, min(level, goal) * roots)
    return np.asarray(stretched * count / stretched.sum())


def named_effects(plan: Plan) -> str:
    """Return the names of the effects of interest, listed; a category that is named with all its levels stands for them."""
    names, left = plan.model.features.column_names, set(plan.mechanism.effects)
    named: dict[int, str] = {}
    for start, stop in plan.mechanism.categories:
        if stop - start > 1 and left.issuperset(range(start, stop)):
            named[start] = named_category(names[start])
            left -= set(range(start, stop))
    named |= {column: names[column] for column in left}
    listed = [named[column] for column in sorted(named)]
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    return ", ".join(listed[:MOST_NAMED]) + more


def named_category(column: str) -> str:
    """Return the category of a column: ward of ward=B, C(ward) of C(ward)[T.B], C(ward):C(sex) of their product."""
    if not re.match(r"[^(\[]*=", column) and "[" in column:
        return re.sub(r"\[[^\]]*\]", "", column)
    return column.partition("=")[0]


def effects_words(problem: StepsProblem, names: str) -> str:
    """Return what naming effects does, in words; empty if none are named."""
    if not problem.effects:
        return ""
    if len(problem.effects) == problem.layout.columns:
        return "Effects of interest: all columns, so the noise is as without naming them."
    goal, loss = stretch_for(len(problem.effects) / problem.size)
    return (
        f"Effects of interest: {names}. Along them noise for privacy is as little as {math.sqrt(loss / goal):.2g} times as large, along "
        f"others up to {math.sqrt(loss):.3g} times. Effects of rare values or levels gain less."
    )
