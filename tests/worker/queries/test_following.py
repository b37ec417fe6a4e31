"""Queries beside the thread that applies the log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker.queries.parts import Site, body
from worker.app import Application
from worker.bus import Outgoing
from worker.probe import Point, Probe
from worker.queries.answers import Answer
from worker.queries.following import Following, Warming
from worker.stages import StageError
from worker.wire import HandOver

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
DEADLINE = 20.0
A_WHILE = 0.2


class AtWrite(Probe):
    """Calls what it is told to, once, before changes go into a shard's memory."""

    def __init__(self) -> None:
        self.then: Callable[[], None] | None = None

    def before(self, point: Point) -> None:
        if point == "write" and self.then is not None:
            then, self.then = self.then, None
            then()


def test_a_query_waits_while_changes_are_applied_and_sees_all_of_them(tmp_path: Path) -> None:
    probe = AtWrite()
    with Site(tmp_path) as site:
        application = Application(
            site.settings, site.topology, site.bus, tmp_path / "watched", probe=lambda _: probe
        )
        site.following.close()
        site.following = Following(application, lambda: 0.0)
        site.catch_up()
        answers: list[Answer] = []
        answered = threading.Event()

        def ask() -> None:
            answers.extend(site.answers(body({"text": TEXT})))
            answered.set()

        asking = threading.Thread(target=ask)

        def begin() -> None:
            asking.start()
            assert not answered.wait(A_WHILE)

        site.judge({"id": "a", "text": TEXT})
        probe.then = begin
        site.catch_up()
        asking.join(DEADLINE)
        assert [one.id for answer in answers for one in answer.matches] == ["a"]


def test_a_damaged_shard_is_warmed_up_again(tmp_path: Path) -> None:
    with Site(tmp_path, index={"flush_documents": 1}) as site:
        site.judge({"id": "a", "text": TEXT})
        site.catch_up()
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"
        site.following.close()
        for table in (tmp_path / "follower" / "shard-001").glob("*.sst"):
            table.write_bytes(b"x" * table.stat().st_size)
        site.following = site.follow("follower")
        with pytest.raises(Warming, match="shard 0 is warming up"):
            site.answers(body({"text": TEXT}))
        site.catch_up()
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"
        assert (tmp_path / "follower" / "shard-001.aside").exists()


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.judge({"id": "a", "text": TEXT})
        site.catch_up()
        site.following.close()
        order = site.topology.order
        site.judge({"id": "b", "text": "Something else."})
        site.bus.trim(*order, 1)  # What is applied isn't needed any more.
        site.following = site.follow("follower")
        site.catch_up()
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"
        reached = site.following.reached()
        assert (reached.furthest_behind, reached.warming) == (0, [])
        assert reached.position == site.bus.end_offset(*order) - 1


def test_it_ends_where_another_generation_takes_over(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.judge({"id": "a", "text": TEXT})
        hand_over(site, 0)  # That of its own is passed over.
        site.judge({"id": "b", "text": "Something else."})
        site.catch_up()
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"
        assert site.following.reached().furthest_behind == 0
        hand_over(site, 1)
        with pytest.raises(StageError, match="generation 1 of the index has taken over"):
            site.catch_up()


def hand_over(site: Site, generation: int) -> None:
    """Write a hand-over where the log ends."""
    topic, number = site.topology.order
    record = HandOver(site.topology.layout.id, generation).encode()
    site.bus.append(Outgoing(topic, number, None, record))
