"""The index in memory is the oracle without a window; what is removed was never there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from random import Random
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh._core import MemoryIndex
from lsh.index import BucketRules, DocumentBatch
from tests.oracle.index import NaiveIndex
from tests.support.corpus import examples
from tests.support.filling import random_documents
from tests.worker.index.decisions import (
    CROWDED,
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

Found = list[tuple[int, int, float, float]]
"""Documents, and what they match: sequence numbers, similarity, containment."""


class Both:
    """The same documents in an index of the core and in the oracle."""

    def __init__(self, rules: BucketRules) -> None:
        self.core = MemoryIndex(rules, len(COLUMNS), SLOTS)
        self.naive = NaiveIndex(rules, COLUMNS)
        self.sequences: list[int] = []

    def judge(self, documents: Sequence[Document]) -> None:
        """Judge documents in both, and compare the matches."""
        self.sequences += [document.sequence for document in documents]
        found = self.judged(batch(documents, COLUMNS))
        assert found == [
            (document.sequence, one.sequence, one.similarity, one.containment or 0.0)
            for document in documents
            for one in self.naive.judge(document.plain())
        ]
        assert self.core.compared == self.naive.counts["candidates"]

    def ask(self, queries: Sequence[Document]) -> None:
        """Query both, and compare the answers."""
        assert self.matches(queries) == [
            (place, one.sequence, one.similarity, one.containment or 0.0)
            for place, query in enumerate(queries)
            for one in self.naive.query(query.plain()).matches
        ]

    def judged(self, some: DocumentBatch) -> Found:
        """Judge documents in the core alone."""
        blank = np.zeros(len(some.sequences), np.bool_)
        found = self.core.judge(some.keys.T, some.sketches, some.shingles, blank)
        documents, rows, *rest = (part.tolist() for part in found)
        numbers = self.sequences
        return [
            (numbers[document], numbers[row], *others)
            for document, row, *others in zip(documents, rows, *rest, strict=True)
        ]

    def matches(self, queries: Sequence[Document]) -> Found:
        """Query the core; queries are given by their places."""
        some = batch(queries, COLUMNS)
        found = self.core.matches(some.keys.T, some.sketches, some.shingles)
        documents, rows, *rest = (part.tolist() for part in found)
        named = [self.sequences[row] for row in rows]
        return list(zip(documents, named, *rest, strict=True))


def judged(documents: Sequence[Document], sizes: Sequence[int], rules: BucketRules = RULES) -> Both:
    both = Both(rules)
    first = 0
    for size in cycle(sizes):
        if first >= len(documents):
            return both
        both.judge(documents[first : first + size])
        first += size
    raise AssertionError("no sizes")


@settings(max_examples=examples(60), deadline=None)
@given(
    documents=documents_strategy,
    sizes=sizes_strategy,
    queries=documents_strategy,
    rules=rules_strategy,
)
def test_it_judges_and_answers_like_the_oracle(
    documents: list[Document], sizes: list[int], queries: list[Document], rules: BucketRules
) -> None:
    judged(documents, sizes, rules).ask(queries)


@settings(max_examples=examples(60), deadline=None)
@given(
    documents=documents_strategy,
    sizes=sizes_strategy,
    later=documents_strategy,
    rules=rules_strategy,
    chance=st.randoms(use_true_random=False),
)
def test_what_is_removed_was_never_there(
    documents: list[Document],
    sizes: list[int],
    later: list[Document],
    rules: BucketRules,
    chance: Random,
) -> None:
    both = judged(documents, sizes, rules)
    gone = {row for row in range(len(documents)) if chance.random() < 0.4}
    left = list(range(len(documents)))
    rows = chance.sample(sorted(gone), len(gone))
    while rows:
        some = [rows.pop() for _ in range(chance.randint(1, len(rows)))]
        left = [row for row in left if row not in some]
        both.core.remove(np.array(some, np.int64), np.array(left, np.int64))
    without = judged([documents[row] for row in left], sizes, rules)
    assert both.matches(documents) == without.matches(documents)
    found = []
    for index in both, without:
        index.sequences += range(100, 100 + len(later))
        found.append(index.judged(batch(later, COLUMNS)))
    assert found[0] == found[1]


def test_a_hot_bucket_that_loses_a_leader_is_judged_again() -> None:
    """The last document was compared with the leaders; one that moves up stands for it."""
    keys = 0, 2, 0, 0
    rows = [(1, 2), (0, 4), (0, 2), (0, 0)]
    documents = [Document(number, *row, keys) for number, row in enumerate(rows)]
    both = judged(documents, [1], CROWDED)
    both.core.remove(np.array([1]), np.array([0, 2, 3]))
    without = judged([documents[0], *documents[2:]], [1], CROWDED)
    assert both.matches(documents) == without.matches(documents)


def test_thousands_of_buckets_are_found_as_the_tables_grow() -> None:
    documents = drawn_documents(1_500, seed=1, crowded=False)
    judged(documents, [700, 1, 64, 999]).ask(documents)


def filled(count: int) -> tuple[MemoryIndex, DocumentBatch]:
    some = random_documents(count, columns=range(4))
    index = MemoryIndex(RULES, 4, SLOTS)
    index.judge(some.keys.T, some.sketches, some.shingles, np.zeros(count, np.bool_))
    return index, some


def test_documents_are_found_by_every_key_whatever_others_there_are() -> None:
    index, some = filled(3_000)
    for column in range(4):
        keys = np.zeros_like(some.keys)
        keys[column] = some.keys[column]
        found = index.matches(keys.T, some.sketches, some.shingles)
        assert found[0].tolist() == found[1].tolist() == list(range(3_000))


def test_it_returns_the_columns_of_documents() -> None:
    index, some = filled(50)
    rows = np.array([49, 0, 7])
    assert len(index) == 50
    assert (index.keys(rows) == some.keys[:, rows]).all()
    assert (index.sketches(rows) == some.sketches[rows]).all()
    assert (index.shingles(rows) == some.shingles[rows]).all()
    assert index.with_key(3, int(some.keys[3, 7])).tolist() == [7]
    assert index.similarity(rows, rows).tolist() == [1.0] * 3
    assert (
        index.similarity(rows[:1], rows).tolist() == index.similarity(rows, rows[[0] * 3]).tolist()
    )


def test_blank_documents_come_to_no_bucket() -> None:
    index = MemoryIndex(RULES, len(COLUMNS), SLOTS)
    zeros = np.zeros((3, SLOTS), np.uint8)
    keys, counts = np.zeros((3, 4), np.uint64), np.zeros(3, np.uint32)
    assert len(index.judge(keys, zeros, counts, np.ones(3, np.bool_))[0]) == 0
    assert len(index.matches(keys, zeros, counts)[0]) == 0
    found = index.judge(keys, zeros, counts, np.array([True, False, False]))
    assert [part.tolist() for part in found[:2]] == [[5], [4]]


def test_no_documents_and_no_queries_are_none() -> None:
    index, some = MemoryIndex(RULES, 4, SLOTS), batch([], COLUMNS)
    keys = np.zeros((0, 4), np.uint64)
    assert len(index.judge(keys, some.sketches, some.shingles, np.zeros(0, np.bool_))[0]) == 0
    assert len(index.matches(keys, some.sketches, some.shingles)[0]) == 0


def test_it_takes_no_window_and_256_columns_at_most() -> None:
    with pytest.raises(ValueError, match="window_ms: got 5, an index in memory takes None"):
        MemoryIndex(replace(RULES, window_ms=5), 1, SLOTS)
    with pytest.raises(ValueError, match="columns: got 257, an index takes at most 256"):
        MemoryIndex(BucketRules(threshold=0.8), 257, SLOTS)


def test_arrays_of_another_shape_and_rows_that_are_none_change_nothing() -> None:
    index, some = filled(5)
    keys, sketches, shingles = some.keys.T, some.sketches, some.shingles
    with pytest.raises(ValueError, match="keys, sketches: got arrays of"):
        index.judge(keys[:, :3], sketches, shingles, np.zeros(5, np.bool_))
    with pytest.raises(ValueError, match="keys, sketches: got arrays of"):
        index.matches(keys, sketches[:, 1:], shingles)
    with pytest.raises(ValueError, match="blank: got 4, takes 5"):
        index.judge(keys, sketches, shingles, np.zeros(4, np.bool_))
    for rows in np.array([5]), np.array([-1]):
        with pytest.raises(ValueError, match=r"row -?[15]: the index has 5 rows"):
            index.keys(rows)
        with pytest.raises(ValueError, match=r"row -?[15]: the index has 5 rows"):
            index.remove(np.array([0]), rows)
    with pytest.raises(ValueError, match="row 5: the index has 5 rows"):
        index.remove(np.array([5]), np.arange(4))
    with pytest.raises(ValueError, match="column 4: the index has 4 columns"):
        index.with_key(4, 0)
    with pytest.raises(ValueError, match="left: got 2 rows, takes 3 or 1"):
        index.similarity(np.arange(2), np.arange(3))
    found = index.matches(keys, sketches, shingles)
    assert found[0].tolist() == found[1].tolist() == list(range(5))


def test_threads_that_change_it_at_a_time_are_refused_or_take_turns() -> None:
    some = random_documents(4_000, columns=range(4))
    index = MemoryIndex(RULES, 4, SLOTS)
    refused: list[str] = []

    def add() -> None:
        try:
            index.judge(some.keys.T, some.sketches, some.shingles, np.zeros(4_000, np.bool_))
        except RuntimeError as error:
            refused.append(str(error))

    threads = [Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(refused) <= {"Already borrowed", "Already mutably borrowed"}
    assert len(index) == 4_000 * (8 - len(refused)) > 0
