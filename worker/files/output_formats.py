"""What ``dedupe`` writes: the format that the name of an output means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from worker.files.csv_rows import DELIMITERS
from worker.files.errors import FileError
from worker.files.files import Inputs
from worker.files.reading import KINDS, Kind, suffix_of
from worker.files.table_copies import CsvCopy, ParquetCopy
from worker.files.verdict_lines import UniqueLines, VerdictLines
from worker.files.verdict_tables import CsvVerdicts, Lines, ParquetVerdicts, VerdictWriter
from worker.formats.base import DocumentFormat

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
    kind, copies = format_of(out), unique_only or keep_columns
    if kind == "json":
        if keep_columns:
            raise FileError("--keep-columns: name the output .csv, .tsv or .parquet, with -o")
        return UniqueLines() if unique_only else VerdictLines(documents)
    if copies and inputs.kinds != {kind}:
        of = "CSV" if kind == "csv" else "Parquet"
        raise FileError(
            f"-o {out}: --keep-columns and --unique-only write rows of {of} only if all inputs are"
            f" {of}, by their names"
        )
    if kind == "csv":
        lines = Lines(DELIMITERS[suffix_of(str(out))], keep_formulas=keep_formulas)
        if copies:
            return CsvCopy(documents, lines, inputs.csv, unique_only=unique_only)
        return CsvVerdicts(documents, lines, inputs.csv)
    if copies:
        return ParquetCopy(documents, inputs.reopened, unique_only=unique_only)
    return ParquetVerdicts(documents)
