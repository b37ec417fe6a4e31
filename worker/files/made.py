"""Documents that are made of files, mails and records of the web, which have no fields."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from worker.offline.filter import Line
from worker.settings.sections import DocumentsSection

_encode = msgspec.json.encode


class Made(NamedTuple):
    """A document without fields: its own id, if it has one, what else is known, and its text."""

    id: str | None
    known: dict[str, str]
    text: str


class Maker:
    """Makes a JSON object of each, or, for documents of plain text, its text.

    What is made has the members ``id``, ``text``, perhaps ``date``, and what else is known. If the
    settings name other fields, and none of these, the members are called by those names: the id,
    the text as the first one with text, and the date as the time.
    """

    def __init__(self, documents: DocumentsSection) -> None:
        """Take the names of the fields."""
        self._documents = documents

    def line(self, place: bytes, made: Made) -> Line:
        """Return a document; ``place`` is its id if it has none of its own."""
        if self._documents.format == "text":
            key = place if made.id is None else made.id.encode()
            raw = made.text.encode()
            return Line(key, raw, len(raw), named=True)
        given = {} if made.id is None else {"id": made.id}
        raw = _encode(self._named({**given, **made.known, "text": made.text})) + b"\n"
        return Line(place, raw, len(raw))

    def _named(self, members: dict[str, str]) -> dict[str, str]:
        documents = self._documents
        names = {}
        if documents.id_field not in members:
            names["id"] = documents.id_field
        if not any(field in members for field in documents.text_fields):
            names["text"] = documents.text_fields[0]
        if documents.time_field is not None and documents.time_field not in members:
            names["date"] = documents.time_field
        return {names.get(name, name): value for name, value in members.items()}
