"""How far a stage is behind: what lies between its group's offsets and the ends of its logs."""

from __future__ import annotations

from time import monotonic, time
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Place

from worker.bus import TopicPartition

__all__ = ["SMALL_FETCHES", "Lag", "Unread"]

_OLDEST_SECONDS = 3.0
_OLDEST_PARTITIONS = 32
_NOTHING = -1
SMALL_FETCHES: dict[str, object] = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 64 << 10,
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1 << 10,
}
"""What `Unread` asks of its consumer."""


class Lag(NamedTuple):
    """How far a stage is behind: records, and the age of the oldest unread one in seconds."""

    records: int
    seconds: float | None


class Unread:
    """Counts what a stage hasn't read, and finds the time of the oldest of it.

    The end of a log that is written in transactions is their marker, which nobody ever
    reads: only a look tells such an end from an unread record.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: dict[tuple[TopicPartition, int, int], int] = {}

    def lag(self, spans: dict[TopicPartition, tuple[int, int]]) -> Lag:
        """Take committed offsets and ends."""
        behind = {place: end - at for place, (at, end) in spans.items() if end > at}
        most = sorted(behind, key=lambda place: -behind[place])[:_OLDEST_PARTITIONS]
        self._look({place: spans[place] for place in most})
        stamps = {place: stamp for (place, _, _), stamp in self._known.items()}
        for place, stamp in stamps.items():
            if stamp == _NOTHING:
                behind[place] = 0
        times = [stamp for stamp in stamps.values() if stamp != _NOTHING]
        seconds = max(0.0, time() - min(times) / 1000) if times else None
        return Lag(sum(behind.values()), seconds)

    def _look(self, spans: dict[TopicPartition, tuple[int, int]]) -> None:
        """Find the times of the next records, or that there are none."""
        before, self._known = self._known, {}
        unknown = {}
        for place, (at, end) in spans.items():
            found = next((s for (p, o, _), s in before.items() if (p, o) == (place, at)), None)
            if found is None or (found == _NOTHING and (place, at, end) not in before):
                unknown[place] = (at, end)
            else:
                self._known[place, at, end] = found
        if not unknown:
            return
        self._consumer.assign([Place(*place, at) for place, (at, _) in unknown.items()])
        deadline = monotonic() + _OLDEST_SECONDS
        while unknown and monotonic() < deadline:
            for message in self._consumer.consume(50, 0.1):
                place = TopicPartition(message.topic() or "", message.partition() or 0)
                error = message.error()
                if place in unknown and error is None:
                    self._known[place, *unknown.pop(place)] = message.timestamp()[1]
                elif (
                    place in unknown
                    and error is not None
                    and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 -- librdkafka's
                ):
                    self._known[place, *unknown.pop(place)] = _NOTHING
        self._consumer.unassign()
