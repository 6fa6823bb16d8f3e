"""Is the standard error that a fit prints the error it makes?

    python benchmarks/fit_errors.py        # writes benchmarks/results/fit_errors.md; a quarter of an hour on two cores

Designs of `fit_coverage.py` with a known truth, n = 8,000, δ = 1e-6, ε = 1 and 5, 200 fits each. For every coefficient: the mean
standard error printed over the root mean square error realised, of the fits in which it was given one. A design holds if
that is between 0.75 and 1.25 for every coefficient that is given one in at least half of the fits. In brackets: given less
often, mostly where the fit erred towards more information; there the interval is widened, not the standard error.
The intercept of "linear skewed" is not judged: it is that of the loss's centre.
"""

from __future__ import annotations

import argparse
import os
from multiprocessing import get_context
from pathlib import Path

import fit_coverage as study
import numpy as np

RESULT = Path(__file__).parent / "results" / "fit_errors.md"
N, EPSILONS, SETS = 8000, (1.0, 5.0), 200
USUALLY, LOW, HIGH = 0.5, 0.75, 1.25
DESIGNS = [
    *(f"logistic/{design}" for design in study.DESIGNS if design != "rare 0.002"),
    *(f"linear/{design}" for design in ("uniform", "skewed", "heavy", "common", "rare 0.05", "rare 0.01")),
    *(f"linear {residual}/uniform" for residual in ("t3", "skewed", "uneven")),
    *(f"counts/{design}" for design in ("uniform", "skewed", "heavy", "rare 0.05")),
]


def ratios(found):
    """Per coefficient: (share of fits in which it was given, mean standard error over root mean square error there)."""
    given, *_, squared, variance = np.moveaxis(np.array(found), 1, 0)
    share = given.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        printed = (given * np.sqrt(variance)).sum(axis=0) / given.sum(axis=0)
        return share, printed / np.sqrt((given * squared).sum(axis=0) / given.sum(axis=0))


def judged(cell, share, ratio):
    """Whether every coefficient that is usually given has an honest standard error; None where none is."""
    usual = share >= USUALLY
    if cell.startswith("linear skewed"):
        usual[-1] = False
    return None if not usual.any() else bool(((ratio >= LOW) & (ratio <= HIGH))[usual].all())


def line(cell, found):
    share, ratio = ratios(found)
    name, _, epsilon = cell.rsplit("/", 3)[:3]
    shown = ["–" if not s else f"{r:.2f}" if s >= USUALLY else f"({r:.2f})" for s, r in zip(share, ratio, strict=True)]
    verdict = {True: "holds", False: "**fails**", None: "none usually given"}[judged(cell, share, ratio)]
    return f"| {name} | {epsilon} | {' '.join(f'{s:.2f}' for s in share)} | {' '.join(shown)} | {verdict} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=SETS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    cells = [f"{design}/{N}/{epsilon:g}/approx" for design in DESIGNS for epsilon in EPSILONS]
    with get_context("spawn").Pool(options.jobs) as pool:
        lines = [
            line(cell, found)
            for cell, found in pool.imap(
                study.run_chunk, [(cell, range(study.FRESH, study.FRESH + options.sets)) for cell in cells]
            )
        ]
    head = [
        "# Standard errors of fits",
        "",
        (__doc__ or "").split("\n\n")[2].replace("\n", " "),
        "",
        f"{sum('holds' in one for one in lines)} of {sum('none' not in one for one in lines)} designs and budgets with a coefficient usually given hold.",
        "",
        "| design | ε | given | printed over realised | |",
        "| --- | --- | --- | --- | --- |",
    ]
    RESULT.write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
