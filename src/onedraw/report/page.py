"""Writing the page: the one file that meets Jinja.

Everything is escaped on its way into the page, so a column may be called what it likes. The page carries a content
security policy under which a browser loads nothing at all, and it runs no script.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from onedraw.errors import CannotWrite
from onedraw.ledger import Ledger
from onedraw.release import Certificate, Release, check_writable
from onedraw.release.files import write_whole

from .content import content

HERE = Path(__file__).parent


def report_html(
    release: Release | Certificate, *, ledger: Ledger | None = None, interval: Any = None, audit: Any = None,
    plan_table: Any = None,
) -> str:  # fmt: skip
    """The report as one HTML document.

    **Guarantee.** Nothing in it depends on the records except the draw, and what is computed from the draw
    (``interval``). The certificate is verified first, against ``ledger`` where it is given: one that does not hold
    gets no report (`CertificateRejected`).

    ``interval`` is a `CoefficientTable` (see `coefficient_table`) or has its attributes, or a sentence that says why
    there is none; ``audit`` an `AuditFinding` or has its attributes;
    ``plan_table`` what `onedraw.planning` chose from.
    """
    certificate = release.certificate if isinstance(release, Release) else release
    said = content(certificate, ledger=ledger, interval=interval, audit=audit, plan_table=plan_table)
    return str(template("page.html").render(said))


def write_report(
    release: Release | Certificate, path: str | os.PathLike[str], *, ledger: Ledger | None = None,
    interval: Any = None, audit: Any = None, plan_table: Any = None, overwrite: bool = False,
) -> Path:  # fmt: skip
    """Write `report_html` to ``path``, whole or not at all; `CannotWrite` before anything else is done."""
    target = Path(path)
    check_place(target, overwrite=overwrite)
    text = report_html(release, ledger=ledger, interval=interval, audit=audit, plan_table=plan_table)
    try:
        write_whole(target, text, overwrite=overwrite)
    except OSError as error:
        raise CannotWrite(
            f"The report could not be written to {target}: {error.strerror}. The release itself is not touched. Free the "
            "place or choose another, and write the report again."
        ) from error
    return target


def check_place(target: Path, *, overwrite: bool) -> None:
    if target.is_dir():
        raise CannotWrite(f"{target} is a folder. Pass the name of a file in it, such as {target / 'report.html'}.")
    if target.exists() and not overwrite:
        raise CannotWrite(
            f"{target} exists already, and a report is replaced only when asked to. Choose another name, or pass "
            "overwrite=True."
        )
    check_writable(target, overwrite=True)


@cache
def template(name: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["style"] = Markup((HERE / "style.css").read_text(encoding="utf-8"))
    return environment.get_template(name)
