"""One pass over the rejected, up to where they ended when it began."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from worker.admin.progress import Progress, Refusal
from worker.admin.progress_log import Line, ProgressLog
from worker.bus import BusError, OutcomeUnknown
from worker.redrive.rejection import Rejection
from worker.redrive.writer import Writer
from worker.topology import Topology

__all__ = ["Counts", "Run"]

_BATCH_RECORDS = 200
_BATCH_BYTES = 4 << 20
_SILENCE_SECONDS = 15.0
_UNREADABLE = "UNREADABLE_HEADERS"
"""In place of Kafka's name of an error: a header's name is not UTF-8."""


@dataclass(slots=True)
class Counts:
    """What became of the records of a pass."""

    sent: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    again: int = 0
    unknown: int = 0
    """Documents of a transaction of which nobody knows whether it was committed."""
    refused: list[Refusal] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    """What retention took away before it was sent."""


_Place = tuple[int, int]
"""A partition of the rejected, and an offset in it."""


@dataclass(frozen=True, slots=True)
class _Item:
    rejection: Rejection
    due: bool

    @property
    def place(self) -> _Place:
        return self.rejection.record.partition, self.rejection.record.offset


@dataclass(slots=True)
class Run:
    """A pass; ``left`` is how many documents it may still send."""

    topology: Topology
    consumer: Consumer
    writer: Writer
    log: ProgressLog
    reasons: Collection[str]
    left: int | None
    counts: Counts
    progress: dict[int, Progress] = field(default_factory=dict)
    unwritten: set[int] = field(default_factory=set)
    """Partitions that are further than the log says; nothing is sent twice for want of it."""
    unsaid: list[Line] = field(default_factory=list)
    """Lines that go with the next transaction."""
    ends: dict[int, int] = field(default_factory=dict)
    heard: float = 0.0

    def begin(
        self, known: Mapping[int, Progress], ranges: Mapping[int, tuple[int, int]], *, new: bool
    ) -> None:
        """Go to where the last run ended; without one, begin with the earliest.

        What is ``new`` to the log is written with the first transaction.
        """
        topic = self.topology.rejected
        places = []
        for number, (low, high) in ranges.items():
            at = self.progress[number] = known.get(number, Progress(low))
            if new or number not in known:
                self.unwritten.add(number)
            start = at.start(self.reasons)
            if start < low:
                self._miss(number, low)
            start = max(low, start)
            if start < high:
                self.ends[number] = high
                places.append(Place(topic, number, start))
        self.consumer.assign(places)
        self.heard = monotonic()

    def _miss(self, number: int, low: int) -> None:
        """Note that records are gone that this run would have sent."""
        at = self.progress[number]
        place = f"{self.topology.rejected}[{number}]"
        gone = [offset for offset in at.refused if offset < low]
        if gone:
            self.counts.deleted.append(f"{len(gone):,} refused before are gone from {place}")
        for offset in gone:
            del at.refused[offset]
            self.unsaid.append(self.log.refusal(number, offset, None))
        start = at.start(self.reasons)
        if start < low:
            self.counts.deleted.append(f"{place} lost offsets {start} to {low - 1} unsent")
            at.passed(low, self.reasons)
        self.unwritten.add(number)

    def step(self) -> bool:
        """Send a batch; tell whether there may be more.

        Raises:
            BusError: Kafka failed, after the last transaction or before the end of the next.
            OutcomeUnknown: it failed so that perhaps `Counts.unknown` documents were sent.
            KafkaException: the rejected can't be read.
        """
        if not self.ends or self.left == 0:
            return False
        piece: list[_Item] = []
        due = 0
        for item in self._collect():
            piece.append(item)
            due += item.due
            if due == self.left:
                self._send(piece)
                piece, due = [], 0
                if self.left == 0:
                    return False
        self._send(piece)
        return True

    def finish(self) -> None:
        """Write how far the pass came, if it ended with records that were not due.

        Raises:
            BusError: see `step`.
            OutcomeUnknown: see `step`.
        """
        if self.unwritten or self.unsaid:
            self._commit([], {}, [])

    def _collect(self) -> list[_Item]:
        """Read a batch of a bounded size, or what there is."""
        items: list[_Item] = []
        size = 0
        while len(items) < _BATCH_RECORDS and size < _BATCH_BYTES and self.ends:
            message = self.consumer.poll(0.05 if items else 0.5)
            if message is None:
                break
            if self._is_record(message):
                rejection = Rejection.of(message)
                items.append(_Item(rejection, self._is_due(rejection)))
                size += rejection.size
        if items:
            self.heard = monotonic()
        elif self.ends and monotonic() - self.heard > _SILENCE_SECONDS:
            raise BusError(f"{self.topology.rejected} brings nothing for {_SILENCE_SECONDS:.0f} s")
        return items

    def _is_record(self, message: Message) -> bool:
        """Tell a record of this pass from ends of partitions, errors, and later records."""
        number, offset = message.partition() or 0, message.offset() or 0
        error = message.error()
        if error is None:
            end = self.ends.get(number, 0)
            if offset + 1 >= end:
                self.ends.pop(number, None)
            return offset < end
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 -- librdkafka's own code
            self.ends.pop(number, None)
        elif not error.retriable():
            raise KafkaException(error)
        return False

    def _is_due(self, rejection: Rejection) -> bool:
        record, reason = rejection.record, rejection.reason
        if not self.progress[record.partition].is_due(record.offset, reason):
            return False
        if self.reasons and reason not in self.reasons:
            self.counts.left[reason] += 1
            return False
        if record.value is None:
            # The payload was gone; without it this would say: forget the document.
            self.counts.empty += 1
            return False
        return True

    def _send(self, items: Sequence[_Item]) -> None:
        """Send what is due, the refused left out, in as few transactions as that takes."""
        refused = {
            item.place: _UNREADABLE for item in items if item.due and not item.rejection.readable
        }
        pieces = deque([items])
        while pieces:
            piece = pieces.popleft()
            sent = [item for item in piece if item.due and item.place not in refused]
            found = self._write(piece, sent, refused)
            if len(sent) == 1 and found:
                refused[sent[0].place] = found[0]
                pieces.appendleft(piece)
            elif found:
                alone = {sent[number].place for number in found}
                pieces.extendleft(reversed(list(_apart(piece, alone))))

    def _write(
        self, piece: Sequence[_Item], sent: Sequence[_Item], refused: Mapping[_Place, str]
    ) -> dict[int, str]:
        """Send documents and how far that goes; give those of them that were refused."""
        after: dict[int, Progress] = {}
        lines: list[Line] = []
        noted: list[Refusal] = []
        for item in piece:
            number, offset = item.place
            at = after.setdefault(number, self.progress[number].copy())
            at.passed(offset + 1, self.reasons)
            if item.place in refused:
                refusal = at.refused[offset] = item.rejection.refusal(refused[item.place])
                noted.append(refusal)
                lines.append(self.log.refusal(number, offset, refusal))
            elif item.due and offset in at.refused:
                del at.refused[offset]
                lines.append(self.log.refusal(number, offset, None))
        if sent or lines:
            found = self._commit(sent, after, lines)
            if found:
                return found
        else:
            self.progress |= after
            self.unwritten |= after.keys()
        self.counts.refused += noted
        return {}

    def _commit(
        self, sent: Sequence[_Item], after: Mapping[int, Progress], lines: Sequence[Line]
    ) -> dict[int, str]:
        """Write a transaction; what was refused, if anything, makes it one that never was."""
        progress = {**self.progress, **after}
        touched = sorted(self.unwritten | after.keys())
        topic, partitions = self.topology.documents, self.topology.partitions
        try:
            written = self.writer.write(
                [item.rejection.document(topic, partitions) for item in sent],
                [*(self.log.line(n, progress[n]) for n in touched), *self.unsaid, *lines],
            )
        except OutcomeUnknown:
            self.counts.unknown = len(sent)
            raise
        if written.refused:
            return written.refused
        self.progress = progress
        self.unwritten.clear()
        self.unsaid.clear()
        for item in sent:
            self.counts.sent[item.rejection.reason] += 1
            self.counts.again += item.rejection.before > 0
        if self.left is not None:
            self.left -= len(sent)
        if written.trouble:
            raise BusError(f"an answer or a connection was lost ({written.trouble})")
        return {}


def _apart(piece: Sequence[_Item], alone: Collection[_Place]) -> Iterator[list[_Item]]:
    """Cut a piece before and after each of some records, in its order."""
    part: list[_Item] = []
    for item in piece:
        if item.place in alone:
            if part:
                yield part
            yield [item]
            part = []
        else:
            part.append(item)
    if part:
        yield part
