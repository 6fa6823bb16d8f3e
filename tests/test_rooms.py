"""The rooms of the package: who may see whom, and that opening the door is cheap."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_imports_go_downward_only():
    result = run(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache")
    assert result.returncode == 0, result.stdout + result.stderr


def test_import_onedraw_loads_no_heavy_library():
    heavy = [
        "jax",
        "sklearn",
        "dp_accounting",
        "pyarrow",
        "sqlalchemy",
        "scipy.stats",
        "opendp",
        "numpyro",
        "pandas",
    ]
    code = f"import onedraw, sys; print([m for m in {heavy!r} if m in sys.modules])"
    result = run(sys.executable, "-c", code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_every_public_name_of_the_top_level_resolves():
    result = run(
        sys.executable,
        "-c",
        "import onedraw as od; print(all(hasattr(od, n) for n in od.__all__), len(od.__all__))",
    )
    assert result.stdout.startswith("True"), result.stdout + result.stderr


def test_there_is_no_room_without_a_question():
    rooms = {path.stem for path in (ROOT / "src" / "onedraw").iterdir() if not path.name.startswith(("_", "."))}
    assert rooms & {"utils", "core", "common", "helpers"} == set()
