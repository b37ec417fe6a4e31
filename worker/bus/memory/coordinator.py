"""The owners of names, the open transactions, and the groups' offsets."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from worker.bus import BusError, Fenced, TopicPartition
from worker.bus.memory.group import Group
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Transaction


class Identity(NamedTuple):
    """The stable name of a seat, and of its owner's transactions."""

    group: str
    instance: str


class Coordinator:
    """The state of Kafka's group and transaction coordinators."""

    def __init__(self, topics: Topics, *, trim_consumed: bool) -> None:
        """Coordinate over these topics."""
        self._topics = topics
        self._trim_consumed = trim_consumed
        self._groups: dict[str, Group] = {}
        self._owners: dict[Identity, object] = {}
        self._open: dict[Identity, Transaction] = {}
        # The committed offsets by the partition that was read, for trim_consumed.
        self._consumed: dict[TopicPartition, dict[tuple[str, TopicPartition], int]] = {}
        self._thread = threading.get_ident()

    def check_thread(self) -> None:
        """Raise RuntimeError unless the thread that made the bus calls.

        Nothing here is locked, so two threads would corrupt it silently.
        """
        if threading.get_ident() != self._thread:
            raise RuntimeError("a MemoryBus and its members belong to the thread that made the bus")

    def group(self, name: str) -> Group:
        """Return a group; create it if it is new."""
        if name not in self._groups:
            self._groups[name] = Group(self._count, self._topics.clock)
        return self._groups[name]

    def claim(self, identity: Identity, owner: object) -> None:
        """Make this owner the only one under the name, and fence the previous one."""
        self._owners[identity] = owner
        self.abort_open(identity)

    def owns(self, identity: Identity, owner: object) -> bool:
        """Return whether this owner was the last to claim the name."""
        return self._owners.get(identity) is owner

    def check_owner(self, identity: Identity, owner: object) -> None:
        """Raise Fenced unless this owner was the last to claim the name."""
        if not self.owns(identity, owner):
            raise Fenced(
                f"another member has joined group {identity.group} as {identity.instance};"
                " give each process its own instance name"
            )

    def in_doubt(self, identity: Identity) -> bool:
        """Return whether the name has an open transaction."""
        return identity in self._open and self._open[identity].open

    def begin(self, identity: Identity) -> Transaction:
        """Open a transaction, and abort the name's earlier open one."""
        self.abort_open(identity)
        self._open[identity] = transaction = Transaction(self._topics, self._store)
        return transaction

    def abort_open(self, identity: Identity) -> None:
        """Abort the name's open transaction, as a new producer or a timeout does."""
        transaction = self._open.pop(identity, None)
        if transaction is not None and transaction.open:
            transaction.abort()

    def end_pending(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Abort the open transactions that hold offsets of the group.

        A broker would wait for them. Here nothing else runs meanwhile, so the wait would last
        until their timeout, which aborts them.
        """
        for identity, transaction in list(self._open.items()):
            if transaction.holds(group, partitions):
                self.abort_open(identity)

    def _store(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        of: str | None,
        epochs: Mapping[TopicPartition, int],
    ) -> None:
        self.store(group, offsets, self._topics.identities, of=of, epochs=epochs)

    def store(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        identities: Mapping[str, str],
        *,
        of: str | None = None,
        epochs: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Set offsets of a group, with the known identities of their topics.

        The offsets belong to the topic ``of``, or each to its own. With ``trim_consumed``, this
        trims the logs.
        """
        self.group(group).offsets.update(offsets)
        self.group(group).identities.update(
            {partition: identities.get(of or partition.topic) for partition in offsets}
        )
        self.group(group).epochs.update({place: epochs.get(place) for place in offsets})
        for partition, offset in offsets.items():
            read = partition if of is None else TopicPartition(of, 0)
            consumed = self._consumed.setdefault(read, {})
            consumed[group, partition] = offset
            if self._trim_consumed:
                log = self._topics.log(read)
                log.trim(min(log.stable, *consumed.values()))

    def drop(self, topic: str) -> None:
        """Drop all groups' offsets of a topic."""
        for name, group in self._groups.items():
            for partition in [place for place in group.offsets if place.topic == topic]:
                del group.offsets[partition]
                del group.identities[partition]
                self._unconsumed(name, partition)
        for partition in [place for place in self._consumed if place.topic == topic]:
            del self._consumed[partition]

    def _unconsumed(self, group: str, partition: TopicPartition) -> None:
        """Drop a group's offset of a partition for ``trim_consumed``."""
        for consumed in self._consumed.values():
            consumed.pop((group, partition), None)

    def _count(self, topic: str) -> int:
        count = self._topics.count(topic)
        if count is None:
            raise BusError(f"topic {topic} does not exist; create it first")
        return count
