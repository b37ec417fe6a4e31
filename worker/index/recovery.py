"""Opens a shard's store: the local one, one from a snapshot, or an empty one.

Which can be used depends on the range of the shard's log, and on the damage that was found in
stores before: a worker must not restore a bad snapshot for ever.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from worker.index.directory import ShardDirectories, beside
from worker.index.errors import HeaderMismatch, StoreDamaged, Unrecoverable
from worker.index.restore_progress import RestoreProgress
from worker.index.snapshots.manifest import Manifest
from worker.index.snapshots.repository import (
    Interrupted,
    Repository,
    ShardSnapshots,
    SnapshotDamaged,
    file_digest,
)
from worker.index.snapshots.soundness import rotten
from worker.index.snapshots.storage import sync_directory
from worker.index.store import BandStore
from worker.probe import UNWATCHED, Probe, probing
from worker.stages.order import Coverage

_log = logging.getLogger(__name__)

_ROUNDS = 3
"""The most times that a shard is rebuilt from the same source without getting further."""


@dataclass(slots=True)
class _Shard:
    """The source of a shard's stores, and how far they got."""

    source: Manifest | None = None
    made_from: str = "what was here"
    reached: int = -1
    rounds: Counter[str] = field(default_factory=Counter)
    why: str = ""
    suspect: bool = False
    """Whether the last store that was put aside still has to be examined."""


class DamageHistory:
    """The damage history of all shards. Use each shard from one thread at a time."""

    def __init__(self) -> None:
        """Begin with an empty history."""
        self._shards: dict[int, _Shard] = {}

    def made_from(self, shard: int, source: Manifest | None) -> None:
        """Note what a shard's store is made from: a snapshot, or the log alone if None."""
        known = self._shards.setdefault(shard, _Shard())
        known.source = source
        known.made_from = f"the snapshot at offset {source.offset}" if source else "the log"

    def note(self, shard: int, offset: int, why: str) -> None:
        """Note that a store was found damaged at an offset."""
        known = self._shards.setdefault(shard, _Shard())
        if offset > known.reached:
            known.reached = offset
            known.rounds.clear()
        known.rounds[known.made_from] += 1
        known.why = why
        known.suspect = True

    def suspect(self, shard: int) -> None:
        """Note that a store could not be opened."""
        self._shards.setdefault(shard, _Shard()).suspect = True

    def circle(self, shard: int) -> str | None:
        """Return why rebuilding the shard again is useless; None if it may help."""
        known = self._shards.get(shard)
        if known is None or known.rounds[known.made_from] < _ROUNDS:
            return None
        tried = ", ".join(f"{name} ({count}x)" for name, count in known.rounds.items())
        return f"no store got past offset {known.reached}; tried {tried}; last failure: {known.why}"

    def examine(
        self,
        shard: int,
        aside: Path,
        snapshots: ShardSnapshots,
        on_bytes: Callable[[int], None],
    ) -> None:
        """Find out whether the snapshots are to blame for a store that was put aside.

        A corrupt table that the snapshots also have was corrupt when it was shipped. If all
        tables are sound, but the store was found damaged at the same point as the one before,
        the snapshot that it was made from is to blame.
        """
        known = self._shards.get(shard)
        if known is None or not known.suspect:
            return
        try:
            found = rotten(sorted(aside.glob("*.sst")), on_bytes=on_bytes)
        except OSError as error:
            _log.warning("shard %d: the store put aside can't be examined: %s", shard, error)
            known.suspect = False
            return
        digests = {file_digest(aside / name): name for name in found}
        for digest in sorted(snapshots.holds(digests)):
            name = digests[digest]
            snapshots.distrust(digest, f"{name} is corrupt: {found[name]}")
        for name, why in found.items():
            _log.warning("shard %d: table %s of the store put aside: %s", shard, name, why)
        if not found and known.source is not None and known.rounds.total() > 1:
            snapshots.distrust(known.source.name, known.why)
        known.suspect = False


class LogRange(NamedTuple):
    """The half-open range of offsets in a shard's log, and its group's committed offset.

    ``forgets`` is whether brokers delete from the log what is older than the index remembers. They
    also delete the markers of transactions behind its last frame, of which no offset is committed.
    """

    low: int
    high: int
    committed: int
    forgets: bool = False

    def start(self, offset: int) -> int:
        """Return where a store at this offset reads on: past markers that were deleted."""
        return max(offset, self.low) if self.reaches(offset) else offset

    def reaches(self, offset: int) -> bool:
        """Return whether the log has every frame from this offset on, as far as that can be told.

        A frame is never alone: the marker of its transaction follows it. So if a single offset is
        missing, it was a marker. Several markers follow one another if workers wrote in turns. So
        where the group is, nothing is taken to be missing: frames tile, and the next one shows if
        some were deleted that nobody has read.
        """
        if offset >= self.low:
            return True
        return self.forgets and offset > 0 and offset in {self.low - 1, self.committed}

    @property
    def beginning(self) -> int | None:
        """Return the offset of a new store; None if the log is needed from before its start."""
        if self.low == 0:
            return 0
        if not (self.forgets and self.reaches(self.committed)):
            return None
        return min(self.low, self.committed)

    def objection(self, offset: int) -> str | None:
        """Return why a store at this offset can't continue; None if it can."""
        if offset > self.high:
            return f"its offset {offset} is after the end of the log, {self.high}"
        if offset > self.committed:
            return f"its offset {offset} is past the group's, {self.committed}"
        if offset > 0 and not self.reaches(offset):
            return f"its offset {offset} is before the start of the log, {self.low}"
        return None


_REPLAYED_A_SECOND = 40_000
_FETCHED_A_SECOND = 100_000_000
"""Rough rates, to decide whether fetching a snapshot is faster than replaying the log."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One attempt to open a shard: its log, its progress, and the snapshots that were refused."""

    shard: int
    log: LogRange
    progress: RestoreProgress
    stop: Callable[[], bool]
    refused: list[str] = field(default_factory=list)

    def on_cells(self, count: int, total: int) -> None:
        self._check_stop()
        self.progress.cells(count, total)

    def on_checked(self, size: int) -> None:
        self._check_stop()
        self.progress.checked(size)

    def _check_stop(self) -> None:
        if self.stop():
            raise Interrupted

    def refuse(self, what: str, why: str) -> None:
        """Note and log that a snapshot can't be used."""
        self.refused.append(f"{what}: {why}")
        _log.warning("shard %d: the snapshot %s can't be used: %s", self.shard, what, why)


class Recovery:
    """Opens shards. Use each shard from one thread."""

    def __init__(
        self,
        directories: ShardDirectories,
        repository: Repository | None = None,
        *,
        forgets: bool = False,
        probe: Probe = UNWATCHED,
    ) -> None:
        """Take the directories of the stores, and the repository of snapshots, if there is one.

        With ``forgets``, the log's start is as good as its beginning; see `LogRange`. ``probe``
        observes fetches.
        """
        self._directories = directories
        self._repository = repository
        self._forgets = forgets
        self._probe = probe
        self._history = DamageHistory()

    def log_range(self, watermarks: tuple[int, int], committed: int) -> LogRange:
        """Return the range of a log for `open`, by its start and end."""
        return LogRange(*watermarks, committed, self._forgets)

    def damaged(self, shard: int, offset: int, why: str) -> None:
        """Note that a store that was opened here was found damaged at an offset.

        The caller puts it aside; `open` then finds out whether snapshots are to blame.
        """
        self._history.note(shard, offset, why)

    def open(
        self, shard: int, log: LogRange, progress: RestoreProgress, stop: Callable[[], bool]
    ) -> BandStore:
        """Open a shard's store so that the log can be read from the store's offset.

        A store that is damaged or doesn't fit the log is put aside. A store that is empty, or far
        behind a snapshot, is replaced by the newest good snapshot. Without a good snapshot, the
        store is rebuilt from the log: from its beginning or, if the log forgets, from its start.

        Raises:
            HeaderMismatch: the store was made with other parameters.
            Unrecoverable: what is needed is gone, or everything that is left was found damaged
                several times; the message says what to do.
            OSError: the disk or the snapshots can't be read or written.
            Interrupted: ``stop`` returned true.
        """
        circle = self._history.circle(shard)
        if circle is not None:
            raise Unrecoverable(
                f"shard {shard} makes no progress: {circle}. Check this machine's disk and"
                f" memory; 'neardup index verify' shows what is wrong with"
                f" {beside(self._directories.path(shard), 'aside')}. If nothing helps, run the"
                " worker on another machine"
            )
        with self._directories.taking_on(shard):
            return self._opened(_Attempt(shard, log, progress, stop))

    def _opened(self, attempt: _Attempt) -> BandStore:
        """Return the shard's store; see `open`."""
        shard, log = attempt.shard, attempt.log
        store = self._local(attempt)
        if self._repository is not None:
            store = self._from_snapshot(self._repository, attempt, store)
        if store is None:
            store = self._directories.open(shard, attempt.on_cells)
        if store.offset == 0:
            self._history.made_from(shard, None)
        if store.offset == 0 and log.beginning:
            self._begin(shard, store, log.beginning)
        if not log.reaches(store.offset):
            offset = store.offset
            store.close()
            url = self._repository.url if self._repository else None
            where = f"in {url}" if url else "(index.snapshots.url is not set)"
            raise Unrecoverable(
                f"shard {shard} must be rebuilt from offset {offset} of its log, which"
                f" begins at {log.low}, and there is no good snapshot {where}"
                f"{''.join('; ' + text for text in attempt.refused)}."
                " Move the shard's directory here from the worker that had it"
            )
        return store

    @staticmethod
    def _begin(shard: int, store: BandStore, offset: int) -> None:
        """Begin an empty store where the log does: nothing before that counts any more."""
        _log.warning(
            "shard %d: it is rebuilt from offset %d, where its log begins. Documents that only"
            " earlier frames tell of are forgotten (index.window)",
            shard,
            offset,
        )
        store.apply(None, offset=offset, documents=0, coverage=Coverage())

    def _local(self, attempt: _Attempt) -> BandStore | None:
        """Open the local store; return None if it had to be put aside."""
        shard = attempt.shard
        try:
            store = self._directories.open(shard, attempt.on_cells)
        except StoreDamaged as error:
            self._directories.put_aside(shard, str(error))
            self._history.suspect(shard)
            return None
        why = attempt.log.objection(store.offset)
        if why is None:
            return store
        store.close(flush=False)
        self._directories.put_aside(shard, why)
        return None

    def _from_snapshot(
        self, repository: Repository, attempt: _Attempt, store: BandStore | None
    ) -> BandStore | None:
        """Return the store of the newest good snapshot, or ``store`` if that is better."""
        if store is not None and store.offset >= attempt.log.committed:
            return store
        shard = attempt.shard
        snapshots = repository.shard(shard)
        try:
            aside = beside(self._directories.path(shard), "aside")
            self._history.examine(shard, aside, snapshots, attempt.on_checked)
            for manifest in self._candidates(snapshots, attempt):
                if store is not None and not _saves_time(manifest, store):
                    return store
                try:
                    with probing(self._probe, "fetch"):
                        self._fetch(snapshots, manifest, attempt)
                    former, store = store, None
                    with probing(self._probe, "exchange"):
                        return self._exchange(snapshots, manifest, former, attempt)
                except (SnapshotDamaged, StoreDamaged) as error:
                    _log.warning(
                        "shard %d: the snapshot at offset %d is damaged, trying an older one: %s",
                        shard,
                        manifest.offset,
                        error,
                    )
                    attempt.refused.append(f"at offset {manifest.offset}: {error}")
        except (Interrupted, HeaderMismatch):
            _release(store)
            raise
        except Exception as error:
            # Object store libraries have their own exceptions.
            if store is None or store.offset == 0:
                _release(store)
                raise OSError(f"{repository.url}: no snapshot can be read: {error}") from error
            _log.warning("shard %d: no snapshot can be read, replaying: %s", shard, error)
        return store

    def _candidates(self, snapshots: ShardSnapshots, attempt: _Attempt) -> list[Manifest]:
        """Return the usable snapshots that fit the index and the log, newest first."""
        header = self._directories.header(attempt.shard)
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
            why_not.setdefault(name, f"{', '.join(files)} missing or of the wrong size")
        for manifest in fitting:
            if manifest.name in why_not:
                attempt.refuse(f"at offset {manifest.offset}", why_not[manifest.name])
        return [manifest for manifest in fitting if manifest.name not in why_not]

    def _fetch(self, snapshots: ShardSnapshots, manifest: Manifest, attempt: _Attempt) -> None:
        """Fetch a snapshot beside the shard's directory; check its tables if nobody has yet."""
        shard, path = manifest.shard, self._directories.path(manifest.shard)
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
            raise OSError(f"{path}: {manifest.size_bytes} bytes are needed, {free} are free")
        fetching = beside(path, "fetching")
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
        snapshots: ShardSnapshots,
        manifest: Manifest,
        store: BandStore | None,
        attempt: _Attempt,
    ) -> BandStore:
        """Replace the local store by the fetched one, and open it."""
        path = self._directories.path(manifest.shard)
        if store is not None:
            behind = store.offset > 0
            store.close(flush=False)
            if behind:
                why = f"the snapshot at offset {manifest.offset} is far ahead of it"
                self._directories.put_aside(manifest.shard, why)
        shutil.rmtree(path, ignore_errors=True)
        beside(path, "fetching").rename(path)
        sync_directory(path.parent)
        try:
            restored = self._restored(path, manifest, attempt)
        except StoreDamaged as error:
            shutil.rmtree(path)
            # Each file is as it was shipped, so the snapshot was bad from the start.
            snapshots.distrust(manifest.name, str(error))
            raise
        self._history.made_from(manifest.shard, manifest)
        return restored

    def _restored(self, path: Path, manifest: Manifest, attempt: _Attempt) -> BandStore:
        try:
            restored = self._directories.open(manifest.shard, attempt.on_cells)
        except HeaderMismatch as error:
            raise StoreDamaged(f"{error}, unlike its manifest") from error
        except OSError as error:
            # RocksDB refuses it without finding a wrong checksum, or misses a file.
            if "IO error" in str(error) and "No such file" not in str(error):
                raise
            raise StoreDamaged(str(error)) from error
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
    """Check the tables of a snapshot that was shipped by a version that didn't check them.

    Raises:
        SnapshotDamaged: some are corrupt; they are marked so that nobody restores them again.
    """
    found = rotten(sorted(fetched.glob("*.sst")), on_bytes=on_bytes)
    for file in manifest.files:
        if file.name in found:
            snapshots.distrust(file.sha256, f"{file.name} is corrupt: {found[file.name]}")
    if found:
        raise SnapshotDamaged(f"{', '.join(sorted(found))} corrupt when shipped")


def _release(store: BandStore | None) -> None:
    if store is not None:
        store.close(flush=False)


def _saves_time(manifest: Manifest, store: BandStore) -> bool:
    """Return whether fetching a snapshot takes less time than replaying up to it."""
    if manifest.offset <= store.offset:
        return False
    if store.offset == 0:
        return True
    replay = (manifest.documents - store.documents) / _REPLAYED_A_SECOND
    return replay > manifest.size_bytes / _FETCHED_A_SECOND
