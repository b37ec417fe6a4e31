"""A transaction over partitions and a group's offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol

from worker.bus.memory.log import PartitionLog
from worker.bus.memory.topics import Topics
from worker.bus.port import Aborted, Outgoing, TopicPartition

__all__ = ["StoreOffsets", "Transaction"]


class StoreOffsets(Protocol):
    """Sets a group's offsets."""

    def __call__(
        self, group: str, offsets: Mapping[TopicPartition, int], *, of: str | None
    ) -> None:
        """Set them; they are of the topic ``of``, or each of its own."""


class Transaction:
    """Records that nobody sees, and offsets that don't count, until it commits.

    Its records take their offsets at once, and hold back all later ones of their
    partitions until it ends. A new producer of the same name, or a timeout, may abort it
    from outside; whoever goes on with it then gets Aborted.
    """

    def __init__(self, topics: Topics, store: StoreOffsets) -> None:
        """Begin; ``store`` sets a group's offsets when it commits."""
        self._topics = topics
        self._store = store
        self._state: Literal["open", "committed", "aborted"] = "open"
        self._logs: dict[PartitionLog, None] = {}  # an ordered set
        self._offsets: dict[tuple[str, str | None], dict[TopicPartition, int]] = {}

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self._state == "open"

    def append_many(self, records: Iterable[Outgoing]) -> None:
        """Write records.

        Raises:
            Aborted: it has ended.
            BusError: a topic or partition doesn't exist; nothing was written.
        """
        for log, batch in self._topics.route(records).items():
            self.extend(log, batch)

    def extend(self, log: PartitionLog, batch: Iterable[Outgoing]) -> None:
        """Write records that have their partition."""
        self._check()
        log.extend(batch, self._topics.clock(), self)
        self._logs[log] = None

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, of: str | None = None
    ) -> None:
        """Make a group's offsets part of it; they are of the topic ``of``, or each of its own."""
        self._check()
        self._offsets.setdefault((group, of), {}).update(offsets)

    def holds(self, group: str, partitions: Iterable[TopicPartition]) -> bool:
        """Tell whether it is in doubt which offsets the group has there."""
        held = {
            place
            for (name, _), offsets in self._offsets.items()
            if name == group
            for place in offsets
        }
        return self.open and not held.isdisjoint(partitions)

    def commit(self) -> None:
        """Make everything visible at once."""
        self._check()
        self._state = "committed"
        now = self._topics.clock()
        for log in self._logs:
            log.finish(self, now, commit=True)
        for (group, of), offsets in self._offsets.items():
            self._store(group, offsets, of=of)

    def abort(self) -> None:
        """Undo everything; again is harmless.

        Raises:
            RuntimeError: it was committed.
        """
        if self._state == "committed":
            raise RuntimeError("a committed transaction can't be aborted")
        if self._state == "open":
            self._state = "aborted"
            now = self._topics.clock()
            for log in self._logs:
                log.finish(self, now, commit=False)

    def _check(self) -> None:
        if not self.open:
            raise Aborted(f"the transaction is {self._state} already")
