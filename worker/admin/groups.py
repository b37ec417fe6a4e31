"""The offsets of consumer groups, read and set from outside.

By consumers that never join: librdkafka's admin client crashes the process when it lists
a group's offsets while the group's coordinator is just starting or moving.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from worker.bus import BusError, TopicPartition
from worker.bus.kafka import READS, KafkaOptions
from worker.bus.kafka.errors import cause
from worker.bus.kafka.identities import metadata_of

__all__ = ["Offsets", "committed_offsets", "reader", "set_offsets"]

Offsets = Mapping[TopicPartition, int]

T = TypeVar("T")

_PAUSE_SECONDS = 0.2
_MOMENT_SECONDS = 2.0
_PASSING = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._WAIT_COORD,  # noqa: SLF001 -- librdkafka's own codes begin with an underscore
    }
)


@contextmanager
def reader(options: KafkaOptions, group: str, **more: object) -> Iterator[Consumer]:
    """Give a consumer that is no member of the group, and can be assigned to partitions."""
    config: dict[str, Any] = {
        **options.client(group),
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
) -> dict[str, dict[TopicPartition, int]]:
    """Return what groups have committed of partitions; those without are left out.

    Offsets in an open transaction are waited for; ``on_undecided`` is called, once and from
    another thread, when that takes more than a moment.

    Raises:
        BusError: no answer in time, or refused.
    """

    def one(group: str) -> dict[TopicPartition, int]:
        places = [Place(*partition) for partition in asked[group]]
        if not places:
            return {}
        with reader(options, group) as consumer:
            found = _answer(
                lambda left: _decided(consumer, places, left, told),
                seconds,
                f"offsets of group {group}",
            )
        return {
            TopicPartition(place.topic, place.partition): place.offset
            for place in found
            if place.offset >= 0
        }

    told = _Once(on_undecided)
    with ThreadPoolExecutor(len(asked) or 1) as pool:
        return dict(zip(asked, pool.map(one, asked), strict=True))


class _Once:
    """Calls a function for the first of those that ask for it; the others wait."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            function, self._function = self._function, None
            if function is not None:
                function()


def _decided(
    consumer: Consumer, places: list[Place], left: float, on_undecided: Callable[[], None]
) -> list[Place]:
    """Ask for committed offsets. librdkafka waits for open transactions, and says nothing."""
    moment = min(left, _MOMENT_SECONDS)
    try:
        return consumer.committed(places, moment)
    except KafkaException as failure:
        if cause(failure).code() != KafkaError._TIMED_OUT or moment == left:  # noqa: SLF001 -- its own
            raise
    on_undecided()
    return consumer.committed(places, left - moment)


def set_offsets(
    options: KafkaOptions, group: str, offsets: Offsets, ids: Mapping[str, str], seconds: float
) -> None:
    """Set offsets of a group that has no members at work, each with the id of its topic.

    Raises:
        BusError: no answer in time, refused, or somebody is at work.
    """
    places = [
        Place(*partition, offset, metadata_of(ids[partition.topic]))
        for partition, offset in offsets.items()
    ]
    with reader(options, group) as consumer:
        # So that the coordinator is known: a commit without one waits for ever.
        _answer(
            lambda left: consumer.committed(places[:1], left), seconds, f"offsets of group {group}"
        )
        _answer(
            lambda _: consumer.commit(offsets=places, asynchronous=False),
            seconds,
            f"offsets of group {group}",
        )


def _answer(call: Callable[[float], T], seconds: float, doing: str) -> T:
    """Call until there is an answer: a group's coordinator may be starting, or moving."""
    deadline = monotonic() + seconds
    while True:
        try:
            answer = call(max(0.1, deadline - monotonic()))
        except KafkaException as failure:
            error: KafkaError | None = cause(failure)
        else:
            places = answer if isinstance(answer, list) else []
            error = next((place.error for place in places if place.error is not None), None)
            if error is None:
                return answer
        if error is None or error.code() not in _PASSING or monotonic() > deadline:
            raise _refused(error, doing)
        sleep(_PAUSE_SECONDS)


def _refused(error: KafkaError | None, doing: str) -> BusError:
    if error is None:
        return BusError(f"{doing}: no answer")
    if error.code() in {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.STALE_MEMBER_EPOCH,
    }:
        return BusError(
            f"{doing}: the group is at work; stop all its workers first"
            " (one that was stopped counts until its session ends)"
        )
    if error.code() == KafkaError._TIMED_OUT:  # noqa: SLF001 -- librdkafka's own codes
        return BusError(
            f"{doing}: no answer in time. A transaction that holds them may be open for longer than"
            " it should; see docs/runbook.md, 'A stuck transaction'"
        )
    return BusError(f"{doing}: {error.str()} ({error.name()})")
