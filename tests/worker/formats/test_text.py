"""Plain text as documents."""

from __future__ import annotations

import pytest

from tests.worker.formats.parts import TIME, read
from worker.formats.base import DocumentOptions
from worker.formats.choice import TextFormat
from worker.formats.unreadable import Unreadable

TEXT = TextFormat(DocumentOptions())


def test_plain_text_needs_no_json() -> None:
    assert read(b'{"not": parsed', b"k", kind="text") == (b"k", '{"not": parsed', TIME)


def test_no_character_is_a_reason_to_reject_a_text() -> None:
    text = "".join(map(chr, [*range(0x100), 0x200B, 0x202E, 0xFFFE, 0xE0001, 0x10FFFF]))
    assert read(text.encode(), b"k", kind="text") == (b"k", text, TIME)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("invalid-utf8", b"a\xff"),
        ("empty-text", b""),
        ("empty-text", b" \n"),
        ("text-too-long", b"x" * 101),
        ("too-large", b"x" * 2_000_000),
    ],
)
def test_every_unreadable_document_has_its_reason(code: str, value: bytes) -> None:
    with pytest.raises(Unreadable, match=f"^{code}: "):
        read(value, kind="text", max_text_characters=100)


@pytest.mark.parametrize("value", [b"a", b'{"id":"a","text":"b"}', b"\xff"])
def test_a_text_has_no_fields_and_takes_none(value: bytes) -> None:
    assert TEXT.identify(value) is None
    assert TEXT.fields(value) is None
    assert not TEXT.can_splice(value)
    assert TEXT.excerpt(value) == value.decode(errors="replace")
