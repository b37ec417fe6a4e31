"""Read the settings: from the command line, the environment, TOML files, or the defaults.

For each service of its namespace, Kubernetes puts variables into every container, unless the pod
has ``enableServiceLinks: false``. Those of a service neardup, or neardup-…, look like settings.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeGuard, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from worker.settings.errors import ConfigurationError
from worker.settings.model import ENV_PREFIX, Settings

_HIDDEN = ("kafka.", "index.snapshots.options", "index.snapshots.url", "similarity.seed")
_NAMED = 3
_OTHERS = ("NEARDUP_TEST_", "NEARDUP_BENCH_", "NEARDUP_ACCURACY_", "NEARDUP_REQUIRE_")
_CONFIG = "NEARDUP_CONFIG"
_HOST = re.compile(r"_SERVICE_HOST$|_PORT_\d+_(TCP|UDP|SCTP)_ADDR$")
_NUMBER = re.compile(r"_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)_PORT$")
_PROTOCOL = re.compile(r"_PORT_\d+_(TCP|UDP|SCTP)_PROTO$")
_URL = re.compile(r"_PORT(_\d+_(TCP|UDP|SCTP))?$")
_URL_VALUE = re.compile(r"(tcp|udp|sctp)://\S+")

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
        named = os.environ.get(_CONFIG, "")
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


def check_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a variable that looks like a setting, and is none.

    Raises:
        ConfigurationError: names the first one, and the setting with the nearest name.
    """
    for name in _strangers(environment):
        if not _is_service_link(name, environment[name]):
            known = [env_name(setting) for setting in names()]
            raise ConfigurationError(f"{name}: no such setting{hint(name, known)}")


def service_links(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the names that Kubernetes has put there for services; they are ignored."""
    return [name for name in _strangers(environment) if _is_service_link(name, environment[name])]


def not_json(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the first variable for a section or a table that is not JSON."""
    for name in map(env_name, tables()):
        try:
            json.loads(environment.get(name, "{}"))
        except ValueError:
            return name
    return None


def _strangers(environment: Mapping[str, str]) -> list[str]:
    """Return the names that have our prefix and are no settings."""
    known = {_CONFIG, *(env_name(name) for name in names())}
    known |= {env_name(section) for section in Settings.model_fields}
    return sorted(
        name
        for name in environment
        if name.startswith(ENV_PREFIX) and not name.startswith(_OTHERS) and name not in known
    )


def _is_service_link(name: str, value: str) -> bool:
    """Return whether both name and value are those of a service link.

    ``NEARDUP_WORKER_HTTP_PORT=9464`` is a misspelt setting, although its name could be a link's.
    """
    if "__" in name:
        return False
    if _HOST.search(name):
        return _is_address(value)
    if _NUMBER.search(name):
        return value.isdecimal()
    if _PROTOCOL.search(name):
        return value in {"tcp", "udp", "sctp"}
    return bool(_URL.search(name) and _URL_VALUE.fullmatch(value))


def _is_address(value: str) -> bool:
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def names() -> Iterator[str]:
    """Yield the dotted names of all settings; a table such as ``kafka.common`` is one."""
    for name, _ in fields():
        yield name


def tables() -> Iterator[str]:
    """Yield the names of the sections, and of the settings that are tables."""
    for section, field in Settings.model_fields.items():
        if _is_section(field.annotation):
            yield section
    for name, setting in fields():
        if get_origin(setting.annotation) is dict:
            yield name


def env_name(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return ENV_PREFIX + name.replace(".", "__").upper()


def hint(wrong: str, known: Iterable[str]) -> str:
    """Return the end of a message about a wrong name: the known name that is nearest, if any."""
    near = difflib.get_close_matches(wrong, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def fields(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted names of all settings and what defines them, section by section."""
    for name, field in model.model_fields.items():
        if _is_section(field.annotation):
            yield from fields(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _is_section(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
