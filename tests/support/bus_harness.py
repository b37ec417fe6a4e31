"""What the suite needs beside the port: topics, other clients, a look at the log.

There is one harness per bus. Topics and groups get names of their own, so that tests on
one broker don't meet.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tests.support.brokers import Brokers
from tests.support.bus_seats import Seat, until
from worker.bus import Bus, Outgoing, Record, TopicPartition
from worker.bus.memory.transaction import Transaction


class OpenTransaction(Protocol):
    """A transaction of some producer outside of all groups."""

    def append(self, *records: Outgoing) -> None:
        """Write, and wait until the log has it."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Harness(ABC):
    """A bus, and the clients around it."""

    lose: Callable[[TopicPartition, int], None]
    """Has a log lose its end, from an offset on; only where a test gives it."""

    def __init__(self, bus: Bus, prefix: str) -> None:
        """Test this bus; the prefix keeps its names apart."""
        self.bus = bus
        self._prefix = prefix
        self._counter = itertools.count()
        self._counts: dict[str, int] = {}
        self._seats: list[Seat] = []

    def name(self, of: str) -> str:
        """Give a name that nobody else uses."""
        return f"{self._prefix}-{of}-{next(self._counter)}"

    def topic(
        self, partitions: int = 1, *, log_append_time: bool = False, max_bytes: int | None = None
    ) -> str:
        """Create a topic; give its name."""
        name = self.name("topic")
        self.create_topic(name, partitions, log_append_time=log_append_time, max_bytes=max_bytes)
        self._counts[name] = partitions
        return name

    def places(self, *topics: str) -> set[TopicPartition]:
        """Give all partitions of topics."""
        return {TopicPartition(t, p) for t in topics for p in range(self._counts[t])}

    def join(
        self, group: str, topics: Iterable[str], instance: str, *, of: str | None = None
    ) -> Seat:
        """Take a seat; it is closed with the harness."""
        seat = Seat(self.bus.join(group, list(topics), instance, of=of))
        self._seats.append(seat)
        return seat

    def alone(self, *topics: str, group: str | None = None) -> Seat:
        """Take the only seat of a group, and wait until it owns everything."""
        seat = self.join(group or self.name("group"), topics, "alone")
        self.settle([seat], *topics)
        return seat

    def settle(self, seats: list[Seat], *topics: str) -> None:
        """Poll all seats in turn until together they own each partition once."""
        places = sorted(self.places(*topics))

        def settled() -> bool:
            news = [seat.poll().assignment is not None for seat in seats]
            owned = sorted(place for seat in seats for place in seat.owned)
            told = all(seat.assignment is not None for seat in seats)
            return told and owned == places and not any(news)

        until(settled, f"{len(seats)} members share {places}")

    def close(self) -> None:
        """Close everything that was joined."""
        for seat in self._seats:
            seat.member.close(leave=True)

    @abstractmethod
    def create_topic(
        self, name: str, partitions: int, *, log_append_time: bool, max_bytes: int | None
    ) -> None: ...

    @abstractmethod
    def append(self, *records: Outgoing) -> list[int]:
        """Write outside of any transaction, one after the other; give the offsets."""

    @abstractmethod
    def read_committed(self, topic: str) -> list[Record]:
        """Read all that is visible now, by partition and offset, without a group."""

    @abstractmethod
    def open_transaction(self) -> OpenTransaction: ...

    def recreate(self, name: str) -> None:
        """Delete a topic, and create one of the same name and as many partitions."""
        self.delete_topic(name)
        self.create_topic(name, self._counts[name], log_append_time=False, max_bytes=None)

    @abstractmethod
    def delete_topic(self, name: str) -> None:
        """Delete a topic, and return once it is gone."""

    @abstractmethod
    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], identity: str | None = None
    ) -> None:
        """Set the offsets of a group that has no members, and the identity of their topic."""

    @abstractmethod
    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """Look up a group's offsets from outside."""

    @abstractmethod
    def trim(self, place: TopicPartition, before: int) -> None:
        """Delete the records before an offset."""


class _MemoryTransaction:
    """An `OpenTransaction` of the in-process log."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.commit = transaction.commit
        self.abort = transaction.abort

    def append(self, *records: Outgoing) -> None:
        self._transaction.append_many(records)


class MemoryHarness(Harness):
    """Around the in-process log."""

    def __init__(self) -> None:
        self.memory = Brokers()
        super().__init__(self.memory, "memory")

    def create_topic(
        self, name: str, partitions: int, *, log_append_time: bool, max_bytes: int | None
    ) -> None:
        self.memory.create_topic(
            name, partitions, log_append_time=log_append_time, max_bytes=max_bytes
        )

    def append(self, *records: Outgoing) -> list[int]:
        return [self.memory.append(record)[1] for record in records]

    def read_committed(self, topic: str) -> list[Record]:
        read: list[Record] = []
        for _, partition in sorted(self.places(topic)):
            start = self.memory.start_offset(topic, partition)
            read += self.memory.read(topic, partition, start, 1_000_000)
        return read

    def open_transaction(self) -> OpenTransaction:
        return _MemoryTransaction(self.memory.begin(self.name("producer")))

    def delete_topic(self, name: str) -> None:
        self.memory.delete_topic(name)

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], identity: str | None = None
    ) -> None:
        identities = {place.topic: identity for place in offsets} if identity else {}
        self.memory.commit_offsets(group, offsets, identities=identities)

    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        return self.memory.committed(group, partitions)

    def trim(self, place: TopicPartition, before: int) -> None:
        self.memory.trim(*place, before)
