"""Find the tests that a module has of its own (tools/mutants.py)."""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePosixPath


def own_tests(tree: Path, path: str) -> list[str]:
    """List the module's own test files, those of its name first, those that enumerate the package last."""
    inside = PurePosixPath(path).relative_to("src/onedraw")
    parts = inside.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    package, stem = parts[0], parts[-1]
    folder, beside = tree / "tests" / package, tree / "tests" / inside.parent
    files = sorted(folder.rglob("test_*.py"))
    near = sorted(beside.glob("test_*.py"))  # several methods have a module of the same name
    by_name = [file for file in near if file.stem == f"test_{stem}" or file.stem.startswith(f"test_{stem}_")]
    by_import = [file for file in files if names_module(file, inside, beside)]
    chosen = [*by_name, *(file for file in by_import if file not in by_name)]
    if not chosen:
        everywhere = sorted((tree / "tests").rglob("test_*.py"))
        imported = [file for file in everywhere if names_module(file, inside, beside)]
        chosen = near if len(inside.parts) > 2 else []
        chosen = chosen or imported or sorted(folder.glob("test_*.py"))
    every = [file for file in files if file.stem.startswith("test_every_") and file not in chosen]
    return [str(file.relative_to(tree)) for file in [*chosen, *every]]


def names_module(file: Path, inside: PurePosixPath, beside: Path) -> bool:
    """Tell whether a test file imports the module at this place in the package, or names it in its first line.

    A name without a folder is that of a module whose tests lie in the file's own folder.
    """
    text = file.read_text("utf-8")
    for word in re.findall(r"[\w/]+\.py", text.split("\n", 1)[0]):
        if f"/{inside}".endswith(f"/{word}") and ("/" in word or file.parent == beside):
            return True
    parts = inside.with_suffix("").parts
    module = ".".join(("onedraw", *(parts[:-1] if parts[-1] == "__init__" else parts)))
    parent, _, last = module.rpartition(".")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (
            node.module == module or (node.module == parent and any(alias.name == last for alias in node.names))
        ):
            return True
        if isinstance(node, ast.Import) and any(alias.name == module for alias in node.names):
            return True
    return False
