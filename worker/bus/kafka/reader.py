"""Reading a Kafka cluster beside a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.errors import cause, damage, passes, retrying
from worker.bus.kafka.records import record_of
from worker.bus.port import BusError, OffsetOutOfRange, OutcomeUnknown, Record, TopicPartition

__all__ = ["KafkaReader"]

T = TypeVar("T")

_CLOSE_SECONDS = 5.0


class KafkaReader:
    """See `worker.bus.port.Reader`.

    A consumer under the group's name that never subscribes: it may ask for the group's
    offsets, and is assigned to partitions by hand.
    """

    def __init__(self, options: KafkaOptions, group: str) -> None:
        """Prepare; nothing is connected yet."""
        self._options = options
        self._group = group
        self._positions: dict[TopicPartition, int] = {}
        self._consumer = Consumer(options.reading(group))

    def start(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        self.stop(partition)
        try:
            self._consumer.incremental_assign([KafkaPartition(*partition, offset)])
        except KafkaException as error:
            raise self._failed(error) from error
        self._positions[partition] = offset

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        if self._positions.pop(partition, None) is None:
            return
        try:
            self._consumer.incremental_unassign([KafkaPartition(*partition)])
        except KafkaException as error:
            raise self._failed(error) from error

    def read(self, limit: int, timeout: float) -> list[Record]:
        """See the port."""
        try:
            messages = self._consumer.consume(limit, timeout)
        except KafkaException as error:
            raise self._failed(error) from error
        records = []
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            wrong = message.error()
            if wrong is None:
                records.append(record_of(message))
                self._positions[place] = (message.offset() or 0) + 1
            elif wrong.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 -- librdkafka's own
                # What came before it is lost to the caller, who starts again from its stores.
                position = self._positions.get(place, message.offset() or 0)
                raise OffsetOutOfRange(place, position, *self.watermarks(place))
            elif not passes(wrong):
                damaged = damage(wrong, place, message.offset() or 0)
                raise damaged or BusError(f"group {self._group}: {wrong.str()}")
        return [record for record in records if record[:2] in self._positions]

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        asked = [KafkaPartition(*partition) for partition in partitions]
        found = self._asking(lambda left: self._consumer.committed(asked, left))
        offsets = {}
        for place in found:
            if place.error is not None:
                raise BusError(f"group {self._group}: {place.error.str()}")
            offset = place.offset if place.offset >= 0 else None
            offsets[TopicPartition(place.topic, place.partition)] = offset
        return offsets

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        low, high = self._asking(
            lambda left: self._consumer.get_watermark_offsets(
                KafkaPartition(*partition), left, cached=False
            )
        )
        return low, high

    def _asking(self, call: Callable[[float], T]) -> T:
        try:
            seconds = self._options.request_timeout_seconds
            return retrying(call, seconds, f"group {self._group}", asking=True)
        except KafkaException as error:
            raise self._failed(error) from error
        except OutcomeUnknown as error:
            raise BusError(str(error)) from error

    def _failed(self, error: KafkaException) -> BusError:
        return BusError(f"group {self._group}: {cause(error).str()}")

    def close(self) -> None:
        """See the port."""
        # A librdkafka consumer's close may hang with its brokers.
        closing = threading.Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
