"""A transaction over partitions and a group's offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from worker.bus import Aborted, Effect, Outgoing, Refused, TopicPartition
from worker.bus.memory.log import PartitionLog
from worker.bus.memory.topics import Topics

Step = Literal["begin", "produce", "offsets", "commit", "committed"]


class Faults(Protocol):
    """Called before each step of `Member.commit` or `LogWriter.commit`, and after the last.

    ====================  ==========================================================
    ``begin``             before anything happens
    ``produce``           before the records of each partition, in turn
    ``offsets``           the records are written; before the offsets
    ``commit``            everything is written, and nothing is visible
    ``committed``         everything is visible; the caller doesn't know it yet
    ====================  ==========================================================

    It returns, or raises what the caller is to see:

    - `Aborted`: the transaction is rolled back first. Not allowed at ``committed``.
    - `OutcomeUnknown`: at ``commit`` the transaction stays open, and `renew`, or a new
      member or writer of the same name, aborts it. At ``committed`` it took effect.
    - any other exception simulates the death of the process: an open transaction stays
      open until a new member takes the name.

    A `LogWriter` has an empty group and no offsets; its name is the instance.

    A hook may use the bus, for example to let another member join in the middle.
    """

    def __call__(self, step: Step, group: str, instance: str, /) -> None:
        """Return to continue, or raise."""


def no_faults(step: Step, group: str, instance: str) -> None:
    """Let every step continue."""


class StoreOffsets(Protocol):
    """Sets a group's offsets."""

    def __call__(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        of: str | None,
        epochs: Mapping[TopicPartition, int],
    ) -> None:
        """Set the offsets; they belong to the topic ``of``, or each to its own."""


class Transaction:
    """Records and offsets that take effect together when it commits.

    Its records take their offsets at once, and hold back all later records of their partitions
    until it ends. A new producer of the same name, or a timeout, may abort it from outside;
    later calls on it then raise Aborted.
    """

    def __init__(self, topics: Topics, store: StoreOffsets) -> None:
        """Begin; on commit, ``store`` sets the groups' offsets."""
        self._topics = topics
        self._store = store
        self._state: Literal["open", "committed", "aborted", "torn"] = "open"
        self._logs: dict[PartitionLog, None] = {}  # an ordered set
        self._last: dict[TopicPartition, int] = {}
        self._kept: frozenset[PartitionLog | None] = frozenset()
        self._offsets: dict[tuple[str, str | None], dict[TopicPartition, int]] = {}
        self._epochs: dict[TopicPartition, int] = {}

    @property
    def open(self) -> bool:
        """Return whether it has not ended."""
        return self._state == "open"

    def append_many(self, records: Iterable[Outgoing]) -> None:
        """Write records.

        Raises:
            Aborted: the transaction has ended.
            BusError: a topic or partition doesn't exist; nothing was written.
        """
        for log, batch in self._topics.route(records).items():
            self.extend(log, batch)

    def carry_out(
        self,
        batches: Mapping[PartitionLog, Sequence[Outgoing]],
        step: Callable[[Step], None],
        join: Callable[[], None] = lambda: None,
    ) -> None:
        """Write batches and commit; call ``step`` before each step and after the last.

        ``join`` adds the offsets, if any, and calls ``step`` for them itself.

        Raises:
            Aborted: it was ended from outside, or ``step`` raised this.
            OutcomeUnknown: ``step`` raised it.
            Refused: a topic refuses a record; the transaction is aborted.
        """
        try:
            step("begin")
            for log, batch in batches.items():
                step("produce")
                self.extend(log, batch)
            refused = [one for batch in batches.values() for one in self._topics.refused(batch)]
            if refused:
                self.abort()
                msg = f"{refused[0].topic} refuses a record of {refused[0].size} bytes"
                raise Refused(msg, refused, "MSG_SIZE_TOO_LARGE")
            join()
            step("commit")
            self.commit()
        except Aborted:
            self.abort()
            raise
        step("committed")

    def extend(self, log: PartitionLog, batch: Iterable[Outgoing]) -> None:
        """Write records to one partition's log."""
        self._check()
        log.extend(batch, self._topics.clock(), self)
        self._logs[log] = None
        self._last[log.place] = log.end - 1

    def ends(self) -> dict[TopicPartition, int]:
        """Return the offset of the last record that it has written to each partition."""
        return dict(self._last)

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        of: str | None = None,
        epochs: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Add a group's offsets; they belong to the topic ``of``, or each to its own.

        ``epochs`` are the leader epochs that are known.
        """
        self._check()
        self._epochs.update(epochs)
        self._offsets.setdefault((group, of), {}).update(offsets)

    def holds(self, group: str, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether it is open and has offsets of the group for any of these partitions."""
        held = {
            partition
            for (name, _), offsets in self._offsets.items()
            if name == group
            for partition in offsets
        }
        return self.open and not held.isdisjoint(partitions)

    def commit(self) -> None:
        """Make everything visible at once."""
        self._check()
        self.end("committed", lambda _place: True)

    def abort(self) -> None:
        """Undo everything; harmless if it is already aborted.

        Raises:
            RuntimeError: the transaction is committed.
        """
        if self._state == "committed":
            raise RuntimeError("a committed transaction can't be aborted")
        if self._state == "open":
            self.end("aborted", lambda _place: False)

    def end(
        self,
        state: Literal["committed", "aborted", "torn"],
        keeps: Callable[[TopicPartition | None], bool],
    ) -> None:
        """End it in every partition; ``keeps`` returns whether with a commit."""
        self._state = state
        now = self._topics.clock()
        kept: set[PartitionLog | None] = {log for log in self._logs if keeps(log.place)}
        for log in self._logs:
            log.finish(self, now, commit=log in kept)
        if self._offsets and keeps(None):
            kept.add(None)
            for (group, of), offsets in self._offsets.items():
                self._store(group, offsets, of=of, epochs=self._epochs)
        self._kept = frozenset(kept)

    def kept(self, log: PartitionLog | None) -> bool:
        """Return whether what it wrote to a log is committed; for None, whether its offsets are."""
        return log in self._kept

    def _check(self) -> None:
        if not self.open:
            raise Aborted(f"the transaction is already {self._state}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A transaction with what it was to do, to find out later what it did."""

    transaction: Transaction
    records: Sequence[Outgoing]
    batches: Mapping[PartitionLog, Sequence[Outgoing]]
    offsets: bool

    def effect(self) -> Effect:
        """Return what it has left in the log.

        Raises:
            RuntimeError: it is still open.
        """
        if self.transaction.open:
            raise RuntimeError("the last transaction is in doubt; call renew first")
        logs = {id(one): log for log, batch in self.batches.items() for one in batch}
        return Effect(
            [self.transaction.kept(logs[id(one)]) for one in self.records],
            self.transaction.kept(None) if self.offsets else None,
        )
