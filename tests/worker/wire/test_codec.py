"""Frames come back as they went, and foreign ones are refused with the reason."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.worker.wire.samples import (
    ANSWER,
    CONTAINING,
    CORRECTING,
    FINGERPRINTS,
    FORGETTING,
    content,
    recorded,
)
from worker.wire.codec import NO_FRAME, FrameError, HandOver, decode, encode, hand_over
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.ids import Ids, Tombstones
from worker.wire.matches import MatchFrame


class TestRecorded:
    """Bytes that workers have written: the logs of running applications hold such."""

    @pytest.mark.parametrize(
        ("frame", "name"),
        [
            (FINGERPRINTS, "fingerprint-4"),
            (CORRECTING, "fingerprint-4-corrections"),
            (ANSWER, "match-2"),
            (CONTAINING, "match-2-containments"),
            (FORGETTING, "match-2-tombstones"),
        ],
    )
    def test_frames_are_written_as_ever(
        self, frame: FingerprintFrame | MatchFrame, name: str
    ) -> None:
        assert encode(frame) == recorded(name)

    def test_frames_are_read(self) -> None:
        read = decode(FingerprintFrame, recorded("fingerprint-4"), "layout")
        assert content(read) == content(FINGERPRINTS)
        read = decode(FingerprintFrame, recorded("fingerprint-4-corrections"), "layout")
        assert content(read) == content(CORRECTING)

    def test_answers_are_read(self) -> None:
        assert content(decode(MatchFrame, recorded("match-2"), "layout")) == content(ANSWER)
        read = decode(MatchFrame, recorded("match-2-containments"), "layout")
        assert content(read) == content(CONTAINING)
        read = decode(MatchFrame, recorded("match-2-tombstones"), "layout")
        assert content(read) == content(FORGETTING)


def test_columns_are_read_only_views_of_the_record() -> None:
    data = encode(FINGERPRINTS)
    frame = decode(FingerprintFrame, data, "layout")
    record = np.frombuffer(data, np.uint8)
    columns = [
        value for value in msgspec.structs.asdict(frame).values() if isinstance(value, np.ndarray)
    ]
    assert len(columns) == 7
    tombstones = frame.tombstones
    for column in [*columns, frame.ids.lengths, tombstones.offsets, tombstones.ids.lengths]:
        assert np.shares_memory(column, record)
        assert not column.flags.writeable


def test_what_was_decoded_is_encoded_as_it_was() -> None:
    frame = decode(FingerprintFrame, recorded("fingerprint-4"), "layout")
    assert encode(frame) == recorded("fingerprint-4")
    answer = decode(MatchFrame, recorded("match-2"), "layout")
    assert encode(answer) == recorded("match-2")


def test_a_frame_without_documents_comes_back() -> None:
    nothing = msgspec.structs.replace(
        FINGERPRINTS,
        offsets=FINGERPRINTS.offsets[:0],
        times=FINGERPRINTS.times[:0],
        checksums=FINGERPRINTS.checksums[:0],
        ids=Ids.pack([]),
        shingles=FINGERPRINTS.shingles[:0],
        texts=FINGERPRINTS.texts[:0],
        sketches=FINGERPRINTS.sketches[:0],
    )
    read = decode(FingerprintFrame, encode(nothing), "layout")
    assert (read.texts.shape, read.sketches.shape) == ((0,), (0, 0))
    assert content(read) == content(nothing)


def test_a_frame_without_tombstones_pays_one_byte_for_them() -> None:
    without = msgspec.structs.replace(FINGERPRINTS, tombstones=Tombstones.pack(0, []))
    read = decode(FingerprintFrame, encode(without), "layout")
    assert content(read) == {**content(FINGERPRINTS), "tombstones": []}
    fields = msgspec.msgpack.decode(encode(without)[1:])
    assert fields[-2] is None


def test_columns_are_written_in_their_order_however_they_lie_in_memory() -> None:
    turned = msgspec.structs.replace(
        FINGERPRINTS,
        sketches=np.asfortranarray(FINGERPRINTS.sketches),
        times=np.repeat(FINGERPRINTS.times, 2)[::2],
        checksums=FINGERPRINTS.checksums.astype(">u8"),
    )
    assert encode(turned) == encode(FINGERPRINTS)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "the record is empty"),
        (b"", "the record is empty"),
        (b"\x63rest", "format version 99, but this worker reads 4: upgrade"),
        (b"\x02" + encode(FINGERPRINTS)[1:], "format version 2, but this worker reads 4: upgrade"),
        (b"\x04\xc1", "not a FingerprintFrame"),
        (encode(FINGERPRINTS)[:-3], "not a FingerprintFrame"),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes | None, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        decode(FingerprintFrame, data, "layout")


def test_another_layout_is_refused_with_what_to_do() -> None:
    with pytest.raises(FrameError, match="application id of their own"):
        decode(FingerprintFrame, encode(FINGERPRINTS), "other")


def test_one_kind_is_not_taken_for_another() -> None:
    with pytest.raises(FrameError, match="not a MatchFrame"):
        decode(MatchFrame, b"\x02" + encode(FINGERPRINTS)[1:], "layout")
    with pytest.raises(FrameError, match="not a FingerprintFrame"):
        decode(FingerprintFrame, b"\x04" + encode(ANSWER)[1:], "layout")


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
