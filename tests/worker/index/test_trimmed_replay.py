"""An index that is rebuilt from the later part of the order: see docs/adr/0018."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lsh import pairwise_similarity
from lsh.index import NO_TIME, BucketRules, DocumentBatch, Match
from tests.core.dictionaries import Driven
from tests.support.corpus import examples
from tests.support.stored_clock import StoredClock
from worker.index.contents import Key
from worker.index.store_reader import matches_of

SLOTS = 16
WINDOW = 20
RULES = BucketRules(
    threshold=0.3, absorb=0.8, capacity=64, window_ms=WINDOW, now_rank=1, now_of=1, now_least=1
)
COLUMNS = [1, 2]

Text = tuple[int, int, int]
"""A bit for each slot that differs from the text that all are made from; a key for each column."""


def bits(most: int) -> st.SearchStrategy[int]:
    """Draw changes to up to so many slots; few are as likely as many."""
    slots = st.permutations(range(SLOTS))
    return st.builds(lambda n, order: sum(1 << at for at in order[:n]), st.integers(0, most), slots)


pauses = st.sampled_from([0, 5, 10])
ages = st.sampled_from([0, 0, 0, 5, 30, None])
nows = st.sampled_from([(1, 1, 1), (2, 4, 3), (3, 6, 4)])
texts = st.tuples(bits(3), st.just(0), st.integers(0, 1))


def sketch(text: Text) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    changed = (text[0] >> np.arange(SLOTS)) & 1
    return (np.arange(SLOTS) * 7 + changed).astype(np.uint8)


def similarity(one: Text, other: Text) -> float:
    return float(pairwise_similarity(sketch(one)[None], sketch(other)[None])[0])


def batch(some: Sequence[Text], times: Sequence[int], first: int) -> DocumentBatch:
    numbers = range(first, first + len(some))
    return DocumentBatch(
        sequences=np.array(numbers, np.uint64),
        times=np.array(times, np.int64),
        ids=[b"%d" % number for number in numbers],
        shingles=np.ones(len(some), np.uint32),
        columns=COLUMNS,
        keys=np.array([[text[column] for text in some] for column in COLUMNS], np.uint64),
        sketches=np.array([sketch(text) for text in some], np.uint8),
    )


def built(
    order: Sequence[Text], times: Sequence[int], first: int, rules: BucketRules = RULES
) -> Driven:
    """Return the shard of an order from its ``first`` document on, made three at a time."""
    shard = Driven(rules)
    for low in range(first, len(order), 3):
        shard.judge(batch(order[low : low + 3], times[low : low + 3], low))
    return shard


def living(shard: Driven, order: Sequence[Text]) -> dict[Key, list[Text]]:
    """Return the documents in each bucket that are not older than the window."""
    found: dict[Key, list[Text]] = {}
    contents, renewals = shard.store.contents(), shard.store.renewals()
    records = dict(enumerate(contents.records(), contents.first))
    clock, now = StoredClock.unpacked(shard.store.clock), shard.shard.now
    for key, bucket in contents.buckets().items():
        for number in bucket.documents:
            record = records[number]
            assert record is not None
            time = clock.settled(renewals.get((number, key[0]), record.time))
            if now is None or time >= now - WINDOW:
                found.setdefault(key, []).append(order[record.sequence])
    return found


def matches(shard: Driven, text: Text) -> list[Match]:
    found, _, _ = shard.query(batch([text], [NO_TIME], 0)).answers()
    return matches_of(found)[0]


@settings(max_examples=examples(100, 2_000), deadline=None)
@given(st.lists(st.tuples(texts, pauses, ages), min_size=1, max_size=16), nows)
def test_each_living_entry_is_stood_for(
    documents: list[tuple[Text, int, int | None]], now: tuple[int, int, int]
) -> None:
    rank, last, least = now
    assume(all(age is not None for _, _, age in documents[:least]))
    rules = replace(RULES, now_rank=rank, now_of=last, now_least=least)
    order = [text for text, _, _ in documents]
    appended = list(accumulate(pause for _, pause, _ in documents))
    times = [
        NO_TIME if age is None else at - age
        for at, (_, _, age) in zip(appended, documents, strict=True)
    ]
    live = built(order, times, 0, rules)
    since = 0 if live.shard.now is None else live.shard.now - WINDOW
    kept = next(n for n, at in enumerate(appended) if at >= since)
    # What comes before there is a now counts as of the first one, so it lives for longer than the
    # log keeps it; and until then a shard can't tell what is far from now. So the first now must be
    # out of the window, and the rest of the log must begin with documents that are in it.
    assume(kept == 0 or sorted(times[:least])[-rank] < since)
    assume(all(time >= since for time in times[kept : kept + least]))
    rebuilt = living(built(order, times, kept, rules), order)
    for key, bucket in living(live, order).items():
        for entry in bucket:
            assert any(similarity(entry, other) >= 2 * RULES.absorb - 1 for other in rebuilt[key])


@pytest.mark.parametrize("renewed", range(4), ids="{}_slots".format)
def test_what_is_close_to_a_renewed_entry_is_still_a_duplicate(renewed: int) -> None:
    first: Text = (0, 0, 0)
    copy: Text = ((1 << renewed) - 1, 0, 0)
    assert similarity(first, copy) >= RULES.absorb
    rebuilt = built([first, copy], [0, 0], 1)
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
    assert [one.id for one in matches(built([first, renewing], [0, 0], 0), later)] == [b"0"]
    assert matches(built([first, renewing], [0, 0], 1), later) == []
