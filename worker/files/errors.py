"""The errors of a user's file, and of one document in it."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Sequence

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class FileError(Exception):
    """A file that a user named can't be read or written; the line names it, and says what to do."""

    def __init__(self, message: str, *, full_disk: bool = False) -> None:
        """Keep the line, and whether the same command works once the disk has space."""
        self.full_disk = full_disk
        super().__init__(message)


def of_file(error: OSError, name: object = None) -> FileError:
    """Return an error of the operating system as a file's; ``name`` stands before its own."""
    name = name or error.filename2 or error.filename
    what = error.strerror or str(error)
    said = what if name is None else f"{name}: {what}"
    if error.errno not in FULL_DISK:
        return FileError(said)
    return FileError(f"{said}. Give that disk space, then run the command again", full_disk=True)


class InputFault(Exception):
    """A file can't be read; the message continues its name: what is wrong, and what to do."""


class DocumentFault(Exception):
    """A document can't be read, and the next one may be; the message is a code and a reason."""


def too_large(what: str, size: int) -> DocumentFault:
    """Return the fault of a document above the limit."""
    return DocumentFault(f"too-large: the {what} has {size} bytes, above limits.record_bytes")


def check_names(names: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name: nobody can say which one is meant.

    Raises:
        InputFault: there are two.
    """
    twice = next((name for name, n in Counter(names).items() if n > 1), None)
    if twice is not None:
        raise InputFault(f"has several columns {twice[:40]!r}")
