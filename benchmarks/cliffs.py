"""Time the widest questions: 50 classes, and a category of 1,000 levels, each with 20,000 records and ten columns.

    python benchmarks/cliffs.py            # writes benchmarks/results/cliffs.md

Each case runs in a process of its own, from the import to a charged release that `auto` chose, compilation included. Times depend on
the machine and on what else runs there; memory is the largest resident set.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "cliffs.md"
RECORDS, CLASSES, LEVELS = 20_000, 50, 1_000
CASES = {"classes": f"{CLASSES} classes", "levels": f"a category of {LEVELS:,} levels"}


def make_question(case: str) -> tuple[dict[str, Any], Any, str]:
    """Return (columns of a schema, frame, model) of a case."""
    import numpy as np
    import pandas as pd

    rng, number = np.random.default_rng(0), {"kind": "number", "lower": 0, "upper": 1, "missing": 0}
    columns: dict[str, Any] = {f"x{place}": number for place in range(10 if case == "classes" else 9)}
    frame = {name: rng.uniform(size=RECORDS) for name in columns}
    if case == "classes":
        labels = [f"c{code}" for code in range(CLASSES)]
        columns["y"] = {"kind": "category", "levels": labels, "missing": "c0"}
        frame["y"] = np.array(labels)[np.minimum((frame["x0"] * CLASSES).astype(int), CLASSES - 1)]
        return columns, pd.DataFrame(frame), "softmax"
    levels = [f"l{code}" for code in range(LEVELS)]
    columns["z"] = {"kind": "category", "levels": levels, "missing": "l0"}
    columns["y"] = {"kind": "binary", "levels": ["no", "yes"], "missing": "no"}
    frame["z"] = np.array(levels)[rng.integers(0, LEVELS, RECORDS)]
    frame["y"] = np.where(rng.uniform(size=RECORDS) < frame["x0"], "yes", "no")
    return columns, pd.DataFrame(frame), "logistic"


def run_case(case: str) -> str:
    """Release a case, and return its row of the table."""
    columns, frame, model = make_question(case)
    start = time.perf_counter()
    import onedraw as od

    planned = od.plan({"dataset": "d", "columns": columns}, "y", model, epsilon=1.0, n=RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        ledger = od.Ledger.open(Path(folder) / "ledger.db", create=True)
        ledger.init("d", od.ApproxDP(5.0, 1e-4))
        planned.release(frame, ledger=ledger)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return f"| {CASES[case]} | {type(planned.plan.mechanism).__name__} | {seconds:.1f} | {peak:.2f} |"


def main() -> None:
    """Run both cases, or one of them in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=list(CASES), help="run one case and print its row")
    options = parser.parse_args()
    if options.case:
        print(run_case(options.case))
        return
    command = [sys.executable, __file__, "--case"]
    rows = [
        subprocess.run([*command, case], check=True, capture_output=True, text=True).stdout.strip() for case in CASES
    ]
    head = ["# The widest questions", "", f"Made by `benchmarks/cliffs.py`: {RECORDS:,} records, ten columns, ε = 1, from the import to a charged release.",
            "", "| question | mechanism that `auto` takes | seconds | peak memory, GB |", "| --- | --- | ---: | ---: |"]  # fmt: skip
    RESULT.write_text("\n".join([*head, *rows, ""]))


if __name__ == "__main__":
    main()
