"""A shard's answer: its matches add up, and point at documents that it names."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from tests.worker.wire.samples import ANSWER, CONTAINING, FORGETTING, with_columns
from worker.wire.codec import FrameError, decode, encode
from worker.wire.ids import Ids
from worker.wire.matches import MatchFrame, answer_bytes


@pytest.mark.parametrize(
    ("column", "data", "reason"),
    [
        ("offsets", b"\0" * 13, "offsets has 13 bytes, not a whole number of values"),
        ("checksums", b"\0" * 16, "checksums has 16 bytes, expected 24"),
        ("matched", b"\0" * 9, "matched has 9 bytes, not a whole number of values"),
        ("matched", b"\0" * 4, "counts has 4 bytes, expected 2"),
        ("counts", b"\2\0", "counts has 2 bytes, expected 4"),
        ("counts", b"\2\0\2\0", "similarities has 12 bytes, expected 16"),
        ("counts", b"\0\0\0\0", "counts has a document without matches"),
        ("which", b"\0\0", "which has 2 bytes, expected 6"),
        ("which", b"\0\0\1\0\2\0", "which points at document 2 of 2"),
        ("similarities", b"\0" * 8, "similarities has 8 bytes, expected 12"),
        ("sequences", b"\0" * 12, "sequences has 12 bytes, not a whole number of values"),
        ("sequences", b"\0" * 8, "which points at document 1 of 1"),
        ("sequences", b"\0" * 24, "ids.lengths has 4 bytes, expected 6"),
        ("ids", Ids.pack([b"a"]).packed(), "ids.lengths has 2 bytes, expected 4"),
        ("accounted", b"\0" * 3, "accounted has 3 bytes, not a whole number of values"),
        ("accounted", b"\5\0\0\0", "accounted does not ascend within the frame"),
        ("offsets", b"\0" * 12, "offsets does not ascend within the frame"),
        ("matched", b"\2\0\0\0\5\0\0\0", "matched does not ascend within the frame"),
        ("similarities", b"\0\0\xc0\x7f" * 3, "similarities has a value that isn't from 0 to 1"),
        ("similarities", b"\0\0\0\x40" * 3, "similarities has a value that isn't from 0 to 1"),
        ("ids", Ids.pack([b"a", b"\xff\xff"]).packed(), "ids is not UTF-8 at byte 1"),
        ("number", 1 << 48, "number or first is no number of a document"),
        ("first", -1, "number or first is no number of a document"),
    ],
)
def test_an_answer_that_contradicts_itself_is_refused(
    column: str, data: object, reason: str
) -> None:
    damaged = b"\x02" + with_columns(ANSWER, **{column: data})
    with pytest.raises(FrameError, match=f"a damaged MatchFrame: its column {reason}"):
        decode(MatchFrame, damaged, "layout")


def test_containments_that_are_not_one_for_each_match_are_refused() -> None:
    damaged = b"\x02" + with_columns(CONTAINING, containments=b"\0" * 8)
    with pytest.raises(FrameError, match="its column containments has 8 bytes, expected 12"):
        decode(MatchFrame, damaged, "layout")


def test_tombstones_that_contradict_each_other_are_refused() -> None:
    columns = msgspec.structs.replace(FORGETTING.forgotten.packed(), offsets=b"\0\0\0\0\1\0\0\0")
    damaged = b"\x02" + with_columns(FORGETTING, forgotten=columns)
    with pytest.raises(FrameError, match=r"its column ids\.lengths has 2 bytes, expected 4"):
        decode(MatchFrame, damaged, "layout")


def test_an_answer_names_each_matched_document_once() -> None:
    read = decode(MatchFrame, encode(ANSWER), "layout")
    assert read.named() == [(5 << 16, b"a"), ((6 << 16) + 1, b"bc")]
    assert read.sequence == (7 << 16) + 2


@pytest.mark.parametrize("shares", [None, np.ones(10, np.float32)])
def test_the_size_of_an_answer_is_what_it_takes(shares: npt.NDArray[np.float32] | None) -> None:
    frame = MatchFrame(
        layout="",
        partition=0,
        start=0,
        end=1,
        shard=0,
        number=0,
        first=0,
        offsets=np.empty(0, np.uint32),
        checksums=np.empty(0, np.uint64),
        matched=np.zeros(1, np.uint32),
        counts=np.array([10], np.uint16),
        which=np.arange(10, dtype=np.uint16),
        similarities=np.zeros(10, np.float32),
        sequences=np.zeros(10, np.uint64),
        ids=Ids.pack([b"i" * 100] * 10),
        accounted=np.empty(0, np.uint32),
        containments=shares,
    )
    expected = answer_bytes(10, 100, containment=shares is not None)
    assert 0 <= len(encode(frame)) - expected < 64
