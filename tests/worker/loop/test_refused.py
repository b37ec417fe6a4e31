"""A line about refused records names one of them, and what to do."""

from worker.bus import Outgoing, Record
from worker.loop.transactions import described
from worker.wire.headers import SOURCE, rejection

WHY = "transaction of a.route.one: Broker failed to validate record (INVALID_RECORD)"


def unique(offset: int, key: bytes | None, value: bytes = b"x") -> Outgoing:
    return Outgoing("a.unique", 0, key, value, ((SOURCE, b"my-documents-3-%d" % offset),))


def test_a_compacted_output_names_the_document_without_a_key() -> None:
    batch = [unique(4, b"key", b"long" * 100), unique(5, None), unique(6, None)]
    said = described(WHY, batch, "INVALID_RECORD")
    assert said.startswith(WHY)
    assert "the document my-documents[3] offset 5 has none (1 more in this batch)" in said
    assert "Set cleanup.policy=delete on a.unique" in said


def test_another_refusal_names_the_largest() -> None:
    batch = [unique(4, b"key", b"long" * 100), unique(5, None)]
    said = described(WHY, batch, "MSG_SIZE_TOO_LARGE")
    assert "a.unique refuses, for one, the document my-documents[3] offset 4: 4" in said
    assert "max.message.bytes" in said


def test_a_rejected_record_names_its_source() -> None:
    record = Record("documents", 2, 7, 1, None, b"x")
    own = Outgoing("a.rejected", None, None, b"x", rejection(record, "fingerprint", "no-text: …"))
    assert "the document documents[2] offset 7 has none." in described(WHY, [own], "INVALID_RECORD")


def test_a_frame_has_no_source() -> None:
    frame = Outgoing("a.fingerprints", 0, None, b"frame")
    assert "a record for a.fingerprints: 5 bytes" in described(WHY, [frame], "MSG_SIZE_TOO_LARGE")
    assert described(WHY, [], "MSG_SIZE_TOO_LARGE") == WHY
