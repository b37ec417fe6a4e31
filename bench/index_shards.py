"""The shards of an index, fed in one process without Kafka."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.synthetic_frames import BANDS, ROWS
from lsh import Parameters
from lsh.index import BucketRules, DocumentBatch
from worker.index.memory import StoreMemory
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore
from worker.wire.frame import Layout

_BUFFER_BYTES = 96 << 20
_INDEX_BYTES = 950_000_000 - (112 << 20)
"""What a process of a gigabyte leaves beside the interpreter and the libraries, and a twentieth
that malloc can't give back."""
_WAIT_SECONDS = 0.01


class Shards:
    """All shards of an index, with the settings' defaults. A document comes each millisecond.

    Each has its share of the columns, as in an application with so many shards. They share the
    memory of one worker.
    """

    def __init__(self, directory: Path, *, shards: int = 1, window: int | None = None) -> None:
        """Begin with an empty index, which forgets a document after ``window`` others."""
        memory = StoreMemory(_INDEX_BYTES, write_buffers=_BUFFER_BYTES)
        options = StoreOptions(window_ms=window)
        layout = Layout.of("bench", 1, shards, Parameters(bands=BANDS, rows=ROWS))
        self._columns = [layout.columns_of(shard) for shard in range(shards)]
        self._stores = [
            BandStore(
                directory / f"shard-{shard:03d}", {"bench": 1}, memory=memory, options=options
            )
            for shard in range(shards)
        ]
        self._rules = BucketRules(threshold=0.8, window_ms=window, bands=BANDS, rows=ROWS)

    def __call__(self, batch: DocumentBatch) -> int:
        """Judge and insert documents with all columns; return how many have matches."""
        matched = set[int]()
        for store, columns in zip(self._stores, self._columns, strict=True):
            own = batch.keys if len(self._stores) == 1 else batch.keys[list(columns)]
            decision = store.decide(replace(batch, columns=columns, keys=own), self._rules)
            count = len(batch.ids)
            store.apply(decision, offset=store.offset + 1, documents=count)
            matched.update(np.flatnonzero(np.diff(decision.matches.starts)).tolist())
        return len(matched)

    def settle(self) -> None:
        """Have everything on disk, and wait until nothing is written in the background."""
        for store in self._stores:
            store.flush()
        while any(store.writing for store in self._stores):
            time.sleep(_WAIT_SECONDS)
