"""What a person corrects: in a header of a record of ``documents``, and in a frame.

A correction is a record without a value, so it travels in the order of the documents. Whoever
writes documents can send one, as they can send a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, Self

import msgspec

from worker.untrusted import NOT_READ, why
from worker.wire.columns import ColumnError, decoded
from worker.wire.ids import MOST_ID_BYTES

ALLOWED = (1 << 64) - 1
"""In the place of a matched document's sequence number: the document is allowed, by the allowance
with the id. No document has this number."""

MOST_CHARACTERS = 50_000
"""The longest text that can be allowed: a frame has it whole."""

_BYTES = 40
"""About how many bytes a correction takes in a frame besides its parts."""
_TEXT_CHARACTERS = 200
_LATEST = 253_402_300_799_999
"""The last ms of the year 9999, which can still be written as a date."""
_NAME_CHARACTERS = 100
_MOST_NOTE_BYTES = 4_096


class CorrectionError(Exception):
    """A header has no correction; the message says why."""


class Kind(IntEnum):
    """What a correction does.

    ``NEAR`` and ``EXACT`` allow a text: what is near to it, or has the same normal form, is unique.
    ``WITHDRAWN`` ends that. ``FORGOTTEN`` notes who had a document forgotten.
    """

    WITHDRAWN = 0
    NEAR = 1
    EXACT = 2
    FORGOTTEN = 3


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What people are told of a correction.

    ``at`` is when it was made, in ms; ``by`` and ``why`` are theirs. ``text`` is the beginning of
    what is allowed; ``source`` is where the forgotten document is, if that was known.
    """

    at: int
    by: str = ""
    why: str = ""
    text: str = ""
    source: str = ""


_notes = msgspec.msgpack.Decoder(Note)


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of the header: what to correct, and what to note of it.

    ``id`` is that of the allowance, or of the document to forget.
    """

    kind: Literal["allow", "withdraw", "forget"]
    id: str
    text: str = ""
    exact: bool = False
    by: str = ""
    why: str = ""
    source: str = ""

    def encode(self) -> bytes:
        """Return the header's value, JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, value: bytes | None, most_id_bytes: int = MOST_ID_BYTES) -> Self:
        """Return what a header asks for; an id has at most ``most_id_bytes``.

        Raises:
            CorrectionError: it asks for nothing.
        """
        try:
            found = msgspec.json.decode(value or b"", type=cls)
        except NOT_READ as error:
            raise CorrectionError(why(error)) from None
        if not found.id:
            raise CorrectionError("its id is empty")
        if (size := len(found.id.encode())) > most_id_bytes:
            raise CorrectionError(
                f"its id has {size:,} bytes; limits.id_bytes is {most_id_bytes:,}"
            )
        if found.kind == "allow" and not found.text.strip():
            raise CorrectionError("the text that it allows is empty")
        if len(found.text) > MOST_CHARACTERS:
            raise CorrectionError(
                f"the text that it allows has {len(found.text):,} characters; the limit is"
                f" {MOST_CHARACTERS:,}"
            )
        return found

    def note(self, at: int) -> bytes:
        """Return what is noted of it, packed; ``at`` in ms."""
        note = Note(
            min(max(0, at), _LATEST),
            self.by[:_NAME_CHARACTERS],
            self.why[:_TEXT_CHARACTERS],
            self.text[:_TEXT_CHARACTERS],
            self.source[:_NAME_CHARACTERS],
        )
        return msgspec.msgpack.encode(note)

    @property
    def does(self) -> Kind:
        """Return what it does."""
        if self.kind == "allow":
            return Kind.EXACT if self.exact else Kind.NEAR
        return Kind.WITHDRAWN if self.kind == "withdraw" else Kind.FORGOTTEN


class Correction(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A correction in a frame.

    ``offset`` is relative to the frame's start. ``note`` is a packed `Note`. An allowance has its
    ``text`` in UTF-8, the ``key`` of the exact text, and a ``sketch``, uint8[slots].
    """

    offset: int
    kind: Kind
    id: bytes
    note: bytes
    text: bytes = b""
    key: int = 0
    sketch: bytes = b""

    @property
    def allows(self) -> bool:
        """Return whether it allows a text."""
        return self.kind in {Kind.NEAR, Kind.EXACT}

    @property
    def size(self) -> int:
        """Return about how many bytes it takes in a frame."""
        beside = len(self.id) + len(self.note) + len(self.text) + len(self.sketch)
        return _BYTES + beside

    def check(self) -> None:
        """See that every shard can carry it out.

        Raises:
            ColumnError: no shard could.
        """
        if not 0 < len(self.id) <= MOST_ID_BYTES or not 0 <= self.key < 1 << 64:
            raise ColumnError("corrections has an id or a key that is none")
        decoded("corrections", self.id)
        if len(decoded("corrections", self.text)) > MOST_CHARACTERS:
            raise ColumnError("corrections has a text that is too long")
        try:
            note = _notes.decode(self.note)
        except NOT_READ:
            raise ColumnError("corrections has a note that can't be read") from None
        if len(self.note) > _MOST_NOTE_BYTES or not 0 <= note.at <= _LATEST:
            raise ColumnError("corrections has a note that can't be shown")

    @staticmethod
    def within(found: Iterable[Correction], start: int, stop: int) -> tuple[Correction, ...]:
        """Return those from ``start`` to ``stop``, relative to ``start``."""
        return tuple(
            msgspec.structs.replace(one, offset=one.offset - start)
            for one in found
            if start <= one.offset < stop
        )
