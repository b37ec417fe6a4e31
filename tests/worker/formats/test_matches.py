"""How a verdict is written into a document, and what of it fits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lsh.index import Match
from worker.bus import Record
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.matches import MatchWriter
from worker.formats.text import TextFormat

WRITER = MatchWriter(JsonFormat(DocumentOptions()))


@pytest.mark.parametrize(
    ("value", "spliced"),
    [
        (b'{"text":"a"}', b'{"text":"a","duplicate_of":%s}'),
        (b' {"text":"a" }\n', b' {"text":"a" ,"duplicate_of":%s}\n'),
        (b'{"text":"}"}', b'{"text":"}","duplicate_of":%s}'),
        (b'{"text":"a","duplicate_of":1}', b'{"text":"a","duplicate_of":%s}'),
        (b"plain text}", None),
        (b'["a"]', None),
    ],
)
def test_splicing_touches_nothing_else(value: bytes, spliced: bytes | None) -> None:
    matches = [Match(1, 0.91, b"x"), Match(2, 0.9, b'"')]
    record = Record("documents", 0, 0, 0, None, value)
    written, listed = WRITER.write(record, matches)
    assert listed == b'[{"id":"x","similarity":0.91},{"id":"\\"","similarity":0.9}]'
    assert written == (spliced % listed if spliced else value)


@pytest.mark.parametrize(
    "writer",
    [replace(WRITER, splice=False), MatchWriter(TextFormat(DocumentOptions()))],
    ids=["switched off", "text"],
)
def test_without_splicing_the_header_has_the_matches(writer: MatchWriter) -> None:
    own = b'{"text":"a","duplicate_of":1}'
    record = Record("documents", 0, 0, 0, None, own)
    written, listed = writer.write(record, [Match(1, 0.91, b"x")])
    assert (written, listed) == (record.value, b'[{"id":"x","similarity":0.91}]')


def test_matches_never_outgrow_the_record() -> None:
    matches = [Match(n, 0.9, b"\x01" * 1_000) for n in range(64)]
    record = Record("documents", 0, 0, 0, None, b'{"text":"' + b"x" * 900_000 + b'"}')
    writer = replace(WRITER, max_record_bytes=920_000)
    written, listed = writer.write(record, matches)
    assert len(written) + len(listed) < 920_000
    assert json.loads(listed)[0]["id"] == "\x01" * 1_000
