"""The reference of all settings.

``python -m tools.configuration > docs/reference/configuration.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from worker.cli.config import toml
from worker.settings.loading import env_name, fields
from worker.settings.model import Settings

_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
_INTRODUCTION = """\
# Configuration

    neardup config show     # the effective settings, secrets as ****
    neardup config check    # ok, or what is wrong

neardup takes a setting from the command line, else from an environment variable, else from a TOML
file (`--config FILE.toml`, or the file named in `NEARDUP_CONFIG`), else it uses the default below.
A wrong name or value stops the command with status 2 and one line that says what the value must be.
`config check` also finds what librdkafka would refuse, and secret files that are missing.

`--config` may be repeated: `--config base.toml --config site.toml`. The later file wins, setting by
setting and, in a table, key by key. `NEARDUP_CONFIG` separates several files by `:`.

In a file, each section is a table:

    app = "news"

    [kafka]
    bootstrap = "kafka-1:9092,kafka-2:9092"
    common = { "security.protocol" = "SSL", "ssl.ca.location" = "/etc/ssl/kafka.pem" }

    [similarity]
    threshold = 0.85

The name of an environment variable is `NEARDUP_`, the section, two underscores, and the name of the
setting: `NEARDUP_SIMILARITY__THRESHOLD=0.85`. A table is written as JSON:
`NEARDUP_KAFKA__COMMON='{"security.protocol": "SSL"}'`.

`kafka.common`, `kafka.consumer` and `kafka.producer` accept any key of librdkafka, except those on
which exactly-once depends. neardup refuses those, and names them.

All workers of an application need the same settings of `similarity`, `documents`, `index.shards`,
`index.absorb`, `index.bucket_capacity`, `index.window` and `index.same_id`, and with a window of
`index.future_allowance_seconds`. A worker that differs is refused before it joins; see
[what workers agree on](topics.md#what-workers-agree-on).

## Secrets

    [kafka.common]
    "security.protocol" = "SASL_SSL"
    "sasl.mechanisms" = "SCRAM-SHA-512"
    "sasl.username" = "neardup"
    "sasl.password_file" = "/run/secrets/kafka-password"

In `kafka.common`, `kafka.consumer`, `kafka.producer` and `index.snapshots.options`, `KEY_file`
names a file that holds the value of `KEY`. neardup reads it when it starts, and drops its last
newline. A file that changes while a worker runs is not read again: restart the worker. The seed has
`similarity.seed_file`.

`config show` shows the values of librdkafka's keys that are known to be harmless, and `****` for
all others. Errors show no value of librdkafka's keys, of `index.snapshots.options` or of the seed.
Asterisks are never taken for a secret, so what `config show` has printed can't become a password or
a seed by mistake.

For OAuth, either use what librdkafka has (`sasl.oauthbearer.method = "oidc"`), or install a package
with a function that returns tokens, and name it in `kafka.oauth`:

    [project.entry-points."neardup.oauth"]      # in the package's pyproject.toml
    msk = "our_tokens:provide"

    def provide(config: str) -> tuple[str, float]:      # sasl.oauthbearer.config
        return token, expires_at_in_seconds_since_1970

In Kubernetes, a service named `neardup` puts variables such as `NEARDUP_PORT` into every pod. They
are ignored, with a warning; `enableServiceLinks: false` in the pod leaves them out.

## The list of boilerplate

`similarity.boilerplate` names a file, which all workers and `neardup serve` need to have. In
Kubernetes, put it into a ConfigMap, which takes 1 MiB as well, and mount that:

    kubectl create configmap neardup-lines --from-file=lines.txt

    # in the pod
    volumes: [{name: lines, configMap: {name: neardup-lines}}]
    # in the container
    volumeMounts: [{name: lines, mountPath: /etc/neardup/lines, readOnly: true}]
    env: [{name: NEARDUP_SIMILARITY__BOILERPLATE, value: /etc/neardup/lines/lines.txt}]

A worker reads the list when it starts. If the lines have changed by then, it is refused, and the
others go on with theirs. [How a list is made](../how-to/offline.md#footers-menus-cookie-banners).
"""
_FOOT = """
This page is generated: `python -m tools.configuration > docs/reference/configuration.md`.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, as the reference lists it."""

    name: str
    takes: str
    default: str
    meaning: str

    @property
    def environment(self) -> str:
        """Return the name of its environment variable."""
        return env_name(self.name)


def settings() -> Iterator[Setting]:
    """Yield all settings, in the order of the sections."""
    for name, field in fields():
        yield Setting(
            name,
            _takes(field),
            toml(_plain(field.default)) if field.default is not None else "",
            field.description or "",
        )


def reference() -> str:
    """Return the page of all settings, as Markdown."""
    parts = [_INTRODUCTION]
    section = None
    for setting in settings():
        own = setting.name.rpartition(".")[0]
        if own != section:
            section = own
            title, about = f"`{own}`" if own else "Application", ""
            if own:
                about = f"{_about(own)}\n\n"
            parts.append(f"\n## {title}\n\n{about}| name | takes | default | meaning |\n")
            parts.append("|---|---|---|---|\n")
        default = f"`{setting.default}`" if setting.default else ""
        parts.append(
            f"| `{setting.name}`<br>`{setting.environment}` | {setting.takes} | {default} |"
            f" {setting.meaning} |\n"
        )
    return "".join([*parts, _FOOT])


def _about(section: str) -> str:
    model: type[BaseModel] = Settings
    for name in section.split("."):
        kind = model.model_fields[name].annotation
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return ""
        model = kind
    return (model.__doc__ or "").strip()


def _takes(field: FieldInfo) -> str:
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind = kinds[0] if len(kinds) == 1 and get_origin(field.annotation) is not tuple else None
    kind = kind or field.annotation
    for one in (kind, field.annotation):
        if get_origin(one) is Literal:
            return " or ".join(f"`{choice}`" for choice in get_args(one))
    if get_origin(field.annotation) is tuple:
        return "names"
    if get_origin(field.annotation) is dict:
        return "table"
    words = {bool: "true or false", int: "integer", float: "number", Path: "path"}
    said = words.get(kind, "text") if isinstance(kind, type) else "text"
    bounds = [
        f"{sign} {getattr(rule, bound)}"
        for rule in field.metadata
        for bound, sign in _BOUNDS.items()
        if getattr(rule, bound, None) is not None
    ]
    return f"{said}, {', '.join(bounds)}" if bounds else said


def _plain(value: Any) -> Any:  # noqa: ANN401 -- whatever a setting holds
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value) if isinstance(value, Path) else value


if __name__ == "__main__":
    sys.stdout.write(reference())
