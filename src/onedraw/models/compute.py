"""JAX as this library uses it: double precision throughout, compiled programs kept on disk. The one adapter.

    from onedraw.models.compute import jax, jit, jnp

JAX is imported when something of it is first asked for, which takes a second: a file with compiled code in it (`jit`) is read
without. From then on float64 is JAX's default for the whole process: the promises are worked out for double
precision, and a chain run in single precision by accident would not follow its law. Compiled programs are kept
in ``$ONEDRAW_CACHE`` or ``~/.cache/onedraw/jax``, so that only the first release of a kind waits for the
compiler. A program holds shapes (n is public) and options of a model, never a record: records are arguments.
Where the folder cannot be written nothing is kept, and nothing else changes.

**Small passes.** Inside ``arithmetic(in_numpy=True)`` the same names mean NumPy's functions and SciPy's: loading JAX and its
compiled programs takes longer than a fit of some ten thousand records. Public numbers alone decide (`Sampler.adds_in_numpy`).

Where JAX sees an accelerator it is used, if its double precision is a processor's: matrix products run at full precision, never in
shorter floats, and `check_arithmetic` holds it to whole numbers before any sum over records is made there.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy import special

from onedraw.errors import InvalidModel

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    import jax.scipy.special

__all__ = [
    "accelerated",
    "adds_in_numpy",
    "arithmetic",
    "check_arithmetic",
    "computed_on",
    "double_precision",
    "jax",
    "jit",
    "jnp",
]

Compiled = TypeVar("Compiled", bound=Callable[..., Any])

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # as in malloc.h


@cache
def double_precision() -> Any:
    """JAX, imported and set up once; for whoever reads JAX's default before anything is computed."""
    import jax
    import jax.scipy.special  # a part that JAX does not load by itself

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    config.update("jax_default_matmul_precision", "highest")
    declared = os.environ.get("ONEDRAW_CACHE")
    try:
        folder = Path(declared) if declared else Path.home() / ".cache" / "onedraw" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            writable = True
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        writable = False
    if config.jax_compilation_cache_dir is None and writable:
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    _keep_freed_memory()
    return jax


_IN_NUMPY: ContextVar[bool] = ContextVar("in_numpy", default=False)

_NUMPY_AS_JAX = SimpleNamespace(
    device_put=np.asarray,
    nn=SimpleNamespace(sigmoid=special.expit, softmax=special.softmax),
    scipy=SimpleNamespace(special=special),
)
"""NumPy and SciPy by the names that sums over records call JAX by."""


@contextmanager
def arithmetic(*, in_numpy: bool) -> Iterator[None]:
    """Run a block whose sums over records are made by NumPy, if ``in_numpy``, and by JAX otherwise.

    NumPy's warnings are off: whether there is one may depend on a record, and JAX has none.
    """
    token = _IN_NUMPY.set(in_numpy)
    try:
        with np.errstate(all="ignore" if in_numpy else None):
            yield
    finally:
        _IN_NUMPY.reset(token)


def adds_in_numpy() -> bool:
    """Return whether NumPy makes sums over records here."""
    return _IN_NUMPY.get()


class _OnFirstUse:
    """JAX, or its NumPy, by their names."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Any:
        return getattr(self._find(), name)


if not TYPE_CHECKING:
    jax = _OnFirstUse(lambda: _NUMPY_AS_JAX if adds_in_numpy() else double_precision())
    jnp = _OnFirstUse(lambda: np if adds_in_numpy() else double_precision().numpy)


def jit(*static: int) -> Callable[[Compiled], Compiled]:
    """`jax.jit` at the first call; ``static`` are the places of arguments that a program is compiled for."""

    def decorated(function: Compiled) -> Compiled:
        compiled = cache(lambda: jax.jit(function, static_argnums=static))
        return wraps(function)(lambda *arguments: compiled()(*arguments))  # type: ignore[return-value]

    return decorated


def _keep_freed_memory() -> None:
    """Of glibc: up to 64 MB that a block of records needed wait for the next block. Given back and fetched again page by page, as
    is usual for arrays of megabytes, they took half of a fit's time. Whoever has tuned the allocator is left alone."""
    tuned = {"GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & set(os.environ)
    mallopt = None if tuned or sys.platform != "linux" else getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter, value in ((M_MMAP_THRESHOLD, 2**25), (M_TRIM_THRESHOLD, 2**26)):
            mallopt(parameter, value)


def accelerated() -> bool:
    """Whether JAX computes on something else than the processor."""
    return not adds_in_numpy() and jax.default_backend() != "cpu"


def computed_on() -> dict[str, Any]:
    """The device that sums over records are made on here: public, and the same before and after any record is read."""
    if adds_in_numpy():
        return {"platform": "cpu", "device": "cpu"}
    device = jax.devices()[0]
    return {"platform": device.platform, "device": device.device_kind, "jax": jax.__version__}


@cache
def check_arithmetic() -> None:
    """Once on an accelerator: a product of public whole numbers, of which every partial sum is below 2⁵³, is the integers it is
    on a processor. Where a device makes doubles of shorter floats the exact sums would not be exact, and nothing is summed."""
    if accelerated():
        hold_to_whole_numbers(lambda whole: np.asarray(jax.jit(lambda rows: rows @ rows.T)(whole)))


def hold_to_whole_numbers(product: Any) -> None:
    """Refused unless ``product(k)`` is kkᵀ, entry for entry; |entries of k| ≤ 2¹⁸ and 2¹⁶ columns, as sums over records have."""
    places = np.arange(32 * 2**16, dtype=np.int64).reshape(32, 2**16)
    whole = places * 2654435761 % (2**19 + 1) - 2**18  # Knuth's multiplicative hash
    whole[0], whole[1] = 2**18, 2**18 - places[1] % 2  # the largest sums, odd ones among them
    if not np.array_equal(product(whole.astype(np.float64)), whole @ whole.T):
        raise InvalidModel(
            f"This accelerator ({jax.default_backend()}) does not multiply whole numbers exactly in double precision, so sums "
            "over records would not be exact. Set JAX_PLATFORMS=cpu."
        )
