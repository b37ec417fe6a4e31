"""Reads and sets the offsets of consumer groups from outside.

It uses consumers that never join: librdkafka's admin client crashes the process when it lists
a group's offsets while the group's coordinator is starting or moving.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource  # The admin module doesn't export them,
from confluent_kafka.admin._resource import ResourceType  # so mypy wants these private modules.

from worker.bus import BusError, TopicPartition, Unanswered
from worker.bus.kafka.config import READS, KafkaOptions
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import again, cause, refusal
from worker.bus.kafka.identities import metadata_of, offset_in

Offsets = Mapping[TopicPartition, int]

T = TypeVar("T")


class Committed(NamedTuple):
    """A group's committed offset of a partition, with its metadata and leader epoch, if known."""

    offset: int
    metadata: str = ""
    epoch: int | None = None


_MOMENT_SECONDS = 2.0


@contextmanager
def group_client(options: KafkaOptions, group: str, **more: object) -> Iterator[Consumer]:
    """Yield a consumer that does not join the group; partitions can be assigned to it."""
    config: dict[str, Any] = {
        **options.client_config(group),
        **options.consumer,
        "group.id": group,
        **READS,
        **more,
    }
    consumer = Consumer(config)
    try:
        yield consumer
    finally:
        consumer.close()


def committed_offsets(
    options: KafkaOptions,
    asked: Mapping[str, Iterable[TopicPartition]],
    seconds: float,
    on_undecided: Callable[[], None] = lambda: None,
) -> dict[str, dict[TopicPartition, Committed]]:
    """Return the groups' committed offsets; partitions without one are left out.

    Waits for offsets in open transactions. If that takes more than 2 s, ``on_undecided`` is
    called once, from another thread.

    Raises:
        Denied: the user has no right to a group.
        BusError: no answer in time, or refused.
    """

    def one(group: str) -> dict[TopicPartition, Committed]:
        partitions = [KafkaPartition(*partition) for partition in asked[group]]
        if not partitions:
            return {}
        with group_client(options, group) as consumer:
            found = _answer(
                lambda left: _decided(consumer, partitions, left, told),
                seconds,
                group,
            )
        return {
            TopicPartition(place.topic, place.partition): Committed(
                offset, place.metadata or "", place.leader_epoch
            )
            for place in found
            if (offset := offset_in(place)) is not None
        }

    told = _Once(on_undecided)
    with ThreadPoolExecutor(len(asked) or 1) as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))


class _Once:
    """Calls a function on the first call only; concurrent calls wait for it."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            function, self._function = self._function, None
            if function is not None:
                function()


def _decided(
    consumer: Consumer,
    partitions: list[KafkaPartition],
    left: float,
    on_undecided: Callable[[], None],
) -> list[KafkaPartition]:
    """Return committed offsets. librdkafka waits for open transactions without reporting it."""
    moment = min(left, _MOMENT_SECONDS)
    try:
        return consumer.committed(partitions, moment)
    except KafkaException as failure:
        if not means(cause(failure), Means.LATE):
            raise
        _raise_denial(consumer)
        if moment == left:
            raise
    on_undecided()
    return consumer.committed(partitions, left - moment)


def _raise_denial(consumer: Consumer) -> None:
    """Raise one of a consumer's errors if it tells that a right is missing.

    librdkafka goes on to look for a coordinator that it may not know of, and a request for offsets
    only times out.
    """
    while (message := consumer.poll(0)) is not None:
        error = message.error()
        if error is not None and means(error, Means.DENIED):
            raise KafkaException(error)


def set_offsets(  # noqa: PLR0913 -- what an offset says, and where it is set
    options: KafkaOptions,
    group: str,
    offsets: Offsets,
    ids: Mapping[str, str],
    seconds: float,
    *,
    epochs: Offsets = MappingProxyType({}),
) -> None:
    """Set offsets of a group without active members, each with the id of its topic.

    ``epochs`` are the leader epochs that are known.

    Raises:
        BusError: no answer in time, refused, or the group has active members.
    """
    partitions = [
        KafkaPartition(
            *partition, offset, metadata_of(ids[partition.topic], offset), epochs.get(partition, -1)
        )
        for partition, offset in offsets.items()
    ]
    with group_client(options, group) as consumer:
        # This finds the coordinator: without one, a commit waits for ever.
        _answer(lambda left: _decided(consumer, partitions[:1], left, lambda: None), seconds, group)
        _answer(lambda _: consumer.commit(offsets=partitions, asynchronous=False), seconds, group)


def _answer(call: Callable[[float], T], seconds: float, group: str) -> T:
    """Call until there is an answer: a group's coordinator may be starting or moving."""

    def checked(left: float) -> T:
        answer = call(left)
        for partition in answer if isinstance(answer, list) else []:
            if partition.error is not None:
                raise KafkaException(partition.error)
        return answer

    try:
        return again(checked, seconds, Means.MOVING)
    except KafkaException as failure:
        raise refused(cause(failure), group) from failure


def refused(error: KafkaError, group: str) -> BusError:
    """Return what a change of a group's offsets that failed in this way comes to."""
    doing = f"offsets of group {group}"
    if means(error, Means.OCCUPIED):
        return BusError(
            f"{doing}: the group has active members; stop all its workers first"
            " (a stopped worker counts until its session ends)"
        )
    if means(error, Means.AWAY | Means.MOVING) and not means(error, Means.LATE):
        return Unanswered(f"{doing}: {error.str()} ({error.name()})")
    if means(error, Means.LATE):
        return Unanswered(
            f"{doing}: no answer in time. A transaction that holds them may be stuck; see"
            " the runbook, 'A stuck transaction'"
        )
    return refusal(error, doing, f"Read on group {group} (or Describe, only to look)")


LONGEST_SESSION_SECONDS = 60.0
"""The longest session that brokers allow by default (group.consumer.max.session.timeout.ms)."""

_SETTING = "consumer.session.timeout.ms"


def session_seconds(admin: AdminClient, group: str, seconds: float) -> float | None:
    """Return how long a group keeps the seat of a member that is gone, under KIP-848.

    That is the brokers' setting, or the group's own, as its coordinator says; None if nobody
    tells. The session begins anew whenever another broker becomes the group's coordinator.

    That takes *DescribeConfigs* on the group, and brokers that know settings of groups.
    """
    resource = ConfigResource(ResourceType.GROUP, group)
    try:
        asked = admin.describe_configs([resource], request_timeout=seconds)
        found = asked[resource].result(seconds + 1)
    except (KafkaException, TimeoutError):
        return None
    value = found[_SETTING].value if _SETTING in found else None
    return None if value is None else int(value) / 1_000
