"""Texts in other encodings than UTF-8."""

from __future__ import annotations

import codecs
import encodings
import io
import pkgutil
import re
from collections.abc import Iterator
from encodings.aliases import aliases
from typing import Final

from lsh._core import decode
from worker.files.compressed import Reader
from worker.files.errors import DocumentFault, FileError, InputFault

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
_NAMED = re.compile(
    rb"""<!--.*?(?:-->|\Z)"""
    rb"""|<meta[^>]{1,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})"""
    rb"""|\A\s*<\?xml[^>]{1,200}?encoding\s*=\s*["']\s*([\w.:-]{1,40})""",
    re.IGNORECASE | re.DOTALL,
)
_NAMED_WITHIN = 4_096
_BETWEEN = re.compile(r"[^a-z0-9.]+")
_LONGEST = 3
"""The most bytes that a cut may leave of a character of four."""
_UTF_16 = ("utf-16", "unicode", "ucs-2", "csunicode", "iso-10646-ucs-2")
"""What the labels of UTF-16 begin with."""
_NEVER = {"ascii", "idna", "punycode", "unicode_escape", "raw_unicode_escape"}
"""What strangers may say, and nobody means: UTF-8 often says to be ASCII."""
_PYTHONS = {each.name for each in pkgutil.iter_modules(encodings.__path__)} - _NEVER
"""Python's codecs. Some are of encodings that mails name and browsers don't read: UTF-7, cp850."""


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
        FileError: Python knows none of this name.
    """
    try:
        found = codecs.lookup(name)
        b"".decode(name)  # Some codecs are of bytes.
        "".encode(name)
    except (LookupError, UnicodeError, ValueError):
        found = None
    if found is None or found.incrementaldecoder is None:
        raise FileError(
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
    """Return the encoding that a page names in itself, if it does.

    A page whose name can be read isn't in UTF-16, so that means UTF-8 (HTML, 13.2.3.2).
    """
    for found in _NAMED.finditer(data, 0, _NAMED_WITHIN):
        if name := (found[1] or found[2] or b"").decode("latin-1").lower():
            return "utf-8" if name.startswith(_UTF_16) else name
    return None


def decoded(
    data: bytes, declared: str | None, otherwise: str | None = None, *, cut: bool = False
) -> str:
    """Return a text: by its mark, as it is declared, in UTF-8, or in the encoding ``otherwise``.

    ``cut``: it may end within a character, which is left out then.

    Raises:
        DocumentFault: it is in none of these.
    """
    ends = range(len(data), max(len(data) - _LONGEST * cut, 0) - 1, -1)
    for name in _candidates(data, declared, otherwise):
        for end in ends:
            if (text := _in(name, data[:end])) is not None:
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
    if declared is not None and _aliased(declared) not in _NEVER:
        yield declared
    yield "utf-8"
    if otherwise is not None:
        yield otherwise


def _in(name: str, data: bytes) -> str | None:
    """Return a text; None if it isn't in the encoding, or there is none of this name."""
    try:
        if name != "utf-16":  # Python's goes by the mark, and leaves it out.
            return decode(data, name)
    except LookupError:  # The web has none of this name.
        pass
    codec = _aliased(name)
    if codec not in _PYTHONS:
        return None
    try:
        text = data.decode(codec)
        text.encode()  # Some encodings have lone surrogates.
    except (LookupError, UnicodeError, ValueError):  # Some codecs are of bytes.
        return None
    return text


def _aliased(name: str) -> str:
    """Return the name of Python's codec, if it has one."""
    spelt = _BETWEEN.sub("_", name.lower())
    return aliases.get(spelt, spelt)
