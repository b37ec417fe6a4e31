"""Settings are read once: from the command line, the environment, a TOML file, or by default."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsError,
    TomlConfigSettingsSource,
)

from worker.settings.model import ENV_PREFIX, Settings

__all__ = ["ConfigurationError", "load"]

_FOREIGN_ENV = ("NEARDUP_TEST_", "NEARDUP_BENCH_", "NEARDUP_REQUIRE_", "NEARDUP_CONFIG")


class ConfigurationError(Exception):
    """A setting is wrong; the one line says which, what it got, and what it takes."""


def load(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings; ``overrides`` has dotted names, and wins.

    Raises:
        ConfigurationError: with the first thing that is wrong.
    """
    if path is None and os.environ.get("NEARDUP_CONFIG"):
        path = Path(os.environ["NEARDUP_CONFIG"])
    if path is not None and not path.is_file():
        raise ConfigurationError(f"--config: {path} is no file")
    _check_environment()
    nested: dict[str, Any] = {}
    for name, value in (overrides or {}).items():
        if value is None:
            continue
        *sections, leaf = name.split(".")
        table = nested
        for section in sections:
            table = table.setdefault(section, {})
        table[leaf] = value

    class FromFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            toml = TomlConfigSettingsSource(settings_cls, toml_file=path)
            return init_settings, env_settings, toml

    try:
        return FromFile(**nested)
    except ValidationError as error:
        raise ConfigurationError(_one_line(error)) from None
    except (SettingsError, ValueError) as error:
        where = f"{path}: " if path is not None else ""
        raise ConfigurationError(f"{where}{error}".splitlines()[0]) from None


def _check_environment() -> None:
    known = {_env_name(name) for name in _names(Settings)}
    sections = {ENV_PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(os.environ):
        if not name.startswith(ENV_PREFIX) or name.startswith(_FOREIGN_ENV):
            continue
        if name not in known and name not in sections:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"{name}: no such setting{hint}")


def _names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _names(kind, f"{prefix}{name}.")
        else:
            yield prefix + name


def _env_name(name: str) -> str:
    return ENV_PREFIX + name.replace(".", "__").upper()


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(name, [*_names(Settings), *Settings.model_fields], 1)
        return f"{name}: no such setting" + (f"; did you mean {near[0]}?" if near else "")
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return message if not name or message.startswith(name) else f"{name}: {message}"
    given = "***" if "seed" in name else repr(first["input"])
    takes = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    takes = takes.removeprefix("String should ").removeprefix("Value error, ")
    return f"{name}: got {given}, takes {takes}"
