"""What every test shares: a compilation cache of its own per worker.

JAX does not write its cache atomically, and a torn entry is a warning, which is an error here.
"""

import os
from pathlib import Path

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
os.environ["ONEDRAW_CACHE"] = str(Path(__file__).resolve().parents[1] / "build" / "cache" / f"tests-{WORKER}")
