"""Averaged steps written a second time, in plain NumPy, for rows with an intercept: the oracle of the program.

No lattice, no compiled code, none of the package's classes: constants and formulas are copied from the documents.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()

Array = np.ndarray


class Deviates:
    """Standard normal numbers in a fixed order; as a noise of the package, and for the oracle."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> Array:
        return np.asarray(sums) / steps + noise * self.rng.standard_normal(len(sums))

    def triangle(self, sums: Any, steps: float, noise: float) -> Array:
        size = (math.isqrt(8 * len(sums) + 1) - 1) // 2
        rows, columns = np.tril_indices(size)
        scale = np.where(rows == columns, 1.0, math.sqrt(0.5))
        return np.asarray(sums) / steps + noise * scale * self.rng.standard_normal(len(sums))


class Fit(NamedTuple):
    estimate: Array
    sampling: Array
    privacy: Array


def cut(rows: Array, radius: float) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, radius / np.maximum(length, 1e-300))


def full(entries: Array) -> Array:
    size = (math.isqrt(8 * len(entries) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = entries
    return matrix + np.tril(matrix, -1).T


def shrunk(vector: Array, variance: float) -> Array:
    return vector * max(0.0, 1.0 - variance / max(float(vector @ vector), 1e-12))


class Plain:
    """One fit. ``v`` are columns in [−1, 1], ``r`` responses in [−1, 1], ``numbers`` the plan's."""

    def __init__(
        self, kind: str, v: Array, r: Array, numbers: Any, *, level: float, largest: int, bound: float
    ) -> None:
        self.kind, self.v, self.r, self.q = kind, v, r, dict(numbers)
        self.level, self.largest, self.bound = level, largest, bound
        self.n, self.d = v.shape
        self.p = self.d + 1
        self.linear = kind in ("number", "quantile")
        self.factor, self.beyond = 1.0, np.zeros((self.p, self.p))

    def squares(self, rows: Array, name: str, radius: float, noise: Deviates) -> Array:
        rows = cut(rows, radius)
        return full(noise.triangle((rows.T @ rows)[np.tril_indices(rows.shape[1])], 1.0, self.q[f"{name}_noise"]))

    def fit(self, noise: Deviates) -> Fit:
        q, n, d, kind = self.q, self.n, self.d, self.kind
        # first coordinates
        both = np.column_stack([self.v, self.r])
        centre = np.zeros(d + 1)
        if q["level_noise"]:
            level = noise.vector([self.r.sum()], 1.0, q["level_noise"]) / n
            centre[d] = np.clip(level[0], -1.0, 1.0)
        if q["mean_noise"]:
            centre = np.clip(noise.vector(both.sum(axis=0), 1.0, q["mean_noise"]) / n, -1.0, 1.0)
        second = self.squares(both - centre, "moments", q["moment_radius"], noise) / n
        s = q["moments_noise"] / n
        floor = (0.4 if self.linear else 0.8) * s * math.sqrt(d + 1)
        values, axes = np.linalg.eigh(second[:d, :d])
        raised = np.maximum(values, floor)
        root = axes @ np.diag(raised**-0.5) @ axes.T
        across = root @ second[:d, d]
        kept = shrunk(across, s**2 / 2.0 * np.sum(1.0 / raised))
        total, slopes = max(second[d, d], floor), np.zeros(d)
        least = 0.3 / math.sqrt(n)
        if self.linear:
            unit, slopes = math.sqrt(max(total - kept @ across, 0.1 * total, floor / 3.0)), kept
        elif kind == "label":
            rate = np.clip((centre[d] + 1.0) / 2.0, least, 1.0 - least)
            unit = 2.0 * math.sqrt(rate * (1.0 - rate))
        else:
            unit = math.sqrt(max(total, 4e-6))
        # coordinates of the steps
        z = (self.v - centre[:d]) @ root
        if q["design_noise"]:
            rows = np.column_stack([z, (self.r - centre[d] - z @ slopes) / unit])
            second = self.squares(rows, "design", q["design_radius"], noise) / n
            s = q["design_noise"] / n
            edge = s * math.sqrt(d + 1)
            values, axes = np.linalg.eigh(second[:d, :d])
            raised = np.maximum(values, max(0.7 * edge, 0.02))
            turn = axes / np.sqrt(raised)
            root, across, residual = root @ turn, turn.T @ second[:d, d], second[d, d]
            shrink = s**2 / 2.0 * np.sum(1.0 / raised)
            doubt = s * math.sqrt((d + 1) / 2.0) / raised
            most_doubt = float(doubt.max())
        else:
            edge = s * math.sqrt(d + 1)
            turn = axes / np.sqrt(raised)
            root, across, residual = turn, turn.T @ second[:d, d] / unit, 1.0
            shrink = s**2 / 2.0 * np.sum(1.0 / raised) / unit**2
            doubt, most_doubt = s * math.sqrt((d + 1) / 2.0) / raised, 0.3
        self.spread, self.spread_noise = np.maximum(values, 0.25 * edge) / raised, s / raised
        kept = shrunk(across, shrink)
        self.doubt = np.append(doubt, 0.05) if self.linear else np.full(d + 1, min(most_doubt, 0.5))
        carried = np.sqrt(raised) * (axes.T @ slopes)
        self.start(kept, residual, carried, centre[d], unit, bool(q["design_noise"]))
        self.z = np.column_stack([(self.v - centre[:d]) @ root, np.ones(n)])
        if q["tail_noise"]:
            self.choose(noise)
        # both series of steps
        theta, early = self.series(self.begin, q["early_bound"], q["early_noise"], 12, 4, noise)
        _, step = self.series(theta, q["step_bound"], q["step_noise"], 30, 0, noise)
        scores = self.scores(step) * self.weights(step, q["step_bound"])[:, None]
        if q["count_noise"]:
            noise.vector([0.0], 1.0, q["count_noise"])  # the count moves neither estimate nor errors
        return self.result(centre, root, early, step, scores, noise)

    def choose(self, noise: Deviates) -> None:
        """Choose the bound by three noisy counts of long scores, halving eight bounds each time."""
        q, bounds = self.q, [0.09375, 0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0]
        lengths = np.linalg.norm(self.scores(self.begin), axis=1)
        for _ in range(3):
            half = len(bounds) // 2
            longer = (lengths > bounds[half - 1] * q["step_bound"]).sum()
            seen = float(noise.vector([longer], 1.0, q["tail_noise"])[0])
            bounds = bounds[half:] if seen > q["tail_target"] else bounds[:half]
        self.factor = bounds[0]
        for name in ("early_bound", "early_noise", "step_bound", "step_noise"):
            q[name] *= self.factor
        squared = min(1.0, q["step_bound"] / q["covariance_radius"])
        q["covariance_radius"], q["covariance_noise"] = (
            squared * q["covariance_radius"],
            squared**2 * q["covariance_noise"],
        )

    def start(self, kept: Array, residual: float, carried: Array, centre: float, unit: float, measured: bool) -> None:
        explained, least = float(kept @ kept), 0.3 / math.sqrt(self.n)
        self.centre, self.unit, self.scale = centre, 1.0, 1.0
        if self.linear:
            if measured:
                left, slopes = max(residual - explained, 0.1 * max(residual, 0.1), 0.05), carried + unit * kept
            else:
                left, slopes = max(1.0 - explained, 0.1) if self.kind == "number" else 1.0, unit * kept
            self.unit = unit * math.sqrt(left)
            level = special.ndtri(self.level) if self.kind == "quantile" else 0.0
            self.begin = np.append(slopes / self.unit, level)
        elif self.kind == "label":
            rate = np.clip((centre + 1.0) / 2.0, least, 1.0 - least)
            variance, deviation = rate * (1.0 - rate), unit / 2.0
            slopes = kept * deviation / max(variance - explained * deviation**2, 0.3 * variance)
            level = special.logit(rate) * math.sqrt(1.0 + 0.35 * slopes @ slopes)
            self.begin = np.append(slopes, level)
        else:
            rate, deviation = max((centre + 1.0) / 2.0, least) * self.largest, unit * self.largest / 2.0
            slopes = kept * deviation / rate
            slopes = slopes / max(1.0, np.linalg.norm(slopes))
            self.scale = math.sqrt(max(deviation**2, rate))
            self.begin = np.append(slopes, math.log(rate) - slopes @ slopes / 2.0)

    def curvature(self, u: Array) -> Array:
        if self.kind == "label":
            return special.expit(u) * special.expit(-u)
        return np.exp(np.minimum(u, math.log(8.0 * self.largest))) / self.scale

    def scores(self, theta: Array) -> Array:
        u, y = self.z @ theta, (self.r - self.centre) / self.unit
        if self.kind == "number":
            psi = y - u
        elif self.kind == "quantile":
            psi = self.level - (y <= u)
        elif self.kind == "label":
            psi = self.r * special.expit(-self.r * u)
        else:
            beyond = np.maximum(u - math.log(8.0 * self.largest), 0.0)
            rate = np.exp(u - beyond) * (1.0 + beyond)
            psi = ((self.r + 1.0) * self.largest / 2.0 - rate) / self.scale
        return self.z * psi[:, None]

    def weights(self, theta: Array, bound: float) -> Array:
        """Return how much of each record counts: of classes, so that neither class could make its score longer than B."""
        if self.kind != "label":
            return np.ones(self.n)
        chance = special.expit(self.z @ theta)
        return np.minimum(1.0, bound / (np.linalg.norm(self.z, axis=1) * np.maximum(chance, 1.0 - chance)))

    def expected(self, theta: Array) -> tuple[Array, float]:
        """Return the information that moments imply for all records, and its mean weight."""
        diagonal = np.append(self.spread, 1.0)
        if self.linear:
            weight = 0.4 if self.kind == "quantile" else 1.0
            return self.n * weight * np.diag(diagonal), self.n * weight
        along = self.spread * theta[:-1]
        deviation = math.sqrt(max(theta[:-1] @ along, 1e-24))
        w = WEIGHTS * self.curvature(theta[-1] + deviation * NODES)
        matrix = w.sum() * np.diag(diagonal)
        direction = along / deviation
        matrix[:-1, :-1] += (w @ (NODES**2 - 1.0)) * np.outer(direction, direction)
        matrix[:-1, -1] = matrix[-1, :-1] = (w @ NODES) * direction
        return self.n * matrix, self.n * w.sum()

    def series(
        self, theta: Array, bound: float, noise: float, steps: int, skipped: int, deviates: Deviates
    ) -> tuple[Array, Array]:
        usual = self.n * {"number": 1.0, "label": 0.15, "count": 1.0, "quantile": 0.4}[self.kind]
        least = {"number": 2.0, "quantile": 5.0}.get(self.kind, 2.5)
        damping = max(least, self.p * (noise / usual) ** 2 / (2.0 * 0.7**2))
        damping, places, first, before = min(damping, steps / 2.0), [], theta, None
        for _ in range(steps):
            weighted = self.scores(theta) * self.weights(theta, bound)[:, None]
            gradient = deviates.vector(cut(weighted, bound).sum(axis=0), 1.0, noise)
            if before is not None:  # what the last step showed of information beyond the expected
                start, last, matrix = before
                moved = theta - start
                along, explained = matrix @ moved, moved @ matrix @ moved
                more = moved @ (last - gradient) - explained - 3.0 * math.sqrt(2.0) * noise * np.linalg.norm(moved)
                if more > 0.0 and explained > 0.0:
                    self.beyond = self.beyond + more * np.outer(along, along) / explained**2
            matrix, mean = self.expected(theta)
            values, axes = np.linalg.eigh(matrix)
            matrix = axes @ np.diag(np.maximum(values, 0.0 if self.linear else 0.1 * mean)) @ axes.T + self.beyond
            before = theta, gradient, matrix
            doubt = np.diag((mean * self.doubt) ** 2) / damping
            move = np.linalg.solve(damping * matrix @ matrix + doubt, matrix @ gradient)
            if not self.linear:
                move /= max(1.0, math.sqrt(move[:-1] @ (self.spread * move[:-1]) + move[-1] ** 2))
            theta = theta + move
            places.append(theta)
        average = np.mean(places[skipped:], axis=0)
        if self.kind != "number" and skipped == 0:
            average = average + (min(damping, 5.0) - 1.0) * (theta - first) / steps
        return theta, average

    def result(self, centre: Array, root: Array, early: Array, step: Array, scores: Array, noise: Deviates) -> Fit:
        q, n, p = self.q, self.n, self.p
        expected, mean = self.expected(step)
        information = expected
        if self.kind == "number":
            kept = np.sqrt(np.maximum(1.0 - self.spread_noise / self.spread, 0.5))
            information = np.diag(np.append(kept, 1.0)) @ expected @ np.diag(np.append(kept, 1.0))
        if q["information_noise"]:
            if self.kind == "quantile":
                w = (np.abs((self.r - self.centre) / self.unit - self.z @ step) <= 0.5) * 1.0
            else:
                w = np.minimum(self.curvature(self.z @ step) * self.weights(step, q["step_bound"]), 4.0)
            rows = self.z * np.sqrt(w)[:, None]
            measured = self.squares(rows, "information", q["information_radius"], noise)
            information = towards(measured, expected, (0.3, 2.0), q["information_noise"])
            if self.kind != "quantile":  # half a deviation of its noise lower, at most halved
                values, axes = np.linalg.eigh(information)
                information = (axes * np.maximum(values - 0.5 * q["information_noise"], values / 2.0)) @ axes.T
            information = at_least(information, 0.01 * mean)
        measured = self.squares(scores, "covariance", q["covariance_radius"], noise)
        shape, weight = information, mean if self.kind != "quantile" else n * 1.0
        if self.kind == "quantile":
            shape = n * self.level * (1.0 - self.level) * np.diag(np.append(self.spread, 1.0))
        scale = np.clip(np.sum(measured * shape) / np.sum(shape**2), 0.1, 10.0)
        covariance = at_least(towards(measured, shape, (0.1, 10.0), q["covariance_noise"]), 0.1 * scale * weight)
        # coefficients of (v, 1) in the response's unit
        change = np.zeros((p, p))
        change[:-1, :-1], change[-1, :-1], change[-1, -1] = root, -centre[:-1] @ root, 1.0
        shift = np.zeros(p)
        if self.linear:
            change, shift[-1] = change * self.unit * self.bound, self.centre * self.bound
        answer = change @ np.linalg.inv(information)
        late, first = q["step_noise"] / math.sqrt(30), q["early_noise"] / math.sqrt(8)
        moved = information @ (step - early)
        ratio = moved @ moved / (p * (late**2 + first**2))
        apart = change @ (step - early)
        share = max(0.0, 1.0 - 1.0 / max(ratio, 1e-9))
        if self.factor < 1.0:  # at most twice the noise, in Mahalanobis's distance over the square root of p
            share = min(share, 4.0 * p * late**2 / max(moved @ moved, 1e-300))
        privacy = late**2 * answer @ answer.T + share * np.outer(apart, apart)
        sampling = answer @ covariance @ answer.T
        return Fit(change @ step + shift, np.sqrt(np.diag(sampling)), np.sqrt(np.diag(privacy)))


def towards(measured: Array, shape: Array, ends: tuple[float, float], noise: float) -> Array:
    p, target = len(shape), np.clip(np.sum(measured * shape) / np.sum(shape**2), *ends) * shape
    far = float(np.sum((measured - target) ** 2))
    share = max(0.0, 1.0 - noise**2 * p * (p + 1) / 2.0 / max(far, 1e-300))
    values, axes = np.linalg.eigh(measured - target)
    visible = np.sqrt(np.maximum(values**2 - 2.0 * p * noise**2, 0.0))
    return target + (axes * np.sign(values) * np.maximum(share * np.abs(values), visible)) @ axes.T


def at_least(matrix: Array, least: float) -> Array:
    values, axes = np.linalg.eigh(matrix)
    return axes @ np.diag(np.maximum(values, least)) @ axes.T
