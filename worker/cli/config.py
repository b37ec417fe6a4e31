"""``neardup config``: the settings as they apply; and the reference of all settings.

``python -m worker.cli.config > docs/configuration.md`` writes the reference.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from worker.settings import ENV_PREFIX, Settings, redacted
from worker.topology import Topology

__all__ = ["Setting", "reference", "settings", "show", "to_toml"]

_MEANING = {
    "kafka.session_timeout_ms": "how soon a dead worker's partitions go to others (classic)",
    "documents.format": "json: an object with the fields below; text: the value is the text",
    "documents.id_field": "the field with the id; without it, the record's key is the id",
    "documents.text_fields": "the fields with the text, joined; a comma-separated list",
    "similarity.threshold": "two documents this similar (Jaccard, of shingles) are duplicates",
    "similarity.shingle": "compare runs of characters, or of words",
    "similarity.shingle_size": "how many of them make a shingle",
    "similarity.slots": "of a sketch; more: closer estimates, more time and space",
    "similarity.nfkc": "unify compatibility characters (Unicode NFKC)",
    "similarity.casefold": "ignore case",
    "similarity.collapse_whitespace": "take any white space for one blank",
    "index.shards": "partitions of the index, and the most workers that share it",
    "index.bucket_capacity": "entries that a bucket holds",
    "index.absorb": "copies this similar leave no entry of their own",
    "index.max_matches": "matches published with a duplicate, the best ones",
    "index.future_allowance_seconds": "how far a document's time may be ahead of the log's",
    "index.flush_documents": "documents after which a shard is flushed to disk",
    "index.flush_seconds": "time after which a shard is flushed to disk",
    "limits.text_characters": "longer texts are rejected",
    "limits.id_bytes": "longer ids are rejected",
    "limits.reject_share": "the worker stops if more than this share is unreadable",
    "limits.reject_window": "the number of latest documents that the share is of",
    "worker.state_dir": "where the index lives; each worker its own",
    "worker.stages": "what this worker does; a comma-separated list",
    "worker.http": "serve metrics and health",
    "worker.http_host": "address for metrics and health",
    "worker.http_port": "port for metrics and health; 0: any",
    "worker.batch_records": "records that a stage takes at once, at most",
    "worker.batch_bytes": "bytes that a stage takes at once, or *route* publishes, at most",
    "worker.shutdown_seconds": "time to finish when told to stop",
    "worker.log_format": "how log lines look",
    "worker.log_level": "how much is logged",
}


_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, as the reference lists it."""

    name: str
    takes: str
    default: str
    meaning: str

    @property
    def environment(self) -> str:
        """Name its environment variable."""
        return ENV_PREFIX + self.name.replace(".", "__").upper()


def settings() -> Iterator[Setting]:
    """Give all settings, in the order of the sections."""
    for name, field in _fields(Settings):
        yield Setting(
            name,
            _takes(field),
            _toml(_plain(field.default)) if field.default is not None else "",
            field.description or _MEANING.get(name, ""),
        )


def _fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _takes(field: FieldInfo) -> str:
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    kind = kinds[0] if len(kinds) == 1 and get_origin(field.annotation) is not tuple else None
    kind = kind or field.annotation
    if get_origin(field.annotation) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(field.annotation))
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


def show(effective: Settings, *, as_json: bool) -> None:
    """Print the settings as they apply."""
    values = _effective(effective)
    if as_json:
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    else:
        text = to_toml(values, effective)
    sys.stdout.write(text)


def _effective(given: Settings) -> dict[str, Any]:
    """Fill in what the defaults leave to be worked out."""
    values = redacted(given)
    topology = Topology.of(given, 1)
    for name in ("documents", "unique", "duplicate", "rejected"):
        values["topics"][name] = getattr(topology, name)
    values["similarity"]["bands"] = topology.parameters.bands
    values["similarity"]["rows"] = topology.parameters.rows
    return values


def to_toml(values: dict[str, Any], effective: Settings) -> str:
    """Write settings as TOML, with what each means; unset ones are comments."""
    meanings = {setting.name: setting.meaning for setting in settings()}
    chosen = effective.similarity.bands is None
    lines = []
    for section, content in values.items():
        if not isinstance(content, dict):
            lines.append(_line(section, content, meanings[section]))
            continue
        tables = {section: content}
        while tables:
            title, table = tables.popitem()
            lines += ["", f"[{title}]"]
            for name, value in table.items():
                full = f"{title}.{name}"
                if full not in meanings:
                    tables[full] = value
                    continue
                meaning = meanings[full]
                if chosen and name in ("bands", "rows"):
                    meaning = "chosen by recall"
                lines.append(_line(name, value, meaning))
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any, meaning: str) -> str:  # noqa: ANN401 -- whatever a setting holds
    if value is None:
        return f"# {name} is not set: {meaning}"
    line = f"{name} = {_toml(value)}"
    return f"{line:<40}  # {meaning}" if meaning else line


def _toml(value: Any) -> str:  # noqa: ANN401 -- whatever a setting holds
    """Write a value; TOML's strings, numbers and booleans are JSON's, but for DEL."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_INTRODUCTION = """\
# Configuration

Settings come from the command line, then environment variables, then a TOML file
(`--config FILE.toml`, or named in `NEARDUP_CONFIG`), then the defaults below; the first
that names a setting wins. A wrong name or value stops the command with one line that
says what it takes, and status 2.

    neardup config show     # all settings as they apply, secrets as ***
    neardup config check    # ok, or what is wrong

A file names sections as tables:

    app = "news"

    [kafka]
    bootstrap = "kafka-1:9092,kafka-2:9092"
    common = { "security.protocol" = "SSL", "ssl.ca.location" = "/etc/ssl/kafka.pem" }

    [similarity]
    threshold = 0.85

An environment variable is `NEARDUP_`, the section, two underscores, the name:
`NEARDUP_SIMILARITY__THRESHOLD=0.85`. A table there is JSON:
`NEARDUP_KAFKA__COMMON='{"security.protocol": "SSL"}'`.

`kafka.common`, `kafka.consumer` and `kafka.producer` take any key of librdkafka, except
those on which exactly-once depends: these are refused by name.

All workers of an application need the same `similarity`, `index.shards`, `index.absorb`,
`index.bucket_capacity` and `documents` settings. Frames of workers that differ in
partitions, shards or similarity are refused, and so is an index that was made with others.
"""

_FOOT = """
This page is generated: `python -m worker.cli.config > docs/configuration.md`.
"""


def reference() -> str:
    """Write the page of all settings."""
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


if __name__ == "__main__":
    sys.stdout.write(reference())
