"""The partitions that a group has assigned to a member, and their positions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus import BusError, TopicPartition
from worker.bus.kafka.error_codes import Means, means
from worker.bus.kafka.errors import cause
from worker.bus.kafka.log_ends import Ends
from worker.visible import counted

_log = logging.getLogger(__name__)

_STARTED_SECONDS = 10.0
_PAUSE_SECONDS = 0.001
_UNEVEN_SECONDS = 30.0
"""After so long, the assignment of a static member is taken for an earlier one."""


class Assignment:
    """Follows a consumer's rebalances; new partitions are paused until sought and resumed.

    The rebalance callbacks only record what happened: they neither raise nor block. All work
    waits until the poll that ran them has returned.

    Attributes:
        partitions: the assigned partitions.
        changed: whether the assignment has changed since `take`.
        revoked: whether nothing is assigned until the next assignment comes.
        lost_at: when the group took away all partitions; None since an assignment has come.
        asking: whether the group is being made to assign partitions anew.
        strange: whether the last assignment had other topics than this member reads.
    """

    def __init__(
        self,
        group: str,
        ends: Ends,
        *,
        eager: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Start without partitions; ``eager`` rebalances (classic protocol) revoke all of them.

        ``ends`` has the ends of logs that are not being fetched.
        """
        self._group = group
        self._ends = ends
        self._eager = eager
        self._clock = clock
        self._consumer: Consumer
        self.partitions: set[TopicPartition] = set()
        self.changed = False
        self.revoked = True
        self.lost_at: float | None = None
        self.asking = False
        self.strange = False
        self._topics: list[str] = []
        self._uneven_since: float | None = None
        self._running: set[TopicPartition] = set()
        self._positions: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def subscribe(self, consumer: Consumer, topics: list[str]) -> None:
        """Follow this consumer from now on; its first polls join the group."""
        self._consumer = consumer
        self.partitions = set()
        self.changed = False
        self.revoked = True
        self._running = set()
        self._positions = {}
        self._epochs = {}
        self.asking = self.strange = False
        self._topics = topics
        self._join(topics)

    def change(self, topics: list[str]) -> None:
        """Have the same member read other topics; the group then assigns partitions anew.

        An eager rebalance revokes all partitions first. Any other one only says what changes, and
        that may be nothing. So what this member has of the topics counts as assigned at once.
        """
        if self._eager:
            self.revoked = True
        self.asking = False
        self._topics = topics
        self._join(topics)
        if not self._eager and not self.revoked:
            self._pause_all(self._consumer)

    @property
    def outdated(self) -> bool:
        """Return whether the assignment is one for topics that this member read earlier.

        With the classic protocol, a static member that comes back gets the assignment that it had,
        whatever it reads now. Then topics are missing, or others are among them. While the members
        take up other topics one by one, the numbers may also differ for some seconds.
        """
        if self._uneven_since is None or not self._eager or self.asking:
            return False
        return self._clock() - self._uneven_since >= _UNEVEN_SECONDS

    def accept(self) -> None:
        """Take an assignment that seems outdated for the latest one, for as long as that takes."""
        self._uneven_since = self._clock()

    def ask(self) -> None:
        """Have the group assign partitions anew: it does so for a member that reads other topics.

        First the member reads one topic alone. `resume_topics` must follow.
        """
        self.asking = True
        self.revoked = True
        self._uneven_since = None
        self._join(self._topics[:1])

    def resume_topics(self) -> None:
        """Read all topics again, once the group has assigned what was asked for."""
        self.asking = False
        self.changed = False
        self.revoked = True
        self._join(self._topics)

    def _join(self, topics: list[str]) -> None:
        """Subscribe; a consumer that has failed for good keeps no partition.

        librdkafka then refuses to subscribe, and the next poll reports why it failed.
        """
        try:
            self._consumer.subscribe(
                topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
            )
        except KafkaException as error:
            if not means(cause(error), Means.FATAL):
                raise BusError(f"group {self._group}: {cause(error).str()}") from error
            _log.info("group %s: %s", self._group, cause(error).str())
            self.partitions = set()
            self.revoked = True

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        # An explicit offset saves librdkafka a look-up of the committed ones. Nothing is fetched
        # from it: the partitions stay paused until the loop has sought and resumed them.
        given = {TopicPartition(found.topic, found.partition) for found in partitions}
        own = (
            set()
            if self.asking
            else {partition for partition in given if partition.topic in self._topics}
        )
        placed = [KafkaPartition(*partition, 0) for partition in sorted(own)]
        if self._eager:
            consumer.assign(placed)
            self.partitions = set()
        else:
            consumer.incremental_assign(placed)
        self.partitions |= own
        if not self.asking:
            self.strange = bool(given - own)
            self._check_even()
        self._pause_all(consumer)
        self.changed = True
        self.revoked = False
        self._regain()

    def _check_even(self) -> None:
        """Note whether the same numbers of all topics are assigned, and no other topics."""
        numbers: dict[str, set[int]] = {topic: set() for topic in self._topics}
        for topic, number in self.partitions:
            if topic in numbers:  # Under KIP-848, those of a former topic go a little later.
                numbers[topic].add(number)
        first = next(iter(numbers.values()), set())
        if self.strange:
            self._uneven_since = self._clock() - _UNEVEN_SECONDS
        elif all(some == first for some in numbers.values()):
            self._uneven_since = None
        elif self._uneven_since is None:
            self._uneven_since = self._clock()

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        gone = {TopicPartition(found.topic, found.partition) for found in partitions}
        gone &= self.partitions
        self.partitions -= gone
        if self._eager:
            self.revoked = True
            consumer.unassign()
        else:
            consumer.incremental_unassign(_kafkas(gone))
            self._pause_all(consumer)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaPartition]) -> None:
        _log.warning(
            "group %s: %s lost: the session has ended",
            self._group,
            counted(len(partitions), "partition"),
        )
        self._on_revoke(consumer, partitions)
        if not self.partitions:
            self.revoked = True
            self.lost_at = self._clock()

    def _regain(self) -> None:
        if self.lost_at is None:
            return
        _log.info(
            "group %s: %s assigned again, after %.1f s",
            self._group,
            counted(len(self.partitions), "partition"),
            self._clock() - self.lost_at,
        )
        self.lost_at = None

    def _pause_all(self, consumer: Consumer) -> None:
        if self.partitions:
            consumer.pause(_kafkas(self.partitions))
        self._running = set()
        self.changed = True

    def take(self) -> frozenset[TopicPartition]:
        """Return the current assignment; a partition has no position until it is sought."""
        self.changed = False
        self._positions = {}
        self._epochs = {}
        self._committed = {}
        # Under KIP-848, those of a former topic go a little later.
        return frozenset(own for own in self.partitions if own.topic in self._topics)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the next offset to read; None if the partition is not being read."""
        return self._positions.get(partition) if partition in self.partitions else None

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each partition that was sought."""
        # librdkafka passes markers and aborted records in log order, once it has delivered what
        # is before them. After a seek it has no position until it delivers something.
        found = self._consumer.position(_kafkas(self._positions))
        passed = {
            TopicPartition(partition.topic, partition.partition): partition.offset
            for partition in found
        }
        return {
            own: max(offset, passed[own])
            for own, offset in self._positions.items()
            if own in self.partitions
        }

    def epochs(self) -> dict[TopicPartition, int]:
        """Return the leader epoch of each position, as far as known.

        It is that of the last record or marker before the position, or that of the seek. It may
        also be a later one: then a reader has been further, in the same log.
        """
        for found in self._consumer.position(_kafkas(self._positions)):
            own = TopicPartition(found.topic, found.partition)
            if found.leader_epoch is not None:
                self._epochs[own] = max(found.leader_epoch, self._epochs.get(own, -1))
        return self._epochs

    def advance(self, positions: Mapping[TopicPartition, int]) -> None:
        """Record new positions after a read."""
        self._positions.update(positions)

    def seek(self, partition: TopicPartition, offset: int, epoch: int | None = None) -> None:
        """Read a partition from an offset on; ignore one that was just revoked.

        With the leader epoch of what is before the offset, librdkafka checks that the log still has
        that, before it fetches.

        Raises:
            BusError: librdkafka refuses.
        """
        if partition not in self.partitions:
            return
        self._positions[partition] = offset
        self._epochs.pop(partition, None)
        if epoch is not None:
            self._epochs[partition] = epoch
        try:
            self._consumer.seek(self._placed(partition))
        except KafkaException as error:
            if not means(cause(error), Means.STOPPED):
                raise BusError(str(cause(error))) from error
            # librdkafka has stopped the partition, as it does on an offset out of range.
            self.restart({partition})
            if epoch is not None:
                self._seek_started(partition)

    def _seek_started(self, partition: TopicPartition) -> None:
        """Seek a partition that is being assigned: else librdkafka compares no leader epochs.

        Raises:
            BusError: librdkafka doesn't start it.
        """
        deadline = self._clock() + _STARTED_SECONDS
        while True:
            try:
                self._consumer.seek(self._placed(partition))
            except KafkaException as error:
                if not means(cause(error), Means.STOPPED) or self._clock() > deadline:
                    raise BusError(str(cause(error))) from error
                sleep(_PAUSE_SECONDS)
            else:
                return

    def restart(self, partitions: set[TopicPartition]) -> None:
        """Assign partitions to librdkafka again, at their positions."""
        self.epochs()
        if self._eager:
            self._consumer.assign([self._placed(own) for own in self.partitions])
        else:
            placed = [self._placed(own) for own in partitions]
            self._consumer.incremental_unassign(placed)
            self._consumer.incremental_assign(placed)
        held = self.partitions - self._running
        if held:
            self._consumer.pause(_kafkas(held))

    def _placed(self, partition: TopicPartition) -> KafkaPartition:
        """Return a partition with its position, and the leader epoch of what is before it."""
        offset, epoch = self._positions.get(partition, 0), self._epochs.get(partition, -1)
        return KafkaPartition(*partition, offset, "", epoch)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop fetching partitions."""
        asked = self.partitions.intersection(partitions)
        if asked:
            self._consumer.pause(_kafkas(asked))
            self._running -= asked

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch partitions again, without delay."""
        asked = self.partitions.intersection(partitions)
        if not asked:
            return
        self._consumer.resume(_kafkas(asked))
        self._running |= asked
        self._wake(asked & self._positions.keys())

    def _wake(self, partitions: set[TopicPartition]) -> None:
        """Make librdkafka fetch resumed partitions at once.

        A resume does not wake librdkafka's threads for the leaders, which may sleep for another
        second. A seek does, unless it is to offset 0; then only a restart does.
        """
        at_zero = {partition for partition in partitions if not self._positions[partition]}
        if at_zero:
            self.restart(at_zero)
        epochs = dict(self.epochs())
        for partition in partitions - at_zero:
            self.seek(partition, self._positions[partition], epochs.get(partition))

    def note_committed(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Record the committed offsets of partitions that are not sought yet."""
        self._committed.update({at: found for at, found in offsets.items() if found is not None})

    def lag(self) -> dict[TopicPartition, int]:
        """Return the number of committed records that wait, by partition."""
        lags = {}
        unfetched = {
            own: offset
            for own, offset in self._committed.items()
            if own in self.partitions and own not in self._positions
        }
        # librdkafka's own position, unlike that of the last record, passes transaction markers.
        # Every idle partition has one at its end.
        for found in self._consumer.position(_kafkas(self._positions)):
            own = TopicPartition(found.topic, found.partition)
            position = max(found.offset, self._positions[own])
            _, high = self._consumer.get_watermark_offsets(found, cached=True)
            if high < 0 or own not in self._running:  # Not fetched yet, or not recently.
                unfetched[own] = position
            else:
                lags[own] = max(0, high - position)
        self._ends.wanted = unfetched
        ends = self._ends.found
        for own, position in unfetched.items():
            if own in ends:
                lags[own] = max(0, ends[own] - position)
        return lags


def _kafkas(partitions: Iterable[TopicPartition]) -> list[KafkaPartition]:
    return [KafkaPartition(*partition) for partition in partitions]
