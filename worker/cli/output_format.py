"""The format in which ``dedupe`` writes, by the name of the output."""

from __future__ import annotations

from pathlib import Path

from worker.cli.errors import CommandError
from worker.cli.verdict_lines import UniqueLines, VerdictLines
from worker.cli.verdict_tables import CsvVerdicts, ParquetVerdicts, VerdictWriter
from worker.formats.base import DocumentFormat

__all__ = ["writer_for"]

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


def writer_for(out: Path | None, documents: DocumentFormat, *, unique_only: bool) -> VerdictWriter:
    """Return what writes a file of this name.

    Raises:
        CommandError: it can't be written in the format that its name promises.
    """
    path = Path() if out is None else out
    compressed = path.suffix.lower() in _COMPRESSED
    suffix = (path.with_suffix("") if compressed else path).suffix.lower()
    if suffix in _OTHER_FORMATS:
        raise CommandError(
            f"-o {out}: can't write {suffix}; what can be written is .jsonl, .csv and .tsv, each"
            " also with .gz or .zst, and .parquet"
        )
    if unique_only:
        if suffix in _PARQUET or suffix in _SEPARATORS:
            raise CommandError(
                f"-o {out}: --unique-only writes documents as they were read, and rows of tables as"
                " JSON Lines; name the file .jsonl"
            )
        return UniqueLines()
    if suffix in _PARQUET:
        if compressed:
            raise CommandError(f"-o {out}: Parquet is compressed within; leave out {path.suffix}")
        return ParquetVerdicts(documents)
    if suffix in _SEPARATORS:
        return CsvVerdicts(documents, _SEPARATORS[suffix])
    return VerdictLines(documents)
