"""Texts in other encodings than UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from typing import Final

from worker.cli.errors import CommandError
from worker.cli.inputs.compressed import Reader
from worker.cli.inputs.fault import DocumentFault, InputFault

__all__ = [
    "UNREADABLE",
    "by_mark",
    "checked",
    "decoded",
    "in_html",
    "is_utf8",
    "likely_encoding",
    "transcoded",
]

UNREADABLE: Final = b"\xff"
"""What `transcoded` yields for bytes that aren't in the encoding. No UTF-8 text has it."""

_MARKED = "neardup.marked"
_STEP = 1 << 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_BY_NULS = (
    (rb"(?:[^\0]\0\0\0){3}", "utf-32-le"),
    (rb"(?:\0\0\0[^\0]){3}", "utf-32-be"),
    (rb"(?:[^\0]\0){3}", "utf-16-le"),
    (rb"(?:\0[^\0]){3}", "utf-16-be"),
)
_META = re.compile(rb"""<meta[^>]{1,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_META_WITHIN = 4_096
_NEVER = {"ascii", "idna", "punycode", "unicode_escape", "raw_unicode_escape"}
"""What strangers may say, and nobody means: UTF-8 often says to be ASCII."""
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
}
"""What pages and mails are in that say so: the encoding that browsers take (WHATWG, Encoding)."""


def _mark(error: UnicodeError) -> tuple[str | bytes, int]:
    """Mark what can't be read, so that it costs the line in which it is and no other."""
    if isinstance(error, UnicodeEncodeError):
        return UNREADABLE * (error.end - error.start), error.end
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end
    raise error


codecs.register_error(_MARKED, _mark)


def checked(name: str) -> str:
    """Return Python's name of a text encoding.

    Raises:
        CommandError: Python knows none of this name.
    """
    try:
        found = codecs.lookup(name)
        b"".decode(name)  # Some codecs are of bytes.
        "".encode(name)
    except (LookupError, UnicodeError, ValueError):
        found = None
    if found is None or found.incrementaldecoder is None:
        raise CommandError(
            f"--encoding: got {name!r}, must be an encoding that Python knows, such as cp1252,"
            " iso8859-15, utf-16 or shift_jis"
        )
    return found.name


def by_mark(start: bytes) -> str | None:
    """Return the encoding that a byte order mark tells; None without one."""
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def likely_encoding(start: bytes) -> str | None:
    """Return the encoding that NULs between other bytes tell; None if there are none."""
    found = (name for pattern, name in _BY_NULS if re.match(pattern, start, re.DOTALL))
    return next(found, None)


def is_utf8(start: bytes) -> bool:
    """Return whether the beginning of a file has other characters than ASCII, in UTF-8."""
    if start.isascii():
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True


def transcoded(source: Reader, encoding: str) -> Reader:
    """Return a reader of a text in UTF-8; see `UNREADABLE`.

    Reading raises `InputFault` if the beginning shows that it isn't in the encoding.
    """
    return io.BufferedReader(_Transcoded(source, encoding), _STEP)


class _Transcoded(io.RawIOBase):
    """Reads a text step by step."""

    def __init__(self, source: Reader, encoding: str) -> None:
        self._source = source
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)(_MARKED)
        self._ready = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            data = self._source.read1(_STEP)
            self._ended = not data
            try:
                text = self._decoder.decode(data, final=self._ended)
            except UnicodeError as error:
                raise InputFault(f"can't be read as {self._encoding}: {error}") from None
            self._ready = memoryview(text.encode("utf-8", _MARKED))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def in_html(data: bytes) -> str | None:
    """Return the encoding that a page names in itself, if it does."""
    found = _META.search(data[:_META_WITHIN])
    return found[1].decode() if found else None


def decoded(data: bytes, declared: str | None, otherwise: str | None = None) -> str:
    """Return a text: by its mark, as it is declared, in UTF-8, or in the encoding ``otherwise``.

    Raises:
        DocumentFault: it is in none of these.
    """
    for name in _candidates(data, declared, otherwise):
        try:
            text = data.decode(name)
            text.encode()  # Some encodings have lone surrogates.
        except (LookupError, UnicodeError, ValueError):
            continue
        return text
    said = otherwise or declared
    raise DocumentFault(
        "invalid-utf8: the text is not UTF-8"
        if said is None
        else f"bad-encoding: the text is not in {said[:40]}"
    )


def _candidates(data: bytes, declared: str | None, otherwise: str | None) -> Iterator[str]:
    if (marked := by_mark(data)) is not None:
        yield marked
    if declared is not None:
        known = _known(declared)
        if known in _SUPERSETS:
            yield _SUPERSETS[known]
        if known not in _NEVER:
            yield known
    yield "utf-8"
    if otherwise is not None:
        yield otherwise


def _known(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return name
