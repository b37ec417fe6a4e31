"""A directory with one index that is kept, and at most one more that a run works on.

    DIR/lock                    held (flock) by the run that is at it
    DIR/CURRENT                 names the index that counts, and its offsets; JSON
    DIR/generation-0000007/     that index: shard-000/, ..., a RocksDB each
    DIR/generation-0000008/     the copy that a run works on; rubbish if nobody holds the lock

A run never opens the index that counts. It works on a copy, in which the table files are
hard links: RocksDB writes a table once, and never changes it. When the run is done, and
its output in place, `Work.commit` switches CURRENT by a rename. What a kill leaves at
which step is in docs/adr/0008-offline-state.md; the next run removes what nothing names.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from worker.closing import Closing

__all__ = ["Generations", "StateError", "Work"]

_FORMAT = 2
_CURRENT = "CURRENT"
_NEW = "CURRENT.new"
_LOCK = "lock"
_GENERATION = re.compile(r"generation-(\d{7,})")
_NOT_COPIED = re.compile(r"LOCK|LOG(\.old.*)?")
"""What RocksDB makes anew whenever it opens a directory."""


class StateError(Exception):
    """The directory can't be used; the message says why, and what to do."""


class Work:
    """The index that a run works on, and with which offsets it begins."""

    def __init__(self, home: Path, number: int, offsets: Mapping[str, Sequence[int]]) -> None:
        """Take the state's directory, and the number of the new generation."""
        self._home = home
        self._name = f"generation-{number:07}"
        self.path = home / self._name
        self.offsets = offsets

    def commit(self, reached: Mapping[str, Sequence[int]]) -> None:
        """Make this index, which must be closed, the one that counts."""
        _sync_tree(self.path)
        content = {"format": _FORMAT, "generation": self._name, "offsets": reached}
        new = self._home / _NEW
        with new.open("w") as file:
            json.dump(content, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._home)
        new.rename(self._home / _CURRENT)
        sync_directory(self._home)


class Generations(Closing):
    """The state's directory, locked."""

    def __init__(self, home: Path) -> None:
        """Lock it, making it if need be, and remove what a killed run has left.

        Raises:
            StateError: it is in use, isn't ours, or is damaged.
            OSError: it can't be read or written.
        """
        self._home = home
        home.mkdir(parents=True, exist_ok=True)
        self._check_ours()
        self._lock = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StateError(f"--state: {home} is in use by another run") from None
            self._current, self._offsets = self._read()
            self._sweep()
        except BaseException:
            os.close(self._lock)
            raise

    @contextmanager
    def work(self) -> Iterator[Work]:
        """Give a copy of the index; it is gone afterwards, unless committed."""
        number = 1
        if self._current is not None:
            number += int(self._current.removeprefix("generation-"))
        work = Work(self._home, number, self._offsets)
        try:
            work.path.mkdir()
            if self._current is not None:
                _clone(self._home / self._current, work.path)
            yield work
        finally:
            self._current, self._offsets = self._read()
            self._sweep()

    def _check_ours(self) -> None:
        names = {path.name for path in self._home.iterdir()}
        if names and not names & {_CURRENT, _LOCK}:
            raise StateError(
                f"--state: {self._home} holds other things ({min(names)}, …) and no state of"
                " neardup; name a directory that is empty, or doesn't exist"
            )

    def _read(self) -> tuple[str | None, dict[str, list[int]]]:
        path = self._home / _CURRENT
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None, {}
        try:
            content = json.loads(text)
            version = int(content["format"])
            name, offsets = content["generation"], content["offsets"]
            sound = _GENERATION.fullmatch(name) and all(
                isinstance(offset, int) for numbers in offsets.values() for offset in numbers
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            sound = False
        if not sound:
            raise StateError(f"--state: {path} is damaged")
        if version != _FORMAT:
            raise StateError(
                f"--state: {self._home} has format {version}, and this neardup reads {_FORMAT}"
                " only: name a new directory, or run the version that made this one"
            )
        if not (self._home / name).is_dir():
            raise StateError(f"--state: {path} names {name}, which is missing")
        return name, offsets

    def _sweep(self) -> None:
        (self._home / _NEW).unlink(missing_ok=True)
        for path in self._home.iterdir():
            if path.name != self._current and _GENERATION.fullmatch(path.name):
                shutil.rmtree(path)

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)


def _clone(source: Path, target: Path) -> None:
    """Copy an index that nobody has open; tables as hard links, where the disk has them."""
    for path in source.iterdir():
        copy = target / path.name
        if path.is_dir():
            copy.mkdir()
            _clone(path, copy)
        elif _NOT_COPIED.fullmatch(path.name) is None:
            if path.suffix == ".sst":
                with suppress(OSError):
                    os.link(path, copy)
                    continue
            shutil.copyfile(path, copy)


def _sync_tree(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            _sync_tree(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
