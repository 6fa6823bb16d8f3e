"""Options that come from variables in the environment."""

from __future__ import annotations

import pytest

from onedraw.cli import options


@pytest.mark.parametrize(
    ("typed", "named", "added"),
    [
        (["release", "p.csv"], {"schema": "s.yaml", "ledger": "l.db"}, ["--schema", "s.yaml", "--ledger", "l.db"]),
        (["release", "--ledger=l.db"], {"schema": "s.yaml", "ledger": "l.db"}, ["--schema", "s.yaml"]),
        (["evaluate", "--ledger", "l.db"], {"schema": None, "ledger": "l.db"}, []),
    ],
)
def test_resume_command_names_what_was_not_typed(typed, named, added):
    assert options.with_unnamed(typed, **named) == [*typed, *added]
