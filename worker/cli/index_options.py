"""The options of ``neardup index``; the bodies are in `worker.cli.index`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.kafka_options import App, Config

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
    typer.Option(help="Where snapshots lie (index.snapshots.url).", show_default=False),
]
Shard = Annotated[
    list[int] | None,
    typer.Option("--shard", min=0, help="Only this shard; may be repeated.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def _settings(
    config: Path | None, app: str | None, state_dir: Path | None, url: str | None
) -> Settings:
    from worker.settings import load  # noqa: PLC0415 -- keeps --help fast

    given = {"app": app, "worker.state_dir": state_dir, "index.snapshots.url": url}
    return load(config, given)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    index = typer.Typer(help="Look at shards and their snapshots.", no_args_is_help=True)
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
    *,
    as_json: Json = False,
) -> None:
    """Say what the shards of a state directory hold, as of their last flush."""
    from worker.cli.index import stats as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, app, state_dir, None), as_json=as_json)


def verify(  # noqa: PLR0913 -- the command's options
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
    *,
    of_snapshots: Annotated[
        bool, typer.Option("--snapshots", help="The snapshots instead of the state directory.")
    ] = False,
) -> None:
    """Read everything, and say what is wrong (exit 1). A worker should not run meanwhile."""
    settings = _settings(config, app, state_dir, url)
    from worker.cli import index, index_snapshots  # noqa: PLC0415 -- keeps --help fast

    (index_snapshots if of_snapshots else index).verify(settings, shard)


def snapshots(
    config: Config = None,
    app: App = None,
    url: Url = None,
    *,
    as_json: Json = False,
) -> None:
    """List the snapshots there are."""
    from worker.cli.index_snapshots import show as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, app, None, url), as_json=as_json)


def snapshot(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
) -> None:
    """Take snapshots of the shards of a worker that is stopped; one that runs takes its own."""
    from worker.cli.index_snapshots import snapshot as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, app, state_dir, url), shard)


def restore(  # noqa: PLR0913, PLR0917 -- an argument is an option
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
    offset: Annotated[
        int | None,
        typer.Option(min=0, help="The newest one up to this offset.", show_default=False),
    ] = None,
) -> None:
    """Restore shards that a stopped worker's state directory doesn't have.

    A worker does so by itself, for the shards that it owns.
    """
    from worker.cli.index_snapshots import restore as body  # noqa: PLC0415 -- keeps --help fast

    body(_settings(config, app, state_dir, url), shard, offset)
