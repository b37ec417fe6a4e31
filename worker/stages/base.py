"""What the loop asks of a stage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from worker.bus import OffsetOutOfRange, Outgoing, Record, TopicPartition

__all__ = ["Burst", "Stage", "StageError", "StatelessStage"]


class StageError(Exception):
    """The stage can't go on; the message says why, and what to do."""


class Burst(NamedTuple):
    """One transaction: what to write, and how far the inputs are then dealt with."""

    records: Sequence[Outgoing]
    offsets: Mapping[TopicPartition, int]
    size: int | None = None
    """The bytes of the records, of a stage that keeps to the room that it is given."""


class Stage(Protocol):
    """A transformation of records to records.

    It sees no bus, no clock and no disk but through what it was given. The loop calls
    `adopt` first, and again whenever the assignment changed or a transaction was rolled
    back; then `process`, and after the transaction of what that returned, `committed`.
    """

    @property
    def name(self) -> str:
        """Name the stage, as settings and metrics do."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Name the topics that it reads."""

    @property
    def pending(self) -> bool:
        """Tell whether more is ready to be written than the last burst had room for."""

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own exactly these partitions, from now on, with nothing in flight.

        Takes the committed offsets, and a way to ask for a log's start and end. Gives the
        offset from which to read each partition; one that is left out stays paused, at least
        until `started` names it.

        Raises:
            StageError: the state can't be brought in line with the log.
        """

    def started(self) -> Mapping[TopicPartition, int]:
        """Name owned partitions that can be read only now, with the offsets to read from.

        Asked after every poll: what a partition needs may take longer to get ready than a
        member may stay away from its group.

        Raises:
            StageError: one can't be got ready.
        """

    def process(self, records: Sequence[Record], room: int = sys.maxsize) -> Burst | None:
        """Take records of the owned partitions, in order; give what is ready to be written.

        A stage that writes what it has taken in before gives about ``room`` bytes of it, and at
        least one record's worth. If it has more, `pending` says so. One that writes what these
        records make of themselves is bounded by them.

        Raises:
            StageError: the input contradicts what the stages promise each other.
        """

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Give what is to be committed so that these inputs are dealt with up to here.

        Behind the last record of each, only markers of transactions and aborted records have
        been read. An offset that stays before them is lost when retention empties the log.
        None: the stage can do without.
        """

    def reduced(self, record: Outgoing) -> Outgoing | None:
        """Give a smaller version of a record that its topic refuses; None if there is none."""

    def committed(self) -> None:
        """Make final what the last burst meant for the state."""

    def idle(self) -> None:
        """Do what is due between bursts; called at least about once a second."""

    def paused(self) -> frozenset[TopicPartition]:
        """Name the partitions that should deliver nothing for now."""

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Give the offset to go on from where the log has lost a position.

        Raises:
            StageError: what was lost can't be done without.
        """

    def close(self) -> None:
        """Let go of state and files."""


class StatelessStage:
    """A stage that keeps nothing, and takes all that comes."""

    pending = False

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],  # noqa: ARG002 -- port
    ) -> dict[TopicPartition, int]:
        """Go on from the committed offsets."""
        return dict(offsets)

    def started(self) -> Mapping[TopicPartition, int]:
        """All partitions can be read at once."""
        return {}

    def settle(
        self,
        positions: Mapping[TopicPartition, int],  # noqa: ARG002 -- port
    ) -> Burst | None:
        """Do without."""
        return None

    def reduced(self, record: Outgoing) -> Outgoing | None:  # noqa: ARG002 -- port
        """Nothing can be left out of a frame."""
        return None

    def committed(self) -> None:
        """Nothing is kept."""

    def idle(self) -> None:
        """Nothing is due."""

    def paused(self) -> frozenset[TopicPartition]:
        """Take all that comes."""
        return frozenset()

    def close(self) -> None:
        """Nothing is held."""
