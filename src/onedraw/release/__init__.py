"""May this draw leave, and with what words?

The only place where plan, exactness, randomness and budget meet: `release` is the one door a draw goes through,
`Certificate` is what it says on leaving, `verify` re-derives the promise from a certificate without the data.

The package has both a room and a verb called ``release``; this module is callable so that ``onedraw.release(plan,
data)`` works whichever was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from .certificate import Certificate
from .files import check_writable
from .intervals.replicated import interval
from .predictions import Predictions
from .release import promise_of, release
from .released import Release, load
from .verification import Verification, verify

__all__ = [
    "Certificate",
    "Predictions",
    "Release",
    "Verification",
    "check_writable",
    "interval",
    "load",
    "promise_of",
    "release",
    "verify",
]


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Release:
        return release(*arguments, **options)


_CallableRoom.__call__.__doc__ = release.__doc__
sys.modules[__name__].__class__ = _CallableRoom
