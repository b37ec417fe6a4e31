"""What a record's payload says: id, text and time; or why it can't be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import msgspec

from worker.bus import UNREADABLE_HEADERS, Header, Record

__all__ = ["Document", "DocumentFormat", "DocumentReader", "Unreadable"]

_FIRST_TIME = 0
_LAST_TIME = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)
_SECONDS_BELOW = 260_000_000_000
"""A number below this is seconds (up to the year 10,000), others are ms (from 1978 on)."""


class Document(NamedTuple):
    """A document that can be judged; ``time`` is in ms, ``id`` is UTF-8."""

    id: bytes
    text: str
    time: int


class Unreadable(Exception):  # noqa: N818 -- says what the document is
    """Why a document can't be read: a short code, and what was found."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep the code apart: it is a metric's label."""
        self.code = code
        super().__init__(f"{code}: {detail}")


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """Where a payload has its id, text and time, and what it may measure."""

    kind: Literal["json", "text"] = "json"
    id_field: str = "id"
    text_fields: tuple[str, ...] = ("text",)
    time_field: str | None = None
    require_id: bool = False
    max_text_characters: int = 2_000_000
    max_id_bytes: int = 1_024
    max_record_bytes: int = 1_000_000
    """Key, headers and value; what *unique* and *duplicate* take, less our own headers."""


class DocumentReader:
    """Reads payloads of one format."""

    def __init__(self, format_: DocumentFormat) -> None:
        """Prepare a decoder that skips all fields but those asked for."""
        self._format = format_
        fields = [format_.id_field, *format_.text_fields]
        if format_.time_field is not None:
            fields.append(format_.time_field)
        distinct = list(dict.fromkeys(fields))
        names = {f"field{number}": field for number, field in enumerate(distinct)}
        payload = msgspec.defstruct(
            "Payload",
            [(name, object, None) for name in names],
            rename=names.get,
            gc=False,
        )
        attribute = {field: name for name, field in names.items()}
        self._id = attribute[format_.id_field]
        self._texts = [(field, attribute[field]) for field in format_.text_fields]
        self._time = attribute[format_.time_field] if format_.time_field is not None else None
        self._decode: Callable[[bytes], object] = msgspec.json.Decoder(payload).decode

    def read(self, record: Record) -> Document:
        """Read a record that is no tombstone.

        Raises:
            Unreadable: with the reason.
        """
        value = record.value
        assert value is not None  # noqa: S101 -- the caller has set tombstones apart
        self._check_size(record, value)
        if UNREADABLE_HEADERS[0] in record.headers:
            raise Unreadable("bad-headers", "the name of a header is not UTF-8")
        try:
            decoded = value.decode()
        except UnicodeDecodeError as error:
            code = "invalid-utf8"
            raise Unreadable(code, f"{error.reason} at byte {error.start}") from None
        time = record.timestamp
        if self._format.kind == "text":
            found: object = None
            text = decoded
        else:
            payload = self._parse(value)
            found = getattr(payload, self._id)
            text = self._text(payload)
            if self._time is not None:
                given = getattr(payload, self._time)
                if given is not None:
                    time = _time(given, str(self._format.time_field))
        if time != -1 and not _FIRST_TIME <= time < _LAST_TIME:
            code = "bad-time"
            raise Unreadable(code, f"{time} ms is not between the years 1970 and 2200")
        self._check_text(text)
        return Document(self._identify(found, record), text, time)

    def _check_size(self, record: Record, value: bytes) -> None:
        size = len(value) + len(record.key or b"") + headers_size(record.headers)
        if size > self._format.max_record_bytes:
            code = "too-large"
            raise Unreadable(
                code,
                f"{size} bytes of key, headers and value, and the outputs take"
                f" {self._format.max_record_bytes}",
            )

    def _parse(self, value: bytes) -> object:
        try:
            return self._decode(value)
        except msgspec.ValidationError as error:
            if value.lstrip(b" \t\r\n").startswith(b"{"):
                # A number that no number type holds.
                code = "not-json"
                raise Unreadable(code, str(error)) from None
            code = "not-an-object"
            raise Unreadable(code, "the JSON value is no object") from None
        except RecursionError:
            code = "too-deep"
            raise Unreadable(code, "nested too deeply to be read") from None
        except msgspec.DecodeError as error:
            code = "not-json"
            raise Unreadable(code, str(error)) from None

    def _text(self, payload: object) -> str:
        parts = []
        for field, name in self._texts:
            part = getattr(payload, name)
            if part is None:
                continue
            if not isinstance(part, str):
                code = "text-wrong-type"
                raise Unreadable(code, f"field {field!r} is {_kind(part)}, not a string")
            parts.append(part)
        if not parts:
            code = "no-text"
            fields = ", ".join(repr(field) for field, _ in self._texts)
            raise Unreadable(code, f"no field {fields}")
        return parts[0] if len(parts) == 1 else "\n".join(parts)

    def _check_text(self, text: str) -> None:
        if len(text) > self._format.max_text_characters:
            code = "text-too-long"
            raise Unreadable(
                code,
                f"{len(text)} characters, and the limit is {self._format.max_text_characters}",
            )
        if "\0" in text:
            code = "nul"
            raise Unreadable(code, f"a NUL at character {text.index(chr(0))} of the text")
        if not text or text.isspace():
            code = "empty-text"
            raise Unreadable(code, "the text is empty or blank")

    def _identify(self, found: object, record: Record) -> bytes:
        if found is None:
            if record.key is not None:
                try:
                    record.key.decode()
                except UnicodeDecodeError:
                    code = "bad-id"
                    raise Unreadable(code, "the key, which is the id, is not UTF-8") from None
                ident = record.key
            elif self._format.require_id:
                code = "no-id"
                raise Unreadable(code, f"no field {self._format.id_field!r}, and no key")
            else:
                return f"{record.topic}-{record.partition}-{record.offset}".encode()
        elif isinstance(found, str):
            ident = found.encode()
        elif isinstance(found, int) and not isinstance(found, bool):
            ident = str(found).encode()
        else:
            code = "bad-id"
            raise Unreadable(
                code,
                f"field {self._format.id_field!r} is {_kind(found)}, not a string or an integer",
            )
        if not ident:
            code = "bad-id"
            raise Unreadable(code, "the id is empty")
        if len(ident) > self._format.max_id_bytes:
            code = "bad-id"
            raise Unreadable(
                code, f"the id has {len(ident)} bytes, and the limit is {self._format.max_id_bytes}"
            )
        return ident


def headers_size(headers: tuple[Header, ...]) -> int:
    """Give the bytes that headers take in a record, within a few."""
    return sum(len(name) + len(value or b"") + 6 for name, value in headers)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def _time(given: object, field: str) -> int:
    """Read ISO 8601 (UTC where no zone is named), or seconds or ms since the epoch."""
    code = "bad-time"
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise Unreadable(code, f"field {field!r} is no ISO 8601 time") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    if isinstance(given, int | float) and not isinstance(given, bool):
        if abs(given) < _SECONDS_BELOW:
            return int(given * 1000)
        if abs(given) < _SECONDS_BELOW * 1000:
            return int(given)
        raise Unreadable(code, f"field {field!r} is {given}, neither seconds nor milliseconds")
    raise Unreadable(code, f"field {field!r} is {_kind(given)}, not a time")
