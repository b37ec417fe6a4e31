"""When the shards of a generation answer: from the hand-over to it, to the next one.

A shard that is being built commits `BUILDING` and the offset that it has reached. So all that it
reads comes before its committed offset, and is replayed without answers. At the hand-over to its
generation it begins to answer, and commits plain offsets from then on.

*fingerprint* has turns, too, if the next generation has a log of its own. At the end of the
earlier log it commits `SEALED` and the offset that it has reached, and reads nothing more. In the
group of the next log the offset is `BUILDING`, until it is told where to begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from worker.bus import Record, TopicPartition
from worker.wire import hand_over

__all__ = ["BUILDING", "SEALED", "Turn", "Turns", "reached"]

BUILDING = 1 << 62
"""Added to the committed offsets of a shard that has never answered. No log is so long."""


SEALED = BUILDING + (1 << 61)
"""Added to an offset of the documents up to which, and no further, a log has their fingerprints."""


def reached(committed: int) -> int | None:
    """Return the offset that a group has reached; None if it has not begun."""
    if committed >= SEALED:
        return committed - SEALED
    return None if committed == BUILDING else committed % BUILDING


@dataclass(frozen=True, slots=True)
class Turn:
    """What a shard is to do with the records that it has read.

    Attributes:
        frames: those to judge.
        begun: the offset after the hand-over at which it begins to answer, if it is among them.
        passed: the offset after a hand-over that is none of its business, if no frame follows.
    """

    frames: Sequence[Record]
    begun: int | None = None
    passed: int | None = None


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
            FrameError: a hand-over is damaged, or of another layout.
        """
        frames: list[Record] = []
        begun = passed = None
        for record in () if seat in self._ended else records:
            generation = hand_over(record.value, self._layout)
            if generation is None:
                frames.append(record)
                passed = None
            elif generation > self._generation:
                self._ended.add(seat)
                break
            elif generation == self._generation and committed >= BUILDING:
                begun = record.offset + 1
            else:
                passed = record.offset + 1
        return Turn(frames, begun, passed)
