"""``neardup forget``: have the index forget documents, and say when nothing is left of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import count
from time import sleep

from worker.admin import Cluster
from worker.admin.forgetting import Behind, behind, judged_reader, send_tombstones
from worker.admin.reindex.in_use import in_use
from worker.bus import Bus, BusError, Record, TopicPartition
from worker.bus.kafka.bus import KafkaBus
from worker.cli.errors import EXIT_FAILED, CommandError, status_of
from worker.cli.screen import print_json, tell
from worker.formats.base import DocumentFormat, Unreadable
from worker.formats.choice import document_format
from worker.settings import Settings
from worker.topology import Topology
from worker.wire.headers import FORGET

__all__ = ["forget", "forget_on"]

_PAUSE_SECONDS = 0.5
_TOLD_EVERY = 60
"""Pauses between two lines that say what is waited for."""


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
    topology = settings.topology(1)
    documents = document_format(settings)
    wanted = _wanted(documents, ids)
    if bus.partitions([topology.documents])[topology.documents] is None:
        raise CommandError(f"there is no topic {topology.documents}; run `neardup topics create`")
    sent = send_tombstones(bus, topology, wanted, keys=documents.keys)
    if wait:
        _await(bus, topology, sent, pause)
    seconds = settings.index.erasure_seconds
    if as_json:
        print_json(_summary(ids, sent, seconds, judged=wait))
    else:
        tell(_said(len(wanted), topology, seconds, judged=wait))


def _wanted(documents: DocumentFormat, ids: Sequence[str]) -> list[bytes]:
    """Return the ids, each once.

    Raises:
        CommandError: no document can have this id.
    """
    wanted: dict[bytes, None] = {}
    for ident in ids:
        header = (FORGET, ident.encode(errors="surrogateescape"))
        try:
            found = documents.forgotten(Record("", 0, 0, -1, None, None, (header,)))
        except Unreadable as error:
            raise CommandError(f"{ident!r}: {error}; nothing was sent") from None
        wanted[found] = None
    return list(wanted)


def _await(
    bus: Bus,
    topology: Topology,
    sent: Mapping[TopicPartition, int],
    pause: Callable[[float], None],
) -> None:
    """Return when every shard has judged the tombstones.

    Raises:
        CommandError: that can't be seen, or the user doesn't want to wait any longer.
    """
    left = "the tombstones were sent, and are judged as soon as the workers read them"
    try:
        with closing(judged_reader(bus, topology)) as reader:
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
    ids: Sequence[str], sent: Mapping[TopicPartition, int], seconds: float, *, judged: bool
) -> dict[str, object]:
    return {
        "ids": list(dict.fromkeys(ids)),
        "tombstones": [
            {"topic": place.topic, "partition": place.partition, "offset": offset}
            for place, offset in sorted(sent.items())
        ],
        "judged": judged,
        "erasure_seconds": seconds,
    }


def _said(number: int, topology: Topology, seconds: float, *, judged: bool) -> str:
    ids = "1 id" if number == 1 else f"{number:,} ids"
    begun = (
        f"{ids} forgotten by all shards"
        if judged
        else f"{ids} sent to {topology.documents} to be forgotten"
    )
    since = "now" if judged else "then"
    return (
        f"{begun}; what their stores' files still hold is gone at most {seconds:,.0f} s from"
        f" {since} (index.erasure_seconds), logs and snapshots by their own retention"
    )
