"""Whatever a header has, it is a correction or says why it is none."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.corrections.request import (
    Allow,
    CorrectionError,
    Forget,
    Request,
    Withdraw,
    decoded,
    encoded,
    in_frame,
)
from worker.wire.corrections import Kind, Note
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


@pytest.mark.parametrize(
    ("request_", "header"),
    [
        (
            Allow("a1", "I love it", exact=True, by="ada", why="slogan"),
            (
                b'{"kind":"allow","id":"a1","text":"I love it","exact":true,"by":"ada",'
                b'"why":"slogan"}'
            ),
        ),
        (Withdraw("a1", "ada", "so"), b'{"kind":"withdraw","id":"a1","by":"ada","why":"so"}'),
        (Forget("d1", source="0-7"), b'{"kind":"forget","id":"d1","source":"0-7"}'),
    ],
)
def test_a_request_is_written_as_all_versions_read_it(request_: Request, header: bytes) -> None:
    assert encoded(request_) == header
    assert decoded(header) == request_


def test_a_frame_has_what_a_request_says_within_bounds() -> None:
    long = "x" * 300
    kinds = (Kind.NEAR, Kind.EXACT, Kind.WITHDRAWN, Kind.FORGOTTEN)
    requests = (
        Allow("a", long, by=long, why=long),
        Allow("a", long, exact=True),
        Withdraw("a", by=long),
        Forget("d", source=long),
    )
    made = [in_frame(request, 5, -1) for request in requests]
    assert [one.kind for one in made] == list(kinds)
    assert [one.text for one in made] == [long.encode()] * 2 + [b""] * 2
    near, _, _, forgotten = (msgspec.msgpack.decode(one.note, type=Note) for one in made)
    assert (near.at, len(near.by), len(near.why), len(near.text)) == (0, 100, 200, 200)
    assert (forgotten.text, len(forgotten.source)) == ("", 100)
