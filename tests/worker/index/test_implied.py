"""Buckets that follow from others that were read, against plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lsh import band_keys
from lsh.index import BucketKeys, BucketRules, Match
from lsh.index.query import query
from tests.support.breadth import broad
from tests.worker.index.decisions import RULES, SLOTS, WINDOW, Document, batch, model
from worker.index.store import BandStore, StoreOptions

BANDS, ROWS = 4, 4
FOLLOWING = replace(RULES, bands=BANDS, rows=ROWS)
TEXT = BANDS
Sketch = npt.NDArray[np.uint8]


class Sketched(Document):
    """A document whose keys follow from its sketch, and from its text, in the last column."""

    def __init__(self, sequence: int, sketch: Sketch, text: int, time: int | None = None) -> None:
        super().__init__(sequence, 0, 0, (), time)
        self.sketch = sketch
        self.keys = (*band_keys(sketch[None], BANDS, ROWS)[0].tolist(), text)


Event = Sketched | bytes


class Counting(BandStore):
    """A store that counts the buckets that were not read."""

    unread = 0

    def sole(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        found = super().sole(keys)
        self.unread += int(found.sum())
        return found


def changed(sketch: Sketch, *slots: int) -> Sketch:
    """Return a sketch with other values in some slots."""
    other = sketch.copy()
    other[list(slots)] ^= 0xFF
    return other


def drawn(seed: int, count: int = 120) -> list[Event]:
    """Return documents at random: new ones, exact copies, and what has some bands in common.

    Buckets grow, and have other documents in place of the original. Some documents are forgotten,
    and may come again.
    """
    chance = np.random.default_rng(seed)
    made: list[tuple[Sketch, int]] = []
    events: list[Event] = []
    ids: list[bytes] = []
    clock = 1_000
    for number in range(1, count + 1):
        kind = chance.choice(["new", "copy", "near", "shares"], p=[0.35, 0.25, 0.25, 0.15])
        sketch, text = chance.integers(0, 256, SLOTS).astype(np.uint8), number
        if made and kind != "new":
            other, its_text = made[int(chance.integers(max(0, len(made) - 40), len(made)))]
            if kind == "copy":
                sketch, text = other, its_text
            elif kind == "near":
                sketch = changed(other, *chance.integers(0, SLOTS, int(chance.integers(1, 4))))
            else:
                band = slice(*(int(chance.integers(0, BANDS)) * ROWS + np.array([0, ROWS])))
                sketch[band] = other[band]
        made.append((sketch, text))
        clock += int(chance.choice([0, 1, 2, 8, 60], p=[0.3, 0.3, 0.2, 0.18, 0.02]))
        late = int(chance.choice([0, 30, 101], p=[0.8, 0.15, 0.05]))
        events.append(Sketched(number, sketch, text, clock - late))
        ids.append(b"d%d" % number)
        if chance.random() < 0.08:
            events.append(ids[int(chance.integers(max(0, len(ids) - 40), len(ids)))])
    return events


def run(
    store: BandStore, events: Sequence[Event], columns: list[int], rules: BucketRules, seed: int
) -> list[list[Match]]:
    """Judge documents in batches of random sizes; ask first what each would match alone."""
    chance = np.random.default_rng(seed)
    answers: list[list[Match]] = []
    low = 0
    while low < len(events):
        high = low + int(chance.choice([1, 3, 10]))
        part = batch(events[low:high], columns)
        one = part.keys[:, :1], part.sketches[:1]
        asked = query(store.reader(), columns, *one, rules, times=part.times[:1])
        decision = store.decide(part, rules)
        answers += [decision.matches.get(row, []) for row in range(len(part.ids))]
        if len(part.ids) and not part.forgotten:
            assert asked[0].matches == decision.matches.get(0, [])
        store.apply(decision, offset=high, documents=len(part.ids))
        low = high
    return answers


@pytest.mark.parametrize(
    ("columns", "window"),
    [broad([0, 1, 2, 3, 4], None), ([0, 1, 2, 3, 4], WINDOW), broad([1, 3], WINDOW)],
)
def test_verdicts_are_those_of_plain_lists_and_the_store_is_as_if_all_were_read(
    tmp_path: Path, columns: list[int], window: int | None
) -> None:
    rules = replace(FOLLOWING, window_ms=window)
    unread = 0
    for seed in range(2):
        events = drawn(seed)
        options = StoreOptions(run_documents=8, window_ms=window)
        store = Counting(tmp_path / str(seed), {"test": 1}, options=options)
        assert run(store, events, columns, rules, seed) == model(events, columns, rules)
        reading = BandStore(tmp_path / f"{seed}-reading", {"test": 1}, options=options)
        run(reading, events, columns, replace(rules, bands=0, rows=0), seed)
        assert store.contents().buckets() == reading.contents().buckets()
        assert store.parts() == reading.parts()
        store.close()
        reading.close()
        unread += store.unread
    assert unread > len(columns)


NEW = np.arange(SLOTS, dtype=np.uint8)


def test_of_a_near_variant_one_bucket_is_read(tmp_path: Path) -> None:
    store = Counting(tmp_path / "store", {"test": 1})
    events = [Sketched(1, NEW, 1), Sketched(2, changed(NEW, 0), 2), Sketched(3, NEW, 1)]
    answers = [run(store, [event], [0, 1, 2, 3, 4], FOLLOWING, 0)[0] for event in events[:2]]
    unread = store.unread
    # It shares three bands with the first: one was read, and two follow.
    assert unread == 2
    assert answers == model(events[:2], [0, 1, 2, 3, 4], FOLLOWING)
    store.close()


def test_an_absorbed_document_is_not_taken_for_the_one_that_stands_for_it(tmp_path: Path) -> None:
    # The second is all but a copy of the first, which stands for it in three columns.
    second = changed(NEW, 15)
    events: list[Event] = [Sketched(1, NEW, 1), Sketched(2, second, 2), Sketched(3, second, 2)]
    rules = replace(FOLLOWING, absorb=0.9)
    store = BandStore(tmp_path / "store", {"test": 1})
    answers = run(store, events, [0, 1, 2, 3, 4], rules, 0)
    assert [[match.sequence for match in one] for one in answers] == [[], [1], [2, 1]]
    assert answers == model(events, [0, 1, 2, 3, 4], rules)
    store.close()


MOVED: dict[str, list[Event]] = {
    # A late copy doesn't renew the first where it has moved.
    "late": [
        Sketched(3, changed(NEW, 8), 3, 1_050),
        Sketched(4, NEW, 1, 1_010),
    ],
    # What is found first is the first document where it has moved, which it has nowhere else.
    "later": [
        Sketched(3, changed(NEW, 0, 4, 8), 3, 1_050),
        Sketched(4, NEW, 1, 1_060),
    ],
}


@pytest.mark.parametrize("name", MOVED)
def test_an_original_that_has_moved_in_some_of_its_buckets_is_read_in_each(
    tmp_path: Path, name: str
) -> None:
    other = changed(NEW, *range(SLOTS))
    events = [
        Sketched(1, NEW, 1, 1_000),
        Sketched(2, other, 2, 1_040),  # It begins another era.
        *MOVED[name],
        Sketched(5, changed(NEW, 5, 9, 13), 5, 1_130),
    ]
    rules = replace(FOLLOWING, absorb=0.8, window_ms=WINDOW)
    store = BandStore(tmp_path / "store", {"test": 1}, options=StoreOptions(window_ms=WINDOW))
    answers = [run(store, [event], [0, 1, 2, 3], rules, 0)[0] for event in events]
    assert answers == model(events, [0, 1, 2, 3], rules)
    assert [match.sequence for match in answers[-1]] == [1]
    store.close()
