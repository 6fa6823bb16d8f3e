"""Colors of style.css by the formula of WCAG 2.2, in daylight and in the dark: words 4.5 : 1, shapes 3 : 1."""

import re
from itertools import product
from pathlib import Path

import pytest

import onedraw.report

STYLE = (Path(onedraw.report.__file__).parent / "style.css").read_text(encoding="utf-8")
SCHEMES = ["light", "dark", "print"]
WORDS = [
    *product(("ink", "soft", "accent"), ("paper", "panel")),
    ("grave", "grave-paper"),
    ("grave", "paper"),
    ("mild", "mild-paper"),
    ("good", "good-paper"),
    ("accent", "safe"),
]
SHAPES = [("sampling", "paper"), ("privacy", "paper"), ("sampling", "panel"), ("privacy", "panel")]


def colours(scheme):
    """The variables as they hold in a scheme: each later block overrides the one before."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, flags=re.S)
    assert len(blocks) == 3
    found = {}
    for block in blocks[:1] if scheme == "light" else (blocks[0], blocks[SCHEMES.index(scheme)]):
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    return found


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("front", "back"), WORDS)
def test_words_can_be_read(scheme, front, back):
    palette = colours(scheme)
    assert contrast(palette[front], palette[back]) >= 4.5


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("front", "back"), SHAPES)
def test_shapes_can_be_seen(scheme, front, back):
    palette = colours(scheme)
    assert contrast(palette[front], palette[back]) >= 3.0


def test_the_formula_is_the_one_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast("#999999", "#ffffff") < 4.5
