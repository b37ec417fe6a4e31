"""The partitions that a group has assigned to a member, and where each is read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.ends import Ends
from worker.bus.kafka.errors import cause
from worker.bus.port import BusError, TopicPartition

__all__ = ["Assignment"]

_log = logging.getLogger(__name__)


class Assignment:
    """Follows a consumer's rebalances; what it is given is paused until sought and resumed.

    The rebalance callbacks only note what happened: they neither raise nor block, and all
    work waits until the poll that ran them has returned.

    Attributes:
        partitions: that are assigned.
        changed: the group has assigned since `take`.
        revoked: nothing is assigned, and another assignment will follow.

    """

    def __init__(self, group: str, ends: Ends, *, eager: bool) -> None:
        """Nothing is assigned; ``eager`` rebalances (the classic protocol's) take all away.

        ``ends`` tell of the logs from which nothing is fetched.
        """
        self._group = group
        self._ends = ends
        self._eager = eager
        self._consumer: Consumer
        self.partitions: set[TopicPartition] = set()
        self.changed = False
        self.revoked = True
        self._running: set[TopicPartition] = set()
        self._positions: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def subscribe(self, consumer: Consumer, topics: list[str]) -> None:
        """Follow this consumer from now on; the group is joined by its first polls."""
        self._consumer = consumer
        self.partitions = set()
        self.changed = False
        self.revoked = True
        self._running = set()
        self._positions = {}
        consumer.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        # An explicit offset spares librdkafka the look-up of the committed ones; nothing is
        # fetched from it, as all stays paused until the loop has sought and resumed.
        placed = [KafkaPartition(found.topic, found.partition, 0) for found in partitions]
        if self._eager:
            consumer.assign(placed)
            self.partitions = set()
        else:
            consumer.incremental_assign(placed)
        self.partitions |= {TopicPartition(found.topic, found.partition) for found in partitions}
        self._pause_all(consumer)
        self.revoked = False

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        self.partitions -= {TopicPartition(found.topic, found.partition) for found in partitions}
        if self._eager:
            self.revoked = True
            consumer.unassign()
        else:
            consumer.incremental_unassign(partitions)
            self._pause_all(consumer)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        _log.warning("group %s: %d partitions lost", self._group, len(partitions))
        self._on_revoke(consumer, partitions)

    def _pause_all(self, consumer: Consumer) -> None:
        if self.partitions:
            consumer.pause(_kafkas(self.partitions))
        self._running = set()
        self.changed = True

    def take(self) -> frozenset[TopicPartition]:
        """Give what is assigned now; no position is known until it is sought."""
        self.changed = False
        self._positions = {}
        self._committed = {}
        return frozenset(self.partitions)

    def position(self, partition: TopicPartition) -> int | None:
        """Give the offset that is read next; None if nobody reads it yet, or any more."""
        return self._positions.get(partition) if partition in self.partitions else None

    def positions(self) -> dict[TopicPartition, int]:
        """Give the offset that is read next of each partition that was sought."""
        # librdkafka passes markers and aborted records in the order of the log, as what is before
        # them is handed out. It has no position after a seek until it hands something out.
        found = self._consumer.position(_kafkas(self._positions))
        passed = {TopicPartition(place.topic, place.partition): place.offset for place in found}
        return {
            own: max(offset, passed[own])
            for own, offset in self._positions.items()
            if own in self.partitions
        }

    def advance(self, positions: Mapping[TopicPartition, int]) -> None:
        """Note what has been read."""
        self._positions.update(positions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from there; what has just been taken away is left alone.

        Raises:
            BusError: librdkafka refuses.
        """
        if partition not in self.partitions:
            return
        self._positions[partition] = offset
        try:
            self._consumer.seek(KafkaPartition(*partition, offset))
        except KafkaException as error:
            if cause(error).code() != KafkaError._STATE:  # noqa: SLF001 -- librdkafka's own codes
                raise BusError(str(cause(error))) from error
            # librdkafka has stopped the partition, as it does on an offset out of range.
            self.restart({partition})

    def restart(self, partitions: set[TopicPartition]) -> None:
        """Have librdkafka begin anew with partitions, where they were sought to."""
        if self._eager:
            placed = [KafkaPartition(*own, self._positions.get(own, 0)) for own in self.partitions]
            self._consumer.assign(placed)
        else:
            placed = [KafkaPartition(*own, self._positions[own]) for own in partitions]
            self._consumer.incremental_unassign(placed)
            self._consumer.incremental_assign(placed)
        held = self.partitions - self._running
        if held:
            self._consumer.pause(_kafkas(held))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no more of these."""
        asked = self.partitions.intersection(partitions)
        if asked:
            self._consumer.pause(_kafkas(asked))
            self._running -= asked

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch these, and begin at once."""
        asked = self.partitions.intersection(partitions)
        if not asked:
            return
        self._consumer.resume(_kafkas(asked))
        self._running |= asked
        self._wake(asked & self._positions.keys())

    def _wake(self, partitions: set[TopicPartition]) -> None:
        """Have partitions fetched at once that were resumed.

        To resume them does not wake librdkafka's threads for their leaders, which may sleep for
        another second. To seek does, unless it is to 0; then only a new start does.
        """
        at_zero = {partition for partition in partitions if not self._positions[partition]}
        if at_zero:
            self.restart(at_zero)
        for partition in partitions - at_zero:
            self.seek(partition, self._positions[partition])

    def note_committed(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Note from where partitions will be read that are not sought yet."""
        self._committed.update({at: found for at, found in offsets.items() if found is not None})

    def lag(self) -> dict[TopicPartition, int]:
        """Give the committed records that wait."""
        lags = {}
        unfetched = {
            own: offset
            for own, offset in self._committed.items()
            if own in self.partitions and own not in self._positions
        }
        # librdkafka's own position: unlike that of the last record, it passes the markers
        # of transactions, of which one stands at the end of every idle partition.
        for found in self._consumer.position(_kafkas(self._positions)):
            own = TopicPartition(found.topic, found.partition)
            position = max(found.offset, self._positions[own])
            _, high = self._consumer.get_watermark_offsets(found, cached=True)
            if high < 0 or own not in self._running:  # Nothing was fetched yet, or not lately.
                unfetched[own] = position
            else:
                lags[own] = max(0, high - position)
        self._ends.wanted = unfetched
        ends = self._ends.found
        for own, position in unfetched.items():
            if own in ends:
                lags[own] = max(0, ends[own] - position)
        return lags


def _kafkas(partitions: Iterable[TopicPartition]) -> list[KafkaPartition]:
    return [KafkaPartition(*partition) for partition in partitions]
