"""Files that are there whole or not at all, and the place of a release, which is taken before anything is paid.

A release cannot be made again for nothing, so its place is made sure of first. Beside ``release.json`` stand, while it is
under way and after a crash (mode 0600, removed at the end):

| file | what it is |
| --- | --- |
| ``release.json.unfinished`` | the claim: who writes here, under which entry of the ledger, and how to finish it |
| ``release.json.draft`` | the room the certificate needs, held free; then the certificate itself |

The claim is made by ``O_EXCL`` and locked while its program lives, so of two releases to one name the second is refused;
both files are synced before the ledger is charged. A draft is whole (it parses) or holds nothing that ever left.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from onedraw.errors import CannotWrite

NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}
NO_ROOM_HELD = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
NO_FOLDER_SYNC = {errno.EINVAL, errno.EACCES, errno.EPERM, errno.EBADF, errno.EISDIR, errno.ENOTSUP}

OPEN = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
"""A link in a shared folder must not lead our writing to somebody's file."""


# ── any file ─────────────────────────────────────────────────────────────────────────────────────────────────


def check_writable(target: Path, *, overwrite: bool = False) -> None:
    """Refuse before anything is spent: an existing output, a missing folder, a place that cannot be written."""
    if os.path.lexists(target) and not overwrite:
        raise exists_already(target)
    folder = target.parent
    if not folder.is_dir():
        raise CannotWrite(f"The folder {folder} does not exist, so {target.name} cannot be written. Create it first.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotWrite(
            f"The folder {folder} cannot be written ({error.strerror}). Nothing was spent. Choose a writable place."
        ) from error


def exists_already(target: Path) -> CannotWrite:
    return CannotWrite(
        f"{target} exists already. A release is never overwritten, since each one cost budget. "
        "Choose another name, or move the old file away."
    )


def write_whole(target: Path, text: str, noun: str, *, overwrite: bool = False) -> None:
    """Write a file so that it is there whole or not at all; whatever goes wrong, nothing else is left behind.

    Without ``overwrite`` a file that came to stand there meanwhile is not touched.
    """
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                os.replace(name, target)
            else:
                move(Path(name), target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        sync_folder(target.parent)
    except FileExistsError:
        raise exists_already(target) from None
    except OSError as error:
        raise CannotWrite(
            f"The {noun} could not be written to {target}: {error.strerror}. Whatever was spent stands, and nothing else is "
            "touched: free the place or choose another, and write it again."
        ) from error


def move(source: Path, target: Path) -> None:
    """Give a file its name, never another file's: a link is refused where something stands, `os.rename` is not."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # A file system without links (FAT): take the name first, then replace what we put there ourselves.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.replace(source, target)
    else:
        os.unlink(source)


def sync_folder(folder: Path) -> None:
    """Make names survive a loss of power, where folders can be synced at all."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            let_go(handle)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise


def let_go(handle: int) -> None:
    """Close a file that is on disk already, or was only read: where this fails nothing is lost."""
    with suppress(OSError):
        os.close(handle)


# ── the place of a release ───────────────────────────────────────────────────────────────────────────────────


BEGINS = {"format": "onedraw unfinished release 1"}
BEGINNING = json.dumps(BEGINS, indent=2)[:-2]


class Claim:
    """The right to write one release, from before it is paid for until it stands there.

    `take` makes the claim, or takes up the one that an interrupted release left; `hold` makes room, `write` fills it,
    `publish` gives the certificate its name. Whoever dies in between leaves the files for `take`.
    """

    def __init__(self, target: Path, entry: str, handle: int, *, taken_up: bool) -> None:
        self.target, self.entry, self.taken_up = target, entry, taken_up
        self.draft = target.with_name(f"{target.name}.draft")
        self._handle, self._holds = handle, False

    @classmethod
    def take(cls, target: Path, entry: str, *, how: str, resume: bool = False) -> Self:
        """Claim ``target`` for ``entry``; ``how`` tells people how to finish it. Only ``resume`` takes up an old claim."""
        handle, found = _locked(target)
        if found and not (resume and found["entry"] == entry):
            let_go(handle)
            raise unfinished(target, found)
        claim = cls(target, entry, handle, taken_up=bool(found))
        if not found:
            try:
                _write(handle, json.dumps(BEGINS | {"entry": entry, "finish": how}, indent=2, ensure_ascii=False))
                sync_folder(target.parent)
            except OSError as error:
                claim.give_up()
                raise cannot_claim(target, error) from error
        return claim

    def hold(self, room: int) -> None:
        """An empty draft with room for ``room`` bytes: a full disk is noticed before the charge, not after the draw."""
        if self.draft.exists() and not self.taken_up:
            raise exists_already(self.draft)
        try:
            handle = os.open(self.draft, OPEN | os.O_CREAT | os.O_TRUNC, 0o600)
            self._holds = True
            try:
                _allocate(handle, room)
                os.fsync(handle)
            finally:
                let_go(handle)
            sync_folder(self.target.parent)
        except OSError as error:
            raise cannot_claim(self.target, error) from error

    def write(self, text: str) -> None:
        """Put the certificate into the room held for it; it is on disk when this returns."""
        handle = os.open(self.draft, OPEN)
        try:
            _write(handle, text)
        finally:
            let_go(handle)

    def publish(self, *, there: bool = False) -> None:
        """The draft becomes the release, unless it is ``there`` already; another file of that name is not touched."""
        try:
            if not there:
                move(self.draft, self.target)
        except FileExistsError:
            raise exists_already(self.target) from None
        sync_folder(self.target.parent)
        self._holds = True
        self.give_up()

    def give_up(self) -> None:
        """Remove what the claim put there: nothing was paid for, or everything is where it belongs."""
        for path in (self.draft,) * self._holds + (claim_of(self.target),):
            with suppress(OSError):
                os.unlink(path)
        self.close()

    def close(self) -> None:
        """Let go, and leave the files for whoever finishes it."""
        if self._handle >= 0:
            let_go(self._handle)
            self._handle = -1


def claim_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.unfinished")


def check_unclaimed(target: Path) -> None:
    """Refuse early, before anything is planned, what `Claim.take` would refuse later."""
    if not claim_of(target).exists():
        return
    handle, found = _locked(target)
    let_go(handle)
    if found:
        raise unfinished(target, found)


def _locked(target: Path) -> tuple[int, dict[str, str]]:
    """The claim file, locked for this program's life, and what it says: nothing if it is new, or was cut off before
    it said anything, which is before anything was paid. Refused while another program holds it."""
    path = claim_of(target)
    try:
        while True:
            try:
                handle = os.open(path, OPEN | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                handle = os.open(path, OPEN)
            try:
                _lock(handle)
                if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                    return handle, _said(handle, path)
            except BaseException:
                let_go(handle)
                raise
            let_go(handle)  # its owner ended and removed it between our opening and our locking: look again
    except BlockingIOError:
        raise CannotWrite(
            f"Another release is being written to {target} now. Nothing was spent. Wait for it, or choose another name."
        ) from None
    except OSError as error:
        raise cannot_claim(target, error) from error


def _lock(handle: int) -> None:
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        pass  # a system or a network folder without locks: the exclusive name and what the file says remain


def _said(handle: int, path: Path) -> dict[str, str]:
    """What a claim says; nothing if it was cut off. Somebody's own file of that name is left alone."""
    text = os.pread(handle, 2**20, 0).decode("utf-8", errors="replace").rstrip("\0")
    with suppress(ValueError):
        said = json.loads(text)
        if isinstance(said, dict) and isinstance(said.get("entry"), str):
            return said
    if text and not text.startswith(BEGINNING[: len(text)]):
        raise exists_already(path)
    return {}


def _write(handle: int, text: str) -> None:
    """The file's whole content, synced. What is not yet written is zeros or absent, which parses as nothing."""
    data = text.encode("utf-8")
    written = 0
    while written < len(data):
        written += os.pwrite(handle, data[written:], written)
    os.ftruncate(handle, len(data))
    os.fsync(handle)


def _allocate(handle: int, room: int) -> None:
    """Take the room now: a full disk must be noticed before the charge, not after the draw."""
    try:
        os.posix_fallocate(handle, 0, room)
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in NO_ROOM_HELD:
            raise
        _write(handle, "\0" * room)


def unfinished(target: Path, found: dict[str, str]) -> CannotWrite:
    return CannotWrite(
        f"A release to {target} was interrupted, and the ledger may have been charged for it; nothing was spent now. "
        f"Finish it with: {found.get('finish', '')}",
        entry=found["entry"],
    )


def cannot_claim(target: Path, error: OSError) -> CannotWrite:
    return CannotWrite(
        f"The place for {target.name} in {target.parent} cannot be taken ({error.strerror}). Nothing was spent. Free some "
        "space, or choose another place."
    )
