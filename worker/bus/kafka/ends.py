"""Where logs end of which nothing is being fetched.

What a consumer knows of a log's end comes with what it fetches. Of a partition that is paused, or
was never fetched from, it is told nothing; so somebody else asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # mypy wants it from its source

from worker.bus.kafka.config import KafkaOptions
from worker.bus.port import TopicPartition

__all__ = ["Ends", "Surveyor"]

_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call] # confluent-kafka has no types for it
_MARKERS = 100
"""Offsets at a log's end that may all be markers of transactions, or of aborted ones."""
_LOOK_SECONDS = 2.0


class Span(NamedTuple):
    """What lies between the offset that is read next, and the log's end."""

    position: int
    end: int


class Ends:
    """What a member wants to know, and what was found; each is replaced as a whole.

    Attributes:
        wanted: by partition, the offset that is read next.
        found: by partition, where the committed records end. Where nothing but markers of
            transactions is left to read, that is the wanted offset.
        spans: what the last look found.
        empty: those in which a look has found markers only.
    """

    def __init__(self) -> None:
        """Want nothing."""
        self.wanted: Mapping[TopicPartition, int] = {}
        self.found: Mapping[TopicPartition, int] = {}
        self.spans: Mapping[TopicPartition, Span] = {}
        self.empty: Mapping[TopicPartition, Span] = {}


class Surveyor:
    """Asks for the ends of logs."""

    def __init__(self, options: KafkaOptions, admin: AdminClient) -> None:
        """Take what to ask with."""
        self._options = options
        self._admin = admin

    def look(self, ends: Ends, seconds: float) -> None:
        """Find what is wanted; what isn't answered keeps what was found before."""
        wanted = ends.wanted
        latest = self._latest(wanted, seconds)
        spans = {place: Span(at, latest[place]) for place, at in wanted.items() if place in latest}
        empty = {place: span for place, span in ends.empty.items() if spans.get(place) == span}
        quiet = {
            place: span
            for place, span in spans.items()
            if 0 < span.end - span.position <= _MARKERS
            and ends.spans.get(place) == span
            and place not in empty
        }
        empty.update({place: quiet[place] for place in self._without_records(quiet)})
        found = {place: end for place, end in ends.found.items() if place in wanted}
        for place, span in spans.items():
            found[place] = span.position if place in empty else span.end
        ends.spans, ends.empty, ends.found = spans, empty, found

    def _latest(
        self, wanted: Mapping[TopicPartition, int], seconds: float
    ) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        asked = self._admin.list_offsets(
            dict.fromkeys((KafkaPartition(*place) for place in wanted), _LATEST),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=seconds,
        )
        latest = {}
        failed = False
        for place, future in asked.items():
            try:
                offset = int(future.result(seconds + 1).offset)
            except (KafkaException, TimeoutError):
                failed = True
                continue
            if offset >= 0:
                latest[TopicPartition(place.topic, place.partition)] = offset
        if failed:  # Else librdkafka goes on asking a leader that is gone.
            self._admin.list_topics(timeout=seconds)
        return latest

    def _without_records(self, spans: Mapping[TopicPartition, Span]) -> set[TopicPartition]:
        """Return the partitions in which nothing but markers is left to read.

        Only a look can tell: a marker takes an offset as a record does.
        """
        if not spans:
            return set()
        config = {
            **self._options.reading("ends"),
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 1 << 10,
        }
        left = dict(spans)
        empty = set()
        with closing(Consumer(config)) as consumer:
            consumer.assign([KafkaPartition(*place, s.position) for place, s in spans.items()])
            deadline = monotonic() + _LOOK_SECONDS
            while left and monotonic() < deadline:
                for message in consumer.consume(50, 0.1):
                    place = TopicPartition(message.topic() or "", message.partition() or 0)
                    error = message.error()
                    ended = (
                        error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 -- librdkafka's own codes
                    )
                    if left.pop(place, None) is not None and ended:
                        empty.add(place)
        return empty
