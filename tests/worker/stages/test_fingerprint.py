"""Documents in, frames and rejected ones out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import Parameters
from tests.support.notes import KeptNotes
from tests.support.stages import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
)
from worker.bus import Record
from worker.bus.deadly_documents import DeadlyDocuments
from worker.formats.base import DocumentOptions
from worker.formats.first_documents import TextWatch
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.base import StageError
from worker.stages.reject_limit import RejectLimit
from worker.wire.codec import decode, encode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import ACCOUNTED_OFFSETS, FRAME_BYTES


def accounted(frame: FingerprintFrame) -> list[int]:
    """Return the offsets that a frame says were read and not judged, relative to its start."""
    offsets: list[int] = frame.accounted.tolist()
    return offsets


class TestFingerprint:
    def test_frames_tile_and_account_for_every_offset(self) -> None:
        stage = fingerprint(frame_bytes=700)
        stage.adopt({DOCS: 3}, no_watermarks)
        bad = Record("documents", 0, 6, 1, b"k", b"not json", (("h", b"\xff"),))
        tombstone = Record("documents", 0, 7, 1, b"k", None)
        burst = process(stage, [document(4), document(5), bad, tombstone, document(9)])
        assert burst.offsets == {DOCS: 10}
        frames = [
            decode(FingerprintFrame, record.value, LAYOUT)
            for record in records(burst.records, "app.fingerprints")
        ]
        assert frames[0].start == 3
        assert [a.end for a in frames[:-1]] == [b.start for b in frames[1:]]
        assert frames[-1].end == 10
        assert [i for frame in frames for i in frame.ids.unpack()] == [b"d4", b"d5", b"d9"]
        assert [frame.start + o for frame in frames for o in accounted(frame)] == [6, 7]
        (rejected,) = records(burst.records, "rejected")
        assert (rejected.key, rejected.value) == (b"k", b"not json")
        headers = dict(rejected.headers)
        assert headers["h"] == b"\xff"
        assert (headers["neardup-error-reason"] or b"").startswith(b"not-json: ")
        assert headers["neardup-error-offset"] == b"6"

    def test_a_burst_with_nothing_readable_still_moves_on(self) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        burst = process(stage, [Record("documents", 0, 0, 1, None, b"bad")])
        (frame,) = records(burst.records, "app.fingerprints")
        assert decode(FingerprintFrame, frame.value, LAYOUT).end == 1

    def test_deleted_documents_are_skipped_only_where_the_settings_say_so(self) -> None:
        # The loop ends where a stage wants to read what is gone.
        assert fingerprint().adopt({DOCS: 3}, no_watermarks) == {DOCS: 3}
        stage = fingerprint(skip_deleted=True)
        assert stage.adopt({DOCS: 3}, lambda _: (8, 20)) == {DOCS: 8}
        burst = process(stage, [document(9)])
        (frame,) = records(burst.records, "app.fingerprints")
        found = decode(FingerprintFrame, frame.value, LAYOUT)
        assert (found.start, found.end) == (3, 10)  # Frames tile over what is gone.

    def test_a_frame_accounts_for_no_more_than_fits(self) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        count = 2 * ACCOUNTED_OFFSETS + 1
        tombstones = [Record("documents", 0, n, 1, b"k", None) for n in range(count)]
        burst = process(stage, [*tombstones, document(count)])
        frames = [
            decode(FingerprintFrame, record.value, LAYOUT)
            for record in records(burst.records, "app.fingerprints")
        ]
        assert [a.end for a in frames[:-1]] == [b.start for b in frames[1:]]
        assert [len(accounted(frame)) for frame in frames] == [*[ACCOUNTED_OFFSETS] * 2, 1]
        found = [frame.start + offset for frame in frames for offset in accounted(frame)]
        assert found == list(range(count))
        assert [ident for frame in frames for ident in frame.ids.unpack()] == [b"d%d" % count]

    def test_too_many_rejected_stop_the_worker_before_they_are_published(self) -> None:
        stage = fingerprint(RejectLimit(share=0.5, window=1_000))
        stage.adopt({DOCS: 0}, no_watermarks)
        wrong = [Record("documents", 0, n, 1, None, b'{"body": "x"}') for n in range(200)]
        with pytest.raises(StageError, match=r"200 of the last 200 .* no-text \(200\)"):
            process(stage, wrong)

    def test_a_few_rejected_among_many_do_not_stop_it(self) -> None:
        stage = fingerprint(RejectLimit(share=0.5, window=1_000))
        stage.adopt({DOCS: 0}, no_watermarks)
        mixed = [
            document(n) if n % 3 else Record("documents", 0, n, 1, None, b"bad") for n in range(300)
        ]
        assert process(stage, mixed).offsets

    def test_what_holds_no_documents_is_covered_by_a_frame_without(self) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 3}, no_watermarks)
        first = process(stage, [document(4)])
        settled = process(stage, (), quiet={DOCS: 9})
        after = process(stage, [document(9)])
        frames = []
        for burst in (first, settled, after):
            (record,) = records(burst.records, "app.fingerprints")
            frames.append(decode(FingerprintFrame, record.value, LAYOUT))
        assert [(frame.start, frame.end) for frame in frames] == [(3, 5), (5, 9), (9, 10)]
        assert [len(frame.offsets) for frame in frames] == [1, 0, 1]
        assert settled.offsets == {DOCS: 9}

    def test_a_field_that_no_document_has_is_a_warning_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = fingerprint(watched=("text", "title"))
        stage.adopt({DOCS: 0}, no_watermarks)
        for start in range(0, 3_000, 1_000):
            process(stage, [document(start + n) for n in range(1_000)])
        (warning,) = [record.getMessage() for record in caplog.records]
        assert warning == (
            "documents: none of the first 2,000 documents has a value in field 'title'; the fields"
            " they have: 'id', 'text'"
        )

    def test_first_texts_that_the_settings_do_not_suit_are_a_warning_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = fingerprint(texts=TextWatch(Parameters(), enough=2))
        stage.adopt({DOCS: 0}, no_watermarks)
        for offset in range(4):
            value = b'{"text": "<p>Some page, number %d</p>"}' % offset
            process(stage, [Record("documents", 0, offset, 1, None, value)])
        (warning,) = [record.getMessage() for record in caplog.records]
        assert warning.startswith("documents: 2 of the first 2 documents look like HTML")


def frames_of(
    records_: Sequence[Record],
    frame_bytes: int = FRAME_BYTES,
    deaths: DeadlyDocuments | None = None,
) -> list[FingerprintFrame]:
    """Return the frames that *fingerprint* makes of records, from offset 0 on."""
    stage = fingerprint(frame_bytes=frame_bytes, deaths=deaths)
    stage.adopt({DOCS: 0}, no_watermarks)
    burst = process(stage, records_)
    made = records(burst.records, "app.fingerprints")
    return [decode(FingerprintFrame, record.value, LAYOUT) for record in made]


DELETE = b'{"id": %d, "text": null}'


def tombstone(offset: int, key: bytes | None) -> Record:
    return Record("documents", 0, offset, 1, key, None)


def forgotten(frames: Sequence[FingerprintFrame]) -> list[tuple[int, bytes]]:
    """Return the offset and the id of each tombstone."""
    return [
        (frame.start + offset, ident)
        for frame in frames
        for offset, ident in zip(
            frame.tombstones.offsets.tolist(), frame.tombstones.ids.unpack(), strict=True
        )
    ]


class TestTombstones:
    def test_the_frame_has_each_tombstones_offset_and_the_id_that_it_forgets(self) -> None:
        sent = [
            tombstone(2, b"a"),
            document(3),
            tombstone(4, "ä".encode()),
            tombstone(5, b"d3"),
            document(6),
        ]
        (frame,) = frames_of(sent)
        assert forgotten([frame]) == [(2, b"a"), (4, "ä".encode()), (5, b"d3")]
        assert accounted(frame) == [2, 4, 5]

    @pytest.mark.parametrize("key", [None, b""])
    def test_without_a_key_it_forgets_nothing(
        self, key: bytes | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        frames = frames_of([tombstone(0, key), tombstone(1, b"k" * 1_024), tombstone(2, key)])
        assert forgotten(frames) == [(1, b"k" * 1_024)]
        assert [offset for frame in frames for offset in accounted(frame)] == [0, 1, 2]
        (said,) = [record.getMessage() for record in caplog.records]
        assert said.startswith("documents[0]@0: a tombstone forgets no document: no-id: its key")

    def test_those_that_forget_nothing_are_counted_when_they_are_committed(self) -> None:
        metrics = Metrics()
        stage = fingerprint(metrics=metrics)
        stage.adopt({DOCS: 0}, no_watermarks)
        process(stage, [tombstone(0, None), tombstone(1, b""), tombstone(2, b"a")])
        stage.adopt({DOCS: 0}, no_watermarks)  # As after an abort.
        process(stage, [tombstone(0, None), tombstone(1, b""), tombstone(2, b"a")])
        assert metrics.value(table.TOMBSTONES_UNUSABLE) == 0
        stage.committed()
        process(stage, [document(3)])
        stage.committed()
        assert metrics.value(table.TOMBSTONES_UNUSABLE) == 2

    def test_a_tombstone_that_is_poison_forgets_nothing_and_is_loudly_rejected(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        notes = KeptNotes()
        for _ in range(2):
            notes.documents().reading_alone(tombstone(1, b"a"))
        stage = fingerprint(deaths=notes.documents())
        stage.adopt({DOCS: 0}, no_watermarks)
        burst = process(stage, [document(0), tombstone(1, b"a"), document(2)])
        frames = [
            decode(FingerprintFrame, record.value, LAYOUT)
            for record in records(burst.records, "app.fingerprints")
        ]
        assert forgotten(frames) == []
        assert [frame.start + o for frame in frames for o in accounted(frame)] == [1]
        (rejected,) = records(burst.records, "rejected")
        assert (rejected.key, rejected.value) == (b"a", None)
        assert "the index does NOT forget its document" in caplog.text

    def test_frames_stay_under_their_size_with_tombstones_alone(self) -> None:
        sent = [tombstone(n, b"%04d" % n * 250) for n in range(3_000)]
        frames = frames_of(sent)
        assert len(frames) == 4
        assert all(len(encode(frame)) <= FRAME_BYTES + 100 for frame in frames)
        assert forgotten(frames) == [(n, b"%04d" % n * 250) for n in range(3_000)]
        assert [a.end for a in frames[:-1]] == [b.start for b in frames[1:]]

    @given(st.lists(st.sampled_from(["document", "long", "tombstone"]), min_size=1, max_size=40))
    def test_wherever_frames_are_cut_each_is_in_its_place_and_none_is_too_large(
        self, kinds: list[str]
    ) -> None:
        made: dict[str, Callable[[int], Record]] = {
            "document": document,
            "long": lambda n: tombstone(n, b"%03d" % n * 300),
            "tombstone": lambda n: tombstone(n, b"d%d" % (n - 1)),
        }
        sent = [made[kind](offset) for offset, kind in enumerate(kinds)]
        frames = frames_of(sent, frame_bytes=1_500)
        assert all(len(encode(frame)) <= 1_500 + 100 for frame in frames)
        expected = [(one.offset, one.key) for one in sent if one.value is None]
        assert forgotten(frames) == expected
        documents = [frame.start + n for frame in frames for n in frame.offsets.tolist()]
        assert documents == [one.offset for one in sent if one.value is not None]
        for frame in frames:
            within = [*frame.offsets.tolist(), *frame.tombstones.offsets.tolist()]
            assert all(frame.start + offset < frame.end for offset in within)


class TestFirstCases:
    def test_the_first_document_of_each_reason_is_a_line_in_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Each is another reason, but for the long's, of which there are two."""
        stage = fingerprint(options=DocumentOptions(key="long"))
        stage.adopt({DOCS: 0}, no_watermarks)
        long = document(0)._replace(key=b"12", value=b'{"text": "a text"}')
        sent = [long, long, document(0)._replace(value=b'{"text": null}'), tombstone(0, b"x")]
        process(stage, [record._replace(offset=n) for n, record in enumerate(sent)])
        bad, null, forgets_nothing = [record.getMessage() for record in caplog.records]
        assert bad == (
            "documents[0]@0: rejected: bad-id: the key has 2 bytes (hexadecimal 3132);"
            " documents.key is long, which takes 8 bytes. Later ones like it are not named"
        )
        assert null == (
            "documents[0]@2: rejected: null-text: 'text' is null; for the deletes of a change feed"
            " see documents.deletes. Later ones like it are not named"
        )
        assert forgets_nothing == (
            "documents[0]@3: a tombstone forgets no document: bad-id: the key has 1 byte"
            " (hexadecimal 78); documents.key is long, which takes 8 bytes. It is passed on. Later"
            " ones like it are not named"
        )

    def test_the_first_delete_says_which_document_it_forgets(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        stage = fingerprint(options=DocumentOptions(deletes="forget"))
        stage.adopt({DOCS: 0}, no_watermarks)
        burst = process(stage, [document(n)._replace(value=DELETE % n) for n in range(2)])
        (frame,) = records(burst.records, "app.fingerprints")
        assert forgotten([decode(FingerprintFrame, frame.value, LAYOUT)]) == [(0, b"0"), (1, b"1")]
        (said,) = [record.getMessage() for record in caplog.records]
        assert said == (
            "documents[0]@0: 'text' is null; field 'id' has the id, so it forgets document '0'."
            " Later ones like it are not named"
        )

    def test_whoever_wrote_a_document_writes_no_line(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        forged = b'{"text": [], "at": "\\u001b[2J"}'
        process(stage, [document(0)._replace(value=forged), document(1)])
        assert all(record.getMessage().isprintable() for record in caplog.records)
        assert len(caplog.records) == 1

    def test_they_can_be_silent(self, caplog: pytest.LogCaptureFixture) -> None:
        stage = fingerprint(silent=True)
        stage.adopt({DOCS: 0}, no_watermarks)
        process(stage, [document(0)._replace(value=b"{}")])
        assert not caplog.records
