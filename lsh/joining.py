"""NFKC of sequences: code points that join, each run with the one before it.

All other code points have been folded by themselves (`lsh.folding`), so a sequence is
a folded code point that starts afresh, and what joins it. Marks are sorted and
composed here for all sequences of a chunk at once. Texts can be nothing but
sequences, and `unicodedata.normalize` takes up to 100 ns for each code point of them.
It is still used for the few with other code points than marks.

That a code point is folded before it is joined changes nothing: case folding leaves
marks alone, except for U+0345, and respects canonical equivalence otherwise (The
Unicode Standard, 3.13, D145).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import combining, normalize

import numpy as np

from lsh.code_points import as_text, code_points, splice
from lsh.expansion import Expansion
from lsh.neighbours import AFRESH, OTHER, classes, compositions, kinds
from lsh.stream_safe import JOINER, fewest, interruptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Places = NDArray[np.int64]

_CHUNK = 1 << 14  # code points of sequences at a time: the arrays of a step stay in the L2 cache
_SEPARATOR, _STAND_IN = 0, 1  # They start afresh, join nothing, and are unchanged by folding.
_ROW, _CLASS = np.uint64(48), np.uint64(40)  # A sorting key: row, class, place.
_PLACE = np.uint64((1 << 40) - 1)


class Joining:
    """Normalises sequences. Reuses a table: one thread at a time."""

    def __init__(self, fold: Callable[[str], str]) -> None:
        """Take what folds a text whose runs of non-starters are short."""
        self._fold = fold
        self._apart = Expansion(_apart)

    def join(self, codes: Codes, joining: Places, ends: Places) -> tuple[Codes, Places]:
        """Return the code points with all sequences normalised, and the moved `ends`.

        codes: uint32[n]. The first starts afresh.
        joining: int64, ascending: which of them join. Only they do, or what the last code
            point before them was folded to.
        ends: int64, ascending: positions below n that don't join.
        """
        begins, afters = _spans(codes, joining)
        long = afters - begins >= fewest()
        if long.any():
            places = _ranges(begins[long], (afters - begins)[long])
            before = places[interruptions(codes.take(places))]
            codes = splice(codes, before, np.full(len(before), JOINER, dtype=np.uint32))
            joining = joining + np.searchsorted(before, joining, side="right")
            ends = ends + np.searchsorted(before, ends, side="right")
            begins, afters = _spans(codes, joining)
        parts: list[Codes] = []
        growth: list[Places] = []
        done = low = 0
        counted = np.cumsum(afters - begins)
        while low < len(begins):
            high = low + 1 + int(np.searchsorted(counted[low + 1 :], counted[low] + _CHUNK))
            stop = int(afters[high - 1])
            lengths = afters[low:high] - begins[low:high]
            places = _ranges(begins[low:high] - done, lengths)
            made, grown = self._sequences(codes[done:stop].take(places), lengths)
            parts.append(_replace(codes[done:stop], begins[low:high] - done, lengths, made, grown))
            growth.append(grown - lengths)
            done, low = stop, high
        shifts = np.append(0, np.cumsum(np.concatenate(growth)))
        moved = ends + shifts[np.searchsorted(afters, ends, side="right")]
        return np.concatenate([*parts, codes[done:]]), moved

    def _sequences(self, codes: Codes, lengths: Places) -> tuple[Codes, Places]:
        """Normalise sequences, end to end; return them likewise, with their new lengths."""
        others = kinds().take(codes) == OTHER
        if not others.any():
            return self._marked(codes)
        rows = np.logical_or.reduceat(others, np.cumsum(lengths) - lengths)
        within = np.repeat(rows, lengths)
        made, grown = self._together(codes[within], lengths[rows])
        if rows.all():
            return made, grown
        marked, marked_grown = self._marked(codes[~within])
        both = np.empty(len(lengths), dtype=np.int64)
        both[rows], both[~rows] = grown, marked_grown
        within = np.repeat(rows, both)
        joined = np.empty(len(within), dtype=np.uint32)
        joined[within], joined[~within] = made, marked
        return joined, both

    def _together(self, codes: Codes, lengths: Places) -> tuple[Codes, Places]:
        """Normalise sequences of any code points as one text."""
        afters = np.cumsum(lengths)
        separators = codes[afters - lengths] == _SEPARATOR  # Nothing else in a sequence can be.
        codes[codes == _SEPARATOR] = _STAND_IN
        separated = splice(codes, afters, np.full(len(afters), _SEPARATOR, dtype=np.uint32))
        folded = code_points(self._fold(as_text(separated)))
        grown = np.diff(np.flatnonzero(folded == _SEPARATOR), prepend=-1) - 1
        made = folded[folded != _SEPARATOR]
        made[(np.cumsum(grown) - grown)[separators]] = _SEPARATOR
        return made, grown

    def _marked(self, codes: Codes) -> tuple[Codes, Places]:
        """Normalise sequences of one starter and marks."""
        atoms, _, _ = self._apart.expand(codes)
        marks = classes().take(atoms)
        begins = np.flatnonzero(marks == 0)
        lengths = np.diff(np.append(begins, len(atoms)))
        if ((marks[1:] < marks[:-1]) & (marks[1:] > 0)).any():
            order = _order(marks, lengths)
            atoms, marks = atoms.take(order), marks.take(order)
        left = _compose(atoms, marks, begins, lengths)
        return atoms[left], np.add.reduceat(left, begins, dtype=np.int64)


def _apart(point: int) -> str:
    """Return a mark decomposed; of any other code point only the marks at its end set apart."""
    char = chr(point)
    apart = normalize("NFKD", char)
    starters = len(apart)
    while starters and combining(apart[starters - 1]):
        starters -= 1
    return normalize("NFC", apart[:starters]) + apart[starters:] if starters < len(apart) else char


def _spans(codes: Codes, joining: Places) -> tuple[Places, Places]:
    """Return where sequences begin, at what starts afresh, and the positions after them."""
    apart = np.flatnonzero(np.diff(joining) > 1)
    begins = np.append(joining[0], joining[apart + 1]) - 1
    while (joins := kinds().take(codes.take(begins)) != AFRESH).any():
        begins -= joins
    return begins, np.append(joining[apart], joining[-1]) + 1


def _order(marks: NDArray[np.uint8], lengths: Places) -> Places:
    """Return the canonical order: by class within each sequence, else unchanged."""
    keys = np.repeat(np.arange(len(lengths), dtype=np.uint64) << _ROW, lengths)
    keys |= marks.astype(np.uint64) << _CLASS
    keys |= np.arange(len(marks), dtype=np.uint64)
    keys.sort()
    keys &= _PLACE
    return keys.view(np.int64)


def _compose(
    atoms: Codes, marks: NDArray[np.uint8], begins: Places, lengths: Places
) -> NDArray[np.bool_]:
    """Compose starters with marks, in place; return which atoms are left.

    Step n takes the n-th mark of all sequences that have as many.
    """
    found = compositions()
    left = np.ones(len(atoms), dtype=np.bool_)
    step = 1
    rows = np.flatnonzero(lengths > step)
    begins, lengths = begins[rows], lengths[rows]
    starters = atoms.take(begins)
    blocking = np.zeros(len(rows), dtype=np.uint8)  # the class of the last mark that is left
    while len(begins):
        places = begins + step
        at = found.starters.take(starters).astype(np.int64)
        at *= found.columns
        at += found.marks.take(atoms.take(places))
        wholes = found.table.take(at)
        current = marks.take(places)
        stays = (wholes == 0) | (current == blocking)
        left[places] = stays
        starters = np.where(stays, starters, wholes)
        atoms[begins] = starters
        blocking = np.where(stays, current, blocking)
        step += 1
        more = lengths > step
        if not more.all():
            begins, lengths = begins[more], lengths[more]
            starters, blocking = starters[more], blocking[more]
    return left


def _ranges(begins: Places, lengths: Places) -> Places:
    """Return all positions from begins[i], lengths[i] of them, for every i."""
    afters = np.cumsum(lengths)
    return np.repeat(begins - (afters - lengths), lengths) + np.arange(afters[-1])


def _replace(codes: Codes, begins: Places, lengths: Places, made: Codes, grown: Places) -> Codes:
    """Replace lengths[i] code points from begins[i] by the next grown[i] of `made`."""
    gaps = begins - np.append(0, (begins + lengths)[:-1])
    which = np.tile(np.array([False, True]), len(begins))
    within = np.repeat(which, np.stack((gaps, grown), axis=1).reshape(-1))
    outside = np.repeat(~which, np.stack((gaps, lengths), axis=1).reshape(-1))
    replaced = np.empty(len(within), dtype=np.uint32)
    replaced[within] = made
    replaced[~within] = codes[outside]
    return replaced
