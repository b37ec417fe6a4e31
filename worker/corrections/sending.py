"""Sends corrections, and tells when every shard has judged them, and what the shards found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from time import monotonic
from typing import NamedTuple

from worker.bus import (
    Aborted,
    Bus,
    BusError,
    Fenced,
    LogWriter,
    OutcomeUnknown,
    Outgoing,
    Record,
    TopicPartition,
)
from worker.bus.ranges import read_ranges
from worker.closing import Closing
from worker.corrections.request import Forget, Request, encoded
from worker.formats.keys import Keys
from worker.topology import Topology
from worker.wire.codec import FrameError, answer
from worker.wire.headers import CORRECTION, FORGET, without_own

SECONDS = 60.0
"""How long it is tried to send something."""
_KEY = b"neardup-correction:"
"""Begins the keys of corrections, so that none is a document's: a topic may be compacted."""


def record_of(request: Request, topology: Topology, keys: Keys) -> Outgoing:
    """Return the record that carries out a request.

    Those of an allowance have the same key, so they keep their order. The key of a tombstone is
    the one that has the id, if there is one, or else the id, so it is where documents with that key
    are. A header has the id: the tombstone forgets that whatever the key.
    """
    ident = request.id.encode()
    headers: tuple[tuple[str, bytes], ...] = ((CORRECTION, encoded(request)),)
    key: bytes | None = _KEY + ident
    if isinstance(request, Forget):
        key, headers = keys.key(ident), ((FORGET, ident), *headers)
    return Outgoing(topology.documents, None, key, None, headers)


def restored(record: Record) -> Outgoing:
    """Return a document as it is sent again, with its own time: it is judged anew."""
    return Outgoing(
        record.topic,
        record.partition,
        record.key,
        record.value,
        without_own(record.headers),
        record.timestamp if record.timestamp > 0 else None,
    )


def send(
    bus: Bus,
    topology: Topology,
    records: Sequence[Outgoing],
    *,
    seconds: float = SECONDS,
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
    """Return the last offsets; None and the reason if the records must be sent again."""
    try:
        ends = writer.commit(records)
    except (Aborted, Fenced, OutcomeUnknown) as error:
        return None, str(error)
    known = {partition: offset for partition, offset in ends.items() if offset is not None}
    if len(known) < len(ends):
        return None, "the brokers did not say where they wrote it"
    return known, ""


class Behind(NamedTuple):
    """A partition whose last record that was sent is not judged yet, and how far judging is."""

    partition: TopicPartition
    offset: int
    judged: int


class Judging(Closing):
    """Tells how far the documents are judged, and reads the answers of shards."""

    def __init__(self, bus: Bus, topology: Topology) -> None:
        """Take where to read. Nothing is read before the first call."""
        self._topology = topology
        self._reader = bus.log_reader(topology.group("route"), list(topology.inputs("route")))
        self._since: dict[TopicPartition, int] = {}

    def begin(self) -> None:
        """Note where *route* reads the documents and the answers of all shards.

        What is sent later, and the answers to it, come after that.

        Raises:
            BusError: Kafka doesn't answer.
        """
        partitions = [
            TopicPartition(topic, number)
            for topic, count in self._topology.inputs("route").items()
            for number in range(count)
        ]
        self._since = {
            partition: at or 0 for partition, at in self._reader.committed(partitions).items()
        }

    def waiting(self) -> bool:
        """Return whether there are documents that aren't judged, or that can't be known.

        Raises:
            BusError: Kafka doesn't answer.
        """
        numbers = range(self._topology.layout.partitions)
        documents = [TopicPartition(self._topology.documents, number) for number in numbers]
        left = {}
        for partition, at in self._reader.committed(documents).items():
            if at is None:
                return True
            end = self._reader.watermarks(partition)[1]
            if at < end:
                left[partition] = (at, end)
        return any(record.value is not None for record in read_ranges(self._reader, left))

    def behind(self, sent: Mapping[TopicPartition, int]) -> Behind | None:
        """Return a partition of documents where not every shard has judged what was sent, if any.

        *route* passes an offset of the documents only when it has read the answers of all shards
        for it. A shard's answers are in one transaction with its own offset. So whatever *route*
        has passed, all shards have passed.

        Raises:
            BusError: *route* has no offset of a partition, or Kafka doesn't answer.
        """
        committed = self._reader.committed(sent)
        for partition, at in committed.items():
            if at is None:
                raise BusError(
                    f"the workers have no offset of {partition.topic}[{partition.partition}]; see"
                    " `neardup topics verify`"
                )
        waiting = (
            Behind(partition, sent[partition], at)
            for partition, at in committed.items()
            if at is not None and at <= sent[partition]
        )
        return next(waiting, None)

    def done(self, sent: Mapping[TopicPartition, int]) -> set[bytes] | None:
        """Return the ids for which a shard has done something; None if that can't be known.

        Call `begin` before records are sent, and this when every shard has judged them. Not all
        answers are there if the next generation of the index took over meanwhile, or if retention
        has deleted some.

        Raises:
            BusError: the answers can't be read.
        """
        if not self._since:
            return None
        topology, since = self._topology, self._since
        own = {
            partition.partition: range(since[partition], last + 1)
            for partition, last in sent.items()
        }
        spans = {
            partition: (at, self._reader.watermarks(partition)[1])
            for partition, at in since.items()
            if partition.partition in own and partition.topic != topology.documents
        }
        layout = topology.layout
        shards = {topology.matches(shard): shard for shard in range(layout.shards)}
        missing = set(spans)
        known: set[bytes] = set()
        try:
            for record in read_ranges(self._reader, spans):
                if record.value is None:
                    continue
                frame = answer(record.value, layout.id, shards[record.topic])
                if frame is None or frame.refused is not None:
                    continue
                tombstones, sought = frame.forgotten, own[record.partition]
                ids_there = tombstones.ids.unpack()
                known.update(
                    ident
                    for offset, ident in zip(tombstones.offsets, ids_there, strict=True)
                    if frame.start + int(offset) in sought
                )
                if frame.start < sought.stop <= frame.end:
                    missing.discard(TopicPartition(record.topic, record.partition))
        except FrameError as error:
            raise BusError(str(error)) from error
        return known if not missing else None

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()
