"""Tokens in files, which clients of `neardup serve` have."""

from __future__ import annotations

from pathlib import Path

from worker.settings.errors import ConfigurationError

_LEAST_BYTES = 32
_MOST_BYTES = 4_096


def token_in(path: Path | None, setting: str) -> bytes | None:
    """Return the token in a file, without white space around it.

    Raises:
        ConfigurationError: the file can't be read, or has no such token.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_BYTES + 1).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{setting}: {path}: {why}") from None
    printable = token.isascii() and token.decode("latin-1").isprintable() and b" " not in token
    if not _LEAST_BYTES <= len(token) <= _MOST_BYTES or not printable:
        raise ConfigurationError(
            f"{setting}: {path}: must be {_LEAST_BYTES} to {_MOST_BYTES} characters of ASCII"
            " without spaces; for example the output of `openssl rand -hex 32`"
        )
    return token
