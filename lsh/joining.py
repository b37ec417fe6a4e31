"""NFKC of sequences: code points that join, each run with the one before it.

All other code points have been folded by themselves (`lsh.folding`), so a sequence is
a folded code point that starts afresh, and what joins it. A text can be nothing but
sequences, and `unicodedata.normalize` takes up to 100 ns for each code point of them,
or the square of a run. Here all sequences of a chunk are normalised at once, by
the algorithm of Unicode Standard Annex 15: decompose, sort runs of non-starters by
class, compose.

That a code point is folded before it is joined changes nothing: case folding leaves
what joins alone, except for U+0345, and respects canonical equivalence otherwise (The
Unicode Standard, D145).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from unicodedata import combining, normalize

import numpy as np

from lsh.code_points import Pieces, replaced, stretches
from lsh.expansion import Expansion, Shifts
from lsh.invisible import is_joiner, misplaced
from lsh.neighbours import (
    AFRESH,
    IOTA,
    JOINS,
    WITH_IOTA,
    classes,
    compositions,
    kind_of,
    kinds,
    second_starters,
)
from lsh.stream_safe import MOST_MARKS, marks_of_runs, non_starters, size_of
from lsh.weight import LIGHT, beyond_the_second, is_mark, too_heavy, without_iota

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Codes = NDArray[np.uint32]
    Places = NDArray[np.int64]

_CHUNK = 1 << 15  # code points of sequences at a time: the arrays of a step stay in the L2 cache
_JOINS = np.array([False, True, True, False])  # by kind
_ROWS = 1 << 16  # sorted at a time
_ROW, _CLASS = np.uint64(48), np.uint64(40)  # A sorting key: row, class, place.
_PLACE = np.uint64((1 << 40) - 1)


class Sequences(NamedTuple):
    """Sequences, end to end.

    codes: uint32[n]. The first starts afresh.
    begins: int64[m], ascending, where sequences begin; the first is 0.
    """

    codes: Codes
    begins: Places

    @property
    def lengths(self) -> Places:
        """Return int64[m]."""
        return np.diff(self.begins, append=len(self.codes))

    def left(self, stays: NDArray[np.bool_]) -> Sequences:
        """Return what stays, bool[n]. The first of each sequence does."""
        return Sequences(self.codes.compress(stays), np.cumsum(stays).take(self.begins) - 1)


class Joining:
    """Normalises sequences. Reuses tables: one thread at a time."""

    def __init__(self, *, casefold: bool, drop_invisible: bool) -> None:
        """Take whether case is folded, and whether joiners out of place are dropped."""
        self._casefold = casefold
        self._drop_invisible = drop_invisible
        self._apart = Expansion(_apart)
        self._without_iota = Expansion(self._lighter)
        self._cases = Expansion(_case)

    def join(
        self, codes: Codes, joining: Places, ends: Places, texts: Sequence[str]
    ) -> tuple[Codes, Places]:
        """Return the code points with all sequences normalised, and the moved `ends`.

        codes: uint32[n]. The first starts afresh.
        joining: int64, ascending: which of them aren't folded. Besides them, only what the
            last code point before them was folded to can join.
        ends: int64, ascending: positions below n that don't join: where the texts end.
        """
        given = joining
        points = codes.take(joining)
        kept = kinds().take(points)
        begins, afters = _spans(codes, joining, kept)
        codes, joining, ends = self._bounded(codes, joining, ends, (begins, kept), texts)
        if self._drop_invisible and is_joiner(points).any():
            codes, joining, ends = without(misplaced(codes), codes, joining, ends)
            joining = _without_last_joiners(codes, joining)
        if joining is not given:
            kept = kinds().take(codes.take(joining))
            begins, afters = _spans(codes, joining, kept)
        iotas = bool((kept >= IOTA).any())
        codes, dropped, left = self._pairs(codes, begins, afters)
        if len(dropped):
            # No pair is inside another sequence, so all others move as a whole.
            codes, _, ends = without(dropped, codes, joining, ends)
            begins, afters = (at - np.searchsorted(dropped, at) for at in (begins, afters))
        begins, afters = begins.compress(left), afters.compress(left)
        if not len(begins):
            return codes, ends
        lengths = afters - begins
        parts: list[Codes] = []
        growth: list[Places] = []
        done = low = 0
        counted = np.cumsum(lengths)
        while low < len(begins):
            high = low + 1 + int(np.searchsorted(counted[low + 1 :], counted[low] + _CHUNK))
            stop = int(afters[high - 1])
            part, starts, sizes = codes[done:stop], begins[low:high] - done, lengths[low:high]
            made = self._normalised(
                Sequences(part.take(stretches(starts, sizes)), np.cumsum(sizes) - sizes),
                iotas=iotas,
            )
            counts = made.lengths
            parts.append(replaced(part, starts, sizes, Pieces(made.codes, made.begins, counts)))
            growth.append(counts - sizes)
            done, low = stop, high
        moved = Shifts.of(afters, np.concatenate(growth)).moved(ends)
        return np.concatenate([*parts, codes[done:]]), moved

    def _bounded(
        self,
        codes: Codes,
        joining: Places,
        ends: Places,
        found: tuple[Places, NDArray[np.uint8]],
        texts: Sequence[str],
    ) -> tuple[Codes, Places, Places]:
        """Return all three without the marks that are too many.

        found: where sequences begin, and the kinds of what joins.
        """
        begins, kept = found
        if not len(begins):
            return codes, joining, ends
        own = non_starters().take(codes.take(joining))
        firsts = _firsts(joining, kept)
        marks = np.add.reduceat(own, firsts, dtype=np.int32)
        marks += non_starters().take(codes.take(begins))
        # What a letter was folded to can end in marks, which aren't among these.
        some_spans = np.flatnonzero((marks > LIGHT) | (joining.take(firsts) > begins + 1))
        if not len(some_spans):
            return codes, joining, ends
        afters = _afters(joining, firsts).take(some_spans)
        begins = begins.take(some_spans)
        some = stretches(begins, afters - begins)
        counts = marks_of_runs(codes.take(some))
        beyond = beyond_the_second(codes.take(some), counts)
        totals = np.bincount(np.searchsorted(ends, some), beyond, len(texts)).tolist()
        heavy = np.array(
            [
                bool(total) and too_heavy(int(total), size_of(text))
                for total, text in zip(totals, texts, strict=True)
            ]
        )
        if heavy.any():
            codes, joining, ends = self._lightened(codes, joining, ends, heavy)
            kept = kinds().take(codes.take(joining))
            begins, _ = _spans(codes, joining, kept)
            return self._bounded(codes, joining, ends, (begins, kept), texts)
        excess = (counts > MOST_MARKS) & (non_starters().take(codes.take(some)) > 0)
        return without(some.compress(excess), codes, joining, ends)

    def _lightened(
        self, codes: Codes, joining: Places, ends: Places, heavy: NDArray[np.bool_]
    ) -> tuple[Codes, Places, Places]:
        """Return all three without the marks of some texts; see `lsh.weight`.

        heavy: bool, which of the texts.
        """
        within = joining.compress(heavy.take(np.searchsorted(ends, joining)))
        points = codes.take(within)
        with_iota = kinds().take(points) == WITH_IOTA
        letters = within.compress(with_iota)
        codes[letters] = self._without_iota.expand(points.compress(with_iota)).codes
        codes, joining, ends = without(within.compress(is_mark(points)), codes, joining, ends)
        return codes, joining.compress(kinds().take(codes.take(joining)) > 0), ends

    def _pairs(
        self, codes: Codes, begins: Places, afters: Places
    ) -> tuple[Codes, Places, NDArray[np.bool_]]:
        """Compose sequences of two that neither come apart nor change in case, in place.

        Most are such: a letter, and one mark. Return also which places are now void, and
        bool[m], which sequences are left.
        """
        pairs = np.flatnonzero(afters - begins == 2)  # noqa: PLR2004 -- a pair
        firsts = begins.take(pairs)
        first, second = codes.take(firsts), codes.take(firsts + 1)
        done = self._apart.unchanged(first) & self._apart.unchanged(second)
        done &= kinds().take(second) == JOINS
        left = np.ones(len(begins), dtype=np.bool_)
        left[pairs.compress(done)] = False
        firsts, first, second = (each.compress(done) for each in (firsts, first, second))
        wholes = compositions().wholes(first, second)
        composed = np.flatnonzero(wholes)
        firsts = firsts.take(composed)
        codes[firsts] = wholes.take(composed)
        return codes, firsts + 1, left

    def _lighter(self, point: int) -> str:
        letter = without_iota()[point]
        return normalize("NFKC", letter.casefold()) if self._casefold else letter

    def _normalised(self, given: Sequences, *, iotas: bool) -> Sequences:
        """Normalise sequences, those with an iota below a letter twice, if there may be any."""
        if not (self._casefold and iotas):
            return self._composed(given)
        with_iota = kinds().take(given.codes) >= IOTA
        lengths = given.lengths
        rows = np.logical_or.reduceat(with_iota, given.begins)
        within = np.repeat(rows, lengths)
        twice = self._twice(Sequences(given.codes.compress(within), _begins(lengths[rows])))
        if rows.all():
            return twice
        once = self._composed(Sequences(given.codes.compress(~within), _begins(lengths[~rows])))
        lengths[rows], lengths[~rows] = twice.lengths, once.lengths
        within = np.repeat(rows, lengths)
        codes = np.empty(len(within), dtype=np.uint32)
        codes[within], codes[~within] = twice.codes, once.codes
        return Sequences(codes, _begins(lengths))

    def _twice(self, given: Sequences) -> Sequences:
        """Normalise sequences before and after their case is folded.

        That makes letters of iotas, in front of the marks that are left, and small letters
        of capital ones. These may compose with marks that are left; nothing else changes.
        """
        folded = _expanded(self._cases, self._composed(given))
        marks = classes().take(folded.codes)
        starters, lengths = _rows(marks)
        marked = np.flatnonzero(lengths > 1)
        begins, afters = starters.take(marked), (starters + lengths).take(marked)
        return folded.left(_compose(folded.codes, marks, begins, afters))

    def _composed(self, given: Sequences) -> Sequences:
        """Normalise sequences whose case is folded."""
        apart = _merged(_expanded(self._apart, given))
        marks = classes().take(apart.codes)
        starters, lengths = _rows(marks)
        if ((marks[1:] < marks[:-1]) & (marks[1:] > 0)).any():
            order = _order(marks, lengths)
            apart = apart._replace(codes=apart.codes.take(order))
            marks = marks.take(order)
        return apart.left(_compose(apart.codes, marks, starters, starters + lengths))


def _case(point: int) -> str:
    """Return NFKC of a code point whose case is folded."""
    return normalize("NFKC", chr(point).casefold())


def _apart(point: int) -> str:
    """Return what joins decomposed; of any other code point only the marks at its end set apart."""
    char = chr(point)
    apart = normalize("NFKD", char)
    if kind_of(char) != AFRESH:
        return apart
    starters = len(apart)
    while combining(apart[starters - 1]):
        starters -= 1
    return normalize("NFC", apart[:starters]) + apart[starters:] if starters < len(apart) else char


def _spans(codes: Codes, joining: Places, kept: NDArray[np.uint8]) -> tuple[Places, Places]:
    """Return where sequences begin, at what starts afresh, and the positions after them.

    kept: uint8, the kinds of what is at `joining`.
    """
    firsts = _firsts(joining, kept)
    begins = joining.take(firsts)
    while (joins := _JOINS.take(kinds().take(codes.take(begins)))).any():
        begins -= joins
    return begins, _afters(joining, firsts)


def _firsts(joining: Places, kept: NDArray[np.uint8]) -> Places:
    """Return which of `joining` are the first of a sequence: their numbers, ascending."""
    first = kept == WITH_IOTA
    first[:1] = True
    first[1:] |= joining[1:] - joining[:-1] > 1
    return np.flatnonzero(first)


def _afters(joining: Places, firsts: Places) -> Places:
    """Return the positions after sequences, by the numbers of their first ones."""
    return np.append(joining.take(firsts[1:] - 1), joining[-1:]) + 1


def _without_last_joiners(codes: Codes, joining: Places) -> Places:
    """Return `joining` without joiners that nothing joins: they stay as they are."""
    joiners = is_joiner(codes.take(joining))
    last = np.ones(len(joining), dtype=np.bool_)
    np.greater(joining[1:] - joining[:-1], 1, out=last[:-1])
    return joining.compress(~(joiners & last))


def without(
    dropped: Places, codes: Codes, joining: Places, ends: Places
) -> tuple[Codes, Places, Places]:
    """Return `codes`, `joining` and `ends` without the code points at `dropped`.

    dropped: int64, ascending, some of `joining`.
    """
    if not len(dropped):
        return codes, joining, ends
    stays = np.ones(len(codes), dtype=np.bool_)
    stays[dropped] = False
    shifts = Shifts.of(dropped + 1, np.full(len(dropped), -1, dtype=np.int64))
    joining = joining.compress(stays.take(joining))
    return codes.compress(stays), shifts.moved(joining), shifts.moved(ends)


def _expanded(table: Expansion, given: Sequences) -> Sequences:
    found = table.expand(given.codes)
    if found.begins is not None:
        return Sequences(found.codes, found.begins.take(given.begins))
    return Sequences(found.codes, Shifts.of(found.places, found.growth).moved(given.begins))


def _merged(given: Sequences) -> Sequences:
    """Compose starters with the starters directly behind them.

    No starter that ends such a composition begins one, so those of one pass don't overlap.
    """
    found = compositions()
    while True:
        codes = given.codes
        behind = np.flatnonzero(second_starters().take(codes))
        if not len(behind):
            return given
        wholes = found.wholes(codes.take(behind - 1), codes.take(behind))
        whole = wholes > 0
        if not whole.any():
            return given
        codes[behind[whole] - 1] = wholes[whole]
        stays = np.ones(len(codes), dtype=np.bool_)
        stays[behind[whole]] = False
        given = given.left(stays)


def _rows(marks: NDArray[np.uint8]) -> tuple[Places, Places]:
    """Return the places of starters, by the classes of code points, and the lengths of rows."""
    starters = np.flatnonzero(marks == 0)
    return starters, np.diff(starters, append=len(marks))


def _order(marks: NDArray[np.uint8], lengths: Places) -> Places:
    """Return the canonical order: by class within each row, else unchanged."""
    keys = np.cumsum(marks == 0, dtype=np.uint64)
    keys <<= _ROW
    keys |= marks.astype(np.uint64) << _CLASS
    keys |= np.arange(len(marks), dtype=np.uint64)
    # A sequence of any length can have more rows than the key has numbers.
    edges = np.append(np.cumsum(lengths)[_ROWS - 1 :: _ROWS], len(marks)).tolist()
    for low, high in zip([0, *edges], edges, strict=False):
        keys[low:high].sort()
    keys &= _PLACE
    return keys.view(np.int64)


def _compose(
    codes: Codes, marks: NDArray[np.uint8], begins: Places, afters: Places
) -> NDArray[np.bool_]:
    """Compose starters with marks, in place; return which code points stay.

    codes: uint32[n], rows of one starter and marks, sorted by class.
    marks: uint8[n], the classes; 0 for a starter.
    begins, afters: int64[m]; row i is codes[begins[i]:afters[i]].

    Each step tries one mark of every row that isn't finished. A mark is blocked by
    one of its class that stays, so only the first ones of each class are tried, the
    next one after the last was composed.
    """
    found = compositions()
    stays = np.ones(len(codes), dtype=np.bool_)
    first = np.empty(len(codes) + 1, dtype=np.bool_)  # of its class, and in a composition
    first[0] = first[-1] = True
    first[1:-1] = (marks[1:] != marks[:-1]) & (found.seconds.take(codes[1:]) > 0)
    heads = np.flatnonzero(first)
    following = heads.take(np.cumsum(first[:-1]))  # the first after each place, or n
    places = following.take(begins)
    while True:
        more = np.flatnonzero(places < afters)
        if not len(more):
            return stays
        if len(more) < len(places):
            begins, afters, places = begins.take(more), afters.take(more), places.take(more)
        wholes = found.wholes(codes.take(begins), codes.take(places))
        composed = np.flatnonzero(wholes)
        done = places.take(composed)
        codes[begins.take(composed)] = wholes.take(composed)
        stays[done] = False
        places = following.take(places)
        places[composed] = done + 1


def _begins(lengths: Places) -> Places:
    return np.cumsum(lengths) - lengths
