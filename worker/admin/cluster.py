"""What an operator's command asks a cluster, and tells it; every call has a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from types import MappingProxyType
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource  # The admin module only passes them on,
from confluent_kafka.admin._listoffsets import OffsetSpec  # and mypy wants them from their source.
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from worker.admin.compacted import PARTITION, records
from worker.admin.groups import Offsets, committed_offsets, reader, set_offsets
from worker.bus import BusError, TopicPartition
from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.errors import cause, retrying
from worker.bus.kafka.identities import topic_ids

__all__ = ["Cluster", "TopicState"]

T = TypeVar("T")

_SECONDS = 8.0
_UNDECIDED_SECONDS = 30.0
"""Twice what a transaction lasts that nobody comes back for, with brokers' default settings."""
_LEADERLESS = frozenset({KafkaError._TIMED_OUT, KafkaError._NOENT})  # noqa: SLF001
"""How librdkafka may say that it has no leader to ask, beside an offset of -1001."""
# confluent-kafka has no types for these two.
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as it is."""

    partitions: int
    replicas: int
    settings: Mapping[str, str]


class Cluster:
    """An admin client that speaks in plain values.

    Every method raises `BusError` when the cluster doesn't answer within seconds, or
    refuses.
    """

    def __init__(
        self,
        options: KafkaOptions,
        seconds: float = _SECONDS,
        *,
        on_undecided: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is connected yet.

        ``on_undecided`` is called, in any thread, when a group's offsets have to wait for a
        transaction that is open.
        """
        self._on_undecided = on_undecided
        self._options = options
        self._seconds = seconds
        self._trouble = ""
        config: dict[str, Any] = {**options.client("admin"), "error_cb": self._on_error}
        self._admin = AdminClient(config)

    @property
    def options(self) -> KafkaOptions:
        """Return how this cluster is reached."""
        return self._options

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 -- librdkafka's own code
            self._trouble = error.str()

    def _unreachable(self, error: KafkaError) -> BusError:
        self._admin.poll(0)
        return BusError(
            f"no broker of {self._options.bootstrap} answers within {self._seconds:.0f} s:"
            f" {self._trouble or error.str()}"
        )

    def _result(self, future: Future[T], doing: str) -> T:
        with self._explained(doing):
            return future.result(self._seconds + 1)

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Say what librdkafka's errors mean here."""
        try:
            yield
        except KafkaException as failure:
            error = cause(failure)
            if error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:  # noqa: SLF001
                raise self._unreachable(error) from failure
            raise BusError(f"{doing}: {error.str()} ({error.name()})") from failure
        except TimeoutError as failure:
            raise BusError(f"{doing}: no answer within {self._seconds:.0f} s") from failure

    def counts(self) -> tuple[int, dict[str, tuple[int, int]]]:
        """Count the brokers, and each topic's partitions and replicas."""
        try:
            found = self._admin.list_topics(timeout=self._seconds)
        except KafkaException as failure:
            raise self._unreachable(cause(failure)) from failure
        return len(found.brokers), {
            name: (
                len(topic.partitions),
                min(len(partition.replicas) for partition in topic.partitions.values()),
            )
            for name, topic in found.topics.items()
            if topic.error is None and topic.partitions
        }

    def topics(self, names: Iterable[str]) -> tuple[int, dict[str, TopicState | None]]:
        """Count the brokers, and describe topics; None: there is none of that name."""
        brokers, counts = self.counts()
        asked = list(dict.fromkeys(names))
        settings = self._settings([name for name in asked if name in counts])
        return brokers, {
            name: TopicState(*counts[name], settings[name]) if name in counts else None
            for name in asked
        }

    def _settings(self, names: list[str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        futures = self._admin.describe_configs(resources, request_timeout=self._seconds)
        return {
            resource.name: {
                setting: entry.value
                for setting, entry in self._result(future, f"settings of {resource.name}").items()
                if entry.value is not None
            }
            for resource, future in futures.items()
        }

    def identity(self, topic: str) -> str:
        """Give a topic's id: another one, once it is deleted and made anew."""
        doing = f"id of {topic}"
        with self._explained(doing):
            futures = self._admin.describe_topics(
                TopicCollection([topic]), request_timeout=self._seconds
            )
        return str(self._result(futures[topic], doing).topic_id)

    def known_settings(self, topic: str) -> frozenset[str]:
        """Name the settings that these brokers know."""
        return frozenset(self._settings([topic])[topic])

    def create(
        self, topics: Mapping[str, tuple[int, Mapping[str, str]]], replication: int
    ) -> list[str]:
        """Create topics (partitions, settings); give those made, not those that were there."""
        if not topics:
            return []
        new = [
            NewTopic(name, partitions, replication, config=dict(settings))
            for name, (partitions, settings) in topics.items()
        ]
        futures = self._admin.create_topics(
            new, operation_timeout=self._seconds, request_timeout=self._seconds
        )
        made = []
        for name, future in futures.items():
            try:
                future.result(self._seconds + 1)
            except KafkaException as failure:
                error = cause(failure)
                if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                if error.code() in {KafkaError._TIMED_OUT, KafkaError._TRANSPORT}:  # noqa: SLF001
                    raise self._unreachable(error) from failure
                raise BusError(f"{name} can't be created: {error.str()}") from failure
            made.append(name)
        self._await(made)
        return made

    def _await(self, names: list[str]) -> None:
        """Wait until the brokers know what was just created."""
        deadline = monotonic() + self._seconds
        while monotonic() < deadline:
            try:
                _, counts = self.counts()
                if all(name in counts for name in names):
                    self._settings(names)
                    self.ranges({name: counts[name][0] for name in names})
                    return
            except BusError:
                if monotonic() > deadline:
                    raise
            sleep(0.1)
        raise BusError(f"{names[0]} was created, but has no leader after {self._seconds:.0f} s")

    def committed(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, int]]:
        """Return what groups have committed; partitions without an offset are left out.

        Waits for open transactions that hold offsets of a group, as a killed worker leaves them.
        """
        seconds = max(self._seconds, _UNDECIDED_SECONDS)
        return committed_offsets(self._options, asked, seconds, self._on_undecided)

    def last_records(self, topic: str) -> dict[bytes | None, bytes]:
        """Return the last value of each key of a compacted topic that has one partition."""
        low, high = self.ranges({topic: 1})[TopicPartition(topic, PARTITION)]
        found: dict[bytes | None, bytes] = {}
        end_too: dict[str, object] = {"enable.partition.eof": True}
        with (
            self._explained(f"records of {topic}"),
            reader(self._options, topic, **end_too) as consumer,
        ):
            for _, key, value in records(consumer, topic, low, high):
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return found

    def commit(
        self, group: str, offsets: Offsets, of: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Set offsets of a group that has no members at work.

        ``of`` names, by topic, another one to which its offsets belong.
        """
        topics = {place.topic: of.get(place.topic, place.topic) for place in offsets}
        found = topic_ids(self._admin, set(topics.values()), self._seconds)
        ids = {topic: found[log] for topic, log in topics.items()}
        set_offsets(self._options, group, offsets, ids, self._seconds)

    def ranges(
        self, counts: Mapping[str, int], *, committed: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Give where every partition begins, and where its (committed) records end."""
        lows, highs = self._offsets(counts, _EARLIEST, _LATEST, committed=committed)
        return {partition: (lows[partition], highs[partition]) for partition in lows}

    def at_time(self, counts: Mapping[str, int], time_ms: int) -> dict[TopicPartition, int | None]:
        """Give the first offset at a time or later in every partition, if there is one."""
        (found,) = self._offsets(counts, OffsetSpec.for_timestamp(time_ms))
        return {partition: at if at >= 0 else None for partition, at in found.items()}

    def _offsets(
        self, counts: Mapping[str, int], *specs: OffsetSpec, committed: bool = True
    ) -> list[dict[TopicPartition, int]]:
        """Ask for offsets of every partition, for each spec, again while their leaders move."""
        places = [
            Place(topic, number)
            for topic, partitions in counts.items()
            for number in range(partitions)
        ]
        if not places:
            return [{} for _ in specs]
        doing = f"offsets of {', '.join(sorted(counts))}"
        with self._explained(doing):
            return retrying(
                lambda left: self._ask(places, specs, left, committed=committed),
                self._seconds,
                doing,
                asking=True,
            )

    def _ask(
        self, places: Sequence[Place], specs: Sequence[OffsetSpec], left: float, *, committed: bool
    ) -> list[dict[TopicPartition, int]]:
        """Ask once; that a leader is gone is `LEADER_NOT_AVAILABLE`, however librdkafka says it."""
        # Without that librdkafka goes on asking a leader that is gone.
        self._admin.list_topics(timeout=left)
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = [
            self._admin.list_offsets(
                dict.fromkeys(places, spec),
                isolation_level=level,
                request_timeout=max(1.0, left / 3),
            )
            for spec in specs
        ]
        leaderless = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        try:
            found = [
                {
                    TopicPartition(place.topic, place.partition): int(
                        future.result(left + 1).offset
                    )
                    for place, future in futures.items()
                }
                for futures in asked
            ]
        except KafkaException as failure:
            # Other brokers have just answered; and there is time for another request.
            if cause(failure).code() in _LEADERLESS:
                raise leaderless from failure
            raise
        if any(OFFSET_INVALID in offsets.values() for offsets in found):
            raise leaderless  # So may librdkafka say that the time is up.
        return found
