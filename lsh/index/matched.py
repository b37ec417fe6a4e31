"""The matches of a batch: which comparisons reach the threshold, and the best of each document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lsh.index.batch import Match
from lsh.index.shares import sufficient
from lsh.index.walk import Pairs
from lsh.ordered import first_of_each, lengths, without_repeats
from lsh.sketch import counts, estimates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lsh.index.known import Known
    from lsh.index.rules import BucketRules

__all__ = ["Matched", "matched", "once"]


class Matched(Mapping[int, list[Match]]):
    """The matches of each document that has any, best first, by row.

    They are in arrays, and become objects when they are looked at. compared: with how many
    candidates the documents were compared, in all.
    """

    def __init__(
        self, pairs: Pairs, shares: NDArray[np.float64], known: Known, compared: int
    ) -> None:
        """Take the pairs that match, in order, and the containments that are enough; 0: none."""
        self._pairs = pairs
        self._shares = shares
        self._known = known
        self.compared = compared
        starts = np.flatnonzero(first_of_each(pairs.of))
        ends = starts + lengths(starts, len(pairs.of))
        parts = zip(starts.tolist(), ends.tolist(), strict=True)
        self._parts = dict(zip(pairs.of[starts].tolist(), parts, strict=True))
        self._made: dict[int, list[Match]] = {}

    def __getitem__(self, row: int) -> list[Match]:
        """Return the matches of a document; raise KeyError if it has none."""
        if row not in self._made:
            here = slice(*self._parts[row])
            places = self._pairs.places[here]
            self._made[row] = [
                Match(sequence, alike, ident, share or None)
                for sequence, alike, ident, share in zip(
                    self._known.sequences[places].tolist(),
                    self._pairs.alike[here].tolist(),
                    self._known.ids[places].tolist(),
                    self._shares[here].tolist(),
                    strict=True,
                )
            ]
        return self._made[row]

    def __contains__(self, row: object) -> bool:
        """Return whether a document has matches."""
        return row in self._parts

    def __iter__(self) -> Iterator[int]:
        """Return the rows of the documents that have matches, ascending."""
        return iter(self._parts)

    def __len__(self) -> int:
        """Return how many documents have matches."""
        return len(self._parts)

    def __repr__(self) -> str:
        """Return what a dictionary would show."""
        return repr(dict(self))


def matched(
    pairs: Pairs, shingles: NDArray[np.integer], known: Known, rules: BucketRules
) -> Matched:
    """Return the best matches of documents: most similar first, ties oldest first, each once.

    pairs: the comparisons, each once; see `once`. shingles: of each document, by row. A document
    that was renewed may have several places.
    """
    if not len(pairs.of):
        return Matched(pairs, pairs.alike, known, 0)
    shares = _shares(pairs, shingles, known, rules)
    best = _best(pairs.take((pairs.alike >= rules.threshold) | (shares > 0.0)), known, rules)
    return Matched(best, _shares(best, shingles, known, rules), known, len(pairs.of))


def _shares(
    pairs: Pairs, shingles: NDArray[np.integer], known: Known, rules: BucketRules
) -> NDArray[np.float64]:
    """Return the estimated share of each document in its candidate; 0 if it isn't enough."""
    if rules.containment is None:
        return np.zeros(len(pairs.of))
    sizes, slots = known.shingles[pairs.places], known.sketches.shape[1]
    return sufficient(pairs.alike, shingles[pairs.of], sizes, slots, rules)


def once(pairs: Pairs, slots: int) -> Pairs:
    """Return the different pairs, by row and place. slots: how many each sketch has."""
    if not len(pairs.of):
        return pairs
    # The estimates are few: their ranks fit into one number with the pair, which sorts fastest.
    known = estimates(slots)
    bits, places = len(known).bit_length(), int(pairs.places.max(initial=0)).bit_length()
    ranks = counts(pairs.alike, slots)
    joined = (pairs.of << places | pairs.places) << bits | ranks
    joined = without_repeats(joined)
    of = joined >> (bits + places)
    return Pairs(of, joined >> bits & ((1 << places) - 1), known[joined & ((1 << bits) - 1)])


def _best(pairs: Pairs, known: Known, rules: BucketRules) -> Pairs:
    """Return the best pairs of each row: most similar first, ties oldest first, each once."""
    similar = estimates(known.sketches.shape[1])
    order = np.argsort(known.sequences, kind="stable")
    ages = np.empty(len(order), np.int64)
    ages[order] = np.cumsum(first_of_each(known.sequences[order]))
    bits, age_bits = len(similar).bit_length(), (1 + len(order)).bit_length()
    unlike = len(similar) - counts(pairs.alike, known.sketches.shape[1])
    joined = (pairs.of << bits | unlike) << age_bits | ages[pairs.places]
    joined = without_repeats(joined)
    of = joined >> (bits + age_bits)
    first = np.arange(len(of)) - np.searchsorted(of, of) < rules.max_matches
    joined = joined[first]
    oldest = np.zeros(1 + int(ages.max(initial=0)), np.int64)
    oldest[ages[order][::-1]] = order[::-1]
    at = len(similar) - (joined >> age_bits & ((1 << bits) - 1))
    return Pairs(of[first], oldest[joined & ((1 << age_bits) - 1)], similar[at])
