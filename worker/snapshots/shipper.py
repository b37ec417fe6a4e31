"""Takes snapshots of open shards, and ships them without holding up the stage."""

from __future__ import annotations

import logging
import queue
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, time

from worker.bus import BusError
from worker.probe import UNWATCHED, Probe, probing
from worker.snapshots.manifest import FileEntry, Manifest
from worker.snapshots.repository import Interrupted, Repository, ShardSnapshots, file_digest
from worker.snapshots.soundness import check_opening, rotten
from worker.snapshots.verification import Damage, Verification
from worker.store import BandStore, Header, StoreDamaged

__all__ = ["Shipper", "ShipperEvents"]

_log = logging.getLogger(__name__)

_FIRST_SECONDS = 60.0
"""A shard is shipped this soon after it was taken on, in case its last owner could not."""
_END_SECONDS = 5.0


class ShipperEvents:
    """What metrics want to know of snapshots; each method may be overridden."""

    def shipped(self, manifest: Manifest, seconds: float) -> None:
        """A snapshot is complete, ``seconds`` after its checkpoint."""

    def failed(self, shard: int) -> None:
        """A snapshot could not be shipped."""

    def damaged(self, shard: int, damage: Damage) -> None:
        """Files of earlier snapshots were found damaged, or gone."""


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A consistent copy of a store, and what its manifest says of it."""

    store: BandStore
    shard: int
    path: Path
    offset: int
    now: int
    documents: int
    taken: float = field(default_factory=time)


_Identity = tuple[int, int, int, int]
"""Of a file: device, inode, size, time of its last change in ns."""


@dataclass(slots=True)
class _Turn:
    """When a shard is due again, and what it was shipped at; an empty one never is."""

    due: float
    offset: int = 0
    flushed: bool = False


class Shipper:
    """Snapshots of all shards of a worker.

    The stage's thread takes checkpoints; one thread ships them, one at a time, so that a
    shard has at most one under way. A failure is a warning and a metric: the next turn
    tries again. What was never shipped is read and checked first: rot is not passed on. What
    was shipped is read back now and then, and shipped again if it is damaged.
    """

    def __init__(  # noqa: PLR0913 -- the composition root's business
        self,
        repository: Repository,
        header: Callable[[int], Header],
        *,
        shards: int,
        every_seconds: float,
        keep: int,
        verification: Verification,
        trim: Callable[[int], None] | None = None,
        background: bool = True,
        events: ShipperEvents | None = None,
        probe: Probe = UNWATCHED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare; ``trim`` deletes the log, which all ``shards`` read, before an offset."""
        self._repository = repository
        self._header = header
        self._shards = shards
        self._every = every_seconds
        self._keep = keep
        self._verification = verification
        self._trim = trim
        self._background = background
        self._events = events or ShipperEvents()
        self._probe = probe
        self._clock = clock
        self._turns: dict[int, _Turn] = {}
        self._shipping: set[int] = set()
        self._digests: dict[int, dict[_Identity, str]] = {}
        self._damaged: dict[int, tuple[BandStore, StoreDamaged]] = {}
        self._waiting: queue.SimpleQueue[_Checkpoint | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def ship_if_due(self, store: BandStore, shard: int) -> None:
        """Take a checkpoint if it is this shard's turn, and its offset has moved.

        Raises:
            StoreDamaged, OSError: see `BandStore`; the first also if the last checkpoint has
                shown that this store is damaged.
        """
        damaged, error = self._damaged.pop(shard, (None, None))
        if error is not None and damaged is store:
            raise error
        now = self._clock()
        turn = self._turns.setdefault(shard, _Turn(now + min(_FIRST_SECONDS, self._every)))
        if now < turn.due or shard in self._shipping:
            return
        if store.offset == turn.offset:
            turn.due = now + self._every
        elif self._background and not turn.flushed:
            # So that little is left to be flushed with the checkpoint, for which the stage waits.
            store.flush(wait=False)
            turn.flushed = True
        elif not store.flushing:
            turn.due, turn.offset, turn.flushed = now + self._every, store.offset, False
            self._begin(store, shard)

    def forget(self, shard: int) -> None:
        """Forget when a shard that is given up was due."""
        self._turns.pop(shard, None)
        self._damaged.pop(shard, None)

    def ship_now(self, store: BandStore, shard: int) -> Manifest:
        """Ship a snapshot at once; what fails is raised."""
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
        if not self._background:
            self._ship(taken)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)
            self._thread.start()
        self._waiting.put(taken)

    def _run(self) -> None:
        while (taken := self._waiting.get()) is not None:
            self._ship(taken)

    def _ship(self, taken: _Checkpoint) -> None:
        shard = taken.shard
        with probing(self._probe, "ship"):
            try:
                self._publish(taken)
                # Of several in a row the last one will do: it takes a look at all shards.
                if self._waiting.empty():
                    self._trim_log()
            except Interrupted:
                _log.info(
                    "shard %d: the snapshot at offset %d is left unfinished", shard, taken.offset
                )
            except Exception as error:  # noqa: BLE001 -- an object store's library has its own
                _log.warning(
                    "shard %d: the snapshot at offset %d was not shipped to %s: %s",
                    shard,
                    taken.offset,
                    self._repository.url,
                    error,
                )
                self._events.failed(shard)
                if isinstance(error, StoreDamaged):
                    self._damaged[shard] = taken.store, error
                elif shard in self._turns:
                    self._turns[shard].offset = 0  # due again, even if nothing has moved
            finally:
                shutil.rmtree(taken.path, ignore_errors=True)
                self._shipping.discard(shard)

    def _publish(self, taken: _Checkpoint) -> Manifest:
        """Ship a checkpoint, and retire what is old."""
        began = self._clock()
        header = self._header(taken.shard)
        snapshots = self._repository.shard(taken.shard)

        def make(files: list[FileEntry]) -> Manifest:
            return Manifest(
                shard=taken.shard,
                offset=taken.offset,
                now=taken.now,
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
        self._events.shipped(manifest, seconds)
        snapshots.retire(header, self._keep)
        return manifest

    def _check(
        self,
        taken: _Checkpoint,
        snapshots: ShardSnapshots,
        header: Header,
        files: list[FileEntry],
    ) -> None:
        """Read back what lies there, if that is due, and see that what will be shipped is sound.

        Raises:
            StoreDamaged: it isn't, and so its store, which has the same files, is damaged.
            Interrupted: the worker ends.
        """
        damage = self._verification.run_if_due(snapshots, header, files, stop=self._ending.is_set)
        if damage.repairable or damage.lost:
            self._events.damaged(taken.shard, damage)
        tables = {file.sha256: file.name for file in files if file.name.endswith(".sst")}
        blamed = snapshots.distrusted_files(tables)
        if blamed:
            names = ", ".join(sorted(tables[digest] for digest in blamed))
            raise StoreDamaged(f"{taken.store.path}: {names} rotten, as in a snapshot before")
        known = snapshots.checked()
        for file in snapshots.absent(files):
            # Its digest may be of long ago, when it was shipped for the first time.
            if file.sha256 in known and file_digest(taken.path / file.name) != file.sha256:
                raise StoreDamaged(f"{taken.store.path}: {file.name} is not what it was")
        fresh = [taken.path / name for digest, name in tables.items() if digest not in known]
        found = rotten(sorted(fresh), on_bytes=self._go_on)
        if found:
            why = "; ".join(f"{name}: {text}" for name, text in sorted(found.items()))
            raise StoreDamaged(f"{taken.store.path}: rotten tables: {why}")
        check_opening(taken.path, taken.offset)

    def _go_on(self, _size: int) -> None:
        if self._ending.is_set():
            raise Interrupted

    def _digest(self, shard: int) -> Callable[[Path], str]:
        """Hash a table once: it never changes, and a checkpoint's is a link to the store's."""
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
        """Delete what all snapshots of all shards have that are kept, once there are as many."""
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
        """Let what is under way end, within seconds; what is unfinished is none."""
        self._ending.set()
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_END_SECONDS)


def _take(store: BandStore, shard: int) -> _Checkpoint:
    path = store.path.with_name(f"{store.path.name}.checkpoint")
    shutil.rmtree(path, ignore_errors=True)
    store.checkpoint(path)
    return _Checkpoint(store, shard, path, store.offset, store.now, store.documents)
