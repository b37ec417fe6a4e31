"""Finds documents on the topics: by their position, by an id, by a header. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import NamedTuple

from worker.bus import (
    Bus,
    BusError,
    LogReader,
    OffsetOutOfRange,
    PartitionUnreadable,
    Record,
    TopicPartition,
)
from worker.bus.ranges import RangeReader, Ranges, read_ranges
from worker.closing import Closing
from worker.documents.published import Document, Documents, document_of, ident_of
from worker.formats.choice import document_format
from worker.formats.unreadable import Unreadable
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import FrameError, decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import POSITION_BITS
from worker.wire.headers import header

_SECONDS = 5.0
_WAIT_SECONDS = 0.2
_BYTES = 8 << 20
_MOST_OFFSETS = 500_000
"""The most offsets of the outputs that a search reads."""
_FOUND = 50
_OFFSET_DIGITS = 18
_FIRST_WINDOW = 2_000
_GROWTH = 4
"""A log can't be read backwards. Windows are, each larger than the one after it."""
FORGOTTEN = "it was forgotten"


class Gone(Exception):
    """A document can't be shown; the message says why."""


class Located(NamedTuple):
    """A document as it is in the topic of the documents.

    ``logged`` is the log's time of its frame, in ms.
    """

    id: str
    text: str
    source: str
    time: int
    logged: int


class Lookup(Closing):
    """Reads with readers of its own; belongs to one thread. Each call takes a bounded time."""

    def __init__(
        self,
        settings: Settings,
        topology: Topology,
        bus: Bus,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take where to look. Nothing is read before the first call."""
        self._topology = topology
        self._bus = bus
        self._clock = clock
        self._documents = document_format(settings)
        self._readers: dict[tuple[str, ...], LogReader] = {}

    def document(self, sequence: int) -> Located:
        """Return the document with a sequence number.

        Raises:
            Gone: it is no longer there, or can't be read.
            BusError: the topics can't be read.
        """
        topology = self._topology
        frame, logged = self.frame(sequence >> POSITION_BITS)
        at = sequence & ((1 << POSITION_BITS) - 1)
        if at >= len(frame.offsets):
            raise Gone("there is no document with this number")
        ident = bytes(frame.ids.unpack()[at]).decode(errors="replace")
        offset = frame.start + int(frame.offsets[at])
        found = self._record_at(
            TopicPartition(topology.documents, frame.partition), offset, "the document"
        )
        try:
            text = self._documents.read(found).text
        except Unreadable as error:
            raise Gone(f"it can't be read: {error}") from None
        return Located(ident, text, f"{frame.partition}-{offset}", found.timestamp, logged)

    def frame(self, number: int) -> tuple[FingerprintFrame, int]:
        """Return the frame with a number, and when it came, in ms.

        Raises:
            Gone: it is no longer there.
            BusError: the topics can't be read.
        """
        topology = self._topology
        offset = number - topology.layout.numbered_from
        if offset < 0:
            raise Gone("its place was in a log of fingerprints that a reindex has replaced")
        record = self._record_at(topology.order, offset, "the frame with its place")
        try:
            return decode(FingerprintFrame, record.value, topology.layout.id), record.timestamp
        except FrameError as error:
            raise Gone(f"no frame is at its place: {error}") from None

    def origin(self, ident: str) -> Record:
        """Return the record of the documents in which the latest document with an id came.

        Raises:
            Gone: it is no longer there, or isn't found.
            BusError: the topics can't be read.
        """
        found = self.with_id(ident).documents
        if not found:
            raise Gone("the outputs have no document with this id, as far as was searched")
        source = found[0].source
        own, record = self.at(source)
        if own.decode() != ident:
            raise Gone(f"at {source} of {self._topology.documents} is another document")
        return record

    def at(self, source: str) -> tuple[bytes, Record]:
        """Return the id and the record of the document at a position, ``partition-offset``.

        Raises:
            Gone: it is no longer there.
            BusError: the topics can't be read.
        """
        partition, _, offset = source.rpartition("-")
        topology = self._topology
        known = partition.isdecimal() and offset.isdecimal() and len(offset) <= _OFFSET_DIGITS
        if not known or int(partition) >= topology.layout.partitions:
            raise Gone(f"{source!r} is no place in {topology.documents}")
        record = self._record_at(
            TopicPartition(topology.documents, int(partition)), int(offset), "the document"
        )
        own = f"{topology.documents}-{source}".encode()
        return self._documents.identify(record.value or b"", record.key) or own, record

    def _record_at(self, partition: TopicPartition, offset: int, what: str) -> Record:
        """Return the record at an offset.

        Raises:
            Gone: there is none.
        """
        reader = self._reader((self._topology.documents, self._topology.fingerprints), single=True)
        gone = Gone(f"{what} is no longer on {partition.topic}: retention has removed it")
        reading = RangeReader(reader, silence=_SECONDS, clock=self._clock)
        records: list[Record] = []
        try:
            reading.start(partition, offset, offset + 1)
            try:
                while reading.left and not records:
                    records = reading.read(1, _BYTES, _WAIT_SECONDS)
            finally:  # Otherwise the next read would fail here as well.
                reading.stop(partition)
        except OffsetOutOfRange:
            raise gone from None
        except PartitionUnreadable as error:
            raise Gone(str(error)) from None
        except BusError:
            self.close()
            raise
        if not records or records[0].value is None:
            raise gone
        return records[0]

    def with_id(self, ident: str) -> Documents:
        """Return the latest documents with an id.

        Raises:
            BusError: the topics can't be read.
        """
        return self._search(lambda record: ident_of(self._documents, record) == ident)

    def never_came(self, ident: str) -> bool:
        """Return whether it is certain that no document with an id was ever published.

        Raises:
            BusError: the topics can't be read.
        """
        found = self.with_id(ident)
        topics = self._topology.unique, self._topology.duplicate
        spans = self._spans(self._reader(topics), topics)
        return found.complete and not found.documents and not any(low for low, _ in spans.values())

    def with_header(self, name: str, value: str | None) -> Documents:
        """Return the latest documents with a header; without ``value``, whatever that is.

        Raises:
            BusError: the topics can't be read.
        """
        wanted = None if value is None else value.encode(errors="surrogatepass")

        def matches(record: Record) -> bool:
            if wanted is None:
                return any(key == name for key, _ in record.headers)
            return header(record, name) == wanted

        return self._search(matches)

    def _search(self, matches: Callable[[Record], bool]) -> Documents:
        """Read the outputs backwards until enough is found, or long enough was searched."""
        topics = self._topology.unique, self._topology.duplicate
        reader = self._reader(topics)
        deadline = self._clock() + _SECONDS
        found: list[Document] = []
        searched, complete, late = 0, True, False
        try:
            for window in windows(self._spans(reader, topics)):
                here = []
                read = 0
                for record in read_ranges(reader, window, clock=self._clock):
                    read += 1
                    if late := self._clock() > deadline:
                        break
                    if record.value is not None and matches(record):
                        verdict = "unique" if record.topic == topics[0] else "duplicate"
                        here.append(document_of(self._documents, record, verdict))
                kept = [one for one in here if one is not None]
                found += sorted(kept, key=lambda one: -one.sequence)
                searched += read if late else sum(high - low for low, high in window.values())
                if late or searched > _MOST_OFFSETS or len(found) >= _FOUND:
                    complete = False
                    break
        except BusError:
            self.close()
            raise
        return Documents(found[:_FOUND], searched, complete)

    def _spans(self, reader: LogReader, topics: Sequence[str]) -> Ranges:
        places = (
            TopicPartition(topic, number)
            for topic, count in self._bus.partitions(topics).items()
            for number in range(count or 0)
        )
        return {place: reader.watermarks(place) for place in places}

    def _reader(self, topics: tuple[str, ...], *, single: bool = False) -> LogReader:
        if topics not in self._readers:
            group = self._topology.group("serve")
            self._readers[topics] = self._bus.log_reader(group, topics, single=single)
        return self._readers[topics]

    def close(self) -> None:
        """Close the readers; a later call makes new ones."""
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()


def windows(spans: Ranges) -> Iterator[dict[TopicPartition, tuple[int, int]]]:
    """Cut the spans into windows, those at their ends first."""
    left = {partition: span for partition, span in spans.items() if span[0] < span[1]}
    size = _FIRST_WINDOW
    while left:
        yield {partition: (max(low, high - size), high) for partition, (low, high) in left.items()}
        left = {
            partition: (low, high - size)
            for partition, (low, high) in left.items()
            if high - size > low
        }
        size *= _GROWTH
