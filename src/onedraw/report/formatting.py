"""Numbers for people: few digits, rounded outward where a figure must not be understated; the certificate has them all."""

from __future__ import annotations

import math
import re
from typing import Any

from onedraw.models import model
from onedraw.release.certificate import round_up

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def shown(value: Any) -> str:
    """Four digits; exact figures are in the certificate."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "none"
    return model.shown(value)


def brief(value: float) -> str:
    """Three digits: a released number is noisy in the third already."""
    return model.shown(value, 3) if math.isfinite(value) else "none"


def whole(value: float) -> str:
    """A count: every digit of it."""
    return f"{value:,.0f}".replace("-", "−") if math.isfinite(value) else "none"


def shown_up(value: float, digits: int = 4) -> str:
    """A figure that must not be understated."""
    return f"{round_up(value, digits):.{digits}g}".replace("-", "−")


def shortened(text: str) -> str:
    """Long fractions cut after six decimals, and marked so; the certificate has every digit."""
    return re.sub(r"(\d+\.\d{6})\d{3,}(?![\d.e])", r"\1…", text)


def small(value: float) -> str:
    """A chance such as δ: a power of ten where it is one."""
    if not 0.0 < value < 1e-3:
        return shown_up(value) if value else "0"
    mantissa, exponent = f"{round_up(value, 3):.2e}".split("e")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    factor = mantissa.rstrip("0").rstrip(".")
    return power if factor == "1" else f"{factor}·{power}"


def percent(value: float) -> str:
    if not math.isfinite(value):
        return "none"
    figure = f"{100 * value:.1f}" if abs(value) >= 0.001 else f"{100 * value:.2g}"
    return f"{figure} %".replace("-", "−")


def points(value: float) -> str:
    return f"{100 * value:.2g} percentage points"
