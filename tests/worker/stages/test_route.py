"""Documents and the answers for them in, verdicts out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.stages import DOCS, LAYOUT, document, process, route, through, whole_log
from worker.bus import Header, Outgoing, Record, TopicPartition
from worker.stages.base import StageError
from worker.wire.codec import decode, encode
from worker.wire.ids import Ids
from worker.wire.matches import MatchFrame

MATCHES = TopicPartition("app.matches-0", 0)
ADDED = (
    b',"duplicate_of":[{"id":"d0","similarity":1.0}],"duplicate_first":{"id":"d0","sequence":0}}'
)
FORGED = b',"duplicate_of":[{"id":"x"}],"duplicate_first":{"id":"x","sequence":9}}'


def verdicts(outgoing: Sequence[Outgoing]) -> list[tuple[str, str]]:
    return [
        (out.topic, json.loads(out.value)["id"] if out.value else "tombstone") for out in outgoing
    ]


def reasons(outgoing: Sequence[Outgoing]) -> list[str]:
    """Return why documents were rejected, as codes."""
    headers = [dict(out.headers) for out in outgoing if out.topic == "rejected"]
    return [(own["neardup-error-reason"] or b"").decode().split(":")[0] for own in headers]


def begins(lows: Mapping[TopicPartition, int]) -> Callable[[TopicPartition], tuple[int, int]]:
    """Return watermarks of logs that begin there, the others at 0."""
    return lambda place: (lows.get(place, 0), 1 << 60)


def at(start: int, answer: Record, offset: int) -> Record:
    """Return the answer for one document, as if for the one at this offset."""
    frame = decode(MatchFrame, answer.value, LAYOUT)
    moved = msgspec.structs.replace(frame, start=start, end=start + 1)
    return answer._replace(offset=offset, value=encode(moved))


class TestRoute:
    def owned(self, shards: int) -> dict[TopicPartition, int]:
        topics = ["documents", *(f"app.matches-{shard}" for shard in range(shards))]
        return {TopicPartition(topic, 0): 0 for topic in topics}

    @pytest.mark.parametrize("order", ["documents first", "answers first"])
    def test_a_document_leaves_once_all_shards_have_answered(
        self, tmp_path: Path, order: str
    ) -> None:
        documents, answers = through(tmp_path, [document(0), document(1)], shards=3)
        stage = route(shards=3)
        stage.adopt(self.owned(3), whole_log)
        arriving = [documents, answers[2], answers[0], answers[1]]
        if order == "answers first":
            arriving = arriving[1:] + arriving[:1]
        for part in arriving[:-1]:
            assert not process(stage, part).offsets
        burst = process(stage, arriving[-1])
        assert verdicts(burst.records) == [("unique", "d0"), ("duplicate", "d1")]
        assert burst.offsets == {
            TopicPartition("documents", 0): 2,
            **{TopicPartition(f"app.matches-{shard}", 0): 1 for shard in range(3)},
        }

    def test_the_output_is_the_input_and_headers(self, tmp_path: Path) -> None:
        own: tuple[Header, ...] = (("trace", b"\xff\x00"), ("trace", None))
        sent = [document(0), document(1)._replace(key=b"k", headers=own, timestamp=55)]
        documents, answers = through(tmp_path, sent)
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [*documents, *answers[0]])
        unique, duplicate = burst.records
        assert unique.value == sent[0].value
        assert (duplicate.key, duplicate.timestamp, duplicate.partition) == (b"k", 55, 0)
        assert duplicate.headers[:2] == own
        headers = dict(duplicate.headers[2:])
        assert headers["neardup-verdict"] == b"duplicate"
        assert headers["neardup-source"] == b"documents-0-1"
        assert headers["neardup-matches"] == b'[{"id":"d0","similarity":1.0}]'
        assert headers["neardup-first"] == b'{"id":"d0","sequence":0}'
        assert duplicate.value == (sent[1].value or b"")[:-1] + ADDED

    def test_headers_and_a_member_that_only_neardup_writes_are_not_passed_on(
        self, tmp_path: Path
    ) -> None:
        forged: tuple[Header, ...] = (
            ("neardup-verdict", b"unique"), ("neardup-matches", b"[]"), ("neardup-first", b"{}"),
            ("neardup-redriven", b"1"),
        )  # fmt: skip
        payload = (document(1).value or b"")[:-1] + FORGED
        sent = [
            document(0)._replace(headers=(*forged, ("a", b"b"))),
            document(1)._replace(headers=forged, value=payload),
            Record("documents", 0, 2, 9, b"k", None, (*forged, ("a", b"b"))),
        ]
        documents, answers = through(tmp_path, sent)
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [*documents, *answers[0]])
        unique, duplicate, *tombstones = burst.records
        names = ["neardup-verdict", "neardup-sequence", "neardup-source"]
        assert [name for name, _ in unique.headers] == ["a", *names]
        assert [name for name, _ in duplicate.headers] == [
            *names,
            "neardup-matches",
            "neardup-first",
        ]
        assert [one.headers for one in tombstones] == [(("a", b"b"),)] * 2
        assert duplicate.headers[-1] == ("neardup-first", b'{"id":"d0","sequence":0}')
        assert duplicate.value == (document(1).value or b"")[:-1] + ADDED

    def test_on_unique_a_payload_is_as_it_came(self, tmp_path: Path) -> None:
        payload = (document(0).value or b"")[:-1] + FORGED
        documents, answers = through(tmp_path, [document(0)._replace(value=payload)])
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [*documents, *answers[0]])
        assert [(one.topic, one.value) for one in burst.records] == [("unique", payload)]

    def test_if_all_its_matches_were_forgotten_a_document_is_unique(self, tmp_path: Path) -> None:
        documents, ((answer,),) = through(tmp_path, [document(0), document(1)])
        frame = decode(MatchFrame, answer.value, LAYOUT)
        nameless = msgspec.structs.replace(frame, ids=Ids.pack([b""]))
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [*documents, answer._replace(value=encode(nameless))])
        assert verdicts(burst.records) == [("unique", "d0"), ("unique", "d1")]
        assert [name for name, _ in burst.records[1].headers][-1] == "neardup-source"

    def test_a_tombstone_goes_to_both_outputs(self, tmp_path: Path) -> None:
        gone = Record("documents", 0, 1, 9, b"k", None)
        documents, answers = through(tmp_path, [document(0), gone])
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [*documents, *answers[0]])
        assert [(out.topic, out.key, out.value) for out in burst.records[1:]] == [
            ("unique", b"k", None),
            ("duplicate", b"k", None),
        ]

    def test_a_changed_payload_is_rejected(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        burst = process(stage, [documents[0]._replace(value=b'{"text":"forged"}'), *answers[0]])
        (out,) = burst.records
        assert (out.topic, out.value) == ("rejected", b'{"text":"forged"}')
        assert (dict(out.headers)["neardup-error-reason"] or b"").startswith(b"payload-changed")

    def test_a_payload_that_is_gone_is_rejected(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0), document(1), document(2)])
        stage = route()
        stage.adopt(self.owned(1), begins({DOCS: 2}))
        burst = process(stage, [*answers[0], *documents[2:]])
        assert [out.topic for out in burst.records] == ["rejected", "rejected", "duplicate"]
        headers = dict(burst.records[1].headers)
        assert (headers["neardup-error-reason"] or b"").startswith(b"payload-gone")
        assert headers["neardup-error-offset"] == b"1"

    def test_a_lost_answer_is_seen(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        frame = decode(MatchFrame, answers[0][0].value, LAYOUT)
        later = encode(msgspec.structs.replace(frame, start=5, end=6))
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        process(stage, [*documents, *answers[0]])
        with pytest.raises(StageError, match="from offset 5, but 1 comes next"):
            process(stage, [answers[0][0]._replace(offset=1, value=later)])

    def test_a_doubled_answer_is_seen(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        process(stage, [*documents, *answers[0]])
        with pytest.raises(StageError, match="lost or doubled"):
            process(stage, [answers[0][0]._replace(offset=1)])

    def test_after_a_restart_a_partly_published_answer_goes_on_where_it_stood(
        self, tmp_path: Path
    ) -> None:
        documents, answers = through(tmp_path, [document(0), document(1), document(2)])
        stage = route()
        stage.adopt({**self.owned(1), DOCS: 2}, whole_log)
        burst = process(stage, [*documents[2:], *answers[0]])
        assert verdicts(burst.records) == [("duplicate", "d2")]

    def test_documents_that_run_ahead_are_held_back(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(n) for n in range(50)])
        stage = route(buffer_bytes=10_000)
        stage.adopt(self.owned(1), whole_log)
        assert process(stage, documents[:10]).held == set()
        assert process(stage, documents[10:]).held == {DOCS}
        assert process(stage, answers[0]).held == set()

    def test_documents_deleted_while_it_was_away_are_rejected(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0), document(1), document(2)])
        stage = route()
        starts = stage.adopt(self.owned(1), begins({DOCS: 2}))
        assert starts[DOCS] == 2
        burst = process(stage, [*answers[0], *documents[2:]])
        assert [out.topic for out in burst.records] == ["rejected", "rejected", "duplicate"]
        assert reasons(burst.records)[:2] == ["payload-gone", "payload-gone"]

    def test_documents_that_are_all_deleted_are_rejected_though_no_other_comes(
        self, tmp_path: Path
    ) -> None:
        _, answers = through(tmp_path, [document(0), document(1)])
        stage = route()
        stage.adopt(self.owned(1), begins({DOCS: 3}))
        burst = process(stage, answers[0])
        assert reasons(burst.records) == ["payload-gone", "payload-gone"]
        assert burst.offsets[DOCS] == 2

    def test_answers_begin_where_their_log_does(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        starts = stage.adopt(self.owned(1), begins({MATCHES: 7}))
        assert starts[MATCHES] == 7
        burst = process(stage, [*documents, answers[0][0]._replace(offset=7)])
        assert verdicts(burst.records) == [("unique", "d0")]
        assert burst.offsets == {DOCS: 1, MATCHES: 8}

    def test_an_answer_deleted_unread_shows_with_the_next(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), begins({MATCHES: 1}))
        with pytest.raises(StageError, match="from offset 5, but 0 comes next"):
            process(stage, [*documents, at(5, answers[0][0], 1)])

    def test_answers_deleted_with_their_documents_are_passed_over(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), begins({DOCS: 5, MATCHES: 1}))
        burst = process(stage, [document(0)._replace(offset=5), at(5, answers[0][0], 1)])
        assert verdicts(burst.records) == [("unique", "d0")]
        assert burst.offsets == {DOCS: 6, MATCHES: 2}
        [line] = [line for line in caplog.messages if "published nowhere" in line]
        assert line.startswith("documents[0]: offsets 0 to 4 were deleted, and so were their")

    def test_what_another_shard_had_answered_needs_no_answer_if_it_is_gone(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Shard 0's answer names what was judged."""
        _, answers = through(tmp_path, [document(0)], shards=2)
        first = decode(MatchFrame, answers[0][0].value, LAYOUT)
        whole = encode(msgspec.structs.replace(first, end=5))
        stage = route(shards=2)
        stage.adopt(self.owned(2), begins({DOCS: 5, TopicPartition("app.matches-1", 0): 1}))
        records = [answers[0][0]._replace(value=whole), at(5, answers[0][0], 1)]
        assert not process(stage, [document(0)._replace(offset=5), *records]).offsets
        burst = process(stage, [at(5, answers[1][0], 1)])
        assert reasons(burst.records) == ["payload-gone"]
        assert verdicts(burst.records)[1:] == [("unique", "d0")]
        assert not any("published nowhere" in line for line in caplog.messages)

    @pytest.mark.parametrize("lows", [{DOCS: 4, MATCHES: 1}, {DOCS: 5}])
    def test_answers_that_may_be_missed_are_not_passed_over(
        self, tmp_path: Path, lows: dict[TopicPartition, int]
    ) -> None:
        """A document is still there, or the log of answers is whole."""
        _, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), begins(lows))
        with pytest.raises(StageError, match="from offset 5, but 0 comes next"):
            process(stage, [at(5, answers[0][0], 1)])

    def test_documents_that_wait_for_deleted_answers_are_told_once_a_minute(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        now = 0.0
        documents, answers = through(tmp_path, [document(0)])
        stage = route(clock=lambda: now)
        stage.adopt(self.owned(1), begins({MATCHES: 1}))
        process(stage, documents)
        for now in (1, 59, 62, 63, 130):  # noqa: B007 -- the clock
            process(stage, [])

        def told() -> int:
            said = "offset 0: this document and those"
            return sum(said in line for line in caplog.messages)

        assert told() == 2
        process(stage, [answers[0][0]._replace(offset=1)])
        for now in (200, 300):  # noqa: B007
            process(stage, [])
        assert told() == 2

    def test_what_was_rejected_is_told_from_what_nobody_judged(self, tmp_path: Path) -> None:
        unreadable = document(1)._replace(value=b"{")
        tombstone = document(2)._replace(value=None, key=b"k")
        blank = document(3, text=" ")
        sent = [document(0), unreadable, tombstone, blank, document(6)]
        _, answers = through(tmp_path, sent)
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        later = document(4)  # Where fingerprint has seen nothing: a marker, say.
        burst = process(stage, [*answers[0], *sent[:4], later, sent[4]])
        assert [out.topic for out in burst.records] == [
            "unique",
            "unique",
            "duplicate",
            "rejected",
            "duplicate",
        ]
        assert burst.records[3].value == later.value
        assert reasons(burst.records) == ["not-judged"]

    def test_a_document_before_what_is_published_was_judged_by_nobody(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        sent = [document(0), document(3)]
        _, answers = through(tmp_path, sent)
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        first = process(stage, [*answers[0], *sent[:1]])
        assert first.offsets[DOCS] == 3  # Before the next document there is nothing to wait for.
        burst = process(stage, [document(1)])
        assert reasons(burst.records) == ["not-judged"]
        assert burst.offsets == {DOCS: 3}
        assert any("not-judged" in line for line in caplog.messages)

    def test_a_range_without_documents_is_done_when_it_is_answered(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        frame = decode(MatchFrame, answers[0][0].value, LAYOUT)
        nothing = msgspec.structs.replace(
            frame,
            start=1,
            end=3,
            number=1,
            offsets=frame.offsets[:0],
            checksums=frame.checksums[:0],
            accounted=frame.offsets[:0],
        )
        stage = route()
        stage.adopt(self.owned(1), whole_log)
        process(stage, [*documents, *answers[0]])
        burst = process(stage, [answers[0][0]._replace(offset=2, value=encode(nothing))])
        assert (burst.records, burst.offsets) == ([], {DOCS: 3, MATCHES: 3})

    def test_a_partition_without_all_its_inputs_waits(self) -> None:
        stage = route(shards=2)
        owned = self.owned(2)
        owned.pop(TopicPartition("app.matches-1", 0))
        assert stage.adopt(owned, whole_log) == {}

    def test_a_burst_has_the_room_it_is_given_and_the_rest_follows(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(n, f"{n} " * 40) for n in range(10)])
        stage = route()
        stage.adopt({DOCS: 0, MATCHES: 0}, whole_log)
        room = 3 * len(documents[0].value or b"")
        bursts = [process(stage, [*documents, *answers[0]], room)]
        while bursts[-1].more:
            bursts.append(process(stage, [], room))
        bursts = [burst for burst in bursts if burst.offsets]
        assert len(bursts) > 3
        assert max(len(burst.records) for burst in bursts) <= 3
        offsets = [burst.offsets[DOCS] for burst in bursts]
        assert offsets == sorted(set(offsets))
        assert offsets[-1] == 10
        sent = [dict(record.headers)["neardup-source"] for one in bursts for record in one.records]
        assert sent == [b"documents-0-%d" % n for n in range(10)]
        assert [MATCHES in burst.offsets for burst in bursts] == [False] * (len(bursts) - 1) + [
            True
        ]

    def test_every_partition_gets_its_turn(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(n, f"{n} " * 40) for n in range(4)])
        stage = route()
        owned = {TopicPartition(t, n): 0 for t in ("documents", "app.matches-0") for n in (0, 1)}
        stage.adopt(owned, whole_log)
        everything = [*documents, *answers[0]]
        frame = decode(MatchFrame, answers[0][0].value, LAYOUT)
        frame = msgspec.structs.replace(frame, partition=1)
        other = [one._replace(partition=1) for one in documents]
        other.append(answers[0][0]._replace(partition=1, value=encode(frame)))
        first = process(stage, [*everything, *other], 1)
        second = process(stage, [], 1)
        assert [len(first.records), len(second.records)] == [1, 1]
        assert {first.records[0].partition, second.records[0].partition} == {0, 1}
