"""Documents without fields: their texts, and the JSON objects that are made of them."""

from __future__ import annotations

import json
from typing import NamedTuple

import msgspec

from worker.files.compressed import Reader, skipped
from worker.files.encodings import by_mark, decoded, in_html, likely_encoding
from worker.files.errors import DocumentFault, InputFault, too_large
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection
from worker.untrusted import NOT_READ

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


_BINARY_WITHIN = 8_192


def text_of(file: Reader, most: int, encoding: str | None, *, html: bool, surely: bool) -> str:
    """Return the text of a file of at most ``most`` bytes.

    ``html``: a page, which may name its encoding. ``surely``: the command line says that it is a
    text; otherwise, one that begins like JSON Lines is refused.

    Raises:
        DocumentFault: it is too large, no text, or in another encoding.
        InputFault: it looks like JSON Lines.
    """
    data = file.read(most + 1)
    if not surely and _is_json(data):
        raise InputFault(
            "has JSON in its first line, despite its name: --format json reads lines of JSON,"
            " --format text the file as one text"
        )
    if len(data) > most:
        raise too_large("file", len(data) + skipped(file))
    if encoding is None and by_mark(data) is None and b"\0" in data[:_BINARY_WITHIN]:
        likely = likely_encoding(data)
        what = "the file has NUL bytes" if likely is None else f"it looks like --encoding {likely}"
        raise DocumentFault(f"not-text: {what}")
    declared = in_html(data) if html and encoding is None else encoding
    return decoded(data, declared)


def _is_json(data: bytes) -> bool:
    first = data.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    if not first.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except NOT_READ:
        return False
