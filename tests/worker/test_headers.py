"""What a rejected record says of itself, whole or not."""

from __future__ import annotations

from worker.bus import Outgoing, Record
from worker.headers import PAYLOAD, reduced_rejection, rejection


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
