"""The two pages: of a release, and of a plan to read and sign before any record is read. The one file that meets Jinja.

Everything is escaped on its way into a page, so a column may be called what it likes. A page carries a content security
policy under which a browser loads nothing at all, and it runs no script. A plan's fingerprint stands on the certificate of
every release made by it, so that what was signed can be told from what was not.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from onedraw.defaults import LEVEL
from onedraw.errors import CannotWrite
from onedraw.ledger import Ledger
from onedraw.models import Several
from onedraw.release import Certificate, Estimates, Release, check_writable
from onedraw.release.files import write_whole

from .content import content, plan_content
from .table_one import table_content

HERE = Path(__file__).parent


def report_html(
    release: Release | Certificate, *, ledger: Ledger | None = None, interval: Estimates | str | None = None, audit: Any = None,
    plan_table: Any = None,
) -> str:  # fmt: skip
    """The report as one HTML document.

    **Guarantee.** Nothing in it depends on the records except the draw, and what is computed from the draw
    (``interval``). The certificate is verified first, against ``ledger`` where it is given: one that does not hold
    gets no report (`CertificateRejected`).

    ``interval`` is the release's own ``summary()``, or a sentence that says why there is none; ``audit`` an `AuditFinding` or has its attributes;
    ``plan_table`` what `onedraw.planning` chose from.
    """
    given = release if isinstance(release, Release) else Release(release)
    if isinstance(given.plan.model, Several):
        level = interval.level if isinstance(interval, Estimates) else LEVEL
        return str(template("table_one.html").render(table_content(given, ledger=ledger, level=level)))
    said = content(given, ledger=ledger, interval=interval, audit=audit, plan_table=plan_table)
    return str(template("page.html").render(said))


def plan_html(planned: Any) -> str:
    """The plan as one HTML document; ``planned`` is what `onedraw.plan` returns."""
    return str(template("plan.html").render(plan_content(planned)))


def write_report(
    release: Release | Certificate, path: str | os.PathLike[str], *, ledger: Ledger | None = None,
    interval: Estimates | str | None = None, audit: Any = None, plan_table: Any = None, overwrite: bool = False,
) -> Path:  # fmt: skip
    """Write `report_html` to ``path``, whole or not at all; `CannotWrite` before anything else is done."""
    target = Path(path)
    check_place(target, overwrite=overwrite)
    text = report_html(release, ledger=ledger, interval=interval, audit=audit, plan_table=plan_table)
    write_whole(target, text, "report", overwrite=overwrite)
    return target


def write_plan(planned: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write `plan_html` to ``path``, whole or not at all."""
    target = Path(path)
    check_place(target, overwrite=overwrite)
    write_whole(target, plan_html(planned), "plan", overwrite=overwrite)
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
