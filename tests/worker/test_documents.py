"""What can be read, and the reason for everything that can't."""

from __future__ import annotations

import json

import pytest

from worker.bus import Record
from worker.documents import DocumentFormat, DocumentReader, Unreadable

TIME = 1_700_000_000_000


def record(value: bytes, key: bytes | None = None, timestamp: int = TIME) -> Record:
    return Record("docs", 3, 17, timestamp, key, value)


def read(value: bytes, key: bytes | None = None, **format_: object) -> tuple[bytes, str, int]:
    reader = DocumentReader(DocumentFormat(**format_))  # type: ignore[arg-type]
    return tuple(reader.read(record(value, key)))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        (b'{"id":"a","text":"hello"}', None, b"a"),
        (b'{"id":"a","text":"hello"}', b"key", b"a"),
        (b'{"id":12,"text":"hello"}', None, b"12"),
        (b'{"text":"hello"}', b"key", b"key"),
        (b'{"id":null,"text":"hello"}', b"key", b"key"),
        (b'{"text":"hello"}', None, b"docs-3-17"),
        ('{"id":"ä","text":"hello"}'.encode(), None, "ä".encode()),
    ],
)
def test_the_id_is_the_fields_else_the_keys_else_the_position(
    value: bytes, key: bytes | None, expected: bytes
) -> None:
    assert read(value, key) == (expected, "hello", TIME)


def test_texts_are_joined_in_the_order_of_the_settings() -> None:
    value = b'{"body":"two","title":"one","id":"a"}'
    assert read(value, text_fields=("title", "body"))[1] == "one\ntwo"
    assert read(b'{"body":"two"}', text_fields=("title", "body"))[1] == "two"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('"2023-11-14T22:13:20Z"', TIME),
        ('"2023-11-14T22:13:20"', TIME),
        ('"2023-11-14T23:13:20+01:00"', TIME),
        ("1700000000", TIME),
        ("1700000000.5", TIME + 500),
        ("1700000000000", TIME),
        ("null", TIME),
    ],
)
def test_times(given: str, expected: int) -> None:
    value = f'{{"text":"x","at":{given}}}'.encode()
    assert read(value, time_field="at")[2] == expected


def test_plain_text_needs_no_json() -> None:
    assert read(b'{"not": parsed', b"k", kind="text") == (b"k", '{"not": parsed', TIME)


DEEP = b'{"text":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DEEP_TEXT = b'{"text":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("not-json", b"hello"),
        ("not-json", b""),
        ("not-json", b'{"text":"a"} trailing'),
        ("not-json", b'{"text":"a","x":NaN}'),
        ("not-json", b'{"text":"\\ud800"}'),
        ("not-json", b'{"text":"\\udc00\\ud800"}'),
        ("not-json", b'{"text":"a\x00b"}'),
        ("not-an-object", b"[1,2]"),
        ("not-an-object", b'"text"'),
        ("not-an-object", b"null"),
        ("no-text", b'{"id":"a"}'),
        ("no-text", b'{"id":"a","text":null}'),
        ("text-wrong-type", b'{"text":["a"]}'),
        ("text-wrong-type", b'{"text":5}'),
        ("empty-text", b'{"text":""}'),
        ("empty-text", b'{"text":" \\n\\t\\u00a0"}'),
        ("invalid-utf8", b'{"text":"\xff"}'),
        ("invalid-utf8", b'{"text":"a","other":"\xc3"}'),
        ("nul", b'{"text":"a\\u0000b"}'),
        ("text-too-long", json.dumps({"text": "x" * 101}).encode()),
        ("too-large", json.dumps({"text": "x", "other": "y" * 2_000_000}).encode()),
        ("too-deep", DEEP),
        ("too-deep", DEEP_TEXT),
        ("bad-id", b'{"id":"","text":"a"}'),
        ("bad-id", b'{"id":1.5,"text":"a"}'),
        ("bad-id", b'{"id":true,"text":"a"}'),
        ("bad-id", b'{"id":["a"],"text":"a"}'),
        ("bad-id", json.dumps({"id": "i" * 1_000_00, "text": "a"}).encode()),
        ("bad-time", b'{"text":"a","at":"NaN"}'),
        ("bad-time", b'{"text":"a","at":"9999-12-31T00:00:00Z"}'),
        ("bad-time", b'{"text":"a","at":253402214400}'),
        ("bad-time", b'{"text":"a","at":1e300}'),
        ("bad-time", b'{"text":"a","at":-5}'),
        ("bad-time", b'{"text":"a","at":true}'),
    ],
)
def test_every_unreadable_document_has_its_reason(code: str, value: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        read(value, time_field="at", max_text_characters=100)
    assert caught.value.code == code
    assert str(caught.value).startswith(f"{code}: ")


def test_a_key_that_must_serve_as_id_has_to_be_utf8() -> None:
    with pytest.raises(Unreadable, match="bad-id"):
        read(b'{"text":"a"}', b"\xff")


def test_an_id_can_be_required() -> None:
    with pytest.raises(Unreadable, match="no-id"):
        read(b'{"text":"a"}', require_id=True)


def test_a_records_own_time_must_be_plausible() -> None:
    reader = DocumentReader(DocumentFormat())
    with pytest.raises(Unreadable, match="bad-time"):
        reader.read(record(b'{"text":"a"}', timestamp=253_402_300_799_000))
    assert reader.read(record(b'{"text":"a"}', timestamp=-1)).time == -1
