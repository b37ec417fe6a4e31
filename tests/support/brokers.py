"""The in-process log, and what brokers do to it while they fail, or as time passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus, wall_clock
from worker.bus.memory.coordinator import Coordinator, Identity
from worker.bus.memory.group import Group
from worker.bus.memory.log import PartitionLog
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Faults, no_faults

_WEEK_MS: Final = 7 * 24 * 3_600_000


class Retention(NamedTuple):
    """How long a topic keeps records, and when it begins a new segment, in milliseconds.

    These are ``retention.ms`` and ``segment.ms``, with Kafka's default for the latter.
    """

    ms: int
    segment_ms: int = _WEEK_MS


@dataclass(slots=True)
class _Segment:
    """A run of batches: its first offset, and the timestamps that decide when it goes."""

    base: int
    first: int
    """The largest timestamp of its first batch."""
    largest: int


class Segments:
    """The segments of one partition's log.

    Kafka 4.3's rules (``UnifiedLog.deletableSegments``, ``LogSegment.shouldRoll``):

    - Only a write begins a new segment: one whose largest timestamp is more than
      ``segment_ms`` after that of the segment's first batch. A partition without writes
      keeps its last segment open.
    - A segment has expired when its largest timestamp is more than ``ms`` ago. Timestamps
      of aborted records and of transaction markers count. Segments are deleted from the
      oldest on, up to the first that has not expired.
    - The last segment is no exception. When it expires with all others, the log begins a
      new one, and so starts at its end: after the marker of its last transaction.

    One thing is simpler: segments that reach past the last stable offset are never deleted.
    Kafka would delete them, but no transaction stays open for as long as records are kept.
    """

    __slots__ = ("_retention", "_segments")

    def __init__(self, retention: Retention) -> None:
        """Start without segments."""
        self._retention = retention
        self._segments: deque[_Segment] = deque()

    def append(self, base: int, timestamp: int) -> None:
        """Record a batch by its first offset and its largest timestamp."""
        last = self._segments[-1] if self._segments else None
        if last is None or timestamp - last.first > self._retention.segment_ms:
            self._segments.append(_Segment(base, timestamp, timestamp))
        else:
            last.largest = max(last.largest, timestamp)

    def expire(self, now: int, start: int, stable: int, end: int) -> int:
        """Drop the segments that expire by ``now``; return the log's new start.

        ``start``, ``stable`` and ``end`` are those of the log. Segments before its start
        are deleted whatever their age.
        """
        while self._segments:
            after = self._segments[1].base if len(self._segments) > 1 else end
            expired = now - self._segments[0].largest > self._retention.ms
            if after > stable or not (expired or after <= start):
                break
            self._segments.popleft()
            start = max(start, after)
        return start


class RetainedLog(PartitionLog):
    """A log from which segments are deleted as they expire."""

    __slots__ = ("_segments",)

    def __init__(
        self, partition: TopicPartition, first_offset: int = 0, *, log_append_time: bool = False
    ) -> None:
        """Create an empty log that keeps its records for ever."""
        super().__init__(partition, first_offset, log_append_time=log_append_time)
        self._segments: Segments | None = None

    def retain(self, retention: Retention | None, now: int) -> None:
        """Set or, with None, end retention by time. Existing records become one segment."""
        self._segments = None if retention is None else Segments(retention)
        if self._segments is not None and self.end > self.start:
            self._segments.append(self.start, self._largest(self.start, now))

    def extend(
        self, batch: Iterable[Outgoing], now: int, transaction: Hashable | None = None
    ) -> int:
        """See `PartitionLog.extend`."""
        base = super().extend(batch, now, transaction)
        if self._segments is not None:
            self._segments.append(base, self._largest(base, now))
        return base

    def finish(self, transaction: Hashable, now: int, *, commit: bool) -> None:
        """See `PartitionLog.finish`."""
        if self._segments is not None:
            self._segments.append(self.end, now)
        super().finish(transaction, now, commit=commit)

    def expire(self, now: int) -> None:
        """Delete the expired segments; see `Segments`."""
        if self._segments is not None:
            self.trim(self._segments.expire(now, self.start, self.stable, self.end))

    def _largest(self, base: int, now: int) -> int:
        """Return the largest timestamp from an offset on; ``now`` if no record has one."""
        stamps = (record.timestamp for record in self._records[self._index(base) :])
        largest = max(stamps, default=-1)
        return largest if largest >= 0 else now


GroupProtocol = Literal["classic", "consumer"]
"""The group protocol: classic, or that of KIP-848."""


class OffsetExpiry:
    """Determines which offsets have expired.

    Kafka 4.3's rules (``OffsetMetadataManager.cleanupExpiredOffsets``,
    ``offsetExpirationCondition`` of ``ClassicGroup`` and ``ConsumerGroup``): an offset of a
    topic that a member of its group subscribes to never expires. Any other expires
    ``offsets.retention.minutes`` after

    - the group lost its last member, under the classic protocol, if it ever had one;
    - the offset was committed, in all other cases. Under KIP-848 this holds for every
      group: an offset that was committed long ago expires as soon as the group is empty.
    """

    def __init__(
        self, clock: Callable[[], int], retention_ms: int | None, protocol: GroupProtocol
    ) -> None:
        """Take the clock (ms); without ``retention_ms`` nothing expires."""
        self._clock = clock
        self._retention_ms = retention_ms
        self._protocol = protocol
        self._committed_at: dict[str, dict[TopicPartition, int]] = {}

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Record that a group has committed offsets."""
        if self._retention_ms is not None:
            times = self._committed_at.setdefault(group, {})
            times.update(dict.fromkeys(partitions, self._clock()))

    def expired(self, name: str, group: Group) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired."""
        if self._retention_ms is None:
            return []
        now, times = self._clock(), self._committed_at.get(name, {})
        emptied = group.emptied_at if self._protocol == "classic" else None
        return [
            partition
            for partition in group.offsets
            if not group.subscribes(partition.topic)
            and now - (times[partition] if emptied is None else emptied) >= self._retention_ms
        ]


class ExpiringCoordinator(Coordinator):
    """A coordinator that forgets the offsets of groups, and fails in the midst of transactions."""

    def __init__(self, topics: Topics, expiry: OffsetExpiry, *, trim_consumed: bool) -> None:
        """Coordinate over these topics."""
        super().__init__(topics, trim_consumed=trim_consumed)
        self._expiry = expiry

    def store(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        identities: Mapping[str, str],
        *,
        of: str | None = None,
        epochs: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """See `Coordinator.store`."""
        super().store(group, offsets, identities, of=of, epochs=epochs)
        self._expiry.committed(group, offsets)

    def tear(self, identity: Identity, keeps: Callable[[TopicPartition | None], bool]) -> None:
        """End the open transaction of a name with a commit in some partitions only."""
        self._open[identity].end("torn", keeps)

    def expire(self) -> None:
        """Drop the expired offsets, except those in an open transaction."""
        for name, group in self._groups.items():
            for partition in self._expiry.expired(name, group):
                if not any(t.holds(name, (partition,)) for t in self._open.values()):
                    del group.offsets[partition]
                    del group.identities[partition]
                    self._unconsumed(name, partition)


class Brokers(MemoryBus):
    """The in-process log, with all that its brokers may do.

    Nothing happens by itself: `evict` simulates a process that stays away until its session ends,
    and `pass_time` simulates what brokers delete in the background.
    """

    _coordinator: ExpiringCoordinator

    def __init__(
        self,
        *,
        clock: Callable[[], int] = wall_clock,
        trim_consumed: bool = False,
        offsets_retention_ms: int | None = None,
        group_protocol: GroupProtocol = "classic",
        faults: Faults = no_faults,
    ) -> None:
        """Create an empty log; see `MemoryBus`.

        ``offsets_retention_ms`` is when offsets of groups without members expire, if ever, by the
        rules of ``group_protocol``; see `OffsetExpiry`.
        """
        super().__init__(clock=clock, trim_consumed=trim_consumed, faults=faults)
        self._topics = Topics(clock, RetainedLog)
        expiry = OffsetExpiry(clock, offsets_retention_ms, group_protocol)
        self._coordinator = ExpiringCoordinator(self._topics, expiry, trim_consumed=trim_consumed)

    def evict(self, group: str, instance: str) -> None:
        """Let a member's session and transaction time out.

        This removes its seat and aborts its open transaction. If the member is still alive, it
        can't commit any more, and takes a seat again with its next poll.
        """
        self._coordinator.check_thread()
        self._coordinator.abort_open(Identity(group, instance))
        self._coordinator.group(group).leave(instance)

    def silence(self, group: str) -> None:
        """Let a group's coordinator answer no member, for longer than their sessions last.

        All members lose their assignments, and their polls return nothing until `answer`.
        """
        self._coordinator.check_thread()
        self._coordinator.group(group).silent = True

    def answer(self, group: str) -> None:
        """End a silence: the group assigns its partitions anew."""
        self._coordinator.check_thread()
        self._coordinator.group(group).answer()

    def cut(self, topic: str, partition: int, offset: int) -> None:
        """Lose all records from an offset on, as by an unclean election of a leader."""
        self._coordinator.check_thread()
        self._topics.log(TopicPartition(topic, partition)).cut(offset)

    def tear(
        self, group: str, instance: str, keeps: Callable[[TopicPartition | None], bool]
    ) -> None:
        """End a member's transaction with a commit in some partitions, and an abort in the others.

        Kafka's coordinators may do so while brokers fail. ``keeps`` returns whether a partition
        sees a commit (None: the group's offsets). Call it from a hook, before the step ``commit``.
        """
        self._coordinator.tear(Identity(group, instance), keeps)

    def retain(self, topic: str, retention: Retention | None) -> None:
        """Set how long a topic keeps records; None, the default, keeps them for ever.

        Existing records become one segment; see `Segments`.

        Raises:
            BusError: the topic doesn't exist.
        """
        self._coordinator.check_thread()
        for log in self._logs(topic):
            log.retain(retention, self._topics.clock())

    def pass_time(self) -> None:
        """Do what brokers do as time passes; call this whenever the clock has moved far.

        Deletes expired segments (see `Segments`) and expired offsets of groups (see
        `OffsetExpiry`).
        """
        self._coordinator.check_thread()
        for topic in self._topics.identities:
            for log in self._logs(topic) if self._topics.count(topic) else ():
                log.expire(self._topics.clock())
        self._coordinator.expire()

    def _logs(self, topic: str) -> list[RetainedLog]:
        numbers = range(self._topics.count(topic) or 1)
        logs = [self._topics.log(TopicPartition(topic, number)) for number in numbers]
        return [log for log in logs if isinstance(log, RetainedLog)]
