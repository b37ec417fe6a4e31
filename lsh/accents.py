"""Marks that carry no words: writers leave them out, and readers read on.

These are the nonspacing marks (category Mn) of

- the blocks of combining diacritical marks, which Latin, Greek and Cyrillic share, and the
  breathings and titlo of old Cyrillic: accents, the tones of Vietnamese, the marks of й and ё;
- Hebrew: points and cantillation;
- Arabic: vowel signs (harakat), shadda, the signs of the Quran; madda and hamza, where Unicode
  has them as marks of a letter, such as alef;
- Syriac and Samaritan: points and vowel signs.

Overlays have a switch of their own (`lsh.overlays`). In other scripts marks are vowels,
consonants or tones that no text leaves out, and stay: those of India, Thai, Lao, Khmer, Burmese
and Tibetan, the voiced sounds of kana, Thaana, N'Ko, Ethiopic. Marks over symbols stay too.

A few letters have a mark that Unicode doesn't take apart. They become what is written without
it: ø, ł, đ, ħ, ŧ, the i without a dot, the alef with wasla; æ and œ become two letters.
"""

from __future__ import annotations

from functools import cache
from unicodedata import category, combining, normalize

_BLOCKS = (
    *(range(0x300, 0x370), range(0x483, 0x488), range(0x1AB0, 0x1B00), range(0x1DC0, 0x1E00)),
    range(0xFE20, 0xFE30),
    *(range(0x590, 0x600), range(0xFB1E, 0xFB1F)),  # Hebrew
    *(range(0x600, 0x700), range(0x890, 0x900), range(0x10EC0, 0x10F00)),  # Arabic
    *(range(0x700, 0x750), range(0x800, 0x840)),  # Syriac, Samaritan
)
_OVERLAY = 1  # the combining class
_SMALL = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "æ": "ae", "œ": "oe"}
_LETTERS = {
    **_SMALL,
    **{letter.upper(): plain.upper() for letter, plain in _SMALL.items()},
    "\u0131": "i",
    "\u0671": "\u0627",
}


def without_accents(char: str, *, nfkc: bool) -> str:
    """Return a character without such marks; itself if it has none.

    nfkc: whether compatibility forms are taken apart too.
    """
    apart = normalize("NFKD" if nfkc else "NFD", char)
    left = apart.translate(_dropped())
    return char if left == apart else normalize("NFC", left)


@cache
def _dropped() -> dict[int, str]:
    """Return what letters and marks are replaced by; "" for a mark."""
    marks = {point: "" for block in _BLOCKS for point in block if _is_accent(chr(point))}
    return marks | {ord(letter): plain for letter, plain in _LETTERS.items()}


def _is_accent(char: str) -> bool:
    return category(char) == "Mn" and combining(char) != _OVERLAY
