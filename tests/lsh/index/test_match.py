"""Queries against an index: what they find, and that they change nothing."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import lsh.index
from lsh import containment_error
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


def of_sizes(sizes: list[int], others: list[int], rules: BucketRules) -> list[list[Match]]:
    """Return what documents of some sizes match that come one after the other.

    others: of the 10 slots of each, how many no other one has.
    """
    batch = DocumentBatch(
        sequences=np.arange(len(sizes), dtype=np.uint64),
        times=np.zeros(len(sizes), np.int64),
        ids=[b"%d" % number for number in range(len(sizes))],
        shingles=np.array(sizes, np.uint32),
        columns=COLUMNS,
        keys=keys(*[(7, number) for number in range(len(sizes))]),
        sketches=sketches(*others),
    )
    decision = decide(MemoryIndex(), batch, rules)
    return [decision.matches.get(row, []) for row in range(len(sizes))]


CONTAINING = BucketRules(threshold=0.9, absorb=0.95, containment=0.8, containment_error=1.0)


def test_an_excerpt_matches_what_it_was_cut_from_and_not_the_other_way_round() -> None:
    """Half of the slots agree: an excerpt of half the length, if all of it is in the other."""
    (_, excerpt), (_, whole) = (
        of_sizes(sizes, [0, 5], CONTAINING) for sizes in ([100, 50], [50, 100])
    )
    assert [(one.id, round(one.similarity, 1)) for one in excerpt] == [(b"0", 0.5)]
    assert excerpt[0].containment == 1.0
    assert whole == []
    assert of_sizes([100, 50], [0, 5], BucketRules(threshold=0.9)) == [[], []]


def test_an_estimate_with_a_large_error_does_not_count() -> None:
    """Half of the slots agree, so an excerpt of half the length has an error of 0.2."""
    error = float(containment_error(1.0, 2.0, 10))
    for most, found in ((1.02 * error, 1), (0.98 * error, 0)):
        rules = replace(CONTAINING, containment_error=most)
        assert len(of_sizes([100, 50], [0, 5], rules)[1]) == found


def test_a_match_says_its_containment_if_that_is_enough_whatever_its_similarity() -> None:
    rules = replace(CONTAINING, threshold=0.5, absorb=1.0)
    found = of_sizes([100, 400, 100], [0, 1, 2], rules)
    assert [(one.id, one.containment is not None) for one in found[2]] == [
        (b"0", True),
        (b"1", True),
    ]
    assert [(one.id, one.containment) for one in found[1]] == [(b"0", None)]


def test_a_document_that_is_contained_is_no_copy_and_is_inserted() -> None:
    found = of_sizes([100, 50, 50], [0, 5, 5], CONTAINING)
    assert [one.id for one in found[2]] == [b"0"]  # The second one shares half of its slots.
    same = of_sizes([100, 50, 50], [0, 0, 0], CONTAINING)
    assert [one.id for one in same[2]] == [b"0"]  # This one was a copy.


def test_a_query_with_a_containment_says_how_large_it_is() -> None:
    index = indexed(CONTAINING)
    with pytest.raises(ValueError, match="sizes: got None, rules with a containment take"):
        query(index, COLUMNS, keys((7, 9)), sketches(0), CONTAINING)
    sizes = np.ones(1, np.uint32)
    (answer,) = query(index, COLUMNS, keys((7, 9)), sketches(0), CONTAINING, sizes=sizes)
    assert [(one.id, one.containment is None) for one in answer.matches] == [
        (b"a", False),
        (b"b", False),
    ]


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
    rules = BucketRules(threshold=0.95, absorb=1.0, capacity=2)
    (answer,) = query(indexed(rules), COLUMNS, keys((7, 9)), sketches(0), rules)
    assert answer.met == [MetBucket(3, 0, 2, ()), MetBucket(3, 1, 1, ())]


def test_a_query_goes_no_further_than_a_crowded_bucket_that_covers_it() -> None:
    index = indexed(BucketRules(threshold=0.95, absorb=1.0, capacity=2))
    rules = BucketRules(threshold=0.5, absorb=1.0, capacity=2)
    (answer,) = query(index, COLUMNS, keys((7, 9)), sketches(0), rules)
    assert answer.met == [MetBucket(3, 0, 2, (11,))]
    assert answer.compared == 1


def test_queries_see_what_is_not_too_old_when_each_comes() -> None:
    rules = BucketRules(
        threshold=0.5, absorb=1.0, capacity=4, window_ms=10, now_rank=1, now_of=1, now_least=1
    )
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
