"""The RocksDB of one index shard: buckets, documents' records, its offset, and a header.

The write-ahead log is off, because ``fingerprints`` serves as one. This is sound because
everything that is written in batches is in one column family, and every batch includes the offset
it reaches. The pages of runs are on disk before a batch names them; see `run_tables`.
Whatever a crash leaves on disk is a state that the shard really was in; the rest is replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

from rocksdict import Checkpoint, WriteBatch, WriteOptions

from lsh._core import Damaged, Decision, Opening, Plan, Writes
from lsh.index import BucketRules, DocumentBatch
from worker.corrections.state import Corrections
from worker.index.contents import Contents
from worker.index.errors import StoreDamaged
from worker.index.keyspace import (
    CORRECTIONS,
    COVERAGE,
    HEADER,
    PROGRESS,
    RUNS,
    Progress,
    StoreHeader,
    check_header,
    pack_header,
)
from worker.index.memory import StoreMemory
from worker.index.purge import Purge
from worker.index.rocksdb import (
    ReadingEnded,
    StoreOptions,
    check_mode,
    for_tables,
    opened,
    tuned,
    wait_for_room,
)
from worker.index.run_tables import RunTables, family_names
from worker.index.store_reader import StoreReader, read
from worker.probe import UNWATCHED, Probe, probing
from worker.stages.judge import Parts
from worker.stages.order import Coverage

_MOST_SPARE = 512 << 20
"""A store uses parts of so much, of what all leave, for what was read lately: to move more would
take too long."""

_log = logging.getLogger(__name__)

_TABLES = "rocksdb.estimate-table-readers-mem"
_BACKGROUND = (
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
)


class BandStore:
    """One shard's buckets and document records.

    Not thread-safe; `reader` is for other threads. ``offset`` is the next offset to read in
    ``fingerprints``; ``documents`` is how many were judged so far; ``coverage`` is which offsets of
    ``documents`` the applied frames have covered; ``corrections`` is what people have corrected.
    ``db``, ``tables``, ``shard`` and ``purge`` are its parts; only who checks a store reads them.

    Every method that reads or writes raises `StoreDamaged` if RocksDB finds other bytes
    than it wrote, and OSError if the disk is full or an operation fails. After either, RocksDB
    accepts no more writes; ``offset`` has moved only if its write was applied.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a store, and its probe
        self,
        path: Path,
        header: StoreHeader,
        *,
        memory: StoreMemory | None = None,
        options: StoreOptions | None = None,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], None] = sleep,
        on_cells: Callable[[int, int], None] = lambda _count, _total: None,
        probe: Probe = UNWATCHED,
    ) -> None:
        """Open or create the store.

        The filters of its runs are read. ``on_cells`` is called with how many cells they rule out
        and the total, run by run; an exception from it ends the opening.

        Raises:
            HeaderMismatch: it was made with other parameters; the message names them.
            StoreDamaged: files are missing, or differ from what was written.
            OSError: RocksDB can't open it (the message is RocksDB's own).
        """
        self.path = path
        # Not a method: in a cycle, the shard would stay in memory until garbage is collected.
        self._meaning = partial(_meaning, path)
        self._options = options or StoreOptions()
        self._memory = memory
        self._clock = clock
        self._sleep = sleep
        self._probe = probe
        self._judged: tuple[Decision, Plan] | None = None
        self._limits = 0, 0
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path / "CURRENT").exists() and any(path.glob("*.sst")):
            # RocksDB would treat it as a new store and delete the rest.
            raise StoreDamaged(f"{path}: the file CURRENT is missing")
        check_mode(path)
        of_runs = for_tables()
        try:
            names = family_names(path)
            self.db = opened(path, tuned(self._options, memory), names, of_runs)
        except Exception as error:
            raise self._meaning(error) from error
        self.tables = RunTables(self.db, path, names, of_runs, self._meaning)
        self._write_options = WriteOptions()
        # rocksdict's stub declares this property as a method.
        setattr(self._write_options, "disable_wal", True)  # noqa: B010 -- for the type checker
        self.db.set_write_options(self._write_options)
        self.unflushed = 0
        self.stalled_seconds = 0.0
        self._flushed_at = clock()
        self._table_bytes = self._property(_TABLES)
        try:
            self._check(header)
            progress, self.coverage, self.corrections = self._reached()
            self.offset, self.documents = progress.offset, progress.documents
            self._read(progress, on_cells)
        except BaseException:
            self.tables.close()
            self.db.close()
            raise
        self._hold()

    def _check(self, header: StoreHeader) -> None:
        stored, progress = self._get([HEADER, PROGRESS])
        if stored is not None and progress is not None:
            check_header(stored, header, self.path)
            return
        if progress is not None:
            raise StoreDamaged(f"{self.path}: data, but no header")
        # Without progress it is empty, and the settings may have changed since it was made.
        first = WriteBatch(raw_mode=True)
        first.put(HEADER, pack_header(header))
        self.db.write(first, write_opt=self._write_options)
        self.db.flush()

    def _reached(self) -> tuple[Progress, Coverage, Corrections]:
        stored, tiles, corrections = self._get([PROGRESS, COVERAGE, CORRECTIONS])
        try:
            progress = Progress.unpack(stored)
            coverage = Coverage.decode(tiles, progress.offset)
            return progress, coverage, Corrections.unpacked(corrections)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def _read(self, progress: Progress, on_cells: Callable[[int, int], None]) -> None:
        """Read what stays in memory."""
        options = self._options
        try:
            opening = Opening(
                run_documents=options.run_documents,
                window_ms=options.window_ms,
                inserted=progress.inserted,
                clock=progress.clock,
            )
            opening.give(self._get(opening.keys()))
            self.tables.begin(*opening.tables())
            self.shard = read(opening, self.db, on_cells)
            self.purge = Purge(self.db, options.erasure_seconds, self._clock)
        except (ReadingEnded, ValueError) as error:
            raise StoreDamaged(f"{self.path}: {error}") from error
        except Exception as error:
            if type(error) is not Exception:  # from ``on_cells``: rocksdict's are bare
                raise
            raise self._meaning(error) from error

    @property
    def inserted(self) -> int:
        """Return how many documents were inserted so far: the number that the next one gets."""
        return self.shard.inserted

    @property
    def clock(self) -> bytes:
        """Return what the documents so far say about the time, as the core stores it."""
        return self.shard.clock

    @property
    def now(self) -> int | None:
        """Return the index's time, in ms; None until there is one."""
        return self.shard.now

    def _get(self, keys: list[bytes]) -> list[bytes | None]:
        if not keys:  # RocksDB would have this thread wait for Python again.
            return []
        try:
            return cast("list[bytes | None]", self.db.get(cast("Any", keys)))
        except Exception as error:
            raise self._meaning(error) from error

    def reader(self) -> StoreReader:
        """Return a reader for another thread. `apply` must not run while it is used."""
        return StoreReader(self.path, self.shard, self.tables)

    def decide(self, batch: DocumentBatch, rules: BucketRules) -> Decision:
        """Judge a batch of documents against this store."""
        try:
            plan = self.shard.plan(batch, rules)
            self.tables.look_up(plan)
            decision = plan.judge()
        except Damaged as error:
            raise StoreDamaged(f"{self.path}: {error}") from error
        self._judged = decision, plan
        return decision

    def apply(  # noqa: PLR0913 -- what is applied together
        self,
        decision: Decision | None,
        *,
        offset: int,
        documents: int,
        coverage: Coverage | None = None,
        corrections: Corrections | None = None,
        readers: AbstractContextManager[None] | None = None,
    ) -> None:
        """Apply a decision and the offset that it reaches, atomically; None: only the offset.

        The decision must be the last one made on this store. Without ``coverage`` or
        ``corrections``, those of the store don't change. ``readers`` keeps those out who read
        beside this thread, while what they see changes.
        """
        total = self.documents + documents
        covered = self.coverage if coverage is None else coverage
        if self.tables.left and not self.flushing:
            self.tables.drop()
        with probing(self._probe, "write"):
            batch = WriteBatch(raw_mode=True)
            inserted, clock, plan = self.inserted, self.shard.clock, None
            if decision is not None:
                plan, writes = self._written(decision)
                inserted, clock = writes.inserted, writes.clock
                self._put(batch, writes)
            batch.put(COVERAGE, covered.encode(offset))
            if corrections is not None:
                batch.put(CORRECTIONS, corrections.packed())
            batch.put(PROGRESS, Progress(offset, total, inserted, clock).pack())
            self.stalled_seconds += wait_for_room(self.db, self.path, self._clock, self._sleep)
            with nullcontext() if readers is None else readers:
                try:
                    self.db.write(batch, write_opt=self._write_options)
                except Exception as error:
                    raise self._meaning(error) from error
                if plan is not None:
                    self.shard.apply(plan)
                self.offset = offset
            self.documents = total
            self.coverage = covered
            if corrections is not None:
                self.corrections = corrections
            self.unflushed += documents
            self.flush_if_due()
            self._hold()

    def _written(self, decision: Decision) -> tuple[Plan, Writes]:
        """Return the plan of a decision, and what it writes."""
        judged, self._judged = self._judged, None
        if judged is None or judged[0] is not decision:
            raise ValueError("not the last decision that was made on this store")
        _, plan = judged
        if decision.inserted > self.shard.room:
            raise OSError(f"{self.path}: it is full: it has {self.documents_kept()} documents")
        try:
            self.tables.look_up(plan)
            return plan, plan.writes()
        except Damaged as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def _put(self, batch: WriteBatch, writes: Writes) -> None:
        """Write the tables, and put all else into a batch."""
        for run, pages, finished, last in writes.tables:
            self.tables.put(run, pages)
            if finished:
                self.tables.finish(run, last=last)
        for low, high in writes.ranges:
            batch.delete_range(low, high)
        for key in writes.deletes:
            batch.delete(key)
        for key, value in writes.puts:
            batch.put(key, value)
        self.purge.note(batch, writes.erased)
        for run in writes.replaced:
            self.tables.leave(run)

    def flush_if_due(self) -> None:
        """Start a flush if enough documents, or seconds, are unflushed."""
        if not self.unflushed:
            self._flushed_at = self._clock()
            return
        waited = self._clock() - self._flushed_at
        if self.unflushed >= self._options.flush_documents or waited >= self._options.flush_seconds:
            self.flush(wait=False)

    def purge_if_due(self) -> None:
        """Remove from the files what was forgotten, a range at a time, if it is time to.

        Waits for a flush, and for files of a few tens of MB to be written.
        """
        if not self.purge.due:
            return
        self.flush()
        try:
            writes = self.purge.step()
            self.db.write(writes, write_opt=self._write_options)
        except Exception as error:
            raise self._meaning(error) from error

    def flush(self, *, wait: bool = True) -> None:
        """Flush memory to disk. Without ``wait``, a failure is raised by the next write."""
        with probing(self._probe, "flush"):
            try:
                self.db.flush(wait)
            except Exception as error:
                raise self._meaning(error) from error
            self.tables.flushing()
            self.unflushed = 0
            self._flushed_at = self._clock()
            self._table_bytes = self._property(_TABLES)
            self._hold()

    @property
    def flushing(self) -> bool:
        """Return whether a flush is running in the background."""
        return bool(self.db.property_int_value("rocksdb.num-immutable-mem-table"))

    @property
    def writing(self) -> bool:
        """Return whether a flush or a compaction is due or running in the background."""
        return any(map(self.db.property_int_value, _BACKGROUND))

    def checkpoint(self, path: Path) -> None:
        """Make a copy of the store at this offset, at a path that doesn't exist yet.

        Flushes first. The tables never change, so on the same file system they are hard links.
        """
        with probing(self._probe, "checkpoint"):
            # A checkpoint flushes, too, but rocksdict holds the GIL during it.
            self.flush()
            self.tables.drop_all()
            try:
                Checkpoint(self.db).create_checkpoint(str(path))
            except Exception as error:
                raise self._meaning(error) from error

    def size_bytes(self) -> int:
        """Return the estimated size on disk."""
        return self._property("rocksdb.total-sst-files-size")

    def pending_compaction_bytes(self) -> int:
        """Return how much RocksDB still has to rewrite, in bytes, as it estimates."""
        return self._property("rocksdb.estimate-pending-compaction-bytes")

    def memory_bytes(self) -> int:
        """Return the memory of write buffers, tables and runs, without the shared block cache."""
        return self._property("rocksdb.cur-size-all-mem-tables") + self.held_bytes()

    def held_bytes(self) -> int:
        """Return what it keeps in memory: newest cells, filters, indexes, what was read lately.

        The indexes are those of RocksDB's tables when it was last flushed.
        """
        sizes = self.shard.sizes()
        held = sizes["open_bytes"] + sizes["filter_bytes"]
        return held + sizes["record_bytes"] + sizes["bucket_bytes"] + self._table_bytes

    def _property(self, name: str) -> int:
        return int(self.db.property_int_value(name) or 0) + self.tables.sum(name)

    def _hold(self) -> None:
        """Have what was read lately take what memory there is, and tell what is taken."""
        buffer, spare = self._options.write_buffer_bytes, 0
        if self._memory is not None:
            self._memory.hold(self.path, self.held_bytes())
            spare = min(self._memory.spare, _MOST_SPARE)
        # A flood of variants of many texts asks for a hundred MB and more, again and again.
        records, buckets = buffer // 2 + spare * 3 // 8, buffer // 8 + spare * 3 // 32
        if (records, buckets) != self._limits:
            self.shard.limit(records, buckets)
            self._limits = records, buckets

    def keys_estimate(self) -> int:
        """Return the number of cells and records."""
        sizes = self.shard.sizes()
        postings = sum(postings for _, postings in sizes["tiers"].values())
        return sizes["documents"] + sizes["open_cells"] + postings

    def documents_kept(self) -> int:
        """Return how many documents have records, forgotten ones included."""
        return self.shard.sizes()["documents"]

    def parts(self) -> Parts:
        """Return how many documents, time slices, runs and postings it has."""
        sizes = self.shard.sizes()
        runs, postings = {"memtable": 1}, {"memtable": sizes["open_cells"]}
        for level, (count, own) in sizes["tiers"].items():
            runs[str(level)], postings[str(level)] = count, own
        return Parts(sizes["documents"], sizes["eras"], runs, postings)

    def oldest_seconds(self) -> float | None:
        """Return how long ago its oldest era began, in its own time; None if it has nothing."""
        sizes, now = self.shard.sizes(), self.now
        since = sizes["oldest_since"]
        if not sizes["documents"] or now is None or since is None:
            return None
        return (now - since) / 1_000

    def expired_eras(self) -> int:
        """Return how many eras it has given back since it was made."""
        return self.shard.sizes()["expired_eras"]

    def contents(self) -> Contents:
        """Return a reader of everything in the store, for tests and checks."""
        return Contents(self.db, self.tables, self._get([RUNS])[0], self.inserted)

    def close(self, *, flush: bool = True) -> None:
        """Close the store.

        Without ``flush``, a failure of the final flush is only logged: the log that the store is
        made from still has the data.
        """
        with probing(self._probe, "close"):
            self.tables.close()
            try:
                self.db.close()  # flushes by itself
            except Exception as error:
                if flush:
                    raise self._meaning(error) from error
                _log.info("closed %s: %s", self.path, error)
            finally:
                if self._memory is not None:
                    self._memory.release(self.path)
            self._probe.closed(self)


def _meaning(path: Path, error: Exception) -> Exception:
    """Return our error for rocksdict's, which are bare exceptions with RocksDB's text."""
    text = f"{path}: {error}"
    return StoreDamaged(text) if "Corruption" in text else OSError(text)
