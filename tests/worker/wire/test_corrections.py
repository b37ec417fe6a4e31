"""Whatever a header has, it is a correction or says why it is none."""

from __future__ import annotations

from contextlib import suppress
from zlib import crc32

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from worker.corrections.request import CorrectionError, decoded, in_frame
from worker.corrections.state import Corrections
from worker.wire.columns import ColumnError
from worker.wire.corrections import Correction, Kind
from worker.wire.ids import MOST_ID_BYTES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
MEMBERS = {
    "kind": st.sampled_from(["allow", "withdraw", "forget", "", 7]),
    "id": st.text(max_size=300) | st.just("i" * 1_025) | st.just("\0"),
    "text": st.text(max_size=20) | st.just("t" * 50_001),
    "exact": st.booleans() | st.none(),
    "by": st.text(max_size=200),
    "source": JSON,
}
HEADERS = (
    st.binary(max_size=64)
    | st.fixed_dictionaries({}, optional=MEMBERS).map(msgspec.json.encode)
    | st.integers(0, 30_000).map(lambda depth: b'{"id":' + b"[" * depth + b"]" * depth + b"}")
)


@given(HEADERS)
def test_every_header_is_a_correction_that_frames_can_have_or_is_refused(header: bytes) -> None:
    with suppress(CorrectionError):
        made = in_frame(decoded(header), 0, 1 << 70)
        made.check()
        assert 0 < len(made.id) <= MOST_ID_BYTES


@given(st.binary(max_size=200), st.booleans())
def test_stored_corrections_are_read_or_refused(packed: bytes, sealed: bool) -> None:  # noqa: FBT001 -- drawn
    own = crc32(packed).to_bytes(4, "little") + packed if sealed else packed
    with suppress(ValueError):
        Corrections.unpacked(own)


@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(-(1 << 64), 1 << 65))
def test_every_correction_in_a_frame_is_checked(ident: bytes, note: bytes, key: int) -> None:
    with suppress(ColumnError):
        Correction(0, Kind.NEAR, ident, note, b"", key).check()
        assert ident.decode()
