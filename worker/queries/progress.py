"""How far those who follow the one log have come, and how far it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from worker.bus import Claim, Denied, LogReader, Record, TopicPartition
from worker.bus.shared import SharedReader

__all__ = ["LogProgress", "WholeLogReader"]


class LogProgress:
    """Where each seat's reader is, and where the log ended when somebody last looked.

    One thread writes it, and any thread may read it.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Know nothing yet; ``clock`` returns seconds."""
        self._clock = clock
        self.denied: Denied | None = None
        """That a right is missing, if one is."""
        self._end: tuple[int, float] | None = None
        self._read: dict[TopicPartition, tuple[int, int]] = {}

    def ends(self, end: int) -> None:
        """Note where the log ends now."""
        self._end = end, self._clock()

    def read(self, seat: TopicPartition, delivered: int, position: int) -> None:
        """Note how far a seat has read.

        ``delivered`` is the offset after its last record, ``position`` is past transaction markers
        as well.
        """
        self._read[seat] = delivered, position

    def checked_seconds(self) -> float | None:
        """Return how long ago the log's end was looked up; None if it never was."""
        return None if self._end is None else max(0.0, self._clock() - self._end[1])

    def behind(self, seat: TopicPartition, offset: int) -> int | None:
        """Return how many offsets a store at an offset has yet to read; None if nobody knows.

        It has none left at the end of the log, even if only transaction markers follow its last
        record there.
        """
        if self._end is None:
            return None
        delivered, position = self._read.get(seat, (offset, offset))
        reached = max(offset, position) if offset >= delivered else offset
        return max(0, self._end[0] - reached)


class WholeLogReader(SharedReader):
    """A reader for those who follow the whole log: everything in it counts as committed."""

    def __init__(
        self, log: TopicPartition, connect: Callable[[], LogReader], progress: LogProgress
    ) -> None:
        """Take the log, a function that connects a reader to it, and where to note progress."""
        super().__init__(log, connect)
        self._progress = progress
        self._delivered: dict[TopicPartition, int] = {}

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """See the port."""
        super().start(partition, offset, claim)
        self._delivered[partition] = offset

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        """See the port; notes how far each seat has read."""
        with self._noting():
            records = super().read(limit, max_bytes, timeout)
        for record in records:
            self._delivered[TopicPartition(*record[:2])] = record.offset + 1
        for seat, delivered in self._delivered.items():
            self._progress.read(seat, delivered, self.position(seat) or delivered)
        return records

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the end of the log for all seats, instead of the group's offsets."""
        seats = list(partitions)
        with self._noting():
            _, end = self.watermarks(seats[0])
        self._progress.ends(end)
        return dict.fromkeys(seats, end)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Note that a right is missing: whoever keeps shards warm would try again for ever."""
        try:
            yield
        except Denied as error:
            self._progress.denied = error
            raise
