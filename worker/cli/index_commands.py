"""The commands ``neardup index``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli.options import App, Config, Json, StateDir, settings_of

if TYPE_CHECKING:
    from worker.settings.model import Settings


Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Location of the snapshots (index.snapshots.url)."),
]
Shard = Annotated[
    list[int] | None,
    typer.Option("--shard", metavar="N", min=0, help="Only this shard; may be repeated."),
]


def stats(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A directory of `dedupe --state` instead."),
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

    body(
        settings_of(config, app=app, worker__state_dir=state_dir),
        state,
        buckets=buckets,
        as_json=as_json,
    )


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
    settings = _both(config, app, state_dir, url)
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

    body(settings_of(config, app=app, index__snapshots__url=url), as_json=as_json)


def snapshot(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
) -> None:
    """Take snapshots of a stopped worker's shards. A running worker takes its own."""
    from worker.cli.index_snapshots import snapshot as body

    body(_both(config, app, state_dir, url), shard)


def restore(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    shard: Shard = None,
    offset: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Use the newest snapshot up to this offset."),
    ] = None,
) -> None:
    """Restore the shards that are missing from a stopped worker's state directory.

    A running worker restores the shards that it owns by itself.
    """
    from worker.cli.index_snapshots import restore as body

    body(_both(config, app, state_dir, url), shard, offset)


def _both(
    config: list[Path] | None, app: str | None, state_dir: Path | None, url: str | None
) -> Settings:
    return settings_of(config, app=app, worker__state_dir=state_dir, index__snapshots__url=url)
