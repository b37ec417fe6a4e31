"""Sends tombstones and corrections, and tells when every shard has judged them.

Also tells which tombstones have found something.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
from worker.bus.ranges import read_ranges
from worker.topology import Topology
from worker.wire.codec import FrameError, answer

_SECONDS = 60.0


class Behind(NamedTuple):
    """A partition whose last tombstone is not judged yet: its offset, and how far judging is."""

    place: TopicPartition
    offset: int
    judged: int


def send(
    bus: Bus,
    topology: Topology,
    records: Sequence[Outgoing],
    *,
    seconds: float = _SECONDS,
    clock: Callable[[], float] = monotonic,
) -> dict[TopicPartition, int]:
    """Send records to the documents; return the last one's offset in each partition.

    Without a partition, Kafka's default partitioner chooses one by the key, as for documents.
    A transaction that fails is repeated for up to ``seconds``, so records must do the same once or
    twice. Others may send at the same time: a writer that was fenced by another begins anew.

    Raises:
        Refused: the topic refuses one.
        BusError: Kafka failed.
    """
    deadline = clock() + seconds
    with closing(bus.log_writer(topology.forget, topology.documents)) as writer:
        while True:
            writer.renew()
            sent, trouble = _attempt(writer, records)
            if sent is not None:
                return sent
            if clock() > deadline:
                raise BusError(
                    f"{topology.documents}: nothing could be sent within {seconds:.0f} s: {trouble}"
                )


def _attempt(
    writer: LogWriter, records: Sequence[Outgoing]
) -> tuple[dict[TopicPartition, int] | None, str]:
    """Return where the records are; None and the reason if they must be sent again."""
    try:
        ends = writer.commit(records)
    except (Aborted, Fenced, OutcomeUnknown) as error:
        return None, str(error)
    known = {partition: offset for partition, offset in ends.items() if offset is not None}
    if len(known) < len(ends):
        return None, "the brokers did not say where they wrote it"
    return known, ""


def judged_reader(bus: Bus, topology: Topology) -> LogReader:
    """Return a reader that knows how far documents are judged, and reads the answers of shards."""
    return bus.log_reader(topology.group("route"), list(topology.inputs("route")))


def answered_up_to(reader: LogReader, topology: Topology) -> dict[TopicPartition, int]:
    """Return where *route* reads the documents, and the answers of all shards, now.

    Tombstones that are sent later, and the answers to them, come after that.

    Raises:
        BusError: Kafka doesn't answer.
    """
    partitions = [
        TopicPartition(topic, number)
        for topic, count in topology.inputs("route").items()
        for number in range(count)
    ]
    return {partition: at or 0 for partition, at in reader.committed(partitions).items()}


def behind(reader: LogReader, sent: Mapping[TopicPartition, int]) -> list[Behind]:
    """Return the partitions of documents whose tombstones are not judged by every shard.

    *route* passes an offset of the documents only when it has read the answers of all shards for
    it. A shard's answers are in one transaction with its own offset. So whatever *route* has
    passed, all shards have passed.

    Raises:
        BusError: *route* has no offset of a partition, or Kafka doesn't answer.
    """
    found = []
    for partition, at in reader.committed(sent).items():
        if at is None:
            raise BusError(
                f"the workers have no offset of {partition.topic}[{partition.partition}]; see"
                " `neardup topics verify`"
            )
        if at <= sent[partition]:
            found.append(Behind(partition, sent[partition], at))
    return found


def found(
    reader: LogReader,
    topology: Topology,
    sent: Mapping[TopicPartition, int],
    since: Mapping[TopicPartition, int],
    ids: Collection[bytes],
) -> set[bytes] | None:
    """Return the ids that a shard had a document of; None if that can't be known any more.

    Every shard must have judged the tombstones. ``since`` is what `answered_up_to` returned before
    they were sent. Not all answers are there if the next generation of the index took over
    meanwhile, or if retention has deleted some.

    Raises:
        BusError: the answers can't be read.
    """
    own = {
        partition.partition: range(since[partition], last + 1) for partition, last in sent.items()
    }
    spans = {
        partition: (at, reader.watermarks(partition)[1])
        for partition, at in since.items()
        if partition.partition in own and partition.topic != topology.documents
    }
    layout = topology.layout
    shards = {topology.matches(shard): shard for shard in range(layout.shards)}
    missing = set(spans)
    known: set[bytes] = set()
    try:
        for record in read_ranges(reader, spans):
            if record.value is None:
                continue
            frame = answer(record.value, layout.id, shards[record.topic])
            if frame is None or frame.refused is not None:
                continue
            tombstones, sought = frame.forgotten, own[record.partition]
            known.update(
                ident
                for offset, ident in zip(tombstones.offsets, tombstones.ids.unpack(), strict=True)
                if frame.start + int(offset) in sought
            )
            if frame.start < sought.stop <= frame.end:
                missing.discard(TopicPartition(record.topic, record.partition))
    except FrameError as error:
        raise BusError(str(error)) from error
    return known.intersection(ids) if not missing else None
