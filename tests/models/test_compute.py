"""Whole numbers on an accelerator are held to a processor's before a record is summed there; here devices are played."""

from __future__ import annotations

import types

import numpy as np
import pytest

from onedraw.errors import InvalidModel
from onedraw.models import compute
from onedraw.models.compute import jax
from onedraw.models.sums import exact_sums


def test_products_are_asked_for_at_full_precision() -> None:
    """In the program that is compiled: shorter floats for matrix products are an accelerator's default for float32."""
    assert jax.config.jax_default_matmul_precision == "highest"
    program = jax.jit(lambda rows: rows @ rows.T).lower(np.ones((2, 3))).as_text()
    assert "precision = [HIGHEST, HIGHEST]" in program
    assert "f64" in program


def test_a_processor_multiplies_whole_numbers_exactly() -> None:
    compute.hold_to_whole_numbers(lambda whole: np.asarray(jax.jit(lambda rows: rows @ rows.T)(whole)))


FAULTS = {
    "sums in single precision": lambda whole: (whole.astype(np.float32) @ whole.T.astype(np.float32)).astype(
        np.float64
    ),
    "cells in shorter floats": lambda whole: np.trunc(whole / 2**8) * 2**8 @ whole.T,
    "a sum's last bits lost": lambda whole: np.rint(whole @ whole.T / 16.0) * 16.0,
    "one entry off by one": lambda whole: whole @ whole.T + np.eye(len(whole)) * (np.arange(len(whole)) == 7),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_device_that_does_not_is_refused(fault: str) -> None:
    with pytest.raises(InvalidModel, match=r"does not multiply whole numbers exactly.*JAX_PLATFORMS=cpu"):
        compute.hold_to_whole_numbers(FAULTS[fault])


def test_no_sum_is_made_before_the_device_was_held_to_it(monkeypatch) -> None:
    def refused() -> None:
        raise InvalidModel("held")

    class Whole(exact_sums.Compiled):
        def block(self, values, weight):
            return values @ weight

    monkeypatch.setattr(exact_sums, "check_arithmetic", refused)
    with pytest.raises(InvalidModel, match="held"):
        Whole().of_block(np.ones(3), np.ones(3))


def test_public_numbers_are_sent_once_a_pass_and_what_is_left_out_stays_out(monkeypatch) -> None:
    monkeypatch.setattr(exact_sums, "accelerated", lambda: True)
    sent = exact_sums.Compiled().at_hand(2.0, np.ones(3), None)
    assert all(isinstance(part, jax.Array) for part in sent[:2])
    assert sent[2] is None


@pytest.mark.parametrize(("tuned", "calls"), [(None, [-3, -1]), ("MALLOC_TRIM_THRESHOLD_", []), ("GLIBC_TUNABLES", [])])
def test_freed_memory_is_kept_unless_somebody_has_tuned_the_allocator(monkeypatch, tuned, calls):
    found = []
    library = types.SimpleNamespace(mallopt=lambda parameter, value: found.append(parameter))
    monkeypatch.setattr(compute.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(compute.sys, "platform", "linux")
    for name in ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    if tuned:
        monkeypatch.setenv(tuned, "1")
    compute._keep_freed_memory()
    assert found == calls
    monkeypatch.setattr(compute.ctypes, "CDLL", lambda name: object())  # another C library has no such function
    compute._keep_freed_memory()
