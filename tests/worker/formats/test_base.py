"""What holds for documents of every format: ids, times, and what they may measure."""

from __future__ import annotations

import pytest

from lsh.index import NO_TIME
from tests.worker.formats.parts import TIME, formats, read, record
from worker.bus import UNREADABLE_HEADERS
from worker.formats.base import DocumentFormat, DocumentOptions, Unreadable, headers_size
from worker.formats.json import JsonFormat

VALUE = {"json": b'{"text":"a"}', "text": b"a"}


@pytest.mark.parametrize("kind", VALUE)
def test_without_an_id_in_the_payload_it_is_the_key_else_the_position(kind: str) -> None:
    assert read(VALUE[kind], b"key", kind=kind)[0] == b"key"
    assert read(VALUE[kind], None, kind=kind)[0] == b"docs-3-17"


@pytest.mark.parametrize("kind", VALUE)
@pytest.mark.parametrize(
    ("key", "detail"),
    [
        (b"\xff", "the key, which is the id, is not UTF-8"),
        (b"", "the id is empty"),
        (b"k" * 17, "the id has 17 bytes; the limit is 16"),
    ],
)
def test_a_key_that_must_serve_as_id_has_to_be_one(kind: str, key: bytes, detail: str) -> None:
    with pytest.raises(Unreadable, match=f"^bad-id: {detail}$"):
        read(VALUE[kind], key, kind=kind, max_id_bytes=16)


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
def test_a_tombstone_forgets_the_id_that_its_key_is(documents: DocumentFormat) -> None:
    for key in (b"key", "ä€".encode(), b"docs-3-17"):
        assert documents.forgotten(record(b"", key)._replace(value=None)) == key


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("key", [None, b"", b"\xff", b"k" * 1_025])
def test_a_tombstone_whose_key_is_no_id_forgets_nothing(
    documents: DocumentFormat, key: bytes | None
) -> None:
    with pytest.raises(Unreadable, match=r"^bad-id: "):
        documents.forgotten(record(b"", key)._replace(value=None))


@pytest.mark.parametrize("kind", VALUE)
def test_an_id_can_be_required(kind: str) -> None:
    with pytest.raises(Unreadable, match="no-id"):
        read(VALUE[kind], kind=kind, require_id=True)


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
def test_a_records_own_time_must_be_plausible(documents: DocumentFormat) -> None:
    value = b'{"text":"a"}'
    with pytest.raises(Unreadable, match="bad-time"):
        documents.read(record(value, timestamp=253_402_300_799_000))
    assert documents.read(record(value, timestamp=-1)).time == NO_TIME


def test_what_has_no_time_where_it_should_be_has_none() -> None:
    """The record's time is when it was sent, which may be years later."""
    value = b'{"text":"a","at":null}'
    assert read(value, time_field="at").time == NO_TIME
    assert read(value).time == TIME
    assert read(value, kind="text", time_field="at").time == TIME


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
def test_a_header_whose_name_is_not_utf8_makes_a_document_unreadable(
    documents: DocumentFormat,
) -> None:
    with pytest.raises(Unreadable, match=r"^bad-headers: "):
        documents.read(record(b'{"text":"a"}')._replace(headers=UNREADABLE_HEADERS))


def test_key_headers_and_value_count_together() -> None:
    given = record(b'{"text":"a"}', b"key")._replace(headers=(("name", b"value"), ("none", None)))
    size = len(b'{"text":"a"}') + len(b"key") + headers_size(given.headers)
    assert JsonFormat(DocumentOptions(max_record_bytes=size)).read(given).id == b"key"
    with pytest.raises(Unreadable, match=f"^too-large: {size} bytes of key, headers and value"):
        JsonFormat(DocumentOptions(max_record_bytes=size - 1)).read(given)


def test_a_limit_of_id_bytes_counts_utf8() -> None:
    exact = JsonFormat(DocumentOptions(max_id_bytes=16))
    assert exact.identify('{"id":"ääääääää"}'.encode()) == ("ä" * 8).encode()
    assert exact.identify('{"id":"äääääääää"}'.encode()) is None
