"""The file operations that snapshots need, on a directory or a prefix of an object store."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from time import time
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from worker.settings.errors import ConfigurationError
from worker.settings.secrets import MASK, without_credentials

_PART = ".part"

_LEAST = 3
"""Shorter values would be found in messages by chance."""


class Storage:
    """Files below a root, by their names relative to it.

    A file appears completely or not at all. Object stores guarantee that; on a local file
    system, a file is written under a temporary name, synced, and renamed. Every method may raise
    what the file system raises: OSError, or an error of the object store's library.
    """

    def __init__(self, fs: Any, root: str) -> None:  # noqa: ANN401 -- fsspec has no types
        """Take a file system of fsspec, and a path in it."""
        self._fs = fs
        self.root = root
        self._local = isinstance(fs, LocalFileSystem)

    @classmethod
    def at(cls, url: str, options: Mapping[str, Any]) -> Storage:
        """Resolve the file system without reading from it.

        Raises:
            ConfigurationError: its kind is unknown, or a package it needs is not installed.
        """
        try:
            fs, root = fsspec.url_to_fs(url, **options)
        except (ImportError, ValueError, TypeError) as error:
            shown = without_credentials(url)
            what = " ".join(str(error).replace(url, shown).split())
            for secret in _texts(options):
                what = what.replace(secret, MASK)
            raise ConfigurationError(f"index.snapshots.url: {shown}: {what}") from None
        return cls(fs, root.rstrip("/"))

    def below(self, name: str) -> Storage:
        """Return the storage of a directory below this one."""
        return Storage(self._fs, self._path(name))

    def sizes(self, directory: str) -> dict[str, int]:
        """Return the sizes of a directory's files by name; empty if it doesn't exist."""
        self._fs.invalidate_cache()
        try:
            found = self._fs.ls(self._path(directory), detail=True)
        except FileNotFoundError:
            return {}
        return {
            info["name"].rpartition("/")[2]: int(info["size"])
            for info in found
            if info["type"] == "file"
        }

    def age_seconds(self, name: str) -> float:
        """Return how long ago a file was written; 0 if it is missing."""
        try:
            modified = self._fs.modified(self._path(name))
        except FileNotFoundError:
            return 0.0
        if modified.tzinfo is None:
            modified = modified.replace(tzinfo=UTC)
        return time() - float(modified.timestamp())

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a small file; of a larger one, its first ``most`` bytes."""
        with self.open(name) as file:
            return file.read(most)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return cast("BinaryIO", self._fs.open(self._path(name), "rb"))

    def put(self, source: Path, name: str) -> None:
        """Copy a local file to ``name``."""
        if self._local:
            with self._whole(name) as part:
                self._fs.put_file(str(source), str(part))
        else:
            self._fs.put_file(str(source), self._path(name))

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        if self._local:
            with self._whole(name) as part:
                part.write_bytes(data)
        else:
            self._fs.pipe_file(self._path(name), data)

    def remove(self, name: str) -> None:
        """Delete a file, unless it is already gone."""
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return

    def move(self, name: str, to: str) -> None:
        """Rename a file, unless it is already gone. Its age begins anew."""
        self._fs.makedirs(self._path(to).rpartition("/")[0], exist_ok=True)
        try:
            self._fs.mv(self._path(name), self._path(to))
            if self._local:
                os.utime(self._path(to))
        except FileNotFoundError:
            return

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    @contextmanager
    def _whole(self, name: str) -> Iterator[Path]:
        """Yield where the body writes a file, which then has its name; on failure, nothing has."""
        path = Path(self._path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}{_PART}")
        try:
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def in_part(name: str) -> bool:
    """Return whether a file has been written in part: it is being written, or was left so."""
    return name.endswith(_PART)


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that its list of files is durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _texts(value: object) -> Iterator[str]:
    """Yield all texts in the options, any of which may be a secret; not those of a few letters."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and len(value) >= _LEAST:
        yield value
