"""Corrections in a frame; `worker.corrections.request` has their requests."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import msgspec

from worker.untrusted import NOT_READ
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


class Kind(IntEnum):
    """The effect of a correction.

    ``NEAR`` and ``EXACT`` allow a text: what is near to it, or has the same normal form, is unique.
    ``WITHDRAWN`` ends that. ``FORGOTTEN`` notes who had a document forgotten.
    """

    WITHDRAWN = 0
    NEAR = 1
    EXACT = 2
    FORGOTTEN = 3


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The note on a correction, for people.

    ``at`` is when it was made, in ms; ``by`` and ``why`` are theirs. ``text`` is the beginning of
    what is allowed; ``source`` is where the forgotten document is, if that was known.
    """

    at: int
    by: str = ""
    why: str = ""
    text: str = ""
    source: str = ""

    @classmethod
    def packed(cls, at: int, by: str, why: str, *, text: str = "", source: str = "") -> bytes:
        """Return a note, packed, of as much as it may hold."""
        note = cls(
            min(max(0, at), _LATEST),
            by[:_NAME_CHARACTERS],
            why[:_TEXT_CHARACTERS],
            text[:_TEXT_CHARACTERS],
            source[:_NAME_CHARACTERS],
        )
        return msgspec.msgpack.encode(note)


_notes = msgspec.msgpack.Decoder(Note)


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
    def within(made: Iterable[Correction], start: int, stop: int) -> tuple[Correction, ...]:
        """Return those from ``start`` to ``stop``, relative to ``start``."""
        return tuple(
            msgspec.structs.replace(correction, offset=correction.offset - start)
            for correction in made
            if start <= correction.offset < stop
        )
