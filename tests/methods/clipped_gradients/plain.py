"""Clipped gradients written a second time, in plain NumPy: the oracle of the program.

No lattice, no compiled code, no codes of categories, none of the package's classes: constants and formulas are copied from the
documents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

Array = np.ndarray


class Deviates:
    """Standard normal numbers in a fixed order; as a noise of the package, and for the oracle."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def vector(self, sums: Any, steps: float, noise: float, each: Any = None) -> Array:
        return np.asarray(sums) / steps + noise * self.rng.standard_normal(len(sums))


def clip(values: Array, length: Array, bound: float) -> Array:
    return values * np.minimum(1.0, bound / np.maximum(length, 1e-300))[:, None]


class Plain:
    """One release. ``v`` are columns, numbers in [-1, 1] and 0/1 columns; ``y`` responses as the table of responses.py has them."""

    def __init__(
        self, kind: str, v: Array, y: Array, numbers: Any, categories: Any, *, classes: int, largest: float
    ) -> None:
        self.kind, self.v, self.y, self.q, self.categories = kind, v, y, dict(numbers), categories
        self.classes, self.largest, (self.n, self.d) = classes, largest, v.shape
        self.coded = np.zeros(self.d, dtype=bool)
        for start, stop in categories:
            self.coded[start:stop] = True

    def level(self, noise: Deviates) -> None:
        s = self.q["level_noise"] / self.n
        share = np.eye(self.classes)[self.y.astype(int)] if self.kind == "classes" else self.y[:, None]
        mean = noise.vector(share.sum(axis=0), 1.0, self.q["level_noise"]) / self.n
        self.unit = 1.0
        if self.kind == "number":
            self.start, self.unit = np.clip(mean, -1.0, 1.0), 0.3
        elif self.kind == "count":
            mean = np.clip(mean, s / 2.0, 1.0)
            rate = mean[0] * self.largest
            s2 = self.q["square_noise"] / self.n
            square = noise.vector([np.sum(self.y**2)], 1.0, self.q["square_noise"])[0] / self.n
            variance = max((rate + rate**2) / self.largest**2, min(square, 1.0) - s2 - mean[0] ** 2)
            self.start, self.unit = np.log(mean * self.largest), math.sqrt(variance)
        elif self.kind == "label":
            p = np.clip(0.5 + (mean - 0.5) / (1.0 + (s / 0.25) ** 2), s / 2.0, 1.0 - s / 2.0)
            self.start = np.log(p / (1.0 - p))
        else:
            signal = max(0.0, float(np.mean((mean - 1.0 / self.classes) ** 2)) - s**2)
            p = 1.0 / self.classes + (mean - 1.0 / self.classes) * signal / (signal + s**2)
            p = np.maximum(p, s / 2.0)
            mean = p / p.sum()
            self.start = np.log(mean) - np.log(mean).mean()

    def scales(self, noise: Deviates) -> None:
        self.m, self.s, self.variance = np.zeros(self.d), np.full(self.d, 0.5), np.ones(self.d)
        if not self.q["mean_noise"]:
            for start, stop in self.categories:
                p = 1.0 / (stop - start + 1)
                self.m[start:stop] = 0.0
                self.variance[start:stop] = p * (1.0 - p) / 0.25
            return
        mean = noise.vector(self.v.sum(axis=0), 1.0, self.q["mean_noise"]) / self.n
        s = self.q["mean_noise"] / self.n
        free = ~self.coded
        spread = np.minimum(np.abs(self.v[:, free] - np.clip(mean[free], -1, 1)), 1.0).sum(axis=0)
        spread = noise.vector(spread, 1.0, self.q["spread_noise"]) / self.n
        b = self.q["spread_noise"] / self.n
        self.m, self.s = np.zeros(self.d), np.zeros(self.d)
        self.m[free] = np.clip(mean[free], -1, 1) * 0.25 / (0.25 + s**2)
        shrunk = (0.04 * spread + 0.4 * b**2) / (0.04 + b**2)
        self.s[free] = np.maximum(1.25 * shrunk, max(2.0 * min(s, 0.5), 1.25 * (b / 2.0 + 0.01)))
        for start, stop in self.categories:
            equal = 1.0 / (stop - start + 1)
            signal = max(0.0, float(np.mean((mean[start:stop] - equal) ** 2)) - s**2)
            p = np.clip(equal + (mean[start:stop] - equal) * signal / (signal + s**2), 0.0, 1.0)
            self.m[start:stop] = p
            squares = np.maximum(p * (1.0 - p), max(min(2.0 * s, 0.25), 1e-4))
            self.s[start:stop], self.variance[start:stop] = np.sqrt(squares), p * (1.0 - p) / squares

    def residuals(self, u: Array) -> Array:
        if self.kind == "classes":
            return np.asarray(special.softmax(u, axis=1) - np.eye(self.classes)[self.y.astype(int)])
        if self.kind == "label":
            return np.asarray(special.expit(u) - self.y[:, None])
        if self.kind == "count":
            return np.minimum(np.exp(u), self.largest) / self.largest - self.y[:, None]
        return u - self.y[:, None]

    def run(self, noise: Deviates) -> tuple[Array, Array, float]:
        """Return slopes of columns, intercepts and the temperature."""
        q, n = self.q, self.n
        self.level(noise)
        self.scales(noise)
        z = (self.v - self.m) / self.s
        length, steps = np.linalg.norm(z, axis=1), int(q["steps"])
        W, b = np.zeros((self.d, len(self.start))), self.start
        C, C0 = q["slope_bound"], q["intercept_bound"]
        pace = q["time"] / steps / C
        slow = (
            min(8.0 if self.kind == "number" else 30.0, 0.1 * n * self.unit * math.sqrt(steps) / q["intercept_noise"])
            / steps
        )
        kept = []
        for _ in range(steps):
            raw = self.residuals(z @ W + b)
            size = np.linalg.norm(raw, axis=1)
            g = z.T @ clip(raw / self.unit, length * size / self.unit, C)
            g = noise.vector(g.ravel(), 1.0, q["slope_noise"]).reshape(W.shape)
            g0 = noise.vector(clip(raw, size, C0).sum(axis=0), 1.0, q["intercept_noise"])
            W, b = W - pace * g / n, b - slow * g0 / (n * self.unit)
            kept.append((W, b))
        kept = kept[steps - round(0.7 * steps) :]
        W, b = (np.mean([one[place] for one in kept], axis=0) for place in (0, 1))
        shift = self.shift(z @ W, b, W, noise)
        t = self.temperature(z @ W + shift, self.start, W, noise)
        slopes = t * W / self.s[:, None]
        return slopes, self.start + t * shift - self.m @ slopes, t

    def deviation(self, W: Array) -> float:
        squares = W[:, 0] ** 2
        if self.kind == "classes":
            squares = ((W - W.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / 2.0
        return math.sqrt(float(self.variance @ squares))

    def shift(self, h: Array, b: Array, W: Array, noise: Deviates) -> Array:
        if not self.q["center_noise"]:
            return b - self.start
        deviation, bound, s = self.deviation(W), self.q["center_bound"], self.q["center_noise"] / self.n
        center = (
            noise.vector([np.clip((h + b - self.start) / deviation, -bound, bound).sum()], 1.0, self.q["center_noise"])
            / self.n
        )
        signal = max(1.0, center[0] ** 2 - s**2)
        return b - self.start - center * deviation * signal / (signal + s**2)

    def temperature(self, h: Array, b: Array, W: Array, noise: Deviates) -> float:
        deviation = self.deviation(W)
        first = min(0.5, 0.5 / deviation)
        last = 1.5 if self.kind in ("label", "classes") else 1.0
        t = np.array([0.0, *(first * (last / first) ** (place / 3.0) for place in range(4))])
        bound = self.q["temperature_bound"]
        found = [
            np.clip((self.residuals(b + one * h) * h).sum(axis=1) / (self.unit * deviation), -bound, bound).sum()
            for one in t
        ]
        noisy = np.cumsum(noise.vector(np.diff([0.0, *found]), 1.0, self.q["temperature_noise"]))
        raised = np.maximum.accumulate(noisy) + self.q["temperature_noise"]
        if raised[0] >= 0.0:
            return 0.0
        return float(np.interp(0.0, raised, t)) if raised[-1] > 0.0 else last
