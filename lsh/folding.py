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

from lsh.expansion import Expansion, Found, Shifts
from lsh.invisible import JOINERS, without_joiners
from lsh.joining import Joining
from lsh.neighbours import AFRESH, kind_of
from lsh.replacing import Replacements
from lsh.stream_safe import bounded, expanding, nfkc, size_of, too_far

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lsh.switches import Switches

_CHUNK = 1 << 15  # code points at a time: the arrays of a step stay in the L2 cache


def fold(text: str, parameters: Switches) -> str:
    """Return `text` with all steps taken that look characters up; white space is unchanged."""
    return _folded(text if text.isascii() else _cut(text, parameters), parameters)


def _folded(text: str, parameters: Switches) -> str:
    text = text.translate(_replacements(parameters))
    if text.isascii():
        return text.lower() if parameters.casefold else text
    if parameters.drop_invisible:
        if parameters.nfkc:
            text = bounded(text)
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
    forms = {char: _folded(char, parameters) for char in set(found)}
    excess = sum(max(len(forms[char]) - size_of(char), 0) for char in found)
    if not too_far(excess, size_of(text)):
        return text
    return expanding().sub(lambda char: forms[char[0]][: size_of(char[0])], text)


@lru_cache(maxsize=8)
def _replacements(parameters: Switches) -> Replacements:
    return Replacements(parameters)


@dataclass(frozen=True, slots=True)
class Folded:
    """n code points, each folded by itself.

    codes: uint32[m].
    shifts: how positions up to n have moved.
    joining: int64, ascending: the positions among m of code points that don't
        start afresh. They are unchanged.
    """

    codes: NDArray[np.uint32]
    shifts: Shifts
    joining: NDArray[np.int64]


class Folding:
    """Folds code points by a table, which is filled on first use. One thread at a time.

    Attributes:
        joiner: normalises what the table can't fold, with the same switches.
    """

    def __init__(self, parameters: Switches) -> None:
        """Take the switches."""
        self._parameters = parameters
        self._replacements = _replacements(parameters)
        self._forms = Expansion(self._form)
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
        lows = range(0, len(codes), _CHUNK)
        found = [self._forms.found(codes[low : low + _CHUNK]) for low in lows]
        cuts = self._cuts(found, ends, texts)
        parts = list(map(self._forms.spliced, found, cuts))
        places = np.concatenate([n * _CHUNK + part.places for n, part in enumerate(parts)])
        joining = np.concatenate([n * _CHUNK + part.kept for n, part in enumerate(parts)])
        shifts = Shifts.of(places, np.concatenate([part.growth for part in parts]))
        if len(places):
            codes = np.concatenate([part.codes for part in parts])
        return Folded(codes, shifts, shifts.moved(joining))

    def _cuts(
        self, found: list[Found], ends: NDArray[np.int64], texts: Sequence[str]
    ) -> list[NDArray[np.bool_] | None]:
        """Return which long forms of each chunk are cut; None for none of them."""
        excess = [self._forms.excess(part) if len(part.long) else part.long for part in found]
        total = np.zeros(len(texts), dtype=np.int64)
        rows: list[NDArray[np.int64]] = []
        for number, (part, more) in enumerate(zip(found, excess, strict=True)):
            rows.append(np.empty(0, dtype=np.int64))
            if more.any():
                rows[-1] = np.searchsorted(ends, part.long + number * _CHUNK)
                total += np.bincount(rows[-1], more, len(texts)).astype(np.int64)
        far = [
            bool(more) and too_far(more, size_of(text))
            for more, text in zip(total.tolist(), texts, strict=True)
        ]
        if not any(far):
            return [None] * len(found)
        which = np.array(far)
        return [which.take(row) if len(row) else None for row in rows]

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
