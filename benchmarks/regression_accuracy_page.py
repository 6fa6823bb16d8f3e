"""Write the page of regression_accuracy.py from its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from regression_accuracy import DELTA, FITS, MAX_RECORDS, MEASURES, PEERS, SIDES, SMALL
from scipy import stats

UNITS = {
    "label": "points of AUC (hundredths)",
    "number": "% of a constant's RMSE",
    "count": "% of a constant's deviance",
}
WORST = 15
"""Losses that the page lists."""


class Comparison(NamedTuple):
    """A table at an ε: scores of both sides and without privacy, split by split, and the mean of a constant."""

    table: str
    group: str
    kind: str
    n: int
    d: int
    epsilon: float
    old: np.ndarray
    new: np.ndarray
    plain: np.ndarray
    constant: float
    mechanisms: tuple[str, str]

    def gain_over(self, other: np.ndarray) -> tuple[float, float]:
        """Return by how much the new side is better, with its standard error: hundredths of AUC, or % of a constant's score."""
        gains = 100.0 * (self.new - other) if self.kind == "label" else 100.0 * (other - self.new) / self.constant
        return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))

    @property
    def gain(self) -> float:
        """Return by how much the new side is better than the old one."""
        return self.gain_over(self.old)[0]

    @property
    def error(self) -> float:
        """Return the standard error of the gain over splits."""
        return self.gain_over(self.old)[1]

    @property
    def is_plain(self) -> bool:
        """Return whether the new side is within one standard error of the fit without privacy, or better."""
        gain, error = self.gain_over(self.plain)
        return gain >= -error

    @property
    def verdict(self) -> str:
        """Return "better" or "worse" if the gain exceeds its standard error, otherwise "equal"."""
        if abs(self.gain) <= self.error:
            return "equal"
        return "better" if self.gain > 0.0 else "worse"


def latest_sources(records: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the checksum of each side's source: that of its last cell."""
    return {record["side"]: record["source"] for record in records}


def compare(records: Sequence[dict[str, Any]]) -> tuple[list[Comparison], list[str]]:
    """Return a comparison for each table and ε that both sides have, and lines about refusals."""
    sources = latest_sources(records)
    cells: dict[tuple[str, float | None], dict[str, dict[int, Any]]] = {}
    for record in records:
        if record["source"] == sources[record["side"]]:
            sides = cells.setdefault((record["table"], record["epsilon"]), {})
            sides.setdefault(record["side"], {})[record["split"]] = record
    comparisons, refusals = [], []
    for (table, epsilon), sides in cells.items():
        if epsilon is None or not all(side in sides for side in SIDES):
            continue
        refused = [
            (side, record["refused"]) for side in SIDES for record in sides[side].values() if "refused" in record
        ]
        if refused:
            refusals += [f"- {table}, ε = {epsilon:g}, {side}: {reason}" for side, reason in dict.fromkeys(refused)]
            continue
        plain = cells[table, None]["plain"]
        splits = sorted(set(sides["old"]) & set(sides["new"]) & set(plain))
        first = sides["new"][splits[0]]
        old, new = (np.array([sides[side][split]["score"] for split in splits]) for side in SIDES)
        without = np.array([plain[split]["score"] for split in splits])
        constant = float(np.mean([plain[split]["constant"] for split in splits]))
        about = (first[name] for name in ("group", "kind", "n", "d"))
        names = (sides["old"][splits[0]]["mechanism"], first["mechanism"])
        comparisons.append(Comparison(table, *about, epsilon, old, new, without, constant, names))  # type: ignore[misc]
    return comparisons, refusals


def summarize(records: Sequence[dict[str, Any]]) -> str:
    """Return the page."""
    comparisons, refusals = compare(records)
    lines = ["# Accuracy of regressions beside the earlier fit", "", *_head(comparisons, latest_sources(records))]
    groups = list(dict.fromkeys(comparison.group for comparison in comparisons))
    if len(groups) > 1:
        lines += ["", "## Summary: all tables", "", *_summary(comparisons)]
    for group in groups:
        chosen = [comparison for comparison in comparisons if comparison.group == group]
        lines += ["", f"## Summary: {group}", "", *_summary(chosen)]
    lines += ["", f"## The {WORST} largest losses", "", *_losses(comparisons)]
    lines += ["", "## Small tables of numbers from ε = 1 to ε = 5", "", *_small(comparisons)]
    lines += ["", "## Refused", "", *(refusals or ["None."])]
    for kind in MEASURES:
        chosen = [comparison for comparison in comparisons if comparison.kind == kind]
        if chosen:
            lines += ["", f"## Table by table: {kind}s, {MEASURES[kind]}", "", *_table(chosen)]
    return "\n".join(lines) + "\n"


def _head(comparisons: Sequence[Comparison], sources: dict[str, str]) -> list[str]:
    splits = sorted({len(comparison.new) for comparison in comparisons})
    equal = 100.0 * stats.t.sf(1.0, max(splits) - 1)
    return [
        "Made by `benchmarks/regression_accuracy.py`. The default estimators `DPLinearRegression`, `DPLogisticRegression` and",
        "`DPPoissonRegressor` with declared bounds, from two source trees: *old* is commit 291b263e (perturbed modes), *new* is the",
        f"current tree. Sources {sources.get('old')} and {sources.get('new')}. δ = {DELTA:g}. {' or '.join(map(str, splits))} random splits of at most {MAX_RECORDS:,} records, four",
        f"fifths to fit and one fifth to score, the same for both; a score is the mean of {FITS} fits. Tables: `benchmarks/populations`, and",
        f"{', '.join(PEERS)} (`benchmarks/peers/tables.py`). Categories are plain 0/1 columns.",
        "",
        "- Labels: AUC. Numbers: RMSE, predictions clipped to the declared range. Counts: mean Poisson deviance, rates clipped.",
        "- gain: how much better the new side is, with its paired standard error over splits. Unit: hundredths of AUC, or % of the score",
        "  of a constant.",
        f"- better, worse: by more than one standard error. If both sides were equal, {equal:.0f}% of the cells would be worse by chance.",
        "- as good as not private: within one standard error of least squares or maximum likelihood, or better. If a model does not hold,",
        "  another line than theirs can predict better.",
    ]  # fmt: skip


def _summary(comparisons: Sequence[Comparison]) -> list[str]:
    lines = [
        "| response | ε | cells | better | within one standard error | worse | of these as good as not private | worse by two | mean gain ± its standard error | median gain | worst gain | unit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for kind in MEASURES:
        for epsilon in sorted({comparison.epsilon for comparison in comparisons}):
            chosen = [cell for cell in comparisons if (cell.kind, cell.epsilon) == (kind, epsilon)]
            if not chosen:
                continue
            verdicts = [cell.verdict for cell in chosen]
            gains = np.array([cell.gain for cell in chosen])
            error = np.sqrt(np.sum([cell.error**2 for cell in chosen])) / len(chosen)
            lines.append(
                f"| {kind} | {epsilon:g} | {len(chosen)} | {verdicts.count('better')} | {verdicts.count('equal')} | {verdicts.count('worse')} "
                f"| {sum(cell.verdict == 'worse' and cell.is_plain for cell in chosen)} | {sum(cell.gain < -2.0 * cell.error for cell in chosen)} | {gains.mean():+.2f} ± {error:.2f} | {np.median(gains):+.2f} "
                f"| {gains.min():+.2f} | {UNITS[kind]} |"
            )
    return lines


def _losses(comparisons: Sequence[Comparison]) -> list[str]:
    worst = [cell for cell in comparisons if cell.verdict == "worse" and not cell.is_plain]
    worst = sorted(worst, key=lambda cell: cell.gain)[:WORST]
    return (
        ["By gain, whatever the unit. Without cells that are as good as not private.", "", *_table(worst)]
        if worst
        else ["None."]
    )


def _small(comparisons: Sequence[Comparison]) -> list[str]:
    cells = {(cell.table, cell.epsilon): cell for cell in comparisons if cell.kind == "number" and cell.n <= SMALL}
    names = [table for table, epsilon in cells if epsilon == 1.0 and (table, 5.0) in cells]
    lines = [
        f"Tables of at most {SMALL:,} records. RMSE.",
        "",
        "| table | n | d | old, ε = 1 | old, ε = 5 | new, ε = 1 | new, ε = 5 | not private | constant | new improves (paired) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        low, high = cells[name, 1.0], cells[name, 5.0]
        count = min(len(low.new), len(high.new))
        fall = low.new[:count] - high.new[:count]
        scores = (low.old.mean(), high.old.mean(), low.new.mean(), high.new.mean(), low.plain.mean(), low.constant)
        lines.append(
            f"| {name} | {low.n:,} | {low.d} | {' | '.join(f'{score:.4g}' for score in scores)} "
            f"| {fall.mean():+.3g} ± {fall.std(ddof=1) / np.sqrt(count):.2g} |"
        )
    return lines if names else ["None."]


def _table(comparisons: Sequence[Comparison]) -> list[str]:
    lines = [
        "| table | group | n | d | ε | constant | not private | old | new | gain | | mechanism |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for cell in comparisons:
        scores = (cell.constant, cell.plain.mean(), cell.old.mean(), cell.new.mean())
        mechanism = "the same" if cell.mechanisms[0] == cell.mechanisms[1] else cell.mechanisms[1]
        lines.append(
            f"| {cell.table} | {cell.group} | {cell.n:,} | {cell.d} | {cell.epsilon:g} | {' | '.join(f'{score:.4g}' for score in scores)} "
            f"| {cell.gain:+.2f} ± {cell.error:.2f} | {cell.verdict} | {mechanism} |"
        )
    return lines
