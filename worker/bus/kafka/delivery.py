"""Where a transaction's records were written, and which of these partitions have kept them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import repeat

from confluent_kafka import KafkaError, Message

from worker.bus import (
    AnyOutgoing,
    BusError,
    LogReader,
    OffsetOutOfRange,
    Outgoing,
    OutgoingBatch,
    TopicPartition,
    each,
)
from worker.bus.kafka.error_codes import Means, means
from worker.bus.ranges import RangeReader

Report = Callable[[KafkaError | None, Message], None]

_READ_RECORDS = 500
_READ_BYTES = 16 << 20
_WAIT_SECONDS = 0.1
_UNNAMED = -1


class Delivered:
    """The delivery reports of one transaction.

    A partition keeps all of a transaction's records or none. So it is enough to know the last
    one's offset in each.

    Attributes:
        batches: what is to be written.
        refused: the error of each record that was refused, by topic, key and value.
    """

    def __init__(self, records: Sequence[AnyOutgoing]) -> None:
        """Take the records that are to be written."""
        self.refused: dict[tuple[str | None, object, object], str] = {}
        self.batches = [
            one if isinstance(one, OutgoingBatch) else OutgoingBatch.of(one) for one in records
        ]
        self._written = 0
        self._ends: dict[TopicPartition, int] = {}
        self._chosen: dict[int, TopicPartition] = {}

    def reports(self) -> Iterator[tuple[OutgoingBatch, Iterable[Report]]]:
        """Return the records with a callback for the delivery report of each."""
        number = 0
        for batch in self.batches:
            if batch.partition is not None:
                yield batch, repeat(self.report)
            else:
                places = range(number, number + len(batch.values))
                yield batch, [partial(self._choose, place) for place in places]
            number += len(batch.values)

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Take a delivery report."""
        if error is None:
            self._written += 1
            # Equals a TopicPartition, and is cheaper.
            partition = message.topic(), message.partition()
            offset = message.offset()
            if offset is not None:
                self._ends[partition] = offset  # type: ignore[index]
            else:  # The answer was lost, and that to the second attempt doesn't have it.
                self._ends.setdefault(partition, _UNNAMED)  # type: ignore[arg-type]
        elif means(error, Means.REFUSED):
            self.refused[message.topic(), message.key(), message.value()] = error.name()

    def refuse(self, topic: str, key: bytes | None, value: bytes | None, error: KafkaError) -> None:
        """Note that a record can't be written, before any topic has seen it."""
        self.refused[topic, key, value] = error.name()

    def _choose(self, number: int, error: KafkaError | None, message: Message) -> None:
        self.report(error, message)
        if error is None:
            partition = TopicPartition(message.topic() or "", message.partition() or 0)
            self._chosen[number] = partition

    def ends(self) -> dict[TopicPartition, int | None]:
        """Return the last record's offset in each partition; None if the brokers did not say."""
        return {
            TopicPartition(*partition): None if offset == _UNNAMED else offset
            for partition, offset in self._ends.items()
        }

    @property
    def topics(self) -> list[str]:
        """Return the topics that the records are for."""
        return sorted({batch.topic for batch in self.batches})

    def refusals(self) -> list[Outgoing]:
        """Return the records that topics have refused."""
        records = each(self.batches)
        return [one for one in records if (one.topic, one.key, one.value) in self.refused]

    def kept(self, reader: Callable[[Collection[str]], LogReader], seconds: float) -> list[bool]:
        """Return whether each record is committed. The transaction must have ended.

        Empty if not all were written: librdkafka then has not asked for a commit. ``reader`` opens
        a reader of some topics.

        Raises:
            BusError: a partition can't be read within ``seconds``.
        """
        if not self._ends or self._written < sum(len(one.values) for one in self.batches):
            return []
        if _UNNAMED in self._ends.values():
            raise BusError("the brokers did not say where they wrote its records")
        there = visible(reader({topic for topic, _ in self._ends}), self._ends, seconds)
        return [
            (record[:2] if record[1] is not None else self._chosen.get(number)) in there
            for number, record in enumerate(each(self.batches))
        ]


def visible(
    reader: LogReader, ends: Mapping[TopicPartition, int], seconds: float
) -> set[TopicPartition]:
    """Return the partitions whose record at the given offset is committed. Closes the reader.

    The transactions that wrote these records must have ended.

    Raises:
        BusError: a partition can't be read, or delivers nothing for ``seconds``.
    """
    reading = RangeReader(reader, silence=seconds)
    found: set[TopicPartition] = set()
    with closing(reader):
        try:
            for partition, offset in ends.items():
                reading.start(TopicPartition(*partition), offset, offset + 1)
            while reading.left:
                records = reading.read(_READ_RECORDS, _READ_BYTES, _WAIT_SECONDS)
                found.update(TopicPartition(record.topic, record.partition) for record in records)
        except OffsetOutOfRange as error:  # Retention was faster.
            raise BusError(str(error)) from error
    return found
