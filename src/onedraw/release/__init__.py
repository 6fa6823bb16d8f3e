"""May this draw leave, and with what words?

The only place where plan, exactness, randomness and budget meet: `release` is the one way out for a draw,
`Certificate` is what it says on leaving, `verify` re-derives the promise from a certificate without the data.

There are both a package and a function called ``release``; this module is callable so that ``onedraw.release(plan,
data)`` works whichever was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from onedraw.methods.draws.replicated import interval
from onedraw.release.evaluations import scores_of

from .certificate import Certificate
from .estimates import Estimate, Estimates
from .files import check_writable
from .predictions import Predictions
from .private_bounds import bounds_of
from .release import release
from .released import Release
from .statement import promise_of
from .verification import Verification, load, verify

__all__ = [
    "Certificate", "Estimate", "Estimates", "Predictions", "Release", "Verification", "bounds_of", "check_writable", "interval", "load",
    "promise_of", "release", "scores_of", "verify",
]  # fmt: skip


class _CallableRoom(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Release:
        return release(*arguments, **options)


_CallableRoom.__call__.__doc__ = release.__doc__
sys.modules[__name__].__class__ = _CallableRoom
