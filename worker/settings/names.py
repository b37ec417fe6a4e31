"""The names of all settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TypeGuard, get_origin

from pydantic import BaseModel

from worker.settings.model import ENV_PREFIX, Settings

__all__ = ["env_name", "hint", "names", "tables"]


def names() -> Iterator[str]:
    """Yield the dotted names of all settings; a table such as ``kafka.common`` is one."""
    for name, _ in _kinds(Settings):
        yield name


def tables() -> Iterator[str]:
    """Yield the names of the sections, and of the settings that are tables."""
    for section, field in Settings.model_fields.items():
        if _is_section(field.annotation):
            yield section
    for name, kind in _kinds(Settings):
        if get_origin(kind) is dict:
            yield name


def env_name(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return ENV_PREFIX + name.replace(".", "__").upper()


def hint(wrong: str, known: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the known name that is nearest, if any."""
    near = difflib.get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _kinds(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, field in model.model_fields.items():
        if _is_section(field.annotation):
            yield from _kinds(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field.annotation


def _is_section(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
