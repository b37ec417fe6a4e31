"""What commands do that send to the documents: look for the topic, and wait for the shards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from itertools import count

from worker.bus import Bus, BusError, LogReader, Outgoing, TopicPartition
from worker.cli.errors import EXIT_FAILED, CommandError, status_of
from worker.corrections.sending import (
    Behind,
    answered_up_to,
    behind,
    found,
    judged_reader,
    send,
)
from worker.generations.plan import Plan
from worker.settings.model import Settings
from worker.topology import Topology
from worker.visible import tell

_PAUSE_SECONDS = 0.5
_TOLD_EVERY = 60
"""Pauses between two lines that say what is waited for."""


def documents_there(bus: Bus, settings: Settings, plan: Plan) -> Topology:
    """Return the topology with as many partitions as the documents have.

    Raises:
        CommandError: their topic doesn't exist.
    """
    topic = settings.topology(1).documents
    partitions = bus.partitions([topic])[topic]
    if partitions is None:
        raise CommandError(f"there is no topic {topic}; run `neardup topics create`")
    return plan.topology(settings, partitions)


def places(sent: Mapping[TopicPartition, int]) -> list[dict[str, object]]:
    """Return for programs where the last records are."""
    return [
        {"topic": partition.topic, "partition": partition.partition, "offset": offset}
        for partition, offset in sorted(sent.items())
    ]


def await_judged(
    reader: LogReader,
    sent: Mapping[TopicPartition, int],
    pause: Callable[[float], None],
    what: tuple[str, str],
) -> None:
    """Return when every shard has judged what was sent; ``what`` that is, in one and in several.

    Raises:
        CommandError: that can't be seen, or the user doesn't want to wait any longer.
    """
    left = f"the {what[1]} were sent, and are judged as soon as the workers read them"
    try:
        for number in count(1):
            waiting = behind(reader, sent)
            if not waiting:
                return
            if number % _TOLD_EVERY == 0:
                tell(_waiting(waiting, what[0]))
            pause(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        raise CommandError(f"interrupted: {left}", 130) from None
    except BusError as error:
        raise CommandError(f"{error}; {left}", status_of(error) or EXIT_FAILED) from error


def judged_and_found(
    bus: Bus,
    topology: Topology,
    records: Sequence[Outgoing],
    ids: Collection[bytes],
    pause: Callable[[float], None],
    what: tuple[str, str],
) -> tuple[Mapping[TopicPartition, int], set[bytes] | None]:
    """Send records, and wait as `await_judged` does; return where they are, and what they found.

    That are the ids for which the shards have done something; None if that can't be known.
    """
    with closing(judged_reader(bus, topology)) as reader:
        since = _since(reader, topology)
        sent = send(bus, topology, records)
        await_judged(reader, sent, pause, what)
        try:
            return sent, found(reader, topology, sent, since, ids) if since else None
        except BusError as error:
            tell(f"what the shards have done can't be seen: {error}")
            return sent, None


def _since(reader: LogReader, topology: Topology) -> Mapping[TopicPartition, int]:
    """Return what comes before the answers; nothing if that can't be read, which costs no more."""
    try:
        return answered_up_to(reader, topology)
    except BusError as error:
        tell(f"what the shards do can't be seen: {error}")
        return {}


def _waiting(waiting: Sequence[Behind], what: str) -> str:
    first = waiting[0]
    return (
        f"waiting: {first.place.topic}[{first.place.partition}] is judged up to offset"
        f" {first.judged:,}, the {what} is at {first.offset:,}; `neardup watch` shows whether"
        " the workers get on"
    )
