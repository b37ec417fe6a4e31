"""Feed one index with synthetic documents, and print its cost at checkpoints as lines of JSON.

python -m bench.index_feed neardup|datasketch DOCUMENTS DIRECTORY [WINDOW]

With a window, neardup forgets a document after so many others, and each window is a checkpoint.

A process of its own, so that its memory is that of the index. malloc and the collection of garbage
are set as in a worker.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from datasketch import MinHash, MinHashLSH

from bench.synthetic_frames import SLOTS, synthetic_batch
from lsh.index import BucketRules, DocumentBatch
from worker.index.memory import StoreMemory
from worker.index.store import BandStore, StoreOptions
from worker.process.gc import relax
from worker.process.malloc import limit

__all__ = ["CHECKPOINTS", "Checkpoint"]

CHECKPOINTS = (200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
_BURST = 2_000
_CACHE_BYTES = 64 << 20
_BUFFER_BYTES = 96 << 20
_INDEX_BYTES = 1 << 30
_BANDS_AND_ROWS = (18, 7)
_PAGE = resource.getpagesize()

Index = Callable[[DocumentBatch], int]
"""Judges a batch, inserts it, and returns the number of documents that have matches."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The cost of the documents since the checkpoint before, and the sizes reached.

    CPU in microseconds a document: ``own`` of the thread that judges and inserts, ``others`` of all
    other threads of the process. ``stall`` is the longest burst in seconds of wall-clock time,
    ``rate`` is in documents/s of it. Sizes are in bytes; ``grown`` is the growth of the
    process's memory since its index was empty.
    """

    documents: int
    own: float
    others: float
    rate: float
    stall: float
    memory: int
    grown: int
    disk: int
    duplicates: int


def main() -> None:
    """Feed the index that the arguments name."""
    limit()
    relax()
    kind, documents, directory, *window = sys.argv[1:]
    path = Path(directory)
    kept = int(window[0]) if window else None
    index = _neardup(path, kept) if kind == "neardup" else _datasketch()
    for checkpoint in _fed(index, _due(int(documents), kept), path):
        print(json.dumps(asdict(checkpoint)), flush=True)


def _neardup(directory: Path, window: int | None) -> Index:
    """One shard with all bands, with the settings' defaults. A document comes each millisecond."""
    store = BandStore(
        directory / "shard-000",
        {"bench": 1},
        memory=StoreMemory(_INDEX_BYTES, write_buffers=_BUFFER_BYTES, cache=_CACHE_BYTES),
        options=StoreOptions(window_ms=window),
    )
    bands, rows = _BANDS_AND_ROWS
    rules = BucketRules(threshold=0.8, window_ms=window, bands=bands, rows=rows)

    def index(batch: DocumentBatch) -> int:
        decision = store.decide(batch, rules)
        count = len(batch.ids)
        store.apply(decision, offset=store.offset + 1, now=decision.now, documents=count)
        return len(decision.matches)

    return index


def _datasketch() -> Index:
    """Make a `MinHashLSH` in memory with the same bands; candidates are not verified."""
    lsh = MinHashLSH(num_perm=SLOTS, params=_BANDS_AND_ROWS)
    empty = MinHash(num_perm=SLOTS)

    def index(batch: DocumentBatch) -> int:
        found = 0
        values = batch.sketches.astype(empty.hashvalues.dtype)
        for ident, hashes in zip(batch.ids, values, strict=True):
            signature = MinHash(
                num_perm=SLOTS,
                hashvalues=hashes,
                permutations=empty.permutations,
                scheme=empty.scheme,
            )
            found += bool(lsh.query(signature))
            lsh.insert(ident, signature, check_duplication=False)
        return found

    return index


def _due(documents: int, window: int | None) -> list[int]:
    """Return after how many documents to measure: with a window, each time it has passed."""
    some = CHECKPOINTS if window is None else range(window, documents, window)
    return sorted({*(count for count in some if count < documents), documents})


def _fed(index: Index, due: Iterable[int], directory: Path) -> Iterator[Checkpoint]:
    empty = _memory()
    since = _Costs()
    done = 0
    for reached in due:
        begun, since = done, _Costs()
        while done < reached:
            batch = synthetic_batch(done, min(_BURST, reached - done))
            since.add(index, batch)
            done += len(batch.ids)
        yield since.checkpoint(done, done - begun, _memory() - empty, _disk(directory))


class _Costs:
    """The costs of some bursts."""

    def __init__(self) -> None:
        self._began = time.process_time() - time.thread_time()
        self._own = self._wall = self._stall = 0.0
        self._duplicates = 0

    def add(self, index: Index, batch: DocumentBatch) -> None:
        """Measure a burst."""
        cpu, wall = time.thread_time(), time.perf_counter()
        self._duplicates += index(batch)
        waited = time.perf_counter() - wall
        self._own += time.thread_time() - cpu
        self._wall += waited
        self._stall = max(self._stall, waited)

    def checkpoint(self, documents: int, some: int, grown: int, disk: int) -> Checkpoint:
        """Return the costs of ``some`` documents."""
        others = time.process_time() - time.thread_time() - self._began
        return Checkpoint(
            documents=documents,
            own=self._own / some * 1e6,
            others=others / some * 1e6,
            rate=some / self._wall,
            stall=self._stall,
            memory=_memory(),
            grown=grown,
            disk=disk,
            duplicates=self._duplicates,
        )


def _memory() -> int:
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:  # not Linux: the peak
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _disk(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(folder) / name).stat().st_size
            except FileNotFoundError:  # compacted meanwhile
                continue
    return total


if __name__ == "__main__":
    main()
