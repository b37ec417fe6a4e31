"""Documents that are judged together get the verdicts that they would get one by one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, Decision, MemoryIndex, decide, rounds
from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.rounds import Rounds
from tests.support.corpus import examples
from tests.worker.index.decisions import (
    RULES,
    WINDOW,
    Document,
    batch,
    rules_strategy,
)

COLUMNS = [0, 1, 2, 3]


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
    counts = [
        (d.candidates, d.absorbed, d.covered, d.divided, d.dropped, d.dates.clock)
        for d in (one, other)
    ]
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


@settings(max_examples=examples(40, 700), deadline=None)
@given(
    rows=drawn,
    sizes=st.lists(st.integers(1, 3), min_size=60) | st.lists(st.integers(1, 20), min_size=60),
    rules=rules_strategy,
    capacity=st.sampled_from([2, 3, 6]),
    window=st.booleans(),
    growth=st.sampled_from([2, 3, 32]),
    forgotten=st.sets(st.integers(1, 60), max_size=6),
    moved=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)
def test_documents_are_judged_together_as_one_by_one(
    rows: list[tuple[int, int, tuple[int, ...], int, int]],
    sizes: list[int],
    rules: BucketRules,
    *,
    capacity: int,
    window: bool,
    growth: int,
    forgotten: set[int],
    moved: float,
) -> None:
    """Buckets have some entries, and renewed ones; some become full, and documents move."""
    index = MemoryIndex()
    rules = replace(rules, capacity=capacity, window_ms=WINDOW if window else None)
    events: list[Document | bytes] = []
    clock = 1_000
    for number, (family, changes, keys, step, late) in enumerate(rows, 1):
        clock += step
        events.append(Document(number, family, changes, keys, clock - late))
        if number in forgotten:
            events.append(b"d%d" % max(1, number - 5))
    for low, high in pairwise(accumulate(sizes, initial=0)):
        part = batch(events[low:high], COLUMNS)
        if not part.ids:
            continue
        index.moved_below = int(moved * index.inserted)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounds, "_GROWTH", growth)
            decision = decide(index, part, rules)
            patch.setattr(rounds, "_GROWTH", 1)
            same(decision, decide(deepcopy(index), part, rules))
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


def test_more_and_more_of_a_run_are_judged_together_while_that_goes_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rounds, "_GROWTH", 3)
    cells = cells_of(range(1), np.array([[5, 7, 5, 5, 5, 5, 7, 5, 5, 5, 5]], np.uint64))
    judging = Rounds(cells, np.array([0, 1]))
    asked = []
    again = [set(), {3}, {4}, set(), set()]
    while judging:
        rows, _ = judging.chosen()
        asked.append(rows.tolist())
        judging.judged(np.isin(rows, list(again[len(asked) - 1])))
    # Of the run of 5: one, three of which the second is disturbed, one, three, and what is left.
    assert asked == [[0, 1], [2, 3, 4, 6], [3], [4, 5, 7], [8, 9, 10]]


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
