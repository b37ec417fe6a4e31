"""The one loop: consume a batch, transform it, write and commit offsets together.

What follows each way in which a transaction can end is named here, and nowhere else:

=================  ==================================================================
committed          the stage makes its state final
`Refused`          the same again, with less of the largest record that a topic refuses; if
                   there is no less of it, the loop ends
`Aborted`          what was computed is dropped; on from the committed offsets
`OutcomeUnknown`   a new producer under the same name ends the old one's transaction;
                   then the committed offsets tell how it ended; on from there
`Fenced`           somebody else runs under this name: the loop ends
`BusError`         the loop ends
=================  ==================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from time import monotonic

from worker.backlog import Backlog
from worker.bus import (
    Aborted,
    BusError,
    Member,
    OffsetOutOfRange,
    OutcomeUnknown,
    Outgoing,
    Record,
    Refused,
    TopicPartition,
)
from worker.loop_options import LoopEvents, LoopOptions
from worker.pace import Pace
from worker.probe import UNWATCHED, Probe, probing
from worker.quiet import QuietInputs
from worker.stages import Burst, Stage, StageError

__all__ = ["Loop"]

_log = logging.getLogger(__name__)


class Loop:
    """Runs one stage in its seat of the group."""

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        stage: Stage,
        member: Member,
        *,
        partitions: Mapping[str, int] | None = None,
        options: LoopOptions | None = None,
        events: LoopEvents | None = None,
        probe: Probe = UNWATCHED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take a stage and its seat; nothing is read before `step`.

        ``partitions`` says how many each input topic has; should there be more one day,
        the loop stops.
        """
        self.stage = stage
        self._member = member
        self._partitions = partitions or {}
        self._options = limits = options or LoopOptions()
        self._pace = Pace(limits.max_records, limits.max_bytes, limits.transaction_seconds)
        self._events = events or LoopEvents()
        self._probe = probe
        self._clock = clock
        self._owned: frozenset[TopicPartition] = frozenset()
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._renewed_at = self._failed_at = self._idled_at = self._adopted_at = clock()
        self._quiet = QuietInputs(self._options.settle_seconds)
        self._held: frozenset[TopicPartition] = frozenset()
        self._failing_since: float | None = None
        self._backlog = Backlog({})
        self.adopted = False
        self.busy = False
        self.beat = clock()
        self.moved = clock()
        self.transacting: float | None = None
        self.behind = 0

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Give the partitions that this loop owns."""
        return self._owned

    def lag(self) -> dict[TopicPartition, int]:
        """Give how many records each input is behind, as far as is known here.

        ``behind`` is then their sum, without inputs that the stage holds back, or doesn't read
        yet: a shard that is restored has a watch of its own.
        """
        lags = self._member.lag()
        started = {at: lag for at, lag in lags.items() if at in self._next}
        self.behind = sum(lag for at, lag in started.items() if at not in self._held)
        self._backlog.look(self._next, started)
        return lags

    @property
    def catching_up(self) -> bool:
        """Tell whether what had come before the last assignment is still being dealt with.

        At most for ``catch_up_seconds``: whoever has hours to catch up on works, and is ready.
        """
        spent = self._clock() - self._adopted_at
        return bool(self._backlog) and spent < self._options.catch_up_seconds

    def step(self, wait: float | None = None) -> bool:
        """Poll once, and see through what came; tell whether anything was committed.

        Afterwards ``busy`` tells whether anything came at all: a stage that has only taken
        records in, or was rolled back, commits nothing and still has work to do.

        Raises:
            StageError: the stage can't go on.
            BusError: the member can't go on.
        """
        self.beat = self._clock()
        self.busy = True
        timeout = self._options.wait_seconds if wait is None else wait
        if self.stage.pending:
            timeout = 0.0
        pace = self._pace
        try:
            with probing(self._probe, "poll"):
                polled = self._member.poll(pace.records, pace.size, timeout)
        except OffsetOutOfRange as error:
            self._start_at(error.partition, self.stage.out_of_range(error))
            return False
        if polled.assignment is not None:
            self._adopt(polled.assignment)
            return False
        self._events.polled(len(polled.records))
        self.busy = bool(polled.records)
        quiet = self._idle()
        started = self._start()
        records = polled.records
        if started:  # What came of these is from another position: it is read anew.
            records = [record for record in records if (record[0], record[1]) not in started]
        burst = self.stage.process(self._accept(records), pace.size)
        if self.stage.pending:
            self.busy = True
        self._apply_flow()
        if burst is None:
            if polled.records:
                self.moved = self._clock()
        elif not self._transact(burst, filled=self._filled(burst, polled.records)):
            return False
        settlement = self._settlement(quiet)
        if settlement is None:
            return burst is not None
        return self._transact(settlement)

    def _idle(self) -> frozenset[TopicPartition]:
        """Do what is due about once a second; name inputs that have brought nothing since."""
        now = self._clock()
        if now - self._idled_at < 1.0:
            return frozenset()
        self._idled_at = now
        self.stage.idle()
        return self._quiet.look(self._next)

    def _settlement(self, quiet: frozenset[TopicPartition]) -> Burst | None:
        """Return what settles quiet inputs, of which more was read than is committed.

        From time to time, all offsets once more: see `LoopOptions.renew_seconds`.
        """
        now = self._clock()
        if self.stage.pending:
            return None
        if self._committed and now - self._renewed_at >= self._options.renew_seconds:
            self._renewed_at = now
            return Burst((), dict(self._committed))
        due = self._quiet.due(quiet, self._next, now)
        ahead = self._ahead(due) if due else {}
        burst = self.stage.settle(ahead) if ahead else None
        if burst is not None:
            self._quiet.settled(ahead, self._next, now)
            self.busy = True
        return burst

    def _ahead(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the positions of inputs that are past what is committed."""
        return {
            place: position
            for place, position in self._member.positions().items()
            if place in places and position > self._committed.get(place, position)
        }

    def _start(self) -> Mapping[TopicPartition, int]:
        """Read the partitions that have only now been got ready; give where each begins."""
        starts = self.stage.started()
        for partition, offset in starts.items():
            self._start_at(partition, offset)
        if starts:
            self._resume(starts)
            self.busy = True
        return starts

    def _accept(self, records: Sequence[Record]) -> Sequence[Record]:
        """Drop what isn't owned or was delivered before.

        librdkafka may hand out an offset twice after an incremental assignment, and
        records of a partition that has just been taken away.
        """
        following = self._next
        accepted = []
        for record in records:
            partition = (record[0], record[1])
            offset = record[2]
            if offset >= following.get(partition, offset + 1):  # type: ignore[call-overload]
                following[partition] = offset + 1  # type: ignore[index]
                accepted.append(record)
        return accepted

    def _adopt(self, assignment: frozenset[TopicPartition]) -> None:
        """Own exactly this, from the committed offsets on."""
        self._owned = assignment
        self._check_partitions(assignment)
        committed = self._look_up(assignment) if assignment else {}
        missing = sorted(partition for partition, offset in committed.items() if offset is None)
        if missing:
            topic, number = missing[0]
            msg = (
                f"the group of stage {self.stage.name} has no committed offset for"
                f" {topic}[{number}] ({len(missing)} of {len(committed)} partitions): the partition"
                " or the group is new, or its offsets have expired. It never starts over by"
                " itself: `neardup topics create --from …` sets where to begin"
            )
            raise StageError(msg)
        offsets = {tp: offset for tp, offset in committed.items() if offset is not None}
        with probing(self._probe, "adopt"):
            starts = self.stage.adopt(offsets, self._member.watermarks)
        self._next = {}
        self._quiet.forget()
        self._committed = dict(offsets)
        self._held = frozenset()
        self._adopted_at = self._clock()
        self._backlog = Backlog(offsets)
        for partition, offset in starts.items():
            self._start_at(partition, offset)
        self._resume(starts)
        self.adopted = True
        self._events.assigned(len(assignment))

    def _look_up(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        with probing(self._probe, "look up"):
            return self._member.committed(partitions)

    def _check_partitions(self, assignment: frozenset[TopicPartition]) -> None:
        for topic, number in sorted(assignment):
            count = self._partitions.get(topic, number + 1)
            if number >= count:
                msg = (
                    f"{topic} has more than the {count} partitions it had when this worker"
                    " started: partitions were added. The topics between the stages must have as"
                    " many; see docs/operations.md, 'More partitions'"
                )
                raise StageError(msg)

    def _start_at(self, partition: TopicPartition, offset: int) -> None:
        self._next[partition] = offset
        with probing(self._probe, "seek"):
            self._member.seek(partition, offset)

    def _resume(self, partitions: Collection[TopicPartition]) -> None:
        with probing(self._probe, "resume"):
            self._member.resume(partitions)

    def _apply_flow(self) -> None:
        held = self.stage.paused()
        if held == self._held:
            return
        self._member.pause(held - self._held)
        self._resume(self._held - held)
        self._held = held

    def _filled(self, burst: Burst, records: Sequence[Record]) -> bool:
        """Tell whether a burst was about as large as its pace allows."""
        if burst.size is not None:
            return self._pace.filled(0, burst.size)
        size = sum(len(record[5] or b"") for record in records)  # by index: a hot path
        return self._pace.filled(len(records), size)

    def _transact(self, burst: Burst, *, filled: bool = False) -> bool:
        self.transacting = self._clock()
        try:
            return self._see_through(burst, self.transacting, filled=filled)
        finally:
            self.transacting = None

    def _see_through(self, burst: Burst, began: float, *, filled: bool) -> bool:
        outcome = "committed"
        try:
            self._commit(burst)
        except Aborted as error:
            outcome = "aborted"
            _log.warning("%s: transaction rolled back: %s", self.stage.name, error)
        except OutcomeUnknown as error:
            outcome = "unknown"
            _log.warning("%s: outcome of the transaction unknown: %s", self.stage.name, error)
        took = self._clock() - began
        self._pace.ended(took, committed=outcome == "committed", filled=filled)
        if outcome == "unknown":  # Only here is the error gone, and with it what it held.
            with probing(self._probe, "renew"):
                self._member.renew()
        self._events.transaction(outcome, self._clock() - began, len(burst.records))
        if outcome == "committed":
            self._failing_since = None
            self.moved = self._clock()
            self._backlog.committed(burst.offsets)
            self._committed |= burst.offsets
            self.stage.committed()
            return True
        self._give_up_after(began, took, burst)
        self._adopt(self._owned)
        return False

    def _commit(self, burst: Burst) -> None:
        """Commit, with less of what a topic refuses; raises as `Member.commit` does."""
        records = list(burst.records)
        while True:
            try:
                self._member.commit(records, burst.offsets)
            except Refused as error:
                refused, why = error.records, str(error)
            else:
                return
            # Only here is the error gone: what is raised while it is handled would keep it.
            self._reduce(records, refused, why)

    def _reduce(self, records: list[Outgoing], refused: Sequence[Outgoing], why: str) -> None:
        """Put a smaller version in the place of the largest refused record that has one.

        Raises:
            BusError: none has.
        """
        for record in sorted(refused, key=lambda one: one.size, reverse=True):
            smaller = self.stage.reduced(record)
            if smaller is not None:
                sizes = record.size, smaller.size
                told = "%s: %s refuses a record of %d bytes; it is published with %d: %s"
                _log.warning(told, self.stage.name, record.topic, *sizes, why)
                records[records.index(record)] = smaller
                return
        raise BusError(why)

    def _give_up_after(self, began: float, took: float, burst: Burst) -> None:
        """Raise if the same has failed for too long; what failed long before is another matter."""
        alone = began - self._failed_at > self._options.retry_seconds
        self._failed_at = self._clock()
        if self._failing_since is None or alone:
            self._failing_since = began
        elif self._clock() - self._failing_since > self._options.retry_seconds:
            msg = (
                f"stage {self.stage.name} could commit nothing for"
                f" {self._options.retry_seconds:.0f} s: see the warnings above, and the brokers"
            )
            limit = self._options.transaction_seconds
            if took >= limit:
                size = sum(record.size for record in burst.records)
                msg += (
                    f". The last transaction wrote {len(burst.records)} records of {size} bytes"
                    f" in all, and did not end within its {limit:.0f} s. If the link or a quota is"
                    " too slow for that, raise kafka.transaction_timeout_ms"
                )
            raise BusError(msg)

    def finish(self) -> None:
        """Settle what was read before the loop is closed: it may be away for longer than a log.

        A loop that is in trouble leaves it at that, and so does one whose attempt fails.
        """
        if self._failing_since is not None:
            return
        ahead = self._ahead(self._owned)
        burst = self.stage.settle(ahead) if ahead else None
        if burst is None:
            return
        try:
            self._member.commit(burst.records, burst.offsets)
        except (Aborted, OutcomeUnknown, BusError) as error:
            _log.info("%s: not settled at the end: %s", self.stage.name, error)

    def close(self, *, leave: bool = False) -> None:
        """Give up the seat, then close the stage."""
        try:
            self._member.close(leave=leave)
        finally:
            self.stage.close()
