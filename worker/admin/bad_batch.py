"""Finds out which offsets of the documents belong to a batch that can't be unpacked.

Only whoever unpacks a batch learns where it ends, and that may kill. So another process tries,
with little memory: a fetch from within the batch fails, and one from after it doesn't.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from worker.bus import BusError, LogReader, PartitionUnreadable, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.bus.ranges import read_ranges
from worker.settings.model import Settings

_SECONDS = 120.0
_THREADS_BYTES = 64 << 20
"""What the threads of a client take that has not connected yet."""
_GROWTH = 8
"""Of the steps by which the end is passed: each offset that is tried may cost a process."""
_LOOKS = 4
"""Parts into which a range is divided to look for readable batches between unreadable ones."""


class Outcome(Enum):
    """What became of an attempt to read what is at an offset."""

    READ = "read"
    NOTHING = "nothing is there"
    UNPACKABLE = "can't be unpacked"
    DAMAGED = "is damaged"


class Attempt(NamedTuple):
    """An outcome, and what the log says of it if it is no success."""

    outcome: Outcome
    why: str = ""


class Attempts:
    """Tries to read offsets of one partition in a process that may die of it."""

    def __init__(self, settings: Settings, place: TopicPartition, end: int, memory: int) -> None:
        """Take the partition and its end; the process may take ``memory`` bytes to unpack."""
        # Where settings come from is a class of its own, which another process can't know.
        given = {name: getattr(settings, name) for name in Settings.model_fields}
        self._settings = Settings.model_construct(**given)
        self._place = place
        self._end = end
        self._memory = memory
        self._context = get_context("spawn")
        self._connection: Connection | None = None
        self.close: Callable[[], None] = lambda: None

    def __call__(self, offset: int) -> Attempt:
        """Try to read what is at an offset.

        Raises:
            BusError: Kafka failed.
        """
        connection = self._connected()
        try:
            connection.send(offset)
            if not connection.poll(_SECONDS):
                raise BusError(f"{self._place.topic}: no answer within {_SECONDS:.0f} s")
            found = connection.recv()
        except (EOFError, OSError):
            self.close()
            return Attempt(
                Outcome.UNPACKABLE, f"to unpack it takes more than {self._memory >> 20:,} MiB"
            )
        if isinstance(found, str):
            raise BusError(found)
        return Attempt(*found)

    def _connected(self) -> Connection:
        if self._connection is None:
            ours, theirs = self._context.Pipe()
            process = self._context.Process(
                target=_serve,
                args=(self._settings, self._place, self._end, self._memory, theirs),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._connection = ours

            def close() -> None:
                self._connection = None
                ours.close()
                process.kill()
                process.join()

            self.close = close
        return self._connection


def _serve(
    settings: Settings, place: TopicPartition, end: int, memory: int, connection: Connection
) -> None:
    """Answer attempts until the other side closes, or this process dies."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # Its last words are not ours.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    group = f"{settings.app}.skip"
    reader = KafkaBus(settings.kafka_options()).log_reader(group, [place.topic], single=True)
    limited = False
    with closing(reader):
        while True:
            try:
                offset = connection.recv()
            except EOFError:
                return
            try:
                reader.watermarks(place)  # Connects.
                limited = limited or _limit(memory)
                connection.send(tuple(_attempt(reader, place, offset, end)))
            except BusError as error:
                connection.send(str(error))


def _limit(memory: int) -> bool:
    """Let this process take so many more bytes, where the system can say what it has."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return True
    taken = next(int(one.split()[1]) << 10 for one in status.splitlines() if "VmData" in one)
    most = taken + _THREADS_BYTES + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return True


def _attempt(reader: LogReader, place: TopicPartition, offset: int, end: int) -> Attempt:
    try:
        for _ in read_ranges(reader, {place: (offset, end)}, limit=1, silence=_SECONDS / 2):
            return Attempt(Outcome.READ)
    except PartitionUnreadable as error:
        kind = Outcome.UNPACKABLE if error.whole else Outcome.DAMAGED
        return Attempt(kind, error.why)
    return Attempt(Outcome.NOTHING)


def end_of(attempt: Callable[[int], Attempt], start: int, end: int) -> int:
    """Return the first offset after ``start`` from which can be read what is there.

    What is at ``start`` can't be read. ``end`` is that of the log.

    Batches that can be read may lie between several that can't. So the range that is found is
    looked into at some places, and becomes shorter if one of them can be read.
    """
    known: dict[int, bool] = {start: False, end: True}

    def reads(offset: int) -> bool:
        if offset not in known:
            known[offset] = attempt(offset).outcome in (Outcome.READ, Outcome.NOTHING)
        return known[offset]

    step = 1
    while start + step < end and not reads(start + step):
        step *= _GROWTH
    found = min(start + step, end)
    while True:
        low = max(one for one, read in known.items() if one < found and not read)
        while found - low > 1:
            middle = (low + found) // 2
            if reads(middle):
                found = middle
            else:
                low = middle
        looks = (start + (found - start) * part // _LOOKS for part in range(1, _LOOKS))
        before = next((one for one in looks if reads(one)), None)
        if before is None:
            return found
        found = before
