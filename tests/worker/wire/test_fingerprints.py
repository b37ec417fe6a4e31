"""A frame of fingerprints has the columns of as many documents as it has offsets."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from lsh.index import NO_TIME
from tests.worker.wire.samples import CORRECTING, FINGERPRINTS, with_columns
from worker.wire.codec import FrameError, RefusedFrame, decode, encode
from worker.wire.fingerprints import FingerprintFrame, document_bytes
from worker.wire.ids import NO_TOMBSTONES, TOMBSTONE_BYTES, Ids, PackedTombstones, Tombstones


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
    with pytest.raises(RefusedFrame, match=f"a damaged FingerprintFrame: its column {reason}"):
        decode(FingerprintFrame, damaged, "layout")


def numbers(kind: str, *values: int) -> bytes:
    return np.array(values, kind).tobytes()


def tombstones(*found: tuple[int, bytes]) -> PackedTombstones:
    return Tombstones.pack(0, found).packed()


def corrections(**fields: object) -> list[object]:
    first, second = CORRECTING.corrections
    return [msgspec.structs.replace(first, **fields), second]


@pytest.mark.parametrize(
    ("column", "data", "reason"),
    [
        ("offsets", numbers("<u4", 3, 0), "offsets does not ascend"),
        ("offsets", numbers("<u4", 0, 6), "offsets does not ascend"),
        ("offsets", numbers("<u4", 0, 4), "accounted has offsets of documents"),
        ("times", numbers("<i8", 0, NO_TIME + 1), "times has a time that the index can't keep"),
        ("ids", Ids.pack([b"", b"b"]).packed(), "ids has an id that is empty, or longer"),
        ("ids", Ids.pack([b"a", b"b" * 1_025]).packed(), "ids has an id that is empty, or longer"),
        ("ids", Ids.pack([b"a", b"\xff"]).packed(), "ids is not UTF-8"),
        ("ids", Ids.pack([b"\xc3", b"\xa4"]).packed(), "ids divides a character"),
        ("accounted", numbers("<u4", 1, 1, 2, 4, 5), "accounted does not ascend"),
        ("accounted", numbers("<u4", 1, 2, 4, 5, 6), "accounted does not ascend"),
        ("tombstones", tombstones((4, b"")), "ids has an id that is empty"),
        ("tombstones", tombstones((6, b"a")), r"tombstones\.offsets does not ascend"),
        ("tombstones", tombstones((0, b"a")), r"tombstones\.offsets has offsets that are not"),
        ("corrections", corrections(offset=0), "corrections has offsets that are not accounted"),
        ("corrections", corrections(offset=4), "corrections does not ascend"),
        ("corrections", corrections(offset=-1), "corrections does not ascend"),
        ("corrections", corrections(offset=1 << 40), "corrections does not ascend"),
        ("corrections", corrections(id=b""), "corrections has an id or a key that is none"),
        ("corrections", corrections(id=b"i" * 70_000), "corrections has an id or a key"),
        ("corrections", corrections(id=b"\xff"), "corrections is not UTF-8"),
        ("corrections", corrections(key=-1), "corrections has an id or a key that is none"),
        ("corrections", corrections(text=b"\xff"), "corrections is not UTF-8"),
        ("corrections", corrections(text=b"t" * 50_001), "corrections has a text that is too long"),
        ("corrections", corrections(note=b"{"), "corrections has a note that can't be read"),
        ("corrections", corrections(note=b"\x81\xa1x" + b"\x91" * 5_000), "corrections has a note"),
        (
            "corrections",
            corrections(note=b"\x81\xa2at\xff"),
            "corrections has a note that can't be",
        ),
    ],
)
def test_a_frame_that_no_shard_could_carry_out_is_refused(
    column: str, data: object, reason: str
) -> None:
    damaged = b"\x04" + with_columns(CORRECTING, **{column: data})
    with pytest.raises(RefusedFrame, match=f"its column {reason}") as refused:
        decode(FingerprintFrame, damaged, "layout")
    assert (refused.value.frame.partition, refused.value.frame.end) == (2, 16)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"offsets": np.arange(65_537, dtype="<u4"), "end": 70_000}, "more than have numbers"),
        ({"accounted": np.arange(240_000, dtype="<u4"), "end": 240_000}, "too many to answer"),
    ],
)
def test_a_frame_that_is_too_large_to_answer_is_refused(more: dict[str, Any], reason: str) -> None:
    offsets = more.get("offsets", np.empty(0, "<u4"))
    count = len(offsets)
    frame = msgspec.structs.replace(
        FINGERPRINTS,
        **{"accounted": np.empty(0, "<u4"), "offsets": offsets, **more},
        start=0,
        times=np.zeros(count, "<i8"),
        checksums=np.zeros(count, "<u8"),
        ids=Ids.pack([b"i"] * count),
        shingles=np.zeros(count, "<u4"),
        texts=np.zeros(count, "<u8"),
        sketches=np.zeros((count, 4), np.uint8),
        tombstones=NO_TOMBSTONES,
    )
    with pytest.raises(RefusedFrame, match=reason):
        decode(FingerprintFrame, encode(frame), "layout")


def test_what_was_rejected_is_told_of_a_frame_that_is_refused() -> None:
    damaged = b"\x04" + with_columns(CORRECTING, texts=b"", corrections=corrections(id=b"\xff"))
    with pytest.raises(RefusedFrame) as refused:
        decode(FingerprintFrame, damaged, "layout")
    assert refused.value.accounted.tolist() == []  # All of them forget or correct.
    frame = msgspec.structs.replace(FINGERPRINTS, tombstones=NO_TOMBSTONES)
    with pytest.raises(RefusedFrame) as refused:
        decode(FingerprintFrame, b"\x04" + with_columns(frame, texts=b""), "layout")
    assert refused.value.accounted.tolist() == [1, 4, 5]
    # What contradicts itself is not believed.
    overlapping = numbers("<u4", 0, 1, 4, 5)
    with pytest.raises(RefusedFrame) as refused:
        decode(FingerprintFrame, b"\x04" + with_columns(frame, accounted=overlapping), "layout")
    assert refused.value.accounted.tolist() == []


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
