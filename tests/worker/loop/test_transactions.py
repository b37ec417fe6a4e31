"""What follows from each outcome of a transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import pytest

from worker.bus import (
    Aborted,
    AnyOutgoing,
    BusError,
    Effect,
    OutcomeUnknown,
    Outgoing,
    OutgoingBatch,
    Refused,
    TopicPartition,
)
from worker.loop.options import LoopOptions
from worker.loop.transactions import Transactions
from worker.probe import UNWATCHED
from worker.wire.headers import REASON, reduced_rejection

A, B, C = (Outgoing("out", number, None, b"") for number in range(3))
OFFSETS = {TopicPartition("in", 0): 7}


class Log:
    """A log that keeps of each transaction what it is told to.

    Attributes:
        events: what was done, in order.
        ends: how each commit ends: its effect, and what the caller is told.
    """

    def __init__(self, *ends: tuple[Effect, Exception | None]) -> None:
        self.events: list[object] = []
        self.ends = list(ends)
        self.left = Effect()
        self.unseen: BusError | None = None
        self.transactions = Transactions(
            "route",
            lambda: self.events.append("renew"),
            self.effect,
            options=LoopOptions(),
            probe=UNWATCHED,
            clock=lambda: 0.0,
        )

    def effect(self) -> Effect:
        if self.unseen is not None:
            raise self.unseen
        return self.left

    def commit(self, records: Sequence[AnyOutgoing], offsets: Mapping[TopicPartition, int]) -> None:
        self.events.append((list(records), dict(offsets)))
        self.left, told = self.ends.pop(0)
        if told is not None:
            raise told

    def see_through(self, records: Iterable[AnyOutgoing] = (A, B, C)) -> str:
        return self.transactions.see_through(list(records), OFFSETS, self.commit).outcome


@pytest.mark.parametrize(
    ("left", "told", "outcome"),
    [
        (Effect([True] * 3, offsets=True), None, "committed"),
        (Effect([False] * 3, offsets=False), Aborted(), "aborted"),
        (Effect(), Aborted(), "aborted"),
        (Effect([False] * 3, offsets=False), OutcomeUnknown(), "unknown"),
        (Effect([True] * 3, offsets=True), OutcomeUnknown(), "unknown"),
    ],
)
def test_a_transaction_that_is_whole_is_left_alone(
    left: Effect, told: Exception | None, outcome: str
) -> None:
    log = Log((left, told))
    assert log.see_through() == outcome
    renewals = ["renew"] if outcome == "unknown" else []
    assert log.events == [([A, B, C], OFFSETS), *renewals]


@pytest.mark.parametrize("told", [Aborted(), OutcomeUnknown()])
@pytest.mark.parametrize(
    ("left", "rest"),
    [
        (Effect([True, False, True], offsets=False), ([B], OFFSETS)),
        (Effect([True, True, True], offsets=False), ([], OFFSETS)),
        (Effect([False, False, False], offsets=True), ([A, B, C], {})),
        (Effect([False, True, False], offsets=True), ([A, C], {})),
    ],
)
def test_the_rest_of_a_torn_transaction_is_written(
    left: Effect, rest: object, told: Exception
) -> None:
    log = Log((left, told), (Effect(), None))
    assert log.see_through() == "completed"
    assert log.events[0] == ([A, B, C], OFFSETS)
    assert log.events[-1] == rest
    assert set(map(str, log.events[1:-1])) == {"renew"}
    assert not log.transactions.failing


def test_the_rest_may_be_torn_again() -> None:
    log = Log(
        (Effect([True, False, False], offsets=False), OutcomeUnknown()),
        (Effect(), Aborted("not begun")),
        (Effect([False, True], offsets=True), OutcomeUnknown()),
        (Effect([True]), OutcomeUnknown()),
    )
    assert log.see_through() == "completed"
    written = [event for event in log.events if event != "renew"]
    assert written == [([A, B, C], OFFSETS), ([B, C], OFFSETS), ([B, C], OFFSETS), ([B], {})]


def test_it_gives_up_loudly(caplog: pytest.LogCaptureFixture) -> None:
    """Another worker may own the partitions by now: the group refuses the offsets for ever."""
    torn = (Effect([True, False, False], offsets=False), OutcomeUnknown())
    log = Log(torn, *[(Effect(), Aborted("moved"))] * 5)
    with caplog.at_level(logging.ERROR):
        assert log.see_through() == "unknown"
    assert not log.ends
    assert "gave up" in caplog.messages[-1]
    assert "2 records are still missing, and its offsets are missing" in caplog.messages[-1]


def test_an_effect_that_cannot_be_seen_changes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Log((Effect(), OutcomeUnknown()))
    log.unseen = BusError("no answer")
    assert log.see_through() == "unknown"
    assert any("can't see how the transaction ended: no answer" in m for m in caplog.messages)


def test_a_refused_rejection_is_reduced_beside_batches() -> None:
    rejected = Outgoing("rejected", None, b"k", bytes(900), ((REASON, b"too-large"),))
    larger = Outgoing("out", 0, None, bytes(5_000))
    columns = OutgoingBatch("out", 0, [b"a", None], [b"1", b"2"], [[("h", b"")], []], [5, None])
    refused = Refused("it is too large", [rejected, larger], "MSG_SIZE_TOO_LARGE")
    log = Log((Effect(), refused), (Effect(), None))
    assert log.see_through([columns, rejected, larger, columns]) == "committed"
    smaller = reduced_rejection(rejected)
    assert smaller is not None
    singly = list(columns.records())
    assert log.events == [
        ([columns, rejected, larger, columns], OFFSETS),
        ([*singly, smaller, larger, *singly], OFFSETS),
    ]


def test_refused_records_of_a_batch_that_have_no_smaller_version_are_told() -> None:
    columns = OutgoingBatch("out", 0, [b"a", None], [b"1", b"2"], [[], []], [None, None])
    log = Log((Effect(), Refused("no", list(columns.records())[1:], "INVALID_RECORD")))
    with pytest.raises(Refused, match="out takes no record without a key"):
        log.see_through([columns])


def test_the_rest_of_a_batch_is_written() -> None:
    columns = OutgoingBatch("out", 0, [b"a", None], [b"1", b"2"], [[], []], [None, None])
    first, _ = columns.records()
    log = Log((Effect([True, False, True], offsets=False), OutcomeUnknown()), (Effect(), None))
    assert log.see_through([A, columns]) == "completed"
    assert log.events[-1] == ([first], OFFSETS)
