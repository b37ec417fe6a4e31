"""Searches of the outputs, from the newest record to the oldest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.worker.serve.parts import Site
from worker.bus import BusError, Outgoing, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.documents.lookup import Lookup, newest

TOPIC = "a.unique"
PLACES = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as found:
        for number in range(20):
            found.judge({"id": f"d{number}", "text": f"A text of its own: {number}."})
        yield found


def test_a_search_ends_in_time_also_within_a_window(site: Site) -> None:
    ticks = count()
    with Lookup(site.settings, site.topology, site.bus, lambda: float(next(ticks))) as lookup:
        found = lookup.with_id("nobody")
        assert not found.complete
        assert found.searched < 10
        assert not lookup.never_came("nobody"), "it isn't certain"


def test_what_never_came_is_told_apart(site: Site) -> None:
    with Lookup(site.settings, site.topology, site.bus) as lookup:
        assert lookup.never_came("nobody")
        assert not lookup.never_came("d3")


def identify(record: Record) -> str:
    return (record.key or b"").decode()


class Seen:
    """Counts what was read."""

    def __init__(self) -> None:
        self.records = 0

    def __call__(self, _offsets: int, records: int) -> None:
        self.records = records


@pytest.fixture
def bus() -> MemoryBus:
    made = MemoryBus()
    made.create_topic(TOPIC, 2)
    made.append_many(
        Outgoing(TOPIC, number % 2, b"%d" % (number // 4), b"%d" % number)
        for number in range(40_000)
    )
    return made


def found(bus: MemoryBus, *ids: str, seen: Seen | None = None) -> dict[str, list[bytes | None]]:
    reader = bus.log_reader("x", [TOPIC])
    spans = {place: (0, bus.end_offset(*place)) for place in PLACES}
    records = newest(
        reader,
        spans,
        ids,
        identify=identify,
        order=lambda record: int(record.value or b"0"),
        on_read=seen or Seen(),
    )
    return {ident: [record.value for record in some] for ident, some in records.items()}


def test_the_newest_record_of_each_id_is_found(bus: MemoryBus) -> None:
    assert found(bus, "9999", "0") == {"9999": [b"39999"], "0": [b"3"]}


def test_an_id_that_is_given_twice_has_its_newest_two(bus: MemoryBus) -> None:
    assert found(bus, "7", "7") == {"7": [b"31", b"30"]}


def test_a_recent_document_is_found_without_reading_the_rest(bus: MemoryBus) -> None:
    seen = Seen()
    found(bus, "9990", seen=seen)
    assert seen.records == 4_000


def test_an_id_that_is_nowhere_costs_a_read_of_everything(bus: MemoryBus) -> None:
    seen = Seen()
    assert found(bus, "nobody", seen=seen) == {}
    assert seen.records == 40_000


def test_two_records_in_different_windows_are_both_found(bus: MemoryBus) -> None:
    bus.append(Outgoing(TOPIC, 0, b"3", b"40000"))
    assert found(bus, "3", "3") == {"3": [b"40000", b"15"]}


def test_what_retention_deletes_meanwhile_is_passed_over(bus: MemoryBus) -> None:
    bus.trim(TOPIC, 0, 19_000)
    bus.trim(TOPIC, 1, 20_000)
    assert found(bus, "0") == {}
    assert found(bus, "9999")["9999"] == [b"39998"]


def test_a_log_that_falls_silent_ends_the_search(bus: MemoryBus) -> None:
    now = iter(range(0, 10_000, 5))
    with pytest.raises(BusError, match=r"no record of a.unique\[0\] has arrived for 15 s"):
        newest(
            bus.log_reader("x", [TOPIC]),
            {PLACES[0]: (0, 20_001)},  # As if a transaction were open at the end.
            ["nobody"],
            identify=identify,
            order=lambda _: 0,
            clock=lambda: next(now),
        )
