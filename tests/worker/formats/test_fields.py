"""What single fields hold."""

from __future__ import annotations

import pytest

from worker.formats.unreadable import Unreadable, kind_of, utf8


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
