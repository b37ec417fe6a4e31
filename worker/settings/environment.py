"""The names of all settings, and which variables of the environment are settings.

For each service of its namespace, Kubernetes puts variables into every container, unless the pod
has ``enableServiceLinks: false``. Those of a service neardup, or neardup-…, look like settings.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import TypeGuard, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from worker.settings.errors import ConfigurationError
from worker.settings.model import ENV_PREFIX, Settings

_OTHERS = ("NEARDUP_TEST_", "NEARDUP_BENCH_", "NEARDUP_ACCURACY_", "NEARDUP_REQUIRE_")
_CONFIG = "NEARDUP_CONFIG"

_HOST = re.compile(r"_SERVICE_HOST$|_PORT_\d+_(TCP|UDP|SCTP)_ADDR$")
_NUMBER = re.compile(r"_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)_PORT$")
_PROTOCOL = re.compile(r"_PORT_\d+_(TCP|UDP|SCTP)_PROTO$")
_URL = re.compile(r"_PORT(_\d+_(TCP|UDP|SCTP))?$")
_URL_VALUE = re.compile(r"(tcp|udp|sctp)://\S+")


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
