"""What a worker concludes from the notes of what its last life fetched and read."""

from __future__ import annotations

import pytest

from tests.support.notes import KeptNotes
from tests.support.stages import DOCS, document
from worker.bus import Record, RecordBatch, TopicPartition
from worker.bus.deadly_documents import DeadlyDocuments
from worker.bus.last_life import DeadlyBatches, LastLife

MEMORY = 256 << 20
TEN = [document(n) for n in range(10)]
OTHER = TopicPartition("documents", 1)


class Worker:
    """Lives of a worker that share their notes."""

    def __init__(self) -> None:
        self.notes = KeptNotes()
        self.now = 0.0
        self.date = 1_000.0

    def life(self, identity: str = "id", memory: int = MEMORY) -> DeadlyBatches:
        return LastLife(
            "documents",
            identity,
            self.notes,
            memory,
            clock=lambda: self.now,
            wall_clock=lambda: self.date,
        ).batches

    def dies_fetching(self) -> None:
        life = self.life()
        life.begin("fingerprint")
        life.begin("route")

    def dies_alone(self, group: str = "fingerprint", offset: int = 7) -> None:
        assert self.life().alone(group, 0, offset)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_after_a_death_each_group_is_careful_with_what_it_fetched(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.dies_fetching()
    life = worker.life()
    assert life.known
    assert life.careful("fingerprint", 0)
    assert life.careful("route", 0)
    assert not life.careful("another", 0)
    assert "while it fetched documents (fingerprint, route)" in caplog.text


def test_a_worker_that_ends_by_itself_leaves_nothing(worker: Worker) -> None:
    life = worker.life()
    life.begin("fingerprint")
    assert life.alone("fingerprint", 0, 5)
    life.end()
    assert not worker.life().known


def test_a_group_that_is_past_the_danger_is_like_any_other(worker: Worker) -> None:
    worker.dies_fetching()
    life = worker.life()
    life.safe("fingerprint")
    assert not life.careful("fingerprint", 0)
    assert life.careful("route", 0)


def test_one_group_fetches_alone_at_a_time(worker: Worker) -> None:
    life = worker.life()
    assert life.alone("fingerprint", 0, 5)
    assert not life.alone("route", 0, 3)
    assert life.alone("fingerprint", 0, 6)
    life.rest("fingerprint")
    assert not life.alone("fingerprint", 0, 7)  # The other one has asked meanwhile.
    assert life.alone("route", 0, 3)
    life.rest("route")
    assert not life.alone("route", 0, 4)
    assert life.alone("fingerprint", 0, 7)


def test_groups_that_wait_have_their_turns_in_order_and_do_not_wait_for_each_other(
    worker: Worker,
) -> None:
    life = worker.life()
    groups = ["fingerprint", "route", "refingerprint"]
    assert [life.alone(group, 0, 5) for group in groups] == [True, False, False]
    assert [life.alone(group, 0, 5) for group in reversed(groups)] == [False, False, True]
    turns: list[str] = []
    for _ in range(6):
        life.rest(turns[-1] if turns else "fingerprint")
        turns += [group for group in groups if life.alone(group, 0, 5)]
    assert turns == ["route", "refingerprint", "fingerprint"] * 2


def test_a_group_that_does_not_come_back_keeps_nobody_waiting(worker: Worker) -> None:
    life = worker.life()
    assert life.alone("fingerprint", 0, 5)
    assert not life.alone("route", 0, 3)
    life.rest("fingerprint")
    worker.now += 2
    assert life.alone("fingerprint", 0, 7)


def test_the_second_death_of_a_batch_has_it_refused(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.dies_alone()
    life = worker.life()
    assert life.careful("fingerprint", 0)
    assert not life.refused(0, 7)
    assert "fetched nothing but the batch at documents[0] offset 7" in caplog.text
    worker.dies_alone()
    life = worker.life()
    assert life.refused(0, 7)
    assert not life.refused(0, 8)
    life.leave("fingerprint")  # It ends by itself, and says so again the next time.
    again = worker.life()
    assert again.refused(0, 7)
    assert again.careful("fingerprint", 0)


def test_deaths_of_two_groups_by_one_batch_are_two(worker: Worker) -> None:
    worker.dies_alone("fingerprint")
    worker.dies_alone("route")
    assert worker.life().refused(0, 7)


def test_a_batch_that_was_read_between_two_deaths_is_not_refused(worker: Worker) -> None:
    worker.dies_alone()
    life = worker.life()
    assert life.alone("fingerprint", 0, 7)
    assert life.alone("fingerprint", 0, 9)
    assert not worker.life().refused(0, 7)
    worker.dies_alone(offset=7)
    assert not worker.life().refused(0, 7)


def test_a_refusal_ends_with_more_memory_or_after_an_hour(worker: Worker) -> None:
    worker.dies_alone()
    worker.dies_alone()
    assert worker.life(memory=MEMORY).refused(0, 7)
    assert not worker.life(memory=2 * MEMORY).refused(0, 7)
    worker.date += 3_601
    assert not worker.life().refused(0, 7)


def test_notes_about_another_topic_of_the_same_name_are_void(worker: Worker) -> None:
    worker.dies_fetching()
    dies_of_burst(worker.notes)
    assert not worker.life("another").known
    assert not worker.notes.documents().careful(RecordBatch.of(TEN))


@pytest.mark.parametrize(
    "value",
    [b"", b"nonsense", b"[]", b'{"topic":"id","fetched":[]}', b'{"topic":"id","read":{"g":[]}}'],
)
def test_notes_that_mean_nothing_are_ignored(
    worker: Worker, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    worker.notes.value = value
    assert not worker.life().known
    assert "can't be understood" in caplog.text
    assert not worker.notes.documents().careful(RecordBatch.of(TEN))


def dies_of_burst(notes: KeptNotes) -> None:
    notes.documents().reading({DOCS: 10})


def dies_of(notes: KeptNotes, offset: int) -> None:
    """Read documents alone, up to one that is the last."""
    deaths = notes.documents()
    assert deaths.careful(RecordBatch.of(TEN))
    for record in TEN[: offset + 1]:
        if not deaths.poison(record):
            deaths.reading_alone(record)


def poison(deaths: DeadlyDocuments) -> list[int]:
    return [record.offset for record in TEN if deaths.poison(record)]


def test_three_deaths_find_the_document(caplog: pytest.LogCaptureFixture) -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    assert poison(notes.documents()) == []
    dies_of(notes, 4)
    assert poison(notes.documents()) == [4]
    assert "those of documents[0] before offset 10 are read one at a time" in caplog.text
    assert "the worker died while it read only documents[0]@4; if that" in caplog.text
    assert "the worker died again while it read only documents[0]@4: it is poison" in caplog.text


def test_a_death_while_nothing_is_read_is_nobodys_fault() -> None:
    notes = KeptNotes()
    deaths = notes.documents()
    deaths.reading({DOCS: 10})
    deaths.done()
    assert not notes.documents().careful(RecordBatch.of(TEN))


def test_only_the_documents_up_to_the_end_of_the_burst_are_read_alone() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    deaths = notes.documents()
    assert deaths.careful(RecordBatch.of(TEN))
    assert deaths.careful(RecordBatch.of([document(9), document(10)]))
    assert not deaths.careful(RecordBatch.of([document(10)]))
    assert not deaths.careful(RecordBatch.of([Record("documents", 1, 3, 0, None, b"")]))


def test_a_document_behind_the_burst_is_found_in_whatever_burst_it_comes() -> None:
    notes = KeptNotes()
    notes.documents().reading({DOCS: 3})
    dies_of(notes, 7)
    dies_of(notes, 7)
    deaths = notes.documents()
    deaths.passed({DOCS: 3})
    assert deaths.careful(RecordBatch.of(TEN[3:]))
    assert poison(deaths) == [7]


def test_a_document_that_was_read_between_two_deaths_is_not_poison() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    for offset in (4, 7, 4, 7, 4):  # 4 is read each time before 7 is.
        dies_of(notes, offset)
    assert poison(notes.documents()) == [7]
    dies_of(notes, 4)
    assert poison(notes.documents()) == [4, 7]


def test_two_that_take_turns_cost_two_deaths_each() -> None:
    notes = KeptNotes()
    notes.documents().reading({DOCS: 10, OTHER: 10})
    other = Record(OTHER.topic, OTHER.partition, 3, 0, None, b"")
    for first in (TEN[4], other) * 2:  # Which partition comes first differs between lives.
        notes.documents().reading_alone(first)
    deaths = notes.documents()
    assert poison(deaths) == [4]
    assert deaths.poison(other)


def test_a_document_that_was_read_after_all_is_no_suspect() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    deaths = notes.documents()
    for record in TEN:
        deaths.reading_alone(record)
    deaths.done()
    dies_of(notes, 4)
    assert poison(notes.documents()) == []


def test_several_are_remembered_until_they_are_passed() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    for offset in (3, 3, 4, 4, 9, 9):
        dies_of(notes, offset)
    deaths = notes.documents()
    assert poison(deaths) == [3, 4, 9]
    deaths.passed({DOCS: 4})
    assert poison(deaths) == poison(notes.documents()) == [4, 9]
    deaths.passed({DOCS: 10})
    assert poison(notes.documents()) == []
    assert not notes.documents().careful(RecordBatch.of(TEN))


def test_a_partition_that_others_have_taken_further_is_above_suspicion() -> None:
    notes = KeptNotes()
    dies_of_burst(notes)
    dies_of(notes, 4)
    deaths = notes.documents()
    deaths.passed({OTHER: 100})
    deaths.passed({DOCS: 9, OTHER: 100})
    assert deaths.careful(RecordBatch.of(TEN))
    dies_of(notes, 4)
    deaths = notes.documents()
    deaths.passed({DOCS: 10})
    assert not deaths.careful(RecordBatch.of(TEN))
    assert poison(deaths) == []


def test_groups_are_blamed_apart() -> None:
    notes = KeptNotes()
    life = notes.life()
    life.documents("fingerprint").reading({DOCS: 10})
    life.documents("refingerprint").reading_alone(TEN[3])
    life = notes.life()
    assert life.documents("fingerprint") is life.documents("fingerprint")
    assert life.documents("refingerprint").careful(RecordBatch.of(TEN[3:4]))
    assert not life.documents("refingerprint").careful(RecordBatch.of(TEN[4:]))
    assert life.documents("fingerprint").careful(RecordBatch.of(TEN[9:]))
    assert not life.documents("another").careful(RecordBatch.of(TEN))
