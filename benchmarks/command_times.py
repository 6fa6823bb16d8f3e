"""How long does the command line take? CPU seconds, best of three, and the ratio to what is wanted.

python benchmarks/command_times.py        # writes results/command_times.md; half a minute
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

RESULT = Path(__file__).parent / "results" / "command_times.md"
MAIN = "from onedraw.cli import main; main()"
SCHEMA = """\
dataset: timed
columns:
  smoker: {kind: binary, levels: [no, yes], missing: no}
  income: {kind: number, lower: 0, upper: 100000, missing: 30000}
"""


def seconds(code: str, arguments: Sequence[str], folder: str, wanted: int = 0) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == wanted, done.stderr.decode()
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    lines = ["| what | CPU seconds | wanted | ratio |", "| --- | --- | --- | --- |"]

    def line(what: str, found: float, most: float) -> None:
        lines.append(f"| {what} | {found:.2f} | {most:g} | {found / most:.2f} |")
        print(lines[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        place, generator = Path(folder), np.random.default_rng(1)
        (place / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        rows = np.column_stack([generator.choice(["no", "yes"], 5000), generator.integers(0, 100_000, 5000)])
        np.savetxt(place / "people.csv", rows, fmt="%s", delimiter=",", header="smoker,income", comments="")
        seconds(
            MAIN, ["ledger", "init", "ledger.db", "--dataset", "timed", "--epsilon", "20", "--delta", "1e-4"], folder
        )
        bare = min(seconds("pass", [], folder) for _ in range(3))
        line("import onedraw", min(seconds("import onedraw", [], folder) for _ in range(3)) - bare, 0.1)
        line("onedraw --help", min(seconds(MAIN, ["--help"], folder) for _ in range(3)), 0.7)
        line("a mistyped option", min(seconds(MAIN, ["release", "--epsilonn", "1"], folder, 2) for _ in range(3)), 0.7)
        for model, target in (("proportion", "smoker"), ("mean", "income"), ("median", "income")):
            given = ["release", "people.csv", "--schema", "schema.yaml", "--ledger", "ledger.db", "--epsilon", "0.5"]
            asked = [*given, "--target", target, "--model", model, "--out"]
            line(f"onedraw release --model {model}", min(seconds(MAIN, [*asked, f"{model}{k}.json"], folder) for k in range(3)), 2.5)  # fmt: skip
    text = ["# Times of the command line", "", "By `benchmarks/command_times.py`: CPU seconds, best of three, 5,000 records.", "", *lines]  # fmt: skip
    RESULT.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
