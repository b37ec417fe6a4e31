"""Sends tombstones, and tells when every shard has judged them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from time import monotonic
from typing import NamedTuple

from worker.bus import (
    Aborted,
    Bus,
    BusError,
    Fenced,
    LogReader,
    LogWriter,
    OutcomeUnknown,
    Outgoing,
    TopicPartition,
)
from worker.formats.keys import Keys
from worker.topology import Topology
from worker.wire.headers import FORGET

__all__ = ["Behind", "behind", "judged_reader", "send_tombstones"]

_SECONDS = 60.0


class Behind(NamedTuple):
    """A partition whose last tombstone is not judged yet: its offset, and how far judging is."""

    place: TopicPartition
    offset: int
    judged: int


def send_tombstones(
    bus: Bus,
    topology: Topology,
    ids: Iterable[bytes],
    *,
    keys: Keys | None = None,
    clock: Callable[[], float] = monotonic,
) -> dict[TopicPartition, int]:
    """Send a tombstone for each id; return the last one's offset in each partition of documents.

    The record's key is the one that has the id, if there is one, or else the id. Kafka's default
    partitioner chooses the partition from it, as it does for documents with that key. A header has
    the id, so the tombstone forgets it whatever the key. A transaction that fails is repeated for
    up to 60 s: whether a document is forgotten once or twice makes no difference. Runs may take
    place at the same time: one that was fenced by another begins anew.

    Raises:
        Refused: the topic refuses one.
        BusError: Kafka failed.
    """
    keys = keys or Keys()
    tombstones = [
        Outgoing(topology.documents, None, keys.key(ident), None, ((FORGET, ident),))
        for ident in ids
    ]
    deadline = clock() + _SECONDS
    with closing(bus.log_writer(topology.forget, topology.documents)) as writer:
        while True:
            writer.renew()
            sent, trouble = _attempt(writer, tombstones)
            if sent is not None:
                return sent
            if clock() > deadline:
                raise BusError(
                    f"{topology.documents}: no tombstone could be sent within {_SECONDS:.0f} s:"
                    f" {trouble}"
                )


def _attempt(
    writer: LogWriter, tombstones: list[Outgoing]
) -> tuple[dict[TopicPartition, int] | None, str]:
    """Return where the tombstones are; None and the reason if they must be sent again."""
    try:
        ends = writer.commit(tombstones)
    except (Aborted, Fenced, OutcomeUnknown) as error:
        return None, str(error)
    known = {place: offset for place, offset in ends.items() if offset is not None}
    if len(known) < len(ends):
        return None, "the brokers did not say where they wrote it"
    return known, ""


def judged_reader(bus: Bus, topology: Topology) -> LogReader:
    """Return a reader that knows how far documents are judged, for `behind`."""
    return bus.log_reader(topology.group("route"), [topology.documents])


def behind(reader: LogReader, sent: Mapping[TopicPartition, int]) -> list[Behind]:
    """Return the partitions of documents whose tombstones are not judged by every shard.

    *route* passes an offset of the documents only when it has read the answers of all shards for
    it. A shard's answers are in one transaction with its own offset. So whatever *route* has
    passed, all shards have passed.

    Raises:
        BusError: *route* has no offset of a partition, or Kafka doesn't answer.
    """
    found = []
    for place, at in reader.committed(sent).items():
        if at is None:
            raise BusError(
                f"the workers have no offset of {place.topic}[{place.partition}]; see"
                " `neardup topics verify`"
            )
        if at <= sent[place]:
            found.append(Behind(place, sent[place], at))
    return found
