"""Documents as shards see them, and the rules by which these tests judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from lsh.index import NO_TIME, BucketRules, DocumentBatch, Forgotten, Match
from tests.oracle import index as oracle
from tests.oracle.index import NaiveIndex

SLOTS = 16
LITTLE = 4 << 10
"""A write buffer beside which a store keeps a handful of buckets and records in memory."""
RULES = BucketRules(
    threshold=0.6, absorb=0.9, capacity=3, max_matches=4, now_rank=1, now_of=1, now_least=1
)
"""Now is the latest time. `rules_strategy` draws others."""
CONTAINING = replace(RULES, containment=0.8, containment_error=0.25)
CROWDED = replace(RULES, capacity=6, crowded=2)
NOWS = [(1, 1, 1), (2, 5, 4), (3, 3, 3), (2, 9, 8), (16, 64, 32)]
"""Which rank of how many times is now, and from how many on."""


def with_now(rules: BucketRules, now: tuple[int, int, int]) -> BucketRules:
    rank, last, least = now
    return replace(rules, now_rank=rank, now_of=last, now_least=least)


rules_strategy = st.builds(
    with_now, st.sampled_from([RULES, CONTAINING, CROWDED]), st.sampled_from(NOWS)
)


def sketch(family: int, changes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Give a sketch of a family, of which the first ``changes`` slots are another's."""
    base = (np.arange(SLOTS) * 7 + family * 31) % 251
    base[:changes] = (base[:changes] + 1 + changes) % 251
    return base.astype(np.uint8)


class Document:
    """A document as the shards see it."""

    def __init__(
        self,
        sequence: int,
        family: int,
        changes: int,
        keys: tuple[int, ...],
        time: int | None = None,
    ) -> None:
        self.sequence = sequence
        self.time: int | None = sequence * 10 if time is None else time
        self.id = b"d%d" % sequence
        self.sketch = sketch(family, changes)
        self.keys = keys
        self.shingles = 10 * (1 + keys[-1] % 3) if keys else 10

    def plain(self) -> oracle.Document:
        """Return the document as the oracle takes it."""
        sketch = self.sketch.tobytes()
        return oracle.Document(self.sequence, self.id, self.time, self.shingles, self.keys, sketch)


def batch(events: Sequence[Document | bytes], columns: list[int]) -> DocumentBatch:
    """Return documents as a batch; bytes are ids that are forgotten there."""
    documents: list[Document] = []
    forgotten = []
    for event in events:
        if isinstance(event, bytes):
            forgotten.append(Forgotten(len(documents), event))
        else:
            documents.append(event)
    return DocumentBatch(
        sequences=np.array([d.sequence for d in documents], np.uint64),
        times=np.array([NO_TIME if d.time is None else d.time for d in documents], np.int64),
        ids=[d.id for d in documents],
        shingles=np.array([d.shingles for d in documents], np.uint32),
        columns=columns,
        keys=np.array([[d.keys[c] for d in documents] for c in columns], np.uint64),
        sketches=np.array([d.sketch for d in documents], np.uint8).reshape(-1, SLOTS),
        forgotten=forgotten,
    )


documents_strategy = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 8),
        st.tuples(*[st.integers(0, 4)] * 4),
    ),
    min_size=1,
    max_size=40,
).map(lambda rows: [Document(number, *row) for number, row in enumerate(rows)])
"""The first one has the sequence number 0, as the first document of a log."""


Row = tuple[int, int, tuple[int, ...], int, int | None]
"""A family, how many slots are another's, keys, how much later than the document before it one
comes, and how old it says it is; None: it says nothing."""


def at_times(rows: list[Row]) -> list[Document]:
    """Return documents of a feed that goes on, from before 1970 into the years after."""
    documents, clock = [], -50
    for number, (family, changes, keys, step, age) in enumerate(rows):
        clock += step
        documents.append(Document(number, family, changes, keys, clock - (age or 0)))
        if age is None:
            documents[-1].time = None
    return documents


timed_documents_strategy = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 0, 0, 1, 8]),
        st.tuples(*[st.integers(0, 1)] * 4),
        st.sampled_from([0, 1, 10, 20, 30, 60, 250]),
        st.sampled_from([0, 0, 0, 0, 50, 99, 100, 101, 300, -10, -99, -100, -101, -9_999, None]),
    ),
    min_size=1,
    max_size=60,
).map(at_times)
"""Documents at times that mostly ascend; some are of the past or of the future, or have none."""
WINDOW = 100


_AGES = [*[0] * 12, 30, 99, 100, 101, 5_000, -30, -99, -101, -5_000, None, None]


def drawn_documents(count: int, seed: int, *, crowded: bool) -> list[Document]:
    """Return documents at random: a window has a hundred; copies come for longer than that.

    If crowded, they share few keys, so nearly all buckets are full.
    """
    chance = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(count):
        family = int(chance.integers(number // 40, number // 40 + 12))
        changes = int(chance.choice([0, 0, 0, 1, 5, 8]))
        place = number // 150 if crowded else family * 3
        keys = tuple(int(place + key) for key in chance.integers(0, 2, 4))
        age = _AGES[int(chance.integers(len(_AGES)))]
        step = int(chance.choice([0, 1, 2, 2, 1, 0, 1, 1, 1, 45], p=[0.11] * 9 + [0.01]))
        rows.append((family, changes, keys, step, age))
    return at_times(rows)


def with_forgotten(documents: list[Document], seed: int) -> list[Document | bytes]:
    """Give some documents the id of a recent one, and forget some of the ids."""
    chance = np.random.default_rng(seed)
    events: list[Document | bytes] = []
    ids: list[bytes] = []
    for document in documents:
        if ids and chance.random() < 0.3:
            document.id = ids[int(chance.integers(max(0, len(ids) - 30), len(ids)))]
        ids.append(document.id)
        events.append(document)
        if chance.random() < 0.15:
            events.append(ids[int(chance.integers(max(0, len(ids) - 60), len(ids)))])
    return events


def drawn_repeats(seed: int) -> list[Document | bytes]:
    """Return documents at random: few texts, few ids, and ids that are forgotten."""
    chance = np.random.default_rng(seed)
    rows: list[Row] = [
        (
            int(chance.integers(0, 2)),
            int(chance.choice([0, 0, 0, 1, 8])),
            tuple(chance.integers(0, 2, 4).tolist()),
            int(chance.choice([0, 1, 10, 30, 60], p=[0.3, 0.3, 0.2, 0.1, 0.1])),
            _AGES[int(chance.integers(len(_AGES)))],
        )
        for _ in range(40)
    ]
    events: list[Document | bytes] = []
    ids: list[bytes] = []
    for document in at_times(rows):
        if ids and chance.random() < 0.5:
            document.id = ids[int(chance.integers(0, len(ids)))]
        ids.append(document.id)
        events.append(document)
        if chance.random() < 0.2:
            events.append(ids[int(chance.integers(0, len(ids)))])
    return events


def model(
    events: Sequence[Document | bytes], columns: list[int], rules: BucketRules = RULES
) -> list[list[Match]]:
    """Judge one document after the other, as the oracle does."""
    index = NaiveIndex(rules, columns)
    answers = []
    for event in events:
        if isinstance(event, bytes):
            index.forget(event)
        else:
            found = index.judge(event.plain())
            answers.append([Match._make(match) for match in found])
    return answers
