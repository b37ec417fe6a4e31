"""Lines that are left out of texts because they are on a list: footers, menus, cookie banners.

A line ends where `str.splitlines` ends it, and each break is one character. A line is left out
if its normal form, as if it were a text, is that of a line of the list. Where nothing is left of
a text, all of it stays: so pages of nothing but listed lines are compared with each other.

`left_over` is the reference for one text. `LineFilter` does a batch. It has a number for each
code point; the sum of the numbers of a line is that of its normal form, because normal forms
put marks in order, compose, and drop what has number 0, but don't change the letters otherwise.
So only lines with the sum of a listed one are looked at. Lines with many characters that may
be cut (`lsh.stream_safe`) are the exception; all of them are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import compress, pairwise, repeat
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar
from unicodedata import category, normalize

import numpy as np

from lsh.code_points import CODE_POINTS, as_text, code_points
from lsh.mixing import finalise
from lsh.stream_safe import expanding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lsh.code_points import Codes
    from lsh.switches import Switches

__all__ = [
    "BREAKS",
    "UNCUT",
    "FormOf",
    "LineFilter",
    "digest",
    "left_out",
    "left_over",
    "lines_of",
    "listed_forms",
]

_Item = TypeVar("_Item", bound=np.generic)
FormOf: TypeAlias = "Callable[[str, Switches], str]"
"""Returns the normal form of a text without markup; see `lsh.text.form_of`."""

BREAKS: Final = frozenset("\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")
_BETWEEN: Final = re.compile(f"([{''.join(sorted(BREAKS))}])")
_WEIGHTY: Final = frozenset("LNPS")  # The general categories that have a number.
_IOTA: Final = "\u03b9"  # The iota below becomes one, and may be dropped as a mark before.

_CHUNK: Final = 1 << 18  # code points at a time
_TOGETHER: Final = 1 << 16  # lines that are looked at at a time
_MANY: Final = 2  # if one line in so many is looked at, it is faster to split the text
_SHORT: Final = 64  # code points; of shorter pieces there are many
_UNKNOWN: Final = 2
UNCUT: Final = 8
"""So many characters of a line are not cut: each expands by 4 code points at most, and all of a
text may expand by 32."""
_PLAIN, _BREAK, _CUT = 1, 2, 4
"""Traits of a code point. One without any isn't known yet."""
_BITS: Final = 16  # of a sum, by which most lines are passed over
_REMEMBERED: Final = 1 << 13  # lines whose forms were looked at,
_LONGEST: Final = 1_000  # and the most characters that one has


def left_over(text: str, switches: Switches, form_of: FormOf) -> str:
    """Return `text` without the lines that are listed; all of it if nothing would be left."""
    if not switches.boilerplate:
        return text
    listed = listed_forms(switches, form_of)
    parts = [*_BETWEEN.split(text), ""]
    lines = zip(parts[::2], parts[1::2], strict=True)
    left = "".join(line + end for line, end in lines if form_of(line, switches) not in listed)
    return left if form_of(left, switches).split() else text


def left_out(text: str, switches: Switches, form_of: FormOf) -> list[str]:
    """Return the lines of `text` that `left_over` leaves out, in their order, without the breaks.

    A line that stands there several times is there as often.
    """
    if not switches.boilerplate or left_over(text, switches, form_of) == text:
        return []
    listed = listed_forms(switches, form_of)
    return [line for line in lines_of(text) if form_of(line, switches) in listed]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without the breaks."""
    return _BETWEEN.split(text)[::2]


@lru_cache(maxsize=8)
def listed_forms(switches: Switches, form_of: FormOf) -> frozenset[str]:
    """Return the normal forms of the lines that are listed.

    One with nothing in it but white space, marks and what is dropped is not among them.
    """
    forms = {form_of(line, switches) for line in switches.boilerplate}
    return frozenset(form for form in forms if _number(form, switches))


def digest(switches: Switches, form_of: FormOf) -> str:
    """Return 32 hexadecimal digits that are equal for lists of the same normal forms."""
    forms = "\n".join(sorted(listed_forms(switches, form_of)))
    return blake2b(forms.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _number(form: str, switches: Switches) -> int:
    """Return the sum of the numbers of a normal form, modulo 2^32."""
    found = [
        part
        for char in form
        if not (switches.drop_symbols and category(char)[0] in "PS")
        for part in normalize("NFKD", char)
        if category(part)[0] in _WEIGHTY and part != _IOTA
    ]
    numbers = finalise(np.array(list(map(ord, found)), dtype=np.uint64) + np.uint64(1))
    return int(numbers.sum(dtype=np.uint64)) & 0xFFFFFFFF


class _Lines(NamedTuple):
    """The lines of texts that are joined by breaks.

    starts, ends: int64[m], each line and the break behind it.
    sums: uint32[m]. cut: int64, ascending: the lines of which characters may be cut.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sums: NDArray[np.uint32]
    cut: NDArray[np.int64]


class LineFilter:
    """Leaves listed lines out of batches of texts. One thread at a time.

    The work on a line that isn't looked at is a few operations for each character.
    """

    def __init__(
        self,
        switches: Switches,
        form_of: FormOf,
        forms_of: Callable[[Sequence[str]], Sequence[str]],
    ) -> None:
        """Take the list. forms_of: returns what `form_of` does, for many lines."""
        self._switches = switches
        self._form_of = form_of
        self._forms_of = forms_of
        self._listed = listed_forms(switches, form_of)
        self._wanted = np.zeros(1 << _BITS, dtype=np.bool_)
        self._wanted[[_number(form, switches) & ((1 << _BITS) - 1) for form in self._listed]] = True
        self._traits = np.zeros(CODE_POINTS, dtype=np.uint8)
        self._numbers = np.zeros(CODE_POINTS, dtype=np.uint32)
        self._known: dict[str, bool] = {}
        self._learn(range(128))

    def left_over(self, texts: Sequence[str]) -> Sequence[str]:
        """Return what `left_over` returns for each text."""
        if not texts or not self._listed:
            return texts
        joined = "\n".join(texts) + "\n"
        lines = self._lines(joined)
        after = np.cumsum([len(text) + 1 for text in texts])
        last = np.searchsorted(lines.ends, after)  # of each text
        listed = np.zeros(len(lines.ends), dtype=np.bool_)
        looked_at = self._worth_a_look(lines)
        for low in range(0, len(looked_at), _TOGETHER):
            part = looked_at[low : low + _TOGETHER]
            listed[part] = self._are_listed(_picked(joined, lines, part))
        if not listed.any():
            return texts
        return self._without(joined, texts, lines, last, listed)

    def _lines(self, joined: str) -> _Lines:
        if joined.isascii():
            codes: Codes = np.frombuffer(joined.encode("ascii"), dtype=np.uint8)
            ends = np.flatnonzero(_is_ascii_break(codes)) + 1
            cut = codes[:0].astype(np.int64)
        else:
            codes = code_points(joined)
            traits = _taken(self._traits, codes)
            if not traits.all():
                self._learn(np.unique(codes[traits == 0]).tolist())
                traits = _taken(self._traits, codes)
            ends = np.flatnonzero(traits == _BREAK) + 1
            cut = np.flatnonzero(traits == _CUT)
        starts = np.append(0, ends[:-1])
        sums = np.add.reduceat(_taken(self._numbers, codes), starts, dtype=np.uint32)
        rows, counts = np.unique(np.searchsorted(ends, cut, side="right"), return_counts=True)
        return _Lines(starts, ends, sums, rows[counts > UNCUT])

    def _learn(self, points: Sequence[int]) -> None:
        """Note the traits and the numbers of code points."""
        for point in points:
            char = chr(point)
            may_be_cut = expanding().match(char) is not None
            self._traits[point] = _BREAK if char in BREAKS else _CUT if may_be_cut else _PLAIN
            self._numbers[point] = _number(self._form_of(char, self._switches), self._switches)

    def _worth_a_look(self, lines: _Lines) -> NDArray[np.int64]:
        """Return which lines may be listed, ascending."""
        picked = self._wanted.take(lines.sums & np.uint32((1 << _BITS) - 1))
        picked &= lines.sums != 0
        picked[lines.cut] = True
        return np.flatnonzero(picked)

    def _are_listed(self, lines: list[str]) -> NDArray[np.bool_]:
        """Return which of n lines are listed: bool[n]."""
        answers = _asked(self._known, lines)
        unknown = np.flatnonzero(answers == _UNKNOWN).tolist()
        if unknown:
            new = list(dict.fromkeys([lines[place] for place in unknown]))
            forms = self._forms_of(new)
            found = {line: form in self._listed for line, form in zip(new, forms, strict=True)}
            answers[unknown] = _asked(found, [lines[place] for place in unknown])
            if len(self._known) + len(new) > _REMEMBERED:
                self._known = {}
            short = [line for line in new if len(line) <= _LONGEST]
            self._known |= {line: found[line] for line in short[:_REMEMBERED]}
        return np.equal(answers, 1)

    def _without(
        self,
        joined: str,
        texts: Sequence[str],
        lines: _Lines,
        last: NDArray[np.int64],
        listed: NDArray[np.bool_],
    ) -> list[str]:
        """Return the texts without the lines that are listed."""
        stays = ~listed
        first = np.append(0, last[:-1] + 1)
        solid = np.logical_or.reduceat(stays & (lines.sums != 0), first).tolist()
        begins = stays.copy()  # Lines at which a stretch that stays begins,
        begins[1:] &= listed[:-1]
        begins[first] = stays[first]
        closes = stays.copy()  # and at which it ends.
        closes[:-1] &= listed[1:]
        closes[last] = stays[last]
        after = lines.ends.copy()
        after[last] -= 1  # The break behind a text is none of its own.
        opened, closed = np.flatnonzero(begins), np.flatnonzero(closes)
        edges = np.searchsorted(opened, np.append(first, len(stays))).tolist()
        left = _cut_out(joined, lines.starts[opened], after[closed], edges)
        return [
            rest if sound or self._forms_of([rest])[0].split() else text
            for text, rest, sound in zip(texts, left, solid, strict=True)
        ]


def _picked(joined: str, lines: _Lines, places: NDArray[np.int64]) -> list[str]:
    """Return some of the lines, without the breaks behind them."""
    count = len(lines.ends)
    if count < min(_MANY * len(places), _TOGETHER) and joined.count("\n") == count:
        picked = np.zeros(count, dtype=np.bool_)
        picked[places] = True
        return list(compress(joined.split("\n"), picked.tolist()))
    spans = zip(lines.starts[places].tolist(), lines.ends[places].tolist(), strict=True)
    return [joined[low : high - 1] for low, high in spans]


def _cut_out(
    joined: str, begins: NDArray[np.int64], ends: NDArray[np.int64], edges: list[int]
) -> list[str]:
    """Return joined[begins[i]:ends[i]] for every i, those from one edge to the next together."""
    if _SHORT * len(begins) < len(joined):
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        pieces = [joined[low:high] for low, high in spans]
        return ["".join(pieces[low:high]) for low, high in pairwise(edges)]
    changes = np.zeros(len(joined) + 1, dtype=np.int8)  # Objects for each would take much more.
    changes[begins] = 1
    np.subtract.at(changes, ends, 1)
    inside = np.cumsum(changes[:-1], dtype=np.int8).view(np.bool_)
    text = as_text(code_points(joined).compress(inside))
    sizes = np.append(0, np.cumsum(ends - begins))[edges].tolist()
    return [text[low:high] for low, high in pairwise(sizes)]


def _asked(known: Mapping[str, bool], lines: list[str]) -> NDArray[np.uint8]:
    """Return uint8[n], what is known of n lines: 0, 1 or `_UNKNOWN`."""
    answers = map(known.get, lines, repeat(_UNKNOWN))
    return np.fromiter(answers, dtype=np.uint8, count=len(lines))


def _is_ascii_break(codes: Codes) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (codes - codes.dtype.type(10)) < 4  # noqa: PLR2004 -- up to carriage return
    found |= (codes - codes.dtype.type(28)) < 3  # noqa: PLR2004 -- three separators
    return found


def _taken(table: NDArray[_Item], codes: Codes) -> NDArray[_Item]:
    """Return the items of a table for code points, with little memory beside."""
    if len(codes) <= _CHUNK:
        return table.take(codes)
    items = np.empty(len(codes), table.dtype)
    for low in range(0, len(codes), _CHUNK):
        part = slice(low, low + _CHUNK)
        items[part] = table.take(codes[part])
    return items
