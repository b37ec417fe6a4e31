"""The time in which a generation's shards answer: from its hand-over to the next one's.

What has not begun, or has ended, says so in the state of its committed offset; see `Offset`. So
the state changes in the transaction in which the answers or frames begin, or end.

The offsets of a shard are `WAITING` until a worker reads for it, and `BUILDING` while it is read
and answers nothing. At the hand-over to its generation it begins to answer, and commits plain
offsets from then on.

*fingerprint* has turns, too, if the next generation has a log of its own. At the end of the
earlier log it commits the offset that it has reached as `SEALED`, and reads nothing more. In the
group of the next log the offset is `WAITING`, until it is told where to begin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from worker.bus import Record, TopicPartition, state_of
from worker.wire.codec import NO_FRAME, hand_over

WAITING: Final = "waiting"
"""The state of a shard that nobody reads for yet, and of a partition that was not begun."""
BUILDING: Final = "building"
"""The state of a shard that has read up to its offset, and has never answered."""
SEALED: Final = "sealed"
"""The state of a partition of the documents of which a log gets nothing from its offset on."""

NEVER: Final = sys.maxsize
"""The first offset to answer of a shard that has not met the hand-over to its generation."""


def answers_yet(committed: int) -> bool:
    """Return whether a shard with this committed offset has ever answered."""
    return state_of(committed) not in {WAITING, BUILDING}


def answers_from(committed: int) -> int:
    """Return the offset from which on a shard with this committed offset answers."""
    return committed if answers_yet(committed) else NEVER


@dataclass(frozen=True, slots=True)
class Turn:
    """The work of a shard with the records that it has read.

    Attributes:
        frames: those to judge.
        begun: the offset after the hand-over at which it begins to answer, if it is among them.
        passed: the offset after a record that is none of its business, if no frame follows: another
            hand-over, or nothing.
        nothing: the records that are neither frames nor hand-overs. All shards pass them over.
    """

    frames: Sequence[Record]
    begun: int | None = None
    passed: int | None = None
    nothing: Sequence[Record] = ()


class Turns:
    """The turns of one generation's shards."""

    def __init__(self, generation: int, layout: str) -> None:
        """Take the generation, and the layout of the frames."""
        self._generation = generation
        self._layout = layout
        self._ended: set[TopicPartition] = set()

    @property
    def ended(self) -> frozenset[TopicPartition]:
        """Return the shards that have met the hand-over to a later generation."""
        return frozenset(self._ended)

    def forget(self, seats: Iterable[TopicPartition]) -> None:
        """Forget that shards have ended: they are read from an earlier offset again."""
        self._ended.difference_update(seats)

    def of(self, seat: TopicPartition, committed: int, records: Sequence[Record]) -> Turn:
        """Return what a shard is to do with records of the log, in their order.

        Raises:
            FrameError: a hand-over is of another layout.
        """
        frames: list[Record] = []
        nothing: list[Record] = []
        begun = passed = None
        for record in () if seat in self._ended else records:
            generation = hand_over(record.value, self._layout)
            if generation is None:
                frames.append(record)
                passed = None
            elif generation > self._generation:
                self._ended.add(seat)
                break
            elif generation == self._generation and committed == NEVER:
                begun = record.offset + 1
            else:
                passed = record.offset + 1
                if generation == NO_FRAME:
                    nothing.append(record)
        return Turn(frames, begun, passed, nothing)
