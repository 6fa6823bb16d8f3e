"""Find the tests that a module has of its own (tools/mutants.py)."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath


def own_tests(tree: Path, path: str) -> list[str]:
    """List the module's own test files, those of its name first, those that enumerate the package last."""
    parts = PurePosixPath(path).relative_to("src/onedraw").with_suffix("").parts
    package, stem = parts[0], parts[-1] if parts[-1] != "__init__" else parts[-2]
    folder = tree / "tests" / package
    files = sorted(folder.rglob("test_*.py"))
    by_name = [file for file in files if file.stem == f"test_{stem}" or file.stem.startswith(f"test_{stem}_")]
    by_import = [file for file in files if names_module(file, ".".join(("onedraw", *parts)), stem)]
    chosen = [*by_name, *(file for file in by_import if file not in by_name)]
    if not chosen:
        nested = tree / "tests" / Path(*parts[:-1])
        everywhere = sorted((tree / "tests").rglob("test_*.py"))
        imported = [file for file in everywhere if names_module(file, ".".join(("onedraw", *parts)), stem)]
        chosen = sorted(nested.glob("test_*.py")) if len(parts) > 2 else []
        chosen = chosen or imported or sorted(folder.glob("test_*.py"))
    every = [file for file in files if file.stem.startswith("test_every_") and file not in chosen]
    return [str(file.relative_to(tree)) for file in [*chosen, *every]]


def names_module(file: Path, module: str, stem: str) -> bool:
    """Tell whether a test file imports `module` or names it in its first line."""
    text = file.read_text("utf-8")
    if f"{stem}.py" in text.split("\n", 1)[0] or module in text.split("\n", 1)[0]:
        return True
    parent, _, last = module.rpartition(".")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (
            node.module == module or (node.module == parent and any(alias.name == last for alias in node.names))
        ):
            return True
        if isinstance(node, ast.Import) and any(alias.name == module for alias in node.names):
            return True
    return False
