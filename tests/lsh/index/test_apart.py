"""Documents that don't depend on each other are judged at once, as they would be one by one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, Decision, DocumentBatch, Forgotten, MemoryIndex, apart, decide
from lsh.index.apart import Apart, rounds
from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from tests.support.corpus import scaled
from tests.worker.index.decisions import (
    RULES,
    WINDOW,
    Document,
    batch,
    rules_strategy,
)

COLUMNS = [0, 1, 2, 3]


def in_order(documents: DocumentBatch) -> DocumentBatch:
    """Return a batch that is judged one by one, because an id is forgotten that nobody has."""
    return replace(documents, forgotten=[Forgotten(len(documents.ids), b"nobody")])


def same(one: Decision, other: Decision) -> None:
    assert list(one.matches.items()) == list(other.matches.items())
    assert one.records == other.records
    assert one.cells.keys.packed() == other.cells.keys.packed()
    assert one.cells.documents.tolist() == other.cells.documents.tolist()
    changed, others = (
        list(zip(decision.changed.packed(), decision.buckets.lists(), strict=True))
        for decision in (one, other)
    )
    # Finer buckets are in the order in which documents came to them.
    assert sorted(changed) == sorted(others)
    assert one.renewals == other.renewals
    counts = [(d.candidates, d.absorbed, d.divided, d.dropped, d.late, d.now) for d in (one, other)]
    assert counts[0] == counts[1]


drawn = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from([0, 0, 1, 2, 5, 8]),
        st.tuples(*[st.integers(0, 6)] * 4),
        st.sampled_from([0, 5, 10, 20, 60]),
        st.sampled_from([0, 0, 30, 100, 101]),
    ),
    min_size=20,
    max_size=60,
)


@settings(max_examples=scaled(70, 700), deadline=None)
@given(
    rows=drawn,
    sizes=st.lists(st.integers(1, 3), min_size=60) | st.lists(st.integers(1, 20), min_size=60),
    rules=rules_strategy,
    capacity=st.sampled_from([2, 3, 6]),
    window=st.booleans(),
    fewest=st.sampled_from([1, 1, 3]),
    moved=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
def test_documents_apart_are_judged_as_one_by_one(
    rows: list[tuple[int, int, tuple[int, ...], int, int]],
    sizes: list[int],
    rules: BucketRules,
    *,
    capacity: int,
    window: bool,
    fewest: int,
    moved: float,
) -> None:
    """Buckets have some entries, and renewed ones; some become full, and documents move."""
    index = MemoryIndex()
    rules = replace(rules, capacity=capacity, window_ms=WINDOW if window else None)
    documents, clock = [], 1_000
    for number, (family, changes, keys, step, late) in enumerate(rows, 1):
        clock += step
        documents.append(Document(number, family, changes, keys, clock - late))
    for low, high in pairwise(accumulate(sizes, initial=0)):
        part = batch(documents[low:high], COLUMNS)
        if not part.ids:
            break
        index.moved_below = int(moved * index.inserted)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(apart, "FEWEST", fewest)
            decision = decide(index, part, rules)
        same(decision, decide(deepcopy(index), in_order(part), rules))
        index.apply(decision)


def test_of_entries_that_are_equally_similar_the_first_is_renewed() -> None:
    """Two entries each differ from the third document in a slot, so either would stand for it."""
    rules = replace(RULES, window_ms=WINDOW)
    first, second, third = (Document(number, 0, 0, (1, 2, 3, 4), number) for number in (1, 2, 3))
    first.sketch[0] += 1
    second.sketch[1] += 1
    index = MemoryIndex()
    for document in (first, second, third):
        decision = decide(index, batch([document], COLUMNS), rules)
        index.apply(decision)
    assert decision.absorbed == len(COLUMNS)
    assert decision.renewals == {0: dict.fromkeys(COLUMNS, 3)}


def divided(keys: list[list[int]], any_order: list[bool]) -> tuple[list[list[int]], list[int]]:
    """Return the rows of each round, and those that are left, of documents with these keys."""
    cells = cells_of(range(len(keys)), np.array(keys, np.uint64))
    left = Apart(*cells.pairs(np.arange(len(cells.sizes))))
    found = []
    for part, rest in rounds(cells, left, np.array(any_order)):
        found.append(sorted(set(part.rows.tolist())))
        left = rest
    return found, sorted(set(left.rows.tolist()))


def test_a_document_is_judged_after_the_earlier_ones_that_it_meets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "FEWEST", 1)
    # The third meets both others of the first column, the last one the second in the other.
    keys = [[1, 2, 1, 3, 1, 4], [10, 11, 12, 13, 14, 11]]
    assert divided(keys, [True] * 6) == ([[0, 1, 3], [2, 5], [4]], [])
    # What meets a late document is left, and so is what meets that.
    assert divided(keys, [True, True, False, True, True, True]) == ([[0, 1, 3], [5]], [2, 4])


def test_few_documents_are_not_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "FEWEST", 3)
    keys = [[1, 2, 1, 3, 1, 2]]
    assert divided(keys, [True] * 6) == ([[0, 1, 3]], [2, 4, 5])


@given(
    found=st.dictionaries(st.integers(0, 50), st.lists(st.integers(-1, 9), max_size=4)),
    chosen=st.sets(st.integers(0, 50)),
)
def test_buckets_are_a_mapping(found: dict[int, list[int]], chosen: set[int]) -> None:
    found = dict(sorted(found.items()))
    buckets = Buckets.of(found)
    found = {place: bucket for place, bucket in found.items() if bucket}
    assert dict(buckets) == found
    assert Buckets.of(buckets) is buckets
    at = [index for index, place in enumerate(found) if place in chosen]
    assert buckets.at(np.array(at, np.int64)) == {
        place: bucket for place, bucket in found.items() if place in chosen
    }
    for place in chosen - found.keys():
        with pytest.raises(KeyError):
            buckets[place]
