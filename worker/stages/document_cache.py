"""The documents that *fingerprint* has read, kept for *route* of the same worker.

Both stages need the payloads. Where a worker has both for a partition, they are fetched once: what
*fingerprint* has read stays here until *route* publishes it. What isn't here, *route* reads from
the log: after a restart, of a partition that has moved, and where it is too far behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from worker.bus import Claim, RecordBatch
from worker.stages.budget import batch_cost

_NEAR = 10_000
"""Offsets by which *route* may be behind *fingerprint* when a partition's documents begin to be
kept."""
_PATIENCE_SECONDS = 2.0
"""How long *fingerprint* waits for room while *route* takes nothing."""
_ROOMY = 3 / 4
"""A share of the memory: one that waits for room goes on below it."""


class Changed(AbstractContextManager[object], Protocol):
    """A lock that is left for a while until what it guards has changed: a condition variable."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> object:
        """Leave it until the predicate holds, for so many seconds at most."""

    def notify_all(self) -> None:
        """Wake up whoever waits."""


class _Alone(nullcontext[None]):
    """Implements `Changed` for one thread, in which nothing changes meanwhile."""

    def wait_for(self, predicate: Callable[[], bool], timeout: float) -> object:
        """Wait for nothing."""
        del timeout
        return predicate()

    def notify_all(self) -> None:
        """Wake up nobody."""


class Taken(NamedTuple):
    """Documents in the order of their offsets; there are no others before ``reached``."""

    batches: list[RecordBatch]
    reached: int


class _Piece(NamedTuple):
    """What was read from offset ``low`` up to ``high``; None if that were no documents."""

    low: int
    high: int
    batch: RecordBatch | None
    cost: int


@dataclass(slots=True)
class _Lane:
    """A partition: where *fingerprint* reads it, if it does; and what is kept, without gaps.

    ``claim`` is what *fingerprint* has committed of it.
    """

    position: int | None = None
    claim: Claim | None = None
    wanted: bool = False
    keeping: bool = False
    pieces: deque[_Piece] = field(default_factory=deque)


class DocumentCache:
    """Documents that were read and are not published yet, within a budget."""

    def __init__(
        self,
        most_bytes: int,
        changed: Changed | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Take the budget, and a clock in seconds.

        Where the stages have threads of their own, ``changed`` keeps them apart.
        """
        self._most = most_bytes
        self._clock = clock
        self._changed = changed or _Alone()
        self._lanes: dict[int, _Lane] = {}
        self._cost = self._beside = 0
        self._moved_at = clock()

    @property
    def cost(self) -> int:
        """Return about how many bytes the documents take."""
        return self._cost

    def read_from(self, positions: Mapping[int, int]) -> None:
        """Have *fingerprint* read exactly these partitions, from these offsets on."""
        with self._changed:
            for number in self._lanes.keys() | positions.keys():
                lane = self._lanes.setdefault(number, _Lane())
                if lane.position != positions.get(number):
                    self._drop(lane)
                    lane.claim = None
                lane.position = positions.get(number)

    def read(self, number: int, high: int, batch: RecordBatch | None = None) -> None:
        """Note that *fingerprint* has read a partition up to ``high``, and the documents there."""
        with self._changed:
            lane = self._lanes[number]
            low, lane.position = lane.position, high
            if lane.keeping and low is not None:
                cost = 0 if batch is None else batch_cost(batch)
                lane.pieces.append(_Piece(low, high, batch, cost))
                if not self._cost:
                    self._moved_at = self._clock()
                self._cost += cost

    def know(self, number: int, claim: Claim) -> None:
        """Note what *fingerprint* has committed of a partition."""
        with self._changed:
            self._lanes.setdefault(number, _Lane()).claim = claim

    def epoch(self, number: int, offset: int) -> int | None:
        """Return a leader epoch that none before an offset exceeds; None if none is known."""
        with self._changed:
            lane = self._lanes.get(number)
            claim = None if lane is None or lane.position is None else lane.claim
            return None if claim is None or claim.offset < offset else claim.epoch

    def publish_from(self, offsets: Mapping[int, int]) -> None:
        """Have *route* publish exactly these partitions, from these offsets on."""
        with self._changed:
            for number in self._lanes.keys() | offsets.keys():
                lane = self._lanes.setdefault(number, _Lane())
                lane.wanted = number in offsets
                self._drop(lane)

    def take(self, number: int, low: int, high: int) -> Taken | None:
        """Remove and return a partition's documents from ``low`` up to ``high``.

        Returns None if those at ``low`` are not here, and will not be.
        """
        with self._changed:
            lane = self._lanes.get(number)
            if lane is None or lane.position is None or not lane.wanted:
                return None
            lane.keeping = lane.keeping or lane.position - low <= _NEAR
            while lane.pieces and lane.pieces[0].high <= low:
                self._cost -= lane.pieces.popleft().cost
            first = lane.pieces[0].low if lane.pieces else lane.position
            if not lane.keeping or first > low:
                return None
            taken = self._taken(lane, low, high)
            if taken.batches:
                self._moved_at = self._clock()
                self._changed.notify_all()
            return taken

    def _taken(self, lane: _Lane, low: int, high: int) -> Taken:
        batches = []
        while lane.pieces and lane.pieces[0].low < high:
            piece = lane.pieces.popleft()
            self._cost -= piece.cost
            if piece.high > high:
                self._cost += self._put_back(lane, piece, high)
            if piece.batch is not None:
                first, last = np.searchsorted(piece.batch.offsets, (low, high)).tolist()
                if first < last:
                    batches.append(piece.batch.rows(first, last))
            low = max(low, min(piece.high, high))
        return Taken(batches, low)

    def _put_back(self, lane: _Lane, piece: _Piece, low: int) -> int:
        """Keep what a piece has from ``low`` on; return its cost."""
        rest, cost = None, 0
        if piece.batch is not None:
            row = int(np.searchsorted(piece.batch.offsets, low))
            if row < len(piece.batch):
                rest = piece.batch.rows(row, len(piece.batch))
                cost = batch_cost(rest)
        lane.pieces.appendleft(_Piece(low, piece.high, rest, cost))
        return cost

    def wait_beside(self, cost: int) -> None:
        """Note how many bytes wait in *route*: they are a part of the budget."""
        with self._changed:
            self._beside = cost
            self._changed.notify_all()

    def has_room(self, seconds: float) -> bool:
        """Wait at most so long until there is room for more; return whether there is.

        If *route* takes nothing for a while, everything is dropped. It then waits for answers that
        may take long, and *fingerprint* must not.
        """
        with self._changed:
            if self._full(1.0):
                self._changed.wait_for(lambda: not self._full(_ROOMY), seconds)
            if self._full(1.0) and self._clock() - self._moved_at > _PATIENCE_SECONDS:
                for lane in self._lanes.values():
                    self._drop(lane)
            return not self._full(1.0)

    def _full(self, share: float) -> bool:
        return bool(self._cost) and self._cost + self._beside >= self._most * share

    def _drop(self, lane: _Lane) -> None:
        self._cost -= sum(piece.cost for piece in lane.pieces)
        lane.pieces.clear()
        lane.keeping = False
        self._changed.notify_all()
