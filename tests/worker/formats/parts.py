"""Formats, and records that they read."""

from __future__ import annotations

from worker.bus import Record, RecordBatch
from worker.formats.base import Document, DocumentFormat, DocumentOptions
from worker.formats.choice import TextFormat
from worker.formats.json import JsonFormat
from worker.formats.unreadable import Unreadable

TIME = 1_700_000_000_000
_FORMATS: dict[str, type[DocumentFormat]] = {"json": JsonFormat, "text": TextFormat}


def formats() -> list[DocumentFormat]:
    return [made(DocumentOptions()) for made in _FORMATS.values()]


def record(value: bytes, key: bytes | None = None, timestamp: int = TIME) -> Record:
    return Record("docs", 3, 17, timestamp, key, value)


def read(
    value: bytes, given: bytes | None = None, /, *, kind: str = "json", **options: object
) -> Document:
    """Read a record with this value and key, in a format with these options, in both ways."""
    made, again = (_FORMATS[kind](DocumentOptions(**options)) for _ in range(2))  # type: ignore[arg-type]
    one = record(value, given)
    ids, texts, times = again.read_all(*RecordBatch.of([one]))
    try:
        document = made.read(one)
    except Unreadable:
        assert texts == [None]
        raise
    assert texts == [None] or Document(ids[0], texts[0] or "", times[0]) == document
    assert texts == [None] or again.times_read == made.times_read
    return document


def is_read_at_once(made: DocumentFormat, one: Record) -> bool:
    """Return whether a document is read with others, and not left to `read`."""
    return made.read_all(*RecordBatch.of([one])).texts != [None]
