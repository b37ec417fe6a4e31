"""The loop against every way in which a transaction can end, on the in-process log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from time import monotonic

import pytest

from tests.support.brokers import Brokers
from tests.support.copying import Copier as Copying
from worker.bus import (
    Aborted,
    Away,
    BusError,
    Fenced,
    Header,
    LogTruncated,
    OutcomeUnknown,
    Outgoing,
    Polled,
    Record,
    RecordBatch,
    TopicPartition,
)
from worker.bus.memory.bus import MemoryBus
from worker.loop.loop import Loop
from worker.loop.options import LoopOptions
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probe import Point, Probe
from worker.stages.base import NOTHING, Burst, StageError
from worker.wire.headers import REASON

SOURCE = TopicPartition("in", 0)


class Copier(Copying):
    """A stage that notes what the loop does with it."""

    def __init__(self) -> None:
        self.adoptions: list[Mapping[TopicPartition, int]] = []
        self.commits = 0
        self.held: frozenset[TopicPartition] = frozenset()
        self.closed = False
        self.keeping = False
        self.more = False
        self.needing = False
        self.rooms: list[int] = []
        self.settling = False
        self.taken = 0
        self.headers: tuple[Header, ...] = ()
        self.kept: list[Record] = []

    def adopt(
        self,
        offsets: Mapping[TopicPartition, int],
        watermarks: Callable[[TopicPartition], tuple[int, int]],
    ) -> dict[TopicPartition, int]:
        self.adoptions.append(dict(offsets))
        self.kept = []
        return {
            place: at if self.needing else max(at, watermarks(place)[0])
            for place, at in offsets.items()
        }

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        self.rooms.append(room)
        self.kept += chain.from_iterable(batches)
        burst = Burst((), quiet if self.settling else NOTHING)
        if self.kept and not self.keeping:
            records, self.kept = self.kept, []
            copies = [Outgoing("out", 0, None, one.value, self.headers) for one in records]
            last = records[-1]
            self.taken = len(records)
            own = {TopicPartition(last.topic, last.partition): last.offset + 1}
            burst = Burst(copies, {**own, **burst.offsets})
        return burst._replace(more=self.more, held=self.held)

    def committed(self) -> None:
        self.commits += 1

    def close(self) -> None:
        self.closed = True


def bus(*, offsets: bool = True) -> Brokers:
    made = Brokers()
    made.create_topic("in", 1)
    made.create_topic("out", 1)
    if offsets:
        made.commit_offsets("g", {SOURCE: 0})
    for number in range(10):
        made.append(Outgoing("in", 0, None, b"%d" % number))
    return made


def looped(
    made: MemoryBus, clock: Callable[[], float] = monotonic, **options: float
) -> tuple[Loop, Copier]:
    stage = Copier()
    member = made.join("g", ["in"], "one")
    limits = LoopOptions(max_records=4, **options)  # type: ignore[arg-type]
    return Loop(stage, member, options=limits, clock=clock), stage


def run(loop: Loop, times: int = 20) -> None:
    for _ in range(times):
        loop.step(0)


def copied(made: MemoryBus) -> list[bytes | None]:
    return [record.value for record in made.read("out", 0, 0, 1_000)]


ALL = [b"%d" % number for number in range(10)]


class Lacking(Copier):
    """A stage that lacks what it takes for the second and the third batch."""

    calls = 0

    def process(
        self,
        batches: Sequence[RecordBatch],
        room: int = sys.maxsize,
        quiet: Mapping[TopicPartition, int] = NOTHING,
    ) -> Burst:
        self.calls += bool(batches)
        if batches and self.calls in {2, 3}:
            raise Away("something is away")
        return super().process(batches, room, quiet)


def test_what_is_away_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    made, stage = bus(), Lacking()
    loop = Loop(stage, made.join("g", ["in"], "one"), options=LoopOptions(max_records=4))
    run(loop)
    assert copied(made) == ALL
    assert [one[SOURCE] for one in stage.adoptions] == [0, 4, 4]
    assert [one.message for one in caplog.records].count("copier: something is away") == 2
    loop.close()


def test_everything_is_copied_once() -> None:
    made = bus()
    loop, stage = looped(made)
    run(loop)
    assert copied(made) == ALL
    assert stage.commits == 3
    loop.close()
    assert stage.closed


STEPS = ["begin", "produce", "offsets", "commit"]
ENDS = [(step, error) for step in STEPS for error in (Aborted("x"), OutcomeUnknown("x"))]


@pytest.mark.parametrize(("step", "error"), [*ENDS, ("committed", OutcomeUnknown("x"))])
@pytest.mark.parametrize("time", [1, 2, 3])
def test_whatever_a_transaction_ends_in_everything_is_copied_once(
    step: str, error: Exception, time: int
) -> None:
    made = bus()
    loop, stage = looped(made)
    seen = 0

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        nonlocal seen
        seen += at == step
        if at == step and seen == time:
            seen += 1
            raise error

    made.faults = fail
    run(loop)
    assert copied(made) == ALL
    assert len(stage.adoptions) == 2


def test_a_step_whose_transaction_fails_has_committed_nothing() -> None:
    made = bus()
    loop, stage = looped(made)
    failures = [Aborted("x")]

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        if at == "commit" and failures:
            raise failures.pop()

    made.faults = fail
    done = []
    for _ in range(20):
        commits = stage.commits
        done.append((loop.step(0), stage.commits > commits))
    assert not failures
    assert all(committed == counted for committed, counted in done)
    assert copied(made) == ALL


class Renewals(Probe):
    """Notes which error is being handled when a producer is renewed."""

    def __init__(self) -> None:
        self.handled: list[BaseException | None] = []

    def before(self, point: Point) -> None:
        if point == "renew":
            self.handled.append(sys.exception())


def test_an_error_is_over_when_its_producer_is_renewed() -> None:
    """What is raised while it is handled may keep it, and with it the old producer."""
    made = bus()
    renewals = Renewals()
    loop = Loop(Copier(), made.join("g", ["in"], "one"), probe=renewals)

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        if at == "commit" and not renewals.handled:
            raise OutcomeUnknown("x")

    made.faults = fail
    run(loop)
    assert renewals.handled == [None]
    assert copied(made) == ALL


def test_a_group_without_offsets_is_refused() -> None:
    loop, _ = looped(bus(offsets=False))
    with pytest.raises(StageError, match="never starts over by itself"):
        run(loop)


def test_partitions_that_were_added_are_read_once_a_loop_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The group has no offsets of them until then."""
    made = bus()
    made.create_topic("wide", 3)
    made.commit_offsets("w", {TopicPartition("wide", n): 0 for n in range(2)})
    for number in range(3):
        made.append(Outgoing("wide", number, None, b"%d" % number))
    metrics = Metrics()
    seat = made.join("w", ["wide"], "one")
    narrow = Loop(Copier(), seat, partitions={"wide": 2}, metrics=metrics)
    run(narrow)
    assert metrics.value(table.UNREAD_PARTITIONS, "copier") == 1
    assert narrow.owned == {TopicPartition("wide", 0), TopicPartition("wide", 1)}
    assert "wide[2] is not read yet (1 of 3 partitions): partitions were added" in caplog.text
    assert set(copied(made)) == {b"0", b"1"}
    writer = made.log_writer("plan", "out")
    writer.renew()
    writer.commit([Outgoing("out", 0, None, b"2")], {"w": {TopicPartition("wide", 2): 0}})
    wide = Loop(Copier(), narrow.member, partitions={"wide": 3}, metrics=metrics)
    wide.take_over(narrow)
    run(wide)
    assert metrics.value(table.UNREAD_PARTITIONS, "copier") == 0
    assert len(wide.owned) == 3
    assert set(copied(made)) == {b"0", b"1", b"2"}


def test_a_burst_that_never_commits_ends_the_loop() -> None:
    made = bus()
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        if at == "commit":
            raise Aborted("x")

    made.faults = fail
    loop = Loop(Copier(), made.join("g", ["in"], "one"), clock=clock)
    with pytest.raises(BusError, match="could not commit anything for 60 s"):
        run(loop, 200)


def test_who_is_replaced_is_fenced_and_commits_nothing_more() -> None:
    made = bus()
    loop, _ = looped(made)
    loop.step(0)
    loop.step(0)
    heir, _ = looped(made)
    with pytest.raises(Fenced):
        run(loop)
    run(heir)
    assert copied(made) == ALL


@pytest.mark.parametrize(
    ("deliveries", "accepted"),
    [
        ([[0, 1, 2], [1, 2, 3]], [0, 1, 2, 3]),
        ([[0, 1, 0, 1, 2, 1, 3]], [0, 1, 2, 3]),
        ([[0, 4, 5], [1, 2, 5], [5, 6, 6]], [0, 4, 5, 6]),
        ([[2, 3], [0, 1, 2, 3]], [2, 3]),
    ],
)
def test_records_that_are_delivered_again_are_dropped(
    deliveries: list[list[int]], accepted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are those of partitions that were revoked, in the same poll."""
    made = bus()
    member = made.join("g", ["in"], "one")
    stage = Copier()
    loop = Loop(stage, member)
    loop.step(0)  # The assignment.
    for offsets in deliveries:
        batches = RecordBatch.of(
            Record(topic, number, offset, 1, None, b"%s-%d" % (topic.encode(), offset))
            for topic, number in (("in", 1), ("in", 0), ("in", 2))
            for offset in offsets
        )
        monkeypatch.setattr(member, "poll", lambda *_, given=batches: Polled(given))
        loop.step(0)
    assert copied(made) == [b"in-%d" % offset for offset in accepted]
    assert made.committed("g") == {SOURCE: accepted[-1] + 1}


def test_what_is_held_back_is_not_delivered() -> None:
    made = bus()
    loop, stage = looped(made)
    loop.step(0)
    loop.step(0)
    stage.held = frozenset({SOURCE})
    run(loop)
    assert len(copied(made)) <= 8
    stage.held = frozenset()
    run(loop)
    assert copied(made) == ALL


def test_what_had_come_before_the_assignment_is_caught_up_on() -> None:
    made = bus()
    loop, _ = looped(made)
    loop.step(0)
    loop.lag()
    assert loop.catching_up
    loop.step(0)
    for _ in range(10):
        made.append(Outgoing("in", 0, None, b"later"))
    loop.step(0)
    loop.lag()
    assert loop.catching_up
    loop.step(0)
    assert loop.lag()[SOURCE] > 0
    assert not loop.catching_up


def test_what_was_read_and_is_not_published_is_still_to_be_caught_up_on() -> None:
    loop, stage = looped(bus())
    stage.keeping = True
    run(loop)
    assert not any(loop.lag().values())
    assert loop.catching_up
    stage.keeping = False
    run(loop)
    loop.lag()
    assert not loop.catching_up


def test_a_backlog_that_takes_long_counts_no_more() -> None:
    now = 0.0
    loop, _ = looped(bus(), lambda: now, catch_up_seconds=5)
    loop.step(0)
    loop.lag()
    now = 4.9
    assert loop.catching_up
    now = 5.0
    assert not loop.catching_up


def twice(made: MemoryBus) -> MemoryBus:
    """Write a transaction, whose marker then stands at the end."""
    for commit in (True, False):
        transaction = made.begin("writer")
        transaction.append_many([Outgoing("in", 0, None, b"more")])
        transaction.commit() if commit else transaction.abort()
    return made


def test_an_idle_input_is_committed_past_its_markers_and_once() -> None:
    now = 0.0
    made = twice(bus())
    loop, stage = looped(made, lambda: now)
    stage.settling = True
    run(loop)
    assert made.committed("g") == {SOURCE: 11}
    for _ in range(50):
        now += 0.9
        run(loop, 3)
    assert made.committed("g") == {SOURCE: made.end_offset("in", 0)} == {SOURCE: 14}
    assert stage.commits == 4
    made.trim("in", 0, 14)
    loop.close()
    heir, _ = looped(made)
    run(heir)
    made.append(Outgoing("in", 0, None, b"after"))
    run(heir)
    assert copied(made) == [*ALL, b"more", b"after"]


def test_an_idle_input_is_settled_beside_a_busy_one() -> None:
    now = 0.0
    made = bus()
    made.create_topic("two", 2)
    busy, idle = TopicPartition("two", 0), TopicPartition("two", 1)
    made.commit_offsets("t", {busy: 0, idle: 0})
    transaction = made.begin("writer")
    transaction.append_many([Outgoing("two", 1, None, b"aborted")])
    transaction.abort()
    stage = Copier()
    stage.settling = True
    loop = Loop(stage, made.join("t", ["two"], "one"), clock=lambda: now)
    for number in range(10):
        made.append(Outgoing("two", 0, None, b"%d" % number))
        now += 0.5
        loop.step(0)
    assert made.committed("t")[idle] == 2


def test_a_loop_that_ends_in_order_settles_first() -> None:
    made = twice(bus())
    loop, stage = looped(made)
    stage.settling = True
    run(loop)
    assert made.committed("g") == {SOURCE: 11}
    loop.finish()
    assert made.committed("g") == {SOURCE: 14}


def test_a_loop_that_has_committed_its_positions_ends_without_a_transaction() -> None:
    made = bus()
    loop, stage = looped(made)
    stage.settling = True
    run(loop)
    steps: list[str] = []

    def note(at: str, group: str, instance: str) -> None:
        del group, instance
        steps.append(at)

    made.faults = note
    loop.finish()
    assert steps == []


def test_what_failed_hours_ago_does_not_count() -> None:
    now = 0.0
    made = bus()
    loop, _ = looped(made, lambda: now)
    wanted = [Aborted("x"), Aborted("x")]

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        if at == "commit" and wanted:
            raise wanted.pop()

    made.faults = fail
    loop.step(0)
    loop.step(0)
    # The partition goes to another member, and comes back after hours without a transaction.
    other = made.join("g", ["in"], "a-first")
    for _ in range(5):
        other.poll(10, 1 << 20, 0)
        loop.step(0)
    now = 7_200.0
    other.close(leave=True)
    run(loop)
    assert not wanted
    assert copied(made) == ALL


def test_a_slow_link_gets_smaller_bursts_and_large_ones_again_when_it_is_fast() -> None:
    now = 0.0
    slow = True
    made = bus()
    for number in range(20_000):
        made.append(Outgoing("in", 0, None, b"%d" % number))
    stage = Copier()
    options = LoopOptions(max_records=1_000, transaction_seconds=4.0)
    loop = Loop(stage, made.join("g", ["in"], "one"), options=options, clock=lambda: now)
    taken: list[int] = []

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        nonlocal now
        if at == "commit":
            size = stage.taken
            taken.append(size)
            now += min(4.0, size / 60) if slow else 0.01
            if slow and size / 60 >= 4.0:
                raise OutcomeUnknown("it timed out")

    made.faults = fail
    while len(taken) < 20:
        loop.step(0)
    assert taken[:2] == [250, 100]
    assert max(taken[1:]) <= 150
    slow = False
    run(loop, 200)
    assert max(taken) == 1_000
    assert taken[20:].count(1_000) > 10
    while loop.busy:
        loop.step(0)
    assert len(made.read("out", 0, 0, 30_000)) == 20_010


def test_a_burst_that_is_too_slow_by_itself_ends_the_loop_with_what_to_do() -> None:
    now = 0.0
    made = bus()
    loop, _ = looped(made, lambda: now)

    def fail(at: str, group: str, instance: str) -> None:
        del group, instance
        nonlocal now
        if at == "commit":
            now += 4.5
            raise OutcomeUnknown("it timed out")

    made.faults = fail
    with pytest.raises(BusError, match=r"4 records \(4 bytes in total\).*transaction_timeout_ms"):
        run(loop, 200)


def test_a_stage_that_has_more_is_asked_again_at_once() -> None:
    made = bus()
    loop, stage = looped(made)
    run(loop)
    assert not loop.busy
    stage.more = True
    loop.step(60)
    assert loop.busy
    assert stage.rooms[-1] == 16 << 20


def refusing(most: int) -> tuple[MemoryBus, Loop, Copier]:
    """Return a loop whose output takes records of so many bytes, besides their headers."""
    made = MemoryBus()
    made.create_topic("in", 1)
    headers = ((REASON, b"x"),)
    made.create_topic("out", 1, max_bytes=most + Outgoing("out", 0, None, b"", headers).size)
    made.commit_offsets("g", {SOURCE: 0})
    for value in (b"one", b"x" * 200, b"two", b"y" * 300):
        made.append(Outgoing("in", 0, None, value))
    loop, stage = looped(made)
    stage.headers = headers
    return made, loop, stage


def test_less_is_published_of_what_a_topic_refuses_and_the_largest_comes_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, loop, stage = refusing(190)
    run(loop)
    assert copied(made) == [b"one", None, b"two", None]
    refused = [line for line in caplog.messages if "refuses a record" in line]
    assert ["y" if "of 3" in line else "x" for line in refused] == ["y", "x"]
    assert stage.commits == 1
    assert len(stage.adoptions) == 1


def test_what_a_topic_refuses_and_cannot_be_less_ends_the_loop() -> None:
    _, loop, stage = refusing(-1)
    with pytest.raises(BusError, match="refuses, for one"):
        run(loop)
    assert stage.commits == 0


def test_only_rejected_records_are_published_in_part() -> None:
    _, loop, stage = refusing(100)
    stage.headers = ()
    with pytest.raises(BusError, match="refuses, for one"):
        run(loop)
    assert stage.commits == 0


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("cut", [9, 10])
def test_a_log_that_lost_what_was_read_ends_the_loop(cut: int, *, restarted: bool) -> None:
    """What came in its place would never be read; what comes after what was read is."""
    made = bus()
    loop, _ = looped(made)
    run(loop)
    if restarted:
        loop.close()
        loop, _ = looped(made)
    made.cut("in", 0, cut)
    new = [b"new %d" % number for number in range(5)]
    for value in new:
        made.append(Outgoing("in", 0, None, value))
    if cut < len(ALL):
        with pytest.raises(LogTruncated, match="from offset 9 on"):
            run(loop)
        assert copied(made) == ALL
    else:
        run(loop)
        assert copied(made) == ALL + new


def test_a_log_that_was_cut_is_adopted_anew() -> None:
    made = bus()
    loop, stage = looped(made)
    loop.step(0)
    loop.step(0)
    made.trim("in", 0, 6)
    run(loop)
    assert copied(made) == ALL[:4] + ALL[6:]
    assert stage.adoptions == [{SOURCE: 0}, {SOURCE: 4}]


def test_a_stage_that_needs_what_was_cut_ends_the_loop() -> None:
    made = bus()
    made.trim("in", 0, 5)
    loop, stage = looped(made)
    stage.needing = True
    with pytest.raises(StageError, match="was deleted before it was read"):
        run(loop)


def test_a_position_above_the_log_ends_the_loop() -> None:
    made = bus()
    made.commit_offsets("g", {SOURCE: 30})
    loop, _ = looped(made)
    with pytest.raises(StageError, match=r"outside the log.*`neardup topics verify`"):
        run(loop)
