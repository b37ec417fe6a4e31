"""The lines that ``dedupe`` writes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict
from worker.visible import json_escaped

_encode = msgspec.json.encode


class _First(msgspec.Struct):
    """The first match, without its sequence number.

    That depends on how files are cut into runs, and the output doesn't.
    """

    id: str


_first = msgspec.json.Decoder(_First)


def first_of(verdict: Verdict) -> str:
    """Return the id of the earliest match of a duplicate."""
    return _first.decode(verdict.first).id


def named(format_: DocumentFormat, line: Line) -> str:
    """Return the id as the stages see it, or FILE:LINE if it is missing or invalid."""
    value = line.value if line.complete else b""
    return (format_.identify(value, line.key) or line.key).decode()


class VerdictLines:
    """Writes a JSON object per document: id, verdict, and the matches or the reason."""

    def __init__(self, format_: DocumentFormat) -> None:
        """Keep the format, which finds the ids."""
        self._format = format_

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the output for a chunk."""
        return b"".join(map(_inert, map(self._line, lines, verdicts)))

    def end(self) -> bytes:
        """Return nothing: each line is whole."""
        return b""

    def _line(self, line: Line, verdict: Verdict) -> bytes:
        ident = _encode(named(self._format, line))
        group = b"" if verdict.group is None else b',"group":%s' % _encode(verdict.group)
        if verdict.kind == "unique":
            return b'{"id":%s,"verdict":"unique"%s}\n' % (ident, group)
        if verdict.kind == "duplicate":
            first = _encode(_First(first_of(verdict)))
            return b'{"id":%s,"verdict":"duplicate","duplicate_of":%s,"duplicate_first":%s%s}\n' % (
                ident,
                verdict.matches,
                first,
                group,
            )
        if verdict.kind == "deleted":
            return b'{"id":%s,"verdict":"deleted"}\n' % ident
        reason = _encode(verdict.reason)
        return b'{"id":%s,"verdict":"rejected","reason":%s}\n' % (ident, reason)


def _inert(line: bytes) -> bytes:
    """Return a line of JSON that a terminal can't obey: an id may hold any character."""
    if line.isascii() and b"\x7f" not in line:
        return line
    return json_escaped(line.decode()).encode()


class UniqueLines:
    """Writes the lines of unique documents as they were read.

    If the last line of a file has no newline, it gets one only if another line follows.
    """

    def __init__(self) -> None:
        """Start with no line written."""
        self._open = False

    def encode(self, lines: Sequence[Line], verdicts: Sequence[Verdict]) -> bytes:
        """Return the output for a chunk."""
        kept = []
        for line, verdict in zip(lines, verdicts, strict=True):
            if verdict.kind == "unique":
                if self._open:
                    kept.append(b"\n")
                kept.append(line.raw)
                self._open = not line.raw.endswith(b"\n")
        return b"".join(kept)

    def end(self) -> bytes:
        """Return nothing: the last line ends as it did in its file."""
        return b""
