"""``neardup index verify``, ``snapshots``, ``snapshot`` and ``restore``."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.index import size, stores, time_of, verify_stores
from worker.cli.options import App, Config, Json, StateDir, settings_of
from worker.cli.screen import line, print_json, screen, shown
from worker.index.directory import ShardDirectories, shard_name
from worker.index.errors import StoreDamaged
from worker.index.inspection import inspect_store
from worker.index.keyspace import StoreHeader
from worker.index.recovery import LogRange, Recovery
from worker.index.restore_progress import RestoreProgress
from worker.index.rocksdb import StoreOptions
from worker.index.snapshots.manifest import Manifest, read_key
from worker.index.snapshots.repository import Repository
from worker.index.snapshots.shipper import Shipper
from worker.index.snapshots.soundness import Verification
from worker.process.state_directory import locked
from worker.settings.errors import ConfigurationError
from worker.settings.model import Settings
from worker.visible import counted, tell

_FAR = 1 << 62
"""Past the end of any log: only a worker knows the offset that the group has committed."""


Url = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Location of the snapshots (index.snapshots.url)."),
]
Shard = Annotated[
    list[int] | None,
    typer.Option("--shard", metavar="N", min=0, help="Only this shard; may be repeated."),
]


def _both(
    config: list[Path] | None, app: str | None, state_dir: Path | None, url: str | None
) -> Settings:
    return settings_of(config, app=app, worker__state_dir=state_dir, index__snapshots__url=url)


def _repository(settings: Settings) -> Repository:
    kept = settings.index.snapshots
    if kept.url is None:
        raise CommandError("index.snapshots.url: not set; set it, or use --url")
    options, key = settings.snapshot_options(), read_key(kept.key_file)
    seconds = settings.index.erasure_seconds
    return Repository(kept.url, settings.app, options, key=key, erasure_seconds=seconds)


@contextmanager
def _stopped(state_dir: Path, otherwise: str) -> Iterator[None]:
    """Hold the lock of the state directory, which only a stopped worker releases."""
    try:
        with locked(state_dir):
            yield
    except ConfigurationError as error:
        if "in use" not in str(error):
            raise
        raise CommandError(f"{state_dir}: a worker is running here; {otherwise}") from None


def verify(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    only: Shard = None,
    *,
    of_snapshots: Annotated[
        bool,
        typer.Option("--snapshots", help="Verify the snapshots instead of the state directory."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Read all shards, and report damage (exit status 1). Stop the worker first."""
    settings = _both(config, app, state_dir, url)
    if of_snapshots:
        _verify_snapshots(settings, only, as_json=as_json)
    else:
        verify_stores(settings, only, as_json=as_json)


def _verify_snapshots(settings: Settings, only: list[int] | None, *, as_json: bool) -> None:
    """Read every file of every snapshot; raise if one is missing or damaged."""
    repository = _repository(settings)
    rows: list[dict[str, Any]] = []
    for shard in _shards(settings, only):
        kept = repository.shard(shard)
        bad: list[str] = []
        manifests = kept.manifests(lambda name, why: bad.append(f"{name}: {why}"))  # noqa: B023 -- called here
        distrusted = kept.distrusted(manifests)
        for manifest in manifests:
            if manifest.name in distrusted:
                bad.append(f"distrusted at offset {manifest.offset}: {distrusted[manifest.name]}")
                continue
            files = [file.name for file in kept.damaged(manifest.files)]
            rows.append(_verified(shard, manifest.offset, files))
            if not as_json:
                _print_verified(rows[-1])
        for text in bad:
            rows.append(_verified(shard, None, [], text))
            if not as_json:
                _print_verified(rows[-1])
    if as_json:
        print_json(rows)
    if not rows:
        raise CommandError(_none(settings, repository), EXIT_FAILED)
    wrong = sum(row["state"] != "ok" for row in rows)
    if wrong:
        raise CommandError(counted(wrong, "damaged snapshot"), EXIT_FAILED)


def _verified(shard: int, offset: int | None, files: list[str], why: str = "") -> dict[str, Any]:
    return {
        "shard": shard,
        "state": "damaged" if files or why else "ok",
        "offset": offset,
        "damaged_files": files,
        "why": why or None,
    }


def _print_verified(row: dict[str, Any]) -> None:
    mark = (row["state"].ljust(8), "green" if row["state"] == "ok" else "bold red")
    label = f"shard {row['shard']} at offset {row['offset']}"
    if row["why"] is not None:
        label = f"shard {row['shard']}: {row['why']}"
    elif row["damaged_files"]:
        label = f"{', '.join(row['damaged_files'])} of {label}"
    screen().print(line(mark, f" {label}"))


def _none(settings: Settings, repository: Repository) -> str:
    app = settings.app
    return f"no snapshots of {app} in {repository.url}; after a reindex, --app {app}.gN has them"


def _refused(name: str, why: str) -> None:
    tell(f"snapshot {name} is left out: {why}")


def _shards(settings: Settings, only: list[int] | None) -> Iterable[int]:
    return only if only is not None else range(settings.index.shards)


def snapshots(
    config: Config = None,
    app: App = None,
    url: Url = None,
    *,
    as_json: Json = False,
) -> None:
    """List the snapshots."""
    settings = settings_of(config, app=app, index__snapshots__url=url)
    repository = _repository(settings)
    rows: list[dict[str, Any]] = []
    for shard in _shards(settings, None):
        kept = repository.shard(shard)
        manifests = kept.manifests(_refused)
        gaps, distrusted = kept.missing(manifests), kept.distrusted(manifests)
        rows += [_row(m, gaps.get(m.name, []), distrusted.get(m.name)) for m in manifests]
    if as_json:
        print_json(rows)
        return
    table = Table("shard", "offset", "documents", "size", "taken", "", box=None)
    for row in rows:
        table.add_row(
            str(row["shard"]),
            str(row["offset"]),
            f"{row['documents']:,}",
            size(row["bytes"]),
            row["created"],
            _state(row),
        )
    screen().print(table if rows else shown(_none(settings, repository)))


def _row(manifest: Manifest, missing: list[str], distrusted: str | None) -> dict[str, Any]:
    return {
        "shard": manifest.shard,
        "offset": manifest.offset,
        "documents": manifest.documents,
        "bytes": manifest.size_bytes,
        "created": time_of(manifest.created),
        "missing": missing,
        "distrusted": distrusted,
    }


def _state(row: dict[str, Any]) -> Text:
    if row["missing"]:
        return line((f"{counted(len(row['missing']), 'file')} missing", "bold red"))
    if row["distrusted"]:
        return line(("distrusted", "bold red"), f": {row['distrusted']}")
    return line(("ok", "green"))


def snapshot(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    only: Shard = None,
) -> None:
    """Take snapshots of a stopped worker's shards. A running worker takes its own."""
    settings = _both(config, app, state_dir, url)
    console, repository = screen(), _repository(settings)
    with _stopped(settings.worker.state_dir, "it takes its own snapshots"):
        for shard, path in stores(settings, only).items():
            header = inspect_store(path).header
            directories = _directories(settings, header)
            shipper = Shipper(
                repository,
                directories.header,
                shards=int(header["shards"]),
                every_seconds=1,
                keep=settings.index.snapshots.keep,
                verification=Verification(settings.index.snapshots.verify_seconds),
                background=False,
            )
            store = directories.open(shard)
            try:
                manifest = shipper.ship_now(store, shard)
            except StoreDamaged as error:
                raise CommandError(f"shard {shard} not shipped: {error}", EXIT_FAILED) from error
            finally:
                store.close()
            text = (
                f"  shard {shard} at offset {manifest.offset},"
                f" {counted(manifest.documents, 'document')}, {size(manifest.size_bytes)}"
            )
            console.print(line(("shipped", "green"), text))


def restore(
    config: Config = None,
    app: App = None,
    state_dir: StateDir = None,
    url: Url = None,
    only: Shard = None,
    offset: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Use the newest snapshot up to this offset."),
    ] = None,
) -> None:
    """Restore the shards that are missing from a stopped worker's state directory.

    A running worker restores the shards that it owns by itself.
    """
    settings = _both(config, app, state_dir, url)
    console, repository = screen(), _repository(settings)
    with _stopped(settings.worker.state_dir, "it restores its own shards"):
        missing = [
            str(shard)
            for shard in _shards(settings, only)
            if not _restore(settings, repository, shard, offset, console)
        ]
    if missing:
        raise CommandError(f"no intact snapshot of shard {', '.join(missing)}", EXIT_FAILED)


def _restore(
    settings: Settings, repository: Repository, shard: int, offset: int | None, console: Console
) -> bool:
    """Restore a shard, and return whether there was an intact snapshot up to the offset.

    Raises:
        CommandError: the shard is there, or its newest snapshot was made with other settings.
    """
    path = settings.worker.state_dir / shard_name(shard)
    if path.exists():
        raise CommandError(f"{path} exists; move it away first")
    header = _header(settings, repository, shard)
    if header is None:
        text = f"     shard {shard} has no snapshot in {repository.url}"
        console.print(line(("none", "yellow"), text))
        return False
    store = Recovery(_directories(settings, header), repository).open(
        shard,
        LogRange(0, _FAR, _FAR if offset is None else offset),
        RestoreProgress(shard),
        lambda: False,
    )
    reached, documents = store.offset, store.documents
    store.close()
    if not reached:
        shutil.rmtree(path)
        console.print(line(("damaged", "bold red"), f"  shard {shard} has no intact snapshot"))
        return False
    text = f" shard {shard} at offset {reached}, {counted(documents, 'document')}"
    console.print(line(("restored", "green"), text))
    return True


def _header(settings: Settings, repository: Repository, shard: int) -> StoreHeader | None:
    """Return the header of the newest snapshot; None if there is none.

    Raises:
        CommandError: the snapshot was made with other settings.
    """
    manifests = repository.shard(shard).manifests(_refused)
    if not manifests:
        return None
    header = max(manifests, key=lambda manifest: manifest.created).header
    topology = settings.topology(1)
    index = settings.index
    expected = {
        "shards": topology.layout.shards,
        "absorb": settings.absorb,
        "bucket_capacity": index.bucket_capacity,
        "window": None if index.window_ms is None else index.window,
        "future_allowance_ms": None if index.window_ms is None else index.future_allowance_ms,
        "same_id": None if index.same_id == "duplicate" else index.same_id,
        **topology.layout.parameters.describe(),
    }
    for name, value in expected.items():
        if header.get(name) != value:
            raise CommandError(
                f"the newest snapshot of shard {shard} was made with {name}"
                f" {header.get(name, 'none')}, but the settings say"
                f" {'none' if value is None else value}"
            )
    return header


def _directories(settings: Settings, header: StoreHeader) -> ShardDirectories:
    """Return the worker's directories, for stores with this header."""
    # The only option that affects a store's content; the others affect speed.
    options = StoreOptions(run_documents=settings.index.run_documents)
    return ShardDirectories(settings.worker.state_dir, lambda _shard: header, options=options)
