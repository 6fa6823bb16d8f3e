"""A private folder for what is derived from records, gone when the program ends.

The folder has mode 0700 and its files 0600. It is removed when the program ends, and where the program was killed, at the next
start of one: a folder belongs to whoever holds the lock on its file ``owner``, and a lock does not survive its process.

`ONEDRAW_SCRATCH` names where such folders are made; where several machines work together, a place that all of them see.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from onedraw.data.sums import SCRATCH
from onedraw.errors import CannotWrite

_PREFIX = "onedraw-scratch-"
_BEING_MADE = "onedraw-making-"


@cache
def scratch() -> Path:
    """This program's folder: made when first asked for."""
    place = Path(os.environ.get(SCRATCH) or tempfile.gettempdir())
    try:
        remove_orphans(place)
        made = Path(tempfile.mkdtemp(prefix=_BEING_MADE, dir=place))  # mode 0700
        owner = os.open(made / "owner", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before it has the name by which others look for it
        folder = made.rename(made.with_name(made.name.replace(_BEING_MADE, _PREFIX, 1)))
    except OSError as error:
        raise CannotWrite(
            f"No private folder could be made in {place}: {error.strerror}. Encoded records are kept there while the program "
            f"runs; set {SCRATCH} to a folder that can be written, and on a cluster to one that all its machines see."
        ) from None
    atexit.register(_remove, folder, owner, os.getpid())
    return folder


def remove_orphans(place: Path) -> None:
    """Folders in ``place`` whose program is no longer there."""
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            owner = os.open(folder / "owner", os.O_RDWR)
        except OSError:  # another user's, or just removed by its own program
            continue
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its program is alive, or this file system knows no locks
            pass
        finally:
            os.close(owner)


def _remove(folder: Path, owner: int, process: int) -> None:
    if os.getpid() == process:  # not in a child that inherited this
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)
