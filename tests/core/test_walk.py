"""What becomes of a document in hot buckets, and what a flood costs, counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lsh import band_keys
from lsh._core import Decision, Plan, Query
from lsh.index import BucketRules, DocumentBatch
from tests.core.dictionaries import Driven
from tests.worker.index.decisions import RULES, WINDOW, Document, batch
from worker.index.contents import DOCUMENTS_A_PAGE
from worker.index.keyspace import RECORDS, number_in
from worker.index.store_reader import matches_of

CROWDED = replace(RULES, capacity=4, crowded=2)
SLOTS, BANDS, ROWS = 128, 18, 7
FLOODED = BucketRules(threshold=0.8, bands=BANDS, rows=ROWS)


def document(number: int, *others: int) -> Document:
    """Return a document with one key; some of its 16 slots are its own."""
    made = Document(number, 0, 0, (1,))
    made.sketch[list(others)] = 251 + number % 4
    return made


def judged(shard: Driven, *documents: Document) -> Decision:
    return shard.judge(batch(documents, [0]))


def matched(decision: Decision) -> list[int]:
    """Return the sequence numbers that the first document matches, best first."""
    return [match.sequence for match in matches_of(decision.matches)[0]]


def bucket(shard: Driven) -> list[int]:
    (content,) = shard.store.contents().buckets().values()
    assert not content.beyond
    return content.documents


def test_the_first_entry_of_a_crowded_bucket_that_is_like_a_document_stands_for_it() -> None:
    shard = Driven(CROWDED)
    judged(shard, document(1), document(2, 0, 1, 2, 3), document(3, 9))
    assert bucket(shard) == [0, 1]
    # It is like the first one, and not compared with the second one, which matches, too.
    decision = judged(shard, document(4, 8, 9))
    assert matched(decision) == [1]
    assert (decision.absorbed, decision.covered, decision.candidates) == (1, 1, 1)
    # It is more like the second one. The first one is compared with it, and matches.
    decision = judged(shard, document(6, 0, 1, 2, 3))
    assert matched(decision) == [2, 1]
    assert (decision.absorbed, decision.covered, bucket(shard)) == (1, 0, [0, 1])
    decision = judged(shard, document(5))
    assert (decision.absorbed, decision.covered) == (1, 0)


class Counted(Driven):
    """A shard with one bucket of eight entries, whose records are in different pages."""

    def __init__(self) -> None:
        self.pages: set[int] = set()
        super().__init__(replace(RULES, capacity=8, crowded=8))
        for entry in range(8):
            first = 1 + DOCUMENTS_A_PAGE * entry
            others = [Document(first + n, 0, 0, (first + n,)) for n in range(1, DOCUMENTS_A_PAGE)]
            judged(self, document(first, entry, entry + 1), *others)

    def read(self, plan: Plan | Query) -> None:
        """Read, and note the pages of records."""
        while groups := plan.keys():
            every = {key for _, keys in groups for key in keys}
            self.pages |= {number_in(key) for key in every if RECORDS.low <= key < RECORDS.high}
            plan.give(self.store.get(groups))

    def pages_for(self, *documents: Document) -> int:
        """Return how many pages are read to judge documents."""
        self.reopen()
        self.shard.limit(0, 0)
        self.pages.clear()
        self.decide(batch(documents, [0]))
        return len(self.pages)


def test_records_of_entries_behind_the_one_that_stands_are_not_read() -> None:
    shard = Counted()
    assert shard.pages_for(document(100)) == 1
    assert shard.pages_for(document(100, 0, 3, 5, 7), document(101)) == 8


def test_once_something_was_forgotten_all_first_entries_are_read() -> None:
    shard = Counted()
    shard.judge(batch([b"d2"], [0]))
    assert shard.pages_for(document(100)) == 8


def test_what_is_like_none_of_the_first_entries_is_compared_with_all_and_inserted() -> None:
    shard = Driven(CROWDED)
    judged(shard, document(1), document(2, 0, 1, 2, 3))
    other = range(4, 12)
    assert matched(judged(shard, document(3, *other))) == []
    assert bucket(shard) == [0, 1, 2]
    # The third one is like it, but not all but identical, and the bucket isn't full.
    decision = judged(shard, document(7, *other, 12, 13))
    assert matched(decision) == [3]
    assert (decision.absorbed, bucket(shard)) == (0, [0, 1, 2, 3])
    # Now it is.
    decision = judged(shard, document(11, *other, 14, 15))
    assert matched(decision) == [3, 7]
    assert (decision.covered, bucket(shard)) == (1, [0, 1, 2, 3])


def test_with_a_containment_a_document_is_compared_with_all_entries() -> None:
    shard = Driven(replace(CROWDED, containment=0.8, containment_error=0.25))
    decision = judged(shard, *(document(number, number % 16) for number in range(1, 5)))
    assert (decision.covered, bucket(shard)) == (0, [0, 1, 2, 3])
    assert len(matched(judged(shard, document(6, 5)))) == 4


def test_of_entries_that_are_equally_similar_the_first_is_renewed() -> None:
    """Two entries each differ from the third document in a slot, so either would stand for it."""
    shard = Driven(replace(RULES, window_ms=WINDOW))
    documents = [Document(number, 0, 0, (1,), number) for number in (1, 2, 3)]
    for place in (0, 1):
        documents[place].sketch[place] += 1
    assert judged(shard, *documents).absorbed == 1
    assert bucket(shard) == [0, 1]
    assert shard.store.renewals() == {(0, 0): 3}


def flood(first: int, sketches: npt.NDArray[np.uint8], texts: list[int]) -> DocumentBatch:
    count = len(sketches)
    keys = np.empty((BANDS + 1, count), np.uint64)
    keys[:BANDS] = band_keys(sketches, BANDS, ROWS).T
    keys[BANDS] = texts
    numbers = np.arange(first, first + count)
    return DocumentBatch(
        sequences=numbers.astype(np.uint64),
        times=numbers,
        ids=[b"%d" % number for number in numbers.tolist()],
        shingles=np.full(count, 300, np.uint32),
        columns=range(BANDS + 1),
        keys=keys,
        sketches=sketches,
    )


def test_copies_add_nothing() -> None:
    shard = Driven(FLOODED)
    text = np.random.default_rng(1).integers(0, 256, SLOTS, np.uint8)
    for first in (0, 2_000):
        decision = shard.judge(flood(first, np.tile(text, (2_000, 1)), [7] * 2_000))
    buckets = shard.store.contents().buckets().values()
    assert [len(one.documents) for one in buckets] == [1] * (BANDS + 1)
    assert (decision.inserted, shard.shard.inserted) == (0, 1)
    assert all(matches_of(decision.matches))


def test_variants_of_a_template_are_compared_with_a_few_and_leave_its_buckets_alone() -> None:
    """Nine tenths of the slots are the template's."""
    chance = np.random.default_rng(2)
    template = chance.integers(0, 256, SLOTS, np.uint8)
    shard = Driven(FLOODED, run_documents=1_000)
    for first in range(0, 6_000, 1_000):
        own = chance.integers(0, 256, (1_000, SLOTS), np.uint8)
        sketches = np.where(chance.random((1_000, SLOTS)) < 0.9, template, own)
        texts = range(first, first + 1_000)
        decision = shard.judge(flood(first, sketches, list(texts)))
        if first >= 2_000:
            assert sum(map(bool, matches_of(decision.matches))) > 970
            assert decision.candidates < 100 * 1_000
            assert decision.absorbed > 7 * 1_000
    (of_template,) = band_keys(template[None], BANDS, ROWS).tolist()
    buckets = shard.store.contents().buckets()
    crowded = [len(buckets[place].documents) for place in enumerate(of_template)]
    assert max(crowded) <= FLOODED.capacity
