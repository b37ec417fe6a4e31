"""The heads of requests, as far as this server needs them."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["REQUEST", "Head", "body_of", "head_of"]

REQUEST = re.compile(rb"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]\r?\n")
"""A first line: the method and the target."""
_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"\d{1,15}")


class Head(NamedTuple):
    """The first line and the headers of a request.

    ``path`` is the target without a query string. ``length`` is that of the body; None if no
    header says it, or if the body comes in chunks. ``expects``: the client waits for leave to send
    the body.
    """

    method: bytes
    path: bytes
    length: int | None
    expects: bool


def head_of(received: bytes) -> Head | None:
    """Return the head of a request of which the whole head was received; None if it is none."""
    request = REQUEST.match(received)
    if request is None:
        return None
    method, target = request.groups()
    length, chunked, expects = None, False, False
    for line in _END.split(received, 1)[0].splitlines()[1:]:
        name, _, value = line.partition(b":")
        match name.lower():
            case b"content-length":
                given = value.strip()
                if not _LENGTH.fullmatch(given) or length not in (None, int(given)):
                    return None
                length = int(given)
            case b"transfer-encoding":
                chunked = True
            case b"expect":
                expects = value.strip().lower() == b"100-continue"
            case _:
                pass
    return Head(method, target.partition(b"?")[0], None if chunked else length, expects)


def body_of(received: bytes) -> bytes:
    """Return what was received after the head."""
    return _END.split(received, 1)[1]
