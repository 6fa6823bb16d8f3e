"""How does a person see a release? One self-contained HTML page, written from the certificate alone.

The page loads nothing from anywhere, runs no script, and says nothing that depends on the records except the draw:
diagnostics never reach this room. Names are loaded when first touched, so importing the room is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onedraw.on_demand import names_on_demand

if TYPE_CHECKING:
    from .content import AuditFinding as AuditFinding
    from .forest_plot import forest as forest
    from .page import plan_html as plan_html
    from .page import report_html as report_html
    from .page import write_plan as write_plan
    from .page import write_report as write_report

# name → the file it lives in
_NAMES = {
    "AuditFinding": "content",
    "forest": "forest_plot",
    "plan_html": "page",
    "report_html": "page",
    "write_plan": "page",
    "write_report": "page",
}

__all__ = sorted(_NAMES)


__getattr__ = names_on_demand(__name__, _NAMES)


def __dir__() -> list[str]:
    return __all__
