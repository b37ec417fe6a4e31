"""Reads a published record: its document, and what its headers say of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from worker.bus import Record
from worker.formats.base import DocumentFormat
from worker.untrusted import NOT_READ
from worker.wire.headers import FIRST, MATCHES, SEQUENCE, SOURCE, VERDICT, header, number

_EXCERPT = 400
"""The characters of a text, and of an id, in a list."""
_MATCHES = 20
_HEADERS = 100


class First(msgspec.Struct, frozen=True):
    """The earliest match."""

    id: str
    sequence: int


class Match(msgspec.Struct, frozen=True):
    """A document that a duplicate matched, as its header has it. ``similarity`` is estimated.

    ``sequence`` is known of the earliest match.
    """

    id: str
    similarity: float
    sequence: int | None = None


class Duplicate(msgspec.Struct, frozen=True):
    """A duplicate that was published.

    ``source`` is ``partition-offset`` in the topic of the documents, ``time`` that of the record in
    ms since 1970, ``text`` the beginning of the document's text. ``matches`` are best first.
    """

    id: str
    sequence: int
    source: str
    time: int
    text: str
    matches: list[Match]


class Document(msgspec.Struct, frozen=True):
    """A document.

    Of one that was searched for, ``text`` is the beginning, and the rest is as it was published. Of
    one that was asked for by its number, ``text`` is whole, and there are no headers and matches.
    """

    id: str
    sequence: int
    source: str
    time: int
    verdict: Literal["unique", "duplicate"] | None
    text: str
    matches: list[Match]
    headers: list[tuple[str, str]]


class Documents(msgspec.Struct, frozen=True):
    """Documents that were searched for, the latest first.

    ``searched`` offsets of the outputs were read. ``complete``: all that they hold were.
    """

    documents: list[Document]
    searched: int
    complete: bool


_decode_matches = msgspec.json.Decoder(list[Match]).decode
_first = msgspec.json.Decoder(First | None).decode


def source_of(record: Record) -> str | None:
    """Return ``partition-offset`` of the document; None if neardup didn't judge the record."""
    given = header(record, SOURCE)
    if given is None:
        return None
    return "-".join(given.decode(errors="replace").rsplit("-", 2)[1:])


def ident_of(documents: DocumentFormat, record: Record) -> str:
    """Return the id under which the index knows the document."""
    own = documents.whole(record)
    found = documents.identify(own.value or b"", own.key)
    if found is None:
        return (header(record, SOURCE) or b"").decode(errors="replace")
    return found.decode(errors="replace")


def matches_of(record: Record) -> list[Match]:
    """Return the matches in a record's header, best first; none if it has no such header.

    Raises:
        Exception: one of `worker.untrusted.NOT_READ`; headers may be forged.
    """
    return _decode_matches(header(record, MATCHES) or b"[]")


def _listed(record: Record) -> list[Match]:
    """Return the first matches, and the number of the earliest; nothing if they can't be read."""
    try:
        listed = matches_of(record)[:_MATCHES]
        first = _first(header(record, FIRST) or b"null")
    except NOT_READ:
        return []
    if first is None:
        return listed
    return [
        msgspec.structs.replace(one, sequence=first.sequence) if one.id == first.id else one
        for one in listed
    ]


def duplicate_of(documents: DocumentFormat, record: Record) -> Duplicate | None:
    """Return the summary of a record of *duplicate*; None if it was only passed on."""
    source = source_of(record)
    if source is None or header(record, VERDICT) is None:
        return None
    return Duplicate(
        ident_of(documents, record),
        number(header(record, SEQUENCE)) or 0,
        source,
        record.timestamp,
        documents.excerpt(documents.whole(record).value or b"")[:_EXCERPT],
        _listed(record),
    )


def document_of(documents: DocumentFormat, record: Record, verdict: str) -> Document | None:
    """Return the document in a record of *unique* or *duplicate*; None if it was passed on."""
    found = duplicate_of(documents, record)
    if found is None:
        return None
    return Document(
        found.id,
        found.sequence,
        found.source,
        found.time,
        "duplicate" if verdict == "duplicate" else "unique",
        found.text,
        found.matches,
        [
            (name[:_EXCERPT], (value or b"")[:_EXCERPT].decode(errors="replace"))
            for name, value in record.headers[:_HEADERS]
        ],
    )
