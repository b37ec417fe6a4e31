"""Takes snapshots of open shards and ships them without blocking the stage."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic, time

from worker.bus import BusError
from worker.index.directory import beside
from worker.index.errors import StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import Interrupted, Repository, ShardSnapshots, file_digest
from worker.index.snapshots.soundness import Verification, check_opening, rotten
from worker.index.store import BandStore
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.probe import UNWATCHED, Probe, probing

_log = logging.getLogger(__name__)

_FIRST_SECONDS = 60.0
"""A shard is shipped this soon after it was opened, in case its last owner could not ship it."""
_END_SECONDS = 5.0
_SWEEPS = 6
"""In the time within which what is forgotten must be gone, how often what belongs to no snapshot is
looked for. A shard that stands still ships nothing, so this doesn't wait for the next snapshot."""


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A consistent copy of a store, and the facts for its manifest."""

    store: BandStore
    shard: int
    path: Path
    offset: int
    documents: int
    taken: float = field(default_factory=time)


_Identity = tuple[int, int, int, int]
"""A file's device, inode, size, and modification time in ns."""


@dataclass(slots=True)
class _Schedule:
    """When a shard is due again, and what is known of its snapshots.

    Attributes:
        ship_at: when it is shipped next, if its offset has moved.
        sweep_at: when what belongs to no snapshot of it is deleted next.
        look_at: when its newest snapshot is looked up next.
        offset: where it was last shipped. A shard at offset 0 is empty, and never due.
        flushed: whether a flush has begun for the next checkpoint.
        damaged: a store that its last checkpoint showed to be damaged, and why.
        newest: its newest good snapshot.
    """

    ship_at: float
    sweep_at: float
    look_at: float
    offset: int = 0
    flushed: bool = False
    damaged: tuple[BandStore, StoreDamaged] | None = None
    newest: Manifest | None = None


class Shipper:
    """Snapshots of all shards of a worker.

    The stage's thread takes checkpoints. Another thread ships them one at a time, so that each
    shard has at most one in progress. A failure is logged and counted, and the next turn tries
    again. New files are checked before they are shipped, so that corruption doesn't spread.
    Shipped files are read back periodically, and shipped again if they are damaged.
    """

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        repository: Repository,
        header: Callable[[int], StoreHeader],
        *,
        shards: int,
        every_seconds: float,
        keep: int,
        verification: Verification,
        erasure_seconds: float = 86_400.0,
        trim: Callable[[int], None] | None = None,
        background: bool = True,
        metrics: Metrics | None = None,
        probe: Probe = UNWATCHED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Take the parts; ``trim`` deletes the log, which all ``shards`` read, before an offset."""
        self._repository = repository
        self._header = header
        self._shards = shards
        self._every = every_seconds
        self._keep = keep
        self._verification = verification
        self._sweep_seconds = erasure_seconds / _SWEEPS
        self._trim = trim
        self._background = background
        self._metrics = metrics or Metrics()
        self._probe = probe
        self._clock = clock
        self._schedules: dict[int, _Schedule] = {}
        self._shipping: set[int] = set()
        self._digests: dict[int, dict[_Identity, str]] = {}
        self._showing = threading.Lock()
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def ship_if_due(self, store: BandStore, shard: int) -> None:
        """Take a checkpoint if the shard is due and its offset has moved.

        Raises:
            StoreDamaged, OSError: see `BandStore`. StoreDamaged is also raised if the last
                checkpoint showed that this store is damaged.
        """
        now = self._clock()
        schedule = self._schedule(shard, now)
        damaged, schedule.damaged = schedule.damaged, None
        if damaged is not None and damaged[0] is store:
            raise damaged[1]
        if now < schedule.ship_at or shard in self._shipping:
            return
        if store.offset == schedule.offset:
            schedule.ship_at = now + self._every
        elif self._background and not schedule.flushed:
            # The stage waits for the checkpoint, which then has little left to flush.
            store.flush(wait=False)
            schedule.flushed = True
        elif not store.flushing:
            schedule.ship_at = now + self._every
            schedule.offset, schedule.flushed = store.offset, False
            self._begin(store, shard)

    def _schedule(self, shard: int, now: float) -> _Schedule:
        schedule = self._schedules.get(shard)
        if schedule is None:
            first = now + min(_FIRST_SECONDS, self._every)
            # The first snapshot, soon after the shard was opened, also sweeps.
            schedule = _Schedule(ship_at=first, sweep_at=now + self._sweep_seconds, look_at=now)
            self._schedules[shard] = schedule
        return schedule

    def sweep_if_due(self, shard: int) -> None:
        """Delete what belongs to no snapshot of a shard, if it is time to."""
        now = self._clock()
        schedule = self._schedule(shard, now)
        if now >= schedule.sweep_at:
            schedule.sweep_at = now + self._sweep_seconds
            why_not = "what belongs to no snapshot could not be deleted from"
            self._do(lambda: self._attempt(shard, ShardSnapshots.sweep, why_not))

    def look_if_due(self, shard: int) -> None:
        """Look up the newest good snapshot of a shard, whoever shipped it, if it is time to."""
        now = self._clock()
        schedule = self._schedule(shard, now)
        if now >= schedule.look_at:
            schedule.look_at = now + self._every
            why_not = "the newest snapshot could not be found in"
            self._do(lambda: self._attempt(shard, partial(self._look, shard), why_not))

    def _attempt(self, shard: int, work: Callable[[ShardSnapshots], None], why_not: str) -> None:
        """Do something with a shard's snapshots; log that it failed, and go on."""
        if self._ending.is_set():
            return
        try:
            work(self._repository.shard(shard))
        except Exception as error:  # noqa: BLE001 -- object store libraries have their own
            _log.warning("shard %d: %s %s: %s", shard, why_not, self._repository.url, error)

    def _look(self, shard: int, snapshots: ShardSnapshots) -> None:
        self._show(shard, snapshots.newest(self._header(shard)))

    def _show(self, shard: int, newest: Manifest | None) -> None:
        """Export the newest good snapshots of exactly the shards that are here."""
        with self._showing:  # The stage's thread forgets shards meanwhile.
            if shard in self._schedules:
                self._schedules[shard].newest = newest
            all_newest = ((number, of.newest) for number, of in list(self._schedules.items()))
            shown = {(str(number),): found for number, found in all_newest if found is not None}
            for gauge, values in (
                (table.SNAPSHOT_TIMESTAMP_SECONDS, {n: one.created for n, one in shown.items()}),
                (table.SNAPSHOT_OFFSET, {n: one.offset for n, one in shown.items()}),
                (table.SNAPSHOT_BYTES, {n: one.size_bytes for n, one in shown.items()}),
            ):
                self._metrics.show(gauge, values)

    def forget(self, shard: int) -> None:
        """Forget the schedule of a shard that is released."""
        self._schedules.pop(shard, None)
        self._show(shard, None)

    def ship_now(self, store: BandStore, shard: int) -> Manifest:
        """Ship a snapshot at once, and raise any error."""
        taken = _take(store, shard)
        try:
            manifest = self._publish(taken)
            self._trim_log()
            return manifest
        finally:
            shutil.rmtree(taken.path, ignore_errors=True)

    def _begin(self, store: BandStore, shard: int) -> None:
        taken = _take(store, shard)
        self._shipping.add(shard)
        self._do(lambda: self._ship(taken))

    def _do(self, work: Callable[[], None]) -> None:
        """Have the thread do some work, after all that came before."""
        if not self._background:
            work()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)
            self._thread.start()
        self._waiting.put(work)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            work()

    def _ship(self, taken: _Checkpoint) -> None:
        shard = taken.shard
        with probing(self._probe, "ship"):
            try:
                self._publish(taken)
                # After several in a row, once is enough: it considers all shards.
                if self._shipping <= {shard}:
                    self._trim_log()
            except Interrupted:
                _log.info(
                    "shard %d: the snapshot at offset %d was interrupted", shard, taken.offset
                )
            except Exception as error:  # noqa: BLE001 -- object store libraries have their own
                _log.warning(
                    "shard %d: the snapshot at offset %d was not shipped to %s: %s",
                    shard,
                    taken.offset,
                    self._repository.url,
                    error,
                )
                self._metrics.add(table.SNAPSHOTS, 1, "failed")
                schedule = self._schedules.get(shard)
                if schedule is not None and isinstance(error, StoreDamaged):
                    schedule.damaged = taken.store, error
                elif schedule is not None:
                    schedule.offset = 0  # due again, even if nothing has moved
            finally:
                shutil.rmtree(taken.path, ignore_errors=True)
                self._shipping.discard(shard)

    def _publish(self, taken: _Checkpoint) -> Manifest:
        """Ship a checkpoint, and retire old snapshots."""
        began = self._clock()
        header = self._header(taken.shard)
        snapshots = self._repository.shard(taken.shard)

        def make(files: list[FileEntry]) -> Manifest:
            return Manifest(
                shard=taken.shard,
                offset=taken.offset,
                documents=taken.documents,
                created=taken.taken,
                header=header,
                files=files,
                checked=True,
            )

        manifest = snapshots.publish(
            taken.path,
            make,
            digest=self._digest(taken.shard),
            check=lambda files: self._check(taken, snapshots, header, files),
            stop=self._ending.is_set,
        )
        seconds = self._clock() - began
        _log.info(
            "shard %d: snapshot at offset %d, %d documents, %d MB, in %.1f s",
            manifest.shard,
            manifest.offset,
            manifest.documents,
            manifest.size_bytes >> 20,
            seconds,
        )
        self._metrics.add(table.SNAPSHOTS, 1, "shipped")
        self._show(taken.shard, manifest)
        snapshots.retire(header, self._keep)
        return manifest

    def _check(
        self,
        taken: _Checkpoint,
        snapshots: ShardSnapshots,
        header: StoreHeader,
        files: list[FileEntry],
    ) -> None:
        """Read back shipped files if that is due, and check the files that will be shipped.

        Raises:
            StoreDamaged: a file is corrupt, and so is the store, which has the same files.
            Interrupted: the worker is stopping.
        """
        damage = self._verification.run_if_due(snapshots, header, files, stop=self._ending.is_set)
        self._metrics.add(table.SNAPSHOT_DAMAGED_FILES, len(damage.repairable), "yes")
        self._metrics.add(table.SNAPSHOT_DAMAGED_FILES, len(damage.lost), "no")
        tables = {file.sha256: file.name for file in files if file.name.endswith(".sst")}
        blamed = snapshots.distrusted_files(tables)
        if blamed:
            names = ", ".join(sorted(tables[digest] for digest in blamed))
            raise StoreDamaged(f"{taken.store.path}: {names} corrupt, as in an earlier snapshot")
        known = snapshots.checked()
        for file in snapshots.absent(files):
            # The cached digest may be old, from when the file was first shipped.
            if file.sha256 in known and file_digest(taken.path / file.name) != file.sha256:
                raise StoreDamaged(f"{taken.store.path}: {file.name} is not what it was")
        fresh = [taken.path / name for digest, name in tables.items() if digest not in known]
        found = rotten(sorted(fresh), on_bytes=self._check_ending)
        if found:
            why = "; ".join(f"{name}: {text}" for name, text in sorted(found.items()))
            raise StoreDamaged(f"{taken.store.path}: corrupt tables: {why}")
        check_opening(taken.path, taken.offset)

    def _check_ending(self, _size: int) -> None:
        if self._ending.is_set():
            raise Interrupted

    def _digest(self, shard: int) -> Callable[[Path], str]:
        """Return a function that hashes a table once: tables never change, and are hard links."""
        before = self._digests.get(shard, {})
        current = self._digests[shard] = {}

        def digest(path: Path) -> str:
            if path.suffix != ".sst":
                return file_digest(path)
            found = path.stat()
            key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            current[key] = before.get(key) or file_digest(path)
            return current[key]

        return digest

    def _trim_log(self) -> None:
        """Delete the log before the oldest kept snapshot of any shard, once all have enough."""
        if self._trim is None:
            return
        oldest = [
            self._repository.shard(shard).oldest(self._header(shard), self._keep)
            for shard in range(self._shards)
        ]
        offsets = [manifest.offset for manifest in oldest if manifest is not None]
        if len(offsets) < self._shards:
            return
        try:
            self._trim(min(offsets))
        except BusError as error:
            _log.warning("the log was not trimmed to %d: %s", min(offsets), error)

    def close(self) -> None:
        """End the thread within seconds; an unfinished snapshot has no manifest."""
        self._ending.set()
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_END_SECONDS)


def _take(store: BandStore, shard: int) -> _Checkpoint:
    path = beside(store.path, "checkpoint")
    shutil.rmtree(path, ignore_errors=True)
    store.checkpoint(path)
    return _Checkpoint(store, shard, path, store.offset, store.documents)
