"""Cells of a study, a line of JSON each, written as it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a file; a last line that was cut off is left out."""
    cells = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            cells.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return cells
