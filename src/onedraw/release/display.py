"""How values show themselves in a notebook: a sentence, a small table, and nothing that is not escaped.

The whole of a certificate or of a choice runs to pages; `repr` gives one line, and this one screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def shown_as_html(
    sentence: str, head: Sequence[str] = (), rows: Iterable[Sequence[str]] = (), *, more: str = ""
) -> str:
    """A paragraph, a table where there are rows, and a line in small print."""
    lines = [
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    ]  # fmt: skip
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if lines else ""
    return f"<p>{escape(sentence)}</p>{table}" + (f"<p><small>{escape(more)}</small></p>" if more else "")
