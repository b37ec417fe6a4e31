"""The interface of a document format: it reads payloads, and splices matches into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar, Literal, NamedTuple

from lsh.index import NO_TIME
from worker.bus import UNREADABLE_HEADERS, Header, Record, RecordBatch
from worker.fields import AUTO
from worker.formats.keys import KeyKind, Keys
from worker.formats.times import FIRST_TIME, LAST_TIME
from worker.formats.unreadable import NULL_TEXT, Deleted, Unreadable, kind_of, refuse_framed
from worker.wire.headers import FORGET

NO_TIMESTAMP = -1
"""What Kafka has for a record without one."""


class Document(NamedTuple):
    """A document that can be judged; ``time`` is in ms, or `NO_TIME`; ``id`` is UTF-8."""

    id: bytes
    text: str
    time: int


class Documents(NamedTuple):
    """The ids, texts and times of n records; a text is None if `DocumentFormat.read` must be asked.

    Then the record has no document, or one that takes longer to read.
    """

    ids: list[bytes]
    texts: list[str | None]
    times: list[int]


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """The fields with a payload's id, text and time, what keys are, and the limits on sizes.

    A field is a name or a path, see `worker.fields`. ``time_format``: see
    `worker.fields`.
    With ``deletes`` forget, a record whose text is null deletes the document whose id is in its
    ``id_field``, or else in its ``deleted_id_field``, or else its key's.
    """

    id_field: str = "id"
    text_fields: tuple[str, ...] = ("text",)
    time_field: str | None = None
    time_format: str = AUTO
    require_id: bool = False
    key: KeyKind = "auto"
    deletes: Literal["reject", "forget"] = "reject"
    deleted_id_field: str | None = None
    max_text_characters: int = 2_000_000
    max_id_bytes: int = 1_024
    max_record_bytes: int = 1_000_000
    """Key, headers and value: what *unique* and *duplicate* accept, less our own headers."""


class DocumentFormat(ABC):
    """One format of payloads. `worker.formats.choice` returns the one that the settings name."""

    framed: ClassVar[bool] = False
    """Whether values begin with the id of a schema, as `refuse_framed` would refuse them."""

    def __init__(self, options: DocumentOptions) -> None:
        """Keep the fields and the limits."""
        self._options = options
        self.keys = Keys(options.key, options.max_id_bytes)
        self.times_read = 0
        """How many documents had a time, where they should have it, that could be read."""
        self.waiting: Callable[[], AbstractContextManager[None]] = nullcontext
        """What `prepare` enters while it waits for others: that time is of no record."""

    @property
    def most_id_bytes(self) -> int:
        """Return how many bytes an id has at most."""
        return self._options.max_id_bytes

    def read(self, record: Record) -> Document:
        """Return the document in a record that is not a tombstone.

        If the payload has no id, the id is that of the record's key, or else its position.

        Raises:
            Deleted: the record deletes a document.
            Unreadable: the document can't be judged; the error has the reason.
        """
        record = self.whole(record)
        value = record.value
        assert value is not None  # noqa: S101 -- the caller handles tombstones
        self._check_record(record, value)
        try:
            found, text, time = self._parse(value)
        except Unreadable as error:
            if error.code == NULL_TEXT and self._options.deletes == "forget":
                raise self._deleted(record, value, error.detail) from None
            raise
        has_time = time is not None or self._options.time_field is None
        if time is None:
            time = self._time_of(record)
        if time != NO_TIME and not FIRST_TIME <= time < LAST_TIME:
            raise Unreadable("bad-time", f"{time} ms is not between the years 1000 and 2200")
        self.times_read += has_time
        self._check_text(text)
        ident = self._id_of_record(record) if found is None else self._id(found)
        return Document(ident, text, time)

    def read_all(self, batch: RecordBatch) -> Documents:
        """Return the documents in records, as `read` does; most are read in one pass.

        What can't be read in it is left to `read`, which says why.
        """
        parse, options = self._parse, self._options
        most_bytes, most_characters = options.max_record_bytes, options.max_text_characters
        most_id, timed, times_read = options.max_id_bytes, options.time_field is not None, 0
        refused = None if self.framed else b"\0"
        ids: list[bytes] = []
        texts: list[str | None] = []
        times: list[int] = []
        headers = repeat(()) if batch.headers is None else batch.headers
        stamps = batch.timestamps.tolist()
        columns = zip(batch.values, batch.keys, headers, stamps, strict=False)
        for row, (value, key, own, stamp) in enumerate(columns):  # A hot path.
            ident, taken, time = b"", None, NO_TIME
            beside = self._size_beside(key, own) if key or own else 0
            if value is not None and beside + len(value) <= most_bytes and value[:1] != refused:
                try:
                    found, text, given = parse(value)
                    ident = (
                        found.encode() if type(found) is str else self._plain_id(found, batch, row)
                    )
                except (Unreadable, UnicodeEncodeError):
                    ident = b""
                else:
                    if given is not None:
                        time = given
                    elif not timed and stamp != NO_TIMESTAMP:
                        time = stamp
                    dated = time == NO_TIME or FIRST_TIME <= time < LAST_TIME
                    fits = 0 < len(ident) <= most_id and 0 < len(text) <= most_characters
                    if fits and dated and not text.isspace():
                        taken = text
                        times_read += given is not None or not timed
            ids.append(ident)
            texts.append(taken)
            times.append(time)
        self.times_read += times_read
        return Documents(ids, texts, times)

    def forgotten(self, tombstone: Record) -> bytes:
        """Return the id that a tombstone forgets: that in its header, or else its key's.

        Raises:
            Unreadable: it has none, or what it has is no id.
        """
        tombstone = self.whole(tombstone)
        named = [value for name, value in tombstone.headers if name == FORGET]
        if named:
            return self._checked(named[-1] or b"")
        ident = self.keys.ident(tombstone.key)
        if ident is None:
            ignored = self._options.key == "ignore"
            why = "documents.key is ignore" if ignored else "its key is absent or empty"
            raise Unreadable("no-id", f"{why}, and it has no header {FORGET}")
        return ident

    def identify(self, value: bytes, key: bytes | None = None) -> bytes | None:
        """Return the id in a payload, or else that of its key, even if the rest is invalid.

        None if it has neither, or invalid ones.
        """
        found = self._find_id(value)
        if found is None:
            found = self._find_deleted_id(value)
        if found is not None:
            with suppress(Unreadable):
                return self._id(found)
        try:
            return self.keys.ident(key)
        except Unreadable:
            return None

    def prepare(self, batches: Sequence[RecordBatch]) -> None:  # noqa: B027 -- most need nothing
        """Get what it takes to read some records from elsewhere, so that reading never waits.

        Raises:
            Away: that isn't to be had now.
        """

    def whole(self, record: Record) -> Record:
        """Return a record whose key and value the other methods read without its headers."""
        return record

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

    def _find_deleted_id(self, value: bytes) -> object:  # noqa: ARG002 -- of formats with fields
        """Return the id in the field for deletes if the payload is a delete; None otherwise."""
        return None

    def _deleted(self, record: Record, value: bytes, why: str) -> Deleted:
        """Return which document a record deletes.

        Raises:
            Unreadable: it names none.
        """
        field = self._options.deleted_id_field
        for named, found in (
            (self._options.id_field, self._find_id(value)),
            (field, self._find_deleted_id(value)),
        ):
            if found is not None:
                return Deleted(self._id(found), f"{why}; field {named!r} has the id")
        ident = self.keys.ident(record.key)
        if ident is None:
            where = "" if field is None else f"no field {field!r} and "
            raise Unreadable("no-id", f"{why}, and it names no document: it has {where}no key")
        return Deleted(ident, f"{why}; its key has the id")

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
        if not self.framed:
            refuse_framed(value)

    def _check_text(self, text: str) -> None:
        if len(text) > self._options.max_text_characters:
            raise Unreadable(
                "text-too-long",
                f"{len(text)} characters; the limit is {self._options.max_text_characters}",
            )
        if not text or text.isspace():
            raise Unreadable("empty-text", "the text is empty or blank")

    def _time_of(self, record: Record) -> int:
        """Return the time of a payload that has none: the record's, if no field is to have it."""
        if self._options.time_field is not None or record.timestamp == NO_TIMESTAMP:
            return NO_TIME
        return record.timestamp

    def _id(self, found: object) -> bytes:
        if isinstance(found, str):
            return self._checked(found.encode())
        if isinstance(found, int) and not isinstance(found, bool):
            return self._checked(str(found).encode())
        raise Unreadable(
            "id-wrong-type",
            f"field {self._options.id_field!r} is {kind_of(found)}, not a string or an integer",
        )

    def _plain_id(self, found: object, batch: RecordBatch, row: int) -> bytes:
        """Return the id of a payload that has no string for it; nothing if `_id` must look at it.

        Raises:
            Unreadable: neither the payload nor its record has one.
        """
        if found is None:
            ident = self.keys.ident(batch.keys[row])
            return self._id_of_record(batch.record(row)) if ident is None else ident
        return b"%d" % found if type(found) is int else b""

    def _size_beside(self, key: bytes | None, headers: tuple[Header, ...]) -> int:
        """Return the bytes of a key and headers; more than may be if a header is refused."""
        if UNREADABLE_HEADERS[0] in headers:
            return self._options.max_record_bytes + 1
        return len(key or b"") + headers_size(headers)

    def _id_of_record(self, record: Record) -> bytes:
        ident = self.keys.ident(record.key)
        if ident is not None:
            return ident
        if self._options.require_id:
            key = "documents.key is ignore" if self._options.key == "ignore" else "no key"
            raise Unreadable("no-id", f"no field {self._options.id_field!r}, and {key}")
        return f"{record.topic}-{record.partition}-{record.offset}".encode()

    def _checked(self, ident: bytes) -> bytes:
        """Return an id that isn't a key's, if it can be one.

        Raises:
            Unreadable: it is empty, too long, or not UTF-8.
        """
        if not ident:
            raise Unreadable("bad-id", "the id is empty")
        try:
            ident.decode()
        except UnicodeDecodeError:
            raise Unreadable("bad-id", "the id is not UTF-8") from None
        if len(ident) > self._options.max_id_bytes:
            raise Unreadable(
                "bad-id",
                f"the id has {len(ident)} bytes; limits.id_bytes is {self._options.max_id_bytes}",
            )
        return ident


def headers_size(headers: tuple[Header, ...]) -> int:
    """Return the approximate size in bytes of headers in a record."""
    size = 0
    for name, value in headers:
        size += len(name) + len(value or b"") + 6
    return size
