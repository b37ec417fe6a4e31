"""Mails and mailboxes: the texts of mails, and what else their headers say.

Nothing here takes more time than a mail's bytes, for each level of its parts: parts, levels and the
fields that are read are bounded. The standard library's parser takes the square of a header.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_qp
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from lsh._core import Normaliser
from worker.files.compressed import Reader, skipped
from worker.files.encodings import decoded, in_html
from worker.files.errors import DocumentFault, InputFault
from worker.files.texts import Made
from worker.formats.date_parsing import date_ms

MOST_BYTES: Final = 16 << 20
"""The most bytes of a mail: attachments are read, and not kept."""
_MOST_FIELD = 8 << 10
_MOST_PARTS = 1_000
_MOST_LEVELS = 20
_LONGEST_DATE = 100
_COMPARED = 100_000
"""Characters of alternatives that are compared."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIELD: Final = rb"[!-9;-~]*+[ \t]*+:[^\n]*+(?:\n|\Z)"
"""A pattern of a header's line that begins a field."""
_HEADER = re.compile(rb"(?:>?From [^\n]*+\n)?+((?:%s|[ \t][^\n]*+(?:\n|\Z))*+)(?:\r?\n)?+" % FIELD)
_READ = re.compile(
    rb"^(message-id|date|from|subject|content-(?:type|disposition|transfer-encoding))[ \t]*+:"
    rb"([^\n]*+(?:\n[ \t][^\n]*+)*+)",
    re.IGNORECASE | re.MULTILINE,
)
_PARAMETER = re.compile(r'[;\s]\s*+([^\s=;"]++)\s*+=\s*+("(?:[^"\\]|\\.)*+"?+|[^;\s]*+)')
_ESCAPED = re.compile(r"\\(.)")
_ENCODED_WORD = re.compile(rb"=\?([^?\s]{1,40})\?([bBqQ])\?([^?]*+)\?=(?:[ \t\r\n]+(?==\?))?")
_NO_BASE64 = bytes(each for each in range(256) if not re.match(rb"[A-Za-z0-9+/=]", bytes([each])))
_CONTROL = re.compile(r"[\0-\x08\x10-\x1a\x1c-\x1f]")
_LEAST_TEXT = 50
"""Characters of a text for each control character. Other data has one in ten."""
_OF_BYTES = re.compile(r"(x-)?(uu|yenc|binhex|gzip|bzip)")
"""Transfer encodings that nobody writes any more. Other unknown names stand beside plain text."""
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|\w+")
"""A word, or a character of a script without spaces."""
_visible = Normaliser(strip_html=True, casefold=True).normalise

_KNOWN = {
    *(b"from", b"to", b"subject", b"date", b"message-id", b"received", b"return-path", b"sender"),
    *(b"delivered-to", b"reply-to", b"mime-version", b"content-type", b"newsgroups", b"path"),
}
_LEAST_KNOWN = 2
_WITHIN = 4_096
_Bytes: TypeAlias = "bytes | memoryview"


class _Text(NamedTuple):
    media: str
    text: str

    @property
    def seen(self) -> str:
        """Return what people see of it."""
        return _visible(self.text) if self.media == "text/html" else self.text.casefold()


def is_mail(start: bytes) -> bool:
    """Return whether a file begins with a mail's header."""
    header, _ = _header(start[:_WITHIN].rpartition(b"\n")[0])
    names = {line.partition(b":")[0].strip().lower() for line in header.splitlines()}
    return not start.startswith(b"From ") and len(names & _KNOWN) >= _LEAST_KNOWN


def mail(file: Reader, ident: str, encoding: str | None) -> Made:
    """Return the mail that a file is.

    Raises:
        DocumentFault: as `mail_of`.
    """
    data = file.read(MOST_BYTES + 1)
    size = len(data) + (skipped(file) if len(data) > MOST_BYTES else 0)
    return mail_of(data, size, encoding)._replace(id=ident)


def mail_of(data: bytes, size: int, encoding: str | None) -> Made:
    """Return a mail of ``size`` bytes, of which those above the limit may be missing.

    Raises:
        DocumentFault: it or something in it is too large, or its text isn't in its encoding.
    """
    if size > MOST_BYTES:
        raise _too_large("mail", size, MOST_BYTES)
    fields, body = _divided(memoryview(data))
    texts = _Texts(encoding).of(fields, body)
    known = {
        "message_id": _words(fields.get("message-id", b"")),
        "date": _date(_words(fields.get("date", b""))),
        "from": _words(fields.get("from", b"")),
        "subject": _words(fields.get("subject", b"")),
    }
    known = {name: value for name, value in known.items() if value}
    return Made(known.get("message_id"), known, "\n".join(text for _, text in texts))


def _too_large(what: str, size: int, most: int) -> DocumentFault:
    return DocumentFault(f"too-large: the {what} has {size} bytes; the limit is {most}")


def _divided(data: _Bytes) -> tuple[dict[str, bytes], _Bytes]:
    """Return the fields of a header that are read, and what follows, from the line break before it.

    Raises:
        DocumentFault: a field is too large.
    """
    fields: dict[str, bytes] = {}
    header, end = _header(data)
    for found in _READ.finditer(header):
        name, value = found[1].decode().lower(), found[2].strip()
        if len(value) > _MOST_FIELD:
            raise _too_large(f"mail's field {name}", len(value), _MOST_FIELD)
        fields.setdefault(name, value)
    return fields, data[end - 1 :] if end else b"\n" + bytes(data)


def _header(data: _Bytes) -> tuple[bytes, int]:
    """Return the lines of a header, perhaps none, and where the body begins."""
    found = _HEADER.match(data)
    return (found[1], found.end()) if found else (b"", 0)


class _Texts:
    """Reads the texts in a mail's parts, and counts the parts."""

    def __init__(self, encoding: str | None) -> None:
        self._encoding = encoding
        self._parts = 0

    def of(
        self, fields: dict[str, bytes], body: _Bytes, media: str = "text/plain", level: int = 0
    ) -> list[_Text]:
        """Return those of a part, without attachments; ``media``: its type if it names none.

        Raises:
            DocumentFault: they can't be read, or there are too many parts.
        """
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise DocumentFault(f"too-large: the mail has more than {_MOST_PARTS} parts")
        if level > _MOST_LEVELS:
            raise DocumentFault(f"too-deep: the mail's parts have more than {_MOST_LEVELS} levels")
        if fields.get("content-disposition", b"").lower().startswith(b"attachment"):
            return []
        named, parameters = _parameters(fields.get("content-type", b""))
        media = named if "/" in named else media
        if media.startswith("multipart/"):
            usual = "message/rfc822" if media == "multipart/digest" else "text/plain"
            parts = _parts(body, parameters.get("boundary", ""))
            found = [self.of(*_divided(part), usual, level + 1) for part in parts]
            if parts:
                return _chosen(found) if media == "multipart/alternative" else _all(found)
        elif media != "message/rfc822" and not media.startswith("text/"):
            return []
        content = _content(body[1:], fields.get("content-transfer-encoding", b""))
        if media == "message/rfc822":
            return self.of(*_divided(content), level=level + 1)
        content = bytes(content)
        charset = parameters.get("charset") or (in_html(content) if media == "text/html" else None)
        text = decoded(content, charset, self._encoding)
        if _CONTROL.subn("", text)[1] * _LEAST_TEXT > len(text):
            raise DocumentFault("bad-encoding: the mail's text has control characters all over")
        return [_Text(media, text)]


def _parts(body: _Bytes, boundary: str) -> list[_Bytes]:
    """Return what is between the lines of a boundary, and behind the last if it is no closing one.

    Stops one above the most parts.
    """
    if not boundary:
        return []
    mark = re.escape(boundary.encode("latin-1"))
    parts: list[_Bytes] = []
    begun: int | None = None
    for found in re.finditer(rb"\n--%s(--)?+[ \t]*+\r?+(?:(?=\n)|\Z)" % mark, body):
        if begun is not None:
            end = found.start()
            part = body[begun : end - (body[end - 1 : end] == b"\r")]
            parts += [part] if part else []
            if len(parts) > _MOST_PARTS:
                return parts
        begun = found.end() + 1
        if found[1]:
            return parts or [b""]
    return parts if begun is None else [*parts, body[begun:]]


def _all(found: list[list[_Text]]) -> list[_Text]:
    return [text for texts in found for text in texts]


def _chosen(found: list[list[_Text]]) -> list[_Text]:
    """Return the alternative to read: plain text if half of the words of the HTML are in it.

    Many plain parts say only that there is HTML.
    """
    html = next((texts for texts in found[::-1] if _has(texts, "text/html")), [])
    plain = next((texts for texts in found if _has(texts, "text/plain") and texts is not html), [])
    if not html or not plain:
        return html or plain or next(filter(None, found), [])
    seen = _words_of(html)
    return plain if 2 * len(seen & _words_of(plain)) >= len(seen) else html


def _has(texts: list[_Text], media: str) -> bool:
    return any(text.media == media for text in texts)


def _words_of(texts: list[_Text]) -> set[str]:
    """Return the different words that people see, in the beginning."""
    return set(_WORD.findall("\n".join(text.seen for text in texts)[:_COMPARED]))


def _content(body: _Bytes, coding: bytes) -> _Bytes:
    """Return a part as it was before its transfer.

    Raises:
        DocumentFault: it isn't in the encoding.
    """
    name = coding.decode("latin-1").lower()
    if name.startswith("quoted-printable"):
        return a2b_qp(body)
    if name.startswith("base64"):
        return _of_base64(bytes(body))
    if _OF_BYTES.match(name):
        raise DocumentFault(f"bad-encoding: can't read a part in {name[:20]!r}")
    return body


def _of_base64(data: bytes) -> bytes:
    """Return what base64 says, as RFC 2045 reads it: other bytes don't count."""
    digits = data.translate(None, _NO_BASE64).partition(b"=")[0]
    return a2b_base64(digits[: len(digits) - (len(digits) % 4 == 1)] + b"==")


def _parameters(field: bytes) -> tuple[str, dict[str, str]]:
    """Return a field's value in lower case, and its parameters (RFC 2231)."""
    text = " ".join(field.decode("latin-1").split())
    found: dict[str, str] = {}
    for given, value in _PARAMETER.findall(text):
        name, continued, _ = given.lower().partition("*")
        said = _ESCAPED.sub(r"\1", value.strip('"')) if value.startswith('"') else value.strip()
        if not continued:
            found.setdefault(name, said)
            continue
        if given.endswith("*"):
            said = unquote_to_bytes(said.rpartition("'")[2]).decode("latin-1")
        found[name] = found.get(name, "") + said
    return text.lower().partition(";")[0].partition(" ")[0], found


def _words(field: bytes) -> str:
    """Return a field as people read it (RFC 2047)."""
    parts: list[tuple[str, bytes]] = []
    at = 0
    for found in _ENCODED_WORD.finditer(field):
        charset = found[1].decode("latin-1").partition("*")[0].lower()
        word = _of_base64(found[3]) if found[2] in b"bB" else a2b_qp(found[3], header=True)
        if parts and at == found.start() and parts[-1][0] == charset:  # May divide a character.
            parts[-1] = (charset, parts[-1][1] + word)
        else:
            parts += [("utf-8", field[at : found.start()]), (charset, word)]
        at = found.end()
    parts.append(("utf-8", field[at:]))
    return " ".join("".join(decoded(data, name, "latin-1") for name, data in parts).split())


def _date(given: str) -> str:
    """Return the date in ISO 8601, or as it stands there if it can't be read."""
    try:
        moment = parsedate_to_datetime(given[:_LONGEST_DATE])
        if moment.tzinfo is None:  # Or in a zone that the standard library doesn't know.
            moment = _EPOCH + timedelta(milliseconds=date_ms(given))
        return moment.isoformat()
    except (TypeError, ValueError, OverflowError):
        return given


_BEGINNING = re.compile(rb">?From |" + FIELD)
_BLANK_END = re.compile(rb"(?<=\n)\r?\n\Z")
"""The blank line that ends a message in a mailbox."""
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_SEPARATOR = re.compile(
    rb"From .{0,400}?\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:"
    rb"[A-Z][a-z]{2} +\d{1,2} +\d{1,2}:\d\d(?::\d\d)?(?: +[-+\w]{1,5}){0,2} +\d{4}"
    rb"|\d{1,2} +[A-Z][a-z]{2} +\d{4} +\d{1,2}:\d\d)\b"
)
"""Has a date, in the order of asctime or of RFC 822, behind an address of any spelling or none."""


def is_mailbox(start: bytes) -> bool:
    """Return whether a file begins with a line that divides mailboxes, and a header."""
    line, _, rest = start.lstrip().partition(b"\n")
    return _SEPARATOR.match(line) is not None and re.match(FIELD, rest) is not None


def messages(file: Reader, encoding: str | None) -> Iterator[Made | DocumentFault]:
    """Yield the messages of a mailbox, or their faults.

    Raises:
        InputFault: the file doesn't begin like a mailbox.
    """
    for data, size in _split(file):
        try:
            yield mail_of(_QUOTED.sub(rb"\1", data), size, encoding)
        except DocumentFault as fault:
            yield fault


def _split(file: Reader) -> Iterator[tuple[bytes, int]]:
    """Yield each message, or its beginning, and the bytes that it has.

    A line that begins with ``From `` and has a date begins a message if a header follows. Some
    programs write no date: if the first such line has none, others needn't, but follow blank lines.
    """
    kept: bytearray | None = None
    size, blank, dated = 0, True, True
    line = file.readline(MOST_BYTES)
    while line:
        following = file.readline(MOST_BYTES)
        if kept is None and not line.isspace():
            if not line.startswith(b"From "):
                raise InputFault("is no mailbox: its first line doesn't begin with 'From '")
            kept, size, dated = bytearray(), 0, _SEPARATOR.match(line) is not None
        elif (
            line.startswith(b"From ")
            and (_SEPARATOR.match(line) if dated else blank)
            and _BEGINNING.match(following)
        ):
            yield _BLANK_END.sub(b"", kept or b""), size
            kept, size = bytearray(), 0
        elif kept is not None:
            size += len(line)
            if size <= MOST_BYTES:
                kept += line
        blank = line in {b"\n", b"\r\n"}
        line = following
    if kept is not None:
        yield _BLANK_END.sub(b"", kept), size
