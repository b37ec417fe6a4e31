"""Files that are one text each, and how much of a file is read."""

from __future__ import annotations

import json

from worker.files.compressed import Reader
from worker.files.encodings import by_mark, decoded, in_html, likely_encoding
from worker.files.errors import DocumentFault, InputFault
from worker.untrusted import NOT_READ

_STEP = 1 << 20
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


def too_large(what: str, size: int) -> DocumentFault:
    """Return the fault of a document above the limit."""
    return DocumentFault(f"too-large: the {what} has {size} bytes, above limits.record_bytes")


def skipped(file: Reader, most: int | None = None) -> int:
    """Skip the rest of a file, or at most so many bytes; return how many there were."""
    count = 0
    while most is None or count < most:
        data = file.read(_STEP if most is None else min(_STEP, most - count))
        if not data:
            break
        count += len(data)
    return count


def _is_json(data: bytes) -> bool:
    first = data.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    if not first.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except NOT_READ:
        return False
