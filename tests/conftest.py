"""What every test shares: one cache of compiled programs, a PostgreSQL server where one is asked for, and seeds.

Seeds of the statistical tests are fresh on every run, printed on failure, and set by ONEDRAW_TEST_SEED.

The workers of a run, the commands they start and the runs that follow compile a program once between them. JAX does not
write an entry atomically: what is met half written is compiled again, with a warning that is let pass (pyproject.toml).

NumPy's matrix products run on one processor: the workers have all of them already, and threads that wait for each other in turns
took up to thirty times the processor seconds of the products.

Temporary folders lie in memory where there is room: ledgers wait for the disk at every entry, thousands of times in a run.
"""

import hashlib
import os
import secrets
import shutil
from pathlib import Path

import pytest

from tests.postgresql_server import postgresql  # noqa: F401  (a fixture)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is first imported, which nothing above does
os.environ["ONEDRAW_CACHE"] = str(Path(__file__).resolve().parents[1] / "build" / "cache" / "tests")

MEMORY = Path("/dev/shm")


def in_memory() -> bool:
    """Whether there is a file system in memory with 4 GiB to spare, on which programs may lie too."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < 4 * 2**30:
        return False
    return not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC


if in_memory():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # pytest's own name for where its folders lie


ROOT_SEED = int(os.environ.get("ONEDRAW_TEST_SEED") or secrets.randbits(63))


@pytest.fixture
def test_seed(request: pytest.FixtureRequest) -> int:
    """A seed of this test's own, so that tests do not share their luck."""
    print(f"to repeat this run: ONEDRAW_TEST_SEED={ROOT_SEED}")
    return int.from_bytes(hashlib.sha256(f"{ROOT_SEED} {request.node.nodeid}".encode()).digest()[:8], "little")


FIRST_REVIEWED = "da2a7c6"
"""The commit of the first review, whose findings name no commit."""


def pytest_collection_modifyitems(config, items):
    """With ONEDRAW_FINDINGS_OF=8a7c0fb select the tests of that review's findings, with ONEDRAW_FINDING="reliability N1" those of
    one finding (tools/findings_before.py)."""
    commit, name = os.environ.get("ONEDRAW_FINDINGS_OF"), os.environ.get("ONEDRAW_FINDING")

    def is_wanted(mark):
        return commit in (None, mark.kwargs.get("commit", FIRST_REVIEWED)) and name in (None, *mark.args)

    if commit or name:
        chosen = [item for item in items if any(map(is_wanted, item.iter_markers("finding")))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
