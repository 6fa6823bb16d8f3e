"""Options that come from variables in the environment."""

from __future__ import annotations

import click
import pytest

from onedraw.cli import options


@pytest.mark.parametrize(
    ("flags", "given", "added"),
    [
        (["--schema", "--ledger"], ["release"], ["--schema", "s.yaml", "--ledger", "l.db"]),
        (["--schema", "--ledger"], ["release", "--ledger=x.db"], ["--schema", "s.yaml"]),
        (["--ledger"], ["evaluate", "--ledger", "x.db"], []),
    ],
)
def test_resume_command_names_what_came_from_variables(monkeypatch, flags, given, added):
    """Only options that the command has and that were not typed."""
    monkeypatch.setenv("ONEDRAW_SCHEMA", "s.yaml")
    monkeypatch.setenv("ONEDRAW_LEDGER", "l.db")
    command = click.Command(given[0], params=[click.Option([flag]) for flag in flags])
    with click.Context(command):
        assert options._from_environment(given) == added
