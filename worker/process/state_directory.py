"""The directory that holds a worker's shards and its name."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worker.index.snapshots.storage import sync_directory
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.process.private import open_private, private_directory
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.settings.sections import APP_NAME

_LOCK = "lock"
_LONGEST = 1_000
"""Bytes read of a file that holds a name."""


@contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Hold the lock of the state directory, which no two workers may share.

    Files that the process creates meanwhile can be read by its user only.

    Raises:
        ConfigurationError: another process holds the lock, the directory isn't writable, or it
            belongs to another user.
    """
    try:
        private_directory(state_dir, _LOCK)
        file = open_private(state_dir / _LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        at = error.filename or state_dir
        raise ConfigurationError(f"worker.state_dir: {at}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"worker.state_dir: {state_dir} is in use by another worker; give each its own"
                " (--state-dir DIR)"
            ) from None
        before = os.umask(0o077)  # RocksDB takes no mode for its files.
        try:
            yield
        finally:
            os.umask(before)
    finally:
        os.close(file)


def show_disk(metrics: Metrics, state_dir: Path) -> None:
    """Export the size and the free bytes of the file system; nothing if it can't be asked."""
    try:
        disk = shutil.disk_usage(state_dir)
    except OSError:
        metrics.show(table.STATE_DISK_BYTES, {})
        return
    metrics.show(table.STATE_DISK_BYTES, {("free",): disk.free, ("total",): disk.total})


def instance_name(settings: Settings, state_dir: Path) -> str:
    """Return the worker's stable name: the setting, or the name kept with the state.

    Two workers under one name fence each other, so a kept name that isn't one is never used.

    Raises:
        ConfigurationError: the file with the name can't be read, or holds something else.
    """
    if settings.worker.instance is not None:
        return settings.worker.instance
    path = state_dir / "instance"
    try:
        name = _kept(path)
        if not name:
            host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname().split(".")[0][:60])
            name = f"{host}-{uuid.uuid4().hex[:8]}"
            _write_durably(path, name + "\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    if not re.fullmatch(APP_NAME, name):
        raise ConfigurationError(
            f"{path}: has {name[:40]!r}, must be the worker's name: at most 100 letters, digits,"
            " dots, underscores and hyphens. Restore it, or delete it for a new name"
        )
    return name


def _kept(path: Path) -> str:
    """Return the content of the file; nothing if it is missing, or a crash has left it empty."""
    try:
        handle = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return ""
    with os.fdopen(handle, "rb") as file:
        return file.read(_LONGEST).decode(errors="replace").strip()


def _write_durably(path: Path, text: str) -> None:
    """Write a file atomically: after a crash it has all of the new content, or the old."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    handle = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)
