"""The interface of a document format: it reads payloads, and splices matches into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from worker.bus import UNREADABLE_HEADERS, Header, Record
from worker.formats.fields import kind_of
from worker.formats.framed import refuse_framed
from worker.formats.unreadable import Unreadable

__all__ = ["Document", "DocumentFormat", "DocumentOptions", "Unreadable", "headers_size"]

_FIRST_TIME = 0
_LAST_TIME = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)


class Document(NamedTuple):
    """A document that can be judged; ``time`` is in ms, ``id`` is UTF-8."""

    id: bytes
    text: str
    time: int


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The fields with a payload's id, text and time, and the limits on their sizes.

    ``a.b`` is the field of that name, or else the field ``b`` of the object in ``a``.
    """

    id_field: str = "id"
    text_fields: tuple[str, ...] = ("text",)
    time_field: str | None = None
    require_id: bool = False
    max_text_characters: int = 2_000_000
    max_id_bytes: int = 1_024
    max_record_bytes: int = 1_000_000
    """Key, headers and value: what *unique* and *duplicate* accept, less our own headers."""


class DocumentFormat(ABC):
    """One format of payloads. `worker.formats.choice` returns the one that the settings name."""

    def __init__(self, options: DocumentOptions) -> None:
        """Keep the fields and the limits."""
        self._options = options

    def read(self, record: Record) -> Document:
        """Return the document in a record that is not a tombstone.

        If the payload has no id, the id is the record's key, or else its position.

        Raises:
            Unreadable: the document can't be judged; the error has the reason.
        """
        value = record.value
        assert value is not None  # noqa: S101 -- the caller handles tombstones
        self._check_record(record, value)
        found, text, time = self._parse(value)
        if time is None:
            time = record.timestamp
        if time != -1 and not _FIRST_TIME <= time < _LAST_TIME:
            raise Unreadable("bad-time", f"{time} ms is not between the years 1970 and 2200")
        self._check_text(text)
        ident = self._id_of_record(record) if found is None else self._id(found)
        return Document(ident, text, time)

    def forgotten(self, tombstone: Record) -> bytes:
        """Return the id that a tombstone forgets: its key, whatever the documents' id field is.

        Raises:
            Unreadable: the key is not an id, so no document has it.
        """
        if tombstone.key is None:
            raise Unreadable("bad-id", "it has no key")
        return self._id_of_key(tombstone.key)

    def identify(self, value: bytes) -> bytes | None:
        """Return the id in a payload, even if the rest is invalid.

        None if it has no id, or an invalid one.
        """
        found = self._find_id(value)
        if found is None:
            return None
        try:
            return self._id(found)
        except Unreadable:
            return None

    @abstractmethod
    def excerpt(self, value: bytes) -> str:
        """Return a payload's text to show to people, or the raw payload if it can't be read."""

    @abstractmethod
    def fields(self, value: bytes) -> Sequence[str] | None:
        """Return the names of a payload's fields; None if the format has no fields.

        Raises:
            Unreadable: the payload doesn't have this format.
        """

    @abstractmethod
    def having(self, value: bytes) -> Collection[str]:
        """Return which of the fields in the options have a value in a payload.

        Raises:
            Unreadable: the payload doesn't have this format.
        """

    @abstractmethod
    def can_splice(self, value: bytes) -> bool:
        """Return whether the matches can be added to a payload as a field."""

    @abstractmethod
    def splice(self, value: bytes, matches: bytes, first: bytes) -> bytes:
        """Return a payload for which `can_splice` holds, with two fields added.

        ``matches`` is a JSON array, ``first`` a JSON object. They replace what the payload itself
        has in those places: nobody else can write them. Nothing else changes.
        """

    @abstractmethod
    def _parse(self, value: bytes) -> tuple[object, str, int | None]:
        """Return a payload's id as found, its text, and its time in ms.

        The id and the time are None if the payload has none. `read` validates the id.

        Raises:
            Unreadable: the payload can't be read; the error has the reason.
        """

    @abstractmethod
    def _find_id(self, value: bytes) -> object:
        """Return a payload's id as found; None if it has none, or can't be read."""

    def _check_record(self, record: Record, value: bytes) -> None:
        size = len(value) + len(record.key or b"") + headers_size(record.headers)
        if size > self._options.max_record_bytes:
            raise Unreadable(
                "too-large",
                f"{size} bytes of key, headers and value; the limit of the outputs is"
                f" {self._options.max_record_bytes}",
            )
        if UNREADABLE_HEADERS[0] in record.headers:
            raise Unreadable("bad-headers", "the name of a header is not UTF-8")
        refuse_framed(value)

    def _check_text(self, text: str) -> None:
        if len(text) > self._options.max_text_characters:
            raise Unreadable(
                "text-too-long",
                f"{len(text)} characters; the limit is {self._options.max_text_characters}",
            )
        if not text or text.isspace():
            raise Unreadable("empty-text", "the text is empty or blank")

    def _id(self, found: object) -> bytes:
        if isinstance(found, str):
            return self._checked(found.encode())
        if isinstance(found, int) and not isinstance(found, bool):
            return self._checked(str(found).encode())
        raise Unreadable(
            "id-wrong-type",
            f"field {self._options.id_field!r} is {kind_of(found)}, not a string or an integer",
        )

    def _id_of_record(self, record: Record) -> bytes:
        if record.key is not None:
            return self._id_of_key(record.key)
        if self._options.require_id:
            raise Unreadable("no-id", f"no field {self._options.id_field!r} and no key")
        return f"{record.topic}-{record.partition}-{record.offset}".encode()

    def _id_of_key(self, key: bytes) -> bytes:
        try:
            key.decode()
        except UnicodeDecodeError:
            raise Unreadable("bad-id", "the key, which is the id, is not UTF-8") from None
        return self._checked(key)

    def _checked(self, ident: bytes) -> bytes:
        if not ident:
            raise Unreadable("bad-id", "the id is empty")
        if len(ident) > self._options.max_id_bytes:
            raise Unreadable(
                "bad-id",
                f"the id has {len(ident)} bytes; the limit is {self._options.max_id_bytes}",
            )
        return ident


def headers_size(headers: tuple[Header, ...]) -> int:
    """Return the approximate size in bytes of headers in a record."""
    size = 0
    for name, value in headers:
        size += len(name) + len(value or b"") + 6
    return size
