"""An error that nobody has foreseen costs the record that raises it, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh import Fingerprinter, Parameters
from lsh._core import Signed
from tests.support.notes import KeptNotes
from tests.support.refingerprinting import NEW, TwoLogs
from tests.support.stages import (
    DOCS,
    LAYOUT,
    PARAMETERS,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
)
from worker.bus import Away, Record, RecordBatch
from worker.bus.deadly_documents import DeadlyDocuments
from worker.formats.base import DocumentOptions
from worker.formats.registry.client import Fetched
from worker.formats.registry.documents import RegistryFormat
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.guard import Guard
from worker.stages.reject_limit import RejectLimit
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.headers import CORRECTION, REASON

BAD = "nobody has foreseen this"
NESTED = b'{"kind":"withdraw","id":"x","z":' + b"[" * 20_000 + b"]" * 20_000 + b"}"


class Surprised(Fingerprinter):
    """Fails at some texts."""

    def __init__(
        self, error: Callable[[], Exception] | None = None, parameters: Parameters = PARAMETERS
    ) -> None:
        super().__init__(parameters)
        self._error = error or (lambda: RecursionError("so\ndeep"))

    def sign(self, texts: Iterable[str]) -> Signed:
        if any(BAD in text for text in texts):
            raise self._error()
        return super().sign(texts)


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(1, 4))
def test_whatever_fails_the_others_are_done_in_order(
    count: int, bad: set[int], partitions: int
) -> None:
    calls = 0

    def read(parts: Sequence[RecordBatch]) -> list[str]:
        nonlocal calls
        calls += 1
        offsets = [record.offset for part in parts for record in part]
        if bad.intersection(offsets):
            raise ValueError
        return [str(offset) for offset in offsets]

    def failed(part: RecordBatch, error: Exception) -> list[str]:
        assert isinstance(error, ValueError)
        return [f"failed {part.record(0).offset}"]

    guard = Guard(DeadlyDocuments("documents"), read, failed, lambda _: ["never"])
    share = -(-count // partitions)
    batches = RecordBatch.of(
        Record("documents", offset // share, offset, -1, None, None) for offset in range(count)
    )
    done = guard.done(batches, batches)
    expected = [f"failed {at}" if at in bad else str(at) for at in range(count)]
    assert list(chain.from_iterable(done)) == expected
    assert calls <= 1 + len(bad) * 2 * (count.bit_length() + 1)


@pytest.mark.parametrize("bad", [(0,), (7,), (3, 4), (0, 5, 9), tuple(range(10))])
def test_a_document_that_raises_is_rejected_and_all_others_are_signed(
    bad: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    stage = fingerprint(
        RejectLimit(share=0.5, window=10), fingerprinter=Surprised(), metrics=metrics
    )
    stage.adopt({DOCS: 0}, no_watermarks)
    unreadable = document(10)._replace(value=b"{")
    sent = [document(n, f"text {n} {BAD if n in bad else 'is as it should be'}") for n in range(10)]
    burst = process(stage, [*sent, unreadable, Record("documents", 0, 11, 1, b"k", None)])
    stage.committed()
    frames = [
        decode(FingerprintFrame, one.value, LAYOUT)
        for one in records(burst.records, "app.fingerprints")
    ]
    assert [a.end for a in frames[:-1]] == [b.start for b in frames[1:]]
    assert (frames[0].start, frames[-1].end) == (0, 12)
    judged = [frame.start + offset for frame in frames for offset in frame.offsets.tolist()]
    assert judged == [n for n in range(10) if n not in bad]
    reasons = [dict(one.headers)[REASON] for one in records(burst.records, "rejected")]
    assert reasons[:-1] == [b"poison: RecursionError: so deep"] * len(bad)
    assert (reasons[-1] or b"").startswith(b"not-json")
    assert metrics.value(table.REJECTED, "poison") == len(bad)
    assert metrics.value(table.REJECTED, "not-json") == 1
    told = [one for one in caplog.records if one.exc_info]
    assert [one.getMessage().partition(".")[0] for one in told] == [
        f"documents[0]@{bad[0]}: rejected as poison: RecursionError: so deep"
    ]


def test_what_is_no_record_s_fault_ends_the_stage_s_turn() -> None:
    notes = KeptNotes()
    away = Surprised(lambda: Away("the registry is away"))
    stage = fingerprint(fingerprinter=away, deaths=notes.documents())
    stage.adopt({DOCS: 0}, no_watermarks)
    with pytest.raises(Away):
        process(stage, [document(0, BAD)])
    assert not notes.documents().careful(RecordBatch.of([document(0)]))


def test_a_correction_that_nests_deeply_is_rejected_as_such() -> None:
    stage = fingerprint()
    stage.adopt({DOCS: 0}, no_watermarks)
    nested = Record("documents", 0, 0, 1, b"k", None, ((CORRECTION, NESTED),))
    (rejected,) = records(process(stage, [nested]).records, "rejected")
    assert dict(rejected.headers)[REASON] == b"bad-correction: it is nested too deeply"


@pytest.mark.parametrize("kind", ["allow", "withdraw"])
def test_the_id_of_a_correction_is_no_longer_than_that_of_a_document(kind: str) -> None:
    for size, fits in ((1_024, True), (1_025, False), (990_000, False)):
        header = b'{"kind":"%s","id":"%s","text":"a text"}' % (kind.encode(), b"i" * size)
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        sent = Record("documents", 0, 0, 1, b"k", None, ((CORRECTION, header),))
        burst = process(stage, [sent])
        (frame,) = records(burst.records, "app.fingerprints")
        assert len(decode(FingerprintFrame, frame.value, LAYOUT).corrections) == fits
        reasons = [dict(one.headers)[REASON] for one in records(burst.records, "rejected")]
        said = f"bad-correction: its id has {size:,} bytes; limits.id_bytes is 1,024".encode()
        assert reasons == ([] if fits else [said])


def test_the_time_in_which_others_are_waited_for_makes_no_poison() -> None:
    notes = KeptNotes()
    for _ in range(3):
        deaths = notes.documents()
        deaths.reading_alone(document(0))
        waits = deaths.waiting()
        waits.__enter__()  # And there it dies.
    deaths = notes.documents()
    assert not deaths.poison(document(0))
    with deaths.waiting():
        pass
    deaths.reading_alone(document(0))
    notes.documents().reading_alone(document(0))
    assert notes.documents().poison(document(0))


def test_asking_a_registry_is_such_a_time_and_making_a_decoder_is_not() -> None:
    waits: list[str] = []

    @contextmanager
    def waiting() -> Iterator[None]:
        waits.append("begins")
        yield
        waits.append("ends")

    def fetch(idents: Sequence[int | str]) -> list[Fetched]:
        waits.append(f"asked for {idents}")
        return [Fetched("AVRO", '{"type": "record", "name": "r", "fields": []}', [])]

    reader = RegistryFormat(DocumentOptions(), None, fetch)
    reader.waiting = waiting
    reader.prepare(RecordBatch.of([document(0)._replace(value=b"\0\0\0\0\7")]))
    assert waits == ["begins", "asked for [7]", "ends"]


def test_a_payload_that_raises_is_left_out_of_the_new_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logs = TwoLogs(2, fingerprinter=Surprised(parameters=NEW))
    for number in range(8):
        text = f"the words of a text that is long enough to be signed, number {number}"
        logs.text(f"{text} {BAD}" if number in {3, 4} else text, number % 2)
    logs.sign()
    logs.renew()
    documents = [
        (frame.partition, frame.start + offset)
        for _, frame in logs.frames(logs.target)
        for offset in frame.offsets.tolist()
    ]
    assert sorted(documents) == [(0, 0), (0, 1), (0, 3), (1, 0), (1, 2), (1, 3)]
    assert logs.counts() == {"signed": 6, "poison": 2}
    assert "rejected as poison: RecursionError: so deep" in caplog.text
