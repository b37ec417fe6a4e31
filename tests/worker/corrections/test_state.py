"""Which documents allowances hold for, as frames go by."""

from __future__ import annotations

from contextlib import suppress
from zlib import crc32

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import Fingerprinter
from tests.support.stages import (
    DOCS,
    PARAMETERS,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
    topology,
)
from worker.bus import Record
from worker.corrections import state
from worker.corrections.request import Allow, Forget, Request, Withdraw, encoded
from worker.corrections.state import (
    NO_CORRECTIONS,
    Allowed,
    Corrected,
    Corrections,
    corrected,
    erasure_name,
)
from worker.stages.order import Placed, placed
from worker.wire.corrections import Note
from worker.wire.headers import CORRECTION

TEXT = "what was said before is now said a second time"
OTHER = "nothing of what was said before is said here a second time"
HOUR = 3_600_000


def correction(offset: int, request: Request) -> Record:
    header = (CORRECTION, encoded(request))
    return document(offset)._replace(value=None, headers=(header,))


def allow(offset: int, ident: str, text: str = TEXT, *, exact: bool = False) -> Record:
    return correction(offset, Allow(ident, text, exact=exact, by="ada", why="so"))


def frame(*inputs: Record, at: int = 0) -> Placed:
    """Give the frame of some records; ``at`` is its time in the log, in hours."""
    stage = fingerprint()
    stage.adopt({DOCS: inputs[0].offset}, no_watermarks)
    (made,) = records(process(stage, inputs).records, "app.fingerprints", first=inputs[0].offset)
    return placed(made._replace(timestamp=at * HOUR), topology().layout, 0)


def after(before: Corrections, *frames: Placed, window: int | None = None) -> Corrected:
    logged = [(one.frame, one.offset, one.logged) for one in frames]
    return corrected(before, logged, threshold=PARAMETERS.threshold, window=window)


def judged(
    *frames: Placed, before: Corrections = NO_CORRECTIONS, window: int | None = None
) -> tuple[Corrections, dict[int, Allowed]]:
    hours = None if window is None else window * HOUR
    found = after(before, *frames, window=hours)
    return before if found.held is None else found.held, dict(found.allowed)


def test_without_corrections_nothing_is_looked_at() -> None:
    after, found = judged(frame(document(0, TEXT), document(1, TEXT)))
    assert after is NO_CORRECTIONS
    assert found == {}


@pytest.mark.parametrize("apart", [True, False])
def test_rows_are_counted_through_all_frames(*, apart: bool) -> None:
    inputs = [
        document(0, TEXT), allow(1, "a"), document(2, OTHER), document(3, TEXT),
        correction(4, Withdraw("a")), document(5, TEXT), document(6, TEXT),
    ]  # fmt: skip
    frames = [frame(one) for one in inputs] if apart else [frame(*inputs)]
    assert judged(*frames) == (Corrections(), {2: Allowed(b"a", 1.0)})


def test_what_holds_is_carried_on_with_its_note() -> None:
    held, _ = judged(frame(allow(0, "a"), allow(1, "b", exact=True), at=5))
    one, other = held.allowances
    assert (one.id, one.exact, other.id, other.exact) == (b"a", False, b"b", True)
    note = msgspec.msgpack.decode(one.note, type=Note)
    assert (note.by, note.why, note.text, note.at) == ("ada", "so", TEXT, document(0).timestamp)
    assert one.since == 5 * HOUR
    assert Corrections.unpacked(held.packed()) == held
    assert judged(frame(document(9, TEXT)), before=held)[1] == {0: Allowed(b"a", 1.0)}


def test_the_window_counts_from_the_time_in_the_log() -> None:
    held, _ = judged(frame(allow(0, "a"), at=5), window=3)
    until, _ = judged(frame(document(1, TEXT), at=8), before=held, window=3)
    assert until is held
    assert judged(frame(document(1, TEXT), at=8), before=held, window=3)[1] != {}
    after, found = judged(frame(document(1, TEXT), at=9), before=held, window=3)
    assert (after, found) == (Corrections(), {})
    both, _ = judged(frame(allow(1, "b"), at=6), before=held, window=3)
    left, _ = judged(frame(document(2, TEXT), at=9), before=both, window=3)
    assert [one.id for one in left.allowances] == [b"b"], "until the window has passed, inclusive"
    renewed, _ = judged(frame(allow(1, "a"), at=7), before=held, window=3)
    assert judged(frame(document(2, TEXT), at=9), before=renewed, window=3)[1] != {}


def test_a_note_on_an_erasure_is_kept_and_old_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_ERASURES", 2)
    forgotten = [correction(n, Forget(f"d{n}", by="ada")) for n in range(3)]
    held, _ = judged(frame(*forgotten))
    assert [one.name for one in held.erasures] == [erasure_name(b"d1"), erasure_name(b"d2")]


def test_allowances_are_bounded_and_what_took_effect_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MOST_ALLOWANCES", 2)
    requests: list[Request] = [
        Allow("a", TEXT), Allow("b", TEXT), Allow("c", TEXT),
        Allow("a", OTHER), Withdraw("c"), Withdraw("b"),
        Withdraw("b"), Allow("c", TEXT),
    ]  # fmt: skip
    made = frame(*(correction(at, one) for at, one in enumerate(requests)))
    found = after(NO_CORRECTIONS, made)
    assert found.held is not None
    assert [one.id for one in found.held.allowances] == [b"a", b"c"]
    done = [(0, b"a"), (1, b"b"), (3, b"a"), (5, b"b"), (7, b"c")]
    assert found.done == {made.offset: [(at, erasure_name(ident)) for at, ident in done]}
    assert found.refused == [b"c"]


def test_a_similarity_is_the_estimate_of_the_sketches() -> None:
    near = f"{TEXT} indeed"
    held, _ = judged(frame(allow(0, "a")))
    _, found = judged(frame(document(1, near)), before=held)
    one, other = Fingerprinter(PARAMETERS).sign([TEXT, near]).sketches
    share = np.count_nonzero(one == other) / len(one)
    assert found[0].similarity == pytest.approx((share - 1 / 256) / (1 - 1 / 256))


def test_of_several_that_are_as_similar_the_earliest_counts() -> None:
    held, _ = judged(frame(allow(0, "b"), allow(1, "a")))
    _, found = judged(frame(document(2, f"{TEXT} indeed")), before=held)
    assert found[0].id == b"b"


@pytest.mark.parametrize("packed", [b"", b"abcd", b"\0\0\0\0\x92\x90\x90"])
def test_other_bytes_are_no_corrections(packed: bytes) -> None:
    with pytest.raises(ValueError, match="differ from what was written"):
        Corrections.unpacked(packed)


@given(st.binary(max_size=200), st.booleans())
def test_stored_corrections_are_read_or_refused(packed: bytes, sealed: bool) -> None:  # noqa: FBT001 -- drawn
    own = crc32(packed).to_bytes(4, "little") + packed if sealed else packed
    with suppress(ValueError):
        Corrections.unpacked(own)
