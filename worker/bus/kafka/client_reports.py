"""What librdkafka's clients report: what is in their queues, what brokers they know, their log.

Of a consumer's queue, only librdkafka knows: it says so in its statistics, which `poll` and
`consume` hand to a callback. The callback keeps the text, and whoever asks reads it. Statistics
that nobody polls for pile up, so only clients that are polled all the time emit them. A producer's
queue is what it was given: it is filled with a transaction, and empty after it.

The statistics also tell whether a client still knows a broker. librdkafka removes every broker that
an answer with metadata doesn't list. The only broker of a cluster may list none for a moment after
it was frozen. librdkafka then begins again with the bootstrap servers, but it may cancel that
itself. Then it knows no broker for good: it sends nothing, and reports nothing (librdkafka issue
5301, open in 2.16). Only another client helps.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaException

from worker.bus import OutgoingBatch, Queued

FORGOTTEN = "group %s: librdkafka has no broker to connect to any more; connecting anew"
"""What is logged about a client, of a group, that is replaced for it."""

_INTERVAL = "statistics.interval.ms"
_INTERVAL_MS = 5_000
_CONCLUSIVE = 2
"""After so many statistics without a broker, it is not a moment between two lists of them."""
_REACH_SECONDS = 1.0
_METADATA = "METADATA"
_TROUBLE = frozenset({"FAIL", "REQTMOUT", "SESSTMOUT"})
"""Facilities of librdkafka's log: a connection is lost; a request was not answered in time; the
group's coordinator has answered no request for a whole session timeout."""


class _Partition(msgspec.Struct):
    fetchq_cnt: int = 0
    fetchq_size: int = 0


class _Topic(msgspec.Struct):
    partitions: dict[str, _Partition] = msgspec.field(default_factory=dict)


class _Broker(msgspec.Struct):
    source: str = ""


class _Statistics(msgspec.Struct):
    topics: dict[str, _Topic] = msgspec.field(default_factory=dict)
    brokers: dict[str, _Broker] = msgspec.field(default_factory=dict)


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
    queues = [partition for topic in topics for partition in topic.partitions.values()]
    return Queued(
        max((queue.fetchq_cnt for queue in queues), default=0),
        max((queue.fetchq_size for queue in queues), default=0),
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


class KnownBrokers:
    """What a client's statistics say of the brokers that it knows."""

    def __init__(self) -> None:
        """Begin with a client that knows its bootstrap servers."""
        self._without = 0

    def hear(self, statistics: str) -> None:
        """Take librdkafka's statistics."""
        brokers = _decoder.decode(statistics).brokers.values()
        # The group's coordinator is a connection of its own, and leads to no other broker.
        known = any(broker.source != "logical" for broker in brokers)
        self._without = 0 if known else self._without + 1

    @property
    def lost(self) -> bool:
        """Return whether the client knows no broker, and so never will again.

        While brokers can't be reached, it knows them still.
        """
        return self._without >= _CONCLUSIVE


def telling(config: Mapping[str, Any], *hear: Callable[[str], None]) -> dict[str, Any]:
    """Return a consumer's configuration that has its polls pass its statistics to these."""

    def hear_all(statistics: str) -> None:
        for listener in hear:
            listener(statistics)

    interval = config.get(_INTERVAL, _INTERVAL_MS)
    return {**config, _INTERVAL: interval, "stats_cb": hear_all}


def reaches_brokers(client: Consumer, topic: str) -> bool:
    """Ask for a topic's metadata, and return whether any broker answers."""
    try:
        client.list_topics(topic, timeout=_REACH_SECONDS)
    except KafkaException:
        return False
    return True


class LogListener:
    """Replaces the logger of a client, and detects lost connections and answers.

    After these librdkafka repeats requests, including EndTxn and JoinGroup, without a call of the
    error callback. The client needs `log.connection.close` and a `log_level` of at least 6. The
    lines arrive during its polls, on the polling thread.
    """

    def __init__(
        self,
        log: logging.Logger,
        *,
        troubled: Callable[[str], None] = lambda _what: None,
        informed: Callable[[str], None] = lambda _what: None,
    ) -> None:
        """Pass all lines on to ``log``, and the texts of some to callbacks.

        ``troubled`` receives trouble with connections; ``informed`` receives what the brokers
        report about topics, if ``debug`` includes ``metadata``.
        """
        self._troubled = troubled
        self._informed = informed
        self._log = log

    def log(self, level: int, message: str, *values: object) -> None:
        """Log a line; ``values`` are its facility, the client, and the text."""
        if values and values[0] in _TROUBLE:
            self._troubled(str(values[-1]))
            if level <= logging.INFO:  # Useless to an operator: the consequences are logged.
                level = logging.DEBUG
        elif values and values[0] == _METADATA:
            self._informed(str(values[-1]))
        self._log.log(level, message, *values)
