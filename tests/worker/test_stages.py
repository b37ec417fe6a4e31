"""Each stage with plain values: frames in, frames out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lsh import Fingerprinter, Parameters
from worker.bus import Header, OffsetOutOfRange, Outgoing, Record, TopicPartition
from worker.documents import DocumentFormat, DocumentReader
from worker.frames import BandFrame, FingerprintFrame, Ids, MatchFrame, decode, encode
from worker.shard import BucketRules, Match
from worker.stages import Fingerprint, Index, RejectLimit, Route, Sequencer, StageError
from worker.stages.answers import split_answer
from worker.store import BandStore, put_aside
from worker.verdicts import MatchWriter

LAYOUT = "layout"
PARAMETERS = Parameters()
DOCS = TopicPartition("documents", 0)
TEXT = "the quick brown fox jumps over the lazy dog, again and again and again"


def no_watermarks(partition: TopicPartition) -> tuple[int, int]:
    raise AssertionError(partition)


def document(offset: int, text: str = TEXT, **more: object) -> Record:
    value = json.dumps({"id": f"d{offset}", "text": text, **more}).encode()
    return Record("documents", 0, offset, 1_000 + offset, None, value)


def fingerprint(limit: RejectLimit | None = None, frame_bytes: int = 900_000) -> Fingerprint:
    return Fingerprint(
        documents="documents",
        fingerprints="fingerprints",
        rejected="rejected",
        layout=LAYOUT,
        reader=DocumentReader(DocumentFormat()),
        fingerprinter=Fingerprinter(PARAMETERS),
        reject_limit=limit or RejectLimit(share=1),
        frame_bytes=frame_bytes,
    )


def sequencer(shards: int) -> Sequencer:
    return Sequencer(
        fingerprints="fingerprints",
        bands="bands",
        layout=LAYOUT,
        shards=shards,
        columns=PARAMETERS.bands + 1,
    )


def index(path: Path, shards: int = 1, limit: int = 900_000) -> Index:
    return Index(
        bands="bands",
        matches=lambda shard: f"matches-{shard}",
        layout=LAYOUT,
        shards=shards,
        columns=PARAMETERS.bands + 1,
        rules=BucketRules(threshold=0.8),
        open_store=lambda shard: BandStore(path / str(shard), {"shard": shard}),
        put_aside=lambda shard, why: _aside(path / str(shard), why),
        frame_bytes=limit,
    )


def _aside(path: Path, why: str) -> None:
    put_aside(path, why)


def route(shards: int = 1, buffer_bytes: int = 1 << 20) -> Route:
    return Route(
        documents="documents",
        matches=lambda shard: f"matches-{shard}",
        shards=shards,
        unique="unique",
        duplicate="duplicate",
        rejected="rejected",
        layout=LAYOUT,
        writer=MatchWriter(),
        same_partitions={"unique": True, "duplicate": True, "rejected": False},
        buffer_bytes=buffer_bytes,
    )


def records(outgoing: Sequence[Outgoing], topic: str, first: int = 0) -> list[Record]:
    """Turn what one stage wrote to a topic into what the next reads."""
    values = [out for out in outgoing if out.topic == topic]
    return [
        Record(topic, out.partition or 0, first + offset, 5_000, out.key, out.value, out.headers)
        for offset, out in enumerate(values)
    ]


def through(
    path: Path, documents: list[Record], shards: int = 1
) -> tuple[list[Record], list[list[Record]]]:
    """Give the documents, and each shard's answers for them."""
    first = fingerprint()
    first.adopt({DOCS: 0}, no_watermarks)
    signed = first.process(documents)
    assert signed is not None
    second = sequencer(shards)
    cut = second.process(records(signed.records, "fingerprints"))
    assert cut is not None
    third = index(path, shards)
    owned = {TopicPartition("bands", shard): 0 for shard in range(shards)}
    third.adopt(owned, lambda _: (0, 0))
    bands = [
        Record("bands", shard, offset, 5_000, None, out.value)
        for shard in range(shards)
        for offset, out in enumerate(out for out in cut.records if out.partition == shard)
    ]
    answered = third.process(bands)
    assert answered is not None
    third.committed()
    third.close()
    return documents, [records(answered.records, f"matches-{shard}") for shard in range(shards)]


class TestFingerprint:
    def test_frames_tile_and_account_for_every_offset(self) -> None:
        stage = fingerprint(frame_bytes=700)
        stage.adopt({DOCS: 3}, no_watermarks)
        bad = Record("documents", 0, 6, 1, b"k", b"not json", (("h", b"\xff"),))
        tombstone = Record("documents", 0, 7, 1, b"k", None)
        burst = stage.process([document(4), document(5), bad, tombstone, document(9)])
        assert burst is not None
        assert burst.offsets == {DOCS: 10}
        frames = [
            decode(FingerprintFrame, record.value, LAYOUT)
            for record in records(burst.records, "fingerprints")
        ]
        assert frames[0].start == 3
        assert [a.end for a in frames[:-1]] == [b.start for b in frames[1:]]
        assert frames[-1].end == 10
        assert [i for frame in frames for i in frame.ids.unpack()] == [b"d4", b"d5", b"d9"]
        (rejected,) = records(burst.records, "rejected")
        assert (rejected.key, rejected.value) == (b"k", b"not json")
        headers = dict(rejected.headers)
        assert headers["h"] == b"\xff"
        assert (headers["neardup-error-reason"] or b"").startswith(b"not-json: ")
        assert headers["neardup-error-offset"] == b"6"

    def test_a_burst_with_nothing_readable_still_moves_on(self) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        burst = stage.process([Record("documents", 0, 0, 1, None, b"bad")])
        assert burst is not None
        (frame,) = records(burst.records, "fingerprints")
        assert decode(FingerprintFrame, frame.value, LAYOUT).end == 1

    def test_too_many_rejected_stop_the_worker_before_they_are_published(self) -> None:
        stage = fingerprint(RejectLimit(share=0.5, window=1_000))
        stage.adopt({DOCS: 0}, no_watermarks)
        wrong = [Record("documents", 0, n, 1, None, b'{"body": "x"}') for n in range(200)]
        with pytest.raises(StageError, match=r"200 of the last 200 .* no-text \(200\)"):
            stage.process(wrong)

    def test_a_few_rejected_among_many_do_not_stop_it(self) -> None:
        stage = fingerprint(RejectLimit(share=0.5, window=1_000))
        stage.adopt({DOCS: 0}, no_watermarks)
        mixed = [
            document(n) if n % 3 else Record("documents", 0, n, 1, None, b"bad") for n in range(300)
        ]
        assert stage.process(mixed) is not None

    def test_documents_are_never_skipped(self) -> None:
        with pytest.raises(StageError, match="deleted before they were read"):
            fingerprint().out_of_range(OffsetOutOfRange(DOCS, 5, 10, 20))


class TestSequence:
    def test_every_shard_gets_its_columns_and_times_are_bounded(self) -> None:
        first = fingerprint()
        first.adopt({DOCS: 0}, no_watermarks)
        future = document(1)._replace(timestamp=4_000_000_000_000)
        burst = first.process([document(0), future, document(2)._replace(timestamp=-1)])
        assert burst is not None
        (frame,) = records(burst.records, "fingerprints", first=77)
        cut = sequencer(4).process([frame._replace(timestamp=9_000)])
        assert cut is not None
        assert cut.offsets == {TopicPartition("fingerprints", 0): 78}
        parts = [decode(BandFrame, out.value, LAYOUT) for out in cut.records]
        assert [out.partition for out in cut.records] == [0, 1, 2, 3]
        assert [len(part.keys) // 8 // 3 for part in parts] == [5, 5, 5, 4]
        times = memoryview(parts[0].times).cast("q").tolist()
        assert times == [1_000, 9_000 + 60_000, 9_000]
        assert {part.number for part in parts} == {77}
        assert [bool(part.checksums) for part in parts] == [True, False, False, False]


class TestIndex:
    def test_later_copies_match_the_first(self, tmp_path: Path) -> None:
        _, (answers,) = through(tmp_path, [document(0), document(1), document(2, "else " * 9)])
        frame = decode(MatchFrame, answers[0].value, LAYOUT)
        assert memoryview(frame.matched).cast("I").tolist() == [1]
        assert frame.ids.unpack() == [b"d0"]
        assert memoryview(frame.similarities).cast("f").tolist() == [1.0]

    def frames(self, count: int) -> list[Record]:
        first = fingerprint()
        first.adopt({DOCS: 0}, no_watermarks)
        cut: list[Record] = []
        for offset in range(count):
            burst = first.process([document(offset)])
            assert burst is not None
            part = sequencer(1).process(records(burst.records, "fingerprints", first=offset))
            assert part is not None
            cut += records(part.records, "bands", first=offset)
        return cut

    def test_what_is_replayed_is_not_answered(self, tmp_path: Path) -> None:
        bands = TopicPartition("bands", 0)
        stage = index(tmp_path)
        assert stage.adopt({bands: 2}, lambda _: (0, 3)) == {bands: 0}
        assert stage.restoring()
        burst = stage.process(self.frames(3))
        assert burst is not None
        assert burst.offsets == {bands: 3}
        assert len(burst.records) == 1
        assert not stage.restoring()
        assert stage.restored() == 2
        stage.close()

    def test_state_is_written_only_after_the_commit(self, tmp_path: Path) -> None:
        bands = TopicPartition("bands", 0)
        stage = index(tmp_path)
        stage.adopt({bands: 0}, lambda _: (0, 1))
        stage.process(self.frames(1))
        assert stage.stores()[0].items() == {}
        stage.adopt({bands: 0}, lambda _: (0, 1))  # As after an abort.
        stage.committed()
        assert stage.stores()[0].items() == {}
        stage.process(self.frames(1))
        stage.committed()
        assert stage.stores()[0].items() != {}
        assert stage.stores()[0].offset == 1
        stage.close()

    @pytest.mark.parametrize(
        ("committed", "log"), [(1, (0, 5)), (5, (3, 9)), (2, (0, 1))], ids=["past", "before", "end"]
    )
    def test_a_store_out_of_line_is_put_aside(
        self, tmp_path: Path, committed: int, log: tuple[int, int]
    ) -> None:
        bands = TopicPartition("bands", 0)
        stage = index(tmp_path)
        stage.adopt({bands: 0}, lambda _: (0, 2))
        stage.process(self.frames(2))
        stage.committed()
        if log[0] > 0:
            with pytest.raises(StageError, match="begins at 3"):
                stage.adopt({bands: committed}, lambda _: log)
        else:
            assert stage.adopt({bands: committed}, lambda _: log) == {bands: 0}
            assert stage.stores()[0].items() == {}
        assert (tmp_path / "0.aside").is_dir()
        stage.close()

    def test_a_shard_that_is_gone_is_closed(self, tmp_path: Path) -> None:
        stage = index(tmp_path, shards=2)
        stage.adopt({TopicPartition("bands", n): 0 for n in (0, 1)}, lambda _: (0, 0))
        stage.adopt({TopicPartition("bands", 1): 0}, lambda _: (0, 0))
        assert set(stage.stores()) == {1}
        BandStore(tmp_path / "0", {"shard": 0}).close()
        stage.close()

    def test_a_large_answer_is_cut_at_documents(self) -> None:
        (band,) = self.frames(1)
        frame = decode(BandFrame, band.value, LAYOUT)
        count = 50
        offsets = b"".join((2 * n).to_bytes(4, "little") for n in range(count))
        frame = msgspec.structs.replace(
            frame, start=100, end=220, count=count, offsets=offsets, checksums=b"\1" * 8 * count
        )
        matches = {row: [Match(row, 0.9, b"i" * 100)] * 5 for row in range(0, count, 2)}
        parts = list(split_answer(frame, matches, 2_000))
        assert len(parts) > 5
        assert (parts[0].start, parts[-1].end) == (100, 220)
        assert [a.end for a in parts[:-1]] == [b.start for b in parts[1:]]
        assert max(len(encode(part)) for part in parts) < 4_000
        found = [
            part.start + offset for part in parts for offset in memoryview(part.matched).cast("I")
        ]
        assert found == [100 + 2 * row for row in range(0, count, 2)]
        seen = [part.start + o for part in parts for o in memoryview(part.offsets).cast("I")]
        assert seen == [100 + 2 * row for row in range(count)]


def verdicts(outgoing: Sequence[Outgoing]) -> list[tuple[str, str]]:
    return [
        (out.topic, json.loads(out.value)["id"] if out.value else "tombstone") for out in outgoing
    ]


class TestRoute:
    def owned(self, shards: int) -> dict[TopicPartition, int]:
        topics = ["documents", *(f"matches-{shard}" for shard in range(shards))]
        return {TopicPartition(topic, 0): 0 for topic in topics}

    @pytest.mark.parametrize("order", ["documents first", "answers first"])
    def test_a_document_leaves_once_all_shards_have_answered(
        self, tmp_path: Path, order: str
    ) -> None:
        documents, answers = through(tmp_path, [document(0), document(1)], shards=3)
        stage = route(shards=3)
        stage.adopt(self.owned(3), no_watermarks)
        arriving = [documents, answers[2], answers[0], answers[1]]
        if order == "answers first":
            arriving = arriving[1:] + arriving[:1]
        for part in arriving[:-1]:
            assert stage.process(part) is None
        burst = stage.process(arriving[-1])
        assert burst is not None
        assert verdicts(burst.records) == [("unique", "d0"), ("duplicate", "d1")]
        assert burst.offsets == {
            TopicPartition("documents", 0): 2,
            **{TopicPartition(f"matches-{shard}", 0): 1 for shard in range(3)},
        }

    def test_the_output_is_the_input_and_headers(self, tmp_path: Path) -> None:
        own: tuple[Header, ...] = (("trace", b"\xff\x00"), ("trace", None))
        sent = [document(0), document(1)._replace(key=b"k", headers=own, timestamp=55)]
        documents, answers = through(tmp_path, sent)
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        burst = stage.process([*documents, *answers[0]])
        assert burst is not None
        unique, duplicate = burst.records
        assert unique.value == sent[0].value
        assert (duplicate.key, duplicate.timestamp, duplicate.partition) == (b"k", 55, 0)
        assert duplicate.headers[:2] == own
        headers = dict(duplicate.headers[2:])
        assert headers["neardup-verdict"] == b"duplicate"
        assert headers["neardup-source"] == b"documents-0-1"
        assert headers["neardup-matches"] == b'[{"id":"d0","similarity":1.0}]'
        before = (sent[1].value or b"")[:-1]
        assert duplicate.value == before + b',"duplicate_of":[{"id":"d0","similarity":1.0}]}'

    def test_a_tombstone_goes_to_both_outputs(self, tmp_path: Path) -> None:
        gone = Record("documents", 0, 1, 9, b"k", None)
        documents, answers = through(tmp_path, [document(0), gone])
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        burst = stage.process([*documents, *answers[0]])
        assert burst is not None
        assert [(out.topic, out.key, out.value) for out in burst.records[1:]] == [
            ("unique", b"k", None),
            ("duplicate", b"k", None),
        ]

    def test_a_changed_payload_is_rejected(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        burst = stage.process([documents[0]._replace(value=b'{"text":"forged"}'), *answers[0]])
        assert burst is not None
        (out,) = burst.records
        assert (out.topic, out.value) == ("rejected", b'{"text":"forged"}')
        assert (dict(out.headers)["neardup-error-reason"] or b"").startswith(b"payload-changed")

    def test_a_payload_that_is_gone_is_rejected(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0), document(1), document(2)])
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        assert stage.process(answers[0]) is None
        assert stage.out_of_range(OffsetOutOfRange(DOCS, 0, 2, 3)) == 2
        burst = stage.process(documents[2:])
        assert burst is not None
        assert [out.topic for out in burst.records] == ["rejected", "rejected", "duplicate"]
        headers = dict(burst.records[1].headers)
        assert (headers["neardup-error-reason"] or b"").startswith(b"payload-gone")
        assert headers["neardup-error-offset"] == b"1"

    def test_a_lost_answer_is_seen(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        frame = decode(MatchFrame, answers[0][0].value, LAYOUT)
        later = encode(msgspec.structs.replace(frame, start=5, end=6))
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        stage.process([*documents, *answers[0]])
        with pytest.raises(StageError, match="from offset 5, and 1 comes next"):
            stage.process([answers[0][0]._replace(offset=1, value=later)])

    def test_a_doubled_answer_is_seen(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(0)])
        stage = route()
        stage.adopt(self.owned(1), no_watermarks)
        stage.process([*documents, *answers[0]])
        with pytest.raises(StageError, match="lost or doubled"):
            stage.process([answers[0][0]._replace(offset=1)])

    def test_after_a_restart_a_partly_published_answer_goes_on_where_it_stood(
        self, tmp_path: Path
    ) -> None:
        documents, answers = through(tmp_path, [document(0), document(1), document(2)])
        stage = route()
        stage.adopt({**self.owned(1), DOCS: 2}, no_watermarks)
        burst = stage.process([*documents[2:], *answers[0]])
        assert burst is not None
        assert verdicts(burst.records) == [("duplicate", "d2")]

    def test_documents_that_run_ahead_are_held_back(self, tmp_path: Path) -> None:
        documents, answers = through(tmp_path, [document(n) for n in range(50)])
        stage = route(buffer_bytes=2_000)
        stage.adopt(self.owned(1), no_watermarks)
        stage.process(documents[:10])
        assert stage.paused() == set()
        stage.process(documents[10:])
        assert stage.paused() == {DOCS}
        stage.process(answers[0])
        assert stage.paused() == set()

    def test_a_partition_without_all_its_inputs_waits(self) -> None:
        stage = route(shards=2)
        owned = self.owned(2)
        owned.pop(TopicPartition("matches-1", 0))
        assert stage.adopt(owned, no_watermarks) == {}


@pytest.mark.parametrize(
    ("value", "spliced"),
    [
        (b'{"text":"a"}', b'{"text":"a","duplicate_of":%s}'),
        (b' {"text":"a" }\n', b' {"text":"a" ,"duplicate_of":%s}\n'),
        (b'{"text":"}"}', b'{"text":"}","duplicate_of":%s}'),
        (b'{"text":"a","duplicate_of":1}', None),
        (b"plain text}", None),
        (b'["a"]', None),
    ],
)
def test_splicing_touches_nothing_else(value: bytes, spliced: bytes | None) -> None:
    matches = [Match(1, 0.91, b"x"), Match(2, 0.9, b'"')]
    record = Record("documents", 0, 0, 0, None, value)
    written, listed = MatchWriter().write(record, matches)
    assert listed == b'[{"id":"x","similarity":0.91},{"id":"\\"","similarity":0.9}]'
    assert written == (spliced % listed if spliced else value)


def test_matches_never_outgrow_the_record() -> None:
    matches = [Match(n, 0.9, b"\x01" * 1_000) for n in range(64)]
    record = Record("documents", 0, 0, 0, None, b'{"text":"' + b"x" * 900_000 + b'"}')
    writer = replace(MatchWriter(), max_record_bytes=920_000)
    written, listed = writer.write(record, matches)
    assert len(written) + len(listed) < 920_000
    assert json.loads(listed)[0]["id"] == "\x01" * 1_000


def test_ids_fit_their_lengths() -> None:
    assert Ids.pack([b"x" * 1_024]).unpack() == [b"x" * 1_024]
