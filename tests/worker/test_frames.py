"""Frames come back as they went, and foreign ones are refused with the reason."""

from __future__ import annotations

import pytest

from worker.frames import FingerprintFrame, FrameError, Ids, MatchFrame, decode, encode

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


def test_one_kind_is_not_taken_for_another() -> None:
    with pytest.raises(FrameError, match="no MatchFrame"):
        decode(MatchFrame, encode(FRAME), "layout")
