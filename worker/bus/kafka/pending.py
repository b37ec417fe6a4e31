"""The errors that a poll has received, kept for later polls to handle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import cast

from confluent_kafka import KafkaError, Message

from worker.bus import TopicPartition
from worker.bus.kafka.codes import Means, means
from worker.bus.kafka.errors import passes


class PendingErrors:
    """Errors that came among records, in order.

    They are handled after the records before them have been delivered. None is dropped: an error
    of a partition may be the only sign that librdkafka has stopped it.

    Attributes:
        broken: partitions of which nothing more may be delivered. librdkafka continues after a
            damaged batch with the records that follow it.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.broken: set[TopicPartition] = set()
        self._messages: deque[Message] = deque()

    def add(self, message: Message) -> None:
        """Keep an error, unless its partition is already broken."""
        partition = TopicPartition(message.topic() or "", message.partition() or 0)
        if partition in self.broken:
            return
        self._messages.append(message)
        error = cast("KafkaError", message.error())
        stopped = means(error, Means.OUT_OF_RANGE)
        if partition.topic and not stopped and not passes(error):
            self.broken.add(partition)

    @property
    def places(self) -> set[TopicPartition]:
        """Return the partitions that are broken or have a waiting error."""
        waiting = (TopicPartition(m.topic() or "", m.partition() or 0) for m in self._messages)
        return self.broken.union(waiting)

    def take(self) -> Iterator[Message]:
        """Yield and remove one error after another; the rest stays if the caller stops early."""
        while self._messages:
            yield self._messages.popleft()

    def sought(self) -> None:
        """Drop the errors of partitions, all of which are sought again.

        Those of the whole client stay: a fatal one is reported only once.
        """
        self._messages = deque(found for found in self._messages if not found.topic())
        self.broken.clear()

    def clear(self) -> None:
        """Drop all errors, because the client is replaced."""
        self._messages.clear()
        self.broken.clear()
