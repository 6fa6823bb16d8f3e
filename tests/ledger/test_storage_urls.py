"""A password in a URL is printed nowhere, in whichever form it came."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from onedraw.errors import LedgerError
from onedraw.ledger import Ledger
from onedraw.ledger.storage import storage_at

SECRET = "hunter2"
PRINTED_BEFORE = [
    f"postgresql://curator@/ledger?host=/nowhere&password={SECRET}",
    f"postgresql://curator@/ledger?password={SECRET}&host=/nowhere",
    f"postgresql://curator@/ledger?host=/nowhere&sslpassword={SECRET}",
    f"postgresql://curator@/ledger?host=/nowhere&pass%77ord={SECRET}",
    f"postgresql+psycopg://curator:first@/ledger?host=/nowhere&password={SECRET}",
    f"postgresql://curator:a@{SECRET}@/ledger?host=/nowhere",
    f"postgresql://curator@/ledger?host=/nowhere&password=a@{SECRET}",
]
HIDDEN_BEFORE = [
    f"postgresql://curator:{SECRET}@/ledger?host=/nowhere",
    f"postgresql://curator:a/{SECRET}@/ledger?host=/nowhere",
    f"postgresql://curator:a?{SECRET}@/ledger?host=/nowhere",
    f"postgresql://curator:a#{SECRET}@/ledger?host=/nowhere",
]


def check_hidden(url: str) -> None:
    storage = storage_at(url)
    assert SECRET not in storage.name + repr(storage)
    assert SECRET not in repr(Ledger(storage)) + Ledger(storage).place
    assert SECRET in repr(pickle.loads(pickle.dumps(storage)).__dict__)  # it is kept, only never shown
    with pytest.raises(LedgerError, match="could not be used") as caught:
        Ledger.open(url)
    assert SECRET not in str(caught.value)


@pytest.mark.finding("C6")
@pytest.mark.postgresql
@pytest.mark.parametrize("url", PRINTED_BEFORE)
def test_no_form_of_a_password_in_a_url_is_printed(url: str) -> None:
    pytest.importorskip("psycopg")
    check_hidden(url)


@pytest.mark.postgresql
@pytest.mark.parametrize("url", HIDDEN_BEFORE)
def test_passwords_before_the_host_stay_hidden(url: str) -> None:
    pytest.importorskip("psycopg")
    check_hidden(url)


@pytest.mark.finding("C6")
def test_a_port_that_is_no_number_is_said_and_not_quoted() -> None:
    with pytest.raises(LedgerError, match="port is a number") as caught:
        Ledger.open(f"postgresql://curator@host:{SECRET}/ledger")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_rest_of_a_url_stays_readable() -> None:
    shown = storage_at("postgresql://curator:hunter2@ledger.example.org:5432/privacy?sslmode=require").name
    assert shown == "postgresql://curator:***@ledger.example.org:5432/privacy?sslmode=require"
    assert "passfile=" in storage_at("postgresql://curator@/privacy?passfile=/secrets/pgpass").name
    assert "***" not in storage_at("postgresql://curator@/privacy?passfile=/secrets/pgpass").name
    assert storage_at("ledger.db").name.endswith("/ledger.db")


@pytest.mark.finding("C6")
@pytest.mark.postgresql
def test_the_command_line_prints_no_password(
    postgresql: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from onedraw import cli

    place = f"{postgresql.new_place()}&password={SECRET}"
    dataset = ["--dataset", "patients"]
    for command in (["init", place, *dataset, "--epsilon=1"], ["show", place], ["verify", place],
                    ["top-up", place, *dataset, "--epsilon=2"], ["close", place, *dataset]):  # fmt: skip
        for as_json in ([], ["--json"]) if command[0] in ("show", "verify") else ([],):
            monkeypatch.setattr("sys.argv", ["onedraw", "ledger", *command, *as_json])
            with pytest.raises(SystemExit, match="0"):
                cli.main()
            captured = capsys.readouterr()
            assert captured.out
            assert SECRET not in captured.out + captured.err


@pytest.mark.finding("C6")
def test_an_estimator_shows_its_ledger_without_the_password() -> None:
    import onedraw as od

    place = f"postgresql://curator:{SECRET}@ledger.example.org/privacy"
    model = od.DPProportion(epsilon=1.0, classes=[0, 1], ledger=place, dataset="patients")
    assert "curator:***@ledger.example.org" in repr(model)
    assert SECRET not in repr(model) + str(model) + model._repr_html_()
    assert model.get_params()["ledger"] is place
