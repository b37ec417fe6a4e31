"""How a shard's store comes to be open: as it lies here, from a snapshot, or empty."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from worker.snapshots.manifest import Manifest
from worker.snapshots.progress import RestoreProgress
from worker.snapshots.repository import Interrupted, Repository, ShardSnapshots, SnapshotDamaged
from worker.snapshots.storage import sync_directory
from worker.store import BandStore, Header, HeaderMismatch, StoreDamaged

__all__ = ["Kept", "LogRange", "Recovery", "Unrecoverable", "tidy"]

_log = logging.getLogger(__name__)

_REPLAYED_A_SECOND = 40_000
_FETCHED_A_SECOND = 100_000_000
"""Documents and bytes: rough, to tell whether a snapshot spares more than it costs."""


class Unrecoverable(Exception):  # noqa: N818 -- says how it stands
    """Neither the store, nor a snapshot, nor the log has what the shard needs."""


class LogRange(NamedTuple):
    """What there is of a shard's log, half-open, and how far its group has come."""

    low: int
    high: int
    committed: int

    def objection(self, offset: int) -> str | None:
        """Say why a store with this offset can't be continued; None: it can."""
        if offset > self.high:
            return f"its offset {offset} is after the end of the log, {self.high}"
        if offset > self.committed:
            return f"its offset {offset} is past the group's, {self.committed}"
        if offset < self.low and offset > 0:
            return f"its offset {offset} is before the start of the log, {self.low}"
        return None


@dataclass(frozen=True, slots=True)
class Kept:
    """Where snapshots lie, which directory is a shard's, and what header it must have."""

    repository: Repository
    path: Callable[[int], Path]
    header: Callable[[int], Header]


class Recovery:
    """Opens shards. Used from one thread a shard."""

    def __init__(
        self,
        open_store: Callable[[int], BandStore],
        put_aside: Callable[[int, str], None],
        kept: Kept | None = None,
    ) -> None:
        """Take how to open a shard's store and put it aside, and where snapshots lie, if any."""
        self._open = open_store
        self._put_aside = put_aside
        self._kept = kept

    def open(
        self, shard: int, log: LogRange, progress: RestoreProgress, stop: Callable[[], bool]
    ) -> BandStore:
        """Open a shard's store so that its log can be read on from the store's offset.

        A store that is damaged or doesn't fit the log is put aside. An empty one is restored
        from the newest good snapshot, and so is one that a snapshot is far ahead of.

        Raises:
            HeaderMismatch: the store was made with other parameters.
            Unrecoverable: what is needed is gone; the message says what to do.
            OSError: the disk or the snapshots refuse.
            Interrupted: ``stop`` said so.
        """
        store = self._as_it_lies(shard, log)
        if self._kept is not None:
            store = self._from_snapshot(self._kept, shard, store, log, progress, stop)
        if store is None:
            store = self._open(shard)
        if store.offset < log.low:
            store.close()
            raise Unrecoverable(
                f"shard {shard} must be rebuilt from offset {store.offset} of its log, which"
                f" begins at {log.low}, and there is no good snapshot"
                f" {'in ' + self._kept.repository.url if self._kept else '(index.snapshots.url)'}."
                " Move the shard's directory here from the worker that had it"
            )
        return store

    def _as_it_lies(self, shard: int, log: LogRange) -> BandStore | None:
        """Open what is here; None if it had to be put aside."""
        try:
            store = self._open(shard)
        except StoreDamaged as error:
            self._put_aside(shard, str(error))
            return None
        why = log.objection(store.offset)
        if why is None:
            return store
        store.close(flush=False)
        self._put_aside(shard, why)
        return None

    def _from_snapshot(  # noqa: PLR0913, PLR0917 -- one step of `open`
        self,
        kept: Kept,
        shard: int,
        store: BandStore | None,
        log: LogRange,
        progress: RestoreProgress,
        stop: Callable[[], bool],
    ) -> BandStore | None:
        """Give the store of the newest good snapshot, or what there was."""
        if store is not None and store.offset >= log.committed:
            return store
        snapshots = kept.repository.shard(shard)
        try:
            for manifest in self._candidates(kept, snapshots, shard, log):
                if store is not None and not _spares(manifest, store):
                    return store
                try:
                    self._fetch(kept, snapshots, manifest, progress, stop)
                    former, store = store, None
                    return self._exchange(kept, manifest, former)
                except (SnapshotDamaged, StoreDamaged) as error:
                    _log.warning(
                        "shard %d: the snapshot at offset %d is no good, trying an older one: %s",
                        shard,
                        manifest.offset,
                        error,
                    )
        except (Interrupted, HeaderMismatch):
            _release(store)
            raise
        except Exception as error:
            # An object store's library has errors of its own.
            if store is None or store.offset == 0:
                _release(store)
                raise OSError(f"{kept.repository.url}: no snapshot can be read: {error}") from error
            _log.warning("shard %d: no snapshot can be read, replaying: %s", shard, error)
        return store

    @staticmethod
    def _candidates(
        kept: Kept, snapshots: ShardSnapshots, shard: int, log: LogRange
    ) -> list[Manifest]:
        """Give the snapshots that fit the index and the log, the newest first."""
        header = kept.header(shard)

        def on_bad(name: str, why: str) -> None:
            _log.warning("shard %d: the snapshot %s can't be used: %s", shard, name, why)

        fitting = [
            manifest
            for manifest in snapshots.manifests(on_bad)
            if manifest.header == header and log.objection(manifest.offset) is None
        ]
        gaps = snapshots.missing(fitting) if fitting else {}
        for offset, names in gaps.items():
            on_bad(f"at offset {offset}", f"{', '.join(names)} gone, or of another size")
        return [manifest for manifest in fitting if manifest.offset not in gaps]

    @staticmethod
    def _fetch(
        kept: Kept,
        snapshots: ShardSnapshots,
        manifest: Manifest,
        progress: RestoreProgress,
        stop: Callable[[], bool],
    ) -> None:
        """Fetch a snapshot beside the shard's place."""
        shard, path = manifest.shard, kept.path(manifest.shard)
        began = monotonic()
        _log.info(
            "shard %d: fetching the snapshot at offset %d, %d documents, %d MB, from %s",
            shard,
            manifest.offset,
            manifest.documents,
            manifest.size_bytes >> 20,
            snapshots.place,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path.parent).free
        if free < manifest.size_bytes:
            raise OSError(f"{path}: it takes {manifest.size_bytes} bytes, and {free} are free")
        fetching = _fetching(path)
        shutil.rmtree(fetching, ignore_errors=True)
        progress.begin(manifest.size_bytes)
        try:
            snapshots.fetch(manifest, fetching, on_bytes=progress.add, stop=stop)
        except BaseException:
            shutil.rmtree(fetching, ignore_errors=True)
            raise
        _log.info("shard %d: fetched in %.1f s", shard, monotonic() - began)

    def _exchange(self, kept: Kept, manifest: Manifest, store: BandStore | None) -> BandStore:
        """Put what was fetched in the place of what was there, and open it."""
        path = kept.path(manifest.shard)
        if store is not None:
            behind = store.offset > 0
            store.close(flush=False)
            if behind:
                why = f"the snapshot at offset {manifest.offset} is far ahead of it"
                self._put_aside(manifest.shard, why)
        shutil.rmtree(path, ignore_errors=True)
        _fetching(path).rename(path)
        sync_directory(path.parent)
        try:
            restored = self._open(manifest.shard)
        except StoreDamaged:
            shutil.rmtree(path)
            raise
        if restored.offset == manifest.offset:
            return restored
        restored.close(flush=False)
        shutil.rmtree(path)
        raise StoreDamaged(f"{path}: at offset {restored.offset}, not {manifest.offset}")


def _release(store: BandStore | None) -> None:
    if store is not None:
        store.close(flush=False)


def _fetching(path: Path) -> Path:
    return path.with_name(f"{path.name}.fetching")


def _spares(manifest: Manifest, store: BandStore) -> bool:
    """Tell whether to fetch a snapshot takes less time than to replay up to it."""
    if manifest.offset <= store.offset:
        return False
    if store.offset == 0:
        return True
    replay = (manifest.documents - store.documents) / _REPLAYED_A_SECOND
    return replay > manifest.size_bytes / _FETCHED_A_SECOND


def tidy(state_dir: Path) -> None:
    """Remove what a killed worker left half-made: fetches, and checkpoints not yet shipped."""
    for pattern in ("shard-*.fetching", "shard-*.checkpoint"):
        for left in state_dir.glob(pattern):
            shutil.rmtree(left, ignore_errors=True)
