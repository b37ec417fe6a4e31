"""Corrections in a frame are checked, and are about as large as they say."""

from __future__ import annotations

from contextlib import suppress

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from worker.wire.columns import ColumnError
from worker.wire.corrections import Correction, Kind


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(-(1 << 64), 1 << 65))
def test_every_correction_in_a_frame_is_checked(ident: bytes, note: bytes, key: int) -> None:
    with suppress(ColumnError):
        Correction(0, Kind.NEAR, ident, note, b"", key).check()
        assert ident.decode()


@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(0, (1 << 64) - 1))
def test_the_size_is_at_least_that_of_the_bytes(part: bytes, other: bytes, key: int) -> None:
    made = Correction(1 << 31, Kind.EXACT, part, other, part, key, other)
    packed = len(msgspec.msgpack.encode(made))
    assert packed <= made.size <= packed + 40
