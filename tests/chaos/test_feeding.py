"""The stream of a run: held up, past a partition, and stopped, by who breaks things meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import SimpleNamespace
from typing import cast

from localkafka.broker import wait_until
from tests.faults.cell import Run
from tests.faults.feeding import Feeding
from tests.support.application import ApplicationUnderTest
from worker.bus.port import Outgoing

PARTITIONS = 4
DOCUMENTS = [(f"doc-{number}", "text") for number in range(20_000)]
RUN = Run(DOCUMENTS, [], rate=2_000.0)


class _Fed:
    """As much of an application as is fed."""

    def __init__(self) -> None:
        self.topology = SimpleNamespace(layout=SimpleNamespace(partitions=PARTITIONS))
        self.records: list[Outgoing] = []

    def documents(self, texts: list[tuple[str, str]], first: int = 0) -> list[Outgoing]:
        """Give a record of each, round the partitions."""
        return [
            Outgoing("documents", (first + place) % PARTITIONS, ident.encode(), b"")
            for place, (ident, _) in enumerate(texts)
        ]

    def feed(self, records: list[Outgoing], over: Event) -> None:
        """Take records, unless the run is over."""
        assert not over.is_set()
        self.records += records


@contextmanager
def feeding() -> Iterator[tuple[Feeding, _Fed]]:
    """Feed in a thread, until this is left."""
    fed, over = _Fed(), Event()
    stream = Feeding(cast("ApplicationUnderTest", fed), over)
    thread = Thread(target=stream.run, args=(RUN, 0, Event()))
    thread.start()
    try:
        wait_until(lambda: len(fed.records) > 0, 10, "the first documents")
        yield stream, fed
    finally:
        over.set()
        thread.join(10)


def more(fed: _Fed) -> None:
    """Wait until more is fed."""
    before = len(fed.records)
    wait_until(lambda: len(fed.records) > before, 10, "more documents")


def test_while_it_is_held_nothing_is_fed_and_nothing_is_missed() -> None:
    with feeding() as (stream, fed):
        with stream.held():
            before = len(fed.records)
            assert not Event().wait(0.6)
            assert len(fed.records) == before
        more(fed)
    idents = [record.key for record in fed.records]
    assert idents == [ident.encode() for ident, _ in DOCUMENTS[: len(idents)]]


def test_a_partition_is_left_out_for_a_while() -> None:
    with feeding() as (stream, fed):
        with stream.without([3]):
            before = len(fed.records)
            more(fed)
            after = len(fed.records)
        more(fed)
        wait_until(
            lambda: any(record.partition == 3 for record in fed.records[after:]), 10, "all again"
        )
    assert {record.partition for record in fed.records[before:after]} == {0, 1, 2}


def test_what_is_stopped_stays_so() -> None:
    with feeding() as (stream, fed):
        stream.stop()
        before = len(fed.records)
        assert not Event().wait(0.6)
        assert len(fed.records) == before
