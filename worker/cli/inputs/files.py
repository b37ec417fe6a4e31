"""Read documents from files and standard input, in chunks of bounded size."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from worker.cli.errors import CommandError
from worker.cli.inputs.compressed import compression_of, decompressed
from worker.cli.inputs.csv_rows import DELIMITERS, csv_rows
from worker.cli.inputs.fault import InputFault
from worker.cli.inputs.foreign import check_content, no_array, spread
from worker.cli.inputs.lines import lines
from worker.cli.inputs.parquet_rows import PARQUET_MAGIC, PARQUET_SUFFIXES, parquet_rows
from worker.cli.inputs.paths import Named, named_files, suffix_of
from worker.files.closing import Closing
from worker.offline import Line
from worker.settings.sections import DocumentsSection

__all__ = ["Inputs"]

_CHUNK_LINES = 4_000
_CHUNK_BYTES = 8 << 20
_PEEK = 512


class _Source(NamedTuple):
    """A file to read. Only what can't be opened twice, such as a pipe, is open from the start."""

    name: str
    base: bytes
    status: os.stat_result | None
    stream: BinaryIO | None

    @property
    def size(self) -> int | None:
        """Return the bytes of a regular file; None for anything else."""
        regular = self.status is not None and stat.S_ISREG(self.status.st_mode)
        return self.status.st_size if self.status is not None and regular else None


class Inputs(Closing):
    """Files, directories, patterns, or standard input (``-``), one after the other.

    Attributes:
        total: bytes of all files on disk (compressed); None if one isn't a regular file.
    """

    def __init__(self, files: Sequence[Path], documents: DocumentsSection) -> None:
        """Open each file, so that a wrong name fails before any work is done.

        ``documents``: the format of lines; columns of tables with the id and the time.

        Raises:
            CommandError: a file can't be read.
        """
        self._documents = documents
        if files.count(Path("-")) > 1:
            raise CommandError("-: standard input can be read only once")
        named = named_files(files or [Path("-")], documents.format)
        self._sources = [_source(each) for each in named]
        self._first_tool: str | None = None
        self._done = 0
        self._within: Callable[[], int] = lambda: 0
        sizes = [source.size for source in self._sources]
        self.total = sum(size or 0 for size in sizes) if None not in sizes else None

    @property
    def position(self) -> int:
        """Return the number of bytes read so far, as on disk."""
        return self._done + self._within()

    def spread(self, path: str) -> str:
        """Return how to write the first file as JSON Lines; ``path`` leads to the documents."""
        return spread(path, self._sources[0].name, self._first_tool)

    def has(self, file: BinaryIO | Path) -> bool:
        """Return whether a regular file is one of the inputs."""
        try:
            status = file.stat() if isinstance(file, Path) else os.fstat(file.fileno())
        except OSError:
            return False
        return any(
            source.status is not None and os.path.samestat(source.status, status)
            for source in self._sources
            if source.size is not None
        )

    def close(self) -> None:
        """Close the files that were not read."""
        for source in self._sources:
            if source.stream is not None:
                source.stream.close()

    def chunks(self, max_line: int, lines: int = _CHUNK_LINES) -> Iterator[list[Line]]:
        """Yield chunks of at most ``lines`` documents, without blank lines.

        Lines longer than ``max_line`` bytes are cut.

        Raises:
            CommandError: a file is damaged or can't be read.
        """
        chunk: list[Line] = []
        size = 0
        for line in self._lines(max_line):
            chunk.append(line)
            size += len(line.raw)
            if len(chunk) >= lines or size >= _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _lines(self, max_line: int) -> Iterator[Line]:
        for source in self._sources:
            shown = "stdin" if source.name == "-" else source.name
            try:
                with closing(source.stream or _open(Path(source.name))) as raw:
                    yield from self._documents_in(source, raw, max_line)
            except InputFault as fault:
                raise CommandError(f"{shown}: {fault}") from None
            except OSError as error:
                raise CommandError(f"{shown}: {error.strerror or error}") from None
            self._done += source.size or 0
            self._within = lambda: 0

    def _documents_in(self, source: _Source, raw: BinaryIO, max_line: int) -> Iterator[Line]:
        name, base, documents = source.name, source.base, self._documents
        as_text = documents.format == "text"
        with io.BufferedReader(cast("io.RawIOBase", raw), 1 << 20) as file:
            start = file.peek(_PEEK)
            suffix = "" if as_text else suffix_of(name)
            magic = start.startswith(PARQUET_MAGIC)
            if source.size is not None and (suffix in PARQUET_SUFFIXES or (magic and not as_text)):
                yield from self._parquet(file, source, source.size)
                return
            if source.size is not None:
                self._within = raw.tell
            compression = compression_of(name, start)
            content = decompressed(name, file, compression) if compression else file
            tool = compression.tool if compression else None
            if source is self._sources[0]:
                self._first_tool = tool
            check_content(name, content.peek(_PEEK), tool, json=not as_text)
            if suffix in DELIMITERS:
                yield from csv_rows(content, base, max_line, DELIMITERS[suffix], documents)
            else:
                found = lines(content, base, max_line)
                yield from found if as_text else no_array(found, name, tool)

    def _parquet(self, file: BinaryIO, source: _Source, size: int) -> Iterator[Line]:
        share = 0.0

        def read(now: float) -> None:
            nonlocal share
            share = now

        self._within = lambda: int(size * share)
        yield from parquet_rows(file, source.base, self._documents, read)


def _source(named: Named) -> _Source:
    if str(named.path) == "-":
        stream = _stdin()
        return _Source("-", b"stdin", _status(stream), stream)
    stream = _open(named.path)
    source = _Source(str(named.path), named.base.encode(errors="replace"), _status(stream), stream)
    if source.size is None:
        return source
    stream.close()  # A directory may have more files than a process may have open.
    return source._replace(stream=None)


def _stdin() -> BinaryIO:
    if sys.stdin.isatty():
        message = "neardup: reading lines from the terminal; end with Ctrl-D"
        print(message, file=sys.stderr)  # noqa: T201 -- a hint to the user
    # Unbuffered if possible; in tests it may not be a file.
    return cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def _status(stream: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(stream.fileno())
    except OSError:  # Not a file, as in tests.
        return None
