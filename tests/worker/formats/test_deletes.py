"""What change feeds write when a row is deleted, and which document that is."""

from __future__ import annotations

import json

import pytest

from tests.worker.formats.parts import record
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.unreadable import Deleted, Unreadable

ENVELOPE = DocumentOptions(
    id_field="payload.after.id",
    text_fields=("payload.after.title", "payload.after.text"),
    deletes="forget",
    deleted_id_field="payload.before.id",
)
FLAT = DocumentOptions(deletes="forget")


def envelope(**members: object) -> bytes:
    return json.dumps({"schema": {"type": "struct"}, "payload": members}).encode()


def deleted(value: bytes, key: bytes | None = None, options: DocumentOptions = ENVELOPE) -> Deleted:
    """Return the delete that a record is."""
    with pytest.raises(Deleted) as caught:
        JsonFormat(options).read(record(value, key))
    return caught.value


def test_a_delete_names_the_document_by_the_field_for_deletes() -> None:
    found = deleted(envelope(op="d", before={"id": 5, "text": "x"}, after=None), b"key")
    assert found.id == b"5"
    assert str(found) == (
        "null-text: 'payload.after' is null; field 'payload.before.id' has the id"
    )


def test_a_delete_that_has_the_documents_own_id_field_names_it_by_that() -> None:
    row = {"id": 6, "title": None, "text": None}
    found = deleted(envelope(op="u", before={"id": 5}, after=row))
    assert found.id == b"6"
    assert "'payload.after.title' is null" in str(found) or "'payload.after.text'" in str(found)


@pytest.mark.parametrize("before", [None, {}, {"id": None}])
def test_a_delete_without_an_id_names_the_document_by_its_key(before: object) -> None:
    value = envelope(op="d", before=before, after=None)
    assert deleted(value, (128).to_bytes(8, "big")).id == b"hex:0000000000000080"
    with pytest.raises(
        Unreadable, match=r"^no-id: .*'payload.after' is null, and it names no"
    ) as e:
        JsonFormat(ENVELOPE).read(record(value))
    assert "no field 'payload.before.id' and no key" in str(e.value)


@pytest.mark.parametrize("value", [b'{"id":"a","text":null}', b'{"text":null,"id":"a"}'])
def test_a_flat_record_without_a_text_is_a_delete(value: bytes) -> None:
    assert deleted(value, b"key", FLAT).id == b"a"


@pytest.mark.parametrize("value", [b'{"text":null}', b"null"])
def test_a_flat_record_may_have_its_id_in_the_key(value: bytes) -> None:
    assert deleted(value, b"key", FLAT).id == b"key"


@pytest.mark.parametrize(
    ("code", "before"), [("id-wrong-type", {"id": [5]}), ("bad-id", {"id": "i" * 2_000})]
)
def test_an_id_that_can_be_none_is_no_documents(code: str, before: object) -> None:
    value = envelope(op="d", before=before, after=None)
    with pytest.raises(Unreadable, match=f"^{code}: ") as caught:
        JsonFormat(ENVELOPE).read(record(value, b"key"))
    assert not isinstance(caught.value, Deleted)


@pytest.mark.parametrize(
    "value",
    [
        envelope(op="c", before=None, after={"id": 5, "text": "a"}),
        envelope(op="u", before={"id": 5, "text": "x"}, after={"id": 5, "title": "a"}),
        envelope(op="r", before=None, after={"id": 5, "title": "a", "text": None}),
    ],
)
def test_what_has_a_text_is_a_document(value: bytes) -> None:
    assert JsonFormat(ENVELOPE).read(record(value)) == (b"5", "a", record(b"").timestamp)


def test_what_has_no_such_field_is_neither() -> None:
    with pytest.raises(Unreadable, match=r"^no-text: ") as caught:
        JsonFormat(ENVELOPE).read(record(envelope(op="c", after={"id": 5, "body": "a"})))
    assert not isinstance(caught.value, Deleted)


def test_by_default_it_is_no_delete() -> None:
    with pytest.raises(Unreadable, match=r"^null-text: 'payload' is null") as caught:
        JsonFormat(DocumentOptions(text_fields=("payload.after.text",))).read(
            record(b'{"payload":null}', b"key")
        )
    assert not isinstance(caught.value, Deleted)


def test_a_delete_is_known_by_its_id() -> None:
    """So `neardup feed` sends it where it sent the document."""
    documents = JsonFormat(ENVELOPE)
    assert documents.identify(envelope(op="d", before={"id": 5}, after=None)) == b"5"
    update = envelope(op="u", before={"id": 5}, after={"text": "a"})
    assert documents.identify(update) is None
