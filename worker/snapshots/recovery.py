"""How a shard's store comes to be open: as it lies here, from a snapshot, or empty."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from worker.probe import UNWATCHED, Probe, probing
from worker.snapshots.damage import Damages
from worker.snapshots.manifest import Manifest
from worker.snapshots.progress import RestoreProgress
from worker.snapshots.repository import Interrupted, Repository, ShardSnapshots, SnapshotDamaged
from worker.snapshots.soundness import SCRATCH, rotten
from worker.snapshots.storage import sync_directory
from worker.store import BandStore, Header, HeaderMismatch, StoreDamaged, aside_of

__all__ = ["Kept", "LogRange", "OpenStore", "Recovery", "Unrecoverable", "tidy"]

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
    """Where snapshots lie, a shard's directory and header, and who is told of what is fetched."""

    repository: Repository
    path: Callable[[int], Path]
    header: Callable[[int], Header]
    probe: Probe = UNWATCHED


OpenStore = Callable[[int, Callable[[int, int], None]], BandStore]
"""Opens a shard's store; see `BandStore` for what the second argument is told."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One opening of one shard: what is known of its log, who watches, and what was refused."""

    shard: int
    log: LogRange
    progress: RestoreProgress
    stop: Callable[[], bool]
    refused: list[str] = field(default_factory=list)

    def on_keys(self, count: int, total: int) -> None:
        self._go_on()
        self.progress.keys(count, total)

    def on_checked(self, size: int) -> None:
        self._go_on()
        self.progress.checked(size)

    def _go_on(self) -> None:
        if self.stop():
            raise Interrupted

    def refuse(self, what: str, why: str) -> None:
        """Note, and say, that a snapshot isn't taken."""
        self.refused.append(f"{what}: {why}")
        _log.warning("shard %d: the snapshot %s can't be used: %s", self.shard, what, why)


class Recovery:
    """Opens shards. Used from one thread a shard."""

    def __init__(
        self,
        open_store: OpenStore,
        put_aside: Callable[[int, str], None],
        kept: Kept | None = None,
    ) -> None:
        """Take how to open a shard's store and put it aside, and where snapshots lie, if any."""
        self._open = open_store
        self._put_aside = put_aside
        self._kept = kept
        self._damages = Damages()

    def damaged(self, shard: int, offset: int, why: str) -> None:
        """Note that a store, opened here, proved damaged when it had come so far.

        It is to be put aside; then `open` finds out whether snapshots are to blame.
        """
        self._damages.note(shard, offset, why)

    def open(
        self, shard: int, log: LogRange, progress: RestoreProgress, stop: Callable[[], bool]
    ) -> BandStore:
        """Open a shard's store so that its log can be read on from the store's offset.

        A store that is damaged or doesn't fit the log is put aside. An empty one is restored
        from the newest good snapshot, and so is one that a snapshot is far ahead of. Without
        a good one, the log is the last resort.

        Raises:
            HeaderMismatch: the store was made with other parameters.
            Unrecoverable: what is needed is gone, or all that there is proved damaged again
                and again; the message says what to do.
            OSError: the disk or the snapshots refuse.
            Interrupted: ``stop`` said so.
        """
        circle = self._damages.circle(shard)
        if circle is not None:
            raise Unrecoverable(
                f"shard {shard} goes round in circles: {circle}. Look at this machine's disk and"
                f" memory; 'neardup index verify' says what is wrong with"
                f" {self._place(shard)}, and another machine may do better"
            )
        attempt = _Attempt(shard, log, progress, stop)
        store = self._as_it_lies(attempt)
        if self._kept is not None:
            store = self._from_snapshot(self._kept, attempt, store)
        if store is None:
            store = self._open(shard, attempt.on_keys)
        if store.offset == 0:
            self._damages.made_from(shard, None)
        if store.offset < log.low:
            offset = store.offset
            store.close()
            raise Unrecoverable(
                f"shard {shard} must be rebuilt from offset {offset} of its log, which"
                f" begins at {log.low}, and there is no good snapshot"
                f" {'in ' + self._kept.repository.url if self._kept else '(index.snapshots.url)'}"
                f"{''.join('; ' + text for text in attempt.refused)}."
                " Move the shard's directory here from the worker that had it"
            )
        return store

    def _place(self, shard: int) -> str:
        return str(aside_of(self._kept.path(shard))) if self._kept else "the store put aside"

    def _as_it_lies(self, attempt: _Attempt) -> BandStore | None:
        """Open what is here; None if it had to be put aside."""
        shard = attempt.shard
        try:
            store = self._open(shard, attempt.on_keys)
        except StoreDamaged as error:
            self._put_aside(shard, str(error))
            self._damages.suspect(shard)
            return None
        why = attempt.log.objection(store.offset)
        if why is None:
            return store
        store.close(flush=False)
        self._put_aside(shard, why)
        return None

    def _from_snapshot(
        self, kept: Kept, attempt: _Attempt, store: BandStore | None
    ) -> BandStore | None:
        """Give the store of the newest good snapshot, or what there was."""
        if store is not None and store.offset >= attempt.log.committed:
            return store
        shard = attempt.shard
        snapshots = kept.repository.shard(shard)
        try:
            aside = aside_of(kept.path(shard))
            self._damages.examine(shard, aside, snapshots, attempt.on_checked)
            for manifest in self._candidates(kept, snapshots, attempt):
                if store is not None and not _spares(manifest, store):
                    return store
                try:
                    with probing(kept.probe, "fetch"):
                        self._fetch(kept, snapshots, manifest, attempt)
                    former, store = store, None
                    with probing(kept.probe, "exchange"):
                        return self._exchange(kept, snapshots, manifest, former, attempt)
                except (SnapshotDamaged, StoreDamaged) as error:
                    _log.warning(
                        "shard %d: the snapshot at offset %d is no good, trying an older one: %s",
                        shard,
                        manifest.offset,
                        error,
                    )
                    attempt.refused.append(f"at offset {manifest.offset}: {error}")
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
    def _candidates(kept: Kept, snapshots: ShardSnapshots, attempt: _Attempt) -> list[Manifest]:
        """Give the snapshots that fit the index and the log, and are trusted, the newest first."""
        header = kept.header(attempt.shard)
        fitting = []
        for manifest in snapshots.manifests(attempt.refuse):
            if manifest.header != header:
                continue
            why = attempt.log.objection(manifest.offset)
            if why is None:
                fitting.append(manifest)
            else:
                attempt.refused.append(f"at offset {manifest.offset}: {why}")
        why_not = snapshots.distrusted(fitting)
        for name, files in (snapshots.missing(fitting) if fitting else {}).items():
            why_not.setdefault(name, f"{', '.join(files)} gone, or of another size")
        for manifest in fitting:
            if manifest.name in why_not:
                attempt.refuse(f"at offset {manifest.offset}", why_not[manifest.name])
        return [manifest for manifest in fitting if manifest.name not in why_not]

    @staticmethod
    def _fetch(
        kept: Kept,
        snapshots: ShardSnapshots,
        manifest: Manifest,
        attempt: _Attempt,
    ) -> None:
        """Fetch a snapshot beside the shard's place; see that it is sound, if nobody has."""
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
        progress = attempt.progress
        progress.begin(manifest.size_bytes)
        try:
            snapshots.fetch(manifest, fetching, on_bytes=progress.add, stop=attempt.stop)
            if not manifest.checked:
                _check(snapshots, manifest, fetching, attempt.on_checked)
        except BaseException:
            shutil.rmtree(fetching, ignore_errors=True)
            raise
        _log.info("shard %d: fetched in %.1f s", shard, monotonic() - began)

    def _exchange(
        self,
        kept: Kept,
        snapshots: ShardSnapshots,
        manifest: Manifest,
        store: BandStore | None,
        attempt: _Attempt,
    ) -> BandStore:
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
            restored = self._restored(path, manifest, attempt)
        except StoreDamaged as error:
            shutil.rmtree(path)
            # Each file is what was shipped, so it was no good then.
            snapshots.distrust(manifest.name, str(error))
            raise
        self._damages.made_from(manifest.shard, manifest)
        return restored

    def _restored(self, path: Path, manifest: Manifest, attempt: _Attempt) -> BandStore:
        restored = self._open(manifest.shard, attempt.on_keys)
        if restored.offset != manifest.offset:
            restored.close(flush=False)
            raise StoreDamaged(f"{path}: at offset {restored.offset}, not {manifest.offset}")
        return restored


def _check(
    snapshots: ShardSnapshots,
    manifest: Manifest,
    fetched: Path,
    on_bytes: Callable[[int], None],
) -> None:
    """Read the tables of a snapshot that was shipped by a version that didn't.

    Raises:
        SnapshotDamaged: some are rotten; nobody will restore them again.
    """
    found = rotten(sorted(fetched.glob("*.sst")), on_bytes=on_bytes)
    for file in manifest.files:
        if file.name in found:
            snapshots.distrust(file.sha256, f"{file.name} is rotten: {found[file.name]}")
    if found:
        raise SnapshotDamaged(f"{', '.join(sorted(found))} rotten when shipped")


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
    """Remove what a killed worker left half-made: fetches, unshipped checkpoints, links."""
    for pattern in ("shard-*.fetching", "shard-*.checkpoint", f"shard-*{SCRATCH}"):
        for left in state_dir.glob(pattern):
            shutil.rmtree(left, ignore_errors=True)
