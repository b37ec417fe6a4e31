"""Payloads of ``documents``, read beside a group by a stage that knows which ones it needs."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from worker.bus import LogReader, OffsetOutOfRange, PartitionUnreadable, Record, TopicPartition
from worker.stages.base import StageError, unread
from worker.stages.budget import record_cost
from worker.wire.frame import SetAside, beyond

_log = logging.getLogger(__name__)

_RECORDS = 4_000
"""The most records of one read: as many as fingerprint signs at once."""
_WAIT_SECONDS = 0.1
"""How long a read waits for a first record: the stage's group must be polled in between."""
_READ = 1 / 4
"""A share of the buffer: what the payloads of one read take, and what Python adds to them."""
_OVERHEAD = record_cost(Record("", 0, 0, -1, None, None))
_DROPPED_AT = 1 / 2
"""A share of the buffer: what is ahead of its use and takes more than that is dropped."""
_STOPPED_AT = 1 / 4
"""A share: partitions that are ahead are stopped. This discards what was prefetched."""
_RESUMED_AT = 1 / 16
"""A share: all partitions are read again. The band is wide, since stopping is wasteful."""
_READS = 600
"""How many reads, each of 0.1 s, a payload may be wanted for before it is logged."""


@dataclass(slots=True)
class _Lane:
    """A partition: its records that were read and not yet taken.

    Everything before ``following`` was read, is not needed, or never can be read.
    """

    following: int
    running: bool = False
    records: deque[Record] = field(default_factory=deque)
    costs: deque[int] = field(default_factory=deque)
    cost: int = 0
    """The cost of the records in bytes."""

    def add(self, record: Record) -> None:
        """Keep a record."""
        cost = record_cost(record)
        self.records.append(record)
        self.costs.append(cost)
        self.cost += cost
        self.following = record.offset + 1

    def take(self, until: int) -> list[Record]:
        """Remove and return the records before an offset."""
        taken = []
        while self.records and self.records[0].offset < until:
            taken.append(self.records.popleft())
            self.cost -= self.costs.popleft()
        return taken

    def drop(self) -> None:
        """Drop all records; they will be read again."""
        self.following = self.records[0].offset
        self.records.clear()
        self.costs.clear()
        self.cost = 0


class Payloads:
    """The partitions of ``documents``, each with a position of its own.

    Partitions are read ahead, because the frames that name their documents alternate. What is ahead
    takes at most half of the buffer, and one read about the other half.
    """

    def __init__(
        self,
        documents: str,
        connect: Callable[[], LogReader],
        buffer_bytes: int,
        aside: Sequence[SetAside] = (),
    ) -> None:
        """Take the topic, and a function that connects a reader to it. This does not connect.

        ``aside`` are ranges that are not read.
        """
        self._documents = documents
        self._aside = aside
        self._connect = connect
        self._buffer_bytes = buffer_bytes
        self._reader: LogReader | None = None
        self._lanes: dict[int, _Lane] = {}
        self._late: tuple[int, int] | None = None
        self._vain = 0

    @property
    def cost(self) -> int:
        """Return how many bytes the records take that were read and not yet taken."""
        return sum(lane.cost for lane in self._lanes.values())

    def read(self, wanted: Mapping[int, int], *, wait: bool) -> None:
        """Read once, for the partitions that lack a payload.

        ``wanted`` has the offset of the first one that each of them lacks. All that was read of
        them before has been taken. ``wait``: whether nothing can be done until one is here.

        Raises:
            StageError: a payload is past the end of its partition.
            PartitionUnreadable: a batch can't be unpacked, and is not set aside.
            BusError: the documents can't be read.
        """
        self._look(wanted)
        reader = self._connected()
        self._limit(reader, wanted)
        for partition, offset in wanted.items():
            lane = self._lanes.setdefault(partition, _Lane(offset))
            lane.following = max(lane.following, offset)  # Nothing before it is needed.
            self._start(reader, partition, lane)
        size = max(1, int(self._buffer_bytes * _READ))
        limit = max(1, min(_RECORDS, size // _OVERHEAD))
        try:
            records = reader.read(limit, size, _WAIT_SECONDS if wait else 0.0)
        except OffsetOutOfRange as error:
            self._skip(reader, error)
            return
        except PartitionUnreadable as error:
            self._pass(reader, error)
            return
        for record in records:
            self._lanes[record.partition].add(record)

    def _connected(self) -> LogReader:
        if self._reader is None:
            self._reader = self._connect()
        return self._reader

    def _start(self, reader: LogReader, partition: int, lane: _Lane) -> None:
        if not lane.running:
            after = beyond(self._aside, partition, lane.following)
            lane.following = lane.following if after is None else after
            reader.start(TopicPartition(self._documents, partition), lane.following)
            lane.running = True

    def _stop(self, reader: LogReader, partition: int, lane: _Lane) -> None:
        if lane.running:
            lane.following = self.reached(partition)
            reader.stop(TopicPartition(self._documents, partition))
            lane.running = False

    def _limit(self, reader: LogReader, wanted: Mapping[int, int]) -> None:
        """Stop or resume partitions that are ahead, and drop what they take too much."""
        cost, size = self.cost, self._buffer_bytes
        ahead = [(number, lane) for number, lane in self._lanes.items() if number not in wanted]
        if cost <= size * _RESUMED_AT:
            for number, lane in ahead:
                self._start(reader, number, lane)
        elif cost > size * _STOPPED_AT:
            for number, lane in ahead:
                self._stop(reader, number, lane)
        for lane in sorted((lane for _, lane in ahead), key=attrgetter("cost"), reverse=True):
            if cost > size * _DROPPED_AT and lane.records:
                cost -= lane.cost
                lane.drop()

    def _skip(self, reader: LogReader, error: OffsetOutOfRange) -> None:
        """Continue from a partition's start: what was before it is deleted."""
        if error.position >= error.low:
            msg = f"{error}: the topic was truncated or recreated after its documents were judged"
            raise StageError(msg)
        reader.start(error.partition, error.low)

    def _pass(self, reader: LogReader, error: PartitionUnreadable) -> None:
        """Continue after what is set aside: nothing of that was judged."""
        place = error.partition
        after = beyond(self._aside, place.partition, error.position)
        if after is None:
            raise unread(error)
        self._lanes[place.partition].following = after
        reader.start(place, after)

    def take(self, partition: int, until: int) -> list[Record]:
        """Remove and return what was read of a partition before an offset."""
        lane = self._lanes.get(partition)
        return [] if lane is None else lane.take(until)

    def reached(self, partition: int) -> int:
        """Return the offset before which all of a partition was read that is there and needed."""
        lane = self._lanes.get(partition)
        if lane is None:
            return 0
        if self._reader is None or not lane.running:
            return lane.following
        position = self._reader.position(TopicPartition(self._documents, partition))
        return max(lane.following, position or 0)

    def _look(self, wanted: Mapping[int, int]) -> None:
        """Log a payload that the last reads have not brought."""
        first = next(iter(wanted.items()))
        self._vain = self._vain + 1 if first == self._late else 0
        self._late = first
        if self._vain and self._vain % _READS == 0:
            _log.error(
                "%s[%d] offset %d: this document was judged, but can't be read. Either the brokers"
                " don't answer, or the topic was truncated: then abort the reindex",
                self._documents, *first,
                extra={"topic": self._documents, "partition": first[0], "offset": first[1]},
            )  # fmt: skip

    def forget(self) -> None:
        """Drop everything; each partition is read from where it is wanted next."""
        for partition, lane in self._lanes.items():
            if self._reader is not None:
                self._stop(self._reader, partition, lane)
        self._lanes = {}

    def close(self) -> None:
        """Close the reader."""
        self._lanes = {}
        if self._reader is not None:
            self._reader.close()
            self._reader = None
