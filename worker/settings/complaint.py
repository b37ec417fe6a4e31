"""What is wrong with the settings, in one line that shows no secret."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from worker.settings.model import Settings
from worker.settings.names import hint, names

__all__ = ["complaint"]

_HIDDEN = ("kafka.", "index.snapshots.options", "index.snapshots.url", "similarity.seed")


def complaint(error: ValidationError) -> str:  # noqa: PLR0911 -- a table
    """Return what is wrong first: the setting, its value if that can't be a secret, what it takes.

    A value is shown only for a setting that is known and holds no secret: where a section or a
    table should be, a misplaced quote may have left a secret.
    """
    first = error.errors()[0]
    known = set(names())
    name, key = _place(first["loc"], known)
    if first["type"] == "extra_forbidden":
        return f"{name}: no such setting{hint(name, [*known, *Settings.model_fields])}"
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return message if not name or message.startswith(name) else f"{name}: {message}"
    if name not in known:
        return f"{name}: must be a table (in the environment: JSON)"
    if key is not None:
        takes = "text, a number, true or false" if name.startswith("kafka.") else "a value of JSON"
        return f"{name}: {key} must be {takes}"
    got = "" if name.startswith(_HIDDEN) else f"got {first['input']!r}, "
    if first["type"] == "path_type":
        return f"{name}: {got}must be a path"
    if first["type"] == "dict_type":
        return f"{name}: {got}must be a table (in the environment: JSON)"
    # pydantic says "Input should be a valid integer, unable to parse string as an integer".
    message, should, rule = first["msg"].partition(", unable to ")[0].partition(" should ")
    return f"{name}: {got}must {rule}" if should else f"{name}: {got.replace(', ', ': ')}{message}"


def _place(loc: Sequence[int | str], known: set[str]) -> tuple[str, str | None]:
    """Return the dotted name of a setting or section, and the key if it is in a table."""
    parts = [str(part) for part in loc]
    for count in range(1, len(parts)):
        if (name := ".".join(parts[:count])) in known:
            return name, parts[count] if isinstance(loc[count], str) else None
    return ".".join(parts), None
