"""The output of a command: standard output, or a file that appears complete or not at all."""

from __future__ import annotations

import fcntl
import gzip
import os
import shutil
import stat
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from worker.closing import Closing
from worker.files.errors import FileError, of_file
from worker.index.snapshots.storage import sync_directory

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
