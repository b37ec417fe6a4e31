"""Mails, and mailboxes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import parsedate_to_datetime

from worker.cli.inputs.compressed import Reader
from worker.cli.inputs.encodings import decoded
from worker.cli.inputs.fault import DocumentFault, InputFault
from worker.cli.inputs.made import Made
from worker.cli.inputs.texts import skipped

__all__ = ["mail", "messages"]

_MOST_BYTES = 16 << 20
"""The most bytes of a mail: attachments are read, and not kept."""
_HEADER = re.compile(rb"[!-9;-~]+[ \t]*:|>?From ")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)
_parse = BytesParser(policy=compat32).parsebytes


def mail(file: Reader, ident: str, encoding: str | None) -> Made:
    """Return the mail that a file is.

    Raises:
        DocumentFault: it is too large, or its text is in another encoding than it says.
    """
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise _too_large(len(data) + skipped(file))
    return _read(data, encoding)._replace(id=ident)


def messages(file: Reader, encoding: str | None) -> Iterator[Made | DocumentFault]:
    """Yield the messages of a mailbox, or their faults.

    Raises:
        InputFault: the file doesn't begin like a mailbox.
    """
    for data, size in _split(file):
        try:
            if size > _MOST_BYTES:
                raise _too_large(size)
            yield _read(_QUOTED.sub(rb"\1", data), encoding)
        except DocumentFault as fault:
            yield fault


def _split(file: Reader) -> Iterator[tuple[bytes, int]]:
    """Yield each message, or its beginning, and the bytes that it has.

    A line that begins with ``From `` begins a message if it is the first one, or if it follows a
    blank line and a header follows it: not all programs quote such lines in texts.
    """
    lines: list[bytes] | None = None
    size, blank = 0, True
    line = file.readline(_MOST_BYTES)
    while line:
        following = file.readline(_MOST_BYTES)
        if lines is None and not line.isspace():
            if not line.startswith(b"From "):
                raise InputFault("is no mailbox: its first line doesn't begin with 'From '")
            lines, size = [], 0
        elif blank and line.startswith(b"From ") and _HEADER.match(following):
            yield _joined(lines or []), size
            lines, size = [], 0
        elif lines is not None:
            size += len(line)
            if size <= _MOST_BYTES:
                lines.append(line)
        blank = line in {b"\n", b"\r\n"}
        line = following
    if lines is not None:
        yield _joined(lines), size


def _joined(lines: list[bytes]) -> bytes:
    """Return a message without the blank line that ends it in a mailbox."""
    return b"".join(lines[:-1] if lines and lines[-1].isspace() else lines)


def _too_large(size: int) -> DocumentFault:
    return DocumentFault(f"too-large: the mail has {size} bytes; the limit is {_MOST_BYTES}")


def _read(data: bytes, encoding: str | None) -> Made:
    try:
        message = _parse(data)
        parts = _parts(message)
        text = "\n".join(_text(part, encoding) for part in parts)
        known = {
            "message_id": _header(message, "Message-ID"),
            "date": _date(message),
            "from": _header(message, "From"),
            "subject": _header(message, "Subject"),
        }
    except (MessageError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DocumentFault(f"not-mail: {error}") from None
    except RecursionError:
        raise DocumentFault("too-deep: the mail's parts are nested too deeply") from None
    known = {name: value for name, value in known.items() if value}
    return Made(known.get("message_id"), known, text)


def _parts(message: Message) -> list[Message]:
    """Return the parts with text that are no attachments; of alternatives, plain text if any."""
    if message.get_content_disposition() == "attachment":
        return []
    if message.is_multipart():
        inner = [_parts(part) for part in message.get_payload()]  # type: ignore[arg-type]
        if message.get_content_subtype() != "alternative":
            return [part for parts in inner for part in parts]
        plain = (ps for ps in inner if any(p.get_content_subtype() == "plain" for p in ps))
        return next(plain, None) or next(filter(None, inner), [])
    return [message] if message.get_content_maintype() == "text" else []


def _text(part: Message, encoding: str | None) -> str:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    return decoded(data, part.get_content_charset(), encoding)


def _header(message: Message, name: str) -> str:
    """Return a header as people read it."""
    found = message.get(name)
    if found is None:
        return ""
    try:
        parts = [
            part if isinstance(part, str) else decoded(part, charset, "latin-1")
            for part, charset in decode_header(found)
        ]
    except (DocumentFault, MessageError, ValueError):
        parts = [str(found)]
    return " ".join("".join(parts).split()).encode(errors="replace").decode()


def _date(message: Message) -> str:
    """Return the date in ISO 8601, or as it stands there if it can't be read."""
    given = _header(message, "Date")
    try:
        return parsedate_to_datetime(given).isoformat()
    except (TypeError, ValueError, OverflowError):
        return given
