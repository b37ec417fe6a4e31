"""A shard answers, replays, and writes what is committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lsh.index import Match
from tests.support.stages import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    index,
    no_watermarks,
    process,
    records,
    seated,
    through,
    topology,
)
from worker.bus import Record, TopicPartition
from worker.index.store import BandStore
from worker.stages.answers import split_answer
from worker.stages.base import StageError
from worker.stages.order import placed
from worker.wire.codec import decode, encode
from worker.wire.matches import MatchFrame


class TestIndex:
    def test_later_copies_match_the_first(self, tmp_path: Path) -> None:
        _, (answers,) = through(tmp_path, [document(0), document(1), document(2, "else " * 9)])
        frame = decode(MatchFrame, answers[0].value, LAYOUT)
        assert frame.matched.tolist() == [1]
        assert frame.ids.unpack() == [b"d0"]
        assert frame.similarities.tolist() == [1.0]

    def test_the_first_shard_alone_hands_on_what_route_has_to_know(self, tmp_path: Path) -> None:
        sent = [document(0), document(1), document(2), document(3)._replace(value=b"{")]
        _, answers = through(tmp_path, sent, shards=4)
        parts = [decode(MatchFrame, answer.value, LAYOUT) for (answer,) in answers]
        assert [part.shard for part in parts] == [0, 1, 2, 3]
        assert {(part.number, part.start, part.end) for part in parts} == {(0, 0, 4)}
        assert [len(part.checksums) for part in parts] == [3, 0, 0, 0]
        assert [len(part.offsets) for part in parts] == [3, 0, 0, 0]
        assert [part.accounted.tolist() for part in parts] == [[3], [], [], []]

    def test_shards_that_are_apart_are_each_given_what_is_theirs(self, tmp_path: Path) -> None:
        frames = self.frames(4)
        seats = [TopicPartition("app.shards", shard) for shard in range(2)]
        stage = index(tmp_path, shards=2)
        stage.adopt(dict.fromkeys(seats, 0), lambda _: (0, 9))
        burst = process(stage, [*seated(frames[:3], 0), *seated(frames[:1], 1)])
        assert burst.offsets == {seats[0]: 3, seats[1]: 1}
        stage.committed()
        # What one has had already, and the other has not, is made into one batch for neither.
        burst = process(stage, [*seated(frames[3:], 0), *seated(frames[1:], 1)])
        assert burst.offsets == dict.fromkeys(seats, 4)
        stage.committed()
        answers = [decode(MatchFrame, record.value, LAYOUT) for record in burst.records]
        assert [(answer.shard, answer.number) for answer in answers] == [
            (0, 3), (1, 1), (1, 2), (1, 3),
        ]  # fmt: skip
        assert {store.offset for store in stage.stores().values()} == {4}
        assert {store.documents for store in stage.stores().values()} == {4}
        stage.close()

    def frames(self, count: int) -> list[Record]:
        first = fingerprint()
        first.adopt({DOCS: 0}, no_watermarks)
        cut: list[Record] = []
        for offset in range(count):
            burst = process(first, [document(offset)])
            cut += seated(records(burst.records, "app.fingerprints", first=offset))
        return cut

    def test_what_is_replayed_is_not_answered(self, tmp_path: Path) -> None:
        seat = TopicPartition("app.shards", 0)
        stage = index(tmp_path)
        assert stage.adopt({seat: 2}, lambda _: (0, 3)) == {seat: 0}
        assert stage.status().restoring
        burst = process(stage, self.frames(3))
        assert burst.offsets == {seat: 3}
        assert len(burst.records) == 1
        assert not stage.status().restoring
        assert stage.status().restored == 2
        stage.close()

    def test_a_frame_with_nothing_but_tombstones_is_applied(self, tmp_path: Path) -> None:
        seat = TopicPartition("app.shards", 0)
        (frame,) = self.frames(1)
        first = fingerprint()
        first.adopt({DOCS: 1}, no_watermarks)
        made = process(first, [Record("documents", 0, 1, 1, b"d0", None)])
        stage = index(tmp_path)
        stage.adopt({seat: 0}, lambda _: (0, 2))
        process(stage, [frame])
        stage.committed()
        tombstone = seated(records(made.records, "app.fingerprints", first=1))
        burst = process(stage, tombstone)
        assert burst.offsets == {seat: 2}
        stage.committed()
        store = stage.stores()[0]
        assert (store.offset, store.coverage.expected(0), store.documents) == (2, 2, 1)
        stage.close()

    def test_state_is_written_only_after_the_commit(self, tmp_path: Path) -> None:
        seat = TopicPartition("app.shards", 0)
        stage = index(tmp_path)
        stage.adopt({seat: 0}, lambda _: (0, 1))
        process(stage, self.frames(1))
        assert stage.stores()[0].contents().buckets() == {}
        stage.adopt({seat: 0}, lambda _: (0, 1))  # As after an abort.
        stage.committed()
        assert stage.stores()[0].contents().buckets() == {}
        process(stage, self.frames(1))
        stage.committed()
        assert stage.stores()[0].contents().buckets() != {}
        assert stage.stores()[0].offset == 1
        stage.close()

    @pytest.mark.parametrize(
        ("committed", "log"), [(1, (0, 5)), (5, (3, 9)), (2, (0, 1))], ids=["past", "before", "end"]
    )
    def test_a_store_out_of_line_is_put_aside(
        self, tmp_path: Path, committed: int, log: tuple[int, int]
    ) -> None:
        seat = TopicPartition("app.shards", 0)
        stage = index(tmp_path)
        stage.adopt({seat: 0}, lambda _: (0, 2))
        process(stage, self.frames(2))
        stage.committed()
        if log[0] > 0:
            with pytest.raises(StageError, match="begins at 3"):
                stage.adopt({seat: committed}, lambda _: log)
        else:
            assert stage.adopt({seat: committed}, lambda _: log) == {seat: 0}
            assert stage.stores()[0].contents().buckets() == {}
        assert (tmp_path / "shard-000.aside").is_dir()
        stage.close()

    def test_a_store_that_is_still_empty_is_not_read_on_behind_a_trim(self, tmp_path: Path) -> None:
        seat = TopicPartition("app.shards", 0)
        stage = index(tmp_path)
        assert stage.adopt({seat: 0}, lambda _: (0, 0)) == {seat: 0}
        with pytest.raises(StageError, match="from offset 0 of its log, which begins at 3"):
            stage.adopt({seat: 5}, lambda _: (3, 9))
        stage.close()

    def test_a_shard_that_is_gone_is_closed(self, tmp_path: Path) -> None:
        stage = index(tmp_path, shards=2)
        stage.adopt({TopicPartition("app.shards", n): 0 for n in (0, 1)}, lambda _: (0, 0))
        stage.adopt({TopicPartition("app.shards", 1): 0}, lambda _: (0, 0))
        assert set(stage.stores()) == {1}
        BandStore(tmp_path / "shard-000", {"shard": 0}).close()
        stage.close()

    def test_a_large_answer_is_cut_at_documents(self) -> None:
        (record,) = self.frames(1)
        one = placed(record, topology().layout, 0)
        count = 50
        offsets = 2 * np.arange(count, dtype=np.uint32)
        frame = msgspec.structs.replace(
            one.frame,
            start=100,
            end=220,
            offsets=offsets,
            checksums=np.ones(count, np.uint64),
            accounted=offsets + 1,
        )
        matches = {
            row: [Match(5 * row + n, 0.9, b"i" * 100) for n in range(5)]
            for row in range(0, count, 2)
        }
        times = np.zeros(count, np.int64)
        parts = list(split_answer(replace(one, frame=frame, times=times), 0, matches, 2_000))
        assert len(parts) > 5
        assert (parts[0].start, parts[-1].end) == (100, 220)
        assert [a.end for a in parts[:-1]] == [b.start for b in parts[1:]]
        assert max(len(encode(part)) for part in parts) < 4_000
        found = [part.start + offset for part in parts for offset in part.matched.tolist()]
        assert found == [100 + 2 * row for row in range(0, count, 2)]
        seen = [part.start + o for part in parts for o in part.offsets.tolist()]
        assert seen == [100 + 2 * row for row in range(count)]
        aside = [part.start + offset for part in parts for offset in part.accounted.tolist()]
        assert aside == [101 + 2 * row for row in range(count)]

    @pytest.mark.parametrize("contained", [0, 3])
    def test_an_answer_with_containments_keeps_to_the_limit(self, contained: int) -> None:
        """Matches that are named already take 6 bytes, and 4 more if any has a containment."""
        (record,) = self.frames(1)
        one, count, limit = placed(record, topology().layout, 0), 600, 30_000
        offsets = np.arange(count, dtype=np.uint32)
        frame = msgspec.structs.replace(
            one.frame, end=count, offsets=offsets, checksums=np.ones(count, np.uint64)
        )
        many = replace(one, frame=frame, times=np.zeros(count, np.int64))
        wave = [Match(n, 0.9, b"i", 0.75 if n < contained else None) for n in range(64)]
        parts = list(split_answer(many, 1, dict.fromkeys(range(count), wave), limit))
        sizes = [len(encode(part)) for part in parts]
        assert max(sizes) < limit + 500
        assert min(sizes[:-1]) > limit - 1_000
        given = [part.containments for part in parts]
        if contained:
            found = np.concatenate([shares for shares in given if shares is not None])
            expected = [match.containment or 0.0 for match in wave]
            assert found.reshape(count, -1).tolist() == [expected] * count
        else:
            assert given == [None] * len(parts)

    @pytest.mark.parametrize("shard", [0, 1])
    def test_each_part_names_what_forgets_within_it(self, shard: int) -> None:
        """Route passes that on, and knows it by nothing else."""
        made = fingerprint()
        made.adopt({DOCS: 0}, no_watermarks)
        forgets = [3, 4, 9, 11]
        sent = [
            document(n)._replace(value=None, key=b"k") if n in forgets else document(n)
            for n in range(12)
        ]
        burst = process(made, sent)
        (record,) = records(burst.records, "app.fingerprints")
        one = placed(record, topology().layout, 0)
        match = Match(1, 0.9, b"i" * 100)
        parts = list(split_answer(one, shard, dict.fromkeys(range(one.count), [match] * 9), 150))
        assert len(parts) > 3
        found = [
            part.start + offset
            for part in parts
            if part.forgetting is not None
            for offset in part.forgetting.tolist()
        ]
        assert found == (forgets if shard == 0 else [])
        for part in parts:
            named = [] if part.forgetting is None else part.forgetting.tolist()
            assert all(part.start + offset < part.end for offset in named)

    def test_a_document_that_many_match_is_named_once(self) -> None:
        (record,) = self.frames(1)
        one = placed(record, topology().layout, 0)
        count = 1_000
        offsets = np.arange(count, dtype=np.uint32)
        frame = msgspec.structs.replace(
            one.frame, end=count, offsets=offsets, checksums=np.ones(count, np.uint64)
        )
        many = replace(one, frame=frame, times=np.zeros(count, np.int64))
        wave = [Match(n, 0.9, b"i" * 40) for n in range(64)]
        (part,) = split_answer(many, 0, dict.fromkeys(range(count), wave), 900_000)
        assert part.ids.unpack() == [match.id for match in wave]
        assert len(encode(part)) < 8 * 64 * count
