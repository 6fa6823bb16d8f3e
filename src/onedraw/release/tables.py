"""Tables for papers: LaTeX with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--", "≥": r"$\ge$", "≤": r"$\le$", "χ²": r"$\chi^2$",
    "ε": r"$\varepsilon$", "δ": r"$\delta$", "²": r"$^2$", "<": "$<$", ">": "$>$", "×": r"$\times$",
}  # fmt: skip


def escaped_latex(text: str) -> str:
    """Return text as LaTeX prints it."""
    text = text.replace("χ²", "\0")
    return "".join(SPECIAL["χ²"] if mark == "\0" else SPECIAL.get(mark, mark) for mark in text)


def latex(head: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]], *, note: str = "") -> str:
    """Return a ``tabular``: the first column to the left, the others to the right; rows marked True in bold; ``note`` as a last row."""
    lines = [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(escaped_latex, head)) + r" \\", r"\midrule"]
    for bold, row in rows:
        words = [escaped_latex(word) for word in row]
        lines.append(" & ".join(rf"\textbf{{{word}}}" if bold and word else word for word in words) + r" \\")
    lines.append(r"\bottomrule")
    if note:
        lines.append(rf"\multicolumn{{{len(head)}}}{{p{{\linewidth}}}}{{\footnotesize {escaped_latex(note)}}} \\")
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"
