"""One charge, one draw: what may be finished after an interruption, and what may not."""

import errno
import importlib
import os
import pathlib
import stat
import sys

import numpy as np
import pytest

import onedraw as od
from onedraw import errors, privacy
from onedraw.samplers import Exact


class Interrupted(Exact):
    """An exact sampler that does something first, and counts."""

    def __init__(self, first=lambda: None):
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "ran", [])

    def to_dict(self):
        return Exact().to_dict()

    def run(self, *arguments, **options):
        self.ran.append(True)
        self.first()
        return super().run(*arguments, **options)


def power_cut():
    raise RuntimeError("a record's value, 4711")


@pytest.fixture
def release(plan, records, ledger, tmp_path):
    """A release to out.json under the ledger, with changes."""

    def call(**changes):
        options = {"ledger": ledger, "dataset": "patients", "label": "first", "out": tmp_path / "out.json"} | changes
        return od.release(options.pop("plan", plan), options.pop("records", records), **options)

    return call


@pytest.fixture
def interrupted(release):
    """The entry of a release that was charged and then stopped before it drew."""
    with pytest.raises(errors.Unfinished) as stopped:
        release(sampler=Interrupted(power_cut))
    return stopped.value.entry


@pytest.fixture
def unsettled(release, ledger, monkeypatch):
    """The entry of a release whose certificate was whole on disk when the ledger could not be reached."""

    def gone(*_):
        raise errors.LedgerError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(ledger), "settle", gone)
        with pytest.raises(errors.Unfinished) as stopped:
            release()
    return stopped.value.entry


def kinds(ledger):
    return [event.kind for event in ledger.events("patients")][1:]


def files(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("out.json"))


def test_a_release_stands_where_it_was_asked_for_and_nothing_else_does(release, ledger, tmp_path):
    found = release()
    assert files(tmp_path) == ["out.json"]
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o600
    assert od.Release.load(tmp_path / "out.json") == found
    assert od.verify(tmp_path / "out.json", ledger=ledger).answer == "authentic"
    assert kinds(ledger) == ["reserved", "settled"]


def test_without_a_ledger_the_file_is_as_safe(release, tmp_path):
    release(ledger=None, dataset=None)
    assert files(tmp_path) == ["out.json"]
    with pytest.raises(errors.CannotWrite, match="exists already"):
        release(ledger=None, dataset=None)
    with pytest.raises(errors.WrongCall, match="no ledger"):
        release(ledger=None, dataset=None, resume="0" * 32)


def test_an_interrupted_release_says_how_to_finish_it_and_quotes_no_record(release, ledger, tmp_path):
    with pytest.raises(errors.Unfinished) as stopped:
        release(sampler=Interrupted(power_cut), how_to_resume="finish ENTRY")
    assert f"finish {stopped.value.entry}" in str(stopped.value)
    assert "4711" not in str(stopped.value)
    assert files(tmp_path) == ["out.json.draft", "out.json.unfinished"]
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in files(tmp_path)} == {0o600}
    with pytest.raises(errors.CannotWrite, match=f"finish {stopped.value.entry}"):
        release()
    assert kinds(ledger) == ["reserved"]


def test_an_interrupted_release_is_finished_under_its_charge(release, ledger, tmp_path, interrupted):
    release(resume=interrupted)
    assert files(tmp_path) == ["out.json"]
    assert kinds(ledger) == ["reserved", "settled"]
    assert od.verify(tmp_path / "out.json", ledger=ledger).answer == "authentic"


@pytest.mark.parametrize(
    ("change", "words"),
    [({"label": "second"}, "label"), ({"random_state": 1}, "seeded"), ({"dataset": "others"}, "dataset, question"),
     ({"plan": None}, "question, promise")],
)  # fmt: skip
def test_another_release_cannot_be_made_under_the_charge(release, ledger, tmp_path, interrupted, change, words):
    ledger.init("others", od.ApproxDP(3.0, 1e-5))
    if "plan" in change:
        model = od.models.BetaBernoulli(prior=(1, 1))
        change = {"plan": od.calibrate(od.Diffused(), model, od.ApproxDP(0.5, 1e-6), n=200)}
    sampler = Interrupted()
    with pytest.raises(errors.LedgerError, match=f"paid for another release: {words} differ"):
        release(resume=interrupted, sampler=sampler, **change)
    assert not sampler.ran
    release(resume=interrupted)  # and the right one still can
    assert files(tmp_path) == ["out.json"]


def test_another_number_of_records_cannot_be_released_under_the_charge(release, interrupted, records):
    with pytest.raises(errors.CountMismatch):
        release(resume=interrupted, records=records[:-1])


def test_a_whole_certificate_is_never_drawn_again(release, ledger, tmp_path, unsettled):
    drawn, sampler = (tmp_path / "out.json.draft").read_text(), Interrupted()
    release(resume=unsettled, sampler=sampler)
    assert not sampler.ran
    assert (tmp_path / "out.json").read_text() == drawn
    assert kinds(ledger) == ["reserved", "settled"]


def test_a_draft_given_its_name_by_hand_counts_as_published(release, ledger, tmp_path, unsettled):
    os.rename(tmp_path / "out.json.draft", tmp_path / "out.json")
    drawn, sampler = (tmp_path / "out.json").read_text(), Interrupted()
    release(resume=unsettled, sampler=sampler)
    assert not sampler.ran
    assert (tmp_path / "out.json").read_text() == drawn
    assert od.verify(tmp_path / "out.json", ledger=ledger).answer == "authentic"
    assert files(tmp_path) == ["out.json"]


def test_a_settled_entry_gives_its_certificate_again_and_no_other(release, ledger, tmp_path):
    first, sampler = release(), Interrupted()
    entry = first.certificate.ledger.entry
    assert release(resume=entry, sampler=sampler) == first
    os.rename(tmp_path / "out.json", tmp_path / "elsewhere.json")
    with pytest.raises(errors.LedgerError, match="is settled"):
        release(resume=entry, sampler=sampler)
    assert not sampler.ran
    assert files(tmp_path) == []
    assert kinds(ledger) == ["reserved", "settled"]


def test_an_unknown_entry_is_not_resumed(release, ledger, tmp_path):
    with pytest.raises(errors.LedgerError, match="nothing to resume"):
        release(resume="0" * 32)
    assert files(tmp_path) == []
    assert kinds(ledger) == []


def test_another_ledger_does_not_touch_what_stands_unfinished(release, ledger, tmp_path, unsettled):
    other = od.Ledger.open(tmp_path / "other.db", create=True)
    other.init("patients", od.ApproxDP(3.0, 1e-5))
    with pytest.raises(errors.LedgerError, match="nothing to resume"):
        release(resume=unsettled, ledger=other)
    release(resume=unsettled)
    assert files(tmp_path) == ["out.json"]


def test_a_release_that_is_under_way_is_not_resumed(release, ledger, tmp_path):
    def from_elsewhere():
        entry = ledger.events("patients")[-1].entry
        with pytest.raises(errors.CannotWrite, match="being written"):
            release(resume=entry)

    release(sampler=Interrupted(from_elsewhere))
    assert files(tmp_path) == ["out.json"]
    assert kinds(ledger) == ["reserved", "settled"]


def test_a_name_taken_meanwhile_is_not_overwritten_and_the_draw_is_kept(release, ledger, tmp_path):
    with pytest.raises(errors.Unfinished, match="exists already") as stopped:
        release(sampler=Interrupted(lambda: (tmp_path / "out.json").write_text("precious")))
    assert (tmp_path / "out.json").read_text() == "precious"
    assert kinds(ledger) == ["reserved", "settled"]
    (tmp_path / "out.json").unlink()
    release(resume=stopped.value.entry)
    assert od.verify(tmp_path / "out.json", ledger=ledger).answer == "authentic"


def test_a_spent_budget_leaves_no_claim(release, ledger, tmp_path):
    ledger.init("small", od.ApproxDP(0.1, 1e-6))
    with pytest.raises(errors.BudgetSpent):
        release(dataset="small")
    assert files(tmp_path) == []


def test_a_draw_in_memory_is_finished_under_its_charge_too(release, ledger):
    with pytest.raises(RuntimeError) as stopped:
        release(out=None, sampler=Interrupted(power_cut))
    entry = ledger.events("patients")[-1].entry
    assert f"resume={entry!r}" in stopped.value.__notes__[0]
    release(out=None, resume=entry)
    assert kinds(ledger) == ["reserved", "settled"]
    with pytest.raises(errors.LedgerError, match="is settled"):
        release(out=None, resume=entry)


def test_of_two_draws_under_one_charge_only_the_settled_one_leaves(release, ledger):
    """The second begins while the first is drawing; whichever settles first is the release, the other never returns."""
    inner = []

    def second():
        inner.append(release(out=None, resume=ledger.events("patients")[-1].entry))

    with pytest.raises(errors.LedgerError, match="settled already"):
        release(out=None, sampler=Interrupted(second))
    entry = inner[0].certificate.ledger.entry
    assert ledger.certificate_digest(entry) == inner[0].certificate.digest
    assert kinds(ledger) == ["reserved", "settled"]


def test_a_folder_without_links_is_served(release, ledger, tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    release()
    assert files(tmp_path) == ["out.json"]
    with pytest.raises(errors.CannotWrite, match="exists already"):
        release()


def test_the_room_that_is_held_is_enough_for_any_draw(mean_plan, tmp_path, monkeypatch):
    """The bound is public: it may not depend on the draw, so it must hold for the longest numbers there are."""
    module = importlib.import_module("onedraw.release.release")
    from onedraw.release import files as places

    held = []
    monkeypatch.setattr(places, "_allocate", lambda handle, room: held.append(room))
    longest = -np.nextafter(sys.float_info.max, 0)
    monkeypatch.setattr(module, "on_lattice", lambda *_: np.full((1, 1), longest))
    od.release(mean_plan, np.zeros(100), out=tmp_path / "out.json")
    assert str(longest) in (tmp_path / "out.json").read_text()
    assert (tmp_path / "out.json").stat().st_size <= held[0] < 20_000


def test_what_was_promised_is_about_one_draw_alone(release, ledger, interrupted):
    """The ledger spent once, and what it spent is what the certificate says."""
    certificate = release(resume=interrupted).certificate
    spent = ledger.spent("patients").epsilon(1e-6)
    assert spent <= certificate.promise.epsilon
    assert privacy.Promise.from_dict(certificate.promise.native).epsilon(1e-6) == pytest.approx(spent)


def test_somebodys_own_file_of_that_name_is_left_alone(release, ledger, tmp_path):
    (tmp_path / "out.json.unfinished").write_text("my notes\n")
    with pytest.raises(errors.CannotWrite, match=r"out\.json\.unfinished exists already"):
        release()
    assert (tmp_path / "out.json.unfinished").read_text() == "my notes\n"
    assert kinds(ledger) == []


@pytest.mark.parametrize("name", ["out.json.unfinished", "out.json.draft"])
def test_a_link_laid_in_a_shared_folder_is_not_followed(release, ledger, tmp_path, name):
    victim = tmp_path / "victim"
    victim.write_text("")
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(errors.CannotWrite):
        release()
    assert victim.read_text() == ""
    assert kinds(ledger) == []


@pytest.mark.parametrize("said", ["", '{\n  "format": "onedraw unf', "\0" * 40])
def test_a_claim_cut_off_before_the_charge_is_taken_over(release, tmp_path, said):
    (tmp_path / "out.json.unfinished").write_text(said)
    release()
    assert files(tmp_path) == ["out.json"]


# A disk that fails (tools/exhaustive_faults.py found these).


def test_payment_with_unreadable_draft_draws_nothing(release, ledger, tmp_path, unsettled, monkeypatch):
    """The draw that was paid for may be in the draft: another one would be a choice between two."""
    draft, read = tmp_path / "out.json.draft", pathlib.Path.read_text
    drawn, sampler = draft.read_text(), Interrupted()

    def fails(path, *arguments, **options):
        if path == draft:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return read(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "read_text", fails)
        with pytest.raises(errors.OnedrawError, match="may hold the draw that was paid for"):
            release(resume=unsettled, sampler=sampler)
    assert not sampler.ran
    release(resume=unsettled)
    assert (tmp_path / "out.json").read_text() == drawn
    assert kinds(ledger) == ["reserved", "settled"]


def test_payment_with_failing_close_says_how_to_finish(release, tmp_path, monkeypatch):
    """A disk that fails altogether fails at closing too, which must not hide the message."""
    close = os.close

    def fails(handle):
        is_claim = os.readlink(f"/proc/self/fd/{handle}").endswith("out.json.unfinished")
        close(handle)
        if is_claim:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", fails)
    with pytest.raises(errors.Unfinished) as stopped:
        release(sampler=Interrupted(power_cut), how_to_resume="finish ENTRY")
    assert f"finish {stopped.value.entry}" in str(stopped.value)
