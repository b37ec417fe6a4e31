"""Reads a compacted topic with one partition from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic

from worker.bus import BusError, LogReader, OffsetOutOfRange, Record, TopicPartition, Unanswered

PARTITION = 0
"""The only partition that is used."""

_SILENCE_SECONDS = 15.0
_WAIT_SECONDS = 0.5
_RECORDS = 1_000
_BYTES = 4 << 20


def records(
    reader: LogReader, topic: str, start: int, end: int, clock: Callable[[], float] = monotonic
) -> Iterator[Record]:
    """Yield all records from ``start`` to ``end``; the last offsets may be compacted or markers.

    Raises:
        Unanswered: no record arrives for 15 s.
        BusError: the topic can't be read.
    """
    if start >= end:
        return
    partition = TopicPartition(topic, PARTITION)
    reader.start(partition, start)
    heard = clock()
    while (reader.position(partition) or 0) < end:
        try:
            found = reader.read(_RECORDS, _BYTES, _WAIT_SECONDS)
        except OffsetOutOfRange as error:
            raise BusError(str(error)) from error
        if found:
            heard = clock()
        elif clock() - heard > _SILENCE_SECONDS:
            raise Unanswered(f"{topic} has delivered no record for {_SILENCE_SECONDS:.0f} s")
        yield from found
    reader.stop(partition)
