"""How many comparisons an index makes, and the rules that it takes."""

from __future__ import annotations

import doctest
from collections.abc import Iterator, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import lsh.index
from lsh import Fingerprinter, Fingerprints, Parameters
from lsh.index import BucketRules, comparisons

FINGERPRINTER = Fingerprinter(Parameters(slots=16, bands=8, rows=2, shingle_size=2))
RULES = BucketRules(threshold=0.8, absorb=1.0)

texts = st.lists(st.text("ab ", max_size=8), max_size=20)


def prints_of(given: Sequence[str], together: int) -> Iterator[Fingerprints]:
    for low in range(0, len(given), together):
        yield FINGERPRINTER.fingerprint(given[low : low + together])


def test_the_example_in_the_module_runs() -> None:
    assert doctest.testmod(lsh.index) == doctest.TestResults(failed=0, attempted=4)


@given(texts, st.integers(1, 8))
def test_a_document_meets_each_entry_that_shares_a_key(given: list[str], together: int) -> None:
    prints = FINGERPRINTER.fingerprint(given)
    met = 0
    entries: list[set[int]] = [set() for _ in range(prints.keys.shape[1])]
    for row in np.flatnonzero(~prints.blank).tolist():
        own = prints.keys[row]
        candidates = [
            {other for other in kept if prints.keys[other, band] == own[band]}
            for band, kept in enumerate(entries)
        ]
        met += len(set().union(*candidates))
        for kept, others in zip(entries, candidates, strict=True):
            if not any((prints.sketches[row] == prints.sketches[other]).all() for other in others):
                kept.add(row)
    assert comparisons(prints_of(given, together), RULES) == met


def test_copies_are_compared_with_the_first_of_them() -> None:
    given = ["one text", "another text altogether", *["one text"] * 5]
    alone = comparisons(prints_of(given[:2], 9), RULES)
    assert comparisons(prints_of(given, 9), RULES) >= alone + 5
    looser = BucketRules(threshold=0.8, absorb=2.0)  # Nothing is absorbed.
    assert comparisons(prints_of(given, 9), looser) >= alone + 5 * 6 / 2


def test_blank_texts_and_none_at_all_meet_nothing() -> None:
    assert comparisons([], RULES) == 0
    assert comparisons(prints_of(["", "  ", ""], 2), RULES) == 0
