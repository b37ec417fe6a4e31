"""Observes an application from outside: its outputs, the lag of its stages, and who works."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Self

from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import in_use
from worker.bus import (
    BusError,
    LogReader,
    OffsetOutOfRange,
    Record,
    TopicPartition,
    Unanswered,
)
from worker.bus.kafka.bus import KafkaBus
from worker.observe.lag import SMALL_FETCHES, Lag, StageLags
from worker.observe.presence import Presence, PresenceMeter
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.topology import STAGES
from worker.wire.headers import VERDICT

VERDICTS = ("unique", "duplicate", "rejected")

_RECENT_SECONDS = 10.0
_LATEST = 50
_LAG_EVERY_SECONDS = 2.0
_COMMITTED_SECONDS = 5.0
_OUTPUT_RECORDS = 1_000
_OUTPUT_BYTES = 4 << 20
_OUTPUT_SECONDS = 0.25
_OUTPUT_FETCHES = {
    "queued.max.messages.kbytes": 2 << 10,
    "topic.metadata.refresh.interval.ms": 10_000,
}


class Tally:
    """Counts documents by verdict, since the start and over the last ten seconds."""

    def __init__(self, now: float) -> None:
        """Start at zero."""
        self.begun = now
        self.totals = dict.fromkeys(VERDICTS, 0)
        self._recent: deque[tuple[float, str, int]] = deque()

    def add(self, now: float, verdict: str, count: int) -> None:
        """Add documents of a verdict."""
        self.totals[verdict] += count
        self._recent.append((now, verdict, count))

    def recent(self, now: float) -> dict[str, float]:
        """Return documents per second over the last ten seconds, or since the start."""
        while self._recent and self._recent[0][0] < now - _RECENT_SECONDS:
            self._recent.popleft()
        seconds = max(1.0, min(_RECENT_SECONDS, now - self.begun))
        sums = dict.fromkeys(VERDICTS, 0)
        for _, verdict, count in self._recent:
            sums[verdict] += count
        return {verdict: count / seconds for verdict, count in sums.items()}

    def overall(self, now: float) -> dict[str, float]:
        """Return documents per second since the start."""
        seconds = max(1.0, now - self.begun)
        return {verdict: count / seconds for verdict, count in self.totals.items()}


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is known at one moment."""

    seconds: float
    totals: dict[str, int]
    recent: dict[str, float]
    overall: dict[str, float]
    lag: dict[str, Lag]
    present: Presence | None
    duplicates: list[Record]
    rejections: list[Record]
    trouble: str


@dataclass(slots=True)
class _Shared:
    tally: Tally
    lag: dict[str, Lag] = field(default_factory=dict)
    present: Presence | None = None
    duplicates: deque[Record] = field(default_factory=lambda: deque(maxlen=_LATEST))
    rejections: deque[Record] = field(default_factory=lambda: deque(maxlen=_LATEST))
    trouble: dict[str, str] = field(default_factory=dict)


class Observer:
    """Reads the outputs from their ends, and looks up the groups, in two threads."""

    def __init__(self, settings: Settings) -> None:
        """Look up the topics and the ends of the outputs.

        Raises:
            ConfigurationError: a topic is missing.
            BusError: the cluster doesn't answer.
        """
        self._options = settings.kafka_options()
        cluster = Cluster(self._options)
        plan = in_use(cluster, settings)
        _, counts = cluster.counts()
        named = plan.topology(settings, 1)
        self._verdicts = {
            named.unique: "unique",
            named.duplicate: "duplicate",
            named.rejected: "rejected",
        }
        for topic in (named.documents, *named.internal(), *self._verdicts):
            if topic not in counts:
                raise ConfigurationError(
                    f"topic {topic} does not exist; run `neardup topics verify`"
                )
        self.topology = plan.topology(settings, counts[named.documents][0])
        ends = cluster.ranges({topic: counts[topic][0] for topic in self._verdicts})
        self._from = {partition: high for partition, (_, high) in ends.items()}
        self._shared = _Shared(Tally(monotonic()))
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(name, body), name=name, daemon=True)
            for name, body in (("outputs", self._read_outputs), ("lag", self._follow_lag))
        ]

    def __enter__(self) -> Self:
        """Start the threads."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads within a bounded time."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(2.0)

    def view(self) -> View:
        """Return the present state."""
        now = monotonic()
        with self._lock:
            shared = self._shared
            return View(
                seconds=now - shared.tally.begun,
                totals=dict(shared.tally.totals),
                recent=shared.tally.recent(now),
                overall=shared.tally.overall(now),
                lag=dict(shared.lag),
                present=shared.present,
                duplicates=list(shared.duplicates),
                rejections=list(shared.rejections),
                trouble=next(iter(shared.trouble.values()), ""),
            )

    def _guarded(self, name: str, body: Callable[[], None]) -> None:
        """Restart the body after an error, and record the error."""
        while not self._stopping.is_set():
            try:
                body()
            except Unanswered as error:
                text = f"{error}; retrying"
            except BusError as error:
                text = str(error)
            else:
                return
            self._trouble(name, text)
            self._stopping.wait(1.0)

    def _trouble(self, name: str, text: str) -> None:
        with self._lock:
            if text:
                self._shared.trouble[name] = text
            else:
                self._shared.trouble.pop(name, None)

    def _reader(self, group: str, topics: Collection[str], fetches: Mapping[str, int]) -> LogReader:
        options = replace(
            self._options,
            consumer={**self._options.consumer, **fetches},
            request_timeout_seconds=_COMMITTED_SECONDS,
        )
        return KafkaBus(options).log_reader(group, topics)

    def _read_outputs(self) -> None:
        group = f"{self.topology.app}.watch"
        with closing(self._reader(group, self._verdicts, _OUTPUT_FETCHES)) as reader:
            for partition, at in self._from.items():
                reader.start(partition, at)
            while not self._stopping.is_set():
                try:
                    found = reader.read(_OUTPUT_RECORDS, _OUTPUT_BYTES, _OUTPUT_SECONDS)
                except OffsetOutOfRange as error:
                    # The next record is gone: continue at the end.
                    self._from[error.partition] = error.high
                    reader.start(error.partition, error.high)
                    continue
                for record in found:
                    self._count(record)
                    partition = TopicPartition(record.topic, record.partition)
                    self._from[partition] = record.offset + 1

    def _count(self, record: Record) -> None:
        verdict = self._verdicts[record.topic]
        if verdict != "rejected" and not any(name == VERDICT for name, _ in record.headers):
            return  # passed on: a tombstone, or a delete with a value
        with self._lock:
            self._shared.tally.add(monotonic(), verdict, 1)
            if verdict == "duplicate":
                self._shared.duplicates.append(record)
            elif verdict == "rejected":
                self._shared.rejections.append(record)

    def _follow_lag(self) -> None:
        cluster = Cluster(self._options)  # A new client knows the current leaders.
        present = PresenceMeter(self.topology.seats, self.topology.layout.shards)
        groups = [self.topology.group(stage) for stage in STAGES]
        connect = partial(self._reader, fetches=SMALL_FETCHES)

        def ranges(places: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
            return cluster.ranges(Counter(place.topic for place in places))

        with (
            ThreadPoolExecutor(len(STAGES)) as pool,
            StageLags(self.topology, connect) as lags,
        ):
            while not self._stopping.is_set():
                look = lags.look(ranges, pool)
                members = cluster.members(groups).values()
                behind = look.lag["index"].records > 0
                here = present.look(monotonic(), members, look.committed["index"], behind=behind)
                with self._lock:
                    self._shared.lag, self._shared.present = look.lag, here
                self._trouble("lag", "")
                self._trouble("outputs", "")
                self._stopping.wait(_LAG_EVERY_SECONDS)
