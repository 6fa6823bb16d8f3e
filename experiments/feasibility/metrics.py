"""The metrics of Barrientos et al. (JASA 2023), for each coefficient of a cell over its repetitions.

| metric | what it is |
| --- | --- |
| bias, relative bias | median of estimate − β̂, and of that over β̂; β̂ is least squares of the same rows |
| overlap | median overlap of the private and the ordinary interval (Karr et al. 2006): 1 if equal, below 0 if apart |
| length | median length of the private interval over that of the ordinary one |
| sign, significance | share of repetitions in which the sign agrees; in which both intervals exclude zero or neither does |
| residual | median root mean squared residual over that of least squares |

Ours besides: `same`, the share with both the sign and the significance, which their figures show as a table of four counts;
`distance`, the median size of estimate − β̂ in standard errors of β̂; `given`, the share with an interval; `reached`, the share in
which the release says that it estimates least squares itself; `covers`, the share of given intervals that hold least squares of
the whole table, and `covers reached` the same in releases that reach it. Where no interval is given, there is no significance to agree with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from experiments.feasibility.wages import NORMAL, Array
from experiments.study import Table

CELL = ("regression", "method", "size", "epsilon", "term")
"""What a summary is of."""

SHARES = ("sign", "significance", "same", "given", "reached", "covers", "covers reached")
MEDIANS = ("bias", "relative bias", "distance", "overlap", "length", "residual")


def overlap(low: Array, high: Array, other_low: Array, other_high: Array) -> Array:
    """Return the mean share of two intervals that is common to both; negative if they are apart."""
    common = np.minimum(high, other_high) - np.maximum(low, other_low)
    return np.asarray(0.5 * (common / (high - low) + common / (other_high - other_low)))


def has_zero(low: Array, high: Array) -> Array:
    """Return which intervals hold zero: their coefficient is not significant."""
    return np.asarray((low < 0.0) & (high > 0.0))


def compare(rows: Mapping[str, Any]) -> dict[str, Array]:
    """Return each metric of each row; NaN where it has no value."""
    estimate, plain = np.asarray(rows["estimate"]), np.asarray(rows["plain"])
    low, high, plain_low, plain_high = (np.asarray(rows[name]) for name in ("low", "high", "plain_low", "plain_high"))
    given, bias = np.isfinite(low) & np.isfinite(high), estimate - plain
    sign = estimate * plain > 0.0
    significance = given & (has_zero(low, high) == has_zero(plain_low, plain_high))
    reached, whole = np.asarray(rows["reached"]).astype(bool), np.asarray(rows["whole"])
    covers = np.where(given, (low <= whole) & (whole <= high), np.nan)
    return {
        "bias": bias, "relative bias": bias / plain,
        "distance": np.abs(bias) / ((plain_high - plain_low) / (2.0 * NORMAL)),
        "overlap": overlap(low, high, plain_low, plain_high), "length": (high - low) / (plain_high - plain_low),
        "residual": np.asarray(rows["residual"]),
        "sign": sign.astype(float), "significance": significance.astype(float), "same": (sign & significance).astype(float),
        "given": given.astype(float), "reached": reached.astype(float),
        "covers": covers, "covers reached": np.where(reached, covers, np.nan),
    }  # fmt: skip


def summarize(metrics: Mapping[str, Array]) -> dict[str, float]:
    """Return medians and shares over repetitions, each of the values there are; NaN if there are none."""
    known = {name: values[~np.isnan(values)] for name, values in metrics.items()}
    medians = {name: float(np.median(known[name])) if known[name].size else math.nan for name in MEDIANS}
    shares = {name: float(np.mean(known[name])) if known[name].size else math.nan for name in SHARES}
    counts = {"repetitions": float(len(metrics["sign"])), "judged": float(known["covers reached"].size)}
    return {**medians, **shares, **counts}


def summaries(table: Table) -> Iterator[tuple[dict[str, Any], dict[str, float]]]:
    """Yield the cell and the summary of each coefficient, in the order in which cells come."""
    metrics = compare(table)
    for cell, chosen in group(table):
        yield cell, summarize({name: values[chosen] for name, values in metrics.items()})


def group(table: Table) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each combination of the values of `CELL` with the places of its rows: `Table.groups` for many rows."""
    code = np.zeros(table.rows, dtype=np.int64)
    for name in CELL:
        values, codes = np.unique(table[name], return_inverse=True)
        code = code * len(values) + codes
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    for which in np.argsort(first):
        chosen = order[ends[which - 1] if which else 0 : ends[which]]
        yield {name: table[name][chosen[0]] for name in CELL}, chosen
