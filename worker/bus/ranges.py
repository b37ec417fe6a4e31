"""Reads ranges of a log to their ends, which may be markers or deleted records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import monotonic

from worker.bus import (
    BusError,
    Claim,
    LogReader,
    OffsetOutOfRange,
    Record,
    TopicPartition,
    Unanswered,
)

Ranges = Mapping[TopicPartition, tuple[int, int]]
"""Half-open ranges of offsets, by partition."""

PARTITION = 0
"""The only partition of a compacted topic of neardup."""

SILENCE_SECONDS = 15.0
_WAIT_SECONDS = 0.5
_RECORDS = 1_000
_BYTES = 4 << 20


class RangeReader:
    """A reader's partitions, each of which is stopped once it has been read to an end.

    Attributes:
        left: the end of each partition that has not been read to it.
    """

    def __init__(
        self,
        reader: LogReader,
        *,
        silence: float = SILENCE_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the reader, and for how many seconds it may deliver nothing."""
        self.left: dict[TopicPartition, int] = {}
        self._reader = reader
        self._most = silence
        self._clock = clock
        self._silent = 0.0

    def start(
        self, partition: TopicPartition, offset: int, end: int, claim: Claim | None = None
    ) -> None:
        """Deliver a partition from an offset up to an end, and nothing if they are the same.

        If the offset is past the end, the next `read` tells whether the log has lost its end.
        """
        if offset != end:
            self.left[partition] = end
            self._reader.start(partition, offset, claim)

    def go_on(self, partition: TopicPartition, offset: int) -> None:
        """Deliver a partition from another offset up to the same end."""
        end = self.left[partition]
        if offset < end:
            self.start(partition, offset, end)
        else:
            self.stop(partition)

    def stop(self, partition: TopicPartition) -> None:
        """Deliver no more of a partition."""
        if self.left.pop(partition, None) is not None:
            self._reader.stop(partition)

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        """Return what `LogReader.read` does, without records at and after the ends.

        Raises:
            Unanswered: all reads since the last record together took longer than may be silent.
            OffsetOutOfRange, BusError: see `LogReader.read`.
        """
        began = self._clock()
        records = self._reader.read(limit, max_bytes, timeout)
        if records:
            self._silent = 0.0
        else:  # Only the time of reads counts: the caller may take its own between them.
            self._silent += self._clock() - began
        within = [
            record
            for record in records
            if record.offset < self.left.get(TopicPartition(record.topic, record.partition), 0)
        ]
        for partition, end in list(self.left.items()):
            if (self._reader.position(partition) or 0) >= end:
                self.stop(partition)
        if self.left and self._silent > self._most:
            silent = ", ".join(f"{topic}[{number}]" for topic, number in self.left)
            raise Unanswered(f"no record of {silent} has arrived for {self._most:.0f} s")
        return within


def read_ranges(
    reader: LogReader,
    ranges: Ranges,
    *,
    limit: int = _RECORDS,
    silence: float = SILENCE_SECONDS,
    clock: Callable[[], float] = monotonic,
) -> Iterator[Record]:
    """Yield the records in these ranges, in the order of each partition.

    What retention deletes meanwhile is passed over. Partitions that were not read to their ends
    are stopped when the iterator is closed.

    Raises:
        Unanswered: no record has arrived for ``silence`` seconds of reading.
        BusError: a partition can't be read, or has lost its end.
    """
    for records in read_bursts(reader, ranges, limit=limit, silence=silence, clock=clock):
        yield from records


def read_bursts(
    reader: LogReader,
    ranges: Ranges,
    *,
    limit: int = _RECORDS,
    silence: float = SILENCE_SECONDS,
    clock: Callable[[], float] = monotonic,
) -> Iterator[Sequence[Record]]:
    """Yield what `read_ranges` does as it arrives: up to ``limit`` records and some 4 MiB."""
    reading = RangeReader(reader, silence=silence, clock=clock)
    try:
        for partition, (start, end) in ranges.items():
            reading.start(partition, start, end)
        while reading.left:
            try:
                records = reading.read(limit, _BYTES, _WAIT_SECONDS)
            except OffsetOutOfRange as error:
                if error.position >= error.low:
                    raise BusError(str(error)) from error
                reading.go_on(error.partition, error.low)
                continue
            if records:
                yield records
    finally:
        for partition in list(reading.left):
            reading.stop(partition)
