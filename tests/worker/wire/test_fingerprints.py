"""A frame of fingerprints has the columns of as many documents as it has offsets."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.worker.wire.samples import FINGERPRINTS, with_columns
from worker.wire import (
    TOMBSTONE_BYTES,
    FingerprintFrame,
    FrameError,
    Ids,
    Tombstones,
    decode,
    document_bytes,
    encode,
)
from worker.wire.tombstones import PackedTombstones


@pytest.mark.parametrize(
    ("column", "data", "reason"),
    [
        ("offsets", b"\0" * 7, "offsets has 7 bytes, not a whole number of values"),
        ("offsets", b"\0\0\0\0\2\0\0\0\3\0\0\0", "times has 16 bytes, expected 24"),
        ("times", b"\0" * 15, "times has 15 bytes, expected 16"),
        ("times", b"\0" * 8, "times has 8 bytes, expected 16"),
        ("checksums", b"\0" * 24, "checksums has 24 bytes, expected 16"),
        ("checksums", b"", "checksums has 0 bytes, expected 16"),
        ("ids", Ids.pack([b"a"]).packed(), "ids.lengths has 2 bytes, expected 4"),
        ("shingles", b"\0" * 4, "shingles has 4 bytes, expected 8"),
        ("texts", b"\0" * 24, "texts has 24 bytes, expected 16"),
        ("texts", b"", "texts has 0 bytes, expected 16"),
        ("sketches", b"\0" * 5, "sketches has 5 bytes, not a whole .* each of 2 documents"),
        ("sketches", b"", "sketches has 0 bytes, not a whole .* each of 2 documents"),
        ("accounted", b"\0" * 9, "accounted has 9 bytes, not a whole number of values"),
        (
            "tombstones",
            PackedTombstones(memoryview(b"\0" * 6), Ids.pack([b"a"]).packed()),
            "tombstones.offsets has 6 bytes, not a whole number of values",
        ),
        (
            "tombstones",
            PackedTombstones(memoryview(b"\1\0\0\0\2\0\0\0"), Ids.pack([b"a"]).packed()),
            "ids.lengths has 2 bytes, expected 4",
        ),
        *(
            ("tombstones", Tombstones.pack(0, found).packed(), "tombstones.offsets does not ascend")
            for found in ([(2, b"a"), (1, b"b")], [(1, b"a"), (1, b"b")])
        ),
    ],
)
def test_a_frame_that_contradicts_itself_is_refused(column: str, data: object, reason: str) -> None:
    damaged = b"\x04" + with_columns(FINGERPRINTS, **{column: data})
    with pytest.raises(FrameError, match=f"a damaged FingerprintFrame: its column {reason}"):
        decode(FingerprintFrame, damaged, "layout")


@pytest.mark.parametrize("column", ["times", "checksums", "shingles", "texts", "sketches"])
def test_without_offsets_nothing_else_may_be_there(column: str) -> None:
    names = ("offsets", "times", "checksums", "shingles", "texts", "sketches")
    columns: dict[str, object] = dict.fromkeys(names, b"")
    columns["ids"] = Ids.pack([]).packed()
    columns[column] = b"\0" * 8
    with pytest.raises(FrameError, match=f"its column {column} has 8 bytes, "):
        decode(FingerprintFrame, b"\x04" + with_columns(FINGERPRINTS, **columns), "layout")


def test_the_size_of_a_document_is_about_what_it_takes() -> None:
    count, slots = 100, 128
    frame = FingerprintFrame(
        layout="",
        partition=0,
        start=0,
        end=count,
        offsets=np.zeros(count, np.uint32),
        times=np.zeros(count, np.int64),
        checksums=np.zeros(count, np.uint64),
        ids=Ids.pack([b"i" * 20] * count),
        shingles=np.zeros(count, np.uint32),
        texts=np.zeros(count, np.uint64),
        sketches=np.zeros((count, slots), np.uint8),
        accounted=np.empty(0, np.uint32),
    )
    expected = count * (document_bytes(slots) + 20)
    assert expected - 5 * count <= len(encode(frame)) <= expected


def test_the_size_of_a_tombstone_is_about_what_it_takes() -> None:
    count = 100
    with_them = msgspec.structs.replace(
        FINGERPRINTS,
        accounted=np.arange(count, dtype=np.uint32),
        tombstones=Tombstones.pack(0, [(n, b"i" * 20) for n in range(count)]),
    )
    without = msgspec.structs.replace(
        FINGERPRINTS,
        accounted=np.empty(0, np.uint32),
        tombstones=Tombstones.pack(0, []),
    )
    taken = len(encode(with_them)) - len(encode(without))
    assert 0 <= taken - count * (TOMBSTONE_BYTES + 20) < 16
