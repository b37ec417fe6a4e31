"""The output of ``dedupe``: complete or not there at all, in the format that its name means."""

from __future__ import annotations

import fcntl
import gzip
import os
import re
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

import msgspec
import zstandard

from worker.closing import Closing
from worker.files.csv_rows import DELIMITERS
from worker.files.errors import FileError, of_file
from worker.files.inputs import Inputs
from worker.files.reading import KINDS, Kind, suffix_of
from worker.files.tables import CsvTable, Lines, ParquetTable, VerdictWriter, first_of, named
from worker.formats.base import DocumentFormat
from worker.index.snapshots.storage import sync_directory
from worker.offline.filter import Line, Verdict
from worker.visible import json_escaped

_STANDARD = frozenset({"-", "/dev/stdout"})


class Output(Closing):
    """Standard output, a device or pipe, or a file.

    A file is written as ``.NAME.part`` next to its place, locked, and renamed at the end, so
    nobody sees it half-written. The next run removes what a killed run left there. ``.gz``
    and ``.zst`` files are compressed.

    Neither name may be a symbolic link: in a directory that others can write to, a link could
    lead to any file of this user.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the output; ``None``, ``-`` and ``/dev/stdout`` are standard output.

        Raises:
            FileError: it can't be opened, is a link to a file, or another run writes it.
        """
        self._stack = ExitStack()
        self._part: Path | None = None
        self._work: Path | None = None
        self._raw: BinaryIO
        if path is None or str(path) in _STANDARD:
            self.place = None
            self._raw = sys.stdout.buffer
        else:
            try:
                self.place = self._open(path)
            except OSError as error:
                self._stack.close()
                raise of_file(error, f"-o {path}") from None
        self._file = _compressed(self._raw, self.place)

    def _open(self, path: Path) -> Path:
        """Open a path, and return where the output will be."""
        if path.exists() and not path.is_file():
            # A device or a pipe; never created or cut, should it be a file by now.
            self._own(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
            return path
        if path.is_symlink():
            raise FileError(f"-o {path}: is a symbolic link; name the file that it leads to")
        place = Path(os.path.realpath(path.parent)) / path.name
        part = place.with_name(f".{place.name}.part")
        handle = self._claim(place, part)
        if place.exists():
            os.fchmod(handle, stat.S_IMODE(place.stat().st_mode))
        self._part = part
        self._work = place.with_name(f".{place.name}.work")
        shutil.rmtree(self._work, ignore_errors=True)
        return place

    def _own(self, handle: int) -> None:
        self._raw = self._stack.enter_context(os.fdopen(handle, "wb"))

    def _claim(self, place: Path, part: Path) -> int:
        """Create the temporary file, and lock it; return its descriptor."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            try:
                handle = os.open(part, flags, 0o666)
            except FileExistsError:
                _remove_leftover(place, part)
                continue
            self._own(handle)
            _lock(handle, place)
            if _is_at(part, handle):
                return handle
            self._stack.close()  # Another run took it for a leftover before it was locked.

    @property
    def work_directory(self) -> Path | None:
        """Return a path next to the file for a temporary directory, which `close` removes."""
        return self._work

    @property
    def file(self) -> BinaryIO:
        """Return the underlying file, to compare it with others."""
        return self._raw

    def write(self, data: bytes) -> None:
        """Write a chunk."""
        try:
            self._file.write(data)
            if self._part is None:
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise of_file(error, self.place or "standard output") from None

    def commit(self) -> None:
        """Move the file to its place, durably."""
        try:
            if self._file is not self._raw:
                self._file.close()
            self._raw.flush()
            if self._part is not None and self.place is not None:
                os.fsync(self._raw.fileno())
                self._part.replace(self.place)
                self._part = None
                sync_directory(self.place.parent)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise of_file(error, self.place or "standard output") from None

    def close(self) -> None:
        """Close the output; without `commit`, remove what was written."""
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)
        if self._part is not None:
            self._part.unlink(missing_ok=True)
        with suppress(OSError):
            self._stack.close()


def _remove_leftover(place: Path, part: Path) -> None:
    """Remove the temporary file of a killed run; raise if a run still writes it."""
    try:
        handle = os.open(part, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # The run that had it has just renamed it.
    except OSError as error:
        why = "a symbolic link" if part.is_symlink() else error.strerror
        raise FileError(f"-o {place}: {part} is in the way ({why}); remove it") from None
    try:
        _lock(handle, place)
        if _is_at(part, handle):
            part.unlink()
    finally:
        os.close(handle)


def _lock(handle: int, place: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(f"-o {place}: another run is writing this file") from None


def _is_at(path: Path, handle: int) -> bool:
    """Return whether an open file has this name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _compressed(raw: BinaryIO, place: Path | None) -> BinaryIO:
    suffix = place.suffix.lower() if place is not None else ""
    if suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0))
    if suffix == ".zst":
        return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
    return raw


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
