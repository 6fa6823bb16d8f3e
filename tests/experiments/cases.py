"""What tests of studies share: the quick cells of one, computed here and held against its expectations."""

from __future__ import annotations

from experiments.expectations import Checked, check, expectations
from experiments.study import FOLDER, Study, Table


def quickly_checked(study: Study) -> list[Checked]:
    """Without the runner's processes and files."""
    pieces = study.pieces(quick=True, seeds=None)
    rows = [{**cell, **row} for cell, seeds in pieces for row in study.run(seeds=seeds, **cell)]
    found = study.quantities(Table({name: [row[name] for row in rows] for name in rows[0]}))
    home = FOLDER.joinpath(*study.run.__module__.split(".")[1:-1])
    return check(expectations(study, home), found, seeds=1, reduced=True)
