"""The steps of the normal form that look characters up, for one text and for a whole buffer.

`fold` normalises compatibility forms and case of one text, and is the reference.
`Folding` folds each code point of a buffer by itself, including white space. The
results are equal where every code point starts afresh (`lsh.neighbours`). What
doesn't is left to `lsh.joining`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lsh.code_points import CODE_POINTS
from lsh.expansion import Expansion, Found, Shifts
from lsh.invisible import JOINERS, without_joiners
from lsh.joining import Joining
from lsh.neighbours import AFRESH, kind_of
from lsh.replacing import Replacements
from lsh.stream_safe import bounded, expanding, nfkc, size_of, too_far
from lsh.weight import lightened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.switches import Switches

_CHUNK = 1 << 15  # code points at a time: the arrays of a step stay in the L2 cache


def fold(text: str, parameters: Switches) -> str:
    """Return `text` with all steps taken that look characters up; white space is unchanged."""
    if text.isascii():
        return _folded(text.translate(_replacements(parameters)), parameters)
    size = size_of(text)
    text = _cut(text, parameters).translate(_replacements(parameters))
    return _folded(lightened(text, size) if parameters.nfkc else text, parameters)


def _folded(text: str, parameters: Switches) -> str:
    """Fold `text`, in which characters are replaced."""
    if text.isascii():
        return text.lower() if parameters.casefold else text
    if parameters.drop_invisible:
        # Case folding makes a letter of the iota below, which NFKC puts behind other marks.
        if parameters.nfkc:
            text = bounded(text)
        elif parameters.casefold:
            text = text.casefold()
        text = without_joiners(text)
    if parameters.nfkc:
        text = nfkc(text)
    if not parameters.casefold:
        return text
    folded = text.casefold()
    # What case folding leaves alone is still its own NFKC.
    return nfkc(folded) if parameters.nfkc and folded != text else folded


def _cut(text: str, parameters: Switches) -> str:
    """Return `text` with forms cut if it expands too far."""
    found = expanding().findall(text)
    if not found:
        return text
    replacements = _replacements(parameters)
    forms = {char: _folded(replacements[ord(char)], parameters) for char in set(found)}
    excess = sum(max(len(forms[char]) - size_of(char), 0) for char in found)
    if not too_far(excess, size_of(text)):
        return text
    return expanding().sub(lambda char: forms[char[0]][: size_of(char[0])], text)


def _limit(point: int) -> int:
    """Return the length to which the form of a code point may be cut."""
    char = chr(point)
    return size_of(char) if expanding().match(char) else CODE_POINTS


@lru_cache(maxsize=8)
def _replacements(parameters: Switches) -> Replacements:
    return Replacements(parameters)


@dataclass(frozen=True, slots=True)
class Folded:
    """n code points, each folded by itself.

    codes: uint32[m].
    ends: int64, ascending: where texts end in it.
    joining: int64, ascending: the positions among m of code points that don't
        start afresh. They are unchanged.
    """

    codes: NDArray[np.uint32]
    ends: NDArray[np.int64]
    joining: NDArray[np.int64]


@dataclass(slots=True)
class _Chunk:
    """A chunk of the code points.

    found: what they are replaced by.
    ends: int64, positions in it where texts end.
    first: which text its first code point belongs to.
    cut: bool, which of its long forms are cut; None for none of them.
    """

    found: Found
    ends: NDArray[np.int64]
    first: int
    cut: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> NDArray[np.int64]:
        """Return which text each of its long forms belongs to, from the first."""
        if not len(self.ends):
            return np.zeros(len(self.found.long), dtype=np.int64)
        return np.searchsorted(self.ends, self.found.long)


class Folding:
    """Folds code points by a table, which is filled on first use. One thread at a time.

    Attributes:
        joiner: normalises what the table can't fold, with the same switches.
    """

    def __init__(self, parameters: Switches) -> None:
        """Take the switches."""
        self._parameters = parameters
        self._replacements = _replacements(parameters)
        self._forms = Expansion(self._form, _limit)
        self.joiner = Joining(
            casefold=parameters.casefold, drop_invisible=parameters.drop_invisible
        )

    def fold(
        self, codes: NDArray[np.uint32], ends: NDArray[np.int64], texts: Sequence[str]
    ) -> Folded:
        """Fold each code point of `codes` by itself, in place unless their number changes.

        If white space is to be collapsed, each becomes a space.

        codes: uint32[n], the texts and what is between them.
        ends: int64[m], where the texts end.
        """
        chunks = self._chunks(codes, ends)
        self._cut_what_goes_too_far(chunks, texts)
        parts: list[NDArray[np.uint32]] = []
        joining: list[NDArray[np.int64]] = []
        moved: list[NDArray[np.int64]] = []
        done = 0
        for chunk in chunks:
            made = self._forms.spliced(chunk.found, chunk.cut)
            shifts = Shifts.of(made.places, made.growth)
            parts.append(made.codes)
            joining.append(shifts.moved(made.kept) + done)
            moved.append(shifts.moved(chunk.ends) + done)
            done += len(made.codes)
        if any(len(chunk.found.long) for chunk in chunks):
            codes = np.concatenate(parts)
        return Folded(codes, np.concatenate(moved), np.concatenate(joining))

    def _chunks(self, codes: NDArray[np.uint32], ends: NDArray[np.int64]) -> list[_Chunk]:
        lows = range(0, len(codes), _CHUNK)
        edges = np.searchsorted(ends, [*lows, len(codes)]).tolist()
        return [
            _Chunk(self._forms.found(codes[low : low + _CHUNK]), ends[first:after] - low, first)
            for low, first, after in zip(lows, edges, edges[1:], strict=False)
        ]

    def _cut_what_goes_too_far(self, chunks: list[_Chunk], texts: Sequence[str]) -> None:
        """Set `cut` of chunks with texts that expand too far; see `lsh.stream_safe`."""
        excess = [0] * (len(texts) + 1)  # The last one is for what is behind the last text.
        long = [chunk for chunk in chunks if len(chunk.found.long)]
        for chunk in long:
            each = self._forms.excess(chunk.found)
            if each.any():
                totals = np.bincount(chunk.rows, each, len(chunk.ends) + 1)
                for row, total in enumerate(totals.tolist(), chunk.first):
                    excess[row] += int(total)
        far = [
            bool(more) and too_far(more, size_of(text))
            for more, text in zip(excess, texts, strict=False)
        ]
        if any(far):
            which = np.array([*far, False])
            for chunk in long:
                chunk.cut = which[chunk.first :].take(chunk.rows)

    def _form(self, point: int) -> str | None:
        switches = self._parameters
        char = self._replacements[point]
        if not char or (switches.drop_invisible and char in JOINERS):
            return None if char else ""
        if switches.nfkc and kind_of(char[0]) != AFRESH:
            return None
        folded = _folded(char, switches)
        if self._parameters.collapse_whitespace:
            folded = "".join(" " if part.isspace() else part for part in folded)
        return folded
