"""An index that is rebuilt from the later part of the order: see docs/adr/0017."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import pairwise_similarity
from lsh.index import BucketRules, DocumentBatch, Match, MemoryIndex, decide, match
from lsh.index.layout import unpack_record

SLOTS = 16
RULES = BucketRules(threshold=0.3, absorb=0.8, capacity=64)
COLUMNS = [1, 2]

Text = tuple[int, int, int]
"""A bit for each slot that differs from the text that all are made from; a key for each column."""


def bits(most: int) -> st.SearchStrategy[int]:
    """Draw changes to up to so many slots; few are as likely as many."""
    slots = st.permutations(range(SLOTS))
    return st.builds(lambda n, order: sum(1 << at for at in order[:n]), st.integers(0, most), slots)


texts = st.tuples(bits(6), st.integers(0, 1), st.integers(0, 2))


def sketch(text: Text) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    changed = (text[0] >> np.arange(SLOTS)) & 1
    return (np.arange(SLOTS) * 7 + changed).astype(np.uint8)


def similarity(one: Text, other: Text) -> float:
    return float(pairwise_similarity(sketch(one)[None], sketch(other)[None])[0])


def keys(some: list[Text]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.array([[text[column] for text in some] for column in COLUMNS], np.uint64)


def built(order: list[Text], first: int) -> MemoryIndex:
    """Return the index of an order from its ``first`` document on, made three at a time."""
    index = MemoryIndex()
    for low in range(first, len(order), 3):
        some = order[low : low + 3]
        numbers = range(low, low + len(some))
        documents = DocumentBatch(
            sequences=np.array(numbers, np.uint64),
            times=np.array(numbers, np.int64),
            ids=[b"%d" % number for number in numbers],
            shingles=np.ones(len(some), np.uint32),
            columns=COLUMNS,
            keys=keys(some),
            sketches=np.array([sketch(text) for text in some], np.uint8),
        )
        index.apply(decide(index, documents, RULES))
    return index


def entries(index: MemoryIndex, order: list[Text]) -> dict[bytes, list[Text]]:
    """Return the documents in each bucket."""
    return {
        key: [
            order[unpack_record(packed).sequence]
            for packed in index.records(bucket)
            if packed is not None
        ]
        for key, bucket in index.items().items()
    }


def matches(index: MemoryIndex, text: Text) -> list[Match]:
    found = match(index, COLUMNS, keys([text]), sketch(text)[None], RULES)
    return found.get(0, [])


@given(st.lists(texts, min_size=2, max_size=30), st.data())
def test_what_a_later_document_renewed_is_stood_for(order: list[Text], data: st.DataObject) -> None:
    first = data.draw(st.integers(1, len(order) - 1))
    live, rebuilt = entries(built(order, 0), order), entries(built(order, first), order)
    for key, bucket in live.items():
        column, own = COLUMNS.index(key[0]), int.from_bytes(key[1:])
        later = [text for text in order[first:] if text[1 + column] == own]
        for entry in bucket:
            if any(similarity(entry, text) >= RULES.absorb for text in later):
                assert any(
                    similarity(entry, other) >= 2 * RULES.absorb - 1 for other in rebuilt[key]
                )


@pytest.mark.parametrize("renewed", range(4), ids="{}_slots".format)
def test_what_is_close_to_a_renewed_entry_is_still_a_duplicate(renewed: int) -> None:
    first: Text = (0, 0, 0)
    copy: Text = ((1 << renewed) - 1, 0, 0)
    assert similarity(first, copy) >= RULES.absorb
    rebuilt = built([first, copy], 1)
    for low, changed in product(range(renewed + 1), range(SLOTS)):
        text: Text = (((1 << changed) - 1 << low) & ((1 << SLOTS) - 1), 0, 0)
        if similarity(first, text) >= RULES.threshold + 2 * (1 - RULES.absorb):
            assert matches(rebuilt, text)


def test_what_is_less_close_may_be_judged_otherwise() -> None:
    first: Text = (0, 0, 0)
    renewing: Text = (0b111, 0, 0)
    later: Text = (0b1111111111 << 6, 0, 0)
    assert similarity(first, renewing) >= RULES.absorb
    assert similarity(first, later) >= RULES.threshold
    assert [one.id for one in matches(built([first, renewing], 0), later)] == [b"0"]
    assert matches(built([first, renewing], 1), later) == []
