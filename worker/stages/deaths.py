"""Which document kills the worker: what *fingerprint* notes before it reads, and finds after it.

A document that kills its worker is read again after every restart, so it would stop its partition
for ever. No code of the dying process can be relied on: it may be out of memory, or killed for what
it takes. So the worker notes what it is about to read, and the next life draws the conclusions:

1. A death while a burst is read: the documents up to the end of this burst are read one at a time,
   each noted before it is read.
2. A death while a document is read alone makes it a suspect, until it is read once without one.
3. A second death while a suspect is read alone makes it *poison*. It is rejected unread.

So a poison document costs three deaths, however large the burst was; a search by halves would cost
2 + log2(n). Documents that are read one at a time have frames of their own, but they share one
transaction. One transaction each would take 14 to 25 ms a document, after every death by whatever
cause. It would prove no more: the notes name the document, and what remains of one that was read is
a few hundred bytes.

Only the time in which documents are read counts, not that of the transaction, nor that of waiting
for a registry of schemas: a broker that is away keeps a worker in its transactions for seconds, and
whoever kills it then must not make an innocent document poison. For the same reason no errors of
Kafka count, nor does the reject limit. What a schema does to its reader counts. A document
that is read alone is exposed for some hundred microseconds; that two deaths with other causes both
hit the same one is hardly possible, unless it takes long to read.

*refingerprint* notes the payloads that it reads again in the same way, and leaves poison out of
the new log. No other stage needs this. *index* reads frames, and *route* splices matches only into
payloads that *fingerprint* has read. A record without a value is poison like any other: it is
rejected, loudly, and forgets or corrects nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import msgspec

from worker.bus import Record, RecordBatch, TopicPartition
from worker.untrusted import NOT_READ

_log = logging.getLogger(__name__)

_Place = tuple[int, int]
"""A partition of the documents, and an offset in it."""


class Notes(Protocol):
    """Keeps one value across the death of the process; `worker.journal` implements it."""

    def read(self) -> bytes | None:
        """Return the value that was written last; None if there is none."""

    def write(self, value: bytes) -> None:
        """Replace the value."""

    def close(self) -> None:
        """Release the file."""


class _State(msgspec.Struct):
    """What is noted.

    Attributes:
        topic: the identity of the documents; notes about others are void.
        reading: the end of the burst that is being read, by partition.
        alone: the document that is being read alone.
        careful: up to which offsets documents are read one at a time, by partition.
        suspects: the documents read alone that the worker died of, and has not survived since.
            Several, as the order of partitions differs between lives: two deadly documents may
            take turns.
        poison: the documents that it died of twice in a row, and that are not yet rejected.
    """

    topic: str
    reading: dict[int, int] = {}
    alone: _Place | None = None
    careful: dict[int, int] = {}
    suspects: set[_Place] = set()
    poison: set[_Place] = set()


def _ahead(places: set[_Place], reached: Mapping[int, int]) -> set[_Place]:
    """Return those that do not lie before the offsets that partitions have reached."""
    return {place for place in places if reached.get(place[0], 0) <= place[1]}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_State).decode


class Deaths:
    """Notes what is being read, and knows what the worker has died of."""

    def __init__(self, topic: str, identity: str, notes: Notes | None) -> None:
        """Draw the conclusions from the last life's notes; without ``notes`` nothing is kept.

        ``identity`` distinguishes the documents of ``topic`` from those of other topics.
        """
        self._topic = topic
        self._notes = notes
        self._state = _State(identity)
        if notes is None:
            return
        state = self._found(notes.read())
        if state is not None and state.topic == identity:
            self._state = state
            self._conclude()
        self._write()

    @staticmethod
    def _found(value: bytes | None) -> _State | None:
        if value is None:
            return None
        try:
            return _decode(value)
        except NOT_READ as error:
            _log.warning("the notes of the last life can't be understood: %s", error)
            return None

    def _conclude(self) -> None:
        state = self._state
        if state.alone is not None:
            partition, offset = state.alone
            # It may lie behind the range: the whole burst is read one at a time.
            state.careful[partition] = max(offset + 1, state.careful.get(partition, 0))
            place = f"{self._topic}[{partition}]@{offset}"
            if state.alone in state.suspects:
                state.poison.add(state.alone)
                state.suspects.discard(state.alone)
                _log.error("the worker died again while it read only %s: it is poison", place)
            else:
                state.suspects.add(state.alone)
                _log.warning(
                    "the worker died while it read only %s; if that happens again, the document"
                    " is rejected",
                    place,
                )
        elif state.reading:
            for partition, end in state.reading.items():
                state.careful[partition] = max(end, state.careful.get(partition, 0))
                _log.warning(
                    "the worker died while it read documents: those of %s[%d] before offset %d are"
                    " read one at a time now",
                    self._topic, partition, end,
                )  # fmt: skip
        state.alone, state.reading = None, {}

    def careful(self, batches: Iterable[RecordBatch]) -> bool:
        """Return whether these documents must be read one at a time."""
        ends = self._state.careful
        return any(batch.offsets[0] < ends.get(batch.place.partition, 0) for batch in batches)

    def poison(self, record: Record) -> bool:
        """Return whether the worker died twice in a row while it read this document."""
        return (record.partition, record.offset) in self._state.poison

    def reading(self, ends: Mapping[TopicPartition, int]) -> None:
        """Note that documents are about to be read, up to these offsets."""
        if self._notes is not None:
            self._state.reading = {place.partition: end for place, end in ends.items()}
            self._write()

    def reading_alone(self, record: Record) -> None:
        """Note that only this document is about to be read."""
        state = self._state
        self._survived()
        state.alone = (record.partition, record.offset)
        self._write()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Note, for as long as this lasts, that nothing is being read."""
        state = self._state
        before = state.reading, state.alone
        state.reading, state.alone = {}, None
        self._write()
        try:
            yield
        finally:
            state.reading, state.alone = before
            self._write()

    def done(self) -> None:
        """Note that all of them were read."""
        if self._notes is not None:
            self._survived()
            self._state.reading = {}
            self._write()

    def _survived(self) -> None:
        """Clear a suspect that was just read."""
        state = self._state
        if state.alone is not None:
            state.suspects.discard(state.alone)
        state.alone = None

    def passed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forget what lies before these committed offsets."""
        state = self._state
        if not (state.careful or state.suspects or state.poison):
            return
        reached = {place.partition: offset for place, offset in offsets.items()}
        state.careful = {
            partition: end
            for partition, end in state.careful.items()
            if reached.get(partition, 0) < end
        }
        state.suspects = _ahead(state.suspects, reached)
        state.poison = _ahead(state.poison, reached)
        self._write()

    def close(self) -> None:
        """Release the notes."""
        if self._notes is not None:
            self._notes.close()

    def _write(self) -> None:
        if self._notes is not None:
            self._notes.write(_encode(self._state))
