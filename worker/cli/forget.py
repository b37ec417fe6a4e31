"""``neardup forget``: have the index forget documents, and say when nothing is left of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import count
from time import sleep
from typing import NamedTuple

from worker.admin import Cluster
from worker.admin.forgetting import (
    Behind,
    answered_up_to,
    behind,
    found,
    judged_reader,
    send_tombstones,
)
from worker.admin.reindex.in_use import in_use
from worker.bus import Bus, BusError, LogReader, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.cli.errors import EXIT_FAILED, CommandError, status_of
from worker.cli.screen import print_json, tell
from worker.formats.base import DocumentFormat, Unreadable
from worker.formats.choice import document_format
from worker.settings import Settings, without_credentials
from worker.topology import Topology
from worker.visible import counted
from worker.wire.headers import FORGET

__all__ = ["forget", "forget_on"]

_PAUSE_SECONDS = 0.5
_TOLD_EVERY = 60
"""Pauses between two lines that say what is waited for."""
_NAMED = 10
"""The most ids in a line."""


class _Left(NamedTuple):
    """What a tombstone doesn't reach, and how long that is there."""

    what: str
    until: str


def forget(settings: Settings, ids: Sequence[str], *, wait: bool, as_json: bool) -> None:
    """Send a tombstone for each id, wait until every shard has judged them, and print that.

    Raises:
        CommandError: an id is not one, there is no topic, or Kafka failed.
    """
    logging.getLogger("librdkafka").addHandler(logging.NullHandler())
    options = settings.kafka_options()
    settings = in_use(Cluster(options), settings)
    forget_on(KafkaBus(options), settings, ids, wait=wait, as_json=as_json)


def forget_on(
    bus: Bus,
    settings: Settings,
    ids: Sequence[str],
    *,
    wait: bool,
    as_json: bool,
    pause: Callable[[float], None] = sleep,
) -> None:
    """Do what `forget` does, on any bus; ``pause`` waits for some seconds."""
    topic = settings.topology(1).documents
    partitions = bus.partitions([topic])[topic]
    topology = settings.topology(partitions or 1)
    documents = document_format(settings)
    wanted = _wanted(documents, ids)
    if partitions is None:
        raise CommandError(f"there is no topic {topic}; run `neardup topics create`")
    unknown: list[str] | None = None
    if wait:
        with closing(judged_reader(bus, topology)) as reader:
            since = _since(reader, topology)
            sent = send_tombstones(bus, topology, wanted, keys=documents.keys)
            _await(reader, sent, pause)
            unknown = _unknown(reader, topology, sent, since, wanted)
    else:
        sent = send_tombstones(bus, topology, wanted, keys=documents.keys)
    if as_json:
        given = list(wanted.values())
        print_json(_summary(settings, topology, given, sent, unknown, judged=wait))
        return
    number = len(wanted)
    begun = _judged(number, unknown, settings) if wait else _sent(number, topology, settings)
    left = [f"  {one.what}: {one.until}" for one in _not_reached(settings, topology)]
    for line in (*begun, "This does not reach", *left):
        tell(line)


def _since(reader: LogReader, topology: Topology) -> Mapping[TopicPartition, int]:
    """Return what comes before the answers; nothing if that can't be read, which costs no more."""
    try:
        return answered_up_to(reader, topology)
    except BusError as error:
        tell(f"whether the index has these ids can't be seen: {error}")
        return {}


def _unknown(
    reader: LogReader,
    topology: Topology,
    sent: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
    wanted: Mapping[bytes, str],
) -> list[str] | None:
    """Return the ids that no shard had a document of; None if that can't be known."""
    if not since:
        return None
    try:
        known = found(reader, topology, sent, since, wanted)
    except BusError as error:
        tell(f"whether the index had these ids can't be seen: {error}")
        return None
    return (
        None if known is None else [given for ident, given in wanted.items() if ident not in known]
    )


def _wanted(documents: DocumentFormat, ids: Sequence[str]) -> dict[bytes, str]:
    """Return the ids, each once, as they were given.

    Raises:
        CommandError: no document can have this id.
    """
    wanted: dict[bytes, str] = {}
    for ident in ids:
        header = (FORGET, ident.encode(errors="surrogateescape"))
        try:
            forgotten = documents.forgotten(Record("", 0, 0, -1, None, None, (header,)))
        except Unreadable as error:
            raise CommandError(f"{ident!r}: {error}; nothing was sent") from None
        wanted.setdefault(forgotten, ident)
    return wanted


def _await(
    reader: LogReader,
    sent: Mapping[TopicPartition, int],
    pause: Callable[[float], None],
) -> None:
    """Return when every shard has judged the tombstones.

    Raises:
        CommandError: that can't be seen, or the user doesn't want to wait any longer.
    """
    left = "the tombstones were sent, and are judged as soon as the workers read them"
    try:
        for number in count(1):
            waiting = behind(reader, sent)
            if not waiting:
                return
            if number % _TOLD_EVERY == 0:
                tell(_waiting(waiting))
            pause(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        raise CommandError(f"interrupted: {left}", 130) from None
    except BusError as error:
        raise CommandError(f"{error}; {left}", status_of(error) or EXIT_FAILED) from error


def _waiting(waiting: Sequence[Behind]) -> str:
    first = waiting[0]
    return (
        f"waiting: {first.place.topic}[{first.place.partition}] is judged up to offset"
        f" {first.judged:,}, the tombstone is at {first.offset:,}; `neardup watch` shows whether"
        " the workers get on"
    )


def _summary(
    settings: Settings,
    topology: Topology,
    ids: Sequence[str],
    sent: Mapping[TopicPartition, int],
    unknown: Sequence[str] | None,
    *,
    judged: bool,
) -> dict[str, object]:
    return {
        "ids": ids,
        "tombstones": [
            {"topic": partition.topic, "partition": partition.partition, "offset": offset}
            for partition, offset in sorted(sent.items())
        ],
        "judged": judged,
        "unknown": unknown,
        "erasure_seconds": settings.index.erasure_seconds,
        "not_reached": [one._asdict() for one in _not_reached(settings, topology)],
    }


def _sent(number: int, topology: Topology, settings: Settings) -> list[str]:
    unknown = "Whether the index has them is not known before all shards have judged them"
    return [
        f"{counted(number, 'id')} sent to {topology.documents} to be forgotten. {unknown}",
        f"{_gone(settings)} after that (index.erasure_seconds)",
    ]


def _judged(number: int, unknown: Sequence[str] | None, settings: Settings) -> list[str]:
    known = number - len(unknown or ())
    lines = [f"{counted(known, 'id')} forgotten by all shards"] if known else []
    if unknown is None:
        lines.append("Whether the index had them is not known: not all answers of shards are there")
    elif unknown:
        lines.append(_said_unknown(unknown))
    return [*lines, f"{_gone(settings)} from now (index.erasure_seconds)"]


def _gone(settings: Settings) -> str:
    seconds = f"{settings.index.erasure_seconds:,.0f} s"
    return f"What the files of running workers hold of them is gone at most {seconds}"


def _said_unknown(unknown: Sequence[str]) -> str:
    named = ", ".join(unknown[:_NAMED])
    more = f" and {len(unknown) - _NAMED:,} more" if len(unknown) > _NAMED else ""
    return (
        f"{counted(len(unknown), 'id')} unknown to the index: {named}{more}. No such document came"
        " before it, or it is forgotten already, has expired, or is a copy for which another"
        " stands. `neardup explain --kafka ID` looks for it in the outputs"
    )


def _not_reached(settings: Settings, topology: Topology) -> list[_Left]:
    """Return what tombstones don't reach: what no running worker has, and what brokers keep."""
    kept = settings.index.snapshots
    left = [
        _Left(
            "a worker or a server that is off",
            "its state directory keeps them until you delete it or start it: then for at most"
            f" {settings.index.erasure_seconds:,.0f} s",
        )
    ]
    if kept.url is not None:
        left.append(
            _Left(
                f"snapshots in {without_credentials(kept.url)}",
                f"until {kept.keep} newer ones of the shard replace them, one every"
                f" {kept.every_seconds:,.0f} s while documents come",
            )
        )
    topics = (topology.documents, topology.unique, topology.duplicate, topology.rejected)
    logs = (topology.fingerprints, topology.matches(0).removesuffix("0") + "…")
    left.append(_Left(", ".join((*topics, *logs)), "the retention of each, set on the brokers"))
    return left
