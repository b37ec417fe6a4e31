"""Decompression in steps of bounded size, whatever the file expands to."""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple, Protocol, TypeAlias

import zstandard

from worker.files.errors import InputFault

Reader: TypeAlias = "io.BufferedReader[io.RawIOBase]"

_MOST_MEMORY = 128 << 20
"""What a decompressor may take. `zstd -d` and `xz -9` need no more without an option."""
_STEP = 1 << 20
"""Most bytes that a step of gzip, bz2 and xz returns."""
_ZSTD_INPUT = 256
"""Bytes that zstd gets in a step. It can't bound what it returns; a block has at least 4 bytes, and
expands to at most 128 KiB."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(.{4})", re.DOTALL)


class _Decompressor(Protocol):
    """Decompresses one member, frame or stream of a file."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...


class _Gzip:
    """Has zlib keep what it didn't consume, as the other decompressors do."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._member.unconsumed_tail

    def decompress(self, data: bytes, /, max_length: int) -> bytes:
        return self._member.decompress(self._member.unconsumed_tail + data, max_length)


class _Zstd:
    """One frame, whose window is bounded."""

    needs_input = True

    def __init__(self) -> None:
        self._frame = zstandard.ZstdDecompressor(max_window_size=_MOST_MEMORY).decompressobj()

    @property
    def eof(self) -> bool:
        return self._frame.eof

    @property
    def unused_data(self) -> bytes:
        return self._frame.unused_data

    def decompress(self, data: bytes, /, max_length: int) -> bytes:
        del max_length  # `_ZSTD_INPUT` bounds it.
        return self._frame.decompress(data)


class _Compression(NamedTuple):
    name: str
    suffix: str
    magic: re.Pattern[bytes]
    make: Callable[[], _Decompressor]
    tool: str
    """Decompresses a file of any window to standard output."""
    input: int = 1 << 16
    padded: bool = False
    """Whether NULs may stand between members."""


COMPRESSIONS = (
    _Compression("gzip", ".gz", re.compile(rb"\x1f\x8b"), _Gzip, "gzip -dc", padded=True),
    _Compression(
        "zstd",
        ".zst",
        re.compile(re.escape(_ZSTD_MAGIC)),
        _Zstd,
        "zstd -dc --long=31",
        input=_ZSTD_INPUT,
    ),
    _Compression(
        "xz",
        ".xz",
        re.compile(rb"\xfd7zXZ\0"),
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY),
        "xz -dc",
        padded=True,
    ),
    # The first block, or the end of an empty file: "BZh9" alone could begin a text.
    _Compression(
        "bz2",
        ".bz2",
        re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
        bz2.BZ2Decompressor,
        "bzip2 -dc",
    ),
)


def compression_of(name: str, start: bytes) -> _Compression | None:
    """Return how a file that begins with ``start`` is compressed; None if it isn't.

    Raises:
        InputFault: the name ends like that of a compressed file, but the content isn't one.
    """
    suffix = PurePath(name).suffix.lower()
    expected = next((each for each in COMPRESSIONS if each.suffix == suffix), None)
    at = _past_skippable(start)
    if at and at >= len(start):
        start, at = _ZSTD_MAGIC, 0  # What follows is out of sight: zstd is likelier than lz4.
    found = next((each for each in COMPRESSIONS if each.magic.match(start, at)), None)
    if expected is not None and found is not expected:
        raise InputFault(f"is not a {expected.name} file, despite its name")
    return found


def _past_skippable(start: bytes) -> int:
    """Return where the first frame with content begins; files of zstd and lz4 may have others.

    RFC 8878, 3.1.2.
    """
    at = 0
    while (found := _SKIPPABLE.match(start, at)) is not None:
        at += 8 + int.from_bytes(found[1], "little")
    return at


def decompressed(name: str, source: Reader, compression: _Compression) -> Reader:
    """Return a reader of a file's content.

    Reading raises `InputFault` if the data is damaged, ends too early, or takes too much memory.
    """
    return io.BufferedReader(_Decompressed(name, source, compression), _STEP)


class _Decompressed(io.RawIOBase):
    """Decompresses members one after the other, and detects truncated files.

    zstandard's own reader doesn't detect them.
    """

    def __init__(self, name: str, source: Reader, compression: _Compression) -> None:
        self._name = name
        self._source = source
        self._compression = compression
        self._member: _Decompressor | None = None
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
        """Decompress one step; return False at the end of the file."""
        kind = self._compression
        data = b""
        if self._member is None or self._member.needs_input:
            data = self._left or self._source.read(kind.input)
            self._left = b""
            if not data:
                if self._member is not None:
                    raise InputFault(f"the {kind.name} data ends too early")
                return False
        if self._member is None:
            if kind.padded and not (data := data.lstrip(b"\0")):
                return True
            self._member = kind.make()
        try:
            self._ready = memoryview(self._member.decompress(data, _STEP))
        except (zlib.error, zstandard.ZstdError, lzma.LZMAError, OSError) as error:
            raise InputFault(self._what(str(error))) from None
        if self._member.eof:
            self._left = self._member.unused_data
            self._member = None
        return True

    def _what(self, error: str) -> str:
        if "too much memory" not in error and "Memory usage limit" not in error:
            return f"damaged {self._compression.name} data: {error}"
        return (
            f"needs more than {_MOST_MEMORY >> 20} MiB to decompress; do it outside:"
            f" {self._compression.tool} FILE | neardup …"
        )


def skipped(file: Reader, most: int | None = None) -> int:
    """Skip the rest of a file, or at most so many bytes; return how many there were."""
    count = 0
    while most is None or count < most:
        data = file.read(_STEP if most is None else min(_STEP, most - count))
        if not data:
            break
        count += len(data)
    return count
