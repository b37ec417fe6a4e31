"""Schemas are asked for once, waited for, and asked for again after a while if there was none."""

from __future__ import annotations

import logging

import pytest

from tests.worker.formats.registry.parts import DOCUMENT, Shelf, avro, mark
from worker.bus import Away
from worker.formats.registry.avro import AvroDecoder
from worker.formats.registry.client import Fetched
from worker.formats.registry.documents import Decoder, Schemas
from worker.formats.unreadable import Unreadable


class Clock:
    """A clock that only waiting moves; ``events`` happen after so many seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.mend: tuple[float, Shelf] | None = None

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        if self.mend is not None and self.now >= self.mend[0]:
            self.mend[1].error = None


def decoder(fetched: Fetched) -> Decoder:
    return AvroDecoder(fetched.text, [], None)


def schemas(shelf: Shelf, clock: Clock) -> Schemas:
    return Schemas(shelf, decoder, clock, clock.pause)


def shelf() -> Shelf:
    found = Shelf()
    found.schemas[1] = avro()
    return found


def test_it_waits_for_a_registry_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    here, clock = shelf(), Clock()
    here.error = Away("the registry is away")
    clock.mend = (3, here)
    found = schemas(here, clock)
    found.prepare([mark(1)])
    assert clock.now == 3
    assert found.decoder(mark(1)).names
    said = [one.message for one in caplog.records]
    assert said[0] == "the registry is away; documents wait for it, and none is rejected"
    assert said[-1] == "the schema registry answers again"


def test_the_wait_has_an_end_and_nothing_is_refused() -> None:
    here, clock = shelf(), Clock()
    here.error = Away("the registry is away")
    found = schemas(here, clock)
    with pytest.raises(Away, match="the registry is away"):
        found.prepare([mark(1)])
    assert 10 < clock.now < 12
    here.error = None
    found.prepare([mark(1)])
    assert found.decoder(mark(1)).names


def test_an_unknown_id_is_asked_for_again_after_a_minute() -> None:
    here, clock = Shelf(), Clock()
    found = schemas(here, clock)
    for _ in range(3):
        found.prepare([mark(1)])
        with pytest.raises(Unreadable, match="no-schema"):
            found.decoder(mark(1))
    assert here.asked == [1]
    here.schemas[1] = avro()
    clock.now = 61
    found.prepare([mark(1)])
    assert found.decoder(mark(1)).names
    assert here.asked == [1, 1]


def test_who_asks_without_waiting_asks_a_silent_registry_every_few_seconds() -> None:
    here, clock = shelf(), Clock()
    here.error = Away("the registry is away")
    found = schemas(here, clock)
    for _ in range(3):
        with pytest.raises(Away):
            found.decoder(mark(1))
    assert here.asked == [1]
    here.error = None
    clock.now = 6
    assert found.decoder(mark(1)).names


def test_many_unknown_ids_are_asked_for_together_and_forgotten_in_the_end() -> None:
    here, clock = Shelf(), Clock()
    found = schemas(here, clock)
    found.prepare(mark(number) for number in range(1, 10_002))
    assert len(here.together) < 10_001 / 10
    found.prepare([mark(10_001)])
    found.prepare([mark(1), mark(5)])
    assert (here.asked.count(1), here.asked.count(5)) == (2, 1)


def test_what_was_unknown_is_asked_for_again_a_few_at_a_time() -> None:
    here, clock = Shelf(), Clock()
    found = schemas(here, clock)
    marks = [mark(number) for number in range(1, 1_001)]
    found.prepare(marks)
    clock.now = 61
    here.asked.clear()
    for _ in range(100):
        found.prepare(marks)
    assert len(here.asked) <= 16
    clock.now = 121
    for _ in range(100):
        clock.now += 1
        found.prepare(marks)
    assert set(here.asked) == set(range(1, 1_001))


def test_a_refusal_keeps_nothing_of_the_documents_that_met_it() -> None:
    found = schemas(Shelf(), Clock())
    for _ in range(5):
        with pytest.raises(Unreadable) as raised:
            found.decoder(mark(1))
    assert len(raised.traceback) == 2


def test_asking_again_never_holds_up_what_is_known() -> None:
    here, clock = shelf(), Clock()
    found = schemas(here, clock)
    found.prepare([mark(1), mark(2)])
    clock.now = 61
    here.error = Away("the registry is away")
    found.prepare([mark(1), mark(2)])
    assert clock.now == 61
    with pytest.raises(Unreadable, match="no-schema"):
        found.decoder(mark(2))


def test_what_can_not_be_used_is_asked_for_again_after_ten_minutes() -> None:
    here, clock = Shelf(), Clock()
    here.schemas[1] = Fetched("AVRO", "[" * 100_000, [])
    found = schemas(here, clock)
    for now in (0, 61, 599, 601):
        clock.now = now
        found.prepare([mark(1)])
        with pytest.raises(Unreadable, match="no-schema: schema 1 can't be used: Recurs") as raised:
            found.decoder(mark(1))
        assert len(str(raised.value)) < 300
    assert here.asked == [1, 1]


@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError("deep"), KeyError("x"), OSError(7)]
)
def test_any_error_about_a_schema_is_that_of_its_documents(error: Exception) -> None:
    def fails(_: Fetched) -> Decoder:
        raise error

    found = Schemas(shelf(), fails)
    found.prepare([mark(1)])
    with pytest.raises(
        Unreadable, match=f"no-schema: schema 1 can't be used: {type(error).__name__}"
    ):
        found.decoder(mark(1))


def test_the_oldest_schemas_are_forgotten_if_they_are_large() -> None:
    here, clock = Shelf(), Clock()
    for number in range(1, 31):
        here.schemas[number] = avro({**DOCUMENT, "doc": "x" * (1 << 20)})
    found = schemas(here, clock)
    for number in range(1, 31):
        found.prepare([mark(number)])
    assert len(found.known) < 20
    found.prepare([mark(1), mark(30)])
    assert (here.asked.count(1), here.asked.count(30)) == (2, 1)
