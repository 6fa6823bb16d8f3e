"""Run a notebook and keep what its cells print: `python tools/run_notebook.py docs/first-analysis.ipynb`.

A notebook is a JSON file: cells of words, and cells of code with their outputs (nbformat 4.5). Running one needs no Jupyter: its
cells are executed in order, in one fresh namespace and an empty folder; printed text, the value of a last expression and figures
become outputs. `page` writes it as a page of the site, `shape` is what two runs have in common: releases are random, their form is
not.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import io
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]

WIDTH = 84
"""Printed lines are broken here on the page: a block that scrolls sideways is not read."""


def read(path: Path) -> Notebook:
    loaded: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def write(notebook: Notebook, path: Path) -> None:
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ── running ──────────────────────────────────────────────────────────────────────────────────────────────────


def run(notebook: Notebook, name: str = "notebook") -> Notebook:
    """The same notebook with the outputs of this run."""
    import matplotlib as mpl

    mpl.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                outputs = list(outputs_of("".join(cell["source"]), namespace, f"{name}, cell {count}", count))
                cell = cell | {"execution_count": count, "outputs": outputs}
            cells.append(cell)
    return notebook | {"cells": cells}


def outputs_of(source: str, namespace: dict[str, Any], where: str, count: int) -> Iterator[dict[str, Any]]:
    """What a cell prints, then its value, then its figures."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        value = value_of(source, namespace, where)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(keepends=True)}
    figures = drawn()
    if value is not None and not figures:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        yield {"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}
    for title, picture in figures:
        shown = {"text/plain": [title], "image/png": base64.b64encode(picture).decode()}
        yield {"output_type": "display_data", "data": shown, "metadata": {}}


def value_of(source: str, namespace: dict[str, Any], where: str) -> Any:
    """Execute a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source, where)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, where, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), where, "eval"), namespace) if isinstance(last, ast.Expr) else None


def drawn() -> list[tuple[str, bytes]]:
    """Title and PNG of every open figure; they are closed."""
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        figure, target = pyplot.figure(number), io.BytesIO()
        figure.savefig(target, format="png", dpi=90, bbox_inches="tight", metadata={"Software": None})
        titles = (axes.get_title(loc=place) for axes in figure.axes for place in ("center", "left"))
        found.append((next(filter(None, titles), "A figure"), target.getvalue()))
        pyplot.close(figure)
    return found


# ── what two runs have in common ─────────────────────────────────────────────────────────────────────────────


def shape(notebook: Notebook) -> list[list[str]]:
    """For each cell of code its outputs: kind, and words without numbers."""
    return [
        [words_of(output) for output in cell["outputs"]] for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]


DEPENDENCE = r"(Dependence on far-out records:).*?(?=Proven)"
"""A test whose outcome the noise of the day decides, and with it the sentence."""


def words_of(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", [])})
    words = re.sub(
        r"<style.*?</style>|<[^>]*>", " ", "".join(data.get("text/html", data["text/plain"])), flags=re.DOTALL
    )
    words = re.sub(DEPENDENCE, r"\1 # ", words, flags=re.DOTALL)
    words = re.sub(r"\b[0-9a-f]{12,}\b|[<−-]?\s*\d[\d.,:]*(e[-+]?\d+)?", " # ", html.unescape(words))
    return f"{output['output_type']} {' '.join(sorted(data))}: {' '.join(words.split())}"


# ── as a page ────────────────────────────────────────────────────────────────────────────────────────────────


def page(notebook: Notebook) -> str:
    """Markdown: words as they are, code and what it printed in blocks, tables and pictures as HTML."""
    pieces = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            pieces.append(source)
            continue
        pieces += [f"```python\n{source}\n```", *map(shown, cell["outputs"])]
    return "\n\n".join(pieces) + "\n"


def shown(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", [])})
    plain = "".join(data["text/plain"]).rstrip()
    if "image/png" in data:
        return f'<div class="output"><img alt="{html.escape(plain)}" src="data:image/png;base64,{data["image/png"]}"></div>'
    if "text/html" in data:
        written = re.sub(r"(?s)<style.*?</style>| border=\"1\"| class=\"dataframe\"", "", "".join(data["text/html"]))
        written = "\n".join(line for line in written.splitlines() if line.strip())  # an empty line would end the block
        return f'<div class="output" role="region" tabindex="0" aria-label="Output">\n{written}\n</div>'
    lines = [piece for line in plain.splitlines() for piece in textwrap.wrap(line, WIDTH) or [""]]
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        write(run(read(given), given.name), given)
