"""The options of ``neardup index``; the bodies are in `worker.cli.index`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.kafka_options import App, Config, Json

if TYPE_CHECKING:
    from worker.settings import Settings

__all__ = ["register"]

_PANEL = "Kafka: topics and settings"

StateDir = Annotated[
    Path | None,
    typer.Option(help="The worker's state directory (worker.state_dir).", show_default=False),
]
Url = Annotated[
    str | None,
    typer.Option(help="Location of the snapshots (index.snapshots.url).", show_default=False),
]
Shard = Annotated[
    list[int] | None,
    typer.Option("--shard", min=0, help="Only this shard; may be repeated.", show_default=False),
]


def _settings(
    config: list[Path] | None, app: str | None, state_dir: Path | None, url: str | None
) -> Settings:
    from worker.settings import load

    given = {"app": app, "worker.state_dir": state_dir, "index.snapshots.url": url}
    return load(config, given)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    index = typer.Typer(
        help="Inspect, verify and restore shards and their snapshots.", no_args_is_help=True
    )
    for name, command in (
        ("stats", stats),
        ("verify", verify),
        ("snapshots", snapshots),
        ("snapshot", snapshot),
        ("restore", restore),
    ):
        index.command(name)(command)
    app.add_typer(index, name="index", rich_help_panel=_PANEL)


def stats(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    state: Annotated[
        Path | None,
        typer.Option(help="A directory of `dedupe --state` instead.", show_default=False),
    ] = None,
    *,
    buckets: Annotated[
        bool,
        typer.Option("--buckets", help="Read all buckets, and show how large they are."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the contents of the shards in a state directory, as of their last flush."""
    from worker.cli.index import stats as body

    body(_settings(config, app, state_dir, None), state, buckets=buckets, as_json=as_json)


def verify(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
    *,
    of_snapshots: Annotated[
        bool,
        typer.Option("--snapshots", help="Verify the snapshots instead of the state directory."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Read all shards, and report damage (exit status 1). Stop the worker first."""
    settings = _settings(config, app, state_dir, url)
    from worker.cli import index, index_snapshots

    (index_snapshots if of_snapshots else index).verify(settings, shard, as_json=as_json)


def snapshots(
    config: Config = None,
    app: App = None,
    url: Url = None,
    *,
    as_json: Json = False,
) -> None:
    """List the snapshots."""
    from worker.cli.index_snapshots import show as body

    body(_settings(config, app, None, url), as_json=as_json)


def snapshot(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
) -> None:
    """Take snapshots of a stopped worker's shards. A running worker takes its own."""
    from worker.cli.index_snapshots import snapshot as body

    body(_settings(config, app, state_dir, url), shard)


def restore(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
    offset: Annotated[
        int | None,
        typer.Option(min=0, help="Use the newest snapshot up to this offset.", show_default=False),
    ] = None,
) -> None:
    """Restore the shards that are missing from a stopped worker's state directory.

    A running worker restores the shards that it owns by itself.
    """
    from worker.cli.index_snapshots import restore as body

    body(_settings(config, app, state_dir, url), shard, offset)
