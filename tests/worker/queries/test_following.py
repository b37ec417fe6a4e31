"""Queries beside the thread that applies the log."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rocksdict import WriteBatch

import worker.index.draft
import worker.queries.following
from tests.worker.queries.parts import Site, body
from worker.bus import Outgoing
from worker.index.record_pages import RecordPages
from worker.index.run_layout import packed_pages
from worker.index.store import BandStore
from worker.queries.answers import Answer
from worker.queries.following import Warming
from worker.queries.turns import Precedence
from worker.stages import StageError
from worker.stages.judge import Judge, Judgement
from worker.stages.order import Documents
from worker.wire import HandOver

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

        def begin(pages: RecordPages, batch: WriteBatch, records: Sequence[bytes]) -> None:
            monkeypatch.undo()
            asking.begin()
            assert not asking.answered.wait(A_WHILE)
            pages.add(batch, records)

        site.judge({"id": "a", "text": TEXT})
        monkeypatch.setattr(RecordPages, "add", begin)
        site.catch_up()
        assert asking.ends() == ["a"]


def test_a_query_does_not_wait_while_a_run_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = {"run_documents": LEAST_RUN, "shards": 1}
    with Site(tmp_path, index=index) as site:
        for number in range(LEAST_RUN):
            site.judge({"id": f"other-{number}", "text": f"{number} of them"})
        site.catch_up()
        site.judge({"id": "a", "text": TEXT})
        asking = Asking(site)

        def begin(*given: Any) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401 -- whatever it takes
            monkeypatch.undo()
            asking.begin()
            assert asking.answered.wait(DEADLINE)
            return packed_pages(*given)

        monkeypatch.setattr(worker.index.draft, "packed_pages", begin)
        site.catch_up()
        assert asking.ends() == []
        assert [one.id for one in site.answers(body({"text": TEXT}))[0].matches] == ["a"]


def test_judging_gives_way_whenever_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    judge, give_way = Judge.judge, Precedence.give_way

    def judging(*given: Any) -> Judgement:  # noqa: ANN401 -- whatever it takes
        steps.append("begins")
        judgement = judge(*given)
        steps.append("ends")
        return judgement

    def giving_way(precedence: Precedence) -> None:
        steps.append("gives way")
        give_way(precedence)

    with Site(tmp_path, index={"shards": 1}) as site:
        site.judge({"id": "a", "text": TEXT})
        site.catch_up()
        site.judge({"id": "b", "text": TEXT})
        monkeypatch.setattr(Judge, "judge", judging)
        monkeypatch.setattr(Precedence, "give_way", giving_way)
        site.catch_up()
    within = steps[steps.index("begins") : steps.index("ends")]
    assert within.count("gives way") >= 2  # Its buckets, and the record of the other.


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

    monkeypatch.setattr(worker.queries.following, "_TOGETHER", 3)
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


def hand_over(site: Site, generation: int) -> None:
    """Write a hand-over where the log ends."""
    topic, number = site.topology.order
    record = HandOver(site.topology.layout.id, generation).encode()
    site.bus.append(Outgoing(topic, number, None, record))
