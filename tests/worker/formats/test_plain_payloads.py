"""The core reads plain payloads as the decoder reads them, and leaves the others to it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsh._core import read_payloads
from worker.bus import Header, Record, RecordBatch
from worker.formats.base import DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat

NAMES = st.sampled_from(("id", "text", "n", "i\u0064", "\u00e4", "a.b", ""))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner))
STRINGS = st.text() | st.sampled_from(("", " ", "x" * 40, "\ud800", "\u2003", "a\0b", '\\"/\n'))


@st.composite
def payloads(draw: st.DrawFn) -> bytes | None:
    """Return an object, often with a text and an id, and sometimes damaged; or a tombstone."""
    value: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    value |= draw(st.fixed_dictionaries({}, optional={"id": STRINGS, "text": STRINGS}))
    ascii_only = draw(st.booleans())
    text = json.dumps(value, ensure_ascii=ascii_only, indent=draw(st.sampled_from((None, 1))))
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from((b"", b"\\", b'"', b"\xff")))
    return bytes(data) if draw(st.booleans()) or data else None


def batch(values: list[bytes | None], keys: list[bytes | None], stamp: int) -> RecordBatch:
    """Return records of one partition."""
    (made,) = RecordBatch.of(
        Record("documents", 0, row, stamp, key, value)
        for row, (value, key) in enumerate(zip(values, keys, strict=True))
    )
    return made


@pytest.mark.parametrize("require_id", [False, True])
@given(
    values=st.lists(st.tuples(payloads(), st.sampled_from((None, b"", b"key", b"\xff")))
                    , min_size=1, max_size=6),
    stamp=st.sampled_from((-1, 1_700_000_000_000, 1 << 60)),
)  # fmt: skip
def test_both_readers_say_the_same(
    values: list[tuple[bytes | None, bytes | None]], stamp: int, *, require_id: bool
) -> None:
    options = DocumentOptions(max_id_bytes=100, max_text_characters=30, require_id=require_id)
    core, decoder = JsonFormat(options), JsonFormat(options)
    records = batch([value for value, _ in values], [key for _, key in values], stamp)
    assert core.read_all(records) == DocumentFormat.read_all(decoder, records)
    assert core.times_read == decoder.times_read


def test_plain_payloads_are_read_by_the_core() -> None:
    assert read_payloads([b'{"id":"a","text":"b\\u00e4"}', b'{"text":"c"}'], "id", "text") == (
        [b"a", None],
        ["b\u00e4", "c"],
    )


def test_what_is_not_plain_is_left() -> None:
    left = [None, b"", b"{", b'{"id":1,"text":"a"}', b'{"text":["a"]}', b'{"text":"a","text":"b"}']
    assert read_payloads(left, "id", "text") == ([None] * len(left), [None] * len(left))


@pytest.mark.parametrize("headers", [(), (("a", b"b"),)])
@pytest.mark.parametrize("size", [10, 1_000])
def test_too_large_records_are_refused_with_and_without_the_core(
    headers: tuple[Header, ...], size: int
) -> None:
    value = json.dumps({"id": "a", "text": "b" * size}).encode()
    options = DocumentOptions(max_record_bytes=500)
    (made,) = RecordBatch.of([Record("documents", 0, 0, 1, None, value, headers)])
    found = JsonFormat(options).read_all(made)
    assert found.texts == ["b" * size if size < 500 else None]
