"""Averaged steps (onedraw.methods.fit) on many samples at once, in torch: for simulation, never private.

The program reads its records through sums of integers, one sample at a time. This copy computes the same stages on
tensors with a leading axis of samples, on a CPU or a GPU, in double precision and without lattices. The plan's numbers
come from `calibrate`; the other constants are copied. `tests/experiments/test_batched_steps.py` compares the copy with
the program and with its oracle (`tests/methods/fit/plain.py`) on the same normal deviates.

S is the number of samples, n of records, d of columns, and p = d + 1 of coefficients, the intercept last. The copy has
no fits without an intercept and none by person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from batched_coordinates import (
    Draw,
    Problem,
    Where,
    decompose,
    dot,
    draw_towards,
    find_first,
    find_where,
    per,
    raise_to,
    sum_squares,
    times,
)
from torch import Tensor

FACTORS = (0.09375, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0)
EARLY_STEPS, SKIPPED_STEPS, STEPS = 12, 4, 30
DAMPING = {"number": 2.0, "label": 2.5, "count": 2.5, "quantile": 5.0}
WANDER, LONGEST_STEP, FARTHEST, LARGEST_CORRECTION, LEAST_EIGENVALUE = 0.7, 1.0, 2.0**40, 5.0, 0.1
FAR, LARGEST_COUNT, LARGEST_ALLOWANCE, LEAST_INFORMATION, LEAST_COVARIANCE = 2.0, 1.0, 2.0, 0.01, 0.1
PLAUSIBLE, PLAUSIBLE_LEVEL, LARGEST_PRIOR, WEAK_SHARE = 0.7, 2.0, 0.3, 0.05
DESIGN_FLOOR, LARGEST_DESIGN_EDGE = 0.7, 9.0
WINDOW, LARGEST_WEIGHT, LARGEST_RATE, LEAST_LOG_RATE = 0.5, 4.0, 8.0, -30.0
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Sizes:
    """Bounds and noises of each sample, (S,), after its bound was chosen."""

    factor: Tensor
    early_bound: Tensor
    early_noise: Tensor
    step_bound: Tensor
    step_noise: Tensor
    covariance_radius: Tensor
    covariance_noise: Tensor

    @classmethod
    def at(cls, numbers: dict[str, float], factor: Tensor) -> Sizes:
        """Return the sizes for scores shortened to this share of the longest bound."""
        names = ("early_bound", "early_noise", "step_bound", "step_noise")
        squared = (factor * max(1.0, numbers["step_bound"] / numbers["covariance_radius"])).clamp(max=1.0)
        covariance = numbers["covariance_radius"] * squared, numbers["covariance_noise"] * squared**2
        return cls(factor, *(numbers[name] * factor for name in names), *covariance)

    @property
    def noises(self) -> tuple[Tensor, Tensor]:
        """Return the noise of the average of the steps, and of that of the early ones."""
        return self.step_noise / math.sqrt(STEPS), self.early_noise / math.sqrt(EARLY_STEPS - SKIPPED_STEPS)


@dataclass(frozen=True, eq=False)
class Records:
    """Rows (z, 1) and responses as the loss reads them, with what is published about them."""

    problem: Problem
    where: Where
    z: Tensor
    y: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, problem: Problem, where: Where, v: Tensor, r: Tensor) -> Records:
        z = torch.cat([(v - where.mean[:, None]) @ where.root, torch.ones_like(r)[:, :, None]], dim=2)
        if problem.continuous:
            y = (r - where.center[:, None]) / where.unit[:, None]
        else:
            y = r if problem.kind == "label" else (r + 1.0) * (problem.largest / 2.0)
        return cls(problem, where, z, y, torch.linalg.norm(z, dim=2))

    def rates(self, predictor: Tensor) -> Tensor:
        """Return the rates of counts, kept where they are numbers."""
        return predictor.clamp(LEAST_LOG_RATE, math.log(LARGEST_RATE * self.problem.largest)).exp()

    def residuals(self, theta: Tensor) -> Tensor:
        """Return ψ, (S, n), so that scores are z·ψ."""
        u = times(self.z, theta)
        match self.problem.kind:
            case "number":
                return self.y - u
            case "quantile":
                return self.problem.level - (self.y <= u).to(u)
            case "label":
                return self.y * torch.sigmoid(-self.y * u)
        return (self.y - self.rates(u)) / self.where.score_scale[:, None]

    def curvature(self, u: Tensor) -> Tensor:
        """Return the expected information of records with this predictor."""
        if self.problem.kind == "label":
            return torch.sigmoid(u) * torch.sigmoid(-u)
        return self.rates(u) / self.where.score_scale[:, None]

    def count_longer(self, theta: Tensor, bound: Tensor) -> Tensor:
        """Return how many scores are longer than a bound."""
        return (self.lengths * self.residuals(theta).abs() > bound[:, None]).sum(dim=1).to(theta)

    def gradient(self, theta: Tensor, bound: Tensor, noise: Tensor, draw: Draw) -> Tensor:
        """Return the noisy sum of shortened scores."""
        residual = self.residuals(theta)
        short = (bound[:, None] / (self.lengths * residual.abs()).clamp(min=1e-300)).clamp(max=1.0)
        return times(self.z.mT, residual * short) + noise[:, None] * draw(theta.shape[1])

    def expected_information(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return what moments imply for the information of all records, and its mean weight."""
        n, spread, slopes = self.z.shape[1], self.where.spread, theta[:, :-1]
        diagonal = torch.diag_embed(torch.cat([spread, torch.ones_like(spread[:, :1])], dim=1))
        if self.problem.continuous:
            weight = n * self.problem.information
            return weight * diagonal, torch.full_like(theta[:, 0], weight)
        nodes = torch.as_tensor(NODES).to(theta)
        deviation = dot(slopes, spread * slopes).clamp(min=1e-12).sqrt()[:, None]
        weights = torch.as_tensor(WEIGHTS).to(theta) * self.curvature(theta[:, -1:] + deviation * nodes)
        mean, first, second = weights.sum(dim=1), weights @ nodes, weights @ (nodes**2 - 1.0)
        direction = spread * slopes / deviation
        matrix = per(mean) * diagonal
        matrix[:, :-1, :-1] += per(second) * direction[:, :, None] * direction[:, None]
        matrix[:, :-1, -1] = matrix[:, -1, :-1] = first[:, None] * direction
        return n * matrix, n * mean

    def choose_factor(self, draw: Draw) -> Tensor:
        """Return the share of the longest bound that noisy counts of longer scores choose, by bisection."""
        q, start = self.problem.numbers, self.where.start
        factors = torch.tensor(FACTORS).to(start)
        low = torch.full_like(start[:, 0], -1, dtype=torch.long)
        high = torch.full_like(low, len(FACTORS) - 1)
        while q["tail_noise"] and bool(
            (high - low > 1).all()
        ):  # eight factors: the same number of counts in all samples
            middle = (low + high) // 2
            count = self.count_longer(start, factors[middle] * q["step_bound"]) + q["tail_noise"] * draw(1)[:, 0]
            long = count > q["tail_target"]
            low, high = torch.where(long, middle, low), torch.where(long, high, middle)
        return factors[high]

    def information(self, theta: Tensor, draw: Draw) -> Tensor:
        """Return the information of all records: measured, or for numbers what moments imply, cautiously."""
        q, where, (expected, mean) = self.problem.numbers, self.where, self.expected_information(theta)
        if not q["information_noise"]:
            share = (1.0 - where.spread_noise / where.spread).clamp(min=0.5).sqrt()
            share = torch.cat([share, torch.ones_like(share[:, :1])], dim=1)
            return share[:, :, None] * expected * share[:, None]
        u = times(self.z, theta)
        if self.problem.kind == "quantile":
            weights = ((self.y - u).abs() <= WINDOW).to(u) * (0.5 / WINDOW)
        else:
            weights = self.curvature(u).clamp(max=0.25 if self.problem.kind == "label" else LARGEST_WEIGHT)
        measured = sum_squares(
            self.z * weights.sqrt()[:, :, None], q["information_radius"], q["information_noise"], draw
        )
        drawn, _ = draw_towards(measured, expected, (0.3, 2.0), q["information_noise"])
        return raise_to(drawn, LEAST_INFORMATION * mean)

    def covariance(self, theta: Tensor, information: Tensor, sizes: Sizes, draw: Draw) -> Tensor:
        """Return the covariance of all scores, drawn towards what is expected of it."""
        scores = self.z * self.residuals(theta)[:, :, None]
        measured = sum_squares(scores, per(sizes.covariance_radius), per(sizes.covariance_noise), draw)
        n, shape, mean = self.z.shape[1], information, self.expected_information(theta)[1]
        if self.problem.kind == "quantile":
            spread, level = self.where.spread, self.problem.level
            moments = torch.cat([spread, torch.ones_like(spread[:, :1])], dim=1)
            shape, mean = n * level * (1.0 - level) * torch.diag_embed(moments), torch.full_like(mean, n)
        drawn, scale = draw_towards(measured, shape, (0.1, 10.0), sizes.covariance_noise)
        return raise_to(drawn, LEAST_COVARIANCE * scale * mean)


def walk(records: Records, sizes: Sizes, draw: Draw) -> tuple[Tensor, Tensor]:
    """Return the averages of the early steps and of the steps."""
    start, early = records.where.start, (EARLY_STEPS, SKIPPED_STEPS)
    theta, first = make_steps(records, start, sizes.early_bound, sizes.early_noise, early, draw)
    _, step = make_steps(records, theta, sizes.step_bound, sizes.step_noise, (STEPS, 0), draw)
    return first, step


def make_steps(
    records: Records, theta: Tensor, bound: Tensor, noise: Tensor, counts: tuple[int, int], draw: Draw
) -> tuple[Tensor, Tensor]:
    """Return where a series of steps ends, and its average; `counts` are the steps and how many of them it leaves out."""
    problem, (steps, skipped), p = records.problem, counts, theta.shape[1]
    damping = p * (noise / (records.z.shape[1] * problem.usual)) ** 2 / (2.0 * WANDER**2)
    damping = damping.clamp(min=DAMPING[problem.kind]).clamp(max=steps / 2.0)
    average, first, matrix = torch.zeros_like(theta), theta, None
    for number in range(steps):
        if matrix is None or not problem.continuous:
            matrix = step_matrix(records, theta, damping)
        move = times(matrix, records.gradient(theta, bound, noise, draw))
        if not problem.continuous:
            reach = (dot(move[:, :-1], records.where.spread * move[:, :-1]) + move[:, -1] ** 2).sqrt()
            move = move * (LONGEST_STEP / reach.clamp(min=1e-12)).clamp(max=1.0)[:, None]
        theta = theta + move
        length = torch.linalg.norm(theta, dim=1, keepdim=True)
        theta = theta * (FARTHEST / length.clamp(min=1e-300)).clamp(max=1.0)
        if number >= skipped:
            average = average + theta / (steps - skipped)
    if problem.kind != "number" and skipped == 0:
        average = average + (damping.clamp(max=LARGEST_CORRECTION) - 1.0)[:, None] * (theta - first) / steps
    return theta, average


def step_matrix(records: Records, theta: Tensor, damping: Tensor) -> Tensor:
    """Return P, which turns a sum of scores into a step."""
    information, mean = records.expected_information(theta)
    least = torch.zeros_like(mean) if records.problem.continuous else LEAST_EIGENVALUE * mean
    information = raise_to(information, least)
    doubt = torch.diag_embed((mean[:, None] * records.where.doubt) ** 2) / per(damping)
    return torch.linalg.solve(per(damping) * information @ information + doubt, information)


@dataclass(frozen=True, eq=False)
class Result:
    """Estimates and standard errors for encoded columns, (S, p); see `onedraw.methods.fit.result.StepsResult`."""

    problem: Problem
    where: Where
    sizes: Sizes
    n: int
    early: Tensor
    step: Tensor
    count: Tensor
    information: Tensor
    covariance: Tensor

    def change(self) -> tuple[Tensor, Tensor]:
        """Return (matrix, shift) that turn coefficients of steps into those of encoded columns."""
        where, d = self.where, self.where.mean.shape[1]
        scale, shift = (torch.as_tensor(values).to(where.mean) for values in (self.problem.scale, self.problem.shift))
        matrix, added = torch.zeros_like(self.information), torch.zeros_like(self.step)
        matrix[:, :d, :d] = scale[:, None] * where.root
        matrix[:, d, :d] = times(where.root.mT, shift - where.mean)
        matrix[:, d, d] = 1.0
        if self.problem.continuous:
            matrix, added[:, d] = per(where.unit) * matrix, where.center
        return matrix, added

    def specification(self) -> Tensor:
        """Return the mean square of what lies between both averages over its noise."""
        noise, early = self.sizes.noises
        moved = times(self.information, self.step - self.early)
        return dot(moved, moved) / (moved.shape[1] * (noise**2 + early**2))

    def misfit(self) -> Tensor:
        """Return the share of the squared difference of both averages that is allowed for."""
        apart, (noise, early) = self.specification().clamp(min=1e-9), self.sizes.noises
        share = (1.0 - 1.0 / apart).clamp(min=0.0)
        most = LARGEST_ALLOWANCE**2 / (apart * (1.0 + (early / noise) ** 2))
        return torch.where(self.sizes.factor < 1.0, torch.minimum(share, most), share)

    def shortage(self) -> Tensor:
        """Return how many times more records intervals would need; at most 1 if none."""
        q, problem = self.problem.numbers, self.problem
        if problem.continuous:
            edge = (
                q["design_noise"] * math.sqrt(self.step.shape[1]) / self.n if q["design_noise"] else LARGEST_DESIGN_EDGE
            )
            return torch.full_like(self.count, DESIGN_FLOOR * edge)
        noise = self.sizes.noises[0] / (self.n * problem.usual)
        return noise / (PLAUSIBLE * math.sqrt(LARGEST_PRIOR / (1.0 - LARGEST_PRIOR)))

    def given(self, change: Tensor) -> Tensor:
        """Return which coefficients have an interval."""
        known = (change.abs().sum(dim=2) > 0.0) & (self.shortage() <= 1.0)[:, None]
        if self.problem.continuous:
            weak = (change**2 * self.where.weak[:, None]).sum(dim=2)
            return known & (weak / (change**2).sum(dim=2).clamp(min=1e-300) <= WEAK_SHARE)
        prior = torch.full_like(self.step, PLAUSIBLE**-2.0)
        prior[:, -1] = PLAUSIBLE_LEVEL**-2.0
        noise = self.covariance + torch.diag_embed(self.sizes.noises[0][:, None] ** 2 * torch.ones_like(prior))
        precision = self.information @ torch.linalg.solve(noise, self.information)
        answer = change @ torch.linalg.inv(precision + torch.diag_embed(prior))
        whole = (answer * change).sum(dim=2).clamp(min=1e-300)
        return known & (times(answer**2, prior) / whole <= LARGEST_PRIOR)

    def limited(self, sampling: Tensor, privacy: Tensor) -> Tensor:
        """Return by how many standard errors scores far beyond the bound might move a coefficient."""
        moved = self.count.clamp(min=0.0) * self.sizes.step_bound / math.sqrt(self.step.shape[1] * self.n)
        ratio = ((sampling + privacy) / sampling.clamp(min=1e-300)).sqrt().masked_fill(sampling <= 0.0, math.nan)
        return moved / torch.nanquantile(ratio, 0.5, dim=1).nan_to_num(1.0)

    def figures(self) -> dict[str, Tensor]:
        """Return what a simulation stores of each sample; `sampling` and `privacy` are standard deviations."""
        change, added = self.change()
        values, axes = decompose(self.information)
        largest = values.max(dim=1, keepdim=True).values
        answer = change @ ((axes / torch.maximum(values, 1e-9 * largest)[:, None]) @ axes.mT)
        moved = times(change, self.step - self.early)
        sampling = ((answer @ self.covariance) * answer).sum(dim=2)
        privacy = (self.sizes.noises[0] ** 2)[:, None] * (answer**2).sum(dim=2) + self.misfit()[:, None] * moved**2
        most = LARGEST_COUNT * self.problem.numbers["count_noise"]
        return {
            "estimate": times(change, self.step) + added, "early": times(change, self.early) + added,
            "error": (sampling + privacy).sqrt(), "sampling": sampling.sqrt(), "privacy": privacy.sqrt(),
            "given": self.given(change), "reached": self.count <= most, "specification": self.specification(),
            "limited": self.limited(sampling, privacy), "share_limited": self.count.clamp(min=0.0) / self.n,
            "factor": self.sizes.factor,
        }  # fmt: skip


def run_steps(problem: Problem, v: Tensor, r: Tensor, draw: Draw) -> Result:
    """Return the results of samples with columns v, (S, n, d), and responses r in [−1, 1], (S, n).

    Parameters
    ----------
    draw : callable
        Returns as many standard normal deviates for each sample as asked for, in the program's order.
    """
    first = find_first(problem, v, r, draw)
    where = find_where(problem, first, v, r, draw)
    records = Records.of(problem, where, v, r)
    sizes = Sizes.at(problem.numbers, records.choose_factor(draw))
    early, step = walk(records, sizes, draw)
    count = torch.zeros_like(where.unit)
    if problem.numbers["count_noise"]:
        count = records.count_longer(step, FAR * sizes.step_bound) + problem.numbers["count_noise"] * draw(1)[:, 0]
    information = records.information(step, draw)
    covariance = records.covariance(step, information, sizes, draw)
    return Result(problem, where, sizes, v.shape[1], early, step, count, information, covariance)
