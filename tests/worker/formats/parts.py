"""Formats, and records that they read."""

from __future__ import annotations

from worker.bus import Record
from worker.formats.base import Document, DocumentFormat, DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.text import TextFormat

__all__ = ["TIME", "formats", "read", "record"]

TIME = 1_700_000_000_000
_FORMATS: dict[str, type[DocumentFormat]] = {"json": JsonFormat, "text": TextFormat}


def formats() -> list[DocumentFormat]:
    return [made(DocumentOptions()) for made in _FORMATS.values()]


def record(value: bytes, key: bytes | None = None, timestamp: int = TIME) -> Record:
    return Record("docs", 3, 17, timestamp, key, value)


def read(
    value: bytes, given: bytes | None = None, /, *, kind: str = "json", **options: object
) -> Document:
    """Read a record with this value and key, in a format with these options."""
    made = _FORMATS[kind](DocumentOptions(**options))  # type: ignore[arg-type]
    return made.read(record(value, given))
