"""The gallery of reproduced experiments: writes docs/gallery.md from what `onedraw reproduce` found.

    onedraw reproduce all --jobs 2
    python docs/figures/gallery.py            # takes over the results of whole runs in build/experiments, writes the page
    python docs/figures/gallery.py --render   # writes the page again from the stored results

Stored are, in docs/assets/gallery, the summary of each study as JSON and its figures as SVG. What was run quickly or is not in
build/experiments stays as it was stored.
"""

from __future__ import annotations

import html
import json
import shutil
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
STORED = DOCS / "assets" / "gallery"
RESULTS = DOCS.parent / "build" / "experiments"
PAGE = DOCS / "gallery.md"

HEAD = """\
# The papers' experiments, run again

<!-- Written by docs/figures/gallery.py from docs/assets/gallery. Do not edit. -->

`onedraw reproduce all` in a clone of the repository computes everything on this page, `onedraw reproduce NAME` one study of it;
`--quick` takes minutes. What must come out was written down before the run, with a tolerance and its source: *paper*, a published
number or order; *reference*, numbers that the project computed with other code; *ours*, a figure nobody has published. How each is
run, and which claims hold, change or fail, stands beside its code in `experiments/`.
"""


def take_over(results: Path = RESULTS) -> None:
    """Summaries and figures of whole runs, without the places they were written to."""
    STORED.mkdir(parents=True, exist_ok=True)
    for summary in sorted(results.glob("*/full/summary.json")):
        result = json.loads(summary.read_text(encoding="utf-8"))
        del result["folder"]
        for old in STORED.glob(f"{result['study']}.*"):
            old.unlink()
        (STORED / f"{result['study']}.json").write_text(
            json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        for name in result["figures"]:
            shutil.copyfile(summary.parent / f"{name}.svg", STORED / figure_file(result["study"], name))


def figure_file(study: str, name: str) -> str:
    return f"{study}.{name}.svg"


def stored() -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(STORED.glob("*.json"))]


def render(results: list[dict[str, Any]]) -> str:
    rows = [f"| [{one['study']}](#{one['study']}) | {one['claim']} | {met(one)} |" for one in results]
    table = "\n".join(["| study | claim | expectations met |", "| --- | --- | ---: |", *rows])
    return "\n\n".join([HEAD.strip(), table, *map(section, results)]) + "\n"


def met(result: dict[str, Any]) -> str:
    """How many of those checked."""
    verdicts = [one["verdict"] for one in result["expectations"]]
    return f"{verdicts.count('passed')} of {len(verdicts)}"


def section(result: dict[str, Any]) -> str:
    """A study: its claim, what was found, figures, and every expectation, folded."""
    study = result["study"]
    figures = [f"![{study}: {name}](assets/gallery/{figure_file(study, name)})" for name in result["figures"]]
    findings = "\n".join(f"- {finding}" for finding in result["findings"])
    pieces = [
        f"## {study}",
        f"**{result['claim']}.** {result['paper']}.",
        findings,
        *figures,
        folded(result),
        result["times"],
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def folded(result: dict[str, Any]) -> str:
    """As HTML: Markdown is not read inside a fold."""
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells(one)) + "</tr>"
        for one in result["expectations"]
    )
    titles = "".join(f"<th>{title}</th>" for title in ("quantity", "expected", "found", "source", "verdict"))
    return f"<details>\n<summary>{met(result)} expectations are met</summary>\n<table>\n<tr>{titles}</tr>\n{rows}\n</table>\n</details>"


def cells(one: dict[str, Any]) -> list[str]:
    found = "" if one["found"] is None else f"{one['found']:.4g}" + (f" ± {one['error']:.2g}" if one["error"] else "")
    return [one["quantity"], one["expected"], found, one["source"], one["verdict"]]


def main() -> None:
    if "--render" not in sys.argv:
        take_over()
    PAGE.write_text(render(stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
