"""Messages name the fields that documents have, whatever these are called."""

from __future__ import annotations

import json

import pytest

from worker.formats.base import DocumentOptions
from worker.formats.choice import document_format, watched_fields
from worker.formats.first_documents import FieldWatch, SeenFields
from worker.formats.json import JsonFormat
from worker.settings.model import Settings


def test_the_most_frequent_names_come_first() -> None:
    seen = SeenFields()
    seen.add(["once", "often"])
    seen.add(["often"])
    assert str(seen) == "'often', 'once'"
    seen.clear()
    assert str(seen) == "no fields"


def test_names_of_strangers_are_bounded_and_escaped() -> None:
    seen = SeenFields()
    seen.add(["\x1b[2J\n\u202e\ud800", "x" * 100_000])
    seen.add(str(number) for number in range(100_000))
    text = str(seen)
    assert text.isprintable()
    assert len(text) < 200
    assert text.startswith(r"'\x1b[2J\n\u202e\ud800', '" + "x" * 40 + "…'")
    assert text.endswith(", …")


def watch(*fields: str, enough: int = 3, **options: object) -> FieldWatch:
    documents = JsonFormat(DocumentOptions(**options))  # type: ignore[arg-type]
    return FieldWatch(documents, fields, enough=enough)


def test_a_field_that_no_document_has_is_named_once() -> None:
    watched = watch("body", "text", text_fields=("text", "body"))
    value = b'{"text": "a", "headline": "b", "body": null}'
    assert [watched.add(value) for _ in range(3)][:2] == [None, None]
    assert watched.add(value) is None
    assert watched.warning() == (
        "none of the first 3 documents has a value in field 'body'; the fields they have:"
        " 'text', 'headline', 'body'"
    )


def test_the_last_of_the_first_documents_brings_the_warning() -> None:
    watched = watch("text", enough=2)
    assert watched.add(b'{"body": 1}') is None
    said = watched.add(b'{"body": 1}')
    assert said is not None
    assert "'text'" in said


def test_one_document_with_the_field_is_enough() -> None:
    watched = watch("text", "data.at", time_field="data.at")
    given = [{"text": "a"}, {"x": 1}, {"data": {"at": 5}}]
    assert [watched.add(json.dumps(each).encode()) for each in given] == [None] * 3
    assert watched.warning() is None


@pytest.mark.parametrize("value", [b"no JSON", b"[1]", b""])
def test_what_is_no_object_tells_nothing(value: bytes) -> None:
    watched = watch("text", enough=1)
    assert watched.add(value) is None
    assert watched.warning() is None


@pytest.mark.parametrize(
    ("section", "fields"),
    [
        ({}, ("text",)),
        ({"text_fields": ["a", "b.c"], "id_field": "key", "time_field": "at"}, "a b.c key at"),
        ({"format": "text", "id_field": "key"}, ()),
    ],
)
def test_the_settings_name_what_is_watched(section: object, fields: tuple[str, ...] | str) -> None:
    settings = Settings.model_validate({"documents": section})
    expected = tuple(fields.split()) if isinstance(fields, str) else fields
    assert watched_fields(settings) == expected
    assert FieldWatch(document_format(settings), expected).add(b'{"text": "a"}') is None
