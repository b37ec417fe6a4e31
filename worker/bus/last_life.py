"""What a worker was reading when it died, noted in one journal so that the next life knows it.

No code of a dying process can be relied on: it may be out of memory, or killed for what it takes.
So a worker notes what it is about to read, and its next life draws the conclusions. There are two
ways to die of what is read.

*A batch* of a few kilobytes can unpack to more memory than there is, and librdkafka unpacks a
batch whole, in a thread of its own.

1. A death while a group fetches: its partitions are fetched one batch at a time, one partition at
   a time, by one stage at a time, until they are past what may have been fetched ahead. Each batch
   is noted before it is fetched. See `worker.bus.careful`.
2. A second death in a row with nothing but the same batch being fetched: the batch is *refused*.
   The worker ends with a line that says so, instead of dying of the batch again and again.

Whoever kills a worker while it waits for its first batch may do so twice. So a refusal ends after
an hour, and at once if the worker has more memory than when it died.

*A document* that kills its worker is read again after every restart, so it would stop its
partition for ever.

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
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic, time
from typing import Protocol

import msgspec

from worker.bus import Record, RecordBatch, TopicPartition
from worker.untrusted import NOT_READ

_log = logging.getLogger(__name__)

_DEATHS = 2
_REFUSED_SECONDS = 3_600.0
_WAITING_SECONDS = 1.0
"""How long after it has asked a group keeps its place in the queue for turns."""

_Document = tuple[int, int]
"""A partition of the documents, and an offset in it."""


class Notes(Protocol):
    """Keeps one value across the death of the process; `worker.journal` implements it."""

    def read(self) -> bytes | None:
        """Return the value that was written last; None if there is none."""

    def write(self, value: bytes) -> None:
        """Replace the value."""


class _Batch(msgspec.Struct, frozen=True, array_like=True):
    """A batch that a group fetches."""

    group: str
    partition: int
    offset: int


class _Death(msgspec.Struct, frozen=True, array_like=True):
    """How often in a row the worker died of a batch, with how much memory, and when last."""

    batch: _Batch
    times: int
    memory: int
    at: float


class _Fetched(msgspec.Struct):
    """What is noted of batches.

    Attributes:
        groups: those that fetch documents.
        alone: the one batch that is being fetched while all else waits.
        deaths: the batches that the worker died of alone, and has not got past since.
    """

    groups: set[str] = set()
    alone: _Batch | None = None
    deaths: list[_Death] = []


class _Read(msgspec.Struct, omit_defaults=True):
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


class _Life(msgspec.Struct):
    """All that is noted; ``topic`` is the identity of the documents, and others' notes are void."""

    topic: str
    fetched: _Fetched = msgspec.field(default_factory=_Fetched)
    read: dict[str, _Read] = {}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Life).decode


class LastLife:
    """What the worker died of, and notes of what it reads now. Thread-safe.

    Attributes:
        batches: what it fetches.
    """

    def __init__(  # noqa: PLR0913 -- two clocks
        self,
        topic: str,
        identity: str,
        notes: Notes,
        memory: int,
        *,
        clock: Callable[[], float] = monotonic,
        wall_clock: Callable[[], float] = time,
    ) -> None:
        """Draw the conclusions from the last life's notes.

        ``identity`` distinguishes the documents of ``topic`` from those of other topics.
        ``memory`` is what the worker has, in bytes. Groups take turns by ``clock``, in seconds from
        an unknown start. ``wall_clock`` returns seconds since the epoch: deaths are dated by it.
        """
        self._topic = topic
        self._notes = notes
        self._lock = threading.Lock()
        last = _decoded(notes.read())
        self._life = life = _Life(identity) if last is None or last.topic != identity else last
        self.batches = DeadlyBatches(
            topic, life.fetched, self._write, memory, clock=clock, wall_clock=wall_clock
        )
        self._documents = {
            group: DeadlyDocuments(topic, read, self._write)
            for group, read in life.read.items()
            if read != _Read()
        }
        life.read = {group: life.read[group] for group in self._documents}
        self._write()

    def documents(self, group: str) -> DeadlyDocuments:
        """Return what the worker has died of while a group read documents."""
        with self._lock:
            if group not in self._documents:
                self._life.read = {**self._life.read, group: _Read()}
                self._documents[group] = DeadlyDocuments(
                    self._topic, self._life.read[group], self._write
                )
            return self._documents[group]

    def _write(self) -> None:
        with self._lock:
            self._notes.write(_encode(self._life))


def _decoded(value: bytes | None) -> _Life | None:
    if value is None:
        return None
    try:
        return _decode(value)
    except NOT_READ as error:
        _log.warning("the notes of the last life can't be understood: %s", error)
        return None


class DeadlyBatches:
    """Notes what is fetched, and knows what batch the worker died of. Thread-safe."""

    def __init__(  # noqa: PLR0913 -- two clocks
        self,
        topic: str,
        noted: _Fetched,
        write: Callable[[], None],
        memory: int,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        """Draw the conclusions from what was noted; see `LastLife`."""
        self._topic = topic
        self._noted = noted
        self._write = write
        self._memory = memory
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._careful = noted.groups
        self._waiting: dict[str, float] = {}
        if noted.alone is not None:
            self._blame(noted.alone)
        elif self._careful:
            _log.warning(
                "the worker died, or was killed, while it fetched documents (%s). They are fetched"
                " one batch at a time now, until they are past what was fetched ahead",
                ", ".join(sorted(self._careful)),
            )
        noted.alone, noted.groups = None, set()

    def _blame(self, batch: _Batch) -> None:
        noted = self._noted
        times = 1 + next((death.times for death in noted.deaths if death.batch == batch), 0)
        noted.deaths = self._others(batch.group, batch.partition)
        noted.deaths.append(_Death(batch, times, self._memory, self._wall_clock()))
        _log.error(
            "the worker died while %s fetched nothing but the batch at %s[%d] offset %d: it"
            " may unpack to more than the worker's memory. %s",
            batch.group, self._topic, batch.partition, batch.offset,
            "It is not fetched again" if self.refused(batch.partition, batch.offset)
            else "It is fetched once more",
        )  # fmt: skip

    def _others(self, group: str, partition: int) -> list[_Death]:
        """Return the deaths of which another group or partition is suspected."""
        return [
            death
            for death in self._noted.deaths
            if (death.batch.group, death.batch.partition) != (group, partition)
        ]

    @property
    def known(self) -> bool:
        """Return whether the last life died while it fetched, or of a batch before that."""
        return bool(self._careful or self._noted.deaths)

    @property
    def blames(self) -> bool:
        """Return whether the worker has died of a batch alone, and is not past it."""
        return bool(self._noted.deaths)

    def careful(self, group: str, partition: int) -> bool:
        """Return whether a partition must be fetched one batch at a time."""
        return group in self._careful or any(
            (death.batch.group, death.batch.partition) == (group, partition)
            for death in self._noted.deaths
        )

    def suspected(self, partition: int) -> bool:
        """Return whether the worker has died of one batch of a partition, and is not past it."""
        return any(death.batch.partition == partition for death in self._noted.deaths)

    def refused(self, partition: int, offset: int) -> bool:
        """Return whether the worker died twice in a row of the batch at an offset."""
        now = self._wall_clock()
        died = [
            death.times
            for death in self._noted.deaths
            if (death.batch.partition, death.batch.offset) == (partition, offset)
            and self._memory <= death.memory
            and 0 <= now - death.at < _REFUSED_SECONDS
        ]
        return sum(died) >= _DEATHS

    def begin(self, group: str) -> None:
        """Note that a group fetches documents from now on."""
        with self._lock:
            self._noted.groups = {*self._noted.groups, group}
            self._write()

    def end(self) -> None:
        """Note that nothing is fetched any more: the worker ends by itself."""
        with self._lock:
            self._noted.groups, self._noted.alone = set(), None
            self._write()

    def alone(self, group: str, partition: int, offset: int) -> bool:
        """Note that nothing but this batch is about to be fetched; return False if it is not.

        A group that has noted a batch goes on to the next until it ends its turn with `rest`. Turns
        are given in the order in which groups asked for them: of two that wait, neither waits for
        the other.
        """
        with self._lock:
            noted = self._noted
            if (noted.alone is None or noted.alone.group != group) and not self._next(group):
                return False
            noted.alone = _Batch(group, partition, offset)
            noted.deaths = [
                death
                for death in noted.deaths
                if (death.batch.group, death.batch.partition) != (group, partition)
                or death.batch.offset >= offset
            ]
            self._write()
            return True

    def _next(self, group: str) -> bool:
        """Give a group its turn, or a place in the queue; return whether it has the turn."""
        now = self._clock()
        self._waiting = {
            other: at for other, at in self._waiting.items() if now - at < _WAITING_SECONDS
        }
        self._waiting[group] = now  # A group that waits already keeps its place.
        if self._noted.alone is not None or next(iter(self._waiting)) != group:
            return False
        del self._waiting[group]
        return True

    def rest(self, group: str) -> None:
        """Note that a group fetches no batch alone any more."""
        with self._lock:
            if self._noted.alone is not None and self._noted.alone.group == group:
                self._noted.alone = None
                self._write()

    def past(self, group: str, partition: int) -> None:
        """Note that a partition is past the batch that the worker died of."""
        with self._lock:
            self._noted.deaths = self._others(group, partition)
            self._write()

    def safe(self, group: str) -> None:
        """Fetch all partitions of a group like any others, except those of a deadly batch."""
        with self._lock:
            self._careful = self._careful - {group}

    def leave(self, group: str) -> None:
        """Note that a group waits for no turn, and fetches no batch alone."""
        with self._lock:
            self._waiting.pop(group, None)
        self.rest(group)

    @property
    def why(self) -> str:
        """Return why a batch is refused."""
        return (
            "the worker died twice while it fetched nothing but the batch there. It unpacks to more"
            f" than fits into the worker's memory ({self._memory >> 20:,} MiB)"
        )


class DeadlyDocuments:
    """Notes what a group is reading, and knows what document the worker has died of."""

    def __init__(
        self,
        topic: str,
        noted: _Read | None = None,
        write: Callable[[], None] = lambda: None,
    ) -> None:
        """Draw the conclusions from what was noted; without ``write`` nothing is kept."""
        self._topic = topic
        self._noted = noted or _Read()
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
