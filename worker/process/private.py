"""Directories and files for this process's user alone.

A state directory holds sketches of documents, and the name under which a worker fences others. So
nobody else may read or write in it. No file in it is opened through a symbolic link.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger(__name__)

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NOT_OURS = frozenset({"lost+found"})
"""What a new file system contains."""


def private_directory(path: Path, mark: str) -> None:
    """Create a directory with mode 0700, or close an existing one to other users.

    An existing one is closed if it is empty or has a file ``mark``. Any other is left as it is, and
    so is one of root's, as the mount point of a volume may be; a warning says that it is open.

    Raises:
        OSError: it can't be created, or belongs to another user.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        own = found.st_uid == os.geteuid()
        if not own and found.st_uid != 0:
            why = f"belongs to user {found.st_uid}, and this process runs as {os.geteuid()}"
            raise PermissionError(errno.EPERM, why, str(path))
        mode = stat.S_IMODE(found.st_mode)
        if not mode & _OTHERS:
            return
        names = set(os.listdir(handle)) - _NOT_OURS  # noqa: PTH208 -- of the open directory
        if own and (mark in names or not names):
            os.fchmod(handle, 0o700)
            _log.warning("%s was open to other users (mode %04o); it is 0700 now", path, mode)
        else:
            _log.warning("%s is open to other users (mode %04o); close it to them", path, mode)
    finally:
        os.close(handle)


def open_private(path: Path, flags: int) -> int:
    """Open a regular file with mode 0600, never through a symbolic link; return its descriptor.

    Raises:
        OSError: it can't be opened, or is not a regular file.
    """
    try:
        handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link", str(path)) from None
        raise
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is not a file", str(path))
    if stat.S_IMODE(found.st_mode) & _OTHERS and found.st_uid == os.geteuid():
        os.fchmod(handle, 0o600)
    return handle
