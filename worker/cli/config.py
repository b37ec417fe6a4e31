"""``neardup config``: the effective settings."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import typer

from worker.cli.options import App, Bootstrap, Config, Json, for_kafka, settings_of
from worker.cli.screen import print_json
from worker.formats.choice import document_format
from worker.settings.loading import advice, fields
from worker.settings.memory import MemoryShares
from worker.settings.model import Settings
from worker.visible import visible

_CHOSEN = {"slots": "threshold", "bands": "recall", "rows": "recall"}
"""Settings of similarity that follow from others if they are not set."""


def show(
    bootstrap: Bootstrap = None,
    config: Config = None,
    app: App = None,
    *,
    as_json: Json = False,
) -> None:
    """Print the effective settings, with secrets as ****."""
    print_settings(settings_of(config, bootstrap, app), as_json=as_json)


def check(bootstrap: Bootstrap = None, config: Config = None, app: App = None) -> None:
    """Print ok, or the first wrong setting (exit status 2); warnings go to standard error.

    This includes the settings of librdkafka, and the files that hold secrets. It does not connect.
    """
    settings = for_kafka(config, bootstrap, app)
    settings.snapshot_options()
    document_format(settings)
    for line in advice(settings):
        typer.echo(f"warning: {line}", err=True)
    typer.echo("ok")


def print_settings(settings: Settings, *, as_json: bool) -> None:
    """Print settings as TOML or as JSON, and what `worker.memory` comes to."""
    values = _effective(settings)
    if as_json:
        print_json({**values, "memory": asdict(settings.memory())})
    else:
        sys.stdout.write(_to_toml(values, settings) + _memory(settings.memory()))


def _memory(shares: MemoryShares) -> str:
    """Return what `worker.memory` comes to, as comments."""
    lines = ["", "# worker.memory and its parts here, in bytes:"]
    for name, size in asdict(shares).items():
        value = f"at most {shares.most_cache:,}" if size is None else f"{size:,}"
        lines.append(f"#   {name:<14} {value}")
    return "\n".join(lines) + "\n"


def _effective(given: Settings) -> dict[str, Any]:
    """Return the settings as plain values, with the derived defaults filled in."""
    values = given.redacted()
    topology = given.topology(1)
    for name in ("documents", "unique", "duplicate", "rejected"):
        values["topics"][name] = getattr(topology, name)
    for name in _CHOSEN:
        values["similarity"][name] = getattr(topology.layout.parameters, name)
    return values


def _to_toml(values: dict[str, Any], effective: Settings) -> str:
    """Return settings as TOML, each with its meaning; unset ones are comments."""
    meanings = {name: field.description or "" for name, field in fields()}
    chosen = {name for name in _CHOSEN if getattr(effective.similarity, name) is None}
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
                if title == "similarity" and name in chosen:
                    meaning = f"follows from {_CHOSEN[name]}"
                lines.append(_line(name, value, meaning))
    return "\n".join(lines) + "\n"


def _line(name: str, value: Any, meaning: str) -> str:  # noqa: ANN401 -- whatever a setting holds
    if value is None:
        return f"# {name} is not set: {meaning}"
    line = f"{name} = {toml(value)}"
    return f"{line:<40}  # {meaning}" if meaning else line


def toml(value: Any) -> str:  # noqa: ANN401 -- whatever a setting holds
    """Return a value as TOML; its strings, numbers and booleans are those of JSON.

    What a terminal might obey is escaped, DEL too, which TOML doesn't allow.
    """
    if isinstance(value, dict):
        pairs = ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if visible(c) == c else f"\\U{ord(c):08x}" for c in text)
