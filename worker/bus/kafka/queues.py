"""What librdkafka's clients have in their queues.

Of a consumer, only librdkafka knows: it says so in its statistics, which `poll` and `consume` hand
to a callback. The callback keeps the text, and whoever asks reads it. Statistics that nobody polls
for pile up, so only clients that are polled all the time emit them.

Of a producer, it is what it was given: its queue is filled with a transaction, and empty after it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from worker.bus import OutgoingBatch, Queued


class _Partition(msgspec.Struct):
    fetchq_cnt: int = 0
    fetchq_size: int = 0


class _Topic(msgspec.Struct):
    partitions: dict[str, _Partition] = msgspec.field(default_factory=dict)


class _Statistics(msgspec.Struct):
    topics: dict[str, _Topic] = msgspec.field(default_factory=dict)


_decoder = msgspec.json.Decoder(_Statistics)


class ConsumerQueue:
    """The queue of records that a consumer has fetched ahead."""

    def __init__(self) -> None:
        """Begin empty."""
        self._said: str | None = None
        self._queued = Queued()

    def hear(self, statistics: str) -> None:
        """Keep librdkafka's statistics. It is called within `poll`, so it does nothing else."""
        self._said = statistics

    def read(self) -> Queued:
        """Return what was in the queue when the statistics were made."""
        said, self._said = self._said, None
        if said is not None:
            self._queued = _fetched(said)
        return self._queued


def _fetched(statistics: str) -> Queued:
    """Return the queue of all partitions: they share one, and each tells how long that is.

    What librdkafka has to say itself waits there, too, and counts as messages without a size.
    """
    topics = _decoder.decode(statistics).topics.values()
    queues = [one for topic in topics for one in topic.partitions.values()]
    return Queued(
        max((one.fetchq_cnt for one in queues), default=0),
        max((one.fetchq_size for one in queues), default=0),
    )


class ProducerQueue:
    """The queue of a producer."""

    def __init__(self) -> None:
        """Begin empty."""
        self._queued = Queued()

    def hear(self, batches: Sequence[OutgoingBatch]) -> None:
        """Note the records of a transaction."""
        values = [value for batch in batches for value in batch.values]
        self._queued = Queued(len(values), sum(map(len, filter(None, values))))

    def read(self) -> Queued:
        """Return what the last transaction has put into the queue."""
        return self._queued


class Queues:
    """The queues of all clients of a bus. Thread-safe."""

    def __init__(self) -> None:
        """Begin without clients."""
        self._lock = threading.Lock()
        self._consumers: list[ConsumerQueue] = []
        self._producers: list[ProducerQueue] = []

    def consumer(self) -> ConsumerQueue:
        """Return the queue of another consumer."""
        queue = ConsumerQueue()
        with self._lock:
            self._consumers.append(queue)
        return queue

    def producer(self) -> ProducerQueue:
        """Return the queue of another producer."""
        queue = ProducerQueue()
        with self._lock:
            self._producers.append(queue)
        return queue

    def leave(self, *queues: ConsumerQueue | ProducerQueue | None) -> None:
        """Drop the queues of clients that are closed."""
        with self._lock:
            self._consumers = [one for one in self._consumers if one not in queues]
            self._producers = [one for one in self._producers if one not in queues]

    def read(self) -> dict[str, Queued]:
        """Return what consumers have ``fetched``, and producers were given; see `Bus.queued`."""
        with self._lock:
            fetched = [one.read() for one in self._consumers]
            produced = [one.read() for one in self._producers]
        return {"fetched": _sum(fetched), "produced": _sum(produced)}


def _sum(queues: Sequence[Queued]) -> Queued:
    return Queued(sum(one.messages for one in queues), sum(one.size for one in queues))
