"""Which document a worker has died of, as far as its notes show."""

from __future__ import annotations

import pytest

from tests.support.notes import KeptNotes
from tests.support.stages import DOCS, document
from worker.bus import Record, RecordBatch, TopicPartition
from worker.stages.deaths import Deaths

TEN = [document(n) for n in range(10)]
OTHER = TopicPartition("documents", 1)


def dies_of_burst(notes: KeptNotes) -> None:
    notes.life().reading({DOCS: 10})


def dies_of(notes: KeptNotes, offset: int) -> None:
    """Read documents alone, up to one that is the last."""
    deaths = notes.life()
    assert deaths.careful(RecordBatch.of(TEN))
    for record in TEN[: offset + 1]:
        if not deaths.poison(record):
            deaths.reading_alone(record)


def poison(deaths: Deaths) -> list[int]:
    return [record.offset for record in TEN if deaths.poison(record)]


def test_three_deaths_find_the_document(caplog: pytest.LogCaptureFixture) -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    assert poison(notes.life()) == []
    dies_of(notes, 4)
    assert poison(notes.life()) == [4]
    assert "those of documents[0] before offset 10 are read one at a time" in caplog.text
    assert "the worker died while it read only documents[0]@4; if that" in caplog.text
    assert "the worker died again while it read only documents[0]@4: it is poison" in caplog.text


def test_a_death_while_nothing_is_read_is_nobodys_fault() -> None:
    notes = KeptNotes()
    deaths = notes.life()
    deaths.reading({DOCS: 10})
    deaths.done()
    assert not notes.life().careful(RecordBatch.of(TEN))


def test_only_the_documents_up_to_the_end_of_the_burst_are_read_alone() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    deaths = notes.life()
    assert deaths.careful(RecordBatch.of(TEN))
    assert deaths.careful(RecordBatch.of([document(9), document(10)]))
    assert not deaths.careful(RecordBatch.of([document(10)]))
    assert not deaths.careful(RecordBatch.of([Record("documents", 1, 3, 0, None, b"")]))


def test_a_document_behind_the_burst_is_found_in_whatever_burst_it_comes() -> None:
    notes = KeptNotes()
    notes.life().reading({DOCS: 3})
    dies_of(notes, 7)
    dies_of(notes, 7)
    deaths = notes.life()
    deaths.passed({DOCS: 3})
    assert deaths.careful(RecordBatch.of(TEN[3:]))
    assert poison(deaths) == [7]


def test_a_document_that_was_read_between_two_deaths_is_not_poison() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    for offset in (4, 7, 4, 7, 4):  # 4 is read each time before 7 is.
        dies_of(notes, offset)
    assert poison(notes.life()) == [7]
    dies_of(notes, 4)
    assert poison(notes.life()) == [4, 7]


def test_two_that_take_turns_cost_two_deaths_each() -> None:
    notes = KeptNotes()
    notes.life().reading({DOCS: 10, OTHER: 10})
    other = Record(OTHER.topic, OTHER.partition, 3, 0, None, b"")
    for first in (TEN[4], other) * 2:  # Which partition comes first differs between lives.
        notes.life().reading_alone(first)
    deaths = notes.life()
    assert poison(deaths) == [4]
    assert deaths.poison(other)


def test_a_document_that_was_read_after_all_is_no_suspect() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    deaths = notes.life()
    for record in TEN:
        deaths.reading_alone(record)
    deaths.done()
    dies_of(notes, 4)
    assert poison(notes.life()) == []


def test_several_are_remembered_until_they_are_passed() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    for offset in (3, 3, 4, 4, 9, 9):
        dies_of(notes, offset)
    deaths = notes.life()
    assert poison(deaths) == [3, 4, 9]
    deaths.passed({DOCS: 4})
    assert poison(deaths) == poison(notes.life()) == [4, 9]
    deaths.passed({DOCS: 10})
    assert poison(notes.life()) == []
    assert not notes.life().careful(RecordBatch.of(TEN))


def test_a_partition_that_others_have_taken_further_is_above_suspicion() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    deaths = notes.life()
    deaths.passed({OTHER: 100})
    deaths.passed({DOCS: 9, OTHER: 100})
    assert deaths.careful(RecordBatch.of(TEN))
    dies_of(notes, 4)
    deaths = notes.life()
    deaths.passed({DOCS: 10})
    assert not deaths.careful(RecordBatch.of(TEN))
    assert poison(deaths) == []


def test_notes_about_another_topic_of_the_same_name_are_void() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    assert not notes.life("another").careful(RecordBatch.of(TEN))
    assert not notes.life().careful(RecordBatch.of(TEN))


@pytest.mark.parametrize("value", [b"", b"nonsense", b"[]", b'{"topic":"id","reading":[]}'])
def test_notes_that_mean_nothing_are_ignored(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    notes = KeptNotes(value)
    assert not notes.life().careful(RecordBatch.of(TEN))
    assert "can't be understood" in caplog.text
    assert not notes.life().careful(RecordBatch.of(TEN))
