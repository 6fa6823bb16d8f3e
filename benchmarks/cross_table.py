"""A cross table of a census: does every count lie within its stated interval, and do its totals add up?

    python benchmarks/cross_table.py        # writes benchmarks/results/cross_table.md; about two minutes

Sex by six groups of education in the UCI table "Adult" (32,561 records), ε = 1, 500 releases with fresh noise, under (ε, 1e-6) as by
default and under a pure ε. Beside it each release's row, column and grand totals are those of its cells, and the grand total is the public n.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np

import onedraw as od

FOLDER = Path(os.environ.get("ONEDRAW_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULT = Path(__file__).parent / "results" / "cross_table.md"
RUNS, EPSILON = 500, 1.0
SEXES = ["Female", "Male"]
SCHOOLS = ["below high school", "high school", "some college", "associate", "bachelor", "above"]
UP_TO = [8, 9, 10, 12, 13, 16]
"""The last education_num of each group."""


def rows() -> np.ndarray:
    """(n, 2): education group and sex."""
    with gzip.open(FOLDER / "adult_train.csv.gz", "rt") as packed:
        found = [(int(row["education_num"]), row["sex"]) for row in csv.DictReader(packed)]
    return np.array([(SCHOOLS[int(np.searchsorted(UP_TO, years))], sex) for years, sex in found], dtype=object)


def count(delta: float) -> od.DPCount:
    return od.DPCount(EPSILON, delta=delta, levels=SCHOOLS, missing=SCHOOLS[0], by={"sex": SEXES})


def study(table: np.ndarray, truth: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Per cell: how often within the interval, and its mean half-width; and how many tables do not add up."""
    hits, half, wrong = np.zeros(truth.shape), np.zeros(truth.shape), 0
    for _ in range(RUNS):
        found = count(delta).fit(table)
        low, high = found.conf_int().T.reshape(2, *truth.shape)
        hits += (low <= truth) & (truth <= high)
        half += (high - low) / 2
        cells = found.counts_
        whole = (cells == np.floor(cells)).all() and (cells >= 0).all()
        wrong += not (whole and cells.sum(axis=1).sum() == cells.sum(axis=0).sum() == len(table))
    return hits / RUNS, half / RUNS, wrong


def main() -> None:
    table = rows()
    truth = np.array([[int(((table[:, 0] == s) & (table[:, 1] == x)).sum()) for s in SCHOOLS] for x in SEXES])
    lines = ["| promise | sex | education | records | within its 95 % interval | half-width |", "| --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    summaries = []
    for words, delta in (("(1, 1e-6)", 1e-6), ("pure, ε = 1", 0.0)):
        hits, half, wrong = study(table, truth, delta)
        lines += [
            f"| {words} | {sex} | {school} | {truth[i, j]:,} | {hits[i, j]:.3f} | {half[i, j]:.1f} |"
            for i, sex in enumerate(SEXES)
            for j, school in enumerate(SCHOOLS)
        ]
        summaries.append(
            f"{words}: least of the twelve {hits.min():.3f}, all {hits.mean():.3f}; tables of {RUNS} that do not add up: {wrong}."
        )
        print(summaries[-1], flush=True)
    text = ["# Cross table of Adult", "", (__doc__ or "").split("\n\n")[2].replace("\n", " "), "", *lines, "", *summaries]  # fmt: skip
    RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
