"""Documents as shards see them, and the rules by which these tests judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lsh import pairwise_similarity
from lsh.containment import containment_of, error_of
from lsh.index import BucketRules, DocumentBatch, Forgotten, Match
from lsh.index.finer import LEVELS, finer_keys

SLOTS = 16
LITTLE = 4 << 10
"""A write buffer beside which a store keeps a handful of buckets and records in memory."""
RULES = BucketRules(threshold=0.6, absorb=0.9, capacity=3, max_matches=4)
CONTAINING = replace(RULES, containment=0.8, containment_error=0.25)
CROWDED = replace(RULES, capacity=6, crowded=2)
rules_strategy = st.sampled_from([RULES, CONTAINING, CROWDED])


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
        self.time = sequence * 10 if time is None else time
        self.id = b"d%d" % sequence
        self.sketch = sketch(family, changes)
        self.keys = keys
        self.shingles = 10 * (1 + keys[-1] % 3) if keys else 10


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
        times=np.array([d.time for d in documents], np.int64),
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


def _at_times(rows: list[tuple[int, int, tuple[int, ...], int, int]]) -> list[Document]:
    documents, clock = [], 1_000
    for number, (family, changes, keys, step, late) in enumerate(rows):
        clock += step
        documents.append(Document(number, family, changes, keys, clock - late))
    return documents


timed_documents_strategy = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0, 0, 0, 1, 8]),
        st.tuples(*[st.integers(0, 1)] * 4),
        st.sampled_from([0, 1, 10, 20, 30, 60, 250]),
        st.sampled_from([0, 0, 0, 0, 10, 50, 99, 100, 101, 300]),
    ),
    min_size=1,
    max_size=60,
).map(_at_times)
"""Documents at times that mostly ascend; some are late."""
WINDOW = 100


def drawn_documents(count: int, seed: int, *, crowded: bool) -> list[Document]:
    """Return documents at random: a window has a hundred; copies come for longer than that.

    If crowded, they share few keys, so nearly all buckets are full.
    """
    chance = np.random.default_rng(seed)
    rows: list[tuple[int, int, tuple[int, ...], int, int]] = []
    for number in range(count):
        family = int(chance.integers(number // 40, number // 40 + 12))
        changes = int(chance.choice([0, 0, 0, 1, 5, 8]))
        place = number // 150 if crowded else family * 3
        keys = tuple(int(place + key) for key in chance.integers(0, 2, 4))
        late = int(chance.choice([0, 0, 0, 0, 30, 99, 100, 101]))
        step = int(chance.choice([0, 1, 2, 2, 1, 0, 1, 1, 1, 45], p=[0.11] * 9 + [0.01]))
        rows.append((family, changes, keys, step, late))
    return _at_times(rows)


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
    rows: list[tuple[int, int, tuple[int, ...], int, int]] = [
        (
            int(chance.integers(0, 2)),
            int(chance.choice([0, 0, 0, 1, 8])),
            tuple(chance.integers(0, 2, 4).tolist()),
            int(chance.choice([0, 1, 10, 30, 60], p=[0.3, 0.3, 0.2, 0.1, 0.1])),
            int(chance.choice([0, 50, 100, 101], p=[0.7, 0.1, 0.1, 0.1])),
        )
        for _ in range(40)
    ]
    events: list[Document | bytes] = []
    ids: list[bytes] = []
    for document in _at_times(rows):
        if ids and chance.random() < 0.5:
            document.id = ids[int(chance.integers(0, len(ids)))]
        ids.append(document.id)
        events.append(document)
        if chance.random() < 0.2:
            events.append(ids[int(chance.integers(0, len(ids)))])
    return events


class _Model:
    """Plain lists of dated entries, by column, key and level."""

    def __init__(self, columns: list[int], rules: BucketRules) -> None:
        self._columns = columns
        self._rules = rules
        self._buckets: dict[tuple[int, int, int], list[list[Any]]] = {}
        self._now = 0
        self._firsts: dict[bytes, tuple[int, list[Match]]] = {}

    def forget(self, ident: bytes) -> None:
        self._firsts.pop(ident, None)
        for _, matches in self._firsts.values():
            matches[:] = [
                match._replace(id=b"") if match.id == ident else match for match in matches
            ]
        for bucket in self._buckets.values():
            bucket[:] = [entry for entry in bucket if entry[0].id != ident]

    def judge(self, document: Document) -> list[Match]:
        """Return the best matches of a document, and insert it."""
        rules, near = self._rules, {}
        if rules.same_id == "replace":
            self.forget(document.id)
        self._now = max(self._now, document.time)
        oldest = self._now - (1 << 60 if rules.window_ms is None else rules.window_ms)
        time, first = self._firsts.get(document.id, (0, []))
        if rules.same_id == "ignore" and document.id in self._firsts and time >= oldest:
            return list(first)
        for column in self._columns:
            for other, similarity in self._met(document, column, oldest):
                share = self._share(document, other, similarity)
                if similarity >= rules.threshold or share is not None:
                    near[other.sequence] = Match(other.sequence, similarity, other.id, share)
        ordered = sorted(near.values(), key=lambda match: (-match.similarity, match.sequence))
        if document.time >= oldest:
            self._firsts[document.id] = (document.time, ordered[: rules.max_matches])
        return ordered[: rules.max_matches]

    def _share(self, document: Document, other: Document, similarity: float) -> float | None:
        """Return how much of a document is in another; None if it isn't enough."""
        least = self._rules.containment
        if least is None:
            return None
        pair = np.array([similarity]), document.shingles, np.array([other.shingles]), SLOTS
        share, error = float(containment_of(*pair)[0]), float(error_of(*pair)[0])
        return share if share >= least and error <= self._rules.containment_error else None

    def _met(self, document: Document, column: int, oldest: int) -> list[tuple[Document, float]]:
        """Return what a document is compared with in a column, and insert it there."""
        rules, met = self._rules, []
        levels, room = self._levels(document, column), None
        for bucket in levels:
            bucket[:] = [entry for entry in bucket if entry[1] >= oldest]
            alike = [(_similar(entry[0], document), entry) for entry in bucket]
            least = rules.absorb
            covering = [at for at, one in enumerate(alike) if one[0] >= rules.covers]
            if len(bucket) >= rules.heads and covering and covering[0] < rules.heads:
                alike, least = alike[: covering[0] + 1], rules.covers
            elif len(bucket) >= rules.capacity:
                least = rules.covers
            met += [(entry[0], similarity) for similarity, entry in alike]
            similarity, best = max(alike, key=itemgetter(0), default=(0.0, []))
            if best and similarity >= least:
                if document.time >= oldest:
                    best[1] = max(best[1], document.time)
                return met
            if room is None and len(bucket) < rules.capacity:
                room = bucket
        if document.time >= oldest:
            into = levels[-1] if room is None else room
            into.append([document, document.time])
            del into[: -rules.capacity]
        return met

    def _levels(self, document: Document, column: int) -> list[list[list[Any]]]:
        key = document.keys[column]
        of = np.array([column], np.uint8), np.array([key], np.uint64)
        finer = [
            int(finer_keys(*of, level, document.sketch[None])[0]) for level in range(1, LEVELS + 1)
        ]
        return [
            self._buckets.setdefault((column, one, level), [])
            for level, one in enumerate([key, *finer])
        ]


def _similar(one: Document, other: Document) -> float:
    return float(pairwise_similarity(one.sketch[None], other.sketch[None])[0])


def model(
    events: Sequence[Document | bytes], columns: list[int], rules: BucketRules = RULES
) -> list[list[Match]]:
    """Judge one document after the other, with plain lists of dated entries."""
    lists = _Model(columns, rules)
    answers = []
    for event in events:
        if isinstance(event, bytes):
            lists.forget(event)
        else:
            answers.append(lists.judge(event))
    return answers
