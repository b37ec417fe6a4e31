"""Where results go: standard output, or a file that appears whole or not at all."""

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

from worker.cli.errors import CommandError
from worker.closing import Closing
from worker.offline.generations import sync_directory

__all__ = ["Output"]


class Output(Closing):
    """Standard output, a device or pipe, or a file.

    A file is written as ``.NAME.part`` beside its place, locked, and renamed at the end,
    so it is never seen half-written. Whatever a killed run left there, the next one takes
    over. ``.gz`` and ``.zst`` files are compressed.
    """

    def __init__(self, path: Path | None) -> None:
        """Take the place; ``None`` and ``-`` are standard output."""
        self._stack = ExitStack()
        self._part: Path | None = None
        self._work: Path | None = None
        self._raw: BinaryIO
        if path is None or str(path) == "-":
            self.place = None
            self._raw = sys.stdout.buffer
        else:
            self.place = Path(os.path.realpath(path))
            try:
                self._open(self.place)
            except OSError as error:
                self._stack.close()
                raise CommandError(f"-o {path}: {error.strerror}") from None
        self._file = _compressed(self._raw, self.place)

    def _open(self, place: Path) -> None:
        if place.exists() and not place.is_file():
            self._raw = self._stack.enter_context(place.open("wb"))
            return
        part = place.with_name(f".{place.name}.part")
        while True:
            # Not truncated before it is locked: it may be another run's.
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            self._raw = self._stack.enter_context(os.fdopen(handle, "wb"))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CommandError(f"-o {place}: another run is writing it") from None
            with suppress(FileNotFoundError):
                if os.path.samestat(part.stat(), os.fstat(handle)):
                    break
            self._stack.close()  # the run that held it has just renamed it
        os.ftruncate(handle, 0)
        if place.exists():
            os.fchmod(handle, stat.S_IMODE(place.stat().st_mode))
        self._part = part
        self._work = place.with_name(f".{place.name}.work")
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def work_directory(self) -> Path | None:
        """Name a directory beside the file, for what its run needs; it is removed at the end."""
        return self._work

    @property
    def file(self) -> BinaryIO:
        """Give the file underneath, for comparing it with others."""
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
            raise CommandError(f"{self.place or 'standard output'}: {error.strerror}") from None

    def commit(self) -> None:
        """Put the file in its place, durably."""
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
            raise CommandError(f"{self.place or 'standard output'}: {error.strerror}") from None

    def close(self) -> None:
        """Close; without `commit`, leave nothing."""
        if self._work is not None:
            shutil.rmtree(self._work, ignore_errors=True)
        if self._part is not None:
            self._part.unlink(missing_ok=True)
        with suppress(OSError):
            self._stack.close()


def _compressed(raw: BinaryIO, place: Path | None) -> BinaryIO:
    suffix = place.suffix if place is not None else ""
    if suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0))
    if suffix == ".zst":
        return cast(BinaryIO, zstandard.ZstdCompressor().stream_writer(raw, closefd=False))
    return raw
