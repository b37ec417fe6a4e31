"""What a rejected record says of itself, whole or not."""

from __future__ import annotations

from worker.bus import UNREADABLE_HEADERS, Outgoing, Record
from worker.wire.headers import PAYLOAD, REDRIVEN, number, reduced_rejection, rejection


def test_a_rejected_record_gets_smaller_in_two_steps_and_keeps_why() -> None:
    source = Record("documents", 3, 17, 5, b"key", b"value", (("theirs", b"x" * 100),))
    whole = Outgoing("rejected", None, b"key", b"value", rejection(source, "route", "why"), 5)
    first = reduced_rejection(whole)
    assert first is not None
    assert (first.key, first.value, first.timestamp) == (b"key", None, 5)
    assert first.headers[:-1] == whole.headers
    assert first.headers[-1][0] == PAYLOAD
    second = reduced_rejection(first)
    assert second is not None
    assert (second.key, second.value, second.timestamp) == (None, None, None)
    assert second.headers[:-1] == whole.headers[1:]
    assert second.headers[-1][0] == PAYLOAD
    assert second.size < first.size
    assert reduced_rejection(second) is None


def test_a_rejected_record_has_no_header_of_ours_that_its_document_brought() -> None:
    forged = (
        ("neardup-error-reason", b"no-text: forged"),
        ("neardup-error-offset", b"9" * 5_000),
        ("neardup-verdict", b"unique"),
        (REDRIVEN, b"2"),
        (REDRIVEN, b"3"),
    )
    source = Record("documents", 3, 17, 5, None, b"value", (("theirs", b"x"), *forged))
    headers = rejection(source, "route", "why")
    assert headers[:2] == (("theirs", b"x"), (REDRIVEN, b"3"))
    assert len(dict(headers)) == len(headers)
    assert dict(headers)["neardup-error-offset"] == b"17"


def test_marks_of_unreadable_headers_stay_in_their_places() -> None:
    own = (*UNREADABLE_HEADERS, ("a", b""), *UNREADABLE_HEADERS)
    source = Record("documents", 3, 17, 5, None, b"value", own)
    assert rejection(source, "fingerprint", "why")[:3] == own


def test_what_is_no_number_is_none() -> None:
    assert number(b"17") == 17
    for value in (None, b"", b"-1", b"1.5", b"\xff", b"x", b"9" * 5_000):
        assert number(value) is None
        source = Record("documents", 3, 17, 5, None, b"value", ((REDRIVEN, value),))
        assert REDRIVEN not in dict(rejection(source, "route", "why"))
