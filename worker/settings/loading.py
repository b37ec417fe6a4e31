"""Read the settings: from the command line, the environment, TOML files, or the defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from worker.settings.environment import check_environment, hint, names, not_json, service_links
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings

_HIDDEN = ("kafka.", "index.snapshots.options", "index.snapshots.url", "similarity.seed")
_NAMED = 3

PUBLIC_SEED = (
    "similarity.seed is the default, which is public: whoever may send documents can make some that"
    " pass for copies of others, and copies that pass for new ones. Set a seed of your own before"
    " the first document is read"
)


def load(
    paths: Path | Sequence[Path] | None = None,
    overrides: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings.

    ``overrides`` has dotted names and takes precedence. ``defaults`` has those that this command
    uses in place of the usual ones.

    Of several files, a later one takes precedence, setting by setting and key by key. If none is
    given, ``NEARDUP_CONFIG`` may name some, separated as in ``PATH``.

    Raises:
        ConfigurationError: a setting is wrong; the message names the first one.
    """
    from_files = _nested(defaults or {})
    for path in _files(paths):
        _merge(from_files, _read(path))
    check_environment()
    nested = _nested(overrides or {})

    class FromFiles(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- not a source here
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- not a source here
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, from_files)

    try:
        return FromFiles(**nested)
    except ValidationError as error:
        raise ConfigurationError(_complaint(error)) from None
    except SettingsError as error:
        wrong = not_json()
        what = str(error).splitlines()[0] if wrong is None else f"{wrong}: must be JSON"
        raise ConfigurationError(what) from None
    except ValueError as error:
        raise ConfigurationError(str(error).splitlines()[0]) from None


def _nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as tables, by dotted names; without those that are None."""
    nested: dict[str, Any] = {}
    for name, value in dotted.items():
        if value is None:
            continue
        *sections, leaf = name.split(".")
        table = nested
        for section in sections:
            table = table.setdefault(section, {})
        table[leaf] = value
    return nested


def _files(paths: Path | Sequence[Path] | None) -> list[Path]:
    if not paths:
        named = os.environ.get("NEARDUP_CONFIG", "")
        return [Path(name) for name in named.split(os.pathsep) if name]
    return [paths] if isinstance(paths, Path) else list(paths)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = "is not a file" if not path.is_file() else f"can't be read: {error.strerror}"
        raise ConfigurationError(f"--config: {path} {what}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: invalid TOML: it is not UTF-8") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: invalid TOML: {error}".splitlines()[0]) from None


def _merge(into: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Add settings to others, and replace those that are there, table by table."""
    for name, value in given.items():
        known = into.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(known, value)
        else:
            into[name] = value


def advice(settings: Settings) -> list[str]:
    """Return the warnings for whoever starts a worker with these settings, each one line."""
    found = []
    links = service_links()
    if links:
        more = f", and {len(links) - _NAMED} more" if len(links) > _NAMED else ""
        found.append(
            f"ignoring {', '.join(links[:_NAMED])}{more}: Kubernetes sets them for services whose"
            " names begin with neardup. enableServiceLinks: false in the pod leaves them out"
        )
    if settings.similarity.default_seed:
        found.append(PUBLIC_SEED)
    return found


def _complaint(error: ValidationError) -> str:  # noqa: PLR0911 -- a table
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
