"""Documents as shards see them, and the rules by which these tests judge."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lsh.index import BucketRules, DocumentBatch

SLOTS = 16
RULES = BucketRules(threshold=0.6, absorb=0.9, capacity=3, max_matches=4)


def sketch(family: int, changes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Give a sketch of a family, of which the first ``changes`` slots are another's."""
    base = (np.arange(SLOTS) * 7 + family * 31) % 251
    base[:changes] = (base[:changes] + 1 + changes) % 251
    return base.astype(np.uint8)


class Document:
    """A document as the shards see it."""

    def __init__(self, sequence: int, family: int, changes: int, keys: tuple[int, ...]) -> None:
        self.sequence = sequence
        self.id = b"d%d" % sequence
        self.sketch = sketch(family, changes)
        self.keys = keys


def batch(documents: list[Document], columns: list[int]) -> DocumentBatch:
    return DocumentBatch(
        sequences=np.array([d.sequence for d in documents], np.uint64),
        times=np.array([d.sequence * 10 for d in documents], np.int64),
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
