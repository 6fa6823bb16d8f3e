"""The picture of a report on the front page: 8,000 invented patients, released at ε = 1, seen in Chromium.

    python docs/figures/report_picture.py

Needs chromium; the numbers differ from run to run, as the draws do.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

PICTURE = Path(__file__).resolve().parents[1] / "assets" / "report.png"
ONEDRAW = Path(sys.executable).with_name("onedraw")
SCHEMA = """dataset: patients-2026
columns:
  age:        {kind: number, lower: 18, upper: 100, missing: 60}
  dose:       {kind: number, lower: 0, upper: 10, missing: 5}
  smoker:     {kind: binary, missing: no}
  readmitted: {kind: binary, missing: no}
"""
OPEN = "ledger init ledger.db --dataset patients-2026 --epsilon 3 --delta 1e-5"
RELEASE = (
    "release patients.csv --schema schema.yaml --target readmitted --model logistic --epsilon 1 "
    "--ledger ledger.db --out release.json --report report.html"
)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_patients(folder / "patients.csv")
        (folder / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        for command in (OPEN, RELEASE):
            subprocess.run([ONEDRAW, *command.split()], cwd=folder, check=True)
        photograph(folder / "report.html")


def write_patients(path: Path, *, n: int = 8000) -> None:
    invented = np.random.default_rng(20)
    age, smoker = invented.integers(18, 96, n), invented.integers(0, 2, n)
    dose = np.clip(2 + 0.06 * (age - 18) + invented.normal(0, 1.5, n), 0, 10).round(1)
    score = 0.03 * (age - 57) - 0.2 * (dose - 5) + 0.8 * (smoker - 0.5) - 0.3
    outcome = invented.uniform(size=n) < 1 / (1 + np.exp(-score))
    words = ["no", "yes"]
    lines = [f"{a},{d},{words[s]},{words[int(o)]}" for a, d, s, o in zip(age, dose, smoker, outcome, strict=True)]
    path.write_text("\n".join(["age,dose,smoker,readmitted", *lines]) + "\n", encoding="utf-8")


def photograph(report: Path, *, width: int = 900, below: str = "What the best possible attacker could do") -> None:
    """The page down to a heading, in few colours so that the file stays small."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(report.as_uri())
        end = page.get_by_role("heading", name=below).bounding_box()
        assert end is not None
        page.screenshot(path=PICTURE, clip={"x": 0, "y": 0, "width": width, "height": end["y"] - 30}, full_page=True)
        browser.close()
    Image.open(PICTURE).convert("P", palette=Image.Palette.ADAPTIVE, colors=192).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
