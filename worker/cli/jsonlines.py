"""Reads lines from files and standard input, plain or compressed, in chunks of bounded size."""

from __future__ import annotations

import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast

import zstandard

from worker.cli.errors import CommandError
from worker.closing import Closing
from worker.offline import Line

_Reader: TypeAlias = "io.BufferedReader[io.RawIOBase]"

__all__ = ["Inputs", "is_same_file"]

_CHUNK_LINES = 4_000
_CHUNK_BYTES = 8 << 20
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIX = {".gz": "gzip", ".zst": "zstd"}


class Inputs(Closing):
    """Files, or standard input (``-``), one after the other.

    Attributes:
        total: bytes of all files as they are on disk, None if one isn't a regular file.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        """Open all, so that a wrong name is found before anything is done.

        Raises:
            CommandError: one can't be read.
        """
        self._sources: list[tuple[str, BinaryIO]] = []
        self._done = 0
        self._now: BinaryIO | None = None
        sizes: list[int | None] = []
        for file in files or [Path("-")]:
            name, source = ("stdin", _stdin()) if str(file) == "-" else (str(file), _open(file))
            self._sources.append((name, source))
            sizes.append(_size(source))
        self.total = sum(s or 0 for s in sizes) if None not in sizes else None

    @property
    def position(self) -> int:
        """Count the bytes read so far, as they are on disk."""
        return self._done + (self._now.tell() if self._now is not None else 0)

    def handles(self) -> list[BinaryIO]:
        """Give the files, for comparing them with others."""
        return [source for _, source in self._sources]

    def close(self) -> None:
        """Close the files that weren't read."""
        for _, source in self._sources:
            source.close()

    def chunks(self, max_line: int, lines: int = _CHUNK_LINES) -> Iterator[list[Line]]:
        """Give chunks of at most ``lines`` lines, less blank ones.

        Of a line above ``max_line`` bytes it is only the beginning.

        Raises:
            CommandError: a file is damaged, or can't be read on.
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
        for name, source in self._sources:
            size = _size(source)
            self._now = source if size is not None else None
            base = os.path.basename(name).encode(errors="replace")  # noqa: PTH119 -- "stdin", too
            try:
                with io.BufferedReader(cast(io.RawIOBase, source), 1 << 20) as buffered:
                    yield from _split(_decoded(name, buffered), base, max_line)
            except _DamagedError as error:
                raise CommandError(f"{name}: {error}") from None
            except OSError as error:
                raise CommandError(f"{name}: {error.strerror or error}") from None
            self._done += size or 0
            self._now = None


def _split(file: _Reader, base: bytes, max_line: int) -> Iterator[Line]:
    readline = file.readline
    limit = max_line + 2
    number = 0
    while raw := readline(limit):
        number += 1
        size = len(raw)
        if size == limit and not raw.endswith(b"\n"):
            while rest := readline(1 << 20):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        if not raw.isspace():
            yield Line(b"%s:%d" % (base, number), raw, size)


def _stdin() -> BinaryIO:
    if sys.stdin.isatty():
        print("neardup: reading lines from the terminal; Ctrl-D ends them", file=sys.stderr)  # noqa: T201
    # Unbuffered, if it is a file at all: in tests it may not be.
    return cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def _size(source: BinaryIO) -> int | None:
    """Give the size of a regular file, None of anything else."""
    try:
        status = os.fstat(source.fileno())
    except OSError:  # no file at all, as in tests
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def is_same_file(one: BinaryIO, other: BinaryIO | Path) -> bool:
    """Tell whether both are the same regular file."""
    try:
        first = os.fstat(one.fileno())
        second = other.stat() if isinstance(other, Path) else os.fstat(other.fileno())
    except OSError:
        return False
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, second)


class _DamagedError(Exception):
    """Compressed data that can't be read."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _decoded(name: str, buffered: _Reader) -> _Reader:
    """Read what a file holds, decompressed if it begins as compressed data does."""
    start = buffered.peek(4)[:4]
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    expected = _SUFFIX.get(Path(name).suffix)
    if expected is not None and kind != expected:
        raise _DamagedError(f"is no {expected} file, though it is named like one")
    if kind is None:
        return buffered
    return io.BufferedReader(_Decompressed(buffered, kind), 1 << 20)


class _Decompressed(io.RawIOBase):
    """Decompresses gzip members or zstd frames, and tells a truncated file from a whole one.

    zstandard's own reader doesn't.
    """

    def __init__(self, source: _Reader, kind: str) -> None:
        self._source = source
        self._kind = kind
        # Bounds what one step may expand to, whoever made the file.
        self._step = 16 << 10 if kind == "gzip" else 4 << 10
        self._make: Callable[[], _Decoder] = (
            (lambda: zlib.decompressobj(31))
            if kind == "gzip"
            else (lambda: zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj())
        )
        self._decoder: _Decoder | None = None
        self._left = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._ready:
            if not self._fill():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _fill(self) -> bool:
        """Decompress a step; tell whether there was anything left to do."""
        data = self._left or self._source.read(self._step)
        self._left = b""
        if not data:
            if self._decoder is not None:
                raise _DamagedError(f"the {self._kind} data ends too early")
            return False
        if self._decoder is None:
            if self._kind == "gzip" and not (data := data.lstrip(b"\0")):
                return True  # padding
            self._decoder = self._make()
        try:
            self._ready = memoryview(self._decoder.decompress(data))
        except (zlib.error, zstandard.ZstdError) as error:
            raise _DamagedError(f"damaged {self._kind} data: {error}") from None
        if self._decoder.eof:
            self._left = self._decoder.unused_data
            self._decoder = None
        return True
