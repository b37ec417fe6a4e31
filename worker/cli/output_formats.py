"""What ``dedupe`` writes: the format that the name of an output means."""

from __future__ import annotations

import re
from pathlib import Path

from worker.cli.errors import CommandError
from worker.cli.inputs import Inputs
from worker.cli.inputs.reading import Kind
from worker.cli.table_copies import CsvCopy, ParquetCopy
from worker.cli.verdict_lines import UniqueLines, VerdictLines
from worker.cli.verdict_tables import CsvVerdicts, ParquetVerdicts, VerdictWriter
from worker.formats.base import DocumentFormat

__all__ = ["writer_for"]

_ADDRESS = re.compile(r"[a-z][a-z0-9]+:/")
"""How an address such as ``s3://bucket/key`` begins as a path."""
_COMPRESSED = {".gz", ".zst"}
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = {".parquet", ".pq"}
_OTHER_FORMATS = frozenset(
    [
        ".json",
        ".xlsx",
        ".xls",
        ".ods",
        ".arrow",
        ".feather",
        ".ipc",
        ".avro",
        ".orc",
        ".xml",
        ".html",
        ".yaml",
        ".yml",
        ".toml",
        ".pkl",
        ".npy",
        ".npz",
        ".h5",
        ".hdf5",
        ".db",
        ".sqlite",
        ".sqlite3",
        ".duckdb",
        ".sql",
        ".bz2",
        ".xz",
        ".lz4",
        ".zip",
        ".tar",
        ".tgz",
        ".7z",
    ]
)
"""Suffixes that promise something else. Names that promise nothing are given JSON Lines."""


def writer_for(
    out: Path | None,
    documents: DocumentFormat,
    inputs: Inputs,
    *,
    unique_only: bool,
    keep_columns: bool,
) -> VerdictWriter:
    """Return what writes a file of this name.

    Raises:
        CommandError: it can't be written in the format that its name promises.
    """
    if out is not None and _ADDRESS.match(str(out)):
        raise CommandError(f"-o {out}: the output must be a local file; copy it from there")
    path = Path() if out is None else out
    compressed = path.suffix.lower() in _COMPRESSED
    suffix = (path.with_suffix("") if compressed else path).suffix.lower()
    if suffix in _OTHER_FORMATS:
        raise CommandError(
            f"-o {out}: can't write {suffix}; what can be written is .jsonl, .csv and .tsv, each"
            " also with .gz or .zst, and .parquet"
        )
    if suffix in _PARQUET:
        if compressed:
            raise CommandError(f"-o {out}: Parquet is compressed within; leave out {path.suffix}")
        if unique_only or keep_columns:
            _require_kind(out, inputs, "parquet")
            return ParquetCopy(documents, inputs.reopened, unique_only=unique_only)
        return ParquetVerdicts(documents)
    if suffix in _SEPARATORS:
        if unique_only or keep_columns:
            _require_kind(out, inputs, "csv")
            return CsvCopy(documents, _SEPARATORS[suffix], unique_only=unique_only)
        return CsvVerdicts(documents, _SEPARATORS[suffix])
    if keep_columns:
        raise CommandError("--keep-columns: name the output .csv, .tsv or .parquet, with -o")
    return UniqueLines() if unique_only else VerdictLines(documents)


def _require_kind(out: Path | None, inputs: Inputs, kind: Kind) -> None:
    """Require that the columns of all inputs can be written as they are."""
    if inputs.kinds != {kind}:
        of = "CSV" if kind == "csv" else "Parquet"
        raise CommandError(
            f"-o {out}: --keep-columns and --unique-only write rows of {of} only if all inputs are"
            f" {of}, by their names"
        )
