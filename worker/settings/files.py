"""Files that settings name: secrets, and the lines that are left out of texts.

Beside any key of a table, ``KEY_file`` names a file that holds the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from lsh import parse_lines
from worker.settings.errors import ConfigurationError
from worker.settings.mask import REFUSED, is_mask

FILE = "_file"
_MOST_BYTES = 1 << 20
T = TypeVar("T")


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
