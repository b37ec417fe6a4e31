"""One order: where a frame's documents are in it, when they are, and whose columns are whose."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from lsh import Fingerprinter
from lsh.index import NO_TIME, Forgotten
from tests.support.stages import (
    DOCS,
    PARAMETERS,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
    topology,
)
from worker.bus import Record
from worker.stages.order import Documents, Placed, placed
from worker.wire.codec import FrameError, encode
from worker.wire.frame import POSITION_BITS

COLUMNS = 19
WHOLE = topology().layout
ALLOWANCE = 60_000
SAID = "what was said before is now said a second time"
OPPOSITE = "nothing of what was said before is said here a second time"


def frame(*documents: Record, number: int, stamp: int = 9_000) -> Record:
    """Give the frame of documents, which *fingerprint* has put at an offset of the order."""
    stage = fingerprint()
    stage.adopt({DOCS: documents[0].offset}, no_watermarks)
    burst = process(stage, documents)
    (made,) = records(burst.records, "app.fingerprints", first=number)
    return made._replace(timestamp=stamp)


def two_frames() -> list[Placed]:
    both = (
        frame(document(0, SAID), document(1, OPPOSITE), number=5),
        frame(document(2, SAID), number=9),
    )
    return [placed(one, WHOLE, ALLOWANCE) for one in both]


class TestPlaced:
    def test_times_are_bounded_by_the_logs(self) -> None:
        """Also those of before 1970; what has no time gets none."""
        future = document(1)._replace(timestamp=4_000_000_000_000)
        timeless = document(2)._replace(timestamp=-1)
        one = placed(frame(document(0), future, timeless, number=77), WHOLE, ALLOWANCE)
        assert one.times.tolist() == [1_000, 9_000 + ALLOWANCE, NO_TIME]
        assert (one.number, one.count) == (77, 3)
        before = msgspec.structs.replace(one.frame, times=np.array([-1, 0, -(10**12)]))
        record = frame(document(0), number=77)._replace(value=encode(before))
        assert placed(record, WHOLE, ALLOWANCE).times.tolist() == [-1, 0, -(10**12)]

    def test_numbers_go_on_from_those_of_an_earlier_log(self) -> None:
        later = replace(WHOLE, numbered_from=1 << 30)
        one = placed(frame(document(0), number=77), later, ALLOWANCE)
        assert (one.offset, one.number) == (77, (1 << 30) + 77)
        (sequence,) = Documents([one]).batch(later, 0).sequences.tolist()
        assert sequence == one.number << POSITION_BITS

    def test_without_an_allowance_nothing_is_later_than_its_frame(self) -> None:
        one = placed(frame(document(0), document(9_999), number=0, stamp=1_500), WHOLE, 0)
        assert one.times.tolist() == [1_000, 1_500]

    def test_another_layout_is_refused(self) -> None:
        with pytest.raises(FrameError, match="layout"):
            placed(frame(document(0), number=0), replace(WHOLE, id="another"), ALLOWANCE)

    @pytest.mark.parametrize("slots", [64, 126, 127, 129, 256])
    def test_sketches_of_another_length_are_refused(self, slots: int) -> None:
        record = frame(document(0), document(1), number=0)
        sketches = np.zeros((2, slots), np.uint8)
        other = msgspec.structs.replace(placed(record, WHOLE, 0).frame, sketches=sketches)
        one = placed(record._replace(value=encode(other)), WHOLE, 0)
        assert one.refused is not None
        assert f"sketches has {slots} values for a text, expected 128" in one.refused
        assert (one.frame.start, one.frame.end, one.count) == (0, 2, 0)


class TestColumns:
    @pytest.mark.parametrize("shards", [1, 2, 4, 7, COLUMNS])
    def test_each_belongs_to_one_shard_and_no_shard_is_without(self, shards: int) -> None:
        owned = [topology(shards).layout.columns_of(shard) for shard in range(shards)]
        assert sorted(column for some in owned for column in some) == list(range(COLUMNS))
        sizes = [len(some) for some in owned]
        assert max(sizes) - min(sizes) <= 1
        assert min(sizes) > 0


class TestDocuments:
    def test_every_shard_gets_its_columns(self) -> None:
        documents = Documents(two_frames())
        prints = Fingerprinter(PARAMETERS).fingerprint([SAID, OPPOSITE, SAID])
        for shards in (1, 4, COLUMNS):
            layout = topology(shards).layout
            for shard in range(shards):
                batch = documents.batch(layout, shard)
                assert batch.columns == layout.columns_of(shard)
                assert np.array_equal(batch.keys, prints.keys.T[list(batch.columns)])
                assert np.array_equal(batch.sketches, prints.sketches)
                assert batch.ids == [b"d0", b"d1", b"d2"]
                assert batch.times.tolist() == [1_000, 1_001, 1_002]

    def test_frames_are_joined_as_they_are_alone(self) -> None:
        frames = two_frames()
        layout = topology(4).layout
        joined = Documents(frames).batch(layout, 1)
        alone = [Documents([one]).batch(layout, 1) for one in frames]
        assert np.array_equal(joined.keys, np.concatenate([b.keys for b in alone], axis=1))
        for name in ("sequences", "times", "shingles", "sketches"):
            parts = [getattr(batch, name) for batch in alone]
            assert np.array_equal(getattr(joined, name), np.concatenate(parts)), name
        assert joined.ids == [ident for batch in alone for ident in batch.ids]
        # The first and the third have the same text, the second another.
        assert np.array_equal(joined.keys[:, 0], joined.keys[:, 2])
        assert not (joined.keys[:, 0] == joined.keys[:, 1]).any()

    def test_a_documents_number_is_its_frames_offset_and_its_place_in_it(self) -> None:
        documents = Documents(two_frames())
        assert len(documents) == 3
        batch = documents.batch(WHOLE, 0)
        first, second = 5 << POSITION_BITS, 9 << POSITION_BITS
        assert batch.sequences.tolist() == [first, first + 1, second]

    def test_a_frame_without_documents_adds_nothing(self) -> None:
        gone = document(3)._replace(key=b"k", value=None)
        empty = placed(frame(gone, number=6), WHOLE, ALLOWANCE)
        assert empty.count == 0
        only = Documents([empty]).batch(topology(4).layout, 1)
        assert (only.keys.shape, len(only.sequences), only.ids) == ((5, 0), 0, [])
        before, after = two_frames()
        with_it = Documents([before, empty, after]).batch(topology(4).layout, 1)
        without = Documents([before, after]).batch(topology(4).layout, 1)
        assert np.array_equal(with_it.keys, without.keys)
        assert with_it.sequences.tolist() == without.sequences.tolist()
        assert np.array_equal(with_it.sketches, without.sketches)


def gone(offset: int, ident: bytes) -> Record:
    return Record("documents", 0, offset, 1_000, ident, None)


class TestForgotten:
    """What is forgotten, and before which row of the batch."""

    def rows(self, *frames: Record) -> list[tuple[int, bytes]]:
        documents = Documents([placed(one, WHOLE, ALLOWANCE) for one in frames])
        return list(documents.batch(WHOLE, 0).forgotten)

    def test_a_tombstone_comes_before_the_document_that_follows_it(self) -> None:
        sent = (
            gone(0, b"a"), document(1), gone(2, b"b"), gone(3, b"c"), document(4), gone(5, b"d"),
        )  # fmt: skip
        assert self.rows(frame(*sent, number=0)) == [(0, b"a"), (1, b"b"), (1, b"c"), (2, b"d")]

    def test_rows_are_those_of_the_joined_frames(self) -> None:
        frames = (
            frame(document(0), document(1), gone(2, b"a"), number=5),
            frame(gone(3, b"b"), gone(4, b"c"), number=6),
            frame(gone(5, b"d"), document(6), gone(7, b"e"), number=8),
            frame(document(8), number=9),
        )
        assert self.rows(*frames) == [(2, b"a"), (2, b"b"), (2, b"c"), (2, b"d"), (3, b"e")]

    def test_every_shard_gets_all_of_them(self) -> None:
        one = placed(frame(gone(0, b"a"), document(1), number=0), WHOLE, ALLOWANCE)
        documents = Documents([one])
        for shard in range(4):
            batch = documents.batch(topology(4).layout, shard)
            assert batch.forgotten == [Forgotten(0, b"a")]

    def test_without_tombstones_there_are_none(self) -> None:
        assert self.rows(frame(document(0), number=0)) == []
