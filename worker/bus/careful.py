"""Reads partitions of the documents one batch at a time, after a death or beside batches set aside.

See `worker.bus.last_life` for why. A consumer fetches ahead in threads of its own, so a group's
member can't be kept from fetching the next batch. So the partitions in question stay paused in the
member, and a reader beside the group delivers them, until they are past the danger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from types import MappingProxyType

from worker.bus import (
    AnyOutgoing,
    Claim,
    LogReader,
    Member,
    Polled,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.bus.errors import OffsetOutOfRange, PartitionUnreadable
from worker.bus.last_life import DeadlyBatches
from worker.bus.records import NO_EPOCHS

AsideRanges = Mapping[int, Sequence[range]]
"""Ranges of offsets that are set aside, by partition."""

_NEAR = 20_000
"""As many records as a consumer fetches ahead, at most."""
_PATIENCE_SECONDS = 30.0
"""For a batch: unpacking a gigabyte takes seconds. Then other partitions have their turn."""
_ENDED_SECONDS = 2.0
"""The same at the end of a partition."""
_TURN_SECONDS = 2.0
"""After so long, other groups have their turn, and other partitions."""
_GATHER_SECONDS = 0.05
_NEXT_SECONDS = 0.02
"""How long batches are gathered after the first one, and how long each may take to come."""
_HELD_SECONDS = 5.0
"""How long a partition that is paused keeps its turn: what is left of its batch would have to be
unpacked again. Whatever it waits for may wait for the turn itself."""


class CarefulReader:
    """Implements `LogReader`: delivers one partition at a time, of which it fetches one batch."""

    def __init__(
        self,
        group: str,
        batches: DeadlyBatches,
        connect: Callable[[], LogReader],
        *,
        settle_seconds: float = 0.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take who reads, and a function that connects a reader that fetches single batches.

        A member may have fetched something before its new partitions were paused. For
        ``settle_seconds`` after they were started, a death is not taken for that of a batch.
        """
        self._settle_seconds = settle_seconds
        self._settled_at: float | None = None
        self._group = group
        self._batches = batches
        self._connect = connect
        self._clock = clock
        self._reader: LogReader | None = None
        self._at: dict[TopicPartition, int] = {}
        self._claims: dict[TopicPartition, Claim] = {}
        self._alone: TopicPartition | None = None
        self._asked_at: float | None = None
        self._since = 0.0
        self.aside: AsideRanges = MappingProxyType({})
        self.turned: set[TopicPartition] = set()

    def _connected(self) -> LogReader:
        if self._reader is None:
            self._reader = self._connect()
        return self._reader

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        """See the port."""
        if claim is None:
            self._claims.pop(partition, None)
        else:
            self._claims[partition] = claim
        if self._alone == partition:
            self._rest()
        if self._settled_at is None:
            self._settled_at = self._clock() + self._settle_seconds
        self._at[partition] = offset

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        if self._alone == partition:
            self._rest()
        self._at.pop(partition, None)

    def read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        """See the port; returns several small batches, each fetched once the last one is here."""
        records: list[Record] = []
        size = 0
        deadline = self._clock() + max(timeout, _GATHER_SECONDS)
        while len(records) < limit and size < max_bytes and self._clock() <= deadline:
            wait = _NEXT_SECONDS if records else timeout
            try:
                found = self._next(limit - len(records), max_bytes - size, wait)
            except (OffsetOutOfRange, PartitionUnreadable):
                if not records:
                    raise
                break  # The next call raises the error.
            if not found:
                break
            records += found
            size += sum(len(record.value or b"") for record in found)
        return records

    def _next(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        """Read what is left of the last batch, or the next one."""
        reader = self._connected()
        partition = self._alone or self._begin()
        if partition is None:
            # A caller that loops relies on the wait.
            return reader.read(1, 1, timeout)
        asked = self._asked_at is not None
        records = reader.read(limit, max_bytes, timeout if asked else 0.0)
        if not records and not asked:  # The last batch has been delivered whole.
            if not self._ask(partition):
                return ()
            records = reader.read(limit, max_bytes, timeout)
        self._advance(partition, reader, records)
        return records

    def _begin(self) -> TopicPartition | None:
        """Choose the partition whose turn it is; None if none can have one now."""
        if self._settled_at is not None and self._clock() < self._settled_at:
            return None
        for partition in list(self._at):
            if self._ask(partition):
                return partition
            if self._alone is None:
                return None
        return None

    def _ask(self, partition: TopicPartition) -> bool:
        """Fetch the next batch of a partition; return False if another stage fetches one.

        Raises:
            PartitionUnreadable: the batch is set aside, or was refused.
        """
        at = self._at[partition]
        refused = self._batches.refused(partition.partition, at)
        if refused or self._avoided(partition, at):
            self._rest()
            why = self._batches.why if refused else "it is set aside"
            raise PartitionUnreadable(partition, at, why, whole=True)
        if self._alone is not None and self._clock() - self._since > _TURN_SECONDS:
            self._rest()
            self._at[partition] = self._at.pop(partition)  # The others come first.
            self.turned.add(partition)
            return False
        if not self._batches.alone(self._group, partition.partition, at):
            return False
        if self._alone is None:
            self._since = self._clock()
        self._alone = partition
        self._asked_at = self._clock()
        self._connected().start(partition, at, self._claims.get(partition))
        return True

    def _avoided(self, partition: TopicPartition, offset: int) -> bool:
        return any(offset in one for one in self.aside.get(partition.partition, ()))

    def _advance(
        self, partition: TopicPartition, reader: LogReader, records: Sequence[Record]
    ) -> None:
        before = self._at[partition]
        following = records[-1].offset + 1 if records else reader.position(partition) or before
        if following > before:
            self._at[partition] = following
            self._asked_at = None
            epoch = reader.epoch(partition)
            if epoch is not None:
                self._claims[partition] = Claim(following, epoch)
            # Before the next batch can be fetched: its death would be taken for that of this one.
            self._batches.alone(self._group, partition.partition, following)
            if self._avoided(partition, following):
                self._rest()
            return
        waited = 0.0 if self._asked_at is None else self._clock() - self._asked_at
        end = reader.end(partition)
        ended = end is not None and end <= before
        if waited > (_ENDED_SECONDS if ended else _PATIENCE_SECONDS) and len(self._at) > 1:
            self._rest()
            self._at[partition] = self._at.pop(partition)  # The others come first.

    def _rest(self) -> None:
        """Stop fetching."""
        if self._alone is not None:
            self._connected().stop(self._alone)
            self._alone = None
            self._batches.rest(self._group)
        self._asked_at = None

    def has_turn(self, partition: TopicPartition) -> bool:
        """Return whether it is this partition of which a batch was fetched last."""
        return self._alone == partition

    def position(self, partition: TopicPartition) -> int | None:
        """See the port."""
        return self._at.get(partition)

    def epoch(self, partition: TopicPartition) -> int | None:
        """See the port."""
        claim = self._claims.get(partition)
        return None if claim is None or claim.offset != self._at.get(partition) else claim.epoch

    def end(self, partition: TopicPartition) -> int | None:
        """See the port."""
        return self._connected().end(partition)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port."""
        return self._connected().committed(partitions)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        return self._connected().watermarks(partition)

    def drop(self) -> None:
        """Stop the delivery of all partitions."""
        self._rest()
        self._at.clear()
        self._claims.clear()
        self.turned.clear()
        self._settled_at = None

    def close(self) -> None:
        """See the port."""
        self._at.clear()
        self._alone = None
        self._batches.leave(self._group)
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class CarefulMember:
    """Implements `Member`: partitions of one topic that are in danger come from another reader."""

    def __init__(  # noqa: PLR0913 -- the parts of a seat
        self,
        member: Member,
        topic: str,
        group: str,
        batches: DeadlyBatches,
        reader: CarefulReader,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take a member of a group that reads ``topic``, and who notes what ``group`` fetches."""
        self.settle = member.settle
        self.renew = member.renew
        self.effect = member.effect
        self.committed = member.committed
        self.claims = member.claims
        self.watermarks = member.watermarks
        self.lag = member.lag
        self.subscribe = member.subscribe
        self._clock = clock
        self._held: tuple[TopicPartition, float] | None = None
        self._member = member
        self._topic = topic
        self._group = group
        self._batches = batches
        self._reader = reader
        self._at: dict[TopicPartition, int] = {}
        self._until: dict[TopicPartition, int] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._running: set[TopicPartition] = set()

    def avoid(self, ranges: AsideRanges) -> None:
        """Fetch nothing of these ranges from the next assignment on."""
        self._reader.aside = ranges

    def poll(self, limit: int, max_bytes: int, timeout: float) -> Polled:
        """See the port."""
        polled = self._member.poll(
            limit, max_bytes, 0.0 if self._running and not self._held else timeout
        )
        if polled.assignment is not None:
            self._drop_all()
        self._let_go()
        if self._held or not self._running or not self._member.seated:
            return polled
        try:
            records = self._read(limit, max_bytes, 0.0 if polled.batches else timeout)
        except (OffsetOutOfRange, PartitionUnreadable) as error:
            if polled.batches:  # The next poll raises the error.
                return polled
            if isinstance(error, PartitionUnreadable):  # It stays there until it is sought.
                self._running.discard(error.partition)
                self._reader.stop(error.partition)
            raise
        return Polled([*polled.batches, *RecordBatch.of(records)]) if records else polled

    def _let_go(self) -> None:
        """Take the turn from a partition that was paused for long."""
        if self._held is not None and self._clock() - self._held[1] > _HELD_SECONDS:
            self._reader.stop(self._held[0])
            self._held = None

    def _drop_all(self) -> None:
        self._held = None
        self._reader.drop()
        self._at.clear()
        self._until.clear()
        self._epochs.clear()
        self._running.clear()
        self._batches.leave(self._group)

    def _read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        """Read a partition that is in danger; give the member those that are past it."""
        records = self._reader.read(limit, max_bytes, timeout)
        for partition in list(self._running):
            self._at[partition] = at = self._reader.position(partition) or 0
            self._note_epoch(partition)
            if at >= self._until[partition] or self._survived(partition, at):
                self._hand_over(partition, at)
        return records

    def _note_epoch(self, partition: TopicPartition) -> None:
        """Keep the leader epoch of what was read here, for the offset that is committed of it."""
        epoch = self._reader.epoch(partition)
        if epoch is not None:
            self._epochs[partition] = epoch

    def _claim(self, partition: TopicPartition, offset: int) -> Claim | None:
        """Return what is known of the log before an offset at which a partition is read."""
        epoch = self._epochs.get(partition)
        return self.claims().get(partition) if epoch is None else Claim(offset, epoch)

    def _survived(self, partition: TopicPartition, at: int) -> bool:
        """Return whether a partition has had a whole turn, and nothing says that it is in danger.

        Whoever was killed for another reason should catch up soon. If there is a deadly batch
        later, the next life begins nearer to it.
        """
        ranges = self._reader.aside.get(partition.partition, ())
        return (
            partition in self._reader.turned
            and not self._batches.suspected(partition.partition)
            and not any(one.start - _NEAR <= at < one.stop for one in ranges)
        )

    def _hand_over(self, partition: TopicPartition, at: int) -> None:
        self._reader.stop(partition)
        self._running.discard(partition)
        del self._at[partition], self._until[partition]
        self._batches.past(self._group, partition.partition)
        if not self._until:
            self._batches.safe(self._group)
        self._member.seek(partition, at)
        self._member.resume([partition])

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        until = self._endangered_until(partition, offset)
        if until is None:
            self._member.seek(partition, offset)
            return
        self._at[partition] = offset
        self._until[partition] = until
        if self._held is not None and self._held[0] == partition:
            self._reader.stop(partition)
            self._held = None
        self._epochs.pop(partition, None)
        if partition in self._running:
            self._reader.start(partition, offset, self._claim(partition, offset))

    def _endangered_until(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset up to which single batches are fetched; None if it is not needed."""
        if partition.topic != self._topic:
            return None
        ranges = self._reader.aside.get(partition.partition, ())
        ends = [one.stop for one in ranges if one.start - _NEAR <= offset < one.stop]
        if partition in self._at:
            return max([self._until[partition], *ends])
        if self._batches.careful(self._group, partition.partition):
            ends.append(min(self._member.watermarks(partition)[1], offset + _NEAR))
        return max(ends) if ends and max(ends) > offset else None

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        asked = dict.fromkeys(partitions)
        for partition in [partition for partition in asked if partition in self._running]:
            self._at[partition] = self._reader.position(partition) or self._at[partition]
            self._running.discard(partition)
            if self._reader.has_turn(partition):
                self._held = partition, self._clock()
            else:
                self._reader.stop(partition)
        others = asked.keys() - self._at.keys()
        for partition in others:  # What is committed of it next may be read elsewhere.
            self._epochs.pop(partition, None)
        self._member.pause(others)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        asked = dict.fromkeys(partitions)  # In their order, which is that of their first turns.
        for partition in [
            partition
            for partition in asked
            if partition in self._at and partition not in self._running
        ]:
            if self._held is not None and self._held[0] == partition:
                self._held = None
            else:
                self._reader.start(
                    partition, self._at[partition], self._claim(partition, self._at[partition])
                )
            self._running.add(partition)
        self._member.resume(asked.keys() - self._at.keys())

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        *,
        epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> None:
        """See the port; the epochs of what was read here are known here."""
        self._member.commit(records, offsets, epochs={**self._epochs, **epochs})

    @property
    def seated(self) -> bool:
        """See the port."""
        return self._member.seated

    @property
    def waiting(self) -> bool:
        """See the port."""
        return self._member.waiting

    @property
    def throttled(self) -> bool:
        """See the port."""
        return self._member.throttled

    def positions(self) -> dict[TopicPartition, int]:
        """See the port."""
        return {**self._member.positions(), **self._at}

    def close(self, *, leave: bool = False) -> None:
        """See the port."""
        try:
            self._member.close(leave=leave)
        finally:
            self._reader.close()
