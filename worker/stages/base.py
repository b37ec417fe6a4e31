"""The interface between the loop and a stage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from worker.bus import OffsetOutOfRange, Outgoing, PartitionUnreadable, Record, TopicPartition

__all__ = ["Burst", "RestoreState", "Stage", "StageError", "StatelessStage", "Status", "unread"]


class StageError(Exception):
    """The stage can't continue; the message says why, and what to do."""


class Burst(NamedTuple):
    """One transaction: the records to write, and the input offsets to commit with them."""

    records: Sequence[Outgoing]
    offsets: Mapping[TopicPartition, int]
    size: int | None = None
    """The bytes of the records, if the stage limits them to the ``room`` it is given."""


class RestoreState(NamedTuple):
    """The progress of a shard that doesn't answer yet: bytes fetched, records left to replay."""

    bytes_done: int = 0
    bytes_total: int = 0
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a stage. A stateless stage has nothing to restore.

    Attributes:
        restoring: the shards that don't answer yet, by number.
        restored: a counter that grows while a restore makes progress.
        standby_lag: how many records each warm shard is behind its owner, by shard.
    """

    restoring: Mapping[int, RestoreState] = field(default_factory=dict)
    restored: int = 0
    standby_lag: Mapping[int, int] = field(default_factory=dict)


class Stage(Protocol):
    """A transformation of records to records.

    It sees the bus, the clock and the disk only through what it is given. The loop calls
    `adopt` first, and again whenever the assignment changes or a transaction is rolled
    back. It then calls `process`, commits what that returns in one transaction, and calls
    `committed`.
    """

    @property
    def name(self) -> str:
        """Return the name of the stage in settings and metrics."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Return the topics that it reads."""

    @property
    def pending(self) -> bool:
        """Return whether more is ready to be written than the last burst had room for."""

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own exactly these partitions from now on, with nothing in flight.

        ``offsets`` are the committed offsets; ``watermarks`` returns a partition's start and end
        offsets. Returns the offset from which to read each partition. A partition that is left
        out stays paused until `started` returns it.

        Raises:
            StageError: the state can't be reconciled with the log.
        """

    def started(self) -> Mapping[TopicPartition, int]:
        """Return the owned partitions that have become ready, with the offsets to read from.

        Called after every poll, because preparing a partition may take longer than a group
        member may go without polling.

        Raises:
            StageError: a partition can't be prepared.
        """

    def process(self, records: Sequence[Record], room: int = sys.maxsize) -> Burst | None:
        """Take records of the owned partitions, in order; return what is ready to be written.

        A stage that buffers returns about ``room`` bytes of output, and at least one record's
        worth; `pending` says whether it has more. The output of a stage that doesn't buffer is
        bounded by its input.

        Raises:
            StageError: the input breaks the contract between the stages.
        """

    def settle(self, positions: Mapping[TopicPartition, int]) -> Burst | None:
        """Return what to commit so that these inputs are processed up to these positions.

        After the last record of each, only transaction markers and aborted records were read. A
        committed offset before them falls out of the log once retention has emptied it.
        Returns None if the stage doesn't need this.
        """

    def reduced(self, record: Outgoing) -> Outgoing | None:
        """Return a smaller version of a record that its topic rejects; None if there is none."""

    def committed(self) -> None:
        """Apply the last burst's changes to the state."""

    def idle(self) -> None:
        """Do what is due between bursts. Called about once a second, or more often."""

    def status(self) -> Status:
        """Return the state of the stage.

        Health checks and the watchdog call this from any thread while the stage's own thread
        works, so it must not block, nor touch anything that thread may close.
        """

    def paused(self) -> frozenset[TopicPartition]:
        """Return the partitions that must deliver nothing for now."""

    def out_of_range(self, error: OffsetOutOfRange) -> int:
        """Return the offset to continue from when a position is outside the log.

        Raises:
            StageError: the stage needs what was lost.
        """

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Return the offset to continue from when what is at a position can't be read.

        With None, the partition waits until `started` returns it.

        Raises:
            PartitionUnreadable: the stage needs what is there. The message says what to do.
        """

    def close(self) -> None:
        """Release state and files."""


def unread(error: PartitionUnreadable) -> PartitionUnreadable:
    """Return the error of a batch of ``documents`` that can't be read, with what to do."""
    if not error.whole:
        return error
    place, at = error.partition, error.position
    return PartitionUnreadable(
        place,
        at,
        f"{error.why}. Nothing from there on was read. Give the workers more memory"
        f" (worker.memory), or set the batch aside: `neardup skip {place.partition} {at}` has all"
        " of it rejected. See the runbook, 'A batch that can't be unpacked'",
        whole=True,
    )


class StatelessStage:
    """A stage without state that never pauses its input."""

    pending = False

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],  # noqa: ARG002 -- port
    ) -> dict[TopicPartition, int]:
        """Continue from the committed offsets."""
        return dict(offsets)

    def started(self) -> Mapping[TopicPartition, int]:
        """Return nothing: all partitions are ready at once."""
        return {}

    def settle(
        self,
        positions: Mapping[TopicPartition, int],  # noqa: ARG002 -- port
    ) -> Burst | None:
        """Return None: nothing has to be committed."""
        return None

    def reduced(self, record: Outgoing) -> Outgoing | None:  # noqa: ARG002 -- port
        """Return None: nothing can be left out of a frame."""
        return None

    def committed(self) -> None:
        """Do nothing: there is no state."""

    def idle(self) -> None:
        """Do nothing."""

    def status(self) -> Status:
        """Return an empty status: there is nothing to restore."""
        return Status()

    def paused(self) -> frozenset[TopicPartition]:
        """Return none."""
        return frozenset()

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Raise it: the stage needs all that it reads."""
        raise error

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
