"""Characters that nothing shows, and joiners that change how letters are written.

A text can be filled with code points that no reader sees: zero-width spaces, soft
hyphens, variation selectors, controls of direction, and control characters such as
NUL. They are dropped. So are strokes that only make a word longer: the tatweel of Arabic
(U+0640), its like in N'Ko and Mongolian, and presentation forms of vowel signs over a
tatweel. Two of them are a part of some scripts: U+200C (zero width
non-joiner) and U+200D (zero width joiner). They stay where they change what is seen:

- both, behind a virama (combining class 9): a choice between forms of consonants in
  the scripts of India and its neighbours;
- the non-joiner, between two letters that would join: Arabic script, and others
  written like it. Persian separates prefixes and suffixes in this way.

These are the rules of RFC 5892, appendix A (used by UTS 46), with marks between as in
Unicode Standard Annex 31, section 2.3. Of several joiners with nothing but marks between
them, only the first can stay.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category, combining, decomposition, normalize

import numpy as np

from lsh.code_points import CODE_POINTS, as_text, code_points
from lsh.unicode_tables import ELONGATIONS, IGNORABLE, JOINED_TO_THE_LAST, JOINED_TO_THE_NEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

JOINERS = "\u200c\u200d"
_NON_JOINER = 0x200C
_TATWEEL = "0640"
_PRESENTATION = range(0xFB50, 0xFF00)  # the forms of Arabic
_BELOW = 0x20000  # all marks lie below, except variation selectors, and all cursive letters
_IOTA_BELOW = "\u0345"
_VIRAMA = 9  # the combining class
_TO_NEXT, _TO_LAST, _MARK, _STARTER, _ENDS_IN_VIRAMA, _JOINER, _IOTA = (
    1 << bit for bit in range(7)
)


@cache
def ignorable() -> frozenset[int]:
    """Return the code points that nothing shows, without white space and joiners.

    These are those with the property Default_Ignorable_Code_Point, assigned or not,
    control characters (category Cc), and elongations, also in presentation forms.
    """
    controls = (point for point in range(0xA0) if category(chr(point)) == "Cc")
    hidden = (point for point in controls if not chr(point).isspace())
    long = (point for point in _PRESENTATION if _TATWEEL in decomposition(chr(point)).split())
    found = frozenset([*points(IGNORABLE), *points(ELONGATIONS), *hidden, *long])
    return found - frozenset(map(ord, JOINERS))


def without_joiners(text: str) -> str:
    """Return `text`, in which nothing is ignorable, without joiners that are out of place."""
    if not any(joiner in text for joiner in JOINERS):
        return text
    codes = code_points(text)
    stays = np.ones(len(codes), dtype=np.bool_)
    stays[misplaced(codes)] = False
    return as_text(codes.compress(stays))


def is_joiner(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which of `codes`, uint32[n], are U+200C or U+200D: bool[n]."""
    found: NDArray[np.bool_] = (codes & ~np.uint32(1)) == _NON_JOINER
    return found


def misplaced(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the positions of joiners that are out of place, int64, ascending.

    codes: uint32[n]; nothing in it is ignorable.
    """
    traits = _traits().take(codes)
    passed = (traits & (_MARK | _JOINER)) > 0
    # Only stretches of marks and joiners matter, and what is on either side of them.
    inside = (traits & (_MARK | _STARTER)) != _STARTER
    near = inside.copy()
    near[1:] |= inside[:-1]
    near[:-1] |= inside[1:]
    places = np.flatnonzero(near)
    traits, passed = traits.take(places), passed.take(places)
    numbers = np.arange(len(places))
    solid = np.where(passed, -1, numbers)
    before = np.maximum.accumulate(solid)
    after = np.minimum.accumulate(np.where(passed, len(places), numbers)[::-1])[::-1]
    traits = np.append(traits, np.uint8(0))  # for before and after the text: -1 and n
    joiners = np.flatnonzero(traits & _JOINER)
    before, after = before.take(joiners), after.take(joiners)
    wanted = (traits.take(before) & _TO_NEXT > 0) & (traits.take(after) & _TO_LAST > 0)
    wanted &= codes.take(places.take(joiners)) == _NON_JOINER
    starters, viramas, iotas = (
        _latest(traits[:-1] & trait > 0, numbers).take(joiners)
        for trait in (_STARTER, _ENDS_IN_VIRAMA, _IOTA)
    )
    wanted |= (viramas >= np.maximum(starters, 0)) & (iotas < np.maximum(starters, 0))
    wanted[1:] &= before[1:] != before[:-1]
    return places.take(joiners[~wanted])


def _latest(which: NDArray[np.bool_], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the last position up to each at which something is so; -1 if there is none."""
    found: NDArray[np.int64] = np.maximum.accumulate(np.where(which, numbers, -1))
    return found


@cache
def _traits() -> NDArray[np.uint8]:
    """Return uint8[0x110000], what matters of each code point.

    The traits of a code point are those of its NFKC: its first letter decides whether it
    joins the last one, its last letter whether it joins the next one.
    """
    traits = np.full(CODE_POINTS, _STARTER, dtype=np.uint8)
    traits[list(points(JOINED_TO_THE_NEXT))] |= _TO_NEXT
    traits[list(points(JOINED_TO_THE_LAST))] |= _TO_LAST
    simple = traits.tolist()
    for point in range(_BELOW):
        char = chr(point)
        if decomposition(char) or category(char)[0] == "M":
            traits[point] = _traits_of(normalize("NFKD", char), simple)
    traits[list(map(ord, JOINERS))] = _JOINER
    traits[ord(_IOTA_BELOW)] |= _IOTA
    return traits


def _is_mark(char: str) -> bool:
    # The case of the iota below is folded to a letter.
    return category(char) in {"Mn", "Me"} and char != _IOTA_BELOW


def _traits_of(apart: str, simple: list[int]) -> int:
    """Return the traits of a decomposed code point, by those of its letters."""
    letters = [simple[ord(part)] for part in apart if not _is_mark(part)]
    classes = [combining(part) for part in apart]
    last = max((at for at, number in enumerate(classes) if not number), default=0)
    return (
        (letters[-1] & _TO_NEXT | letters[0] & _TO_LAST if letters else _MARK)
        | _STARTER * (0 in classes)
        | _ENDS_IN_VIRAMA * (_VIRAMA in classes[last:])
    )


def points(table: str) -> Iterator[int]:
    """Yield the code points of a table of `lsh.unicode_tables`."""
    for part in table.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)
