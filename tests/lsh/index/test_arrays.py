"""An index in arrays and one in dictionaries are one index; what is removed was never there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketKeys, BucketRules, MemoryIndex, decide, match, table
from lsh.index.arrays import ArrayIndex
from lsh.index.layout import BEYOND
from tests.support.corpus import examples
from tests.support.filling import random_documents
from tests.worker.index.decisions import (
    RULES,
    SLOTS,
    Document,
    batch,
    documents_strategy,
    drawn_documents,
    rules_strategy,
)

COLUMNS = [0, 1, 2, 3]
sizes_strategy = st.lists(st.integers(1, 7), min_size=1, max_size=8)


class Both:
    """The same documents in an index in arrays and in dictionaries."""

    def __init__(self, rules: BucketRules) -> None:
        self.rules = rules
        self.arrays = ArrayIndex(len(COLUMNS), SLOTS, rules)
        self.memory = MemoryIndex()
        self.sequences: list[int] = []

    def judge(self, documents: Sequence[Document]) -> None:
        """Judge documents in both, and compare the matches."""
        some = batch(documents, COLUMNS)
        first = self.arrays.inserted
        self.sequences += [document.sequence for document in documents]
        decision = decide(self.memory, some, self.rules)
        found = self.arrays.judge(
            some.keys, some.sketches, some.shingles, np.zeros(len(documents), np.bool_)
        )
        self.memory.apply(decision)
        assert {
            row - first: [
                one._replace(sequence=self.sequences[one.sequence], id=b"") for one in best
            ]
            for row, best in found.items()
        } == {row: [one._replace(id=b"") for one in best] for row, best in decision.matches.items()}

    def compare_buckets(self) -> None:
        """Compare the contents of all buckets."""
        packed = sorted(self.memory.items())
        keys = BucketKeys.unpacked(packed)
        held = self.memory.records(range(self.memory.inserted))
        numbers = [int.from_bytes((record or b"")[:8], "little") for record in held]
        found = self.arrays.buckets(keys)
        for place, key in enumerate(packed):
            expected = [BEYOND if n == BEYOND else numbers[n] for n in self.memory.items()[key]]
            assert [
                BEYOND if row == BEYOND else self.sequences[row] for row in found[place]
            ] == expected


few_strategy = st.sampled_from([0, 64])
"""How many keys are looked up one after the other: none, or all of a small batch."""


def judged(documents: Sequence[Document], sizes: Sequence[int], rules: BucketRules = RULES) -> Both:
    both = Both(rules)
    first = 0
    for size in cycle(sizes):
        if first >= len(documents):
            return both
        both.judge(documents[first : first + size])
        first += size
    raise AssertionError("no sizes")


@settings(max_examples=examples(50), deadline=None)
@given(documents=documents_strategy, sizes=sizes_strategy, few=few_strategy, rules=rules_strategy)
def test_arrays_judge_like_dictionaries_and_hold_the_same_buckets(
    documents: list[Document], sizes: list[int], few: int, rules: BucketRules
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_FEW", few)
        judged(documents, sizes, rules).compare_buckets()


@settings(max_examples=examples(40), deadline=None)
@given(
    documents=documents_strategy,
    sizes=sizes_strategy,
    queries=documents_strategy,
    rules=rules_strategy,
)
def test_a_query_matches_what_it_matches_in_dictionaries(
    documents: list[Document], sizes: list[int], queries: list[Document], rules: BucketRules
) -> None:
    both = judged(documents, sizes, rules)
    some = batch(queries, COLUMNS)
    expected = match(both.memory, COLUMNS, some.keys, some.sketches, rules, sizes=some.shingles)
    found = both.arrays.matches(some.keys, some.sketches, some.shingles)
    rest = [one or None for one in found.containment.tolist()]
    columns = [part.tolist() for part in found[:3]]
    assert list(zip(*columns, rest, strict=True)) == [
        (query, one.sequence, one.similarity, one.containment)
        for query, best in sorted(expected.items())
        for one in best
    ]


@settings(max_examples=examples(50), deadline=None)
@given(documents=documents_strategy, sizes=sizes_strategy, chance=st.randoms(use_true_random=False))
def test_what_is_removed_was_never_there(
    documents: list[Document], sizes: list[int], chance: Random
) -> None:
    both = judged(documents, sizes)
    gone = {row for row in range(len(documents)) if chance.random() < 0.4}
    left = list(range(len(documents)))
    for row in chance.sample(sorted(gone), len(gone)):
        left.remove(row)
        both.arrays.remove(row, np.array(left, np.int64))
    without = judged([documents[row] for row in left], sizes)
    packed = sorted({*both.memory.items(), *without.memory.items()})
    keys = BucketKeys.unpacked(packed)
    found = {
        place: [BEYOND if row == BEYOND else both.sequences[row] for row in bucket]
        for place, bucket in both.arrays.buckets(keys).items()
    }
    assert found == {
        place: [BEYOND if row == BEYOND else without.sequences[row] for row in bucket]
        for place, bucket in without.arrays.buckets(keys).items()
    }


def test_thousands_of_buckets_are_found_as_the_table_grows() -> None:
    both = judged(drawn_documents(1_500, seed=1, crowded=False), [700, 1, 64, 999])
    both.compare_buckets()


def test_documents_are_found_by_every_key_whatever_slots_the_keys_contend_for() -> None:
    some = random_documents(3_000, columns=range(4))
    index = ArrayIndex(4, SLOTS, RULES)
    for low in range(0, 3_000, 1_000):
        part = slice(low, low + 1_000)
        none = np.zeros(1_000, np.bool_)
        index.judge(some.keys[:, part], some.sketches[part], some.shingles[part], none)
    for column in range(4):
        keys = np.zeros_like(some.keys)
        keys[column] = some.keys[column]
        found = index.matches(keys, some.sketches, some.shingles)
        assert found.queries.tolist() == found.rows.tolist() == list(range(3_000))


def test_blank_documents_come_to_no_bucket() -> None:
    index = ArrayIndex(len(COLUMNS), SLOTS, RULES)
    zeros = np.zeros((3, SLOTS), np.uint8)
    keys, counts = np.zeros((4, 3), np.uint64), np.zeros(3, np.uint32)
    assert index.judge(keys, zeros, counts, np.ones(3, np.bool_)) == {}
    assert len(index.matches(keys, zeros, counts).rows) == 0
    found = index.judge(keys, zeros, counts, np.array([True, False, False]))
    assert [(row, [one.sequence for one in best]) for row, best in found.items()] == [(5, [4])]


def test_no_documents_and_no_queries_are_none() -> None:
    index = ArrayIndex(len(COLUMNS), SLOTS, RULES)
    none = batch([], COLUMNS)
    keys = np.zeros((4, 0), np.uint64)
    assert index.judge(keys, none.sketches, none.shingles, np.zeros(0, np.bool_)) == {}
    assert len(index.matches(keys, none.sketches, none.shingles).rows) == 0


def test_it_takes_no_window_and_256_columns_at_most() -> None:
    with pytest.raises(ValueError, match="window_ms: got 5, an index in arrays takes None"):
        ArrayIndex(1, SLOTS, replace(RULES, window_ms=5))
    with pytest.raises(ValueError, match="columns: got 257, an index takes at most 256"):
        ArrayIndex(257, SLOTS, BucketRules(threshold=0.8))
