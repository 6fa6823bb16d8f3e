"""One examination of every case, shared by the tests of this folder."""

import pytest

import onedraw as od
from onedraw.audit.cases import examine
from onedraw.methods.catalog import every_case


@pytest.fixture(scope="session")
def examined():
    """name → what the exact audit found, at ε = 1, δ = 1e-5."""
    return {case.name: examine(case, thorough=False) for case in every_case(od.ApproxDP(1.0, 1e-5))}
