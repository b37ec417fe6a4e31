"""Documents as shards see them, and the rules by which these tests judge."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lsh import pairwise_similarity
from lsh.index import BucketRules, DocumentBatch, Match

SLOTS = 16
RULES = BucketRules(threshold=0.6, absorb=0.9, capacity=3, max_matches=4)


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


def batch(documents: list[Document], columns: list[int]) -> DocumentBatch:
    return DocumentBatch(
        sequences=np.array([d.sequence for d in documents], np.uint64),
        times=np.array([d.time for d in documents], np.int64),
        ids=[d.id for d in documents],
        shingles=np.ones(len(documents), np.uint32),
        columns=columns,
        keys=np.array([[d.keys[c] for d in documents] for c in columns], np.uint64),
        sketches=np.array([d.sketch for d in documents], np.uint8).reshape(-1, SLOTS),
    )


documents_strategy = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 8),
        st.tuples(*[st.integers(0, 4)] * 4),
    ),
    min_size=1,
    max_size=40,
).map(lambda rows: [Document(number, *row) for number, row in enumerate(rows, 1)])


def _at_times(rows: list[tuple[int, int, tuple[int, ...], int, int]]) -> list[Document]:
    documents, clock = [], 1_000
    for number, (family, changes, keys, step, late) in enumerate(rows, 1):
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


def drawn_documents(count: int, seed: int) -> list[Document]:
    """Return documents at random: a window has a hundred; copies come for longer than that."""
    chance = np.random.default_rng(seed)
    rows: list[tuple[int, int, tuple[int, ...], int, int]] = []
    for number in range(count):
        family = int(chance.integers(number // 40, number // 40 + 12))
        changes = int(chance.choice([0, 0, 0, 1, 5, 8]))
        keys = tuple(int(family * 3 + key) for key in chance.integers(0, 2, 4))
        late = int(chance.choice([0, 0, 0, 0, 30, 99, 100, 101]))
        rows.append((family, changes, keys, int(chance.integers(0, 3)), late))
    return _at_times(rows)


def model(
    documents: list[Document], columns: list[int], rules: BucketRules = RULES
) -> list[list[Match]]:
    """Judge one document after the other, with plain lists of dated entries."""
    buckets: dict[tuple[int, int], list[list[Any]]] = {}
    answers = []
    now = 0
    for document in documents:
        near: dict[int, Match] = {}
        now = max(now, document.time)
        oldest = now - (1 << 60 if rules.window_ms is None else rules.window_ms)

        def similar(other: Document, document: Document = document) -> float:
            return float(pairwise_similarity(document.sketch[None], other.sketch[None])[0])

        own = [buckets.setdefault((column, document.keys[column]), []) for column in columns]
        for bucket in own:
            bucket[:] = [entry for entry in bucket if entry[1] >= oldest]
            for other, _ in bucket:
                if similar(other) >= rules.threshold:
                    near[other.sequence] = Match(other.sequence, similar(other), other.id)
        for bucket in own if document.time >= oldest else ():
            best = max(bucket, key=lambda entry: similar(entry[0]), default=None)
            if best is not None and similar(best[0]) >= rules.absorb:
                best[1] = max(best[1], document.time)
            else:
                bucket.append([document, document.time])
                del bucket[: -rules.capacity]
        ordered = sorted(near.values(), key=lambda match: (-match.similarity, match.sequence))
        answers.append(ordered[: rules.max_matches])
    return answers
