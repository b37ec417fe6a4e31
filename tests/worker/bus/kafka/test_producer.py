"""How long a producer waits before its next transaction, and for a call that hangs."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from threading import Event
from weakref import ref

import pytest

from worker.bus import OutcomeUnknown
from worker.bus.kafka.producer import Settling, within

QUICK = 0.003
"""Seconds that it takes to add offsets, where nothing is refused."""
REPEAT = 0.018


class Coordinator:
    """Refuses a transaction that begins before the last one's markers are written."""

    def __init__(self, markers: float) -> None:
        self.now = 0.0
        self.markers = markers
        self.settling = Settling(lambda: self.now, self._sleep)
        self._ended: float | None = None
        self.refused = 0

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def transact(self, later: float = 0.0) -> float:
        """Begin ``later`` seconds after the last one; return how long its start was delayed."""
        self.now += later
        due = self.now
        self.settling.begin()
        began = self.now
        refused = self._ended is not None and began < self._ended + self.markers
        self.refused += refused
        self.now += QUICK + (REPEAT if refused else 0)
        self.settling.took(self.now - began)
        delayed = self.now - QUICK - due
        self.settling.ended()
        self._ended = self.now
        return delayed


def test_the_wait_comes_close_to_what_the_markers_take() -> None:
    for markers in (0.002, 0.006, 0.012):
        coordinator = Coordinator(markers)
        for _ in range(5_000):
            coordinator.transact()
        coordinator.refused = 0
        delays = [coordinator.transact() for _ in range(1_000)]
        assert coordinator.refused <= 20
        assert sum(delays) / len(delays) <= markers * 1.1 + 0.001


def test_it_grows_at_once_when_the_markers_take_longer() -> None:
    coordinator = Coordinator(0.002)
    for _ in range(5_000):
        coordinator.transact()
    coordinator.markers = 0.012
    coordinator.refused = 0
    for _ in range(100):
        coordinator.transact()
    assert coordinator.refused <= 12


def test_nothing_waits_where_transactions_are_far_apart() -> None:
    coordinator = Coordinator(0.006)
    rng = random.Random(46)
    for _ in range(100):
        assert coordinator.transact(later=rng.uniform(0.05, 1)) == 0


def test_no_wait_is_longer_than_the_pause_that_it_saves() -> None:
    coordinator = Coordinator(0.5)
    coordinator.transact()
    assert max(coordinator.transact() for _ in range(500)) <= 0.02 + REPEAT + 1e-9


def test_slower_brokers_are_not_taken_for_one_that_refuses() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    settling = Settling(lambda: now[0], sleep)
    for seconds in (QUICK, 0.05):
        for _ in range(5_000):
            settling.begin()
            settling.took(seconds)
            settling.ended()
    before = now[0]
    settling.begin()
    assert now[0] - before < 0.005


def test_a_new_producer_and_a_timeout_end_the_wait() -> None:
    waits: list[float] = []
    settling = Settling(lambda: 0.0, waits.append)
    settling.wait()
    settling.ended()
    settling.wait(0.004)
    settling.anew()
    settling.wait()
    assert waits == [0.004]


class Client:
    def fail(self) -> None:
        raise ValueError(self)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def failed(client: Client) -> bool:
    try:
        within(client.fail, 1.0, "failing")
    except ValueError:
        return True
    return False


def test_the_result_is_given() -> None:
    assert within(lambda: 5, 1.0, "counting") == 5


@pytest.mark.usefixtures("no_collector")
def test_whom_a_failed_call_was_for_is_free_at_once() -> None:
    client = Client()
    known = ref(client)
    assert failed(client)
    del client
    assert known() is None


def test_a_call_that_hangs_is_left_behind() -> None:
    over = Event()
    with pytest.raises(OutcomeUnknown, match="waiting: no answer"):
        within(over.wait, -1.9, "waiting")
    over.set()
