"""The picture of the packages in docs/design.md, drawn from the imports that are really there.

    python docs/figures/packages.py        # writes docs/assets/packages.svg

Packages from top to bottom as in the layers of pyproject.toml. A row says what a package imports: how many imports of which package below
it, darker for more. An import that goes up stands left of the diagonal, in red; tests/test_layers.py allows those that
pyproject.toml names, and checks that the picture is the one of today's imports.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "assets" / "packages.svg"
SMALL = ("errors", "plain_text", "places", "defaults", "on_demand", "arrays", "private")  # which everybody uses
CELL, LEFT, TOP, ROW = 74, 170, 74, 36


def packages() -> list[str]:
    """The packages, from the top layer down, without the small modules under them."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    names = [name.strip() for line in contract["layers"] for name in line.split("|")]
    return [name for name in names if name not in SMALL]


def imports(names: list[str]) -> Counter[tuple[str, str]]:
    """How many modules of one package a module of another imports, over all modules."""
    graph = grimp.build_graph("onedraw", cache_dir=None)
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            here, there = ([*name.split("."), ""][1] for name in (module, other))
            if here != there and {here, there} <= set(names):
                found[here, there] += 1
    return found


def size_of(name: str) -> str:
    files = sorted((ROOT / "src" / "onedraw" / name).rglob("*.py")) or [ROOT / "src" / "onedraw" / f"{name}.py"]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return f"{len(files)} files, {round(lines, -2):,} lines"


def text(x: float, y: float, words: object, kind: str = "", anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def cell(row: int, column: int, pair: str, count: int) -> list[str]:
    x, y = LEFT + column * CELL, TOP + row * ROW
    shade = "#b3261e" if column < row else "#1f5a8c"
    strength = min(0.15 + 0.012 * count, 0.9)
    ink = "light" if strength > 0.62 else "ink"
    return [
        f'<rect data-pair="{pair}" x="{x + 2}" y="{y + 2}" width="{CELL - 4}" height="{ROW - 4}" rx="4" fill="{shade}" '
        f'fill-opacity="{strength:.2f}"/>',
        text(x + CELL / 2, y + ROW / 2 + 5, count, ink),
    ]


def picture() -> str:
    names = packages()
    counts = imports(names)
    width, height = LEFT + len(names) * CELL + 16, TOP + len(names) * ROW + 40
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="Which package imports which">',
        "<style>text{font:14px system-ui,sans-serif;fill:#1c2733}.name{font-weight:600}.small{font-size:11px;fill:#5b6875}"
        ".light{fill:#fff}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        text(14, 26, "A row: what this package imports, and how often", "name", "start"),
    ]
    for place, name in enumerate(names):
        y = TOP + place * ROW
        drawn.append(text(14, y + 15, name, "name", "start"))
        drawn.append(text(14, y + 29, size_of(name), "small", "start"))
        drawn.append(text(LEFT + place * CELL + CELL / 2, TOP - 12, name, "small"))
        drawn.append(
            f'<rect x="{LEFT + place * CELL + 2}" y="{y + 2}" width="{CELL - 4}" height="{ROW - 4}" rx="4" fill="#e8edf2"/>'
        )
        for other, column in ((other, names.index(other)) for other in names if counts[name, other]):
            drawn += cell(place, column, f"{name} {other}", counts[name, other])
    drawn.append(
        text(
            14,
            height - 14,
            "Left of the diagonal, in red, would be what goes up: only a release's and a plan's offer to write their own page.",
            "small",
            "start",
        )
    )
    return "\n".join([*drawn, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
