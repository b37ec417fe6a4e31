"""The log of a generation whose fingerprints are made differently, from the payloads."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsh import Fingerprinter
from lsh._core import Signed
from lsh.columns import Column
from lsh.index import NO_TIME
from tests.support.corpus import examples
from tests.support.refingerprinting import ALLOWANCE, NEW, START, TwoLogs, judged
from tests.support.stages import process
from worker.bus import Aborted, OutcomeUnknown, Outgoing, RecordBatch, TopicPartition
from worker.bus.memory.transaction import Step
from worker.corrections.request import Allow, Withdraw
from worker.formats.base import DocumentOptions
from worker.stages.base import Burst, StageError
from worker.wire.codec import HandOver, decode, encode, hand_over
from worker.wire.corrections import Kind
from worker.wire.fingerprints import FingerprintFrame

ORDER = TopicPartition("app.fingerprints", 0)
WORDS = "one two three four five six seven eight"


def check(logs: TwoLogs) -> int:
    """Check the new log against the earlier one; return how many documents are gone."""
    expected = logs.expected()
    low = [logs.bus.start_offset("documents", n) for n in range(logs.source.layout.partitions)]
    missing = 0
    for record, earlier, frames in logs.replaced():
        assert {frame.partition for frame in frames} == {earlier.partition}
        starts = [earlier.start, *(frame.end for frame in frames[:-1])]
        assert [frame.start for frame in frames] == starts
        assert frames[-1].end == earlier.end
        found = [one for frame in frames for one in judged(frame)]
        owed = [one for one in judged(earlier) if (earlier.partition, one.offset) in expected]
        gone = {one.offset for one in owed} - {one.offset for one in found}
        assert all(offset < low[earlier.partition] for offset in gone)
        assert found == [
            expected[earlier.partition, one.offset] for one in owed if one.offset not in gone
        ]
        own = [one.ident for one in owed if one.offset not in gone]
        assert [one.ident for one in found] == own
        times = dict(zip((one.offset for one in judged(earlier)), earlier.times, strict=True))
        latest = record.timestamp + ALLOWANCE
        assert [int(time) for frame in frames for time in frame.times] == [
            min(int(times[one.offset]), latest) for one in found
        ]
        aside = {*_accounted([earlier]), *(one.offset for one in judged(earlier))}
        assert _accounted(frames) == sorted(aside - {one.offset for one in found})
        assert _forgotten(frames) == _forgotten([earlier])
        missing += len(gone)
    return missing


def _accounted(frames: list[FingerprintFrame]) -> list[int]:
    found = []
    for frame in frames:
        found += [frame.start + int(offset) for offset in frame.accounted]
    return found


def _forgotten(frames: list[FingerprintFrame]) -> list[tuple[int, bytes]]:
    return [
        (frame.start + int(offset), ident)
        for frame in frames
        for offset, ident in zip(
            frame.tombstones.offsets, frame.tombstones.ids.unpack(), strict=True
        )
    ]


def ended(logs: TwoLogs) -> bool:
    """Return whether the new log ends with the hand-over, and has no other."""
    log = logs.bus.read(logs.target.fingerprints, 0, 0, 1 << 30)
    found = [hand_over(record.value, "new") for record in log]
    assert all(one is None for one in found[:-1])
    return bool(found) and found[-1] == 1


_KINDS: dict[str, Callable[[int], bytes | None]] = {
    "text": lambda n: b'{"id": "d%d", "text": "%s %d"}' % (n, WORDS.encode(), n),
    "long": lambda n: b'{"text": "%s"}' % (b"%d word " % n * 120),
    "markup": lambda n: b'{"text": "<p>%s</p>"}' % (b"!" * (n % 2)),
    "blank": lambda _: b'{"text": "  "}',
    "not JSON": lambda _: b"{",
    "tombstone": lambda _: None,
}
_Document = tuple[int, str, int]
_Trim = tuple[int, float]
_Act = str | list[_Document] | _Trim
_DOCUMENTS: st.SearchStrategy[_Act] = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(sorted(_KINDS)), st.integers(0, 9)), max_size=12
)
_TRIMS: st.SearchStrategy[_Act] = st.tuples(st.integers(0, 2), st.floats(0, 1))
_STEPS: st.SearchStrategy[_Act] = st.sampled_from(
    ["sign", "renew", "restart", "abort", "doubt", "hand over to another"]
)
_FAILURES = {"abort": Aborted("rolled back"), "doubt": OutcomeUnknown("no answer")}


class Failing:
    """Lets the next transaction of *refingerprint* fail, in one way or the other."""

    def __init__(self) -> None:
        self.next: Exception | None = None

    def __call__(self, step: Step, group: str, instance: str, /) -> None:
        del instance
        if self.next is not None and group == "app.g1.refingerprint" and step == "commit":
            error, self.next = self.next, None
            raise error


@settings(max_examples=examples(60))
@given(
    acts=st.lists(st.one_of(_DOCUMENTS, _STEPS, _TRIMS), max_size=14),
    batch=st.integers(1, 20),
    frame_bytes=st.tuples(st.integers(600, 5_000), st.integers(300, 5_000)),
    buffer_bytes=st.sampled_from([1, 2_000, 20_000]),
)
def test_the_new_log_is_what_fingerprint_would_have_written_for_the_same_spans(
    acts: list[_Act], batch: int, frame_bytes: tuple[int, int], buffer_bytes: int
) -> None:
    logs = TwoLogs(3, batch=batch, frame_bytes=frame_bytes, buffer_bytes=buffer_bytes)
    logs.bus.faults = failing = Failing()
    for act in acts:
        logs.now += 1_000
        if isinstance(act, list):
            for partition, kind, number in act:
                logs.send(partition, _KINDS[kind](number))
        elif isinstance(act, tuple):
            _trim(logs, *act)
        else:
            _step(logs, failing, act)
    logs.sign()
    logs.hand_over()
    logs.renew()
    assert ended(logs)
    check(logs)


def _trim(logs: TwoLogs, partition: int, share: float) -> None:
    """Delete a share of the documents of a partition that *fingerprint* has read."""
    start = logs.bus.start_offset("documents", partition)
    place = TopicPartition("documents", partition)
    end = logs.bus.committed("app.fingerprint")[place] or 0
    logs.bus.trim(*place, start + int(share * (end - start)))


def _step(logs: TwoLogs, failing: Failing, step: str) -> None:
    match step:
        case "sign":
            logs.sign()
        case "renew":
            for _ in range(3):
                logs.refingerprint.step(0.0)
        case "restart":
            logs.restart()
        case "hand over to another":
            logs.hand_over(7)
        case _:
            failing.next = _FAILURES[step]


def test_blank_documents_are_set_aside_with_those_that_were_before() -> None:
    logs = TwoLogs(2)
    for number in range(5):
        logs.text(f"{WORDS} {number}", number % 2)
    logs.text("<p></p>")
    logs.send(0, None)
    logs.send(1, b"{")
    logs.sign()
    logs.renew()
    assert check(logs) == 0
    assert sum(len(frame.offsets) for _, frame in logs.frames(logs.target)) == 5
    assert logs.counts() == {"signed": 5, "blank": 1}


def test_documents_that_were_deleted_are_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    logs = TwoLogs()
    for number in range(6):
        logs.text(f"{WORDS} {number}")
    logs.sign()
    logs.bus.trim("documents", 0, 4)
    logs.renew()
    assert check(logs) == 4
    ((_, frame),) = logs.frames(logs.target)
    assert (frame.start, frame.end) == (0, 6)
    assert frame.offsets.tolist() == [4, 5]
    assert _accounted([frame]) == [0, 1, 2, 3]
    assert logs.counts() == {"signed": 2, "gone": 4}
    (said,) = [one.getMessage() for one in caplog.records if "deleted" in one.getMessage()]
    assert said.startswith("documents[0] offset 0: this document was deleted")


def test_documents_that_are_all_deleted_leave_an_empty_frame() -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.sign()
    logs.bus.trim("documents", 0, 1)
    logs.renew()
    ((_, frame),) = logs.frames(logs.target)
    assert (frame.start, frame.end, _accounted([frame])) == (0, 1, [0])


def test_a_payload_that_can_not_be_read_any_more_is_set_aside() -> None:
    logs = TwoLogs(limits=DocumentOptions(max_text_characters=20))
    logs.text(WORDS)
    logs.text("short")
    logs.sign()
    logs.renew()
    ((_, frame),) = logs.frames(logs.target)
    assert (frame.offsets.tolist(), _accounted([frame])) == ([1], [0])
    assert logs.counts() == {"signed": 1, "unreadable": 1}


@pytest.mark.parametrize("value", [b'{"text": "another"}', None])
def test_a_payload_that_was_not_judged_stops_it(value: bytes | None) -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.sign()
    logs.bus.delete_topic("documents")
    logs.bus.create_topic("documents", 1)
    logs.send(0, value)
    with pytest.raises(StageError, match=r"documents\[0\] offset 0: the payload is not the one"):
        logs.renew()
    assert not logs.frames(logs.target)


def test_a_document_past_the_end_stops_it() -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.text(WORDS)
    logs.sign()
    logs.bus.trim("documents", 0, 1)
    logs.bus.delete_topic("documents")
    logs.bus.create_topic("documents", 1)
    (_, frame), *_ = logs.frames(logs.source)
    late = msgspec.structs.replace(frame, start=7, end=9)
    logs.bus.append(Outgoing(logs.source.fingerprints, 0, None, encode(late)))
    logs.bus.commit_offsets("new", {logs.source.order: 0})
    logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
    with pytest.raises(StageError, match="truncated or recreated after its documents"):
        process(logs.stage, logs.bus.read(*ORDER, 0, 9)[1:])


def test_a_document_that_never_comes_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.sign()
    logs.bus.delete_topic("documents")
    logs.bus.create_topic("documents", 1)
    logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
    assert not process(logs.stage, logs.bus.read(*ORDER, 0, 9)).offsets
    for _ in range(1_250):
        assert not process(logs.stage, []).offsets
    said = [one.getMessage() for one in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("documents[0] offset 0: this document was judged, but can't be read")


def test_times_stay_those_of_the_earlier_log() -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.text(f"{WORDS} nine", timestamp=START + 10 * ALLOWANCE)
    logs.sign()
    ((record, frame),) = logs.frames(logs.source)
    earlier = msgspec.structs.replace(frame, times=np.array([NO_TIME, frame.times[1]]))
    logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
    logs.now += 1_000_000_000
    burst = process(logs.stage, [record._replace(value=encode(earlier))])
    (made,) = burst.records
    times = decode(FingerprintFrame, made.value, "new").times.tolist()
    assert times == [NO_TIME, START + ALLOWANCE]


class Died(BaseException):
    """The process is gone."""


class Mortal(Fingerprinter):
    """Dies of a text."""

    def sign(self, texts: Column) -> Signed:
        if any("poison" in text for text in texts):
            raise Died
        return super().sign(texts)


def test_a_document_that_kills_the_worker_three_times_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs = TwoLogs(2, fingerprinter=Mortal(NEW))
    for number in range(6):
        logs.text(f"poison {WORDS}" if number == 3 else f"{WORDS} {number}", number % 2)
    logs.sign()
    for _ in range(3):
        with pytest.raises(Died):
            logs.renew()
        logs.restart()
    logs.renew()
    documents = [
        (frame.partition, frame.start + offset)
        for _, frame in logs.frames(logs.target)
        for offset in frame.offsets.tolist()
    ]
    assert sorted(documents) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]
    aside = [_accounted([frame]) for _, frame in logs.frames(logs.target) if frame.partition]
    assert aside == [[1]]
    assert logs.counts() == {"signed": 5, "poison": 1}
    assert any(one.startswith("documents[1]@1 (") for one in caplog.messages)
    assert not logs.notes.documents().careful(RecordBatch.of(logs.sent))


class TestHandOver:
    def test_it_is_the_last_record_and_its_offset_the_last_one(self) -> None:
        logs = TwoLogs()
        logs.text(WORDS)
        logs.sign()
        logs.hand_over(3)
        logs.hand_over(1)
        logs.renew()
        assert ended(logs)
        committed = logs.committed()
        logs.text(WORDS)
        logs.sign()
        logs.hand_over(1)
        logs.renew()
        assert ended(logs)
        assert logs.committed() == committed
        burst = process(logs.stage, (), quiet={ORDER: 99})
        assert burst.held == {ORDER}
        assert not burst.offsets

    def test_what_follows_it_is_ignored(self) -> None:
        logs = TwoLogs(batch=1)
        logs.hand_over(1)
        for number in range(2):
            logs.text(f"{WORDS} {number}")
            logs.sign()
        logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
        log = logs.bus.read(*ORDER, 0, 9)
        burst = process(logs.stage, log[:2])
        assert burst.offsets == {ORDER: 1}
        after = process(logs.stage, log[2:])
        assert not after.offsets
        assert not after.more

    def test_it_has_the_new_layout_and_is_written_with_its_offset(self) -> None:
        logs = TwoLogs()
        logs.hand_over(1)
        logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
        burst = process(logs.stage, logs.bus.read(*ORDER, 0, 9))
        (made,) = burst.records
        assert made.value == HandOver("new", 1).encode()
        assert burst.offsets == {ORDER: 1}

    def test_one_that_was_rolled_back_is_written_again(self) -> None:
        logs = TwoLogs()
        logs.bus.faults = failing = Failing()
        failing.next = Aborted("rolled back")
        logs.hand_over(1)
        logs.renew()
        assert ended(logs)
        assert failing.next is None


class TestRoom:
    def test_a_burst_ends_with_the_frame_that_fills_it(self) -> None:
        logs = TwoLogs(batch=1)
        for number in range(4):
            logs.text(f"{WORDS} {number}")
            logs.sign()
        frames = logs.bus.read(*ORDER, 0, 100)
        logs.stage.adopt({ORDER: 0}, lambda _: (0, 100))
        burst = process(logs.stage, frames, room=1)
        assert (len(burst.records), burst.offsets) == (1, {ORDER: frames[0].offset + 1})
        assert burst.size == burst.records[0].size
        assert burst.more
        burst = process(logs.stage, [], room=1 << 20)
        assert (len(burst.records), burst.offsets) == (3, {ORDER: frames[-1].offset + 1})
        assert not burst.more

    def test_nothing_is_settled_while_a_frame_waits(self) -> None:
        logs = TwoLogs(batch=1)
        for number in range(3):
            logs.text(f"{WORDS} {number}")
            logs.sign()
        frames = logs.bus.read(*ORDER, 0, 100)
        logs.stage.adopt({ORDER: 0}, lambda _: (0, 100))
        process(logs.stage, frames, room=1)
        burst = process(logs.stage, [], room=1, quiet={ORDER: 50})
        assert burst.offsets == {ORDER: frames[1].offset + 1}
        burst = process(logs.stage, [], quiet={ORDER: 50})
        assert (len(burst.records), burst.offsets) == (1, {ORDER: 50})
        assert process(logs.stage, [], quiet={ORDER: 60}) == Burst([], {ORDER: 60}, 0)

    def test_frames_that_wait_pause_the_log_until_most_are_written(self) -> None:
        logs = TwoLogs(batch=1, buffer_bytes=4_000)
        for number in range(10):
            logs.text(f"{WORDS} {number}")
            logs.sign()
        logs.stage.adopt({ORDER: 0}, lambda _: (0, 100))
        burst = process(logs.stage, logs.bus.read(*ORDER, 0, 100), room=1)
        held = [burst.held]
        while burst.more:
            burst = process(logs.stage, [], room=1)
            held.append(burst.held)
        assert held == [{ORDER}] * 8 + [frozenset()] * 2


def test_it_continues_where_the_earlier_log_begins(caplog: pytest.LogCaptureFixture) -> None:
    logs = TwoLogs(batch=1)
    for number in range(3):
        logs.text(f"{WORDS} {number}")
        logs.sign()
    frames = logs.bus.read(*ORDER, 0, 100)
    logs.bus.trim(*ORDER, frames[1].offset)
    logs.renew()
    assert [frame.start for _, frame in logs.frames(logs.target)] == [1, 2]
    assert any("now begins at offset" in one.getMessage() for one in caplog.records)


@pytest.mark.parametrize("start", [0, 2])
def test_a_frame_out_of_place_is_refused(start: int) -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.sign()
    ((record, frame),) = logs.frames(logs.source)
    following = encode(msgspec.structs.replace(frame, start=start, end=start + 1))
    logs.stage.adopt({ORDER: 0}, lambda _: (0, 9))
    with pytest.raises(StageError, match=rf"from offset {start}, but 1 comes next"):
        process(logs.stage, [record, record._replace(offset=9, value=following)])


def test_allowed_texts_are_signed_anew(caplog: pytest.LogCaptureFixture) -> None:
    logs = TwoLogs()
    logs.text(WORDS)
    logs.correct(Allow("near", f"<p>{WORDS}</p>", by="ada"))
    logs.correct(Allow("nothing", "<p>"))
    logs.text(WORDS)
    logs.correct(Withdraw("near"))
    logs.sign()
    logs.hand_over()
    logs.renew()
    corrections = [one for _, frame in logs.frames(logs.target) for one in frame.corrections]
    assert [(one.offset, one.kind, one.id) for one in corrections] == [
        (1, Kind.NEAR, b"near"),
        (4, Kind.WITHDRAWN, b"near"),
    ]
    signed = Fingerprinter(NEW).sign([WORDS])
    assert corrections[0].sketch == signed.sketches[0].tobytes()
    assert corrections[0].key == signed.texts[0]
    assert "allowance 'nothing' is left out of the new index" in caplog.text
    assert check(logs) == 0
