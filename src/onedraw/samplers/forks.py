"""Forked children and JAX: refused before anything is charged, because the draw would wait for ever.

JAX computes in threads of its own, and no thread survives a fork. A child that is forked once JAX has begun to compute
waits for threads that are not there; JAX warns of it, after which the charge would stand and nothing would come out.
Closed forms of the conjugate models, and tables, need no JAX and are served in any child.

| the child is … | a release that needs JAX |
| --- | --- |
| forked before JAX computed anything | works |
| forked afterwards (also `multiprocessing` by fork) | `WrongCall`, nothing spent |
| spawned, or a joblib (loky) worker | works |
| forked in C without Python's hooks | *not detected* |
"""

from __future__ import annotations

import os
import sys
from typing import Any

from onedraw.errors import WrongCall
from onedraw.models.conjugate.family import ConjugateModel
from onedraw.models.tables.column_quantiles import ColumnQuantiles
from onedraw.models.tables.model_choice import ModelChoice
from onedraw.models.tables.table import Table

_without_threads = False


def _look() -> None:
    """Whether JAX had begun to compute when this process was forked; if that cannot be told, yes."""
    global _without_threads
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and getattr(bridge, "_backends", True):
        _without_threads = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look)


def check_fork(plan: Any) -> None:
    """Refuse a plan that needs JAX where JAX cannot run."""
    if not _without_threads or isinstance(plan.model, ConjugateModel | Table | ColumnQuantiles | ModelChoice):
        return
    raise WrongCall(
        "This process was forked after JAX had begun to compute, and JAX's threads did not come along: the draw would wait "
        'for ever. Nothing was spent. Start workers by "spawn" or with joblib, or fork before the first fit or release.'
    )
