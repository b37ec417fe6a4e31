"""The verdicts that ``dedupe`` writes, in the format that the name of an output means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from worker.files.csv_rows import DELIMITERS
from worker.files.errors import FileError
from worker.files.inputs import Inputs
from worker.files.reading import KINDS, Kind, suffix_of
from worker.files.tables import CsvTable, Lines, ParquetTable, VerdictWriter, first_of, named
from worker.formats.base import DocumentFormat
from worker.offline.filter import Line, Verdict
from worker.visible import json_escaped

_ADDRESS = re.compile(r"[a-z][a-z0-9]+:/")
"""How an address such as ``s3://bucket/key`` begins as a path."""
_COMPRESSED = {".gz", ".zst"}
_FORMATS: Final[Mapping[str, Kind]] = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""What is written under names with a suffix."""
_OTHER_FORMATS = {*KINDS, *[
    ".xlsx", ".xls", ".ods", ".arrow", ".feather", ".ipc", ".avro", ".orc", ".xml", ".yaml", ".yml",
    ".toml", ".pkl", ".npy", ".npz", ".h5", ".hdf5", ".db", ".sqlite", ".sqlite3", ".duckdb",
    ".sql", ".pdf", ".doc", ".docx", ".odt", ".rtf", ".msg", ".pst", ".mht", ".mhtml", ".wat",
    ".arc", ".bz2", ".xz", ".lz4", ".zip", ".tar", ".tgz", ".7z",
]} - {*_FORMATS, ".txt", ".text"}  # fmt: skip
"""Suffixes that promise something else. Names that promise nothing are given JSON Lines."""


def format_of(out: Path | None) -> Kind:
    """Return what is written under a name.

    Raises:
        FileError: it can't be written in the format that its name promises.
    """
    if out is None:
        return "json"
    if _ADDRESS.match(str(out)):
        raise FileError(f"-o {out}: the output must be a local file; copy it from there")
    compressed = out.suffix.lower() in _COMPRESSED
    suffix = (out.with_suffix("") if compressed else out).suffix.lower()
    if suffix in _OTHER_FORMATS:
        raise FileError(
            f"-o {out}: can't write {suffix}; what can be written is .jsonl, .csv and .tsv, each"
            " also with .gz or .zst, and .parquet"
        )
    kind = _FORMATS.get(suffix, "json")
    if kind == "parquet" and compressed:
        raise FileError(f"-o {out}: Parquet is compressed within; leave out {out.suffix}")
    return kind


def writer_for(
    out: Path | None,
    documents: DocumentFormat,
    inputs: Inputs,
    *,
    unique_only: bool,
    keep_columns: bool,
    keep_formulas: bool,
) -> VerdictWriter:
    """Return what writes a file of this name, for which `format_of` has an answer.

    Raises:
        FileError: the inputs can't be written in this format.
    """
    kind, own = format_of(out), unique_only or keep_columns
    if kind == "json":
        if keep_columns:
            raise FileError("--keep-columns: name the output .csv, .tsv or .parquet, with -o")
        return UniqueLines() if unique_only else VerdictLines(documents)
    if own and inputs.kinds != {kind}:
        of = "CSV" if kind == "csv" else "Parquet"
        raise FileError(
            f"-o {out}: --keep-columns and --unique-only write rows of {of} only if all inputs are"
            f" {of}, by their names"
        )
    if kind == "csv":
        lines = Lines(DELIMITERS[suffix_of(str(out))], keep_formulas=keep_formulas)
        return CsvTable(documents, lines, inputs.csv, own=own, verdicts=not unique_only)
    return ParquetTable(documents, inputs.reopened if own else None, verdicts=not unique_only)


_encode = msgspec.json.encode


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
            first = _encode({"id": first_of(verdict)})
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
