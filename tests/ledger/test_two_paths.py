"""A ledger that is reached under two paths around a kill (mark.py): no acknowledged spend disappears without a word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from onedraw.ledger import Ledger

from . import two_paths
from .two_paths import WAYS, begin, die_while_reserving, outcome, second_path, spend, spend_and_return

WORKER = Path(two_paths.__file__)
KILLS = 300
MIN_HOT_JOURNALS = 3
"""A third of the kills leave one on a slow disk, one in forty in memory."""
TWO_PATHS = [
    pytest.param(way, marks=pytest.mark.skipif(way == "bind mount" and not two_paths.may_mount(), reason="mounting"))
    for way in WAYS
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger that a process has left in the middle of a reservation."""
    begin(tmp_path / "ledger.db")
    die_while_reserving(tmp_path / "ledger.db")
    return tmp_path / "ledger.db"


@pytest.fixture
def only_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that can be seen from outside is refused; earlier versions refused nothing either."""
    try:
        from onedraw.ledger import mark
    except ImportError:
        return
    monkeypatch.setattr(mark, "REFUSE_WHAT_IS_SEEN", False)


def test_journal_of_a_dead_process_is_applied_on_one_path(path: Path) -> None:
    """The journal of these tests is a hot one: SQLite applies and removes it."""
    assert two_paths.is_hot(path)
    assert Ledger.open(path).remaining("patients").epsilon == 1.0
    assert not Path(f"{path}-journal").exists()


@pytest.mark.finding("reliability N1", commit="8a7c0fb")
@pytest.mark.parametrize("way", TWO_PATHS)
def test_second_path_is_refused_and_nothing_is_lost(path: Path, way: str) -> None:
    assert spend_and_return(way, path, with_mark=False) == "nothing spent"


@pytest.mark.finding("reliability N1", commit="8a7c0fb")
@pytest.mark.usefixtures("only_the_mark")
@pytest.mark.parametrize("way", TWO_PATHS)
def test_mark_alone_refuses_second_path_without_it(path: Path, way: str) -> None:
    assert spend_and_return(way, path, with_mark=False) == "nothing spent"


@pytest.mark.finding("reliability N1", commit="8a7c0fb")
@pytest.mark.usefixtures("only_the_mark")
@pytest.mark.parametrize("way", TWO_PATHS)
def test_mark_alone_that_is_reached_too_shows_the_loss(path: Path, way: str) -> None:
    """The second path has the mark but not the journal: it spends, and the first path is refused afterwards."""
    assert spend_and_return(way, path, with_mark=True) == "refused loudly"


@pytest.mark.usefixtures("only_the_mark")
def test_planted_fault_without_comparison_loses_spends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment can fail: without the comparison the same spends disappear silently."""
    from onedraw.ledger import storage

    monkeypatch.setattr(storage, "compare", lambda *_: None)
    assert spend_and_return("hard link", path, with_mark=False) == "lost silently"


def test_second_path_without_journal_keeps_spends(tmp_path: Path) -> None:
    """Nobody died: a ledger moved by hand with its mark is the same ledger."""
    begin(tmp_path / "ledger.db")
    with second_path("move", tmp_path / "ledger.db", with_mark=True) as other:
        acknowledged = spend(other, 3)
    assert len(acknowledged) == 3
    assert outcome(tmp_path / "ledger.db", acknowledged) == "kept"


def test_folder_under_another_name_is_the_same_ledger(tmp_path: Path) -> None:
    """A folder may be mounted, linked and renamed: the journal and the mark lie in it."""
    (tmp_path / "data").mkdir()
    begin(tmp_path / "data" / "ledger.db")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert len(spend(tmp_path / "link" / "ledger.db", 2)) == 2
    (tmp_path / "data").rename(tmp_path / "renamed")
    assert len(spend(tmp_path / "renamed" / "ledger.db", 2)) == 2
    assert Ledger.open(tmp_path / "renamed" / "ledger.db").account("patients").reservations == 4


def counts_of(*arguments: object) -> Counter[str]:
    completed = subprocess.run(
        [sys.executable, str(WORKER), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=3000
    )
    assert completed.returncode == 0, completed.stderr
    print(completed.stdout)
    return Counter(json.loads(completed.stdout))


@pytest.mark.slow
@pytest.mark.finding("reliability N1", commit="8a7c0fb")
@pytest.mark.parametrize("checks", ["all", "mark"])
@pytest.mark.parametrize("way", TWO_PATHS)
def test_kills_under_two_paths_lose_nothing_silently(way: str, checks: str) -> None:
    counts = counts_of("study", way, KILLS, checks)
    assert counts["kills"] == KILLS
    assert counts["hot journals"] >= MIN_HOT_JOURNALS  # otherwise the study would show nothing
    assert counts["lost silently"] == 0


@pytest.mark.slow
def test_kills_under_two_paths_without_checks_lose_spends() -> None:
    """The planted fault: the same study without refusals and without the mark sees spends disappear."""
    assert counts_of("study", "hard link", KILLS, "none")["lost silently"] > 0


@pytest.mark.slow
def test_kills_under_one_path_refuse_no_ledger() -> None:
    counts = counts_of("one-path", KILLS)
    assert counts["hot journals"] >= MIN_HOT_JOURNALS
    assert counts["nothing spent"] == KILLS
    assert counts["in the end kept"] == 1
