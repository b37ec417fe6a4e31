"""The record at which another generation takes over."""

from __future__ import annotations

import pytest

from worker.wire import FingerprintFrame, FrameError, HandOver, decode, hand_over


def test_what_is_written_is_read() -> None:
    assert hand_over(HandOver("layout", 7).encode(), "layout") == 7


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x02rest"])
def test_nothing_else_is_one(value: bytes | None) -> None:
    assert hand_over(value, "layout") is None


def test_a_worker_that_does_not_know_it_is_told_to_upgrade() -> None:
    with pytest.raises(FrameError, match=r"format version 129.*upgrade the worker"):
        decode(FingerprintFrame, HandOver("layout", 7).encode(), "layout")


def test_a_damaged_one_is_refused() -> None:
    with pytest.raises(FrameError, match="not a hand-over"):
        hand_over(HandOver("layout", 7).encode()[:-1], "layout")
