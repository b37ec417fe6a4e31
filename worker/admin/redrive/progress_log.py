"""The topic ``APP.redrive``, which keeps the progress of *redrive*.

A group's offsets expire a week after its last member has left; a compacted topic keeps the last
line about each partition for ever. A line's key contains the id of the rejected topic, so that
a recreated topic starts over.
"""

from __future__ import annotations

from collections.abc import Iterable

from worker.admin.redrive.progress import (
    Progress,
    ProgressError,
    Refusal,
    key_of,
    place_of,
    topic_of,
)
from worker.bus import BusError, LogReader, TopicPartition
from worker.bus.ranges import PARTITION, read_ranges

Line = tuple[bytes, bytes | None]
"""A record of the topic: its key and value; a record without a value deletes a line."""

Lines = dict[bytes | None, bytes]
"""The last value of each key; a record of foreign origin may have no key."""


class ProgressLog:
    """The lines of the topic about the present rejected topic.

    Attributes:
        topic: the topic's name.
        lines: the last value of each key, as far as was read or noted.
        empty: whether nothing was ever written, about any topic.
        recreated: whether all known lines are about a topic of the same name with another id.
    """

    def __init__(self, reader: LogReader, topic: str, rejected: str, identity: str) -> None:
        """Take a reader of the topic, the topic's name, and the rejected topic's name and id."""
        self.topic = topic
        self.lines: Lines = {}
        self.empty = True
        self.recreated = False
        self._reader = reader
        self._rejected = rejected
        self._identity = identity
        self._next = 0
        self._offsets: dict[bytes | None, int] = {}

    def read(self) -> None:
        """Read all lines that were written since the last call.

        No one may write meanwhile: the caller must have fenced earlier runs.

        Raises:
            BusError: the topic can't be read.
        """
        partition = TopicPartition(self.topic, PARTITION)
        low, high = self._reader.watermarks(partition)
        unread = {partition: (max(low, self._next), high)}
        for record in read_ranges(self._reader, unread):
            self.empty = False
            self._offsets[record.key] = record.offset
            _apply(self.lines, record.key, record.value)
        self._next = max(high, self._next)

    def note(self, lines: Iterable[Line]) -> None:
        """Add lines that were just written."""
        for key, value in lines:
            _apply(self.lines, key, value)

    def after(self, lines: Iterable[Line]) -> Lines:
        """Return the last value of each key as it will be once these lines are written."""
        found = dict(self.lines)
        for key, value in lines:
            _apply(found, key, value)
        return found

    def known(self) -> dict[int, Progress]:
        """Return the progress of each partition of the rejected topic.

        Raises:
            BusError: a line can't be understood.
        """
        namesakes = 0
        progress: dict[int, Progress] = {}
        refusals: list[tuple[int, int, Refusal]] = []
        for key, value in self.lines.items():
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
                    f"{self.topic}: the record at offset {self._offsets[key]} can't be understood:"
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


def _apply(lines: Lines, key: bytes | None, value: bytes | None) -> None:
    if value is None:
        lines.pop(key, None)
    else:
        lines[key] = value
