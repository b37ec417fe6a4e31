"""Watches an application from outside: what comes out, and how far the stages are behind."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import monotonic
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from worker.admin.cluster import Cluster
from worker.admin.groups import reader
from worker.admin.unread import SMALL_FETCHES, Lag, Unread
from worker.bus import BusError, TopicPartition
from worker.bus.kafka.errors import cause
from worker.settings import ConfigurationError, Settings
from worker.topology import STAGES, Topology

__all__ = ["VERDICTS", "Lag", "Observer", "Snapshot", "Tally"]

VERDICTS = ("unique", "duplicate", "rejected")

_RECENT_SECONDS = 10.0
_LATEST = 50
_LAG_EVERY_SECONDS = 2.0
_COMMITTED_SECONDS = 5.0
_AWAY = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}  # noqa: SLF001
)


class Tally:
    """Counts by verdict, since the start and of the last seconds."""

    def __init__(self, now: float) -> None:
        """Begin to count."""
        self.begun = now
        self.totals = dict.fromkeys(VERDICTS, 0)
        self._recent: deque[tuple[float, str, int]] = deque()

    def add(self, now: float, verdict: str, count: int) -> None:
        """Count documents."""
        self.totals[verdict] += count
        self._recent.append((now, verdict, count))

    def recent(self, now: float) -> dict[str, float]:
        """Give documents per second over the last ten seconds, or since the start."""
        while self._recent and self._recent[0][0] < now - _RECENT_SECONDS:
            self._recent.popleft()
        seconds = max(1.0, min(_RECENT_SECONDS, now - self.begun))
        sums = dict.fromkeys(VERDICTS, 0)
        for _, verdict, count in self._recent:
            sums[verdict] += count
        return {verdict: count / seconds for verdict, count in sums.items()}

    def overall(self, now: float) -> dict[str, float]:
        """Give documents per second since the start."""
        seconds = max(1.0, now - self.begun)
        return {verdict: count / seconds for verdict, count in self.totals.items()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is known at a moment."""

    seconds: float
    totals: dict[str, int]
    recent: dict[str, float]
    overall: dict[str, float]
    lag: dict[str, Lag]
    duplicates: list[Message]
    rejections: list[Message]
    trouble: str


@dataclass(slots=True)
class _Shared:
    tally: Tally
    lag: dict[str, Lag] = field(default_factory=dict)
    duplicates: deque[Message] = field(default_factory=lambda: deque(maxlen=_LATEST))
    rejections: deque[Message] = field(default_factory=lambda: deque(maxlen=_LATEST))
    trouble: dict[str, str] = field(default_factory=dict)


class Observer:
    """Reads the outputs from their ends, and asks for the groups' offsets, in two threads."""

    def __init__(self, settings: Settings) -> None:
        """Look where everything is.

        Raises:
            ConfigurationError: a topic is missing.
            BusError: the cluster doesn't answer.
        """
        self._options = settings.kafka_options()
        cluster = Cluster(self._options)
        _, counts = cluster.counts()
        named = Topology.of(settings, 1)
        self._verdicts = {
            named.unique: "unique",
            named.duplicate: "duplicate",
            named.rejected: "rejected",
        }
        for topic in (named.documents, *named.internal(), *self._verdicts):
            if topic not in counts:
                raise ConfigurationError(f"there is no topic {topic}; see `neardup topics verify`")
        self.topology = Topology.of(settings, counts[named.documents][0])
        ends = cluster.ranges({topic: counts[topic][0] for topic in self._verdicts})
        self._from = [Place(*place, high) for place, (_, high) in ends.items()]
        self._shared = _Shared(Tally(monotonic()))
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(name, body), name=name, daemon=True)
            for name, body in (("outputs", self._read_outputs), ("lag", self._follow_lag))
        ]

    def __enter__(self) -> Self:
        """Begin to watch."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, within a bounded time."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(2.0)

    def snapshot(self) -> Snapshot:
        """Give what is known now."""
        now = monotonic()
        with self._lock:
            shared = self._shared
            return Snapshot(
                seconds=now - shared.tally.begun,
                totals=dict(shared.tally.totals),
                recent=shared.tally.recent(now),
                overall=shared.tally.overall(now),
                lag=dict(shared.lag),
                duplicates=list(shared.duplicates),
                rejections=list(shared.rejections),
                trouble=next(iter(shared.trouble.values()), ""),
            )

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        """Begin again after whatever went wrong, and say what it was."""
        while not self._stopping.is_set():
            try:
                body()
            except (BusError, KafkaException) as error:
                text = str(error)
                if isinstance(error, KafkaException):
                    text = cause(error).str()
                    if cause(error).code() in _AWAY:
                        text = f"no broker of {self._options.bootstrap} answers; trying again"
                self._trouble(name, text)
                self._stopping.wait(1.0)

    def _trouble(self, name: str, text: str) -> None:
        with self._lock:
            if text:
                self._shared.trouble[name] = text
            else:
                self._shared.trouble.pop(name, None)

    def _read_outputs(self) -> None:
        places = {(place.topic, place.partition): place for place in self._from}
        more = {"queued.max.messages.kbytes": 2 << 10, "topic.metadata.refresh.interval.ms": 10_000}
        with reader(self._options, f"{self.topology.app}.watch", **more) as consumer:
            consumer.assign(self._from)
            while not self._stopping.is_set():
                for message in consumer.consume(1_000, 0.25):
                    error = message.error()
                    if error is not None:
                        self._on_error(error)
                        continue
                    self._count(message)
                    place = places[message.topic() or "", message.partition() or 0]
                    place.offset = (message.offset() or 0) + 1

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 -- librdkafka's own code
            # What was to come next is gone: begin again at the ends.
            counts: dict[str, int] = {}
            for place in self._from:
                counts[place.topic] = max(counts.get(place.topic, 0), place.partition + 1)
            ends = Cluster(self._options).ranges(counts)
            self._from = [Place(*place, high) for place, (_, high) in ends.items()]
        if not error.retriable():
            raise KafkaException(error)

    def _count(self, message: Message) -> None:
        verdict = self._verdicts[message.topic() or ""]
        if message.value() is None and verdict != "rejected":
            return  # a tombstone that is passed on
        with self._lock:
            self._shared.tally.add(monotonic(), verdict, 1)
            if verdict == "duplicate":
                self._shared.duplicates.append(message)
            elif verdict == "rejected":
                self._shared.rejections.append(message)

    def _follow_lag(self) -> None:
        cluster = Cluster(self._options)  # A new one knows the leaders of now.
        inputs = {stage: self._inputs(stage) for stage in STAGES}
        topics = {topic: count for counts in inputs.values() for topic, count in counts.items()}
        topics |= {self.topology.fingerprints: 1}
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(len(STAGES)))
            readers = {
                stage: stack.enter_context(
                    reader(self._options, self.topology.group(stage), **SMALL_FETCHES)
                )
                for stage in STAGES
            }
            unread = {stage: Unread(readers[stage]) for stage in STAGES}
            while not self._stopping.is_set():
                committed = {
                    stage: _committed(readers[stage], inputs[stage]) for stage in reversed(STAGES)
                }
                ranges = cluster.ranges(topics)
                spans = [
                    {
                        place: (max(ranges[place][0], at), ranges[place][1])
                        for place, at in self._slowest(committed[stage]).items()
                    }
                    for stage in STAGES
                ]
                looks = [unread[stage].lag for stage in STAGES]
                lags = list(pool.map(lambda look, span: look(span), looks, spans))
                with self._lock:
                    self._shared.lag = dict(zip(STAGES, lags, strict=True))
                self._trouble("lag", "")
                self._trouble("outputs", "")
                self._stopping.wait(_LAG_EVERY_SECONDS)

    def _slowest(self, committed: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return how far each log is read: where several shards read one, by the slowest."""
        found: dict[TopicPartition, int] = {}
        for place, at in committed.items():
            log = self.topology.log_of(place)
            found[log] = min(at, found.get(log, at))
        return found

    def _inputs(self, stage: str) -> dict[str, int]:
        """Name what counts for a stage; of route's inputs the documents alone."""
        return {
            topic: partitions
            for topic, partitions in self.topology.inputs(stage).items()
            if stage != "route" or topic == self.topology.documents
        }


def _committed(consumer: Consumer, topics: dict[str, int]) -> dict[TopicPartition, int]:
    asked = [Place(topic, number) for topic, count in topics.items() for number in range(count)]
    found = consumer.committed(asked, _COMMITTED_SECONDS)
    for place in found:
        if place.error is not None:
            raise KafkaException(place.error)
    return {TopicPartition(place.topic, place.partition): place.offset for place in found}
