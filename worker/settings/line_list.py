"""Reads the file with the lines that are left out of texts."""

from __future__ import annotations

from pathlib import Path

from lsh import parse_lines

__all__ = ["line_list"]

_MOST_BYTES = 1 << 20


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
