"""A private evaluation on the page: figures with intervals, ROC and calibration curves with their bands, the confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from onedraw.planning.evaluations import Curve, is_evaluation, scores_of
from onedraw.release import Certificate

from .formatting import brief


def evaluation_words(certificate: Certificate, plan: Any) -> dict[str, Any] | None:
    """What the page shows of an evaluation; None for any other release."""
    if not is_evaluation(plan.model):
        return None
    found = scores_of(certificate)
    return {
        "level": f"{100 * found.level:g} %",
        "figures": [(name, brief(one.value), f"{brief(one.low)} to {brief(one.high)}", brief(one.error)) for name, one in found.figures.items()],
        "classes": found.classes,
        "confusion": None if found.confusion is None else [
            (label, [f"{count:,.0f}" for count in row]) for label, row in zip(found.classes, found.confusion, strict=True)
        ],
        "within": "" if found.confusion is None else f"{found.confusion_error:,.0f}",
        "roc": None if found.roc is None else square(
            found.roc, "ROC curve: true positives against false positives", "false positives", "true positives", "roc"
        ),
        "calibration": None if found.calibration is None else square(
            found.calibration, "Calibration: share of the second class against the predicted probability", "predicted", "observed",
            "calibration", dots=True,
        ),
    }  # fmt: skip


def square(curve: Curve, title: str, across: str, up: str, name: str, *, dots: bool = False) -> Markup:
    """A curve in the unit square with its band; the diagonal is chance, or perfect calibration."""
    known = np.isfinite(curve.y)
    points = [(_x(x), _y(y)) for x, y in zip(curve.x[known], curve.y[known], strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    ends = [(x, value) for x, value in zip(curve.x[known], curve.low[known], strict=True)]
    back = [(x, value) for x, value in zip(curve.x[known], curve.high[known], strict=True)][::-1]
    band = " ".join(f"{_x(x):.1f},{_y(value):.1f}" for x, value in ends + back)
    ticks = Markup("").join(
        Markup(
            '<text x="{}" y="302" text-anchor="middle">{}</text><text x="48" y="{}" text-anchor="end">{}</text>'
            '<path class="grid" d="M{} 16V286M54 {}H350"/>'
        ).format(f"{_x(t):.1f}", label, f"{_y(t) + 4:.1f}", label, f"{_x(t):.1f}", f"{_y(t):.1f}")
        for t, label in ((0.0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %"))
    )
    marks = Markup("").join(
        Markup('<circle class="dot" cx="{}" cy="{}" r="4"/>').format(f"{x:.1f}", f"{y:.1f}") for x, y in points if dots
    )
    return Markup(
        '<svg class="tradeoff" viewBox="0 0 372 332" role="img" aria-labelledby="{name}-title"><title id="{name}-title">{title}</title>{ticks}'
        '<polygon class="safe" points="{band}"/><path class="blind" d="M{x0} {y0}L{x1} {y1}"/><polyline class="curve" points="{line}"/>{marks}'
        '<text x="202" y="324" text-anchor="middle" class="axis-name">{across}</text>'
        '<text transform="translate(11 151) rotate(-90)" text-anchor="middle" class="axis-name">{up}</text></svg>'
    ).format(
        name=name, title=title, ticks=ticks, band=band, line=line, marks=marks, across=across, up=up, x0=_x(0), y0=_y(0),
        x1=_x(1), y1=_y(1),
    )  # fmt: skip


def _x(share: float) -> float:
    return 54.0 + 296.0 * float(share)


def _y(share: float) -> float:
    return 286.0 - 270.0 * float(share)
