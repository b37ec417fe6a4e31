"""Documents at random, for tests that need a store with something in it."""

from __future__ import annotations

import numpy as np

from lsh.index import BucketRules, DocumentBatch
from worker.index.store import BandStore

RULES = BucketRules(threshold=0.8)
SLOTS = 16


def random_documents(
    count: int, *, first: int = 0, columns: range = range(1), seed: int | None = None
) -> DocumentBatch:
    """Return documents that have nothing in common. Numbered from ``first``, if without a seed."""
    chance = np.random.default_rng(first if seed is None else seed)
    return DocumentBatch(
        sequences=np.arange(first, first + count, dtype=np.uint64),
        times=np.arange(first, first + count, dtype=np.int64),
        ids=[b"document %d" % number for number in range(first, first + count)],
        shingles=np.ones(count, np.uint32),
        columns=columns,
        keys=chance.integers(0, 1 << 64, (len(columns), count), np.uint64),
        sketches=chance.integers(0, 256, (count, SLOTS), np.uint8),
    )


def fill(store: BandStore, offset: int, count: int, columns: range = range(1)) -> DocumentBatch:
    """Insert new documents into a store, which reaches the offset."""
    documents = random_documents(count, first=store.inserted, columns=columns)
    decision = store.decide(documents, RULES)
    assert decision.inserted == count
    store.apply(decision, offset=offset, documents=count)
    return documents
