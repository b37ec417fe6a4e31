"""What a worker concludes from the notes of what its last life fetched."""

from __future__ import annotations

import pytest

from tests.support.notes import KeptNotes
from worker.bus.fetches import Fetches

MEMORY = 256 << 20


class Worker:
    """Lives of a worker that share their notes."""

    def __init__(self) -> None:
        self.notes = KeptNotes()
        self.now = 0.0
        self.date = 1_000.0

    def life(self, identity: str = "id", memory: int = MEMORY) -> Fetches:
        return Fetches(
            "documents",
            identity,
            self.notes,
            memory,
            clock=lambda: self.now,
            wall_clock=lambda: self.date,
        )

    def dies_fetching(self) -> None:
        life = self.life()
        life.at("fingerprint", 0, 5)
        life.at("route", 0, 3)

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
    assert not life.careful("route", 1)
    assert "fingerprint documents[0] from offset 5; route documents[0] from offset 3" in caplog.text


def test_a_worker_that_ends_by_itself_leaves_nothing(worker: Worker) -> None:
    life = worker.life()
    life.at("fingerprint", 0, 5)
    life.leave("fingerprint")
    assert not worker.life().known


def test_a_partition_that_is_past_the_danger_is_like_any_other(worker: Worker) -> None:
    worker.dies_fetching()
    life = worker.life()
    life.past("fingerprint", 0)
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
    assert not worker.life("another").known


@pytest.mark.parametrize("value", [b"", b"nonsense", b"[]", b'{"topic":"id","fetching":[]}'])
def test_notes_that_mean_nothing_are_ignored(
    worker: Worker, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    worker.notes.value = value
    assert not worker.life().known
    assert "can't be understood" in caplog.text
