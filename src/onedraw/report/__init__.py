"""How does a person see a release? One self-contained HTML page, written from the certificate alone.

The page loads nothing from anywhere, runs no script, and says nothing that depends on the records except the draw:
diagnostics never reach this package. Names are loaded when first touched, so importing it is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .content import AuditFinding
    from .forest_plot import forest
    from .page import plan_html, report_html, write_plan, write_report

__all__ = ["AuditFinding", "forest", "plan_html", "report_html", "write_plan", "write_report"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(__name__, {
        "content": ("AuditFinding",),
        "forest_plot": ("forest",),
        "page": ("plan_html", "report_html", "write_plan", "write_report"),
    })  # fmt: skip
