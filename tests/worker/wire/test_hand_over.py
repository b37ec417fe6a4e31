"""The record at which another generation takes over."""

from __future__ import annotations

import msgspec
import pytest

from tests.worker.wire.samples import FINGERPRINTS
from worker.wire.codec import FrameError, decode, encode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.hand_over import NO_FRAME, HandOver, hand_over


def test_what_is_written_is_read() -> None:
    assert hand_over(HandOver("layout", 7).encode(), "layout") == 7


def test_a_frame_is_none() -> None:
    frame = encode(FINGERPRINTS)
    assert hand_over(frame, "layout") is None
    assert hand_over(b"\x05" + frame[1:], "another") is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x01",
        b"\x02rest",
        b'{"id": "a"}',
        b"\x81" + b"\x91" * 5_000,
        HandOver("layout", 7).encode()[:-1],
        b"\x04" + msgspec.msgpack.encode(("layout", 0, 5, 5)),
        b"\x04" + msgspec.msgpack.encode(("layout", -1, 5, 9)),
        b"\x04" + msgspec.msgpack.encode(("layout", 0, 5, 1 << 63)),
    ],
)
def test_what_is_no_frame_either_is_nothing(value: bytes | None) -> None:
    assert hand_over(value, "layout") == NO_FRAME


def test_a_worker_that_does_not_know_it_is_told_to_upgrade() -> None:
    with pytest.raises(FrameError, match=r"format version 129.*upgrade the worker"):
        decode(FingerprintFrame, HandOver("layout", 7).encode(), "layout")


def test_one_of_another_layout_is_refused() -> None:
    with pytest.raises(FrameError, match="a hand-over has layout other"):
        hand_over(HandOver("other", 7).encode(), "layout")
