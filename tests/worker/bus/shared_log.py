"""A log that several seats read, on connections that tell what is done with them."""

from __future__ import annotations

from collections.abc import Iterable

from worker.bus import Claim, Outgoing, PartitionUnreadable, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.bus.memory.reader import MemoryReader
from worker.bus.shared import SharedReader

LOG = TopicPartition("log", 0)
MANY = 1 << 20


def seat(number: int) -> TopicPartition:
    return TopicPartition("seats", number)


class Connection:
    """A reader of the log.

    Attributes:
        fetching: whether it has been started, and not stopped.
        calls: what was asked of it, in order.
        waits: how long each read was allowed to wait.
    """

    def __init__(self, reader: MemoryReader, bus: MemoryBus, damaged: set[int]) -> None:
        self._reader = reader
        self._bus = bus
        self._damaged = damaged
        self.fetching = False
        self.calls: list[str] = []
        self.waits: list[float] = []
        self.committed, self.watermarks = reader.committed, reader.watermarks
        self.position, self.end, self.epoch = reader.position, reader.end, reader.epoch

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        assert partition == LOG
        self.calls.append("start")
        self.fetching = True
        self._reader.start(partition, offset, claim)

    def stop(self, partition: TopicPartition) -> None:
        assert partition == LOG
        self.calls.append("stop")
        self.fetching = False
        self._reader.stop(partition)

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        self.waits.append(timeout)
        return self._reader.read(self._sound(limit), max_bytes, timeout)

    def _sound(self, limit: int) -> int:
        """Give how many records can be read before one that is damaged.

        Raises:
            PartitionUnreadable: none can.
        """
        at = self._reader.position(LOG)
        if at is None or not self._damaged:
            return limit
        low, _ = self._reader.watermarks(LOG)
        offsets = [record.offset for record in self._bus.read(*LOG, low, MANY)]
        ahead = [offset for offset in offsets if offset >= at]
        sound = next((n for n, one in enumerate(ahead) if one in self._damaged), limit)
        if at >= low and sound == 0:
            raise PartitionUnreadable(LOG, at, "a test")
        return min(limit, sound)

    def close(self) -> None:
        self.calls.append("close")
        self.fetching = False
        self._reader.close()


class Shared:
    """A log, and a shared reader of it.

    Attributes:
        connections: all that there ever were.
        damaged: offsets of records that can't be read.
    """

    def __init__(self) -> None:
        self.bus = MemoryBus(clock=lambda: 1)
        self.bus.create_topic(LOG.topic, 1)
        self.connections: list[Connection] = []
        self.damaged: set[int] = set()
        self.reader = SharedReader(LOG, self._connect)

    def _connect(self) -> Connection:
        made = Connection(self.bus.log_reader("g", [LOG.topic]), self.bus, self.damaged)
        self.connections.append(made)
        return made

    @property
    def fetching(self) -> int:
        return sum(connection.fetching for connection in self.connections)

    def append(self, count: int) -> None:
        """Write records outside of transactions, so that offsets count them."""
        first = self.bus.end_offset(*LOG)
        values = (b"%d" % number for number in range(first, first + count))
        self.bus.append_many(Outgoing(*LOG, None, value) for value in values)

    def read(self, limit: int = 1_000) -> dict[int, list[int]]:
        """Give the offsets that a read brings, by seat."""
        return by_seat(self.reader.read(limit, MANY, 0.0))


def by_seat(records: Iterable[Record]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for record in records:
        assert record.topic == "seats"
        found.setdefault(record.partition, []).append(record.offset)
    return found
