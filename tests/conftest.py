"""What every test shares: a compilation cache of its own per worker, and a PostgreSQL server where one is asked for.

JAX does not write its cache atomically, and a torn entry is a warning, which is an error here.
"""

import os
from pathlib import Path

from postgresql_server import postgresql  # noqa: F401  (a fixture)

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["ONEDRAW_CACHE"] = str(Path(__file__).resolve().parents[1] / "build" / "cache" / f"tests-{WORKER}")


def pytest_collection_modifyitems(config, items):
    """With ONEDRAW_FINDING=F1 only the tests of that finding run (tools/findings_before.py)."""
    wanted = os.environ.get("ONEDRAW_FINDING")
    if not wanted:
        return
    chosen = [item for item in items if any(mark.args == (wanted,) for mark in item.iter_markers("finding"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
