"""The coordinates of averaged steps for many samples at once, in torch: see `batched_steps`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

FLOOR = {"number": 0.4, "quantile": 0.4, "label": 0.8, "count": 0.8}
DESIGN_FLOOR, LEAST_VARIANCE, LEAST_SPREAD, LEAST_RESIDUAL, LEAST_SHARE = 0.7, 0.02, 0.25, 0.1, 0.3

Draw = Callable[[int], Tensor]
"""Returns this many standard normal deviates for each sample, (S, count)."""


@dataclass(frozen=True)
class Problem:
    """What is public: the plan's numbers, the kind of response, and the columns.

    Parameters
    ----------
    kind : str
        "number", "label", "count" or "quantile".
    numbers : dict
        The plan's parameters.
    information : float
        Information of a record that sizes are chosen for.
    scale, shift : array, (d,)
        Columns are v = scale·x + shift of encoded columns x.
    middle, lower : array, (p,)
        Point that second moments are about if no mean is measured, and least values of a mean, the response last.
    largest : int
        Largest count.
    level : float
        Of the quantile.
    """

    kind: str
    numbers: dict[str, float]
    information: float
    scale: np.ndarray
    shift: np.ndarray
    middle: np.ndarray
    lower: np.ndarray
    largest: int = 0
    level: float = 0.5

    @property
    def continuous(self) -> bool:
        return self.kind in ("number", "quantile")

    @property
    def usual(self) -> float:
        """Return the information of a record that damping is chosen for."""
        return 1.0 if self.kind == "count" else self.information


@dataclass(frozen=True, eq=False)
class First:
    """What the first moments give; see `onedraw.methods.fit.coordinates.First`."""

    center: Tensor
    root: Tensor
    slopes: Tensor
    unit: Tensor
    noise: float
    values: Tensor
    axes: Tensor
    across: Tensor


@dataclass(frozen=True, eq=False)
class Where:
    """The coordinates of the steps and their start; see `onedraw.methods.fit.coordinates.Where`."""

    mean: Tensor
    root: Tensor
    center: Tensor
    unit: Tensor
    score_scale: Tensor
    start: Tensor
    spread: Tensor
    doubt: Tensor
    spread_noise: Tensor
    weak: Tensor


# Algebra on batches.


def decompose(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and axes of symmetric matrices; large batches of them are faster on the CPU."""
    if matrix.is_cuda and matrix.shape[-1] > 32:
        values, axes = torch.linalg.eigh(matrix.cpu())
        return values.to(matrix.device), axes.to(matrix.device)
    values, axes = torch.linalg.eigh(matrix)
    return values, axes


def times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Return matrix @ vector for each sample."""
    return (matrix @ vector[..., None])[..., 0]


def dot(first: Tensor, second: Tensor) -> Tensor:
    """Return the inner product of the last axes."""
    return (first * second).sum(dim=-1)


def per(values: Tensor) -> Tensor:
    """Return one number a sample as (S, 1, 1), to be combined with matrices."""
    return values[:, None, None]


def symmetric_noise(draw: Draw, size: int) -> Tensor:
    """Return symmetric matrices of noise: deviates of variance 1 on the diagonal, ½ beside it."""
    rows, columns = (torch.as_tensor(places) for places in np.tril_indices(size))
    entries = draw(size * (size + 1) // 2)
    scale = torch.where(rows == columns, 1.0, math.sqrt(0.5)).to(entries)
    matrix = entries.new_zeros(len(entries), size, size)
    matrix[:, rows, columns] = matrix[:, columns, rows] = entries * scale
    return matrix


def sum_squares(rows: Tensor, radius: Any, noise: Any, draw: Draw) -> Tensor:
    """Return noisy second moments of rows (S, n, size) that are shortened to a radius."""
    length = torch.linalg.norm(rows, dim=2, keepdim=True)
    rows = rows * (radius / length.clamp(min=1e-300)).clamp(max=1.0)
    return rows.mT @ rows + noise * symmetric_noise(draw, rows.shape[2])


def shrink(vector: Tensor, noise: Tensor) -> Tensor:
    """Return vectors shortened by their noise (James and Stein 1961), the sum of their entries' variances."""
    return vector * (1.0 - noise / dot(vector, vector).clamp(min=1e-12)).clamp(min=0.0)[:, None]


def draw_towards(measured: Tensor, shape: Tensor, ends: tuple[float, float], noise: Any) -> tuple[Tensor, Tensor]:
    """Return noisy matrices drawn towards a multiple of their shape, and that multiple."""
    p = shape.shape[-1]
    scale = ((measured * shape).sum(dim=(1, 2)) / (shape**2).sum(dim=(1, 2))).clamp(*ends)
    target = per(scale) * shape
    far = ((measured - target) ** 2).sum(dim=(1, 2)).clamp(min=1e-300)
    weight = (1.0 - noise**2 * p * (p + 1) / 2.0 / far).clamp(min=0.0)
    return target + per(weight) * (measured - target), scale


def raise_to(matrix: Tensor, least: Tensor) -> Tensor:
    """Return matrices with eigenvalues of at least this size."""
    values, axes = decompose(matrix)
    return (axes * torch.maximum(values, least[:, None])[:, None]) @ axes.mT


# Coordinates and start.


def find_first(problem: Problem, v: Tensor, r: Tensor, draw: Draw) -> First:
    """Return the first coordinates and a line for the response."""
    q, (_, n, d) = problem.numbers, v.shape
    rows = torch.cat([v, r[:, :, None]], dim=2)
    lower = torch.as_tensor(problem.lower).to(v)
    center = torch.as_tensor(problem.middle).to(v).expand(len(v), d + 1)
    if q["mean_noise"]:
        center = torch.maximum((rows.sum(dim=1) + q["mean_noise"] * draw(d + 1)) / n, lower).clamp(max=1.0)
    second = sum_squares(rows - center[:, None], q["moment_radius"], q["moments_noise"], draw) / n
    noise = q["moments_noise"] / n
    floor = FLOOR[problem.kind] * noise * math.sqrt(d + 1)
    values, axes = decompose(second[:, :d, :d])
    raised = values.clamp(min=floor)
    root = (axes / raised.sqrt()[:, None]) @ axes.mT
    across = times(root, second[:, :d, d])
    slopes = shrink(across, noise**2 / 2.0 * (1.0 / raised).sum(dim=1))
    total = second[:, d, d].clamp(min=floor)
    if problem.continuous:
        unit = torch.maximum(total - dot(slopes, across), LEAST_RESIDUAL * total).clamp(min=floor / 3.0).sqrt()
    else:
        slopes, least = torch.zeros_like(slopes), LEAST_SHARE / math.sqrt(n)
        rate = ((center[:, d] + 1.0) / 2.0).clamp(least, 1.0 - least)
        unit = 2.0 * (rate * (1.0 - rate)).sqrt() if problem.kind == "label" else total.clamp(min=4e-6).sqrt()
    return First(center, root, slopes, unit, noise, values, axes, second[:, :d, d])


def find_where(problem: Problem, first: First, v: Tensor, r: Tensor, draw: Draw) -> Where:
    """Return the coordinates of the steps and their start."""
    q, (_, n, d) = problem.numbers, v.shape
    measured = q["design_noise"] > 0.0
    if measured:
        z = (v - first.center[:, None, :d]) @ first.root
        residual = (r - first.center[:, d, None] - times(z, first.slopes)) / first.unit[:, None]
        rows = torch.cat([z, residual[:, :, None]], dim=2)
        second = sum_squares(rows, q["design_radius"], q["design_noise"], draw) / n
        noise, rest = q["design_noise"] / n, second[:, d, d]
        values, axes = decompose(second[:, :d, :d])
        floor, turned, unit = max(DESIGN_FLOOR * noise * math.sqrt(d + 1), LEAST_VARIANCE), second[:, :d, d], 1.0
    else:
        noise, rest, values, axes = first.noise, torch.ones_like(first.unit), first.values, first.axes
        floor, turned, unit = FLOOR[problem.kind] * noise * math.sqrt(d + 1), first.across, first.unit
    edge, raised = noise * math.sqrt(d + 1), values.clamp(min=floor)
    turn = axes / raised.sqrt()[:, None]
    across = times(turn.mT, turned) / (unit[:, None] if torch.is_tensor(unit) else unit)
    slopes = shrink(across, noise**2 / 2.0 * (1.0 / raised).sum(dim=1) / unit**2)
    doubt = noise * math.sqrt((d + 1) / 2.0) / raised
    last = torch.full_like(doubt[:, :1], 0.05)
    if not problem.continuous:
        last = doubt.max(dim=1, keepdim=True).values.clamp(max=0.5) if measured else torch.full_like(last, 0.3)
        doubt = last.expand(-1, d)
    weak = torch.cat([values < DESIGN_FLOOR * edge, torch.zeros_like(last, dtype=torch.bool)], dim=1)
    carried = raised.sqrt() * times(axes.mT, first.slopes)
    begin = (
        find_start_of_numbers
        if problem.continuous
        else find_start_of_labels
        if problem.kind == "label"
        else find_start_of_counts
    )
    unit, scale, start = begin(problem, first, slopes, rest, carried, n)
    root = first.root @ turn if measured else turn
    spread = values.clamp(min=LEAST_SPREAD * edge) / raised
    return Where(
        first.center[:, :d], root, first.center[:, d], unit, scale, start, spread, torch.cat([doubt, last], dim=1), noise / raised, weak
    )  # fmt: skip


Start = tuple[Tensor, Tensor, Tensor]
"""(unit of responses, scale of scores, coefficients to begin with)."""


def find_start_of_numbers(
    problem: Problem, first: First, slopes: Tensor, rest: Tensor, carried: Tensor, n: int
) -> Start:
    """Return the start for numbers and quantiles: the line that moments give."""
    explained, one = dot(slopes, slopes), torch.ones_like(rest)
    if problem.numbers["design_noise"]:
        left = torch.maximum(rest - explained, LEAST_RESIDUAL * rest.clamp(min=0.1)).clamp(min=0.05)
        slopes = carried + first.unit[:, None] * slopes
    else:
        left = (1.0 - explained).clamp(min=LEAST_RESIDUAL) if problem.kind == "number" else one
        slopes = first.unit[:, None] * slopes
    unit, level = first.unit * left.sqrt(), 0.0
    if problem.kind == "quantile":
        level = math.sqrt(2.0) * float(torch.erfinv(torch.tensor(2.0 * problem.level - 1.0, dtype=torch.float64)))
    return unit, one, torch.cat([slopes / unit[:, None], level * one[:, None]], dim=1)


def find_start_of_labels(
    problem: Problem, first: First, slopes: Tensor, rest: Tensor, carried: Tensor, n: int
) -> Start:
    """Return the start for labels: the line as log-odds, at the measured rate."""
    least, one = LEAST_SHARE / math.sqrt(n), torch.ones_like(rest)
    rate, deviation = ((first.center[:, -1] + 1.0) / 2.0).clamp(least, 1.0 - least), first.unit / 2.0
    variance = rate * (1.0 - rate)
    left = torch.maximum(variance - dot(slopes, slopes) * deviation**2, LEAST_SHARE * variance)
    slopes = slopes * (deviation / left)[:, None]
    level = torch.logit(rate) * (1.0 + 0.35 * dot(slopes, slopes)).sqrt()
    return one, one, torch.cat([slopes, level[:, None]], dim=1)


def find_start_of_counts(
    problem: Problem, first: First, slopes: Tensor, rest: Tensor, carried: Tensor, n: int
) -> Start:
    """Return the start for counts: the line as the logarithm of the rate."""
    rate = ((first.center[:, -1] + 1.0) / 2.0).clamp(min=LEAST_SHARE / math.sqrt(n)) * problem.largest
    deviation = first.unit * problem.largest / 2.0
    slopes = slopes * (deviation / rate)[:, None]
    slopes = slopes / torch.linalg.norm(slopes, dim=1, keepdim=True).clamp(min=1.0)
    level = rate.log() - dot(slopes, slopes) / 2.0
    return torch.ones_like(rest), torch.maximum(deviation**2, rate).sqrt(), torch.cat([slopes, level[:, None]], dim=1)
