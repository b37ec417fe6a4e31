"""What it costs to feed documents to an index: CPU, memory and disk, checkpoint by checkpoint."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lsh.index import DocumentBatch

_BURST = 2_000
_PAGE = resource.getpagesize()

Index = Callable[[DocumentBatch], int]
"""Judges a batch, inserts it, and returns the number of documents that have matches."""

Maker = Callable[[int, int], DocumentBatch]
"""Returns documents: takes the number of the first, and how many."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The cost of the documents since the checkpoint before, and the sizes reached.

    CPU in microseconds a document: ``own`` of the thread that judges and inserts, ``others`` of all
    other threads of the process. ``stall`` is the longest burst in seconds of wall-clock time,
    ``rate`` is in documents/s of it. Sizes are in bytes; ``grown`` is the growth of the
    process's memory since its index was empty. ``duplicates`` is how many had matches.
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

    @property
    def cpu(self) -> float:
        """Return the CPU of all threads."""
        return self.own + self.others


def fed(
    index: Index,
    make: Maker,
    due: Iterable[int],
    directory: Path,
    settle: Callable[[], None] = lambda: None,
) -> Iterator[Checkpoint]:
    """Feed an index that is in a directory; ``due`` is after how many documents to measure.

    ``settle`` is called before the sizes are measured. What it costs counts.
    """
    empty = _memory()
    done = 0
    for reached in due:
        begun, since = done, _Costs()
        while done < reached:
            batch = make(done, min(_BURST, reached - done))
            since.add(index, batch)
            done += len(batch.ids)
        settle()
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
