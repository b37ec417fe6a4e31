"""How a verdict is written into a document, and what of it fits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from worker.bus import Record
from worker.shard import Match
from worker.verdicts import MatchWriter


@pytest.mark.parametrize(
    ("value", "spliced"),
    [
        (b'{"text":"a"}', b'{"text":"a","duplicate_of":%s}'),
        (b' {"text":"a" }\n', b' {"text":"a" ,"duplicate_of":%s}\n'),
        (b'{"text":"}"}', b'{"text":"}","duplicate_of":%s}'),
        (b'{"text":"a","duplicate_of":1}', None),
        (b"plain text}", None),
        (b'["a"]', None),
    ],
)
def test_splicing_touches_nothing_else(value: bytes, spliced: bytes | None) -> None:
    matches = [Match(1, 0.91, b"x"), Match(2, 0.9, b'"')]
    record = Record("documents", 0, 0, 0, None, value)
    written, listed = MatchWriter().write(record, matches)
    assert listed == b'[{"id":"x","similarity":0.91},{"id":"\\"","similarity":0.9}]'
    assert written == (spliced % listed if spliced else value)


def test_matches_never_outgrow_the_record() -> None:
    matches = [Match(n, 0.9, b"\x01" * 1_000) for n in range(64)]
    record = Record("documents", 0, 0, 0, None, b'{"text":"' + b"x" * 900_000 + b'"}')
    writer = replace(MatchWriter(), max_record_bytes=920_000)
    written, listed = writer.write(record, matches)
    assert len(written) + len(listed) < 920_000
    assert json.loads(listed)[0]["id"] == "\x01" * 1_000
