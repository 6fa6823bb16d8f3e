"""JAX as this library uses it: double precision throughout, compiled programs kept on disk. The one adapter.

    from onedraw.models.compute import jax, jnp

Importing this file makes float64 JAX's default for the whole process: the promises are worked out for double
precision, and a chain run in single precision by accident would not follow its law. Compiled programs are kept
in ``$ONEDRAW_CACHE`` or ``~/.cache/onedraw/jax``, so that only the first release of a kind waits for the
compiler. A program holds shapes (n is public) and options of a model, never a record: records are arguments.
Where the folder cannot be written nothing is kept, and nothing else changes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["jax", "jnp"]


def _cache_folder() -> Path | None:
    """The folder for compiled programs, or None where it cannot be made and written."""
    declared = os.environ.get("ONEDRAW_CACHE")
    try:
        folder = Path(declared) if declared else Path.home() / ".cache" / "onedraw" / "jax"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def _configure() -> None:
    config: Any = jax.config
    config.update("jax_enable_x64", True)
    folder = _cache_folder()
    if config.jax_compilation_cache_dir is None and folder is not None:
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        config.update("jax_persistent_cache_min_entry_size_bytes", -1)


_configure()
