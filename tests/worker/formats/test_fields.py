"""What single fields hold."""

from __future__ import annotations

import pytest

from worker.formats.fields import kind_of, time_of, utf8
from worker.formats.unreadable import Unreadable

TIME = 1_700_000_000_000


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2023-11-14T22:13:20Z", TIME),
        ("2023-11-14T22:13:20", TIME),
        ("2023-11-14T23:13:20+01:00", TIME),
        (1_700_000_000, TIME),
        (1_700_000_000.5, TIME + 500),
        (TIME, TIME),
        (-5, -5_000),
    ],
)
def test_a_time_is_iso_8601_or_seconds_or_milliseconds(given: object, expected: int) -> None:
    assert time_of(given, "at") == expected


@pytest.mark.parametrize(
    ("given", "code", "detail"),
    [
        ("noon", "bad-time", "is not an ISO 8601 time"),
        (1e300, "bad-time", "is 1e\\+300, neither seconds nor milliseconds"),
        (True, "time-wrong-type", "is a boolean, not a time"),
        ([], "time-wrong-type", "is an array, not a time"),
    ],
)
def test_what_is_no_time_is_named(given: object, code: str, detail: str) -> None:
    with pytest.raises(Unreadable, match=f"^{code}: field 'at' {detail}$"):
        time_of(given, "at")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ({}, "an object"),
    ],
)
def test_kinds_have_the_names_of_json(value: object, kind: str) -> None:
    assert kind_of(value) == kind


def test_what_is_no_utf8_is_found() -> None:
    assert utf8("ä".encode()) == "ä"
    with pytest.raises(Unreadable, match=r"^invalid-utf8: invalid start byte at byte 1$") as caught:
        utf8(b"a\xff")
    assert caught.value.code == "invalid-utf8"
