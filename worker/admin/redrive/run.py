"""One pass over *rejected*, up to its end at the start of the pass."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from worker.admin.redrive.progress import BY_NAME, Line, Progress, ProgressLog, Refusal
from worker.admin.redrive.rejection import Rejection
from worker.bus import Bus, BusError, LogTruncated, OffsetOutOfRange, TopicPartition
from worker.bus.ranges import RangeReader
from worker.loop.options import LoopOptions
from worker.topology import Topology
from worker.visible import counted

_BATCH_RECORDS = 200
_BATCH_BYTES = 4 << 20
_FIRST_SECONDS = 0.5
_NEXT_SECONDS = 0.05
"""The wait for the first records of a batch, and for further ones."""
_UNREADABLE = "UNREADABLE_HEADERS"
"""Used in place of Kafka's name of an error if a header's name is not UTF-8."""


@dataclass(slots=True)
class Counts:
    """The outcome of a pass, in numbers of records."""

    sent: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    foreign: int = 0
    """Records that neardup did not write."""
    empty: int = 0
    again: int = 0
    unknown: int = 0
    """Documents of a transaction whose outcome is unknown."""
    refused: list[Refusal] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    """Messages about records that retention deleted before they were sent."""


_Position = tuple[int, int]
"""A partition of the rejected topic, and an offset in it."""


@dataclass(frozen=True, slots=True)
class _Item:
    rejection: Rejection
    due: bool

    @property
    def position(self) -> _Position:
        return self.rejection.record.partition, self.rejection.record.offset


@dataclass(slots=True)
class Run:
    """A pass; ``left`` is how many documents it may still send, None for no limit."""

    topology: Topology
    reading: RangeReader
    log: ProgressLog
    reasons: Collection[str]
    left: int | None
    counts: Counts
    progress: dict[int, Progress] = field(default_factory=dict)
    unwritten: set[int] = field(default_factory=set)
    """Partitions that are further than the log says; losing this sends nothing twice."""
    pending_lines: list[Line] = field(default_factory=list)
    """Lines to write with the next transaction."""

    def begin(
        self, known: Mapping[int, Progress], ranges: Mapping[int, tuple[int, int]], *, new: bool
    ) -> None:
        """Start where the last run ended, or at the earliest record if there was none.

        With ``new``, the first transaction writes all partitions' progress to the log.
        """
        for number, (low, high) in ranges.items():
            at = self.progress[number] = known.get(number, Progress(low))
            if new or number not in known:
                self.unwritten.add(number)
            start = at.start(self.reasons)
            if start < low:
                self._note_deleted(number, low)
            start = max(low, start)
            self.reading.start(self._at(number), start, high, at.claim)

    def _at(self, number: int) -> TopicPartition:
        return TopicPartition(self.topology.rejected, number)

    def _note_deleted(self, number: int, low: int) -> None:
        """Record that retention has deleted records that this run would have sent."""
        at = self.progress[number]
        log = f"{self.topology.rejected}[{number}]"
        gone = [offset for offset in at.refused if offset < low]
        if gone:
            self.counts.deleted.append(
                f"{log} has lost {counted(len(gone), 'record')} refused before"
            )
        for offset in gone:
            del at.refused[offset]
            self.pending_lines.append(self.log.refusal(number, offset, None))
        start = at.start(self.reasons)
        if start < low:
            self.counts.deleted.append(f"{log} lost offsets {start} to {low - 1} unsent")
            at.passed(low, self.reasons)
        self.unwritten.add(number)

    def _note_cut(self, number: int, end: int) -> None:
        """Record that a log has lost its end: what is there now was never sent."""
        log = f"{self.topology.rejected}[{number}]"
        self.counts.deleted.append(
            f"{log} has lost its end from offset {end} on; what is there now is sent"
        )
        for offset in self.progress[number].cut(end):
            self.pending_lines.append(self.log.refusal(number, offset, None))
        self.unwritten.add(number)

    def step(self) -> bool:
        """Send a batch; return whether there may be more.

        Raises:
            Fenced: another run took over.
            BusError: Kafka failed. Up to `Counts.unknown` more documents may have been sent.
        """
        if not self.reading.left or self.left == 0:
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
        """Write the final progress, if the pass ended with records that were not due.

        Raises:
            BusError: see `step`.
        """
        if self.unwritten or self.pending_lines:
            self._commit([], {}, [])

    def _collect(self) -> list[_Item]:
        """Return a batch of bounded size, or what is available."""
        items: list[_Item] = []
        size = 0
        while len(items) < _BATCH_RECORDS and size < _BATCH_BYTES and self.reading.left:
            room = _BATCH_RECORDS - len(items), _BATCH_BYTES - size
            try:
                records = self.reading.read(*room, _NEXT_SECONDS if items else _FIRST_SECONDS)
            except (OffsetOutOfRange, LogTruncated) as error:
                if not items:  # Otherwise send the records read so far; the error comes again.
                    self._skip(error)
                break
            if not records:
                break
            for record in records:
                rejection = Rejection.of(record)
                items.append(_Item(rejection, self._is_due(rejection)))
                size += rejection.size
        return items

    def _skip(self, lost: OffsetOutOfRange | LogTruncated) -> None:
        """Continue at the present start of a partition's log, or where it was cut off.

        Raises:
            BusError: the log has lost its end, and it isn't known where.
        """
        number = lost.partition.partition
        if isinstance(lost, LogTruncated):
            if lost.end is None:
                raise lost
            self._note_cut(number, lost.end)
            self.reading.go_on(lost.partition, lost.end)
        elif lost.position >= lost.low:
            raise BusError(str(lost)) from lost
        else:
            self._note_deleted(number, lost.low)
            self.reading.go_on(lost.partition, lost.low)

    def _is_due(self, rejection: Rejection) -> bool:
        record, reason = rejection.record, rejection.reason
        if not self.progress[record.partition].is_due(record.offset, reason):
            return False
        if record.value is not None and rejection.readable and not rejection.ours:
            self.counts.foreign += 1
            return False
        if reason not in self.reasons and (self.reasons or reason in BY_NAME):
            self.counts.left[reason] += 1
            return False
        if record.value is None:
            # The payload was gone. Sent without one, the record would be a tombstone.
            self.counts.empty += 1
            return False
        return True

    def _send(self, items: Sequence[_Item]) -> None:
        """Send the due records, without the refused ones, in as few transactions as possible."""
        refused = {
            item.position: _UNREADABLE for item in items if item.due and not item.rejection.readable
        }
        pieces = deque([items])
        while pieces:
            piece = pieces.popleft()
            sent = [item for item in piece if item.due and item.position not in refused]
            errors = self._write(piece, sent, refused)
            if len(sent) == 1 and errors:
                refused[sent[0].position] = errors[0]
                pieces.appendleft(piece)
            elif errors:
                alone = {sent[number].position for number in errors}
                pieces.extendleft(reversed(list(_split(piece, alone))))

    def _write(
        self, piece: Sequence[_Item], sent: Sequence[_Item], refused: Mapping[_Position, str]
    ) -> dict[int, str]:
        """Send documents with the progress; return the errors of refused ones by index."""
        after: dict[int, Progress] = {}
        lines: list[Line] = []
        noted: list[Refusal] = []
        for item in piece:
            number, offset = item.position
            at = after.setdefault(number, self.progress[number].copy())
            if not self.reasons:
                at.leave(offset, item.rejection.reason)
            at.passed(offset + 1, self.reasons)
            epoch = item.rejection.record.leader_epoch
            if epoch >= 0:
                at.epoch = max(epoch, at.epoch or 0)
            if item.position in refused:
                refusal = at.refused[offset] = item.rejection.refusal(refused[item.position])
                noted.append(refusal)
                lines.append(self.log.refusal(number, offset, refusal))
            elif item.due and offset in at.refused:
                del at.refused[offset]
                lines.append(self.log.refusal(number, offset, None))
        if sent or lines:
            errors = self._commit(sent, after, lines)
            if errors:
                return errors
        else:
            self.progress |= after
            self.unwritten |= after.keys()
        self.counts.refused += noted
        return {}

    def _commit(
        self, sent: Sequence[_Item], after: Mapping[int, Progress], lines: Sequence[Line]
    ) -> dict[int, str]:
        """Write a transaction; return the errors of refused documents by index.

        If there are any, the transaction was rolled back.
        """
        progress = {**self.progress, **after}
        touched = sorted(self.unwritten | after.keys())
        topic, partitions = self.topology.documents, self.topology.layout.partitions
        documents = [item.rejection.document(topic, partitions) for item in sent]
        written = [*(self.log.line(n, progress[n]) for n in touched), *self.pending_lines, *lines]
        try:
            refused = self.log.send(documents, written)
        except BusError:
            self.counts.unknown = len(sent) if self.log.doubtful else 0
            raise
        if refused is not None:
            records = set(refused.records)
            errors = {
                n: refused.error for n, document in enumerate(documents) if document in records
            }
            if not errors:
                raise refused
            return errors
        self.progress = progress
        self.unwritten.clear()
        self.pending_lines.clear()
        for item in sent:
            self.counts.sent[item.rejection.reason] += 1
            self.counts.again += item.rejection.before > 0
        if self.left is not None:
            self.left -= len(sent)
        return {}


def _split(piece: Sequence[_Item], alone: Collection[_Position]) -> Iterator[list[_Item]]:
    """Split a piece, in order, so that each of some records is alone."""
    part: list[_Item] = []
    for item in piece:
        if item.position in alone:
            if part:
                yield part
            yield [item]
            part = []
        else:
            part.append(item)
    if part:
        yield part


def redrive(  # noqa: PLR0913 -- the parts of a run
    bus: Bus,
    topology: Topology,
    counts: Counts,
    *,
    reasons: Collection[str] = (),
    limit: int | None = None,
    options: LoopOptions | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Send the rejected records to the documents again, and count them.

    ``tell`` receives messages for the operator.

    Raises:
        Fenced: another run took over.
        BusError: the log failed. Up to `Counts.unknown` more documents may have been sent.
    """
    name, rejected = topology.redrive, topology.rejected
    with ExitStack() as stack:
        writer = stack.enter_context(closing(bus.log_writer(name, name)))
        lines = stack.enter_context(closing(bus.log_reader(name, [name])))
        reader = stack.enter_context(closing(bus.log_reader(name, [rejected])))
        log = ProgressLog(
            name, lines, writer, rejected, bus.identity(rejected), options=options or LoopOptions()
        )
        # From here on no other run can write: only this run changes what the log says.
        log.begin()
        partitions = range(bus.partitions([rejected])[rejected] or 0)
        ranges = {n: reader.watermarks(TopicPartition(rejected, n)) for n in partitions}
        known = log.known()
        if log.recreated:
            tell(
                f"{rejected} was recreated since the last run (its id has changed):"
                " starting over with its earliest record"
            )
        run = Run(topology, RangeReader(reader), log, reasons, limit, counts)
        run.begin(known, ranges, new=log.empty)
        while run.step():
            pass
        run.finish()
