"""What a file is: by its name, unless the command line says otherwise, and by its first bytes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Literal, Self, TypeAlias

from worker.files.compressed import COMPRESSIONS
from worker.files.encodings import checked, likely_encoding
from worker.files.errors import FileError, InputFault
from worker.offline.filter import Line
from worker.settings.documents import DocumentsSection
from worker.settings.model import Settings

FileFormat: TypeAlias = Literal["json", "text", "lines"]
Kind: TypeAlias = Literal["json", "csv", "parquet", "text", "html", "mail", "mbox", "warc", "lines"]

KINDS: Final[Mapping[str, Kind]] = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".markdown": "text",
    ".rst": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".eml": "mail",
    ".mbox": "mbox",
    ".warc": "warc",
    ".wet": "warc",
}
"""What a file is, by its suffix without that of a compression."""
DATA: Final = frozenset({"json", "csv", "parquet"})
"""The files whose lines or rows are documents, with fields."""
TEXTS: Final = frozenset({"text", "html"})
"""The files that are one text."""
_KINDS_OF: Final[Mapping[FileFormat | None, frozenset[str]]] = {
    None: frozenset(KINDS.values()),
    "json": DATA,
    "text": frozenset(KINDS.values()) - DATA,
    "lines": frozenset({"text"}),
}
_COMPRESSED = {each.suffix for each in COMPRESSIONS}


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name without that of its compression, in lower case."""
    path = PurePath(name.lower())
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix


@dataclass(frozen=True, slots=True)
class Reading:
    """What the command line says of files.

    format: json: lines or rows with fields. text: a file is a text; mails and WARC records are
        documents of their own. lines: a line is a text. None: by the names of the files.
    encoding: of what doesn't name its own; None: UTF-8, or what a byte order mark says.
    follow_links: whether links in a directory may lead out of it.
    state: a directory with an index, which isn't read.
    """

    format: FileFormat | None = None
    encoding: str | None = None
    follow_links: bool = False
    state: Path | None = None

    @classmethod
    def given(
        cls,
        format_: str | None,
        encoding: str | None,
        documents: DocumentsSection,
        *,
        follow_links: bool = False,
    ) -> Self:
        """Return what the options say; by default, plain text documents are in files of text.

        Raises:
            FileError: an option has another value than it takes.
        """
        match format_:
            case "json" | "text" | "lines":
                chosen: FileFormat | None = format_
            case None:
                chosen = "text" if documents.format == "text" else None
            case _:
                raise FileError(f"--format: got {format_!r}, must be json, text or lines")
        return cls(chosen, None if encoding is None else checked(encoding), follow_links)

    def offline(self, settings: Settings) -> Settings:
        """Return settings by which a filter of files reads what is made of the documents.

        All are JSON objects, except that a line can be a text.
        """
        format_: Literal["json", "text"] = "text" if self.format == "lines" else "json"
        given = {"format": format_, "key": settings.documents.key}
        if settings.documents.key == "registry":
            given["key"] = "auto"  # Files have no keys with schemas.
        documents = settings.documents.model_copy(update=given)
        return settings.model_copy(update={"documents": documents})

    @property
    def suffixes(self) -> frozenset[str]:
        """Return the suffixes of the files that are read of a directory."""
        kinds = _KINDS_OF[self.format]
        return frozenset(suffix for suffix, kind in KINDS.items() if kind in kinds)

    def kind(self, name: str) -> Kind:
        """Return what a file of this name is read as."""
        if self.format == "lines":
            return "lines"
        found = KINDS.get(suffix_of(name))
        if found is not None and found in _KINDS_OF[self.format]:
            return found
        return "text" if self.format == "text" else "json"


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
