"""What single characters are replaced by before a text is normalised, each kind a switch.

`drop_invisible`: characters that nothing shows are dropped; see `lsh.invisible`.
`drop_overlays`: so are strokes and enclosures; see `lsh.overlays`.
`fold_accents`: so are accents, and the like of other scripts; see `lsh.accents`.
`fold_confusables`: letters that look like ASCII become ASCII (Unicode Technical
    Standard 39): Cyrillic and Greek letters, for instance, and those with a stroke. Both
    cases look alike, except for a few Greek letters: Nu and Upsilon, small, are v and u.
`fold_digits`: every decimal digit of any script becomes 0.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from unicodedata import combining, normalize

from lsh.accents import without_accents
from lsh.invisible import ignorable, points
from lsh.overlays import without_overlays
from lsh.unicode_tables import CONFUSABLE

if TYPE_CHECKING:
    from lsh.switches import Switches


class Replacements(dict[int, str]):
    """What code points are replaced by, for `str.translate`. Filled on first use."""

    def __init__(self, switches: Switches) -> None:
        """Take the switches."""
        super().__init__()
        self._switches = switches

    def __missing__(self, point: int) -> str:
        """Return, and keep, what one code point is replaced by; "" if it is dropped."""
        self[point] = replaced = self._replaced(chr(point))
        return replaced

    def _replaced(self, char: str) -> str:
        switches = self._switches
        if switches.drop_invisible and ord(char) in ignorable():
            return ""
        if switches.drop_overlays:
            char = without_overlays(char)
        if switches.fold_accents:
            char = "".join(without_accents(one, nfkc=switches.nfkc) for one in char)
        if switches.fold_confusables:
            char = self._looks(char)
        return self._digits(char) if switches.fold_digits else char

    def _looks(self, char: str) -> str:
        """Return what a character looks like; itself if that isn't ASCII."""
        whole = normalize("NFKC", char) if self._switches.nfkc else char
        looks, shown, changed = _looks_like(), [], False
        for part in normalize("NFD", whole):
            small = normalize("NFD", part.casefold())
            seen = looks.get(part) or "".join(looks.get(each, each) for each in small)
            changed |= seen != small
            shown.append(seen if self._switches.casefold or part == small else seen.upper())
        if not changed:
            return char
        # Marks that don't compose, such as the breathings of Greek, are dropped.
        return "".join(one for one in normalize("NFC", "".join(shown)) if not combining(one))

    def _digits(self, text: str) -> str:
        """Return `text` with 0 for every digit."""
        whole = normalize("NFKC", text) if self._switches.nfkc else text
        if not any(map(str.isdecimal, whole)):
            return text
        return "".join("0" if char.isdecimal() else char for char in whole)


@cache
def _looks_like() -> dict[str, str]:
    return {chr(point): shown for shown, alike in CONFUSABLE.items() for point in points(alike)}
