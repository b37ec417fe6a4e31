"""Queries beside the thread that applies the log."""

from __future__ import annotations

import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import worker.serve.following
from tests.worker.serve.parts import Site, body
from worker.app import Application, Environment
from worker.bus import BusError, Denied, LogReader, Outgoing
from worker.bus.memory.bus import MemoryBus
from worker.index.store import BandStore
from worker.serve.answers import Answer
from worker.serve.following import Following, Warming
from worker.serve.shard_lock import ShardLock
from worker.settings.model import Settings
from worker.stages.base import StageError
from worker.stages.judge import Judge, Judgement
from worker.stages.order import Documents
from worker.wire.codec import HandOver

TEXT = "The quick brown fox jumps over the lazy dog, and then it jumps back again."
DEADLINE = 20.0
A_WHILE = 0.2
LEAST_RUN = 16


class Asking:
    """A query about a text, asked by a thread."""

    def __init__(self, site: Site) -> None:
        self.answers: list[Answer] = []
        self.answered = threading.Event()
        self._site = site
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        self.answers.extend(self._site.answers(body({"text": TEXT})))
        self.answered.set()

    def begin(self) -> None:
        self._thread.start()

    def ends(self) -> list[str]:
        """Return the ids that it is told."""
        self._thread.join(DEADLINE)
        return [one.id for answer in self.answers for one in answer.matches]


def test_a_query_waits_while_what_it_reads_changes_and_sees_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site(tmp_path) as site:
        site.judge({"id": "other", "text": "Something else."})
        site.catch_up()
        asking = Asking(site)

        class Waiting:
            """A lock that a query comes to when it was taken."""

            def __init__(self, lock: ShardLock) -> None:
                self.lock = lock

            def __enter__(self) -> None:
                self.lock.__enter__()
                asking.begin()
                assert not asking.answered.wait(A_WHILE)

            def __exit__(self, *given: object) -> None:
                self.lock.__exit__(*given)

        site.judge({"id": "a", "text": TEXT})
        apply = BandStore.apply

        def waiting(store: BandStore, decision: Any, **given: Any) -> None:  # noqa: ANN401
            monkeypatch.undo()
            apply(store, decision, **{**given, "readers": Waiting(given["readers"])})

        monkeypatch.setattr(BandStore, "apply", waiting)
        site.catch_up()
        assert asking.ends() == ["a"]


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


def test_short_frames_are_judged_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []
    judge = Judge.judge

    def judging(one: Judge, shard: int, store: BandStore, documents: Documents) -> Judgement:
        together.append(len(documents.frames))
        return judge(one, shard, store, documents)

    monkeypatch.setattr(worker.serve.following, "_TOGETHER", 3)
    with Site(tmp_path, index={"shards": 1}) as site:
        texts = [" ".join(f"{word}-{number}" for number in range(9)) for word in "abcdefg"]
        for number, text in enumerate(texts):
            if number == 2:
                hand_over(site, 0)
            site.judge({"id": str(number), "text": text})
        monkeypatch.setattr(Judge, "judge", judging)
        site.catch_up()
        assert together == [2, 3, 2]
        found = [site.answers(body({"text": text}))[0].matches for text in texts]
        assert [[one.id for one in some] for some in found] == [[str(n)] for n in range(7)]
        assert site.following.reached().furthest_behind == 0


def test_it_is_warm_once_it_is_near_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.serve.following, "_NEAR", 0)
    with Site(tmp_path, index={"shards": 1}) as site:
        for number in range(12):
            site.judge({"id": str(number), "text": f"{TEXT} {number}"})
        assert site.following.reached().furthest_behind is None
        site.following.step()
        reached = site.following.reached()
        assert reached.warming == [0]
        assert reached.furthest_behind == site.bus.end_offset(*site.topology.order) - 16
        with pytest.raises(Warming, match="shard 0 is warming up"):
            site.answers(body({"text": TEXT}))
        site.catch_up()
        reached = site.following.reached()
        assert (reached.warming, reached.furthest_behind) == ([], 0)  # Only a marker follows.
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"


def test_a_shard_whose_log_is_gone_is_closed_and_opened_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Site(tmp_path, index={"shards": 1}) as site:
        site.judge({"id": "a", "text": TEXT})
        site.catch_up()
        site.judge({"id": "b", "text": "Something else."})
        site.bus.trim(*site.topology.order, site.bus.end_offset(*site.topology.order))
        site.catch_up()
        assert "shard 0 can't be followed: " in caplog.text
        assert "there is no good snapshot" in caplog.text
        assert (tmp_path / "follower" / "shard-000.aside").exists()
        with pytest.raises(Warming, match="shard 0 is warming up"):
            site.answers(body({"text": TEXT}))


def test_brokers_that_do_not_answer_are_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def silent(*_: object, **__: object) -> LogReader:
        raise BusError("no broker answers")

    with Site(tmp_path) as site:
        site.judge({"id": "a", "text": TEXT})
        with monkeypatch.context() as patch:
            patch.setattr(site.bus, "log_reader", silent)
            site.following.step()
        assert "the log can't be followed: no broker answers; retrying" in caplog.text
        site.catch_up()
        assert site.answers(body({"text": TEXT}))[0].verdict == "duplicate"


def test_what_ends_the_thread_is_raised_where_it_is_checked(tmp_path: Path) -> None:
    def denied(*_: object, **__: object) -> LogReader:
        raise Denied("Read on topic log is missing")

    settings = Settings.model_validate({"index": {"cache_bytes": 1 << 20}})
    bus = MemoryBus()
    bus.log_reader = denied  # type: ignore[method-assign, assignment]
    application = Application(
        settings, settings.topology(1), bus, tmp_path, environment=Environment(background=True)
    )
    with Following(application) as following:
        deadline = monotonic() + DEADLINE

        def checked() -> None:
            while monotonic() < deadline:
                following.check()

        with pytest.raises(Denied, match="Read on topic log is missing"):
            checked()


def hand_over(site: Site, generation: int) -> None:
    """Write a hand-over where the log ends."""
    topic, number = site.topology.order
    record = HandOver(site.topology.layout.id, generation).encode()
    site.bus.append(Outgoing(topic, number, None, record))


def test_it_knows_of_every_tombstone_which_documents_came_before_it(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        sequences = {}
        for ident in ("first", "other"):
            site.judge({"id": ident, "text": f"{TEXT} {ident}"})
            sequences[ident] = int(dict(site.last().headers)["neardup-sequence"] or b"")
        site.put("first", None)
        site.put("nobody", None)
        site.judge({"id": "first", "text": TEXT})
        again = int(dict(site.last().headers)["neardup-sequence"] or b"")
        site.catch_up()

        def is_forgotten(ident: bytes, sequence: int) -> bool:
            return site.following.forgotten(ident, sequence, lambda: None)

        assert is_forgotten(b"first", sequences["first"])
        assert not is_forgotten(b"first", again)
        assert not is_forgotten(b"other", sequences["other"])
        assert is_forgotten(b"nobody", 0)
