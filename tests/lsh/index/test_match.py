"""Queries against an index: what they find, and that they change nothing."""

from __future__ import annotations

import doctest

import numpy as np
import numpy.typing as npt
import pytest

import lsh.index
from lsh.index import (
    BucketRules,
    DocumentBatch,
    Match,
    MemoryIndex,
    RecordMissing,
    decide,
    match,
)

RULES = BucketRules(threshold=0.5, absorb=0.95, capacity=4, max_matches=2)
COLUMNS = [3, 200]


def sketches(*others: int) -> npt.NDArray[np.uint8]:
    """Return sketches of 10 slots, of which each has so many that no other sketch shares."""
    found = np.zeros((len(others), 10), np.uint8)
    for row, count in enumerate(others):
        found[row, :count] = row + 1
    return found


def keys(*rows: tuple[int, int]) -> npt.NDArray[np.uint64]:
    return np.array(rows, np.uint64).T.copy()


def indexed() -> MemoryIndex:
    """Return an index of three documents: 11 and 12 alike, 13 less, all with the first key 7."""
    batch = DocumentBatch(
        sequences=np.array([11, 12, 13], np.uint64),
        times=np.zeros(3, np.int64),
        ids=[b"a", b"b", b"c"],
        shingles=np.ones(3, np.uint32),
        columns=COLUMNS,
        keys=keys((7, 1), (7, 2), (7, 3)),
        sketches=sketches(1, 2, 4),
    )
    index = MemoryIndex()
    index.apply(decide(index, batch, RULES))
    return index


def test_the_example_in_the_package_runs() -> None:
    assert doctest.testmod(lsh.index) == doctest.TestResults(failed=0, attempted=9)


def test_queries_find_the_most_similar_first_and_no_more_than_is_asked_for() -> None:
    found = match(indexed(), COLUMNS, keys((7, 9), (8, 8), (8, 3)), sketches(0, 0, 0), RULES)
    exactly = BucketRules(threshold=0.0, max_matches=64)
    (scores,) = match(indexed(), COLUMNS, keys((7, 9)), sketches(0), exactly).values()
    assert [one.id for one in scores] == [b"a", b"b", b"c"]
    assert found == {0: scores[:2], 2: scores[2:]}


def test_a_query_that_equals_a_document_has_similarity_1() -> None:
    found = match(indexed(), COLUMNS, keys((7, 1)), sketches(1), RULES)
    assert found[0][0] == Match(11, 1.0, b"a")


def test_queries_do_not_match_one_another_and_change_nothing() -> None:
    index = MemoryIndex()
    assert match(index, COLUMNS, keys((7, 1), (7, 1)), sketches(0, 0), RULES) == {}
    assert dict(index.items()) == {}


def test_no_queries_and_no_columns_match_nothing() -> None:
    none = np.empty((2, 0), np.uint64)
    assert match(indexed(), COLUMNS, none, sketches(), RULES) == {}
    assert match(indexed(), [], np.empty((0, 1), np.uint64), sketches(0), RULES) == {}


def test_a_bucket_that_names_a_document_without_a_record_is_damage() -> None:
    index = indexed()
    whole = decide(MemoryIndex(), _one(14), RULES)
    whole.records.clear()
    assert len(whole.cells.documents) == len(COLUMNS)
    whole.cells.documents[:] = 14
    index.apply(whole)
    with pytest.raises(RecordMissing, match="names document 14, which has no record"):
        match(index, COLUMNS, keys((7, 5)), sketches(0), RULES)
    with pytest.raises(RecordMissing):
        decide(index, _one(15), RULES)


def _one(sequence: int) -> DocumentBatch:
    return DocumentBatch(
        sequences=np.array([sequence], np.uint64),
        times=np.zeros(1, np.int64),
        ids=[b"x"],
        shingles=np.ones(1, np.uint32),
        columns=COLUMNS,
        keys=keys((7, 5)),
        sketches=sketches(0),
    )
