"""The progress of *redrive*, and the topic ``APP.redrive``, which keeps it.

For each partition: an offset before which nothing is left to send; the offsets of reasons that
are ahead of it, because they were redriven alone; and the records before it that the topic of
the documents refused. What is sent only by name, `BY_NAME`, may also lie behind the first offset.

A group's offsets expire a week after its last member has left; a compacted topic keeps the last
line about each partition for ever. A line's key contains the id of the rejected topic, so that
a recreated topic starts over. Each transaction writes documents and lines under one name, and only
the run that began last under that name can write: an earlier run that is stalled or still active is
fenced. So once a run has begun, the topic says exactly what was sent, and only that run changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

import msgspec

from worker.bus import (
    AnyOutgoing,
    BusError,
    Claim,
    Fenced,
    LogReader,
    LogWriter,
    Outgoing,
    Refused,
    TopicPartition,
)
from worker.bus.ranges import PARTITION, read_ranges
from worker.formats.unreadable import NULL_TEXT
from worker.loop.options import LoopOptions
from worker.loop.transactions import Transactions
from worker.probe import UNWATCHED
from worker.untrusted import NOT_READ, why

_VERSION = 1

BY_NAME = frozenset({"poison", NULL_TEXT})
"""The reasons of what is sent again only if the reason is named. Poison kills workers. A delete of
a change feed that comes later than it should may forget what was written after it."""


Line = tuple[bytes, bytes | None]
"""A record of the topic: its key and value; a record without a value deletes a line."""


class ProgressError(ValueError):
    """A record of the topic can't be understood."""


class Refusal(msgspec.Struct, frozen=True):
    """A rejected record that the topic of the documents refused; it stays on *rejected*."""

    reason: str
    """The code of its rejection."""
    error: str
    """Kafka's name of the error."""
    size: int
    """The size of key, value and headers, in bytes."""
    source: str
    """``topic[partition]@offset`` of the document, or of the rejected record."""

    @classmethod
    def load(cls, value: bytes) -> Refusal:
        """Parse a refusal's line of the topic.

        Raises:
            ProgressError: the line isn't a refusal.
        """
        return _read(value, cls)

    def dump(self) -> bytes:
        """Return the line of the topic."""
        return _line(**msgspec.structs.asdict(self))


@dataclass(slots=True)
class Progress:
    """Progress of one partition: everything before ``base``, and some reasons from elsewhere.

    A reason in ``ahead`` is done before that offset. One that is sent only by name may have an
    offset before ``base``.
    """

    base: int
    ahead: dict[str, int] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    """By offset; each has its own line in the topic, so that lines stay small."""
    epoch: int | None = None
    """The leader epoch of what was read; None if it isn't known."""

    @classmethod
    def load(cls, value: bytes) -> Progress:
        """Parse a partition's line of the topic, which doesn't include refusals.

        Raises:
            ProgressError: the line isn't a partition's progress.
        """
        given = _read(value, _OfPartition)
        return cls(given.base, given.ahead, epoch=given.epoch)

    def dump(self, topic: str) -> bytes:
        """Return the line of the topic; ``topic`` is the name of *rejected*, for human readers."""
        return _line(topic=topic, base=self.base, ahead=self.ahead, epoch=self.epoch)

    def copy(self) -> Progress:
        """Return an independent copy."""
        return Progress(self.base, dict(self.ahead), dict(self.refused), self.epoch)

    @property
    def claim(self) -> Claim | None:
        """Return what was read of the partition; None if its epoch isn't known."""
        furthest = max([self.base, *self.ahead.values()])
        return None if self.epoch is None else Claim(furthest, self.epoch)

    def cut(self, end: int) -> list[int]:
        """Record that what was read from an offset on is gone; return what was refused of that."""
        self.base = min(self.base, end)
        self.ahead = {code: min(at, end) for code, at in self.ahead.items()}
        gone = [offset for offset in self.refused if offset >= end]
        for offset in gone:
            del self.refused[offset]
        return gone

    def start(self, reasons: Collection[str]) -> int:
        """Return the offset to read from; ``reasons`` empty means all."""
        at = min((self.ahead.get(code, self.base) for code in reasons), default=self.base)
        again = (
            offset
            for offset, refusal in self.refused.items()
            if not reasons or refusal.reason in reasons
        )
        return min([at, *again])

    def is_due(self, offset: int, reason: str) -> bool:
        """Return whether a record has yet to be sent."""
        return offset in self.refused or offset >= self.ahead.get(reason, self.base)

    def leave(self, offset: int, reason: str) -> None:
        """Record that a record stays due which is sent only by name, before a pass for all."""
        if reason in BY_NAME:
            self.ahead.setdefault(reason, max(offset, self.base))

    def passed(self, offset: int, reasons: Collection[str]) -> None:
        """Record that everything before ``offset`` is done, for these reasons or for all.

        What is sent only by name is never among all.
        """
        if reasons:
            for code in reasons:
                self.ahead[code] = max(offset, self.ahead.get(code, self.base))
        else:
            self.base = max(offset, self.base)
            self.ahead = {
                code: at for code, at in self.ahead.items() if at > self.base or code in BY_NAME
            }


def key_of(identity: str, partition: int, offset: int | None = None) -> bytes:
    """Return a line's key: for a partition of the topic with this id, or for a record in it."""
    key = f"{identity}:{partition}"  # Not a slash, which a base64 id may contain.
    return (key if offset is None else f"{key}:{offset}").encode()


def place_of(key: bytes | None) -> tuple[str, int, int | None]:
    """Parse a key that `key_of` wrote.

    Raises:
        ProgressError: the key has another format.
    """
    try:
        identity, *numbers = (key or b"").decode().split(":")
        partition, *offset = map(int, numbers)
        [at] = offset or [-1]
    except ValueError as error:
        raise ProgressError(f"its key is {key!r}") from error
    return identity, partition, at if offset else None


def topic_of(value: bytes) -> str:
    """Return the rejected topic's name from a partition's line.

    Raises:
        ProgressError: the line isn't a partition's.
    """
    return _read(value, _OfPartition).topic


def _line(**facts: object) -> bytes:
    return msgspec.json.encode({"version": _VERSION, **facts})


class _Versioned(msgspec.Struct):
    version: int


class _OfPartition(msgspec.Struct):
    base: int
    ahead: dict[str, int]
    topic: str = ""
    epoch: int | None = None


LineT = TypeVar("LineT", bound=msgspec.Struct)


def _read(value: bytes, kind: type[LineT]) -> LineT:
    try:
        version = msgspec.json.decode(value, type=_Versioned).version
        if version == _VERSION:
            return msgspec.json.decode(value, type=kind)
    except NOT_READ as error:
        raise ProgressError(f"it can't be read: {why(error)}") from error
    raise ProgressError(f"its version is {version!r}, but this neardup reads version {_VERSION}")


class ProgressLog:
    """The lines of the topic about the present rejected topic, and the transactions that add some.

    Attributes:
        empty: whether nothing was ever written, about any topic.
        recreated: whether all known lines are about a topic of the same name with another id.
        doubtful: whether the last transaction's outcome is still unknown.
    """

    def __init__(  # noqa: PLR0913 -- a topic, what reads and writes it, and what it is about
        self,
        topic: str,
        reader: LogReader,
        writer: LogWriter,
        rejected: str,
        identity: str,
        *,
        options: LoopOptions,
    ) -> None:
        """Take the topic's name, reader and writer, and the rejected topic's name and id."""
        self.empty = True
        self.recreated = False
        self.doubtful = False
        self._topic = topic
        self._reader = reader
        self._writer = writer
        self._rejected = rejected
        self._identity = identity
        self._next = 0
        self._lines: dict[bytes | None, bytes] = {}  # A record of foreign origin may have no key.
        self._offsets: dict[bytes | None, int] = {}
        self._transactions = Transactions(
            "redrive",
            self._renew,
            writer.effect,
            options=options,
            probe=UNWATCHED,
            clock=monotonic,
        )

    def begin(self) -> None:
        """Fence earlier runs, end their open transactions, and read their progress.

        Raises:
            BusError: not done in time, or refused.
        """
        self._writer.renew()
        self._read()

    def known(self) -> dict[int, Progress]:
        """Return the progress of each partition of the rejected topic.

        Raises:
            BusError: a line can't be understood.
        """
        namesakes = 0
        progress: dict[int, Progress] = {}
        refusals: list[tuple[int, int, Refusal]] = []
        for key, value in self._lines.items():
            try:
                identity, partition, at = place_of(key)
                if identity != self._identity:
                    namesakes += at is None and topic_of(value) == self._rejected
                elif at is None:
                    progress[partition] = Progress.load(value)
                else:
                    refusals.append((partition, at, Refusal.load(value)))
            except ProgressError as error:
                raise BusError(
                    f"{self._topic}: the record at offset {self._offsets[key]} can't be understood:"
                    f" {error}. Nothing was sent, because documents might be sent twice. If neardup"
                    " did not write the record, write one with the same key and no value"
                ) from error
        for partition, at, refusal in refusals:
            progress.setdefault(partition, Progress(0)).refused[at] = refusal
        self.recreated = bool(namesakes) and not progress
        return progress

    def line(self, partition: int, progress: Progress) -> Line:
        """Return the line of a partition's progress, without its refusals."""
        return key_of(self._identity, partition), progress.dump(self._rejected)

    def refusal(self, partition: int, offset: int, refusal: Refusal | None) -> Line:
        """Return the line of a refused record; without a ``refusal``, the line that deletes it."""
        key = key_of(self._identity, partition, offset)
        return key, None if refusal is None else refusal.dump()

    def send(self, documents: Sequence[Outgoing], lines: Sequence[Line]) -> Refused | None:
        """Write documents and lines of the progress together, exactly once.

        Returns the refusal, if anything was refused; then nothing was written.

        Raises:
            Fenced: a later run took over.
            BusError: Kafka failed.
        """
        records = [
            *documents,
            *(Outgoing(self._topic, PARTITION, key, value) for key, value in lines),
        ]
        while True:
            refused: Refused | None = None
            try:
                ended = self._transactions.see_through(records, {}, self._commit)
            except Refused as error:
                refused = Refused(str(error), error.records, error.error)
            if refused is None and ended.committed:
                self._lines = self._with(lines)
                self.doubtful = False
                return None
            if refused is not None and any(
                record.topic == self._topic for record in refused.records
            ):
                raise BusError(str(refused))
            if refused is not None or ended.outcome == "aborted":
                self._renew()
            if self._written(lines):
                return None
            if refused is not None:
                return refused
            self._transactions.give_up_after(ended, records)

    def _commit(
        self,
        records: Sequence[AnyOutgoing],
        _offsets: Mapping[TopicPartition, int],
    ) -> None:
        try:
            self._writer.commit(records)
        except Fenced:
            self.doubtful = True
            raise

    def _renew(self) -> None:
        self.doubtful = True
        self._writer.renew()

    def _written(self, lines: Sequence[Line]) -> bool:
        """Return whether the last transaction was committed, according to the topic.

        Raises:
            Fenced: another run has written in between, so this can't be determined.
        """
        before, after = dict(self._lines), self._with(lines)
        self._read()
        if self._lines not in (before, after):
            raise Fenced(f"another run has written to {self._topic}")
        self.doubtful = False
        return self._lines == after

    def _read(self) -> None:
        """Read all lines that were written since the last call.

        No one may write meanwhile: earlier runs must have been fenced.

        Raises:
            BusError: the topic can't be read.
        """
        partition = TopicPartition(self._topic, PARTITION)
        low, high = self._reader.watermarks(partition)
        unread = {partition: (max(low, self._next), high)}
        for record in read_ranges(self._reader, unread):
            self.empty = False
            self._offsets[record.key] = record.offset
            _apply(self._lines, record.key, record.value)
        self._next = max(high, self._next)

    def _with(self, lines: Iterable[Line]) -> dict[bytes | None, bytes]:
        """Return the last value of each key once these lines are written."""
        after = dict(self._lines)
        for key, value in lines:
            _apply(after, key, value)
        return after


def _apply(lines: dict[bytes | None, bytes], key: bytes | None, value: bytes | None) -> None:
    if value is None:
        lines.pop(key, None)
    else:
        lines[key] = value
