"""How files are read: by their names, unless the command line says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Literal, Self, TypeAlias

from worker.files.compressed import COMPRESSIONS
from worker.files.encodings import checked
from worker.files.errors import FileError
from worker.settings.model import Settings
from worker.settings.sections import DocumentsSection

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
