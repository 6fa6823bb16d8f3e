"""Names that could be taken for one another: a budget belongs to a name, so a second name is a second budget.

Refused where a dataset, a partition or a part is begun (names that stand in older ledgers stay usable):

* what Unicode's NFKC would write otherwise: full-width and mathematical letters, ligatures, ², ½, no-break spaces;
* characters that show nothing (Default_Ignorable_Code_Point, DerivedCoreProperties 15.0; the Braille blank), and two
  spaces in a row;
* Latin, Greek, Cyrillic or Armenian letters mixed in one word;
* a name equal to one that stands beside it but for case, for the letters of those four scripts that are drawn alike,
  for 0 and O, for 1, l, I and |, or for the kind of hyphen.

Not refused, because no short rule tells them apart: pairs such as rn and m, look-alikes within or between other scripts,
accents that are easily overlooked, and names that mean the same (patients-26, patients_2026). The full table is Unicode's
UTS 39, "confusables".
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_WORDS = re.compile(r"[\W\d_]+")
_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")

# From UTS 39: letters drawn like a Latin one (or like l, which stands for 1, I and | too).
_DRAWN_LIKE = {
    "а": "a", "ɑ": "a", "α": "a", "с": "c", "ԁ": "d", "е": "e", "һ": "h", "հ": "h", "і": "i", "ι": "i", "ı": "i",
    "ј": "j", "к": "k", "κ": "k", "ӏ": "l", "ո": "n", "п": "n", "о": "o", "ο": "o", "օ": "o", "σ": "o", "р": "p", "ρ": "p",
    "ԛ": "q", "գ": "q", "г": "r", "ѕ": "s", "ս": "u", "υ": "u", "ν": "v", "ѵ": "v", "ԝ": "w", "ա": "w", "х": "x", "χ": "x",
    "у": "y", "ү": "y", "γ": "y", "А": "A", "Α": "A", "В": "B", "Β": "B", "С": "C", "Ϲ": "C", "Е": "E", "Ε": "E",
    "Ζ": "Z", "Н": "H", "Η": "H", "І": "l", "Ι": "l", "Ӏ": "l", "Ј": "J", "К": "K", "Κ": "K", "М": "M", "Μ": "M", "Ν": "N",
    "О": "O", "Ο": "O", "Օ": "O", "Р": "P", "Ρ": "P", "Ԛ": "Q", "Ѕ": "S", "Տ": "S", "Т": "T", "Τ": "T", "Ս": "U", "Ѵ": "V",
    "Ԝ": "W", "Х": "X", "Χ": "X", "У": "Y", "Υ": "Y", "Ү": "Y",
    "0": "O", "1": "l", "I": "l", "|": "l",
    **dict.fromkeys("‐‑‒–—−", "-"),
}  # fmt: skip
_TABLE = str.maketrans(_DRAWN_LIKE)


def unclear(name: str) -> str | None:
    """What is wrong with a name by itself, or None."""
    plain = unicodedata.normalize("NFKC", name)
    if plain != name:
        return f"it has characters that stand for others; write {plain!a}"
    if any(first <= ord(letter) <= last for letter in name for first, last in _INVISIBLE) or "  " in name:
        return "it has characters that cannot be seen; leave them out"
    for word in _WORDS.split(name):
        letters = [unicodedata.name(letter, "") for letter in word if letter.isalpha()]
        if sum(any(letter.startswith(script) for letter in letters) for script in _SCRIPTS) > 1:
            return "it mixes letters of different scripts in one word; keep to one"
    return None


def look_alike(name: str, other: str) -> bool:
    """Whether two names look the same: drawn alike letter by letter, or equal but for case."""
    drawn, shown = name.translate(_TABLE), other.translate(_TABLE)
    return drawn == shown or drawn.casefold() == shown.casefold() or name.casefold() == other.casefold()
