"""The settings choose the format, its fields and its limits."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from tests.worker.formats.parts import record
from worker.formats.choice import TextFormat, document_format, key_format, line_format
from worker.formats.json import JsonFormat
from worker.formats.keys import KeyKind
from worker.formats.unreadable import Unreadable
from worker.settings.model import Settings

DEEP = b'{"id":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def settings(**sections: object) -> Settings:
    return Settings.model_validate(sections)


def test_the_format_is_the_one_that_is_named() -> None:
    assert isinstance(document_format(settings()), JsonFormat)
    assert isinstance(document_format(settings(documents={"format": "text"})), TextFormat)


def test_fields_are_those_of_the_settings() -> None:
    fields = {"id_field": "key", "text_fields": ["title", "body"], "time_field": "at"}
    fields["time_format"] = "%Y%m%d"
    found = document_format(settings(documents=fields)).read(
        record(b'{"body":"two","at":20231114,"key":"k","title":"one","id":"no","text":"no"}')
    )
    assert found == (b"k", "one\ntwo", 1_699_920_000_000)


@pytest.mark.parametrize(
    ("code", "section", "name", "limit", "value"),
    [
        ("text-too-long", "limits", "text_characters", 3, {"text": "four"}),
        ("bad-id", "limits", "id_bytes", 96, {"id": "i" * 97, "text": "a"}),
        ("too-large", "limits", "record_bytes", 32_768, {"text": "a" * 8_000}),
        ("no-id", "documents", "require_id", True, {"text": "a"}),
    ],
)
def test_limits_are_those_of_the_settings(
    code: str, section: str, name: str, limit: object, value: object
) -> None:
    given = record(json.dumps(value).encode())
    document_format(settings()).read(given)
    with pytest.raises(Unreadable, match=f"^{code}: "):
        document_format(settings(**{section: {name: limit}})).read(given)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (b'{"id": "a\xc3\xa4", "text": "t"}', "aä".encode()),
        (b'{"text": "t", "id": 7}', b"7"),
        (b'{"text": "t"}', None),
        (b'{"id": null}', None),
        (b'{"id": [1]}', None),
        (b'{"id": true}', None),
        (b'{"id": ""}', None),
        (b'["id"]', None),
        (b"not json", None),
        (b'{"id": "\xff"}', None),
        (b"", None),
        (DEEP, None),
    ],
)
def test_the_key_is_the_field_if_it_can_be_one(value: bytes, key: bytes | None) -> None:
    assert key_format(settings(), None).identify(value) == key
    assert key_format(settings(documents={"id_field": "x"}), "id").identify(value) == key


def test_a_field_may_be_named_anything() -> None:
    assert key_format(settings(), "doc.id/é").identify('{"doc.id/é": "x"}'.encode()) == b"x"


def test_a_key_may_be_longer_than_an_id() -> None:
    value = json.dumps({"id": "i" * 5_000}).encode()
    assert document_format(settings()).identify(value) is None
    assert key_format(settings(), None).identify(value) == b"i" * 5_000


def test_text_has_a_key_only_if_its_field_is_named() -> None:
    text = settings(documents={"format": "text"})
    assert key_format(text, None).identify(b'{"id": "a"}') is None
    assert key_format(text, "id").identify(b'{"id": "a"}') == b"a"


@pytest.mark.parametrize("kind", get_args(KeyKind))
def test_the_name_of_a_line_is_an_id_whatever_keys_are(kind: str) -> None:
    documents = {"key": kind, "require_id": True}
    registry = {"url": "http://127.0.0.1:1"} if kind == "registry" else {}
    if registry:
        documents["format"] = "registry"
    given = settings(documents=documents, registry=registry)
    assert line_format(given).read(record(b'{"text": "a"}', b"docs.jsonl:7")).id == b"docs.jsonl:7"
