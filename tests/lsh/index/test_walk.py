"""What becomes of a document in crowded buckets, and what a flood costs, counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from lsh import band_keys
from lsh.index import BucketRules, Decision, DocumentBatch, MemoryIndex, decide, judging
from lsh.index.layout import BEYOND
from lsh.index.records import Records
from lsh.index.walk import Walk
from tests.worker.index.decisions import RULES, Document, batch

CROWDED = replace(RULES, capacity=4, crowded=2)
SLOTS, BANDS, ROWS = 128, 18, 7
FLOODED = BucketRules(threshold=0.8, bands=BANDS, rows=ROWS)


def document(number: int, *others: int) -> Document:
    """Return a document with one key; some of its 16 slots are its own."""
    made = Document(number, 0, 0, (1,))
    made.sketch[list(others)] = 251 + number % 4
    return made


def judged(index: MemoryIndex, documents: list[Document], rules: BucketRules) -> Decision:
    decision = decide(index, batch(documents, [0]), rules)
    index.apply(decision)
    return decision


class Counted(MemoryIndex):
    """An index that notes which documents' records were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[int] = set()

    def recorded(self, numbers: npt.NDArray[np.int64], slots: int) -> Records:
        self.read.update(numbers.tolist())
        return super().recorded(numbers, slots)


def bucket(index: MemoryIndex) -> list[int]:
    (content,) = index.items().values()
    return list(content)


def test_the_first_entry_of_a_crowded_bucket_that_is_like_a_document_stands_for_it() -> None:
    index = MemoryIndex()
    judged(index, [document(1), document(2, 0, 1, 2, 3), document(3, 9)], CROWDED)
    assert bucket(index) == [0, 1]
    # It is like the first one, and not compared with the second one, which matches, too.
    decision = judged(index, [document(4, 8, 9)], CROWDED)
    assert [one.sequence for one in decision.matches[0]] == [1]
    assert (decision.absorbed, decision.covered, decision.candidates) == (1, 1, 1)
    # It is more like the second one. The first one is compared with it, and matches.
    decision = judged(index, [document(6, 0, 1, 2, 3)], CROWDED)
    assert [one.sequence for one in decision.matches[0]] == [2, 1]
    assert (decision.absorbed, decision.covered, bucket(index)) == (1, 0, [0, 1])
    decision = judged(index, [document(5)], CROWDED)
    assert (decision.absorbed, decision.covered) == (1, 0)


def test_records_of_entries_behind_the_one_that_stands_are_not_read() -> None:
    index = Counted()
    rules = replace(RULES, capacity=8, crowded=8)
    judged(index, [document(number, number, number + 1) for number in range(1, 9)], rules)
    assert bucket(index) == list(range(8))
    judged(index, [document(9)], rules)
    assert index.read == {0}
    judged(index, [document(10, 0, 3, 5, 7), document(11)], rules)
    assert index.read == set(range(8))


def test_once_something_was_forgotten_all_first_entries_are_read() -> None:
    index = Counted()
    rules = replace(RULES, capacity=8, crowded=8)
    judged(index, [document(number, number, number + 1) for number in range(1, 9)], rules)
    index.all_kept = False
    judged(index, [document(9)], rules)
    assert index.read == set(range(8))


def test_what_is_like_none_of_the_first_entries_is_compared_with_all_and_inserted() -> None:
    index = MemoryIndex()
    judged(index, [document(1), document(2, 0, 1, 2, 3)], CROWDED)
    other = range(4, 12)
    assert judged(index, [document(3, *other)], CROWDED).matches == {}
    assert bucket(index) == [0, 1, 2]
    # The third one is like it, but not all but identical, and the bucket isn't full.
    decision = judged(index, [document(7, *other, 12, 13)], CROWDED)
    assert [one.sequence for one in decision.matches[0]] == [3]
    assert (decision.absorbed, bucket(index)) == (0, [0, 1, 2, 3])
    # Now it is.
    decision = judged(index, [document(11, *other, 14, 15)], CROWDED)
    assert [one.sequence for one in decision.matches[0]] == [3, 7]
    assert (decision.covered, bucket(index)) == (1, [0, 1, 2, 3])
    assert BEYOND not in bucket(index)


def test_with_a_containment_a_document_is_compared_with_all_entries() -> None:
    rules = replace(CROWDED, containment=0.8, containment_error=0.25)
    index = MemoryIndex()
    documents = [document(number, number % 16) for number in range(1, 5)]
    decision = judged(index, documents, rules)
    assert (decision.covered, bucket(index)) == (0, [0, 1, 2, 3])
    assert len(judged(index, [document(6, 5)], rules).matches[0]) == 4


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


def test_copies_are_judged_together_and_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []

    class Counted(Walk):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            walks.append(len(self._rows))

    monkeypatch.setattr(judging, "Walk", Counted)
    index = MemoryIndex()
    text = np.random.default_rng(1).integers(0, 256, SLOTS, np.uint8)
    for first in (0, 2_000):
        decision = decide(index, flood(first, np.tile(text, (2_000, 1)), [7] * 2_000), FLOODED)
        index.apply(decision)
    assert [len(one) for one in index.items().values()] == [1] * (BANDS + 1)
    assert (len(decision.records), len(decision.matches)) == (0, 2_000)
    assert len(walks) <= 8
    assert sum(walks) <= 1.01 * 2 * 2_000 * (BANDS + 1)


def test_variants_of_a_template_are_compared_with_a_few_and_leave_its_buckets_alone() -> None:
    """Nine tenths of the slots are the template's."""
    chance = np.random.default_rng(2)
    template = chance.integers(0, 256, SLOTS, np.uint8)
    index = MemoryIndex()
    for first in range(0, 6_000, 1_000):
        own = chance.integers(0, 256, (1_000, SLOTS), np.uint8)
        sketches = np.where(chance.random((1_000, SLOTS)) < 0.9, template, own)
        texts = range(first, first + 1_000)
        decision = decide(index, flood(first, sketches, list(texts)), FLOODED)
        index.apply(decision)
        if first >= 2_000:
            assert len(decision.matches) > 970
            assert decision.candidates < 100 * 1_000
            assert decision.absorbed > 7 * 1_000
    (of_template,) = band_keys(template[None], BANDS, ROWS)
    crowded = [
        len(content)
        for key, content in index.items().items()
        if int.from_bytes(key[1:], "big") in set(of_template.tolist())
    ]
    assert len(crowded) == BANDS
    assert max(crowded) <= FLOODED.capacity + 1
