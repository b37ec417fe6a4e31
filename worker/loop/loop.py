"""The one loop: consume a batch, transform it, write and commit offsets together.

`worker.loop.transactions` defines the consequence of each outcome of a transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import monotonic

import numpy as np

from worker.bus import (
    Aborted,
    AnyOutgoing,
    Away,
    BusError,
    Member,
    OffsetOutOfRange,
    OutcomeUnknown,
    PartitionUnreadable,
    Polled,
    RecordBatch,
    TopicPartition,
)
from worker.loop.inputs import Ages, Backlog, QuietInputs
from worker.loop.options import LoopOptions
from worker.loop.transactions import Pace, Transactions
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probe import UNWATCHED, Probe, probing
from worker.stages.base import Burst, Stage, StageError, Status

_log = logging.getLogger(__name__)


class Loop:
    """Runs one stage as a member of its group."""

    def __init__(  # noqa: PLR0913 -- only the composition root calls it
        self,
        stage: Stage,
        member: Member,
        *,
        partitions: Mapping[str, int] | None = None,
        begins: Collection[str] = (),
        options: LoopOptions | None = None,
        metrics: Metrics | None = None,
        has_room: Callable[[float], bool] = lambda _seconds: True,
        probe: Probe = UNWATCHED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take a stage and its member; nothing is read before `step`.

        Before it reads, `step` waits until there is room for what is read: ``has_room`` takes how
        many seconds it may wait, and returns whether there is. Room must appear within seconds.

        ``partitions`` says how many partitions of each input topic are read: from 0 on. Others,
        which were added to a topic, are not read, whoever has them.
        ``begins`` are topics of which the group may not have read anything yet. Where it has no
        committed offset, it begins at the start, and commits that.
        """
        self.stage = stage
        self._member = member
        self._partitions = partitions or {}
        self._begins = frozenset(begins)
        self._begun: dict[TopicPartition, int] = {}
        self._options = limits = options or LoopOptions()
        self._pace = Pace(limits.max_records, limits.max_bytes, limits.transaction_seconds)
        self._metrics = metrics or Metrics()
        self._has_room = has_room
        self._probe = probe
        self._clock = clock
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._owned: frozenset[TopicPartition] = frozenset()
        self.inherited: frozenset[TopicPartition] | None = None
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._renewed_at = self._idled_at = self._adopted_at = clock()
        self._quiet = QuietInputs(self._options.settle_seconds)
        self._held: frozenset[TopicPartition] = frozenset()
        self._more = False
        self._full = False
        self._transactions = Transactions(
            stage.name,
            member.renew,
            member.effect,
            options=limits,
            probe=probe,
            clock=clock,
        )
        self._backlog = Backlog({})
        self._unread, self._uncommitted = Ages(), Ages()
        self.seated = False
        self.busy = False
        self.beat = clock()
        self.moved = clock()
        self.transacting: float | None = None
        self.behind = 0
        self.lags: Mapping[TopicPartition, int] = {}

    @property
    def member(self) -> Member:
        """Return its seat, for a loop that succeeds it."""
        return self._member

    @property
    def inputs(self) -> Collection[str]:
        """Return the topics that it reads, if it was told how many partitions they have."""
        return self._partitions.keys()

    @property
    def status(self) -> Status:
        """Return the state of the stage's shards. Thread-safe; see `Shards`."""
        return Status() if self.stage.shards is None else self.stage.shards.status()

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Return the assigned partitions that are read."""
        return self._owned

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """Return the assigned partitions, with those that are not read."""
        return self._assigned

    def take_over(self, former: Loop) -> None:
        """Have the next step adopt what another loop has in this seat, which ends.

        Both must read the same topics.
        """
        self.inherited = former.assigned if former.seated else former.inherited
        former.retire()

    def retire(self) -> None:
        """Report that it owns nothing any more."""
        self._count_unseated()
        self._show_lags({})

    def count_in(self, metrics: Metrics) -> None:
        """Count in these metrics from now on, and show there what is assigned now."""
        self._metrics = metrics
        self._unread, self._uncommitted = Ages(), Ages()  # By the clock of these.
        self._count_assigned()

    def _count_assigned(self) -> None:
        partitions, stage = len(self._owned) if self.seated else 0, self.stage.name
        self._metrics.set(table.ASSIGNED_PARTITIONS, partitions, stage)
        self._metrics.add(table.REBALANCES, 1, stage)

    def _count_unseated(self) -> None:
        self._metrics.set(table.ASSIGNED_PARTITIONS, 0, self.stage.name)
        self._metrics.set(table.UNREAD_PARTITIONS, 0, self.stage.name)

    def _show_lags(self, lags: Mapping[TopicPartition, int]) -> None:
        self.lags = lags
        shown = {(topic, str(number)): lag for (topic, number), lag in lags.items()}
        self._metrics.show(table.CONSUMER_LAG_RECORDS, shown, self.stage.name)
        self._show_ages(lags)

    def _show_ages(self, lags: Mapping[TopicPartition, int]) -> None:
        """Show how old the oldest unread record is, and the oldest that is not committed."""
        metrics, stage, now = self._metrics, self.stage.name, self._metrics.clock()
        read = dict(self._committed)
        for at, position in (self._member.positions() if lags else {}).items():
            # What was processed without being read here isn't unread.
            read[at] = max(position, self._committed.get(at, position))
        ends = {at: read[at] + lag for at, lag in lags.items() if at in read}
        done = {at: self._done(at, read[at]) for at in ends}
        metrics.set(table.CONSUMER_LAG_SECONDS, self._unread.look(read, ends, now), stage)
        metrics.set(table.WATERMARK_AGE_SECONDS, self._uncommitted.look(done, ends, now), stage)

    def _done(self, at: TopicPartition, position: int) -> int:
        """Return up to where an input is committed, with markers that follow and never are."""
        committed = self._committed.get(at, 0)
        return max(committed, position) if committed >= self._next.get(at, 0) else committed

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many records each input is behind, as far as known, and report it.

        This sets ``lags`` to that, and ``behind`` to their sum, without inputs that the stage
        pauses or doesn't read yet. The restore of a shard is monitored separately.
        """
        lags = self._member.lag()
        reached = dict(self._next)
        for at, position in self._next.items():
            # What was processed without being read here isn't waiting.
            reached[at] = max(position, self._committed.get(at, position))
            if at in lags:
                lags[at] = max(0, lags[at] - (reached[at] - position))
        started = {at: lag for at, lag in lags.items() if at in reached}
        self.behind = sum(lag for at, lag in started.items() if at not in self._held)
        self._backlog.look(reached, started)
        self._show_lags(lags)
        return lags

    @property
    def catching_up(self) -> bool:
        """Return whether the backlog of the last assignment is still being processed.

        False after ``catch_up_seconds``: a stage with hours of backlog is working, and is ready.
        """
        spent = self._clock() - self._adopted_at
        return bool(self._backlog) and spent < self._options.catch_up_seconds

    def step(self, wait: float | None = None) -> bool:
        """Poll once, and process and commit the records; return whether anything was committed.

        Afterwards ``busy`` is whether there was any work: a stage that has only buffered records,
        or whose transaction was rolled back, commits nothing and still has work to do.

        Raises:
            StageError: the stage can't continue.
            BusError: the member can't continue.
        """
        self.beat = self._clock()
        self.busy = True
        if self.inherited is not None:
            self._inherit(self.inherited)
            return False
        timeout = self._timeout(wait)
        if not self._has_room(timeout):
            self.busy = False
            return False
        if not self._full:
            self._member.settle(timeout)
        polled = self._poll(timeout)
        if polled is None:
            return False
        if polled.assignment is not None:
            self._adopt(polled.assignment)
            return False
        self._look_at_seat()
        if self._options.trace is None:
            return self._work(polled, [])
        return self._options.trace(self.stage.name, polled.batches, partial(self._work, polled))

    def _work(self, polled: Polled, written: list[AnyOutgoing]) -> bool:
        """Process and commit what was polled; return whether anything was committed.

        Adds what is to be written to ``written``.
        """
        metrics = self._metrics
        metrics.set(table.LAST_POLL_TIMESTAMP_SECONDS, metrics.clock(), self.stage.name)
        batches = polled.batches
        metrics.add(table.RECORDS, sum(map(len, batches)), self.stage.name)
        self._note_times(batches)
        quiet = self._ahead(self._idle())
        try:
            burst = self.stage.process(self._accept(batches), self._pace.size, quiet)
        except Away as error:
            _log.warning("%s: %s", self.stage.name, error)
            self._adopt(self._assigned)
            return False
        written += burst.records
        self._more = burst.more
        self.busy = bool(batches or burst.more or burst.starts)
        if burst.offsets:
            self._full = self._filled(burst, batches)
            if not self._transact(burst, filled=self._full):
                return False
            self._settled(quiet)
        elif batches:
            self.moved = self._clock()
        self._steer(burst)
        due = {} if burst.more else self._due()
        return self._transact(Burst((), due)) if due else bool(burst.offsets)

    def _poll(self, timeout: float) -> Polled | None:
        """Poll once; return None if the stage has to go on elsewhere, or without a partition."""
        try:
            with probing(self._probe, "poll"):
                return self._member.poll(self._pace.records, self._pace.size, timeout)
        except OffsetOutOfRange as error:
            self._go_on_from_start(error)
        except PartitionUnreadable as error:
            after = self.stage.unreadable(error)
            if after is not None:
                self._start_at(error.partition, after)
                self._resume((error.partition,))
        return None

    def _go_on_from_start(self, error: OffsetOutOfRange) -> None:
        """Adopt everything anew: the stage says whether it needs what was cut from a log.

        Raises:
            StageError: it needs that, or the log ends before the position.
        """
        if error.position >= error.low:
            msg = f"{error}: the topic was truncated or recreated. See `neardup topics verify`"
            raise StageError(msg)
        self._adopt(self._assigned)
        if self._next.get(error.partition, error.low) < error.low:
            msg = (
                f"{error}: what is missing was deleted before it was read. See the runbook,"
                " 'Documents that were deleted unread'"
            )
            raise StageError(msg)
        _log.warning("%s; continuing from its start", error, extra=error.partition._asdict())

    def _note_times(self, batches: Sequence[RecordBatch]) -> None:
        """Note how old the last record of each batch is."""
        for batch in batches:
            at = int(batch.timestamps[-1])
            if at >= 0:
                for ages in (self._unread, self._uncommitted):
                    ages.read(batch.place, batch.end, at / 1_000)

    def _timeout(self, wait: float | None) -> float:
        """Return how long to wait for records, in seconds."""
        if self._more:
            return 0.0
        return self._options.wait_seconds if wait is None else wait

    def _inherit(self, assignment: frozenset[TopicPartition]) -> None:
        """Adopt what the loop before it had; the stage says anew what is read of that."""
        self.inherited = None
        self._member.pause(assignment)
        self._adopt(assignment)

    def _idle(self) -> Collection[TopicPartition]:
        """Do the periodic work, about once a second; return the quiet inputs to settle.

        The inputs of shards are not settled: their log is kept as long as a shard needs it.
        """
        now = self._clock()
        if now - self._idled_at < 1.0:
            return ()
        self._idled_at = now
        if self.stage.shards is not None:
            self.stage.shards.idle()
            return ()
        quiet = self._quiet.look(self._next)
        return () if self._more else self._quiet.due(quiet, self._next, now)

    def _settled(self, quiet: Mapping[TopicPartition, int]) -> None:
        """Note which quiet inputs are committed up to their positions."""
        done = [place for place, at in quiet.items() if self._committed.get(place, -1) >= at]
        self._quiet.settled(done, self._next, self._clock())

    def _due(self) -> dict[TopicPartition, int]:
        """Return offsets to commit by themselves: where a group begins, and unchanged ones.

        Every `LoopOptions.renew_seconds` it commits all offsets again.
        """
        if self._begun:
            begun, self._begun = self._begun, {}
            return {at: start for at, start in begun.items() if not self._committed.get(at)}
        now = self._clock()
        if self._committed and now - self._renewed_at >= self._options.renew_seconds:
            self._renewed_at = now
            return dict(self._committed)
        return {}

    def _ahead(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the positions of those inputs that are past their committed offsets."""
        if not places:
            return {}
        return {
            place: position
            for place, position in self._member.positions().items()
            if place in places and position > self._committed.get(place, position)
        }

    def _accept(self, batches: Sequence[RecordBatch]) -> Sequence[RecordBatch]:
        """Drop records that were delivered before, or whose partition isn't assigned.

        After an incremental assignment librdkafka may deliver an offset twice, and records of a
        partition that was just revoked.
        """
        accepted = []
        for batch in batches:
            following = self._next.get(batch.place)
            if following is None:
                continue
            # A record is new if its offset exceeds all earlier ones.
            reached = np.maximum.accumulate(np.append(following - 1, batch.offsets))
            fresh = batch.offsets > reached[:-1]
            self._next[batch.place] = int(reached[-1]) + 1
            if fresh.all():
                accepted.append(batch)
            elif fresh.any():
                accepted.append(batch.only(fresh))
        return accepted

    def _adopt(self, assignment: frozenset[TopicPartition]) -> None:
        """Take on exactly this assignment, from the committed offsets on."""
        self._assigned = assignment
        self._owned = assignment = self._read_of(assignment)
        committed = self._look_up(assignment) if assignment else {}
        new = {at for at, offset in committed.items() if offset is None and at[0] in self._begins}
        committed |= dict.fromkeys(new, 0)
        missing = sorted(partition for partition, offset in committed.items() if offset is None)
        if missing:
            topic, number = missing[0]
            msg = (
                f"the group of stage {self.stage.name} has no committed offset for"
                f" {topic}[{number}] ({len(missing)} of {len(committed)} partitions): the partition"
                " or the group is new, or its offsets have expired. A worker never starts over by"
                " itself: set where to begin with `neardup topics create --from …`"
            )
            raise StageError(msg)
        offsets = {tp: offset for tp, offset in committed.items() if offset is not None}
        with probing(self._probe, "adopt"):
            starts = self.stage.adopt(offsets, self._member.watermarks)
        self._begun = {place: starts[place] for place in new & starts.keys()}
        self._next = {}
        self._quiet.forget()
        self._committed = dict(offsets)
        self._held = frozenset()
        self._more = False
        self._adopted_at = self._clock()
        self._backlog = Backlog(offsets)
        for partition, offset in starts.items():
            self._start_at(partition, offset)
        self._resume(starts)
        self.seated = not self._member.waiting
        self._count_assigned()

    def _look_at_seat(self) -> None:
        """Note that the group has taken the assignment away; `_adopt` takes the next one."""
        if self.seated and self._member.waiting:
            self.seated = False
            self._count_unseated()

    def _look_up(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        with probing(self._probe, "look up"):
            return self._member.committed(partitions)

    def _read_of(self, assignment: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Return what is read of an assignment; warn of the rest, which stays paused."""
        counts = self._partitions
        added = {
            place
            for place in assignment
            if place.partition >= counts.get(place.topic, place.partition + 1)
        }
        if added:
            topic, number = min(added)
            _log.warning(
                "%s: %s[%d] is not read yet (%d of %d partitions): partitions were added. See"
                " the runbook, 'Partitions were added'",
                self.stage.name,
                topic,
                number,
                len(added),
                len(assignment),
                extra={"topic": topic, "partition": number},
            )
        self._metrics.set(table.UNREAD_PARTITIONS, len(added), self.stage.name)
        return assignment - added

    def _start_at(self, partition: TopicPartition, offset: int) -> None:
        self._next[partition] = offset
        with probing(self._probe, "seek"):
            self._member.seek(partition, offset)

    def _resume(self, partitions: Collection[TopicPartition]) -> None:
        with probing(self._probe, "resume"):
            self._member.resume(partitions)

    def _steer(self, burst: Burst) -> None:
        """Start the inputs that have become ready; pause those that are to be held."""
        for partition, offset in burst.starts.items():
            self._start_at(partition, offset)
        if burst.starts:
            self._resume(burst.starts)
        if burst.held != self._held:
            self._member.pause(burst.held - self._held)
            self._resume(self._held - burst.held)
            self._held = burst.held

    def _filled(self, burst: Burst, batches: Sequence[RecordBatch]) -> bool:
        """Return whether a burst was about as large as the pace allows."""
        if burst.size is not None:
            return self._pace.filled(0, burst.size)
        return self._pace.filled(sum(map(len, batches)), sum(batch.size for batch in batches))

    def _transact(self, burst: Burst, *, filled: bool = False) -> bool:
        self.transacting = self._clock()
        try:
            return self._commit_burst(burst, filled=filled)
        finally:
            self.transacting = None

    def _commit_burst(self, burst: Burst, *, filled: bool) -> bool:
        commit = partial(self._member.commit, epochs=burst.epochs)
        ended = self._transactions.see_through(burst.records, burst.offsets, commit)
        self._pace.ended(
            ended.seconds,
            committed=ended.outcome == "committed",
            filled=filled,
            throttled=self._member.throttled,
        )
        self._metrics.add(table.TRANSACTIONS, 1, self.stage.name, ended.outcome)
        seconds = self._clock() - ended.began
        self._metrics.observe(table.TRANSACTION_SECONDS, [seconds], self.stage.name)
        if ended.committed:
            self.moved = self._clock()
            self._backlog.committed(burst.offsets)
            self._committed |= burst.offsets
            self.stage.committed()
            return True
        self._transactions.give_up_after(ended, burst.records)
        self._adopt(self._assigned)
        return False

    def finish(self) -> None:
        """Commit the positions before the loop closes: it may be away longer than a log keeps.

        Does nothing if the last transaction failed. If this one fails, it is not retried.
        """
        if self._transactions.failing or self.stage.shards is not None:
            return
        ahead = self._ahead(self._owned)
        burst = self.stage.process((), quiet=ahead) if ahead else Burst()
        if not burst.offsets:
            return
        try:
            self._member.commit(burst.records, burst.offsets, epochs=burst.epochs)
        except (Aborted, OutcomeUnknown, BusError) as error:
            _log.info("%s: the last positions were not committed: %s", self.stage.name, error)

    def close(self, *, leave: bool = False) -> None:
        """Give up the seat, then close the stage."""
        try:
            self._member.close(leave=leave)
        finally:
            self.stage.close()
