"""Makes the records that corrections are, and those that undo them."""

from __future__ import annotations

from getpass import getuser
from hashlib import blake2b

from lsh import Fingerprinter
from worker.bus import Outgoing, Record
from worker.formats.keys import Keys
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.corrections import MOST_CHARACTERS, CorrectionError, Request
from worker.wire.headers import CORRECTION, FORGET, without_own

_KEY = b"neardup-correction:"
"""Begins the keys of corrections, so that none is a document's: a topic may be compacted."""
_DIGITS = 12


def corrector(settings: Settings) -> str:
    """Return the name of who corrects: that of the settings, or else of the user."""
    if settings.corrections.by is not None:
        return settings.corrections.by
    try:
        return getuser()
    except (KeyError, OSError):  # In a container, a user may have no name.
        return ""


def allowance_id(text: str) -> str:
    """Return the id of the allowance of a text: the same one if the text is allowed again.

    Raises:
        CorrectionError: the text isn't Unicode.
    """
    try:
        digest = blake2b(text.encode(), digest_size=_DIGITS // 2)
    except UnicodeEncodeError:
        raise CorrectionError("the text is not UTF-8") from None
    return f"allow-{digest.hexdigest()}"


def allowance(
    fingerprinter: Fingerprinter, text: str, *, ident: str = "", exact: bool = False
) -> Request:
    """Return what allows a text, with the id that is given, or one made from the text.

    Raises:
        CorrectionError: the text is too long, or nothing is left of it to compare.
    """
    made = allowance_id(text)
    if len(text) > MOST_CHARACTERS:
        raise CorrectionError(
            f"the text has {len(text):,} characters; one that is allowed may have"
            f" {MOST_CHARACTERS:,}"
        )
    if not text.strip():
        raise CorrectionError("the text is empty")
    if fingerprinter.fingerprint([text]).blank[0]:
        raise CorrectionError("nothing is left of the text once it is normalised")
    return Request("allow", ident or made, text, exact)


def correction(topology: Topology, request: Request) -> Outgoing:
    """Return the record that allows a text, or withdraws an allowance.

    Those of an allowance have the same key, so they keep their order.
    """
    key = _KEY + request.id.encode()
    return Outgoing(topology.documents, None, key, None, ((CORRECTION, request.encode()),))


def erasure(topology: Topology, keys: Keys, request: Request) -> Outgoing:
    """Return the tombstone that forgets a document, with a note of who sent it.

    Its key is the one that has the id, if there is one, or else the id, so it is where documents
    with that key are. A header has the id: it forgets that whatever the key.
    """
    ident = request.id.encode()
    headers = ((FORGET, ident), (CORRECTION, request.encode()))
    return Outgoing(topology.documents, None, keys.key(ident), None, headers)


def restored(record: Record) -> Outgoing:
    """Return a document as it is sent again, with its own time: it is judged anew."""
    return Outgoing(
        record.topic,
        record.partition,
        record.key,
        record.value,
        without_own(record.headers),
        record.timestamp if record.timestamp > 0 else None,
    )
