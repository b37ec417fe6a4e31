"""The interface between the loop and a stage."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol

from worker.bus import (
    AnyOutgoing,
    PartitionUnreadable,
    RecordBatch,
    TopicPartition,
)

NOTHING: Mapping[TopicPartition, int] = MappingProxyType({})
"""No offset of any partition."""


class StageError(Exception):
    """The stage can't continue; the message says why, and what to do."""


class Burst(NamedTuple):
    """The output of a stage: one transaction, and how its inputs are read after it.

    Attributes:
        records: what to write.
        offsets: the input offsets to commit with them. Without any, nothing is committed.
        size: the bytes of the records, if the stage limits them to the ``room`` it is given.
        more: whether more is ready to be written than there was room for.
        held: the inputs that must deliver nothing for now.
        starts: the inputs that have become ready, with the offsets to read them from.
        epochs: the leader epochs of those ``offsets`` that the stage's member has not read up to.
    """

    records: Sequence[AnyOutgoing] = ()
    offsets: Mapping[TopicPartition, int] = NOTHING
    size: int | None = None
    more: bool = False
    held: frozenset[TopicPartition] = frozenset()
    starts: Mapping[TopicPartition, int] = NOTHING
    epochs: Mapping[TopicPartition, int] = NOTHING


class RestoreState(NamedTuple):
    """The progress of a shard that doesn't answer yet: bytes fetched, records left to replay."""

    bytes_done: int = 0
    bytes_total: int = 0
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a stage's shards; a stage without shards has nothing to restore.

    Attributes:
        restoring: the shards that don't answer yet, by number.
        restored: a counter that grows while a restore makes progress.
        standby_lag: how many records each warm shard is behind its owner, by shard.
    """

    restoring: Mapping[int, RestoreState] = field(default_factory=dict)
    restored: int = 0
    standby_lag: Mapping[int, int] = field(default_factory=dict)


class Shards(Protocol):
    """The part of a stage that has shards of an index, besides `Stage`, for the loop."""

    def idle(self) -> None:
        """Flush, ship and report what is due. Called about once a second, or more often.

        Raises:
            StageError: the disk is full, or can't be read or written.
        """

    def status(self) -> Status:
        """Return which shards don't answer yet, and how far the warm ones are behind.

        Health checks and the watchdog call this from any thread while the stage's own thread
        works, so it must not block, nor touch anything that thread may close.
        """


class Stage(Protocol):
    """A transformation of records to records.

    It sees the bus, the clock and the disk only through what it is given. The loop calls
    `adopt` first, and again whenever the assignment changes, a transaction is rolled back, or
    the log was cut. It then calls `process` after each poll, commits what that returns in one
    transaction, and calls `committed`.
    """

    @property
    def name(self) -> str:
        """Return the name of the stage in settings and metrics."""

    @property
    def shards(self) -> Shards | None:
        """Return what the loop asks of a stage with shards; None for a stage without any."""

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        """Own exactly these partitions from now on, with nothing in flight.

        ``offsets`` are the committed offsets; ``watermarks`` returns a partition's start and end
        offsets. Returns the offset from which to read each partition. A partition that is left
        out stays paused until `Burst.starts` has it, because preparing one may take longer than a
        group member may go without polling.

        Raises:
            StageError: the state can't be reconciled with the log.
        """

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        """Take records of the owned partitions, in order; return what is ready to be written.

        A stage that buffers returns about ``room`` bytes of output, and at least one record's
        worth. The output of a stage that doesn't buffer is bounded by its input.

        ``quiet`` are inputs that deliver nothing, with their positions: between their last records
        and these, only transaction markers and aborted records were read. A stage commits such a
        position once all before it is processed. An offset before it falls out of the log once
        retention has emptied that.

        Raises:
            StageError: the input breaks the contract between the stages, or a partition can't be
                prepared.
        """

    def committed(self) -> None:
        """Apply the last burst's changes to the state."""

    def unreadable(self, error: PartitionUnreadable) -> int | None:
        """Return the offset to continue from when what is at a position can't be read.

        With None, the partition waits until `Burst.starts` has it.

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
