"""Documents that meet no other one are judged at once, as they would be one by one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh.index import Decision, DocumentBatch, Forgotten, MemoryIndex, decide
from lsh.index.apart import divided
from lsh.index.buckets import Buckets
from lsh.index.cells import cells_of
from lsh.index.layout import BEYOND
from tests.worker.index.decisions import (
    RULES,
    WINDOW,
    Document,
    batch,
    documents_strategy,
    timed_documents_strategy,
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
    counts = [(d.candidates, d.absorbed, d.dropped, d.late, d.now) for d in (one, other)]
    assert counts[0] == counts[1]


@settings(max_examples=60, deadline=None)
@given(
    documents=documents_strategy,
    timed=timed_documents_strategy,
    cuts=st.lists(st.integers(0, 40), max_size=6),
    window=st.sampled_from([None, WINDOW]),
)
def test_documents_apart_are_judged_as_one_by_one(
    documents: list[Document], timed: list[Document], cuts: list[int], window: int | None
) -> None:
    index = MemoryIndex()
    rules = replace(RULES, window_ms=window)
    some = documents if window is None else timed
    for low, high in pairwise(sorted({0, *cuts, len(some)})):
        part = batch(some[low:high], COLUMNS)
        if not part.ids:
            continue
        decision = decide(index, part, rules)
        same(decision, decide(deepcopy(index), in_order(part), rules))
        index.apply(decision)


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
    assert dict(buckets) == found
    assert Buckets.of(buckets) is buckets
    at = [index for index, place in enumerate(found) if place in chosen]
    assert buckets.at(np.array(at, np.int64)) == {
        place: bucket for place, bucket in found.items() if place in chosen
    }
    for place in chosen - found.keys():
        with pytest.raises(KeyError):
            buckets[place]
