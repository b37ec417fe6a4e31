"""The topic ``APP.redrive``: how far the rejected were sent again.

A group's offsets expire a week after its last member has gone; a compacted topic keeps the
last line about each partition for ever. A line's key names the rejected topic by its id, so
that one that was deleted and made anew starts over.
"""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from worker.admin.compacted import records
from worker.admin.progress import Progress, ProgressError, Refusal, key_of, place_of, topic_of
from worker.bus import BusError
from worker.bus.kafka.errors import retrying

__all__ = ["Line", "ProgressLog", "committed_progress"]

Line = tuple[bytes, bytes | None]
"""A record of the topic: its key and value; without a value it takes a line back."""


class ProgressLog:
    """What the topic says about the rejected topic of today."""

    def __init__(self, topic: str, rejected: str, identity: str) -> None:
        """Name the topic, and the rejected topic with its id."""
        self.topic = topic
        self.progress: dict[int, Progress] = {}
        self.empty = True
        """Nothing was ever written about any topic."""
        self.recreated = False
        """All that is known is about a topic by the same name with another id."""
        self._rejected = rejected
        self._identity = identity

    def read(self, consumer: Consumer, low: int, high: int) -> None:
        """Take all lines between two offsets, the second being the end of what is committed.

        Nobody may be writing meanwhile: the caller has fenced earlier runs.

        Raises:
            BusError: a line can't be understood, or the topic brings nothing.
            KafkaException: Kafka refused.
        """
        lines: dict[bytes | None, tuple[int, bytes]] = {}
        for offset, key, value in records(consumer, self.topic, low, high):
            self.empty = False
            lines.pop(key, None)
            if value is not None:
                lines[key] = offset, value
        namesakes = 0
        refusals: list[tuple[int, int, Refusal]] = []
        for key, (offset, value) in lines.items():
            try:
                identity, partition, at = place_of(key)
                if identity != self._identity:
                    namesakes += at is None and topic_of(value) == self._rejected
                elif at is None:
                    self.progress[partition] = Progress.load(value)
                else:
                    refusals.append((partition, at, Refusal.load(value)))
            except ProgressError as error:
                raise BusError(
                    f"{self.topic}: the record at offset {offset} can't be understood: {error}."
                    " Nothing was sent, since what it says may have been sent before. If it is"
                    " not neardup's, write a record with its key and no value"
                ) from error
        for partition, at, refusal in refusals:
            self.progress.setdefault(partition, Progress(0)).refused[at] = refusal
        self.recreated = bool(namesakes) and not self.progress

    def line(self, partition: int, progress: Progress) -> Line:
        """Write how far a partition is, its refusals apart."""
        return key_of(self._identity, partition), progress.dump(self._rejected)

    def refusal(self, partition: int, offset: int, refusal: Refusal | None) -> Line:
        """Write that the documents refused a record, or, with None, take that back."""
        key = key_of(self._identity, partition, offset)
        return key, None if refusal is None else refusal.dump()


def committed_progress(
    consumer: Consumer, rejected: str, partitions: Iterable[int], seconds: float
) -> dict[int, Progress]:
    """Give what earlier versions committed to the consumer's group, as far as it has not expired.

    Raises:
        KafkaException: no answer in time, or refused.
    """
    asked = [Place(rejected, number) for number in partitions]
    found = retrying(lambda left: consumer.committed(asked, left), seconds, "progress", asking=True)
    progress = {}
    for place in found:
        if place.error is not None:
            raise KafkaException(place.error)
        if place.offset >= 0:
            progress[place.partition] = Progress.read(place.offset, place.metadata)
    return progress
