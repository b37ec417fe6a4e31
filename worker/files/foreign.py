"""Content that isn't JSON Lines, and how to make it so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from worker.files.encodings import likely_encoding
from worker.files.errors import InputFault
from worker.offline.filter import Line

_PEEK = 512
_TAR = (257, b"ustar")
_TAKEN_APART = (
    (rb"PK\x03\x04", "a zip archive", "unzip -p FILE"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x -so FILE"),
    (rb"(?:\x04\x22|[\x50-\x5f]\x2a)\x4d\x18", "an lz4 file", "lz4 -dc FILE"),
    (rb"\x1f\x9d", "a file of compress", "gzip -dc FILE"),
    (rb"LZIP\x01", "an lzip file", "lzip -dc FILE"),
    (rb"Obj\x01", "an Avro file", "fastavro FILE"),
)
_TABLES = (
    (rb"PAR1\x15", "Parquet, which can't be read from a pipe; name an uncompressed file"),
    (rb"ARROW1\0\0", "an Arrow file; write it as Parquet or JSON Lines"),
)
_BOM_AND_SPACE = rb"(?:\xef\xbb\xbf)?\s*"
ARRAY = re.compile(_BOM_AND_SPACE + rb"\[")
_ARRAY_OF_LINES = re.compile(_BOM_AND_SPACE + rb"\[[ \t]*\r?\n")
_PRETTY = re.compile(_BOM_AND_SPACE + rb"\{[ \t]*\r?\n")


def check_content(name: str, start: bytes, tool: str | None, *, json: bool) -> None:
    """Refuse a file whose first bytes show that it isn't what it should be.

    ``name`` is ``-`` for standard input, ``tool`` decompresses the file if it is compressed, and
    ``json`` is whether its lines should be JSON.

    Raises:
        InputFault: the message says what the file is, and how to read it.
    """
    start = start[:_PEEK]
    for magic, what, command in _TAKEN_APART:
        if re.match(magic, start, re.DOTALL):
            raise InputFault(f"is {what}; pipe it in: {_command(command, name, tool)} | neardup …")
    if (encoding := likely_encoding(start)) is not None:
        raise InputFault(f"is not UTF-8; it looks like --encoding {encoding}")
    for magic, what in _TABLES:
        if re.match(magic, start):
            raise InputFault(f"is {what}")
    place, mark = _TAR
    if start[place:].startswith(mark):
        command = _command("tar -xOf FILE", name, tool, piped="-")
        raise InputFault(f"is a tar archive; pipe it in: {command} | neardup …")
    if not json:
        return
    if _ARRAY_OF_LINES.match(start):
        raise InputFault(f"is a JSON array; {spread('.[]', name, tool)}")
    if _PRETTY.match(start):
        raise InputFault(f"has documents of several lines; {spread('.', name, tool)}")


def no_array(lines: Iterator[Line], name: str, tool: str | None) -> Iterator[Line]:
    """Yield the lines of a file, unless it is an array in one line that is longer than the limit.

    Raises:
        InputFault: it is.
    """
    for line in lines:
        if not line.complete and ARRAY.match(line.raw):
            raise InputFault(f"is a JSON array; {spread('.[]', name, tool)}")
        yield line
        break
    yield from lines


def spread(path: str, name: str, tool: str | None) -> str:
    """Return what to do with JSON that isn't JSON Lines; ``path`` leads jq to the documents."""
    command = _command(f"jq -c {shlex.quote(path)} FILE", name, tool)
    return f"write one document per line: {command} | neardup …"


def _command(command: str, name: str, tool: str | None, piped: str = "") -> str:
    """Return a command in which FILE is the file, or ``piped`` if its content comes by pipe."""
    if name != "-" and tool is None:
        return command.replace("FILE", shlex.quote(name))
    before = "…" if name == "-" else f"{tool} {shlex.quote(name)}"
    return f"{before} | {command.replace('FILE', piped).rstrip()}"
