"""Seeds of the statistical tests: fresh on every run, printed on failure, set by ONEDRAW_TEST_SEED."""

from __future__ import annotations

import hashlib
import os
import secrets

import pytest

ROOT_SEED = int(os.environ.get("ONEDRAW_TEST_SEED") or secrets.randbits(63))


@pytest.fixture
def test_seed(request: pytest.FixtureRequest) -> int:
    """A seed of this test's own, so that tests do not share their luck."""
    print(f"to repeat this run: ONEDRAW_TEST_SEED={ROOT_SEED}")
    return int.from_bytes(hashlib.sha256(f"{ROOT_SEED} {request.node.nodeid}".encode()).digest()[:8], "little")
