"""Build the documentation site: `python tools/build_site.py [folder]`, by default the repository's own build/docs.

The pages of docs/ are written to be read in the repository as well, so they link to files beside the code: theorem notes,
tables of the benchmarks, source files. Those files are gathered as pages of the site, and the links follow them. A notebook is a
page with its outputs, and a file beside it.
Zensical builds strictly: a link that leads nowhere is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import run_notebook

ROOT = Path(__file__).resolve().parents[1]
PAGES, SITE = Path("build/docs/pages"), Path("build/docs/site")

# folder or file of the repository → where its pages stand on the site; anything else is listed under source/
PLACES = {
    "docs/figures/": "source/docs/figures/",
    "docs/": "",
    "src/onedraw/baselines/": "theorems/",
    "src/onedraw/planning/": "theorems/",
    "src/onedraw/privacy/": "theorems/",
    "benchmarks/results/": "results/",
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LANGUAGES = {".py": "py", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".sh": "sh"}

FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\(\s*<?)([^)\s>#]+)")


def main(folder: Path = ROOT) -> None:
    """Gather the pages under a folder and build the site there."""
    gather(folder / PAGES)
    build(folder)


def build(folder: Path) -> None:
    if folder != ROOT:
        shutil.copy(ROOT / "mkdocs.yml", folder)
    command: list[str | Path] = [Path(sys.executable).with_name("zensical"), "build", "--strict", "--clean"]
    subprocess.run([*command, "--config-file", folder / "mkdocs.yml"], check=True, cwd=folder)


def gather(pages: Path) -> None:
    """Copy docs/ and all it links to, with links that fit the new places."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    waiting = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    waiting += [*(ROOT / "docs").glob("*.md"), *(ROOT / "src/onedraw").rglob("*.md")]
    for notebook in (ROOT / "docs").glob("*.ipynb"):
        shutil.copy(notebook, pages)
        (pages / place_of(notebook)).write_text(run_notebook.page(run_notebook.read(notebook)), encoding="utf-8")
    done: set[Path] = set()
    while waiting:
        source = waiting.pop()
        if source in done:
            continue
        done.add(source)
        page = pages / place_of(source)
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text, found = moved_links(source)
            page.write_text(text, encoding="utf-8")
            waiting += found
        else:
            page.write_text(listing(source), encoding="utf-8")


def place_of(source: Path) -> Path:
    """Where a file of the repository stands on the site; a method's proof.md under the name of the method."""
    name = source.relative_to(ROOT).as_posix()
    beginning = next((folder for folder in PLACES if name.startswith(folder)), None)
    if name.startswith("src/onedraw/methods/") and source.suffix == ".md":
        return Path("theorems", f"{source.parent.name if source.name == 'proof.md' else source.stem}.md")
    if beginning is not None and (source.suffix == ".md" or is_asset(source)):
        return Path(PLACES[beginning] + name.removeprefix(beginning))
    if source.suffix == ".ipynb":
        return Path(source.name).with_suffix(".md")
    return Path("source", f"{name}.md")


def is_asset(source: Path) -> bool:
    return source.is_relative_to(ROOT / "docs/assets")


def moved_links(source: Path) -> tuple[str, list[Path]]:
    """A page's text with its relative links rewritten, and the files they lead to."""
    found: list[Path] = []
    here = place_of(source).parent

    def moved(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if re.match(r"[a-z]+:", link[2]) or not target.is_file() or not target.is_relative_to(ROOT):
            return link[0]
        if not is_asset(target) and target.suffix != ".ipynb":
            found.append(target)
        return link[1] + Path(os.path.relpath(place_of(target), here)).as_posix()

    pieces = FENCED.split(source.read_text(encoding="utf-8"))
    return "".join(piece if piece.startswith("```") else LINK.sub(moved, piece) for piece in pieces), found


def listing(source: Path) -> str:
    """A page that shows a source file."""
    name = source.relative_to(ROOT).as_posix()
    return f"# {name}\n\n````{LANGUAGES.get(source.suffix, 'text')}\n{source.read_text(encoding='utf-8')}````\n"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
