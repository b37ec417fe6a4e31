"""Documents that meet no other one are judged at once, as they would be one by one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import BucketRules, Decision, DocumentBatch, Forgotten, MemoryIndex, decide
from lsh.index.apart import divided
from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.layout import BEYOND
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
    assert one.changed.packed() == other.changed.packed()
    assert one.buckets == other.buckets
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


@settings(max_examples=60, deadline=None)
@given(
    rows=drawn,
    sizes=st.lists(st.integers(1, 3), min_size=60),
    rules=rules_strategy,
    window=st.booleans(),
)
def test_documents_apart_are_judged_as_one_by_one(
    rows: list[tuple[int, int, tuple[int, ...], int, int]],
    sizes: list[int],
    rules: BucketRules,
    *,
    window: bool,
) -> None:
    """Few come at a time, so most are apart; buckets have some entries, and renewed ones."""
    index = MemoryIndex()
    rules = replace(rules, capacity=6, window_ms=WINDOW if window else None)
    documents, clock = [], 1_000
    for number, (family, changes, keys, step, late) in enumerate(rows, 1):
        clock += step
        documents.append(Document(number, family, changes, keys, clock - late))
    for low, high in pairwise(accumulate(sizes, initial=0)):
        part = batch(documents[low:high], COLUMNS)
        if not part.ids:
            break
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


def test_a_document_is_apart_unless_it_meets_another_or_a_crowded_bucket() -> None:
    keys = np.array([[1, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]], np.uint64)
    cells = cells_of([0, 1], keys)
    place = {key: run for run, key in enumerate(cells.keys.hashes.tolist())}
    found = {2: [7], 3: [7, 8, 9], 4: [7, BEYOND], 5: [9], 11: [9]}
    buckets = Buckets.of({place[key]: found[key] for key in sorted(found)})
    shared_or_found = np.union1d(buckets.places, [place[1]])
    in_any_order = np.array([True] * 5 + [False])
    apart, others = divided(cells, buckets, shared_or_found, 3, in_any_order)
    assert list(zip(apart.rows.tolist(), apart.runs.tolist(), strict=True)) == [(2, place[2])]
    assert others.tolist() == sorted(place[key] for key in (1, 3, 4, 5, 11))


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
