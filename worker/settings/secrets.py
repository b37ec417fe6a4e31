"""Secrets and files in settings: what stands for a secret, and how a file's content is taken.

Beside any key of a table, ``KEY_file`` names a file that holds the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from lsh import parse_lines
from worker.settings.errors import ConfigurationError

MASK = "****"
REFUSED = "got asterisks, which stand for a hidden secret in `neardup config show`"

_ASTERISKS = re.compile(r"\*{3,}")
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"\?[^#\s]*")

FILE = "_file"
_MOST_BYTES = 1 << 20
_LEAST_TOKEN_BYTES = 32
_MOST_TOKEN_BYTES = 4_096
T = TypeVar("T")


def is_mask(value: object) -> bool:
    """Return whether a value is what stands for a secret."""
    return isinstance(value, str) and _ASTERISKS.fullmatch(value.strip()) is not None


def masks(values: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 -- nested settings
    """Yield the dotted names of values that stand for a secret."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from masks(value, f"{name}.{key}" if name else str(key))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from masks(value, name)
    elif is_mask(values.get_secret_value() if isinstance(values, SecretStr) else values):
        yield name


def without_credentials(url: str) -> str:
    """Return a URL in which user, password and query are masked: any may be a secret."""
    masked = _CREDENTIALS.sub(f"{MASK}@", url)
    return _QUERY.sub(f"?{MASK}", masked) if "://" in masked else masked


def check_names(where: str, keys: Iterable[str]) -> list[str]:
    """Return the keys of a table without the suffix.

    Raises:
        ValueError: a key is there both with and without it.
    """
    given = list(keys)
    for key in given:
        if key.endswith(FILE) and key.removesuffix(FILE) in given:
            raise ValueError(f"{where}: set {key.removesuffix(FILE)} or {key}, not both")
    return [key.removesuffix(FILE) for key in given]


def resolved(where: str, table: Mapping[str, T]) -> dict[str, T | str]:
    """Return a table with the contents of the files that it names, without their last newline.

    Raises:
        ConfigurationError: a file can't be read, is empty, or isn't text. The message doesn't have
            the file's name: a secret may have been written in its place.
    """
    found: dict[str, T | str] = {}
    for key, value in table.items():
        if key.endswith(FILE):
            found[key.removesuffix(FILE)] = _read(f"{where}: {key}", value)
        else:
            found[key] = value
    return found


def _read(where: str, path: object) -> str:
    if not isinstance(path, str):
        raise ConfigurationError(f"{where}: must be the path of a file")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{where}: the file can't be read: {error.strerror}") from None
    except ValueError:  # Not UTF-8, or a path with a NUL.
        raise ConfigurationError(f"{where}: must be the path of a text file (UTF-8)") from None
    value = text.removesuffix("\n").removesuffix("\r")
    if not value:
        raise ConfigurationError(f"{where}: the file is empty")
    if is_mask(value):
        raise ConfigurationError(f"{where}: {REFUSED}")
    return value


def line_list(where: str, path: Path) -> frozenset[str]:
    """Return the lines in a file.

    Raises:
        ValueError: the file can't be read, isn't text, is too large, or has no line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{where}: {path} can't be read: {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{where}: {path} must be at most {_MOST_BYTES:,} bytes")
    try:
        lines = parse_lines(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{where}: {path} must be UTF-8") from None
    if not lines:
        raise ValueError(f"{where}: {path} has no line; leave the setting out for no list")
    return lines


def token_in(path: Path | None, setting: str) -> bytes | None:
    """Return the token in a file, without white space around it.

    Raises:
        ConfigurationError: the file can't be read, or has no such token.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            token = file.read(_MOST_TOKEN_BYTES + 1).strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{setting}: {path}: {why}") from None
    printable = token.isascii() and token.decode("latin-1").isprintable() and b" " not in token
    if not _LEAST_TOKEN_BYTES <= len(token) <= _MOST_TOKEN_BYTES or not printable:
        raise ConfigurationError(
            f"{setting}: {path}: must be {_LEAST_TOKEN_BYTES} to {_MOST_TOKEN_BYTES} characters of"
            " ASCII without spaces; for example the output of `openssl rand -hex 32`"
        )
    return token
