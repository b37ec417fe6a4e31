"""What operators' commands ask of a cluster; every call has a deadline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
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
from confluent_kafka.admin._config import ConfigResource  # The admin module doesn't export them,
from confluent_kafka.admin._listoffsets import OffsetSpec  # so mypy wants these private modules.
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from worker.bus import BusError, Claim, Denied, LogTruncated, TopicPartition, Unanswered
from worker.bus.kafka.bus import KafkaBus
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import again, asking, cause, refusal
from worker.bus.kafka.groups import Committed, Offsets, committed_offsets, set_offsets
from worker.bus.kafka.identities import present_ids, topic_ids
from worker.bus.kafka.log_ends import truncated_logs
from worker.bus.ranges import read_ranges
from worker.settings.errors import ConfigurationError

T = TypeVar("T")

_SECONDS = 8.0
_CREATION_SECONDS = 60.0
"""How long brokers may take until every partition of new topics has a leader."""
_HUNG_UP = "Disconnected"
"""In librdkafka's text about a TLS handshake that the other side has ended."""
_UNDECIDED_SECONDS = 30.0
"""Twice how long an abandoned transaction stays open with the brokers' default settings."""
# confluent-kafka has no types for these two.
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic's present partitions, replicas and settings."""

    partitions: int
    replicas: int
    settings: Mapping[str, str]


class Cluster:
    """An admin client that takes and returns plain values.

    Every method raises `BusError` if the cluster doesn't answer in time, or refuses. If what only
    asks is not answered, it raises `Unanswered`; if the brokers don't let the client in, a
    `ConfigurationError`.
    """

    def __init__(
        self,
        options: KafkaOptions,
        seconds: float = _SECONDS,
        *,
        on_undecided: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the admin client. Each request may take ``seconds``.

        ``on_undecided`` is called, from any thread, when a group's offsets must wait for an open
        transaction.
        """
        self._on_undecided = on_undecided
        self._options = options
        self._seconds = seconds
        self._trouble = ""
        self._shut_out = ""
        config: dict[str, Any] = {**options.client_config("admin"), "error_cb": self.heard}
        try:
            self._admin = AdminClient(config)
        except KafkaException as failure:
            if options.oauth is None:
                raise
            raise Unanswered(f"kafka.oauth: {cause(failure).str()}") from failure

    @property
    def options(self) -> KafkaOptions:
        """Return the options to connect to this cluster."""
        return self._options

    def heard(self, error: KafkaError) -> None:
        """Note what librdkafka says of the client as a whole: it explains later errors."""
        if not means(error, Means.DOWN):  # It says less than the errors before it.
            self._trouble = error.str()
        # A connection that ends during the handshake is no refusal: the broker may be starting.
        if means(error, Means.SHUT_OUT) and _HUNG_UP not in error.str():
            self._shut_out = error.str()

    def _unreachable(self, error: KafkaError) -> Unanswered | ConfigurationError:
        self._admin.poll(0)
        if self._shut_out:
            return ConfigurationError(
                f"kafka: no broker of {self._options.bootstrap} lets this client in:"
                f" {self._shut_out}"
            )
        return Unanswered(
            f"no broker of {self._options.bootstrap} answers within {self._seconds:.0f} s:"
            f" {self._trouble or error.str()}"
        )

    def _result(self, future: Future[T], doing: str, right: str, seconds: float | None = None) -> T:
        with self.explained(doing, right):
            return future.result((seconds or self._seconds) + 1)

    @contextmanager
    def explained(
        self, doing: str, right: str = "", passing: Means | None = None
    ) -> Iterator[None]:
        """Convert librdkafka's errors to the port's. ``right`` is the one that it takes.

        Errors that mean something ``passing`` stay as they are: the caller tries again.
        """
        try:
            yield
        except KafkaException as failure:
            error = cause(failure)
            if passing is not None and means(error, passing):
                raise
            if means(error, Means.AWAY):
                raise self._unreachable(error) from failure
            if means(error, Means.MOVING) or error.retriable():
                raise Unanswered(f"{doing}: {error.str()} ({error.name()})") from failure
            raise refusal(error, doing, right) from failure
        except Unanswered as failure:
            asked = failure.__cause__
            if isinstance(asked, KafkaException) and means(cause(asked), Means.AWAY):
                raise self._unreachable(cause(asked)) from failure
            raise
        except TimeoutError as failure:
            raise Unanswered(f"{doing}: no answer within {self._seconds:.0f} s") from failure

    def counts(self) -> tuple[int, dict[str, tuple[int, int]]]:
        """Return the number of brokers, and each topic's numbers of partitions and replicas."""
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

    def topics(
        self, names: Iterable[str], optional: Collection[str] = ()
    ) -> tuple[int, dict[str, TopicState | None]]:
        """Return the number of brokers, and the state of topics; None if a topic doesn't exist.

        Brokers show no topic that the user may not describe. An ``optional`` one then counts as
        missing.

        Raises:
            Denied: the user may not describe one that isn't optional.
        """
        brokers, counts = self.counts()
        asked = list(dict.fromkeys(names))
        self._distinguish([name for name in asked if name not in counts and name not in optional])
        settings = self._settings([name for name in asked if name in counts])
        return brokers, {
            name: TopicState(*counts[name], settings[name]) if name in counts else None
            for name in asked
        }

    def _distinguish(self, unseen: list[str]) -> None:
        """Raise `Denied` for the first topic that the user may not describe."""
        if not unseen:
            return
        with self.explained("topics"):
            found = self._admin.describe_topics(
                TopicCollection(unseen), request_timeout=self._seconds
            )
        for topic, future in found.items():
            try:
                self._result(future, f"{topic} can't be seen", f"every right to {topic}")
            except (Denied, Unanswered):
                raise
            except BusError:
                continue  # It is missing.

    def _settings(self, names: list[str]) -> dict[str, dict[str, str]]:
        if not names:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        found: dict[str, dict[str, str]] = {}

        def ask(left: float) -> None:
            missing = [one for one in resources if one.name not in found]
            futures = self._admin.describe_configs(missing, request_timeout=max(1.0, left))
            for resource, future in futures.items():
                doing = f"settings of {resource.name}"
                with self.explained(doing, f"DescribeConfigs on topic {resource.name}", passing):
                    entries = future.result(left + 1).items()
                found[resource.name] = {
                    setting: entry.value for setting, entry in entries if entry.value is not None
                }

        # The topics exist: a broker that doesn't know one has not heard of it yet.
        passing = Means.MOVING | Means.MISSING
        with self.explained("settings of topics"):
            again(ask, self._seconds, passing)
        return found

    def identity(self, topic: str) -> str:
        """Return a topic's id, which changes if the topic is deleted and recreated."""
        doing, right = f"id of {topic}", f"Describe on topic {topic}"
        with self.explained(doing, right):
            futures = self._admin.describe_topics(
                TopicCollection([topic]), request_timeout=self._seconds
            )
        return str(self._result(futures[topic], doing, right).topic_id)

    def known_settings(self, topic: str) -> frozenset[str]:
        """Return the names of the topic settings that these brokers know."""
        return frozenset(self._settings([topic])[topic])

    def create(
        self, topics: Mapping[str, tuple[int, Mapping[str, str]]], replication: int
    ) -> list[str]:
        """Create topics (partitions, settings); return the created ones, without existing ones."""
        if not topics:
            return []
        new = [
            NewTopic(name, partitions, replication, config=dict(settings))
            for name, (partitions, settings) in topics.items()
        ]
        seconds = max(self._seconds, _CREATION_SECONDS)
        futures = self._admin.create_topics(new, operation_timeout=seconds, request_timeout=seconds)
        made = []
        for name, future in futures.items():
            try:
                future.result(seconds + 1)
            except KafkaException as failure:
                error = cause(failure)
                if means(error, Means.EXISTS):
                    continue
                if means(error, Means.AWAY):  # Not Unanswered: the topic may have been created.
                    unreachable = self._unreachable(error)
                    if isinstance(unreachable, Unanswered):
                        raise BusError(str(unreachable)) from failure
                    raise unreachable from failure
                raise refusal(
                    error, f"{name} can't be created", f"Create on topic {name}"
                ) from failure
            made.append(name)
        self._await(made)
        return made

    def widen(self, counts: Mapping[str, int]) -> None:
        """Give topics so many partitions, all in one request; return once brokers know them."""
        new = [NewPartitions(topic, count) for topic, count in counts.items()]
        if not new:
            return
        seconds = max(self._seconds, _CREATION_SECONDS)
        futures = self._admin.create_partitions(
            new, operation_timeout=seconds, request_timeout=seconds
        )
        for name, future in futures.items():
            doing = f"partitions can't be added to {name}"
            self._result(future, doing, f"Alter on topic {name}", seconds)
        self._await(list(counts), counts)

    def delete(self, topics: Iterable[str]) -> list[str]:
        """Delete topics; return those that were there."""
        _, counts = self.counts()
        there = [topic for topic in topics if topic in counts]
        if there:
            futures = self._admin.delete_topics(there, request_timeout=self._seconds)
            for name, future in futures.items():
                self._result(future, f"{name} can't be deleted", f"Delete on topic {name}")
        return there

    def delete_group(self, group: str) -> None:
        """Delete a group, if it is there, once its last member has left it.

        Raises:
            BusError: a member stays, or the cluster refuses.
        """
        deadline = monotonic() + self._seconds
        while not self._group_deleted(group, last=monotonic() > deadline):
            sleep(0.2)

    def _group_deleted(self, group: str, *, last: bool) -> bool:
        """Delete a group without members; return False if it has some, unless this is the last try.

        Raises:
            BusError: the cluster refuses.
        """
        (future,) = self._admin.delete_consumer_groups(
            [group], request_timeout=self._seconds
        ).values()
        try:
            future.result(self._seconds + 1)
        except KafkaException as failure:
            error = cause(failure)
            if error.code() == KafkaError.NON_EMPTY_GROUP and not last:
                return False
            if error.code() != KafkaError.GROUP_ID_NOT_FOUND:
                raise refusal(
                    error, f"group {group} can't be deleted", f"Delete on group {group}"
                ) from failure
        return True

    def members(self, groups: Iterable[str]) -> dict[str, dict[str, list[TopicPartition]]]:
        """Return what each worker owns of each group; a group that doesn't exist has none."""
        asked = list(groups)
        doing, right = f"members of {', '.join(asked)}", "Describe on these groups"
        with self.explained(doing, right):
            futures = self._admin.describe_consumer_groups(asked, request_timeout=self._seconds)
        found = {group: self._result(future, doing, right) for group, future in futures.items()}
        return {
            group: {
                member.group_instance_id or member.member_id: [
                    TopicPartition(place.topic, place.partition)
                    for place in (member.assignment.topic_partitions if member.assignment else ())
                ]
                for member in description.members
            }
            for group, description in found.items()
        }

    def _await(self, names: list[str], least: Mapping[str, int] = MappingProxyType({})) -> None:
        """Wait until the brokers know the new topics, or their new partitions: at ``least``.

        They elect the leaders one after the other, and hear of each at different times.
        """
        seconds = max(self._seconds, _CREATION_SECONDS)
        deadline = monotonic() + seconds
        while monotonic() < deadline:
            try:
                _, counts = self.counts()
                if all(name in counts and counts[name][0] >= least.get(name, 1) for name in names):
                    self._settings(names)
                    self.ranges({name: counts[name][0] for name in names})
                    return
            except BusError:
                if monotonic() > deadline:
                    raise
            sleep(0.1)
        made = "has new partitions" if least else "was created"
        raise BusError(f"{names[0]} {made}, but no leader after {seconds:.0f} s")

    def committed(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, int]]:
        """Return the groups' committed offsets; partitions without one are left out.

        Waits for open transactions that hold offsets of a group; a killed worker leaves such.
        """
        found = self.annotated(asked)
        return {
            group: {partition: one.offset for partition, one in partitions.items()}
            for group, partitions in found.items()
        }

    def annotated(
        self, asked: Mapping[str, Iterable[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Committed]]:
        """Return the groups' committed offsets as `committed` does, with their metadata."""
        seconds = max(self._seconds, _UNDECIDED_SECONDS)
        return committed_offsets(self._options, asked, seconds, self._on_undecided)

    def truncated(
        self, group: str, claims: Mapping[TopicPartition, Claim]
    ) -> dict[TopicPartition, LogTruncated]:
        """Return the logs that have lost their end, and grown again, since these offsets were read.

        ``group`` is one that the user may describe.
        """
        doing = f"leader epochs of {', '.join(sorted({partition.topic for partition in claims}))}"
        partitions = {Place(*partition): _LATEST for partition in claims}
        with self.explained(doing):
            epochs = asking(lambda left: self._epochs(partitions, left), self._seconds, doing)
        # A log in the leader epoch in which it was read can't have lost anything since.
        later = {at: claim for at, claim in claims.items() if epochs[at] != claim.epoch}
        if not later:
            return {}
        return truncated_logs(self._options, group, later, self._seconds)

    def _epochs(
        self, partitions: Mapping[Place, OffsetSpec], left: float
    ) -> dict[TopicPartition, int | None]:
        asked = self._admin.list_offsets(dict(partitions), request_timeout=max(1.0, left / 3))
        return {
            TopicPartition(partition.topic, partition.partition): future.result(
                left + 1
            ).leader_epoch
            for partition, future in asked.items()
        }

    def last_records(self, topic: str) -> dict[bytes | None, bytes]:
        """Return the last value of each key of a compacted topic that has one partition."""
        found: dict[bytes | None, bytes] = {}
        with closing(KafkaBus(self._options).log_reader(topic, [topic])) as reader:
            for record in read_ranges(reader, self.ranges({topic: 1})):
                if record.value is None:
                    found.pop(record.key, None)
                else:
                    found[record.key] = record.value
        return found

    def commit(
        self,
        group: str,
        offsets: Offsets,
        of: Mapping[str, str] = MappingProxyType({}),
        epochs: Offsets = MappingProxyType({}),
    ) -> None:
        """Set offsets of a group without active members, with the ``epochs`` that are known.

        ``of`` maps a topic to another one to which its offsets belong.
        """
        topics = {
            partition.topic: of.get(partition.topic, partition.topic) for partition in offsets
        }
        present = partial(present_ids, self._admin)
        found = topic_ids(present, set(topics.values()), self._seconds)
        ids = {topic: found[log] for topic, log in topics.items()}
        set_offsets(self._options, group, offsets, ids, self._seconds, epochs=epochs)

    def ranges(
        self, counts: Mapping[str, int], *, committed: bool = True
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the start of every partition, and the end of its (committed) records."""
        lows, highs = self._offsets(counts, _EARLIEST, _LATEST, committed=committed)
        return {partition: (lows[partition], highs[partition]) for partition in lows}

    def at_time(self, counts: Mapping[str, int], time_ms: int) -> dict[TopicPartition, int | None]:
        """Return every partition's first offset at or after a time, or None if there is none."""
        (found,) = self._offsets(counts, OffsetSpec.for_timestamp(time_ms))
        return {partition: at if at >= 0 else None for partition, at in found.items()}

    def _offsets(
        self, counts: Mapping[str, int], *specs: OffsetSpec, committed: bool = True
    ) -> list[dict[TopicPartition, int]]:
        """Return the offsets of every partition for each spec; retry while leaders move."""
        places = [
            Place(topic, number)
            for topic, partitions in counts.items()
            for number in range(partitions)
        ]
        if not places:
            return [{} for _ in specs]
        doing = f"offsets of {', '.join(sorted(counts))}"
        with self.explained(doing):
            return asking(
                lambda left: self._ask(places, specs, left, committed=committed),
                self._seconds,
                doing,
            )

    def _ask(
        self,
        partitions: Sequence[Place],
        specs: Sequence[OffsetSpec],
        left: float,
        *,
        committed: bool,
    ) -> list[dict[TopicPartition, int]]:
        """Ask once; report a missing leader as `LEADER_NOT_AVAILABLE` in every case."""
        # Without this librdkafka keeps asking a leader that is gone.
        self._admin.list_topics(timeout=left)
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = [
            self._admin.list_offsets(
                dict.fromkeys(partitions, spec),
                isolation_level=level,
                request_timeout=max(1.0, left / 3),
            )
            for spec in specs
        ]
        leaderless = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        try:
            found = [
                {
                    TopicPartition(partition.topic, partition.partition): int(
                        future.result(left + 1).offset
                    )
                    for partition, future in futures.items()
                }
                for futures in asked
            ]
        except KafkaException as failure:
            # Other brokers have just answered, and there is time for another request.
            if means(cause(failure), Means.LEADERLESS):
                raise leaderless from failure
            raise
        if any(OFFSET_INVALID in offsets.values() for offsets in found):
            raise leaderless  # librdkafka may also report a timeout like this.
        return found
