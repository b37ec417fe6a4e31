"""What holds for documents of every format: ids, times, and what they may measure."""

from __future__ import annotations

from typing import get_args

import pytest

from lsh.index import NO_TIME
from tests.support.ids_of_keys import ODD_KEYS, id_of_key
from tests.worker.formats.parts import TIME, formats, is_read_at_once, read, record
from worker.bus import UNREADABLE_HEADERS
from worker.formats.base import DocumentFormat, DocumentOptions, headers_size
from worker.formats.json import JsonFormat
from worker.formats.keys import KeyKind
from worker.formats.unreadable import Unreadable
from worker.wire.headers import FORGET

VALUE = {"json": b'{"text":"a"}', "text": b"a"}


@pytest.mark.parametrize("kind", VALUE)
def test_without_an_id_in_the_payload_it_is_the_key_else_the_position(kind: str) -> None:
    assert read(VALUE[kind], b"key", kind=kind)[0] == b"key"
    assert read(VALUE[kind], None, kind=kind)[0] == b"docs-3-17"


@pytest.mark.parametrize("kind", VALUE)
@pytest.mark.parametrize("key", ODD_KEYS)
def test_no_key_costs_a_document(kind: str, key: bytes) -> None:
    assert read(VALUE[kind], key, kind=kind)[0] == id_of_key(key)
    made = formats()[list(VALUE).index(kind)]
    assert made.forgotten(record(b"", key)._replace(value=None)) == id_of_key(key)


@pytest.mark.parametrize("kind", VALUE)
def test_without_a_key_or_if_keys_are_ignored_the_position_is_the_id(kind: str) -> None:
    for key in (None, b""):
        assert read(VALUE[kind], key, kind=kind)[0] == b"docs-3-17"
    assert read(VALUE[kind], b"key", kind=kind, key="ignore")[0] == b"docs-3-17"


@pytest.mark.parametrize("kind", VALUE)
def test_keys_are_what_the_settings_say(kind: str) -> None:
    assert read(VALUE[kind], b"\0\0\0\0\0\0\0\x80", kind=kind, key="long")[0] == b"128"
    assert read(VALUE[kind], b"abc", kind=kind, key="bytes")[0] == b"hex:616263"
    with pytest.raises(Unreadable, match=r"^bad-id: .* documents\.key is long"):
        read(VALUE[kind], b"128", kind=kind, key="long")


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
def test_usual_documents_are_read_at_once_and_others_one_by_one(documents: DocumentFormat) -> None:
    usual = record(VALUE["json"], b"key")
    assert is_read_at_once(documents, usual)
    assert is_read_at_once(documents, usual._replace(key=None, timestamp=-1))
    assert is_read_at_once(documents, usual._replace(headers=(("name", b"value"),)))
    odd = [
        usual._replace(value=None),
        usual._replace(value=b""),
        usual._replace(value=b"\0\0\0\0\1{}"),
        usual._replace(value=b"\xff"),
        usual._replace(headers=UNREADABLE_HEADERS),
        usual._replace(headers=(("name", bytes(1_000_000)),)),
        usual._replace(key=bytes(1_000_000)),
        usual._replace(timestamp=1 << 60),
    ]
    assert [is_read_at_once(documents, one) for one in odd] == [False] * len(odd)


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
def test_a_tombstone_forgets_the_id_that_its_key_is(documents: DocumentFormat) -> None:
    for key in (b"key", "ä€".encode(), b"docs-3-17"):
        assert documents.forgotten(record(b"", key)._replace(value=None)) == key


@pytest.mark.parametrize("documents", formats(), ids=lambda made: type(made).__name__)
@pytest.mark.parametrize("key", [None, b""])
def test_a_tombstone_without_a_key_forgets_nothing(
    documents: DocumentFormat, key: bytes | None
) -> None:
    with pytest.raises(Unreadable, match=r"^no-id: its key is absent or empty"):
        documents.forgotten(record(b"", key)._replace(value=None))


@pytest.mark.parametrize("kind", get_args(KeyKind))
def test_a_tombstone_can_name_the_id_whatever_keys_are(kind: KeyKind) -> None:
    documents = JsonFormat(DocumentOptions(key=kind))
    named = record(b"", b"other")._replace(value=None, headers=((FORGET, b"docs-3-17"),))
    assert documents.forgotten(named) == b"docs-3-17"


@pytest.mark.parametrize("ident", [None, b"", b"\xff", b"i" * 1_025])
def test_a_tombstone_that_names_no_id_forgets_nothing(ident: bytes | None) -> None:
    named = record(b"", b"key")._replace(value=None, headers=((FORGET, ident),))
    with pytest.raises(Unreadable, match=r"^bad-id: "):
        JsonFormat(DocumentOptions()).forgotten(named)


def test_a_tombstone_forgets_nothing_if_keys_are_ignored() -> None:
    tombstone = record(b"", b"key")._replace(value=None)
    with pytest.raises(Unreadable, match=r"^no-id: documents\.key is ignore"):
        JsonFormat(DocumentOptions(key="ignore")).forgotten(tombstone)


@pytest.mark.parametrize("kind", VALUE)
def test_an_id_can_be_required(kind: str) -> None:
    for key in (None, b""):
        with pytest.raises(Unreadable, match=r"^no-id: no field 'id', and no key"):
            read(VALUE[kind], key, kind=kind, require_id=True)
    with pytest.raises(Unreadable, match=r"^no-id: no field 'id', and documents.key is ignore"):
        read(VALUE[kind], b"key", kind=kind, key="ignore", require_id=True)


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
