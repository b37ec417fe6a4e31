"""A request to correct: the value of a header of a record of ``documents``, JSON.

The record has no value, so it travels in the order of the documents. Whoever writes documents can
send one, as they can send a tombstone.
"""

from __future__ import annotations

import msgspec

from worker.untrusted import NOT_READ, why
from worker.wire.corrections import MOST_CHARACTERS, Correction, Kind, Note
from worker.wire.ids import MOST_ID_BYTES


class CorrectionError(Exception):
    """Nothing can be corrected as requested; the message says why."""


class Allow(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="allow"):
    """Allow a text: what is near to it is unique. ``id`` is that of the allowance.

    With ``exact``, only what has the same normal form is.
    """

    id: str
    text: str = ""
    exact: bool = False
    by: str = ""
    why: str = ""


class Withdraw(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="withdraw"):
    """Withdraw the allowance with an id."""

    id: str
    by: str = ""
    why: str = ""


class Forget(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="forget"):
    """Note who had the document with an id forgotten, and where it is, if that is known.

    It stands on the tombstone that forgets the document.
    """

    id: str
    by: str = ""
    why: str = ""
    source: str = ""


Request = Allow | Withdraw | Forget
_decode = msgspec.json.Decoder(Request).decode


def encoded(request: Request) -> bytes:
    """Return the header's value."""
    return msgspec.json.encode(request)


def decoded(value: bytes | None, most_id_bytes: int = MOST_ID_BYTES) -> Request:
    """Return what a header requests; an id has at most ``most_id_bytes``.

    Raises:
        CorrectionError: it requests nothing.
    """
    try:
        request: Request = _decode(value or b"")
    except NOT_READ as error:
        raise CorrectionError(why(error)) from None
    if not request.id:
        raise CorrectionError("its id is empty")
    if (size := len(request.id.encode())) > most_id_bytes:
        raise CorrectionError(f"its id has {size:,} bytes; limits.id_bytes is {most_id_bytes:,}")
    if isinstance(request, Allow):
        if not request.text.strip():
            raise CorrectionError("the text that it allows is empty")
        if len(request.text) > MOST_CHARACTERS:
            raise CorrectionError(
                f"the text that it allows has {len(request.text):,} characters; the limit is"
                f" {MOST_CHARACTERS:,}"
            )
    return request


def in_frame(request: Request, offset: int, at: int) -> Correction:
    """Return the correction as a frame has it, unsigned; ``at`` is the record's time in ms."""
    ident, by, why = request.id.encode(), request.by, request.why
    match request:
        case Allow():
            kind = Kind.EXACT if request.exact else Kind.NEAR
            note = Note.packed(at, by, why, text=request.text)
            return Correction(offset, kind, ident, note, request.text.encode())
        case Withdraw():
            return Correction(offset, Kind.WITHDRAWN, ident, Note.packed(at, by, why))
        case Forget():
            note = Note.packed(at, by, why, source=request.source)
            return Correction(offset, Kind.FORGOTTEN, ident, note)
