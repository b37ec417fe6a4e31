"""The site's key, which proves that a manifest was written by one of its workers."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from worker.settings.errors import ConfigurationError

_LEAST_BYTES = 32
_MOST_BYTES = 64 << 10
_PURPOSE = b"neardup snapshot manifest\n"


def read_key(path: Path | None) -> bytes | None:
    """Return the key in a file, without a final newline; None if no file is set.

    Raises:
        ConfigurationError: the file can't be read, or the key is too short.
    """
    if path is None:
        return None
    where = f"index.snapshots.key_file: {path}"
    try:
        with path.open("rb") as file:
            key = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{where}: {why}") from None
    key = key.removesuffix(b"\n").removesuffix(b"\r")
    if not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        got = f"{len(key)} bytes" if len(key) <= _MOST_BYTES else f"more than {_MOST_BYTES} bytes"
        raise ConfigurationError(
            f"{where}: got {got}, must be at least {_LEAST_BYTES} and at most {_MOST_BYTES}; for"
            " example the output of `openssl rand -hex 32`"
        )
    return key


def proof(key: bytes, content: bytes) -> str:
    """Return the HMAC-SHA256 of a manifest's canonical content, in hex."""
    return hmac.new(key, _PURPOSE + content, hashlib.sha256).hexdigest()


def proves(key: bytes, content: bytes, given: str) -> bool:
    """Return whether ``given`` is the proof of this content, in constant time."""
    return hmac.compare_digest(proof(key, content).encode(), given.encode())
