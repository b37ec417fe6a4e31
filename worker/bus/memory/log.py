"""One partition's log: records, open transactions, control records."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from operator import itemgetter
from typing import NamedTuple

from worker.bus import Claim, LogTruncated, OffsetOutOfRange, Outgoing, Record, TopicPartition

_OFFSET = itemgetter(Record._fields.index("offset"))
_GONE = Record("", -1, -1, -1, None, None)


class Fetched(NamedTuple):
    """Records, the position after them (past control records, too), and their bytes."""

    records: list[Record]
    position: int
    size: int


class PartitionLog:
    """An append-only sequence of records for read-committed readers.

    Offsets are never reused. A transaction's marker takes one offset, an aborted record keeps
    its own, and neither is ever delivered. So the delivered offsets have gaps, as in Kafka.

    Attributes:
        place: the topic and the number of the partition.
        start: the offset of the oldest record that retention has left.
        end: the offset that the next record will get.
        epoch: the leader epoch: how often the log was cut off.
        stable: the last stable offset: the first record of the oldest open transaction,
            or the end. No record from there on is delivered.
    """

    __slots__ = (
        "_cuts",
        "_log_append_time",
        "_open",
        "_past",
        "_records",
        "end",
        "epoch",
        "place",
        "stable",
        "start",
    )

    def __init__(
        self, partition: TopicPartition, first_offset: int = 0, *, log_append_time: bool = False
    ) -> None:
        """Create an empty log whose next record gets ``first_offset``."""
        self.place = partition
        self.start = self.end = self.stable = first_offset
        self._log_append_time = log_append_time
        # In ascending order of offsets. The slots before `_past` are trimmed, and hold _GONE.
        self._records: list[Record] = []
        self._past = 0
        # The half-open ranges that each open transaction wrote. Later entries begin at higher
        # offsets, so the first entry determines the last stable offset.
        self._open: dict[Hashable, list[tuple[int, int]]] = {}
        self.epoch = 0
        self._cuts: list[tuple[int, int]] = []  # Epochs, and the offsets at which they begin.

    def extend(
        self, batch: Iterable[Outgoing], now: int, transaction: Hashable | None = None
    ) -> int:
        """Append records and return the first one's offset.

        Records of a ``transaction`` are invisible until it commits. ``now`` (ms) stamps the
        records without a timestamp, or all records of a log-append-time topic.
        """
        topic, partition = self.place
        base = offset = self.end
        keep_timestamp, epoch = not self._log_append_time, self.epoch
        append = self._records.append
        make = tuple.__new__  # half the time of Record()
        for _, _, key, value, headers, timestamp in batch:
            stamp = timestamp if keep_timestamp and timestamp is not None else now
            append(make(Record, (topic, partition, offset, stamp, key, value, headers, epoch)))
            offset += 1
        self.end = offset
        if transaction is not None:
            self._open.setdefault(transaction, []).append((base, offset))
        self._settle()
        return base

    def finish(
        self,
        transaction: Hashable,
        now: int,  # noqa: ARG002 -- for logs that delete what is old
        *,
        commit: bool,
    ) -> None:
        """End a transaction that wrote here: write its marker; publish or drop its records.

        ``now`` (ms) stamps the marker.
        """
        written = self._open.pop(transaction)
        if not commit:
            # No reader has seen these: they are above the last stable offset.
            for low, high in reversed(written):
                del self._records[self._index(low) : self._index(high)]
        self.end += 1
        self._settle()

    def cut(self, offset: int) -> None:
        """Lose all records from an offset on, as by an unclean election; no transaction is open."""
        del self._records[self._index(offset) :]
        self.end = offset
        self.epoch += 1
        self._cuts.append((self.epoch, offset))
        self._settle()

    def confirm(self, claim: Claim | None) -> None:
        """Raise LogTruncated if the log contradicts a claim."""
        ends = (
            [] if claim is None else [start for epoch, start in self._cuts if epoch > claim.epoch]
        )
        if claim is not None and ends and min(ends) < claim.offset:
            raise LogTruncated(self.place, claim, min(ends))

    def check(self, position: int) -> None:
        """Raise OffsetOutOfRange for a position outside the log.

        A position between the last stable offset and the end is valid, as in Kafka.
        """
        if not self.start <= position <= self.end:
            raise OffsetOutOfRange(self.place, position, self.start, self.end)

    def fetch(self, position: int, limit: int, max_bytes: int = sys.maxsize) -> Fetched:
        """Return at most ``limit`` records from ``position`` on.

        Stops after the record that reaches ``max_bytes`` of keys and values.

        Raises:
            OffsetOutOfRange: see `check`.
        """
        self.check(position)
        if position >= self.stable:
            return Fetched([], position, 0)
        records = self._records
        first = stop = self._index(position)
        end = self._index(self.stable) if self._open else len(records)
        size = 0
        while stop < min(first + limit, end) and size < max_bytes:
            record = records[stop]
            size += len(record.key or b"") + len(record.value or b"")
            stop += 1
        after = self.stable if stop == end else records[stop].offset
        return Fetched(records[first:stop], after, size)

    def trim(self, before: int) -> None:
        """Drop the records before an offset, in amortised constant time per record.

        Raises:
            OffsetOutOfRange: it is after the last stable offset.
        """
        if before > self.stable:
            raise OffsetOutOfRange(self.place, before, self.start, self.stable)
        if before <= self.start:
            return
        self.start = before
        keep = self._index(before)
        if keep >= len(self._records) - keep:  # fewer slots stay than go
            del self._records[:keep]
            self._past = 0
        else:
            self._records[self._past : keep] = [_GONE] * (keep - self._past)
            self._past = keep

    def _settle(self) -> None:
        """Update the last stable offset."""
        self.stable = next(iter(self._open.values()))[0][0] if self._open else self.end

    def _index(self, offset: int) -> int:
        """Return the list index of the first record at or after an offset."""
        return bisect_left(self._records, offset, self._past, key=_OFFSET)
