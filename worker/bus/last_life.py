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

*A document* that kills its worker is found by `worker.bus.deadly_documents`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic, time
from typing import Protocol

import msgspec

from worker.bus.deadly_documents import DeadlyDocuments, Noted
from worker.untrusted import NOT_READ

_log = logging.getLogger(__name__)

_DEATHS = 2
_REFUSED_SECONDS = 3_600.0
_WAITING_SECONDS = 1.0
"""How long after it has asked a group keeps its place in the queue for turns."""


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


class _Life(msgspec.Struct):
    """All that is noted; ``topic`` is the identity of the documents, and others' notes are void."""

    topic: str
    fetched: _Fetched = msgspec.field(default_factory=_Fetched)
    read: dict[str, Noted] = {}


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
            if read != Noted()
        }
        life.read = {group: life.read[group] for group in self._documents}
        self._write()

    def documents(self, group: str) -> DeadlyDocuments:
        """Return what the worker has died of while a group read documents."""
        with self._lock:
            if group not in self._documents:
                self._life.read = {**self._life.read, group: Noted()}
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
