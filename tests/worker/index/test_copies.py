"""Exact copies, of which only one bucket is read, against plain lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from lsh.index import BucketKeys, BucketRules, Match
from tests.worker.index.decisions import RULES, WINDOW, Document, batch, model
from worker.index.store import BandStore, StoreOptions

COLUMNS = 4
Event = Document | bytes


class Counting(BandStore):
    """A store that counts the buckets that were not read."""

    unread = 0

    def sole(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        found = super().sole(keys)
        self.unread += int(found.sum())
        return found


def drawn(seed: int, count: int = 100) -> list[Event]:
    """Return documents at random: mostly new ones, and exact copies of these.

    Some share keys with others that they aren't like, or are nearly copies, so that buckets grow,
    or have another document in place of the original. Some are forgotten, and may come again.
    """
    chance = np.random.default_rng(seed)
    made: list[tuple[int, int, tuple[int, ...]]] = []
    events: list[Event] = []
    ids: list[bytes] = []
    clock = 1_000
    for number in range(1, count + 1):
        kind = chance.choice(["new", "copy", "near", "shares"], p=[0.4, 0.35, 0.1, 0.15])
        family, changes = number % 200, 0
        keys = tuple(int(key) for key in number * 10 + np.arange(COLUMNS))
        if made and kind != "new":
            other = made[int(chance.integers(max(0, len(made) - 40), len(made)))]
            if kind == "copy":
                family, changes, keys = other
            else:
                same = chance.random(COLUMNS) < 0.5
                mixed = zip(same.tolist(), other[2], keys, strict=True)
                keys = tuple(theirs if is_same else own for is_same, theirs, own in mixed)
                if kind == "near":
                    family, changes = other[0], int(chance.choice([1, 5]))
        made.append((family, changes, keys))
        clock += int(chance.choice([0, 1, 2, 8, 60], p=[0.3, 0.3, 0.2, 0.18, 0.02]))
        late = int(chance.choice([0, 30, 101], p=[0.8, 0.15, 0.05]))
        events.append(Document(number, family, changes, keys, clock - late))
        ids.append(b"d%d" % number)
        if chance.random() < 0.08:
            events.append(ids[int(chance.integers(max(0, len(ids) - 40), len(ids)))])
    return events


def run(
    store: BandStore,
    events: Sequence[Event],
    columns: list[int],
    rules: BucketRules,
    seed: int,
    *,
    texts: bool = True,
) -> list[list[Match]]:
    """Judge documents in batches of random sizes; without their texts, every bucket is read."""
    chance = np.random.default_rng(seed)
    answers: list[list[Match]] = []
    low = 0
    while low < len(events):
        high = low + int(chance.choice([1, 3, 10]))
        part = batch(events[low:high], columns)
        part = part if texts else replace(part, texts=None)
        decision = store.decide(part, rules)
        answers += [decision.matches.get(row, []) for row in range(len(part.ids))]
        store.apply(decision, offset=high, now=decision.now, documents=len(part.ids))
        low = high
    return answers


@pytest.mark.parametrize(
    ("columns", "window"), [([0, 1, 2, 3], None), ([0, 1, 2, 3], WINDOW), ([0, 2], None)]
)
def test_verdicts_are_those_of_plain_lists_and_the_store_is_as_if_all_were_read(
    tmp_path: Path, columns: list[int], window: int | None
) -> None:
    rules = replace(RULES, window_ms=window)
    unread = 0
    for seed in range(3):
        events = drawn(seed)
        options = StoreOptions(run_documents=8, window_ms=window)
        store = Counting(tmp_path / str(seed), {"test": 1}, options=options)
        assert run(store, events, columns, rules, seed) == model(events, columns, rules)
        reading = BandStore(tmp_path / f"{seed}-reading", {"test": 1}, options=options)
        run(reading, events, columns, rules, seed, texts=False)
        assert store.contents().buckets() == reading.contents().buckets()
        assert store.parts() == reading.parts()
        store.close()
        reading.close()
        unread += store.unread
    assert unread > len(columns)


def test_an_absorbed_original_is_not_taken_for_the_one_that_stands_for_it(tmp_path: Path) -> None:
    # The second document is all but a copy of the first, which stands for it in column 0.
    events: list[Event] = [
        Document(1, 5, 0, (1, 2, 3, 4)),
        Document(2, 5, 1, (1, 12, 13, 14)),
        Document(3, 5, 1, (1, 12, 13, 14)),
    ]
    rules = replace(RULES, absorb=0.9)
    store = BandStore(tmp_path / "store", {"test": 1})
    answers = run(store, events, [0, 1, 2, 3], rules, 0)
    assert [[match.sequence for match in one] for one in answers] == [[], [1], [2, 1]]
    assert answers == model(events, [0, 1, 2, 3], rules)
    store.close()


MOVED: dict[str, list[Event]] = {
    # A late copy doesn't renew the first where it has moved.
    "late": [
        Document(3, 5, 1, (1, 2, 33, 34), 1_050),
        Document(4, 5, 0, (1, 2, 3, 4), 1_010),
    ],
    # What is found first is the first document where it has moved, which it has nowhere else.
    "later": [
        Document(3, 5, 1, (31, 32, 33, 4), 1_050),
        Document(4, 5, 0, (1, 2, 3, 4), 1_060),
    ],
}


@pytest.mark.parametrize("name", MOVED)
def test_an_original_that_has_moved_in_some_of_its_buckets_is_read_in_each(
    tmp_path: Path, name: str
) -> None:
    events = [
        Document(1, 5, 0, (1, 2, 3, 4), 1_000),
        Document(2, 9, 0, (21, 22, 23, 24), 1_040),  # It begins another era.
        *MOVED[name],
        Document(5, 5, 3, (1, 52, 53, 54), 1_130),
    ]
    rules = replace(RULES, window_ms=WINDOW)
    options = StoreOptions(window_ms=WINDOW)
    store = BandStore(tmp_path / "store", {"test": 1}, options=options)
    answers = [run(store, [event], [0, 1, 2, 3], rules, 0)[0] for event in events]
    assert answers == model(events, [0, 1, 2, 3], rules)
    assert [match.sequence for match in answers[-1]] == [1]
    store.close()
