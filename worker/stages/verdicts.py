"""Makes the records that *route* publishes of documents with their answers."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worker.bus import AnyOutgoing, Header, Outgoing, OutgoingBatch, Record, RecordBatch
from worker.formats.base import headers_size
from worker.formats.match_writer import MatchWriter
from worker.metrics import table
from worker.metrics.metrics import Metrics, Tally
from worker.stages.answers import Found, Judged, allowance, best
from worker.stages.framing import checksums
from worker.stages.guard import FirstCases
from worker.stages.lanes import Step
from worker.topology import Topology
from worker.visible import excerpt
from worker.wire.headers import (
    ALLOWED_BY,
    FIRST,
    MATCHES,
    NOT_JUDGED,
    REFUSED,
    SEQUENCE,
    SOURCE,
    VERDICT,
    corrects,
    rejection,
    without_own,
)

_log = logging.getLogger(__name__)

_STAGE = "route"
_UNIQUE: Header = (VERDICT, b"unique")
_DUPLICATE: Header = (VERDICT, b"duplicate")
_CHARACTERS = 300
_OWN_BYTES = len(VERDICT) + len(SEQUENCE) + len(SOURCE) + 90
"""About how many bytes the headers of every verdict take."""


class _Verdict(NamedTuple):
    """The part of a published document that only one with matches has."""

    verdict: Header
    value: bytes | None
    headers: tuple[Header, ...]


class Verdicts:
    """Makes the records of verdicts, and counts them.

    Attributes:
        room: how many more bytes the transaction takes; negative if it is full.
    """

    def __init__(
        self,
        topology: Topology,
        writer: MatchWriter,
        same_partitions: Mapping[str, bool],
        first: FirstCases,
    ) -> None:
        """Take where to write, how to write matches, and who logs the first cases.

        ``same_partitions``: which outputs have as many partitions as the input.
        """
        self._documents = topology.documents
        self._unique = topology.unique
        self._duplicate = topology.duplicate
        self._rejected = topology.rejected
        self._writer = writer
        self._same = same_partitions
        self._first = first
        self._tally = Tally()
        self.begin(sys.maxsize)

    def begin(self, room: int) -> None:
        """Begin a transaction that has room for so many bytes."""
        self.room = room
        self._tally.clear()
        # What is counted for each document has no tally.
        self._unique_count = self._duplicate_count = 0
        self._timestamps: list[npt.NDArray[np.int64]] = []

    def count(self, metrics: Metrics) -> None:
        """Count what was published, once that is committed."""
        metrics.add(table.DOCUMENTS, self._unique_count, "unique")
        metrics.add(table.DOCUMENTS, self._duplicate_count, "duplicate")
        stamps = np.concatenate([np.empty(0, np.int64), *self._timestamps])
        seconds = np.maximum(0.0, metrics.clock() - stamps[stamps >= 0] / 1_000)
        metrics.observe(table.LATENCY_SECONDS, seconds)
        self._tally.commit(metrics)
        self.begin(self.room)

    def of(self, batch: RecordBatch, judged: Judged, step: Step) -> Iterator[AnyOutgoing]:
        """Return what to publish of waiting documents, and of judged ones that are gone, in order.

        Those that are what was judged follow each other in long runs.
        """
        number = batch.place.partition
        if step.refused is not None:
            yield from self._refused(batch, step)
            missing = np.setdiff1d(judged.offsets, batch.offsets, assume_unique=True)
            yield from (self.gone(number, gone) for gone in missing.tolist())
            return
        at, there = judged.rows_of(batch.offsets)
        same = np.zeros(len(batch), bool)
        same[there] = checksums(compress(batch.values, there)) == judged.checksums[at[there]]
        same &= [value is not None for value in batch.values]
        goes_on = same[1:] & same[:-1] & (np.diff(at) == 1)
        cuts = [*(np.flatnonzero(~goes_on) + 1).tolist(), len(batch)]
        named: tuple[frozenset[int], frozenset[int]] | None = None
        row = done = 0
        for cut in cuts:
            first = int(at[row])
            yield from (self.gone(number, gone) for gone in judged.offsets[done:first].tolist())
            if same[row]:
                yield from self._run(batch.rows(row, cut), judged.sequence + first, step.found)
            else:
                named = named or step.named()
                yield from self._other(batch.record(row), *named, judged=bool(there[row]))
            done = first + int(there[row:cut].sum())
            row = cut
        yield from (self.gone(number, gone) for gone in judged.offsets[done:].tolist())

    def _refused(self, batch: RecordBatch, step: Step) -> Iterator[Outgoing]:
        """Return what to publish of records in a range that has no verdicts."""
        accounted, forgetting = step.named()
        for record in batch:
            if record.offset in accounted:
                yield from self._other(record, accounted, forgetting, judged=False)
            else:
                yield self._reject(record, f"{REFUSED}: {excerpt(step.refused or '', _CHARACTERS)}")

    def _other(
        self,
        record: Record,
        accounted: frozenset[int],
        forgetting: frozenset[int],
        *,
        judged: bool,
    ) -> Iterator[Outgoing]:
        """Return what to publish of a record that isn't a document as it was judged."""
        if record.value is None and corrects(record.headers):
            return  # It is for the index alone.
        if record.value is None or record.offset in forgetting:
            yield from self._pass_on(record)
        elif judged:
            yield self._changed(record)
        elif record.offset not in accounted:
            yield self.not_judged(record)

    def _run(
        self, batch: RecordBatch, sequence: int, found: Mapping[int, list[Found]]
    ) -> Iterator[AnyOutgoing]:
        """Return the documents with their verdicts; their sequence numbers follow each other."""
        place, offsets = batch.place, batch.offsets.tolist()
        prefix = b"%s-%d-" % (place.topic.encode(), place.partition)
        values = list(batch.values)
        rejected: dict[int, str] = {}
        headers: list[list[Header]] = [
            [_UNIQUE, (SEQUENCE, b"%d" % number), (SOURCE, b"%s%d" % (prefix, offset))]
            for number, offset in enumerate(offsets, sequence)
        ]
        duplicate = [False] * len(batch)
        for row in [row for row, offset in enumerate(offsets) if offset in found] if found else ():
            made = self._verdict(batch.record(row), found[offsets[row]])
            if isinstance(made, str):
                rejected[row] = made
            elif made is not None:
                self.room -= len(made.value or b"") - len(values[row] or b"")
                self.room -= headers_size(made.headers)
                values[row] = made.value
                headers[row][0] = made.verdict
                headers[row] += made.headers
                duplicate[row] = made.verdict is _DUPLICATE
        if batch.headers is not None:
            self.room -= sum(map(headers_size, batch.headers))
            both = zip(batch.headers, headers, strict=True)
            headers = [[*without_own(given), *own] for given, own in both]
        stamps = [None if stamp < 0 else stamp for stamp in batch.timestamps.tolist()]
        self.room -= batch.size + _OWN_BYTES * len(batch)
        self._timestamps.append(batch.timestamps)
        unique = [not (other or row in rejected) for row, other in enumerate(duplicate)]
        self._unique_count += unique.count(True)
        self._duplicate_count += duplicate.count(True)
        for topic, mask in ((self._unique, unique), (self._duplicate, duplicate)):
            if any(mask):
                number = place.partition if self._same[topic] else None
                yield OutgoingBatch(
                    topic,
                    number,
                    list(compress(batch.keys, mask)),
                    list(compress(values, mask)),
                    list(compress(headers, mask)),
                    list(compress(stamps, mask)),
                )
        for row, reason in rejected.items():
            yield self._reject(batch.record(row), reason)

    def _verdict(self, record: Record, found: list[Found]) -> _Verdict | str | None:
        """Return what is published of a document with matches; None if it is unique all the same.

        Of a document that can't be published, return why not.
        """
        try:
            made = self._written(record, found)
        except Exception as error:  # noqa: BLE001 -- see worker.stages.guard
            return self._first.poison(record, error)
        if made is None:
            return None
        size = len(made.value or b"") + len(record.key or b"") + _OWN_BYTES
        size += headers_size(record.headers) + headers_size(made.headers)
        most = self._writer.max_record_bytes
        if size > most:
            return f"too-large: {size} bytes with its verdict; the limit of the outputs is {most}"
        if made.verdict is _UNIQUE:
            self._tally.add(table.ALLOWED)
        return made

    def _written(self, record: Record, found: list[Found]) -> _Verdict | None:
        ident = allowance(found)
        if ident is not None:
            return _Verdict(_UNIQUE, record.value, ((ALLOWED_BY, ident),))
        if matches := best(found, self._writer.max_matches):
            value, listed, first = self._writer.write(record, matches)
            return _Verdict(_DUPLICATE, value, ((MATCHES, listed), (FIRST, first)))
        return None

    def _forward(
        self,
        topic: str,
        record: Record,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
    ) -> Outgoing:
        outgoing = Outgoing(
            topic,
            record.partition if self._same[topic] else None,
            record.key,
            value,
            headers,
            record.timestamp if record.timestamp >= 0 else None,
        )
        self.room -= outgoing.size
        return outgoing

    def _pass_on(self, record: Record) -> Iterator[Outgoing]:
        """Send a tombstone, or a delete with a value, to both outputs.

        Whoever reads one of them, or compacts it, has to delete the document as well.
        """
        self._tally.add(table.TOMBSTONES)
        for topic in (self._unique, self._duplicate):
            yield self._forward(topic, record, record.value, without_own(record.headers))

    def _changed(self, record: Record) -> Outgoing:
        reason = "payload-changed: its checksum is not that of the document that was judged"
        return self._reject(record, reason)

    def gone(self, number: int, offset: int) -> Outgoing:
        """Return the rejection of a judged document of a partition that isn't there any more."""
        reason = "payload-gone: the document was deleted from the topic after it was judged"
        return self._reject(Record(self._documents, number, offset, -1, None, None), reason)

    def not_judged(self, record: Record) -> Outgoing:
        """Return the rejection of a document where another one was judged."""
        return self._reject(record, NOT_JUDGED)

    def _reject(self, record: Record, reason: str) -> Outgoing:
        self._tally.add(table.DOCUMENTS, 1, "rejected")
        self._tally.add(table.REJECTED, 1, reason.partition(":")[0])
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        if not reason.startswith(REFUSED):  # Its frame was told of; it may have thousands.
            _log.error("%s[%d] offset %d: %s", *place.values(), reason, extra=place)
        return self._forward(
            self._rejected, record, record.value, rejection(record, _STAGE, reason)
        )
