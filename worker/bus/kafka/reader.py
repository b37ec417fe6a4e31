"""Reading a Kafka cluster beside a group."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.errors import cause, damage, passes, retrying
from worker.bus.kafka.records import record_of
from worker.bus.port import (
    BusError,
    OffsetOutOfRange,
    OutcomeUnknown,
    PartitionUnreadable,
    Record,
    TopicPartition,
)

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
        self._errors: dict[TopicPartition, Message] = {}
        self._error: KafkaError | None = None
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
        self._errors.pop(partition, None)
        if self._positions.pop(partition, None) is None:
            return
        try:
            self._consumer.incremental_unassign([KafkaPartition(*partition)])
        except KafkaException as error:
            raise self._failed(error) from error

    def read(self, limit: int, timeout: float) -> list[Record]:
        """See the port."""
        self._raise_kept()
        try:
            messages = self._consumer.consume(limit, timeout)
        except KafkaException as error:
            raise self._failed(error) from error
        records = []
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            if message.error() is not None:
                self._keep(place, message)
            elif self._continues(place, message.offset() or 0):
                record = record_of(message)
                records.append(record)
                self._positions[place] = record.offset + 1
        if not records:
            self._raise_kept()
        return records

    def _continues(self, place: TopicPartition, offset: int) -> bool:
        """Tell whether a record is one to hand out.

        One that follows an error must not be: librdkafka goes on after records whose checksum is
        wrong. Nor must one from before the partition was started anew.
        """
        position = self._positions.get(place)
        return position is not None and offset >= position and place not in self._errors

    def _keep(self, place: TopicPartition, message: Message) -> None:
        """Keep what is wrong until all that was read before it has been handed out."""
        wrong = cast("KafkaError", message.error())
        if passes(wrong):
            return
        if place in self._positions:
            self._errors.setdefault(place, message)
        elif not place.topic:  # A partition that was stopped is nobody's concern.
            self._error = self._error or wrong

    def _raise_kept(self) -> None:
        """Raise one of the errors that were kept, if any stands."""
        if self._error is not None:
            wrong, self._error = self._error, None
            raise BusError(f"group {self._group}: {wrong.str()}")
        for place, message in list(self._errors.items()):
            wrong = cast("KafkaError", message.error())
            if wrong.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 -- librdkafka's own
                self._out_of_range(place, message.offset())
            else:
                position = self._positions[place]
                raise damage(wrong, place, position) or PartitionUnreadable(
                    place, position, wrong.str()
                )

    def _out_of_range(self, place: TopicPartition, refused: int | None) -> None:
        """Raise, unless it is not the position that was refused, but one from before a start.

        librdkafka reports it as of no version, so that it may come up after the partition was
        started elsewhere, which it has stopped.
        """
        position = self._positions[place]
        low, high = self.watermarks(place)
        if refused == position or not low <= position <= high:
            raise OffsetOutOfRange(place, position, low, high)
        self.start(place, position)

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
