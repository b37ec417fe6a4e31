"""The errors of a poll, each of which a later poll delivers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import cast

from confluent_kafka import KafkaError, Message

from worker.bus.kafka.errors import passes
from worker.bus.port import TopicPartition

__all__ = ["PendingErrors"]


class PendingErrors:
    """Errors that came among records, in their order.

    They are judged after the records before them have been handed out. None is dropped: one
    error of a partition may be the only sign that librdkafka has stopped it.

    Attributes:
        broken: partitions of which nothing more may be handed out. librdkafka goes on after a
            damaged batch with whatever it finds behind it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.broken: set[TopicPartition] = set()
        self._messages: deque[Message] = deque()

    def add(self, message: Message) -> None:
        """Keep an error, unless it is of a partition that is broken already."""
        place = TopicPartition(message.topic() or "", message.partition() or 0)
        if place in self.broken:
            return
        self._messages.append(message)
        error = cast("KafkaError", message.error())
        stopped = error.code() == KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 -- librdkafka's own
        if place.topic and not stopped and not passes(error):
            self.broken.add(place)

    @property
    def places(self) -> set[TopicPartition]:
        """Return the partitions that are broken, or have an error waiting."""
        waiting = (TopicPartition(m.topic() or "", m.partition() or 0) for m in self._messages)
        return self.broken.union(waiting)

    def take(self) -> Iterator[Message]:
        """Give one error after the other; whoever stops in between finds the rest next time."""
        while self._messages:
            yield self._messages.popleft()

    def clear(self) -> None:
        """Forget all: every partition is sought again."""
        self._messages.clear()
        self.broken.clear()
