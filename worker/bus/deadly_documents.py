"""Which document kills the worker: what a group notes before it reads, and finds after it.

A document that kills its worker is read again after every restart, so it would stop its partition
for ever. So what is read is noted in the journal of `worker.bus.last_life`, and the next life draws
the conclusions:

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

*refingerprint* notes the payloads that it reads again in the same way as *fingerprint*, and leaves
poison out of the new log. No other stage needs this. *index* reads frames, and *route* splices
matches only into payloads that *fingerprint* has read. A record without a value is poison like any
other: it is rejected, loudly, and forgets or corrects nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from worker.bus import Record, RecordBatch, TopicPartition

_log = logging.getLogger(__name__)

_Document = tuple[int, int]
"""A partition of the documents, and an offset in it."""


class Noted(msgspec.Struct, omit_defaults=True):
    """What is noted of the documents that a group reads.

    Attributes:
        reading: the end of the burst that is being read, by partition.
        alone: the document that is being read alone.
        careful: up to which offsets documents are read one at a time, by partition.
        suspects: the documents read alone that the worker died of, and has not survived since.
            Several, as the order of partitions differs between lives: two deadly documents may
            take turns.
        poison: the documents that it died of twice in a row, and that are not yet rejected.
    """

    reading: dict[int, int] = {}
    alone: _Document | None = None
    careful: dict[int, int] = {}
    suspects: set[_Document] = set()
    poison: set[_Document] = set()


class DeadlyDocuments:
    """Notes what a group is reading, and knows what document the worker has died of."""

    def __init__(
        self,
        topic: str,
        noted: Noted | None = None,
        write: Callable[[], None] = lambda: None,
    ) -> None:
        """Draw the conclusions from what was noted; without ``write`` nothing is kept."""
        self._topic = topic
        self._noted = noted or Noted()
        self._write = write
        self._conclude()

    def _conclude(self) -> None:
        noted = self._noted
        if noted.alone is not None:
            partition, offset = noted.alone
            # It may lie behind the range: the whole burst is read one at a time.
            noted.careful[partition] = max(offset + 1, noted.careful.get(partition, 0))
            place = f"{self._topic}[{partition}]@{offset}"
            if noted.alone in noted.suspects:
                noted.poison.add(noted.alone)
                noted.suspects.discard(noted.alone)
                _log.error("the worker died again while it read only %s: it is poison", place)
            else:
                noted.suspects.add(noted.alone)
                _log.warning(
                    "the worker died while it read only %s; if that happens again, the document"
                    " is rejected",
                    place,
                )
        elif noted.reading:
            for partition, end in noted.reading.items():
                noted.careful[partition] = max(end, noted.careful.get(partition, 0))
                _log.warning(
                    "the worker died while it read documents: those of %s[%d] before offset %d are"
                    " read one at a time now",
                    self._topic, partition, end,
                )  # fmt: skip
        noted.alone, noted.reading = None, {}

    def careful(self, batches: Iterable[RecordBatch]) -> bool:
        """Return whether these documents must be read one at a time."""
        ends = self._noted.careful
        return any(batch.offsets[0] < ends.get(batch.place.partition, 0) for batch in batches)

    def poison(self, record: Record) -> bool:
        """Return whether the worker died twice in a row while it read this document."""
        return (record.partition, record.offset) in self._noted.poison

    def reading(self, ends: Mapping[TopicPartition, int]) -> None:
        """Note that documents are about to be read, up to these offsets."""
        self._noted.reading = {place.partition: end for place, end in ends.items()}
        self._write()

    def reading_alone(self, record: Record) -> None:
        """Note that only this document is about to be read."""
        self._survived()
        self._noted.alone = (record.partition, record.offset)
        self._write()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Note, for as long as this lasts, that nothing is being read."""
        noted = self._noted
        before = noted.reading, noted.alone
        noted.reading, noted.alone = {}, None
        self._write()
        try:
            yield
        finally:
            noted.reading, noted.alone = before
            self._write()

    def done(self) -> None:
        """Note that all of them were read."""
        self._survived()
        self._noted.reading = {}
        self._write()

    def _survived(self) -> None:
        """Clear a suspect that was just read."""
        noted = self._noted
        if noted.alone is not None:
            noted.suspects.discard(noted.alone)
        noted.alone = None

    def passed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Forget what lies before these committed offsets."""
        noted = self._noted
        if not (noted.careful or noted.suspects or noted.poison):
            return
        reached = {place.partition: offset for place, offset in offsets.items()}
        noted.careful = {
            partition: end
            for partition, end in noted.careful.items()
            if reached.get(partition, 0) < end
        }
        noted.suspects = _ahead(noted.suspects, reached)
        noted.poison = _ahead(noted.poison, reached)
        self._write()


def _ahead(documents: set[_Document], reached: Mapping[int, int]) -> set[_Document]:
    """Return those that do not lie before the offsets that partitions have reached."""
    return {place for place in documents if reached.get(place[0], 0) <= place[1]}
