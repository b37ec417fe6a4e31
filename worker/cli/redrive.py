"""``neardup redrive``: rejected documents go through again, exactly once each.

How far that has come is committed with what it sends (see `worker.admin.progress`), so
nothing is sent twice, and what is left out now is left for later.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from worker.admin import Cluster
from worker.admin.groups import reader
from worker.admin.plan import DEFAULT_MAX_BYTES, REJECTED_HEADERS_BYTES
from worker.admin.progress import Progress
from worker.bus import Header
from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.errors import cause, retrying
from worker.cli.errors import EXIT_FAILED, CommandError
from worker.headers import REASON, SOURCE_PARTITION, SOURCE_TOPIC, without_own
from worker.settings import Settings
from worker.topology import Topology

__all__ = ["REDRIVEN", "redrive"]

REDRIVEN = "neardup-redriven"
"""How many times a document was sent again."""

_BATCH_RECORDS = 200
_SILENCE_SECONDS = 15.0
_TRANSACTION_SECONDS = 15.0
_UNKNOWN = "unknown"


@dataclass(slots=True)
class _Counts:
    sent: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    again: int = 0


def redrive(settings: Settings, *, reasons: Collection[str], limit: int | None) -> None:
    """Send the rejected to the documents again, and say how many.

    Raises:
        CommandError: a topic is missing, another redrive took over, or Kafka failed.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    cluster = Cluster(settings.kafka_options())
    named = Topology.of(settings, 1)
    _, states = cluster.topics([named.documents, named.rejected])
    documents, rejected = states[named.documents], states[named.rejected]
    if documents is None or rejected is None:
        missing = named.documents if documents is None else named.rejected
        raise CommandError(f"there is no topic {missing}; see `neardup topics create`")
    ranges = cluster.ranges({named.rejected: rejected.partitions})
    max_bytes = int(documents.settings.get("max.message.bytes", DEFAULT_MAX_BYTES))
    options = settings.kafka_options()
    name = f"{settings.app}.redrive"
    counts = _Counts()
    try:
        with reader(options, name, **{"enable.partition.eof": True}) as consumer:
            producer = _producer(options, name, max_bytes)
            run = _Run(
                topology=Topology.of(settings, documents.partitions),
                consumer=consumer,
                producer=producer,
                reasons=reasons,
                left=limit,
                counts=counts,
            )
            run.begin({place.partition: span for place, span in ranges.items()})
            while run.step():
                pass
    except KafkaException as failure:
        error = cause(failure)
        if error.code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED}:  # noqa: SLF001
            why = "another redrive of this application took over"
        else:
            why = f"{error.str()} ({error.name()})"
        raise CommandError(
            f"{why}; {counts.sent.total()} were sent, the rest is left for another run", EXIT_FAILED
        ) from failure
    _summarise(counts)


def _producer(options: KafkaOptions, name: str, max_bytes: int) -> Producer:
    slower = replace(options, transaction_timeout_ms=int(_TRANSACTION_SECONDS * 1000))
    largest = max_bytes + REJECTED_HEADERS_BYTES
    producer = Producer({**slower.producing(name), "message.max.bytes": largest})
    retrying(producer.init_transactions, _TRANSACTION_SECONDS, "redrive")
    return producer


@dataclass(slots=True)
class _Run:
    """One pass over the rejected, up to where they ended when it began."""

    topology: Topology
    consumer: Consumer
    producer: Producer
    reasons: Collection[str]
    left: int | None
    counts: _Counts
    progress: dict[int, Progress] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    heard: float = 0.0

    def begin(self, ranges: dict[int, tuple[int, int]]) -> None:
        """Go to where the last run ended; a first one begins with the earliest."""
        topic = self.topology.rejected
        asked = [Place(topic, number) for number in ranges]
        places = []
        for place in self.consumer.committed(asked, _TRANSACTION_SECONDS):
            if place.error is not None:
                raise KafkaException(place.error)
            low, high = ranges[place.partition]
            at = Progress.read(place.offset, place.metadata) if place.offset >= 0 else Progress(low)
            start = max(low, at.start(self.reasons))
            self.progress[place.partition] = at
            if start < high:
                self.ends[place.partition] = high
                places.append(Place(topic, place.partition, start))
        self.consumer.assign(places)
        self.heard = monotonic()

    def step(self) -> bool:
        """Send a batch; tell whether there may be more."""
        if not self.ends or self.left == 0:
            return False
        messages = self.consumer.consume(_BATCH_RECORDS, 0.5)
        if messages:
            self.heard = monotonic()
        elif monotonic() - self.heard > _SILENCE_SECONDS:
            raise CommandError(
                f"{self.topology.rejected} brings nothing for {_SILENCE_SECONDS:.0f} s;"
                " what is left waits for another run",
                EXIT_FAILED,
            )
        due = []
        touched = set()
        for message in messages:
            if self._is_record(message):
                number, offset = message.partition() or 0, message.offset() or 0
                if self._is_due(message):
                    due.append(message)
                self.progress[number].passed(offset + 1, self.reasons)
                touched.add(number)
                if offset + 1 >= self.ends[number]:
                    self.ends.pop(number)
        if touched:
            self._commit(due, touched)
        return True

    def _is_record(self, message: Message) -> bool:
        """Tell a record of this pass from ends of partitions, errors, and later records."""
        number, offset = message.partition() or 0, message.offset() or 0
        error = message.error()
        if error is None:
            if number in self.ends and offset >= self.ends[number]:
                self.ends.pop(number)
            return number in self.ends and self.left != 0
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- librdkafka's own code
            self.ends.pop(number, None)
        elif not error.retriable():
            raise KafkaException(error)
        return False

    def _is_due(self, message: Message) -> bool:
        reason = _reason(_headers(message))
        number, offset = message.partition() or 0, message.offset() or 0
        if not self.progress[number].is_due(offset, reason):
            return False
        if self.reasons and reason not in self.reasons:
            self.counts.left[reason] += 1
            return False
        if message.value() is None:
            # The payload was gone; without it this would say: forget the document.
            self.counts.empty += 1
            return False
        if self.left is not None:
            self.left -= 1
        return True

    def _commit(self, due: Iterable[Message], touched: Iterable[int]) -> None:
        """Write a batch and how far it goes in one transaction."""
        producer = self.producer
        producer.begin_transaction()
        sent: Counter[str] = Counter()
        again = 0
        for message in due:
            headers = _headers(message)
            before = _number(_last(headers, REDRIVEN))
            again += before > 0
            sent[_reason(headers)] += 1
            kept: list[tuple[str, str | bytes | None]] = [*without_own(headers)]
            kept.append((REDRIVEN, b"%d" % (before + 1)))
            kind, timestamp = message.timestamp()
            producer.produce(
                self.topology.documents,
                message.value(),
                message.key(),
                self._partition(headers),
                timestamp=timestamp if kind else 0,
                headers=kept,
            )
        positions = []
        for number in touched:
            at = self.progress[number]
            positions.append(Place(self.topology.rejected, number, at.base, at.metadata()))
        group = self.consumer.consumer_group_metadata()
        retrying(
            lambda left: producer.send_offsets_to_transaction(positions, group, left),
            _TRANSACTION_SECONDS,
            "redrive",
        )
        retrying(producer.commit_transaction, _TRANSACTION_SECONDS, "redrive")
        self.counts.sent += sent
        self.counts.again += again

    def _partition(self, headers: tuple[Header, ...]) -> int:
        """Give the partition that it came from, -1 if that is not known."""
        topic, number = _last(headers, SOURCE_TOPIC), _last(headers, SOURCE_PARTITION)
        if topic != self.topology.documents.encode() or number is None:
            return -1
        found = _number(number)
        return found if found < self.topology.partitions else -1


def _headers(message: Message) -> tuple[Header, ...]:
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return tuple(
        (name, value.encode() if isinstance(value, str) else value) for name, value in pairs
    )


def _last(headers: tuple[Header, ...], name: str) -> bytes | None:
    return next((value for key, value in reversed(headers) if key == name), None)


def _number(value: bytes | None) -> int:
    return int(value) if value is not None and value.isdigit() else 0


def _reason(headers: tuple[Header, ...]) -> str:
    """Give the code that the reason begins with."""
    said = (_last(headers, REASON) or b"").decode(errors="replace")
    return said.partition(":")[0].strip() or _UNKNOWN


def _summarise(counts: _Counts) -> None:
    def listed(codes: Counter[str]) -> str:
        return ", ".join(f"{code} {number:,}" for code, number in codes.most_common())

    lines = [f"{counts.sent.total():,} sent again" + _in_brackets(listed(counts.sent))]
    if counts.left:
        lines.append(f"{counts.left.total():,} left" + _in_brackets(listed(counts.left)))
    if counts.empty:
        lines.append(f"{counts.empty:,} have no payload any more")
    if counts.again:
        lines.append(f"{counts.again:,} had been sent again before")
    print("; ".join(lines), file=sys.stderr)  # noqa: T201


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
