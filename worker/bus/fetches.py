"""What a worker's stages fetch of the documents, noted so that the next life knows what it died of.

A few kilobytes can unpack to more memory than there is, and librdkafka unpacks a batch whole, in a
thread of its own. No code of the dying process can be relied on. So each stage notes from where
it fetches, and the next life draws the conclusions:

1. A death while a stage fetches: the partitions that it fetched are fetched one batch at a time,
   one partition at a time, by one stage at a time, until they are past what may have been fetched
   ahead. Each batch is noted before it is fetched.
2. A second death in a row with nothing but the same batch being fetched: the batch is *refused*.
   The worker ends with a line that says so, instead of dying of the batch again and again.

Whoever kills a worker while it waits for its first batch may do so twice. So a refusal ends after
an hour, and at once if the worker has more memory than when it died.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic, time
from typing import Protocol

import msgspec

from worker.untrusted import NOT_READ

_log = logging.getLogger(__name__)

_DEATHS = 2
_REFUSED_SECONDS = 3_600.0
_WAITING_SECONDS = 1.0
"""How long after it has asked a group keeps its place in the queue for turns."""


class FetchNotes(Protocol):
    """Keeps one value across the death of the process; `worker.journal` implements it."""

    def read(self) -> bytes | None:
        """Return the value that was written last; None if there is none."""

    def write(self, value: bytes) -> None:
        """Replace the value."""


class _Alone(msgspec.Struct, frozen=True, array_like=True):
    """The one batch that is being fetched."""

    group: str
    partition: int
    offset: int


class _Death(msgspec.Struct, frozen=True, array_like=True):
    """How often in a row the worker died of a batch, with how much memory, and when last."""

    batch: _Alone
    times: int
    memory: int
    at: float


class _State(msgspec.Struct):
    """What is noted.

    Attributes:
        topic: the identity of the documents; notes about others are void.
        fetching: from where each stage fetches each partition.
        alone: the one batch that is being fetched while all else waits.
        deaths: the batches that the worker died of alone, and has not got past since.
    """

    topic: str
    fetching: dict[str, dict[int, int]] = {}
    alone: _Alone | None = None
    deaths: list[_Death] = []


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_State).decode


class Fetches:
    """Notes what is fetched, and knows what the worker died of. Thread-safe."""

    def __init__(  # noqa: PLR0913 -- two clocks
        self,
        topic: str,
        identity: str,
        notes: FetchNotes,
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
        self._memory = memory
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._state = _State(identity)
        self._careful: dict[str, set[int]] = {}
        self._waiting: dict[str, float] = {}
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
        self._careful = {group: set(partitions) for group, partitions in state.fetching.items()}
        if state.alone is not None:
            batch = state.alone
            times = 1 + next((one.times for one in state.deaths if one.batch == batch), 0)
            state.deaths = self._others(batch.group, batch.partition)
            state.deaths.append(_Death(batch, times, self._memory, self._wall_clock()))
            _log.error(
                "the worker died while %s fetched nothing but the batch at %s[%d] offset %d: it"
                " may unpack to more than the worker's memory. %s",
                batch.group, self._topic, batch.partition, batch.offset,
                "It is not fetched again" if self.refused(batch.partition, batch.offset)
                else "It is fetched once more",
            )  # fmt: skip
        elif self._careful:
            _log.warning(
                "the worker died, or was killed, while it fetched documents: %s. They are fetched"
                " one batch at a time now, until they are past what was fetched ahead",
                "; ".join(
                    f"{group} {self._topic}[{partition}] from offset {offset}"
                    for group, partitions in sorted(state.fetching.items())
                    for partition, offset in sorted(partitions.items())
                ),
            )
        state.alone, state.fetching = None, {}

    def _others(self, group: str, partition: int) -> list[_Death]:
        """Return the deaths of which another stage or partition is suspected."""
        return [
            one
            for one in self._state.deaths
            if (one.batch.group, one.batch.partition) != (group, partition)
        ]

    @property
    def known(self) -> bool:
        """Return whether the last life died while it fetched, or of a batch before that."""
        return bool(self._careful or self._state.deaths)

    @property
    def blames(self) -> bool:
        """Return whether the worker has died of a batch alone, and is not past it."""
        return bool(self._state.deaths)

    def careful(self, group: str, partition: int) -> bool:
        """Return whether a partition must be fetched one batch at a time."""
        died = any((one.batch.group, one.batch.partition) == (group, partition)
                   for one in self._state.deaths)  # fmt: skip
        return died or partition in self._careful.get(group, ())

    def suspected(self, partition: int) -> bool:
        """Return whether the worker has died of one batch of a partition, and is not past it."""
        return any(one.batch.partition == partition for one in self._state.deaths)

    def refused(self, partition: int, offset: int) -> bool:
        """Return whether the worker died twice in a row of the batch at an offset."""
        now = self._wall_clock()
        died = [
            one.times
            for one in self._state.deaths
            if (one.batch.partition, one.batch.offset) == (partition, offset)
            and self._memory <= one.memory
            and 0 <= now - one.at < _REFUSED_SECONDS
        ]
        return sum(died) >= _DEATHS

    def at(self, group: str, partition: int, offset: int) -> None:
        """Note from where a stage fetches a partition."""
        with self._lock:
            self._state.fetching.setdefault(group, {})[partition] = offset
            self._write()

    def alone(self, group: str, partition: int, offset: int) -> bool:
        """Note that nothing but this batch is about to be fetched; return False if it is not.

        A group that has noted one goes on to the next until it ends its turn with `rest`. Turns
        are given in the order in which groups asked for them: of two that wait, neither waits for
        the other.
        """
        with self._lock:
            state = self._state
            if (state.alone is None or state.alone.group != group) and not self._next(group):
                return False
            state.alone = _Alone(group, partition, offset)
            state.fetching.setdefault(group, {})[partition] = offset
            state.deaths = [
                one
                for one in state.deaths
                if (one.batch.group, one.batch.partition) != (group, partition)
                or one.batch.offset >= offset
            ]
            self._write()
            return True

    def _next(self, group: str) -> bool:
        """Give a group its turn, or a place in the queue; return whether it has the turn."""
        now = self._clock()
        self._waiting = {
            one: at for one, at in self._waiting.items() if now - at < _WAITING_SECONDS
        }
        self._waiting[group] = now  # One that waits already keeps its place.
        if self._state.alone is not None or next(iter(self._waiting)) != group:
            return False
        del self._waiting[group]
        return True

    def rest(self, group: str) -> None:
        """Note that a stage fetches no batch alone any more."""
        with self._lock:
            if self._state.alone is not None and self._state.alone.group == group:
                self._state.alone = None
                self._write()

    def past(self, group: str, partition: int) -> None:
        """Fetch a partition like any other from now on."""
        with self._lock:
            self._careful.get(group, set()).discard(partition)
            self._state.deaths = self._others(group, partition)
            self._write()

    def leave(self, group: str) -> None:
        """Note that a stage fetches nothing."""
        with self._lock:
            self._state.fetching.pop(group, None)
            self._waiting.pop(group, None)
            if self._state.alone is not None and self._state.alone.group == group:
                self._state.alone = None
            self._write()

    @property
    def why(self) -> str:
        """Return why a batch is refused."""
        return (
            "the worker died twice while it fetched nothing but the batch there. It unpacks to more"
            f" than fits into the worker's memory ({self._memory >> 20:,} MiB)"
        )

    def _write(self) -> None:
        self._notes.write(_encode(self._state))
