"""A small file for what a process must know about its last life."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from zlib import crc32

_log = logging.getLogger(__name__)

_HEADER = b"neardup journal 1 %08x %08x\n"
_HEADER_BYTES = len(_HEADER % (0, 0))


class Journal:
    """Keeps one value. It survives the death of the process, but not that of the machine.

    A write is one `pwrite`, which takes a few microseconds: the kernel has the bytes, and nothing
    is synced. A value that was damaged, or can't be read, counts as none. If the file can't be
    written, the journal logs that once and keeps nothing more.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or create it with its directory."""
        self._path = path
        self._file: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._give_up(error)

    def read(self) -> bytes | None:
        """Return the value that was written last; None if there is none."""
        if self._file is None:
            return None
        try:
            found = os.pread(self._file, os.fstat(self._file).st_size, 0)
        except OSError as error:
            self._give_up(error)
            return None
        if not found:
            return None
        header, value = found[:_HEADER_BYTES], found[_HEADER_BYTES:]
        value = value[: _length(header)]  # A longer value may have been there before.
        if header != _HEADER % (len(value), crc32(value)):
            _log.warning("%s is damaged, and is ignored", self._path)
            return None
        return value

    def write(self, value: bytes) -> None:
        """Replace the value."""
        if self._file is None:
            return
        try:
            os.pwrite(self._file, _HEADER % (len(value), crc32(value)) + value, 0)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _give_up(self, error: OSError) -> None:
        _log.warning(
            "%s: %s; a document that kills this worker won't be found", self._path, error.strerror
        )
        self.close()


def _length(header: bytes) -> int:
    """Return the length in a header; 0 if there is none."""
    fields = header.split()
    try:
        return int(fields[3], 16)
    except (IndexError, ValueError):
        return 0
