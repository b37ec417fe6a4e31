"""A call with a deadline leaves nothing behind, however it ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Event
from weakref import ref

import pytest

from worker.bus import OutcomeUnknown
from worker.bus.kafka.deadline import within


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
