"""Ids come back as they went."""

from __future__ import annotations

import pytest

from worker.settings.sections import LimitsSection
from worker.wire.columns import ColumnError
from worker.wire.ids import MOST_ID_BYTES, Ids, PackedIds


def test_frames_take_every_id_that_the_settings_allow() -> None:
    assert LimitsSection(id_bytes=MOST_ID_BYTES).id_bytes == MOST_ID_BYTES
    with pytest.raises(ValueError, match="id_bytes"):
        LimitsSection(id_bytes=MOST_ID_BYTES + 1)


@pytest.mark.parametrize("ids", [[], [b""], [b"a"], [b"a" * 1024, b"", "ä€".encode()]])
def test_ids_come_back_as_they_went(ids: list[bytes]) -> None:
    assert Ids.pack(ids).unpack() == ids
    assert Ids.pack(ids).packed().ids(len(ids)).unpack() == ids


@pytest.mark.parametrize(
    ("lengths", "data", "reason"),
    [
        (b"\1\0\2", b"abc", "ids.lengths has 3 bytes, expected 4"),
        (b"\1\0", b"abc", "ids.lengths has 2 bytes, expected 4"),
        (b"\1\0\2\0", b"ab", "ids has 2 bytes, expected 3"),
        (b"\1\0\1\0", b"abc", "ids has 3 bytes, expected 2"),
        (b"\xff\xff\xff\xff", b"ab", "ids has 2 bytes, expected 131070"),
    ],
)
def test_ids_that_contradict_themselves_are_refused(
    lengths: bytes, data: bytes, reason: str
) -> None:
    with pytest.raises(ColumnError, match=reason):
        PackedIds(memoryview(lengths), memoryview(data)).ids(2)


@pytest.mark.parametrize("end", range(1, 6))
def test_an_id_that_ends_within_a_character_is_refused(end: int) -> None:
    text = "äb€".encode()
    packed = Ids.pack([text[:end], text[end:]]).packed()
    if end in {2, 3}:
        assert packed.ids(2).unpack() == [text[:end], text[end:]]
    else:
        with pytest.raises(ColumnError, match="ids divides a character"):
            packed.ids(2)
