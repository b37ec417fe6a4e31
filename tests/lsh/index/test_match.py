"""Queries against an index: what they find, and that they change nothing."""

from __future__ import annotations

import doctest

import numpy as np
import numpy.typing as npt
import pytest

import lsh.index
from lsh.index import (
    Answer,
    BucketRules,
    DocumentBatch,
    Match,
    MemoryIndex,
    MetBucket,
    RecordMissing,
    decide,
    match,
    query,
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


def indexed(rules: BucketRules = RULES) -> MemoryIndex:
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
    index.apply(decide(index, batch, rules))
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


def test_a_query_tells_which_buckets_it_met_and_what_is_in_them() -> None:
    known, unknown = query(indexed(), COLUMNS, keys((7, 2), (5, 5)), sketches(0, 0), RULES)
    assert [one.sequence for one in known.matches] == [11, 12]
    assert known.met == [MetBucket(3, 0, 3, (11, 12)), MetBucket(200, 0, 1, (12,))]
    assert known.compared == 3
    assert unknown == Answer([], [], 0)


def test_a_query_tells_of_finer_buckets() -> None:
    rules = BucketRules(threshold=0.5, absorb=1.0, capacity=2)
    (answer,) = query(indexed(rules), COLUMNS, keys((7, 9)), sketches(0), rules)
    assert answer.met == [MetBucket(3, 0, 2, (11, 12)), MetBucket(3, 1, 1, (13,))]


def test_queries_see_what_is_not_too_old_when_each_comes() -> None:
    rules = BucketRules(threshold=0.5, absorb=1.0, capacity=4, window_ms=10)
    index = indexed(rules)
    times = np.array([11, 10, 0], np.int64)
    found = query(
        index, COLUMNS, keys((7, 1), (7, 1), (7, 1)), sketches(1, 1, 1), rules, times=times
    )
    assert [bool(answer.matches) for answer in found] == [False, True, True]
    assert [len(answer.met) for answer in found] == [0, 2, 2]


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
