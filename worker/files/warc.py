"""The records of WARC files: pages as they were crawled, and texts that were taken out of them."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import zstandard

from worker.files.compressed import Reader, skipped
from worker.files.encodings import by_mark, decoded, in_html
from worker.files.errors import DocumentFault, InputFault, too_large
from worker.files.texts import Made

_MOST_BYTES = 16 << 20
"""The most bytes of a block. What a page expands to is bounded by the limit of documents."""
_MOST_HEADER = 1 << 16
_OF_TEXT = {"response", "resource", "conversion"}
_OF_THE_CRAWL = {"warcinfo", "request", "metadata"}
_TYPES = {"text/html", "application/xhtml+xml", "text/plain"}
"""The types of what people read. Others of ``text/`` are styles and scripts as often as not."""
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,8})[^\r\n]*\r?\n")
_GOOD = re.compile(rb"HTTP/[\d.]+ +2\d\d\b")
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
"""What no text has, and compressed data soon has."""
_TEXT_WITHIN = 512
_MOST_CODINGS = 5
"""What curl takes."""
_ZSTD_WINDOW = 8 << 20
"""What browsers take (RFC 9659)."""
_ZSTD_STEP = 256
"""Bytes that zstd gets in a step; see `compressed`."""
_LENGTH = re.compile(r"[0-9]{1,15}")
_HEAD_END = re.compile(rb"\n\r?\n")


def records(
    file: Reader, most: int, encoding: str | None, left_out: Counter[str]
) -> Iterator[Made | DocumentFault]:
    """Yield the texts in a file, of at most ``most`` bytes each, or their faults.

    Texts are bodies of responses with a status from 200 to 299, resources and conversions, if they
    are HTML or plain text. ``left_out`` counts all others; records about the crawl, if there is
    nothing else.

    Raises:
        InputFault: it is no WARC file, or damaged.
    """
    number, texts = 0, 0
    about: Counter[str] = Counter()
    while (fields := _header(file, number)) is not None:
        number += 1
        size = _size(fields, number)
        block = _read(file, min(size, _MOST_BYTES), number)
        if skipped(file, size - len(block)) < size - len(block):
            raise _cut(number)
        kind = fields.get("warc-type", "").lower()
        if kind in _OF_THE_CRAWL:
            about[f"{kind} records"] += 1
            continue
        found = _body(kind, fields, block)
        if isinstance(found, str):
            left_out[found] += 1
            continue
        texts += 1
        try:
            if size > len(block):
                raise too_large("record", size)
            yield _made(fields, found, most, encoding)
        except DocumentFault as fault:
            yield fault
    if not texts:  # As in a WAT file.
        left_out.update(about)


def _header(file: Reader, number: int) -> Mapping[str, str] | None:
    """Return the fields of the next record; None at the end."""
    line = b"\n"
    while line.isspace():
        line = file.readline(_MOST_HEADER)
    if not line:
        return None
    if not line.startswith(b"WARC/"):
        raise InputFault(
            f"is damaged after WARC record {number}"
            if number
            else "is no WARC file, by its content"
        )
    size, lines = 0, []
    while (line := file.readline(_MOST_HEADER)).strip():
        lines.append(line)
        size += len(line)
        if size > _MOST_HEADER:
            raise InputFault(
                f"WARC record {number + 1} has a header of more than {_MOST_HEADER} bytes"
            )
    return _fields(lines)


def _fields(lines: list[bytes]) -> Mapping[str, str]:
    """Return fields by their names in lower case; of several, the first."""
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode(errors="replace").partition(":")
        found.setdefault(name.strip().lower(), value.strip())
    return found


def _size(fields: Mapping[str, str], number: int) -> int:
    given = fields.get("content-length", "")
    if not _LENGTH.fullmatch(given):
        raise InputFault(f"WARC record {number} has no Content-Length")
    return int(given)


def _read(file: Reader, size: int, number: int) -> bytes:
    block = file.read(size)
    if len(block) < size:
        raise _cut(number)
    return block


def _cut(number: int) -> InputFault:
    return InputFault(f"ends within WARC record {number}")


class _Body(NamedTuple):
    """A body, the type that it says to have, and the fields with what it was transferred in."""

    content: bytes
    type: str
    http: Mapping[str, str]


def _body(kind: str, fields: Mapping[str, str], block: bytes) -> _Body | str:
    """Return a record's body, or what to call it if it isn't a text."""
    if kind not in _OF_TEXT:
        return f"{kind[:20] or 'nameless'} records"
    body = _Body(block, fields.get("content-type", ""), {})
    if kind == "response":
        if not body.type.lower().startswith("application/http"):
            return "responses without HTTP"
        end = _HEAD_END.search(block, 0, _MOST_HEADER)
        if end is None:
            return "responses whose header has no end"
        status, *lines = block[: end.start()].splitlines() or [b""]
        http = _fields(lines)
        if not _GOOD.match(status):
            return "responses with another status than 2xx"
        body = _Body(block[end.end() :], http.get("content-type", ""), http)
    media = body.type.partition(";")[0].strip().lower()
    if media not in _TYPES:
        return media[:40] or "bodies without a type"
    return body


def _content(body: _Body, most: int, *, cut: bool) -> bytes:
    """Return a body without what it was transferred in; often that was removed before."""
    content = body.content
    if "chunked" in body.http.get("transfer-encoding", "").lower():
        content = _joined(content)
    codings = body.http.get("content-encoding", "").lower().split(",")
    if len(codings) > _MOST_CODINGS:
        raise DocumentFault(f"bad-encoding: the body has {len(codings)} encodings, one in another")
    for coding in reversed(codings):
        content = _expanded(content, coding.strip(), most, cut=cut)
    if len(content) > most:
        raise too_large("body", len(content))
    return content


def _joined(content: bytes) -> bytes:
    """Return the chunks of a body; all of it if it doesn't consist of any."""
    joined = bytearray()
    at = 0
    while (found := _CHUNK.match(content, at)) is not None:
        size = int(found[1], 16)
        if size == 0:
            return bytes(joined)
        joined += content[found.end() : found.end() + size]
        at = found.end() + size
        if at > len(content):
            break
        at += 2 if content.startswith(b"\r\n", at) else content.startswith(b"\n", at)
    return bytes(joined) if joined and at >= len(content) else content


def _expanded(content: bytes, coding: str, most: int, *, cut: bool) -> bytes:
    """Return what a body expands to, at most one step above the limit.

    Raises:
        DocumentFault: it is neither in the coding nor text; or it ends early, and isn't ``cut``.
    """
    text = not _NO_TEXT.search(content, 0, _TEXT_WITHIN) or by_mark(content) is not None
    try:
        if coding in {"gzip", "x-gzip"} and content.startswith(b"\x1f\x8b"):
            found, whole = _inflated(content, 31, most)
        elif coding == "deflate" and content:
            found, whole = _inflated(content, 15 if content[0] == ord("x") else -15, most)
        elif coding == "zstd" and content.startswith(b"\x28\xb5\x2f\xfd"):
            found, whole = _of_zstd(content, most)
        elif text or coding in {"", "identity"}:
            return content
        else:
            raise DocumentFault(f"bad-encoding: can't read a body in {coding[:20]!r}")
    except (zlib.error, zstandard.ZstdError) as error:
        if text:
            return content
        raise DocumentFault(f"bad-encoding: damaged {coding} data: {error}") from None
    if whole or cut or len(found) > most:
        return found
    raise DocumentFault(f"bad-encoding: the {coding} data ends too early")


def _inflated(content: bytes, window: int, most: int) -> tuple[bytes, bool]:
    """Return what zlib makes of a body, and whether that is all."""
    member = zlib.decompressobj(window)
    return member.decompress(content, most + 1), member.eof


def _of_zstd(content: bytes, most: int) -> tuple[bytes, bool]:
    frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
    found = bytearray()
    for at in range(0, len(content), _ZSTD_STEP):
        found += frame.decompress(content[at : at + _ZSTD_STEP])
        if frame.eof or len(found) > most:
            break
    return bytes(found), frame.eof


def _made(fields: Mapping[str, str], body: _Body, most: int, encoding: str | None) -> Made:
    cut = "warc-truncated" in fields
    content = _content(body, most, cut=cut)
    html = "html" in body.type.lower()
    named = _CHARSET.search(body.type)
    charset = named[1] if named else in_html(content) if html else None
    uri, date = fields.get("warc-target-uri", "").strip("<>"), fields.get("warc-date", "")
    known = {name: value for name, value in (("uri", uri), ("date", date)) if value}
    text = decoded(content, charset, encoding, cut=cut)
    return Made(fields.get("warc-record-id") or uri or None, known, text)
