"""A directory, or a prefix of an object store: the little that snapshots need of either."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from time import time
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from worker.settings import ConfigurationError

__all__ = ["Storage", "sync_directory"]


class Storage:
    """Files below a root, by their names relative to it.

    A file appears whole or not at all: object stores see to that by themselves, and on a
    local file system it is written beside its place, synced, and renamed. Every method may
    raise what the file system raises: OSError, or an error of the object store's library.
    """

    def __init__(self, fs: Any, root: str) -> None:  # noqa: ANN401 -- fsspec has no types
        """Take a file system of fsspec, and a path in it."""
        self._fs = fs
        self.root = root
        self._local = isinstance(fs, LocalFileSystem)

    @classmethod
    def at(cls, url: str, options: Mapping[str, Any]) -> Storage:
        """Find the file system; nothing is read yet.

        Raises:
            ConfigurationError: its kind is not known, or what it needs is not installed.
        """
        try:
            fs, root = fsspec.url_to_fs(url, **options)
        except (ImportError, ValueError, TypeError) as error:
            raise ConfigurationError(f"index.snapshots.url: {url}: {error}") from None
        return cls(fs, root.rstrip("/"))

    def below(self, name: str) -> Storage:
        """Give a directory of it."""
        return Storage(self._fs, self._path(name))

    def sizes(self, directory: str) -> dict[str, int]:
        """Give the files of a directory with their sizes; none if it doesn't exist."""
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
        """Tell how long ago a file was written; 0 if it is gone."""
        try:
            modified = self._fs.modified(self._path(name))
        except FileNotFoundError:
            return 0.0
        if modified.tzinfo is None:
            modified = modified.replace(tzinfo=UTC)
        return time() - float(modified.timestamp())

    def read(self, name: str) -> bytes:
        """Read a small file."""
        return bytes(self._fs.cat_file(self._path(name)))

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return cast("BinaryIO", self._fs.open(self._path(name), "rb"))

    def put(self, source: Path, name: str) -> None:
        """Copy a file of this machine there."""
        if self._local:
            part = self._part(name)
            self._fs.put_file(str(source), str(part))
            self._settle(part, name)
        else:
            self._fs.put_file(str(source), self._path(name))

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        if self._local:
            part = self._part(name)
            part.write_bytes(data)
            self._settle(part, name)
        else:
            self._fs.pipe_file(self._path(name), data)

    def remove(self, name: str) -> None:
        """Delete a file, unless somebody else has."""
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return

    def move(self, name: str, to: str) -> None:
        """Give a file another name, unless somebody else has moved or deleted it."""
        self._fs.makedirs(self._path(to).rpartition("/")[0], exist_ok=True)
        try:
            self._fs.mv(self._path(name), self._path(to))
        except FileNotFoundError:
            return

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _part(self, name: str) -> Path:
        path = Path(self._path(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")

    def _settle(self, part: Path, name: str) -> None:
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(self._path(name))
        sync_directory(part.parent)


def sync_directory(directory: Path) -> None:
    """Make durable which files a directory has."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
