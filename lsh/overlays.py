"""Marks that are drawn over or around a letter, which stays readable.

These are the marks of two blocks that all scripts share, Combining Diacritical Marks
and those for Symbols, that have combining class 1 (overlays: strokes, slashes, rings)
or enclose a letter (category Me: circles, squares, keycaps). Overlays of single
scripts, such as the tones of Bassa Vah and Vedic signs, are part of a language.

A negated sign such as U+2260 (not equal) is canonically equivalent to a sign and a
slash over it (U+003D U+0338), so it loses the slash too.
"""

from __future__ import annotations

from functools import cache
from unicodedata import category, combining, decomposition, normalize

_BLOCKS = (range(0x300, 0x370), range(0x20D0, 0x2100))
_OVERLAY = 1  # the combining class
_BELOW = 0x20000  # all that decompose to marks lie below


def without_overlays(text: str) -> str:
    """Return `text` without overlays."""
    return text.translate(overlays())


@cache
def overlays() -> dict[int, str]:
    """Return what code points with an overlay are replaced by; "" for an overlay alone."""
    marks = {point: "" for block in _BLOCKS for point in block if _over(chr(point))}
    return marks | {
        point: normalize("NFC", apart.translate(marks))
        for point in range(_BELOW)
        if decomposition(chr(point))
        if not marks.keys().isdisjoint(map(ord, apart := normalize("NFD", chr(point))))
    }


def _over(char: str) -> bool:
    return combining(char) == _OVERLAY or category(char) == "Me"
