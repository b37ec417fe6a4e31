"""Queries against a shard: what they find, and that they change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from lsh import containment_error
from lsh._core import Damaged
from lsh.index import NO_TIME, BucketRules, DocumentBatch, Match
from tests.core.dictionaries import Driven
from worker.index.keyspace import RECORDS
from worker.index.store_reader import MetBucket, ShardAnswer, matches_of

RULES = BucketRules(threshold=0.5, absorb=0.95, capacity=4, max_matches=2)
COLUMNS = [3, 200]


def sketches(*others: int) -> npt.NDArray[np.uint8]:
    """Return sketches of 10 slots, of which each has so many that no other sketch shares."""
    found = np.zeros((len(others), 10), np.uint8)
    for row, count in enumerate(others):
        found[row, :count] = row + 1
    return found


def batch(
    rows: Sequence[tuple[int, int]],
    others: Sequence[int],
    *,
    first: int = 0,
    times: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    columns: Sequence[int] = COLUMNS,
) -> DocumentBatch:
    """Return documents with these keys; ``others`` as of `sketches`."""
    count = len(rows)
    return DocumentBatch(
        sequences=np.arange(first, first + count, dtype=np.uint64),
        times=np.array([NO_TIME] * count if times is None else times, np.int64),
        ids=[b"%c" % (97 + row) for row in range(count)],
        shingles=np.array([1] * count if sizes is None else sizes, np.uint32),
        columns=columns,
        keys=np.array(rows, np.uint64).reshape(count, 2).T[: len(columns)].copy(),
        sketches=sketches(*others),
    )


def indexed(rules: BucketRules = RULES) -> Driven:
    """Return a shard of three documents: 11 and 12 alike, 13 less, all with the first key 7."""
    shard = Driven(rules)
    shard.judge(batch([(7, 1), (7, 2), (7, 3)], [1, 2, 4], first=11, times=[0] * 3))
    return shard


def asked(shard: Driven, queries: DocumentBatch) -> list[ShardAnswer]:
    matches, met, compared = shard.query(queries).answers()
    buckets = [[MetBucket(*one) for one in some] for some in met]
    return list(map(ShardAnswer, matches_of(matches), buckets, compared))


def matches(shard: Driven, queries: DocumentBatch) -> list[list[Match]]:
    return [answer.matches for answer in asked(shard, queries)]


def test_queries_find_the_most_similar_first_and_no_more_than_is_asked_for() -> None:
    found = matches(indexed(), batch([(7, 9), (8, 8), (8, 3)], [0, 0, 0]))
    every = indexed(BucketRules(threshold=0.0, absorb=0.95, max_matches=64))
    (scores,) = matches(every, batch([(7, 9)], [0]))
    assert [one.id for one in scores] == [b"a", b"b", b"c"]
    assert found == [scores[:2], [], scores[2:]]


def test_a_query_that_equals_a_document_has_similarity_1() -> None:
    (found,) = matches(indexed(), batch([(7, 1)], [1]))
    assert found[0] == Match(11, 1.0, b"a")


def of_sizes(sizes: list[int], others: list[int], rules: BucketRules) -> list[list[Match]]:
    """Return what documents of some sizes match that come one after the other.

    others: of the 10 slots of each, how many no other one has.
    """
    rows = [(7, number) for number in range(len(sizes))]
    return matches_of(Driven(rules).judge(batch(rows, others, sizes=sizes)).matches)


CONTAINING = BucketRules(threshold=0.9, absorb=0.95, containment=0.8, containment_error=1.0)


def test_an_excerpt_matches_what_it_was_cut_from_and_not_the_other_way_round() -> None:
    """Half of the slots agree: an excerpt of half the length, if all of it is in the other."""
    (_, excerpt), (_, whole) = (
        of_sizes(sizes, [0, 5], CONTAINING) for sizes in ([100, 50], [50, 100])
    )
    assert [(one.id, round(one.similarity, 1)) for one in excerpt] == [(b"a", 0.5)]
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
        (b"a", True),
        (b"b", True),
    ]
    assert [(one.id, one.containment) for one in found[1]] == [(b"a", None)]


def test_a_document_that_is_contained_is_no_copy_and_is_inserted() -> None:
    found = of_sizes([100, 50, 50], [0, 5, 5], CONTAINING)
    assert [one.id for one in found[2]] == [b"a"]  # The second one shares half of its slots.
    same = of_sizes([100, 50, 50], [0, 0, 0], CONTAINING)
    assert [one.id for one in same[2]] == [b"a"]  # This one was a copy.


def test_a_query_with_a_containment_tells_by_which_it_matches() -> None:
    (found,) = matches(indexed(CONTAINING), batch([(7, 9)], [0]))
    assert [(one.id, one.containment is None) for one in found] == [(b"a", False), (b"b", False)]


def test_queries_do_not_match_one_another_and_change_nothing() -> None:
    shard = Driven(RULES)
    assert matches(shard, batch([(7, 1), (7, 1)], [0, 0])) == [[], []]
    assert shard.store == Driven(RULES).store
    assert shard.shard.inserted == 0
    shard = indexed()
    before, sizes = deepcopy(shard.store), shard.shard.sizes()
    asked(shard, batch([(7, 1), (8, 1)], [0, 1]))
    assert (shard.store, shard.shard.sizes()) == (before, sizes)


def test_a_query_tells_which_buckets_it_met_and_what_is_in_them() -> None:
    known, unknown = asked(indexed(), batch([(7, 2), (5, 5)], [0, 0]))
    assert [one.sequence for one in known.matches] == [11, 12]
    assert known.met == [MetBucket(3, 0, 3, [11, 12]), MetBucket(200, 0, 1, [12])]
    assert known.compared == 3
    assert unknown == ShardAnswer([], [], 0)


def test_a_query_tells_of_finer_buckets() -> None:
    shard = indexed(BucketRules(threshold=0.95, absorb=1.0, capacity=2))
    (answer,) = asked(shard, batch([(7, 9)], [0]))
    assert answer.met == [MetBucket(3, 0, 2, []), MetBucket(3, 1, 1, [])]


def test_a_query_goes_no_further_than_a_crowded_bucket_that_covers_it() -> None:
    shard = indexed(BucketRules(threshold=0.95, absorb=1.0, capacity=2))
    shard.rules = BucketRules(threshold=0.5, absorb=1.0, capacity=2)
    (answer,) = asked(shard, batch([(7, 9)], [0]))
    assert answer.met == [MetBucket(3, 0, 2, [11])]
    assert answer.compared == 1


def test_queries_see_what_is_not_too_old_when_each_comes() -> None:
    rules = BucketRules(
        threshold=0.5, absorb=1.0, capacity=4, window_ms=10, now_rank=1, now_of=1, now_least=1
    )
    queries = batch([(7, 1), (7, 1), (7, 1)], [1, 1, 1], times=[11, 10, 0])
    found = asked(indexed(rules), queries)
    assert [bool(answer.matches) for answer in found] == [False, True, True]
    assert [len(answer.met) for answer in found] == [0, 2, 2]


def test_no_queries_and_no_columns_match_nothing() -> None:
    assert asked(indexed(), batch([], [])) == []
    assert asked(Driven(RULES), batch([(7, 1)], [0], columns=[])) == [ShardAnswer([], [], 0)]


def test_records_that_are_missing_are_damage() -> None:
    shard = indexed()
    shard.judge(batch([(8, 10 + row) for row in range(16)], [5] * 16, first=20))
    shard.shard.limit(0, 0)
    first = min(key for key in shard.store.keys if RECORDS.low <= key < RECORDS.high)
    del shard.store.keys[first]
    for ask in (shard.query, shard.judge):
        with pytest.raises(Damaged, match="page 0 of the records is missing"):
            ask(batch([(7, 5)], [0], first=50))
