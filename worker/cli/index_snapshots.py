"""``neardup index snapshots``, ``snapshot`` and ``restore``."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.table import Table

from worker.cli.errors import EXIT_FAILED, CommandError
from worker.cli.index import console, size, stores, time_of
from worker.service import locked
from worker.settings import ConfigurationError, Settings
from worker.snapshots import (
    Kept,
    LogRange,
    Manifest,
    Recovery,
    Repository,
    RestoreProgress,
    Shipper,
    Verification,
)
from worker.snapshots.inspection import inspect
from worker.store import BandStore, Header, StoreDamaged, StoreOptions, put_aside
from worker.topology import Topology

__all__ = ["restore", "show", "snapshot", "verify"]

_FAR = 1 << 62
"""Past the end of any log: what the group has committed isn't known here, only to a worker."""


def _repository(settings: Settings) -> Repository:
    kept = settings.index.snapshots
    if kept.url is None:
        raise CommandError("index.snapshots.url: not set; name it there, or with --url")
    return Repository(kept.url, settings.app, kept.options)


@contextmanager
def _stopped(state_dir: Path, otherwise: str) -> Iterator[None]:
    """Hold the state directory, which only a worker that is stopped lets us."""
    if not state_dir.is_dir():
        state_dir.mkdir(parents=True)
    try:
        with locked(state_dir):
            yield
    except ConfigurationError as error:
        if "in use" not in str(error):
            raise
        raise CommandError(f"{state_dir}: a worker runs here; {otherwise}") from None


def verify(settings: Settings, only: list[int] | None) -> None:
    """Read every file of every snapshot; fail if one is gone or damaged."""
    screen, repository = console(), _repository(settings)
    wrong = 0
    for shard in _shards(settings, only):
        kept = repository.shard(shard)
        bad: list[str] = []
        found = kept.manifests(lambda name, why: bad.append(f"{name}: {why}"))  # noqa: B023
        without = kept.distrusted(found)
        for manifest in found:
            if manifest.name in without:
                bad.append(f"distrusted at offset {manifest.offset}: {without[manifest.name]}")
                continue
            damaged = kept.damaged(manifest.files)
            wrong += bool(damaged)
            what = ", ".join(file.name for file in damaged)
            mark = f"[bold red]damaged[/]  {what} of" if damaged else "[green]ok[/]      "
            screen.print(f"{mark} shard {shard} at offset {manifest.offset}")
        for text in bad:
            wrong += 1
            screen.print(f"[bold red]damaged[/]  shard {shard}: {text}")
    if wrong:
        raise CommandError(f"{wrong} snapshots are no good", EXIT_FAILED)


def _shards(settings: Settings, only: list[int] | None) -> Iterable[int]:
    return only if only is not None else range(settings.index.shards)


def show(settings: Settings, *, as_json: bool) -> None:
    """List the snapshots there are, and which lack files."""
    repository = _repository(settings)
    rows: list[dict[str, Any]] = []
    for shard in _shards(settings, None):
        kept = repository.shard(shard)
        found = kept.manifests()
        gaps, without = kept.missing(found), kept.distrusted(found)
        rows += [_row(m, gaps.get(m.name, []), without.get(m.name)) for m in found]
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
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
    console().print(table if rows else f"no snapshots in {repository.url}")


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


def _state(row: dict[str, Any]) -> str:
    if row["missing"]:
        return f"[bold red]{len(row['missing'])} files gone[/]"
    if row["distrusted"]:
        return f"[bold red]distrusted[/]: {row['distrusted']}"
    return "[green]ok[/]"


def snapshot(settings: Settings, only: list[int] | None) -> None:
    """Ship a snapshot of each store of a stopped worker."""
    screen, repository = console(), _repository(settings)
    with _stopped(settings.worker.state_dir, "it takes its snapshots itself"):
        for shard, path in stores(settings, only).items():
            header = inspect(path).header
            shipper = Shipper(
                repository,
                lambda _shard, header=header: header,  # type: ignore[misc]
                shards=int(header["shards"]),
                every_seconds=1,
                keep=settings.index.snapshots.keep,
                verification=Verification(settings.index.snapshots.verify_seconds),
                background=False,
            )
            store = BandStore(path, header, options=_options(settings))
            try:
                manifest = shipper.ship_now(store, shard)
            except StoreDamaged as error:
                raise CommandError(f"not shipped: {error}", EXIT_FAILED) from error
            finally:
                store.close()
            screen.print(
                f"[green]shipped[/]  shard {shard} at offset {manifest.offset},"
                f" {manifest.documents:,} documents, {size(manifest.size_bytes)}"
            )


def restore(settings: Settings, only: list[int] | None, offset: int | None) -> None:
    """Restore the shards that aren't there from their newest good snapshots."""
    screen, repository = console(), _repository(settings)
    state_dir = settings.worker.state_dir
    missing: list[int] = []
    with _stopped(state_dir, "it restores its shards itself"):
        for shard in _shards(settings, only):
            path = state_dir / f"shard-{shard:03d}"
            if path.exists():
                raise CommandError(f"{path} exists; move it away first")
            header = _header(settings, repository, shard)
            if header is None:
                screen.print(f"[yellow]none[/]     of shard {shard} in {repository.url}")
                missing.append(shard)
                continue
            store = _recovery(repository, path, header, _options(settings)).open(
                shard,
                LogRange(0, _FAR, _FAR if offset is None else offset),
                RestoreProgress(shard),
                lambda: False,
            )
            reached, documents = store.offset, store.documents
            store.close()
            if not reached:
                shutil.rmtree(path)
                screen.print(f"[bold red]no good[/]  one of shard {shard}")
                missing.append(shard)
                continue
            screen.print(
                f"[green]restored[/] shard {shard} at offset {reached}, {documents:,} documents"
            )

    if missing:
        raise CommandError(f"{len(missing)} shards have no good snapshot", EXIT_FAILED)


def _header(settings: Settings, repository: Repository, shard: int) -> Header | None:
    """Give the header of the newest snapshot, which must have been made with these settings."""
    found = repository.shard(shard).manifests()
    if not found:
        return None
    header = max(found, key=lambda manifest: manifest.created).header
    topology = Topology.of(settings, 1)
    wanted = {
        "shards": topology.shards,
        "absorb": settings.absorb,
        "bucket_capacity": settings.index.bucket_capacity,
        **topology.parameters.describe(),
    }
    for name, value in wanted.items():
        if header.get(name) != value:
            raise CommandError(
                f"the newest snapshot of shard {shard} was made with {name} {header.get(name)},"
                f" and the settings say {value}"
            )
    return header


def _options(settings: Settings) -> StoreOptions:
    """Give what decides about a store's content: all else is a matter of speed."""
    return StoreOptions(filter_bytes=settings.index.filter_bytes)


def _recovery(
    repository: Repository, path: Path, header: Header, options: StoreOptions
) -> Recovery:
    def open_store(_shard: int, on_keys: Callable[[int, int], None]) -> BandStore:
        return BandStore(path, header, options=options, on_keys=on_keys)

    def aside(_shard: int, why: str) -> None:
        put_aside(path, why)

    kept = Kept(repository, lambda _shard: path, lambda _shard: header)
    return Recovery(open_store, aside, kept)
