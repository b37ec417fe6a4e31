"""The index: matches a batch of documents against buckets, and updates the buckets.

`decide` does both; `query` and `match` only match. All read through a `BucketReader`, which may be
backed by RocksDB, a dictionary or anything else. `MemoryIndex` uses dictionaries:

>>> import numpy as np
>>> from lsh import Fingerprinter, Parameters
>>> from lsh.index import BucketRules, DocumentBatch, MemoryIndex, decide
>>> prints = Fingerprinter(Parameters()).fingerprint(["Hello,  world!", "hello, WORLD!"])
>>> batch = DocumentBatch(
...     sequences=np.arange(2, dtype=np.uint64),
...     times=np.zeros(2, np.int64),
...     ids=[b"a", b"b"],
...     shingles=np.ones(2, np.uint32),
...     columns=range(prints.keys.shape[1]),
...     keys=prints.keys.T,
...     sketches=prints.sketches,
... )
>>> index = MemoryIndex()
>>> decision = decide(index, batch, BucketRules(threshold=0.8))
>>> index.apply(decision)
>>> decision.matches
{1: [Match(sequence=0, similarity=1.0, id=b'a', containment=None)]}
"""

from __future__ import annotations

from lsh.index.batch import DocumentBatch, Forgotten, Match
from lsh.index.buckets import BucketReader, RecordMissing
from lsh.index.clock import NO_TIME, Clock, Dated, Leap
from lsh.index.decide import decide
from lsh.index.decision import Decision, NewCells
from lsh.index.layout import BucketKeys
from lsh.index.load import comparisons
from lsh.index.memory import MemoryIndex
from lsh.index.query import Answer, MetBucket, match, query
from lsh.index.rules import BucketRules, SameId

__all__ = [
    "NO_TIME",
    "Answer",
    "BucketKeys",
    "BucketReader",
    "BucketRules",
    "Clock",
    "Dated",
    "Decision",
    "DocumentBatch",
    "Forgotten",
    "Leap",
    "Match",
    "MemoryIndex",
    "MetBucket",
    "NewCells",
    "RecordMissing",
    "SameId",
    "comparisons",
    "decide",
    "match",
    "query",
]
