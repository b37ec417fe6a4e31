"""Mailboxes: files of mails, each behind a line that begins with ``From ``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from worker.files.compressed import Reader
from worker.files.errors import DocumentFault, InputFault
from worker.files.made import Made
from worker.files.mails import FIELD, MOST_BYTES, mail_of

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
