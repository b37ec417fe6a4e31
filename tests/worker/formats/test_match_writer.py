"""How a verdict is written into a document, and what of it fits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lsh.index import Match
from worker.bus import Record
from worker.formats.base import DocumentOptions
from worker.formats.choice import TextFormat
from worker.formats.json import JsonFormat
from worker.formats.match_writer import MatchWriter

WRITER = MatchWriter(JsonFormat(DocumentOptions()))


ADDED = b'"duplicate_of":%s,"duplicate_first":%s}'


@pytest.mark.parametrize(
    ("value", "spliced"),
    [
        (b'{"text":"a"}', b'{"text":"a",' + ADDED),
        (b' {"text":"a" }\n', b' {"text":"a" ,' + ADDED + b"\n"),
        (b'{"text":"}"}', b'{"text":"}",' + ADDED),
        (b'{"text":"a","duplicate_of":1}', b'{"text":"a",' + ADDED),
        (b'{"text":"a","duplicate_first":1}', b'{"text":"a",' + ADDED),
        (b"plain text}", None),
        (b'["a"]', None),
    ],
)
def test_splicing_touches_nothing_else(value: bytes, spliced: bytes | None) -> None:
    matches = [Match(2, 0.91, b"x"), Match(1, 0.9, b'"')]
    record = Record("documents", 0, 0, 0, None, value)
    written = WRITER.write(record, matches)
    assert written.matches == b'[{"id":"x","similarity":0.91},{"id":"\\"","similarity":0.9}]'
    assert written.first == b'{"id":"\\"","sequence":1}'
    assert written.value == (spliced % written[1:] if spliced else value)


@pytest.mark.parametrize(
    "writer",
    [replace(WRITER, splice=False), MatchWriter(TextFormat(DocumentOptions()))],
    ids=["switched off", "text"],
)
def test_without_splicing_the_headers_have_the_matches(writer: MatchWriter) -> None:
    own = b'{"text":"a","duplicate_of":1}'
    record = Record("documents", 0, 0, 0, None, own)
    written = writer.write(record, [Match(1, 0.91, b"x")])
    assert written == (own, b'[{"id":"x","similarity":0.91}]', b'{"id":"x","sequence":1}')


def test_a_match_by_containment_says_it() -> None:
    matches = [Match(2, 0.91, b"x"), Match(1, 0.5, b"y", 0.98765)]
    written = WRITER.write(Record("documents", 0, 0, 0, None, b"{}"), matches)
    assert written.matches == (
        b'[{"id":"x","similarity":0.91},{"id":"y","similarity":0.5,"containment":0.9877}]'
    )
    assert written.first == b'{"id":"y","sequence":1}'


def test_the_first_is_the_earliest_of_those_that_are_published() -> None:
    matches = [
        Match(7, 0.95, b"d7"),
        Match(5, 0.9, b"d5"),
        Match(6, 0.9, b"d6"),
        Match(2, 0.8, b"d2"),
    ]
    record = Record("documents", 0, 0, 0, None, b'{"text":"a"}')
    firsts = [
        json.loads(replace(WRITER, max_matches=most).write(record, matches).first)
        for most in (1, 2, 3, 4, 64)
    ]
    assert [first["sequence"] for first in firsts] == [7, 5, 5, 2, 2]
    assert [first["id"] for first in firsts] == ["d7", "d5", "d5", "d2", "d2"]


def test_what_is_added_never_outgrows_the_record() -> None:
    matches = [Match(64 - n, 0.9, b"\x01" * 1_000 + b"%d" % n) for n in range(64)]
    record = Record("documents", 0, 0, 0, None, b'{"text":"' + b"x" * 900_000 + b'"}')
    for most in (926_000, 960_000):
        written = replace(WRITER, max_record_bytes=most).write(record, matches)
        assert sum(map(len, written)) < most
        kept = [match["id"] for match in json.loads(written.matches)]
        assert kept == [match.id.decode() for match in matches[: len(kept)]]
        assert json.loads(written.first) == {"id": kept[-1], "sequence": 65 - len(kept)}
    assert len(kept) > 1
