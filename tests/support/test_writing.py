"""Who writes to brokers that are gone gives up with the run, at once."""

from collections.abc import Iterator
from threading import Event, Thread

import pytest
from confluent_kafka import Producer

from tests.support.writing import written
from worker.bus.port import Outgoing

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
SECONDS = 20


def given(count: int) -> list[Outgoing]:
    return [Outgoing("documents", None, b"key", b"value") for _ in range(count)]


def test_records_that_no_log_takes_are_given_up_once_the_run_is_over() -> None:
    producer, over, raised = Producer(NOWHERE), Event(), list[AssertionError]()
    all_given = Event()

    def three() -> Iterator[Outgoing]:
        yield from given(3)
        all_given.set()

    def write() -> None:
        with pytest.raises(AssertionError, match="given up with the run: 3 records") as error:
            written(producer, three(), over)
        raised.append(error.value)

    thread = Thread(target=write, daemon=True)
    thread.start()
    assert all_given.wait(SECONDS)
    over.set()
    thread.join(SECONDS)
    assert raised
    assert len(producer) == 0  # Nothing is left that could be waited for.


def test_a_full_queue_is_not_waited_for_either() -> None:
    producer, over = Producer({**NOWHERE, "queue.buffering.max.messages": 2}), Event()
    over.set()
    assert written(producer, given(3), over) == []
