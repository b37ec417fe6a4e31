"""Aligns two texts word by word, and says which of their differences count.

Two words are aligned if their normal forms are equal, so upper case and look-alikes are no
difference. A difference whose two sides have the same normal form doesn't count either, nor does a
line that is left out because it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

import msgspec

from lsh.text import BREAKS

__all__ = ["CONTEXT", "Aligned", "Piece", "Word", "aligned", "blocks", "pieces", "window", "words"]

_BREAK = re.compile(f"(\r\n|[{''.join(sorted(BREAKS))}])")
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
CONTEXT = 12
"""How many tokens (words and spaces) to keep on each side of a difference."""
_ALIGNED = 1_500
"""The most tokens of a text to align with those of another."""
_CHARACTERS = 40_000
"""The most characters of a text to look at."""
_LEAD = 500
"""How many of them come before the first difference."""
_TOKEN_CHARACTERS = 500
"""A longer token is cut into several, so that two of one line each can be aligned."""

Kind = Literal["same", "different", "uncounted", "left_out"]


class Word(NamedTuple):
    """A token as it is written, and what it is compared by."""

    text: str
    key: str


class Piece(msgspec.Struct, frozen=True):
    """Parts of the two texts that stand opposite each other.

    ``kind``: ``same``; ``different``; ``uncounted``, a difference that their normal forms don't
    have; ``left_out``, a line that is listed as boilerplate. One side may be empty.
    """

    kind: Kind
    left: str
    right: str


class Aligned(NamedTuple):
    """The pieces of two texts; ``cut`` if these are parts of longer texts."""

    pieces: list[Piece]
    cut: bool


def words(text: str) -> list[str]:
    """Split a text into words and separators; each run of white space is one token."""
    return _TOKEN.findall(text)


def window(left: list[str], right: list[str]) -> tuple[int, int]:
    """Return where the parts of two long texts begin and end that are to be aligned.

    They begin just before the first difference. To align two texts takes time that grows with the
    product of their lengths.
    """
    if max(len(left), len(right)) <= _ALIGNED:
        return 0, _ALIGNED
    pairs = zip(left, right, strict=False)
    first = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
    if first is None:
        first = min(len(left), len(right))
    begin = max(0, first - 3 * CONTEXT)
    return begin, begin + _ALIGNED


def blocks(left: list[str], right: list[str]) -> list[tuple[bool, int, int, int, int]]:
    """Align the words; return blocks of (equal?, left start, end, right start, end), half-open.

    A lone space between two differences joins them, so that phrases are marked, not words.
    """
    found: list[tuple[bool, int, int, int, int]] = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        equal = kind == "equal" and ("".join(left[a:b]).strip() != "" or b == len(left))
        if found and not equal and not found[-1][0]:
            found[-1] = (False, found[-1][1], b, found[-1][3], d)
        else:
            found.append((equal, a, b, c, d))
    return found


def aligned(
    left: str,
    right: str,
    normalise: Callable[[str], str],
    left_out: tuple[Collection[str], Collection[str]] = ((), ()),
) -> Aligned:
    """Return two texts as pieces, from just before their first difference on.

    ``left_out`` has the lines of each that are listed.
    """
    cut = max(len(left), len(right)) > _CHARACTERS
    if cut:
        begin = max(0, _common(left, right) - _LEAD)
        left, right = (text[begin : begin + _CHARACTERS] for text in (left, right))
    one, other = (
        _keyed(text, normalise, lines) for text, lines in zip((left, right), left_out, strict=True)
    )
    begin, end = window([word.key for word in one], [word.key for word in other])
    cut = cut or begin > 0 or end < max(len(one), len(other))
    return Aligned(pieces(one[begin:end], other[begin:end], normalise), cut)


def _common(left: str, right: str) -> int:
    """Return how many characters at their beginnings are equal."""
    pairs = zip(left, right, strict=False)
    different = (at for at, (one, other) in enumerate(pairs) if one != other)
    return next(different, min(len(left), len(right)))


def _keyed(text: str, normalise: Callable[[str], str], left_out: Collection[str]) -> list[Word]:
    """Return the tokens of the beginning of a text; a line that is left out is one of them."""
    listed = frozenset(left_out)
    found: list[Word] = []
    keys: dict[str, str] = {}
    for number, line in enumerate(_BREAK.split(text)):
        if number % 2:
            found.append(Word(line, " "))
            continue
        if line in listed:
            found.append(Word(line, _LISTED))
            continue
        for token in _TOKEN.findall(line):
            for start in range(0, len(token), _TOKEN_CHARACTERS):
                part = token[start : start + _TOKEN_CHARACTERS]
                if part not in keys:
                    keys[part] = " " if part.isspace() else normalise(part)
                found.append(Word(part, keys[part]))
    return found


_LISTED = "\0listed"
"""The key of a line that is left out; no normal form has this character."""


def pieces(left: list[Word], right: list[Word], normalise: Callable[[str], str]) -> list[Piece]:
    """Return the pieces of two texts, or of parts of them."""
    found: list[Piece] = []
    for equal, a, b, c, d in blocks([w.key for w in left], [w.key for w in right]):
        if equal:
            for one, other in zip(left[a:b], right[c:d], strict=True):
                kind: Kind = "same" if one.text == other.text else "uncounted"
                if one.key == _LISTED:
                    kind = "left_out"
                elif one.text.isspace() and other.text.isspace():
                    kind = "same"
                _add(found, kind, one.text, other.text)
        else:
            _different(found, left[a:b], right[c:d], normalise)
    return found


def _different(
    found: list[Piece], left: list[Word], right: list[Word], normalise: Callable[[str], str]
) -> None:
    """Add a difference; lines that are left out stand by themselves."""
    for is_left, side in ((True, left), (False, right)):
        for word in side:
            if word.key == _LISTED:
                _add(found, "left_out", *((word.text, "") if is_left else ("", word.text)))
    one, other = ("".join(w.text for w in side if w.key != _LISTED) for side in (left, right))
    if one or other:
        same = normalise(one).strip() == normalise(other).strip()
        _add(found, "uncounted" if same else "different", one, other)


def _add(found: list[Piece], kind: Kind, left: str, right: str) -> None:
    """Add to the last piece if it is of the same kind."""
    if found and found[-1].kind == kind and kind in {"same", "left_out"}:
        last = found.pop()
        left, right = last.left + left, last.right + right
    found.append(Piece(kind, left, right))
