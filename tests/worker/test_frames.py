"""Frames come back as they went, and foreign ones are refused with the reason."""

from __future__ import annotations

import msgspec
import pytest

from worker.frames import (
    FingerprintFrame,
    FrameError,
    Ids,
    MatchFrame,
    answer_bytes,
    decode,
    encode,
)

FRAME = FingerprintFrame(
    "layout", 2, 10, 14, b"\0" * 8, b"\0" * 16, b"\0" * 16, Ids.pack([b"a", b"bc"]), b"", b"", b""
)


def test_a_frame_comes_back_as_it_went() -> None:
    assert decode(FingerprintFrame, encode(FRAME), "layout") == FRAME


@pytest.mark.parametrize("ids", [[], [b""], [b"a"], [b"a" * 1024, b"", "ä€".encode()]])
def test_ids_come_back_as_they_went(ids: list[bytes]) -> None:
    assert Ids.pack(ids).unpack() == ids


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "an empty record"),
        (b"", "an empty record"),
        (b"\x63rest", "format version 99, and this worker reads 1: upgrade"),
        (b"\x01\xc1", "no FingerprintFrame"),
        (encode(FRAME)[:-3], "no FingerprintFrame"),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes | None, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode(FingerprintFrame, data, "layout")


def test_another_layout_is_refused_with_what_to_do() -> None:
    with pytest.raises(FrameError, match="application id of their own"):
        decode(FingerprintFrame, encode(FRAME), "other")


OLD_ANSWER = bytes.fromhex(
    "019ea66c61796f75740300050007 00c40400000000c4080100000000000000c40400000000c4020200"
    "c41000000000000000000100000000000000c4080000803f6666663f92c40401000200c403616263"
)
"""As version 1 wrote it: two matches of one document, an id for each."""


def test_an_answer_of_the_version_before_is_read() -> None:
    frame = decode(MatchFrame, OLD_ANSWER, "layout")
    assert (frame.partition, frame.start, frame.end, frame.number) == (3, 0, 5, 7)
    assert memoryview(frame.which).cast("H").tolist() == [0, 1]
    assert memoryview(frame.sequences).cast("Q").tolist() == [0, 1]
    assert frame.ids.unpack() == [b"a", b"bc"]
    assert frame.accounted is None


def test_a_frame_without_its_last_field_is_read() -> None:
    # As older workers write it: the array is one shorter.
    fields = msgspec.msgpack.decode(encode(FRAME)[1:])
    older = encode(FRAME)[:1] + msgspec.msgpack.encode(fields[:-1])
    assert decode(FingerprintFrame, older, "layout") == msgspec.structs.replace(
        FRAME, accounted=None
    )


def test_the_size_of_an_answer_is_what_it_takes() -> None:
    frame = MatchFrame(
        "", 0, 0, 1, 0, 0, 0, b"", b"", b"\0" * 4, b"\0" * 2, b"\0" * 20, b"\0" * 40,
        b"\0" * 80, Ids.pack([b"i" * 100] * 10),
    )  # fmt: skip
    assert 0 <= len(encode(frame)) - answer_bytes(10, 100) < 64


def test_one_kind_is_not_taken_for_another() -> None:
    with pytest.raises(FrameError, match="no MatchFrame"):
        decode(MatchFrame, encode(FRAME), "layout")
