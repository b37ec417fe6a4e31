"""The RocksDB of one index shard: buckets, documents' records, its offset, and a header.

The write-ahead log is off, because ``fingerprints`` serves as one. This is sound because
everything that is written in batches is in one column family, and every batch includes the offset
it reaches. The pages of merged runs are on disk before a batch names them; see `run_tables`.
Whatever a crash leaves on disk is a state that the shard really was in; the rest is replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from rocksdict import Checkpoint, WriteBatch, WriteOptions

from lsh.index import BucketKeys, BucketRules, Decision, DocumentBatch, RecordMissing, decide
from lsh.index.buckets import Buckets
from lsh.index.layout import MOST_DOCUMENTS, Renewals, pack_renewals, unpack_renewals
from lsh.index.records import Records
from lsh.index.verdicts import Verdict, pack_verdict, unpack_verdict
from worker.index.contents import Contents
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.header import StoreHeader, check_header, pack_header
from worker.index.identities import Identities
from worker.index.keyspace import (
    COVERAGE,
    HEADER,
    PROGRESS,
    RENEWALS,
    VERDICTS,
    Progress,
    Range,
    number_key,
)
from worker.index.memory import StoreMemory
from worker.index.purge import Purge
from worker.index.reading import BucketReading
from worker.index.recent_buckets import RecentBuckets
from worker.index.recent_records import RecentPages, RecentRecords
from worker.index.record_pages import RecordPages
from worker.index.rocksdb import (
    StoreOptions,
    check_mode,
    for_tables,
    opened,
    tuned,
    wait_for_room,
)
from worker.index.run_lookup import RunLookup
from worker.index.run_tables import RunTables, family_names
from worker.index.runs import Prepared, Runs
from worker.index.spans import ReadingEnded
from worker.index.store_reader import StoreReader
from worker.probe import UNWATCHED, Probe, probing
from worker.stages.coverage import Coverage
from worker.stages.ownership import NoReaders, Parts, Readers

__all__ = ["BandStore", "HeaderMismatch", "StoreDamaged", "StoreHeader", "StoreOptions"]

T = TypeVar("T")

_NEWEST_PART = 16
"""The pages of records that were written lately may take the size of a write buffer, divided by
this. See `BandStore._hold` for what was read lately."""

_MOST_SPARE = 512 << 20
"""A store uses parts of so much, of what all leave, for what was read lately: to move more would
take too long."""

_NOBODY_READS = NoReaders()

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

    Not thread-safe. ``offset`` is the next offset to read in ``fingerprints``; ``documents`` is how
    many were judged so far; ``clock`` is what they say about the time; ``coverage`` is which
    offsets of ``documents`` the applied frames have covered.

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
        self._options = options or StoreOptions()
        self._memory = memory
        self._clock = clock
        self._sleep = sleep
        self._probe = probe
        self.give_way: Callable[[], None] = lambda: None
        """Called before whatever is read for a decision: threads that also need Python go first."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path / "CURRENT").exists() and any(path.glob("*.sst")):
            # RocksDB would treat it as a new store and delete the rest.
            raise StoreDamaged(f"{path}: the file CURRENT is missing")
        check_mode(path)
        of_runs = for_tables()
        try:
            names = family_names(path)
            self._db = opened(path, tuned(self._options, memory), names, of_runs)
        except Exception as error:
            raise self._meaning(error) from error
        self._tables = RunTables(self._db, path, names, of_runs, self._meaning)
        self._write_options = WriteOptions()
        # rocksdict's stub declares this property as a method.
        setattr(self._write_options, "disable_wal", True)  # noqa: B010 -- for the type checker
        self._db.set_write_options(self._write_options)
        self.unflushed = 0
        self._flushed_at = clock()
        self._table_bytes = self._property(_TABLES)
        try:
            self._check(header)
            progress, self.coverage = self._reached()
            self.offset, self.documents, inserted, self.clock = progress
            self._read(inserted, on_cells)
        except BaseException:
            self._tables.close()
            self._db.close()
            raise
        self._hold()

    def _meaning(self, error: Exception) -> Exception:
        """Return our error for rocksdict's, which are bare exceptions with RocksDB's text."""
        text = f"{self.path}: {error}"
        return StoreDamaged(text) if "Corruption" in text else OSError(text)

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
        self._db.write(first, write_opt=self._write_options)
        self._db.flush()

    def _reached(self) -> tuple[Progress, Coverage]:
        try:
            progress = Progress.unpack(self._get([PROGRESS])[0])
            return progress, Coverage.decode(self._get([COVERAGE])[0], progress.offset)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def _read(self, inserted: int, on_cells: Callable[[int, int], None]) -> None:
        """Read what stays in memory."""
        try:
            buffer = self._options.write_buffer_bytes
            recent, self._grown = RecentRecords(), RecentBuckets()
            newest = RecentPages(buffer // _NEWEST_PART)
            self._records = RecordPages(self._get, inserted, recent, newest)
            size = self._options.run_documents
            self._cells = RunLookup(self._db, self._get, self._tables, size, on_cells)
            window = self._options.window_ms
            self._runs = Runs(self._db, self._tables, self._cells, self._grown, inserted, window)
            self._buckets = BucketReading(self._cells, self._get, self._grown)
            self._identities = Identities(self._cells, self._records, self._get)
            self._purge = Purge(self._db, self._options.erasure_seconds, self._clock)
        except (ReadingEnded, ValueError) as error:
            raise StoreDamaged(f"{self.path}: {error}") from error
        except Exception as error:
            if type(error) is not Exception:  # from ``on_cells``: rocksdict's are bare
                raise
            raise self._meaning(error) from error

    @property
    def inserted(self) -> int:
        """Return how many documents were inserted so far: the number that the next one gets."""
        return self._records.inserted

    @property
    def moved_below(self) -> int:
        """Return the first document of the current era; see `BucketReader`."""
        return self._cells.list.eras.current.first

    @property
    def all_kept(self) -> bool:
        """Return whether no document was ever forgotten; see `BucketReader`."""
        return self._records.all_kept

    def buckets(self, keys: BucketKeys) -> Buckets:
        """Return the buckets that exist, by the places of their keys; see `BucketReader`."""
        self.give_way()
        try:
            return self._buckets.read(keys, self.inserted)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def may_exist(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets may exist; see `BucketReader`."""
        self.give_way()
        return self._buckets.may_exist(keys)

    def sole(self, keys: BucketKeys) -> npt.NDArray[np.bool_]:
        """Return which buckets have had one document only; see `BucketReader`."""
        self.give_way()
        return self._buckets.sole(keys)

    def records(self, numbers: Sequence[int]) -> list[bytes | None]:
        """Return the records of documents by ascending numbers; None where there is none."""
        self.give_way()
        try:
            return self._records.read(numbers)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def recorded(self, numbers: npt.NDArray[np.int64], slots: int) -> Records:
        """Return the records of documents in arrays; see `BucketReader`."""
        self.give_way()
        try:
            return self._records.recorded(numbers, slots)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def identified(self, ids: Iterable[bytes]) -> dict[bytes, list[int]]:
        """Return the documents that have these ids and were not forgotten; see `BucketReader`."""
        self.give_way()
        try:
            return self._identities.numbers(ids)
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def verdicts(self, numbers: Sequence[int]) -> dict[int, Verdict]:
        """Return the verdicts of those documents that have one; see `BucketReader`."""
        return self._stored(VERDICTS, numbers, unpack_verdict)

    def renewals(self, numbers: Sequence[int]) -> dict[int, Renewals]:
        """Return the renewals of those documents that have any; see `BucketReader`."""
        return self._stored(RENEWALS, numbers, unpack_renewals)

    def _stored(
        self, kind: Range, numbers: Sequence[int], unpack: Callable[[bytes], T]
    ) -> dict[int, T]:
        """Return what is stored of documents, by number, where there is something."""
        packed = self._get([number_key(kind, number) for number in numbers])
        try:
            return {
                number: unpack(value)
                for number, value in zip(numbers, packed, strict=True)
                if value is not None
            }
        except ValueError as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def _get(self, keys: list[bytes]) -> list[bytes | None]:
        if not keys:  # RocksDB would have this thread wait for Python again.
            return []
        try:
            return cast("list[bytes | None]", self._db.get(cast("Any", keys)))
        except Exception as error:
            raise self._meaning(error) from error

    def reader(self) -> StoreReader:
        """Return a reader for another thread. `apply` must not run while it is used."""
        parts = self._cells, self._records, self._get, self._grown
        return StoreReader(self.path, *parts, self.clock)

    def decide(self, batch: DocumentBatch, rules: BucketRules) -> Decision:
        """Judge a batch of documents against this store; see `lsh.index.decide`."""
        try:
            return decide(self, batch, rules)
        except RecordMissing as error:
            raise StoreDamaged(f"{self.path}: {error}") from error

    def apply(
        self,
        decision: Decision,
        *,
        offset: int,
        documents: int,
        coverage: Coverage | None = None,
        readers: Readers = _NOBODY_READS,
    ) -> None:
        """Apply a decision and the offset that it reaches, atomically.

        The decision must be the last one made on this store. Without ``coverage``, the store's
        coverage doesn't change. While what ``readers`` see changes, they are kept out; maybe twice.
        """
        total = self.documents + documents
        covered = self.coverage if coverage is None else coverage
        if self._tables.left and not self.flushing:
            self._tables.drop()
        with probing(self._probe, "write"):
            writes = WriteBatch(raw_mode=True)
            prepared = self._prepare(writes, decision, readers)
            wait_for_room(self._db, self.path, self._clock, self._sleep)
            readers.give_way()
            with readers:
                self._change(writes, decision, prepared)
                writes.put(COVERAGE, covered.encode(offset))
                clock = decision.dates.clock
                writes.put(PROGRESS, Progress(offset, total, self.inserted, clock).pack())
                try:
                    self._db.write(writes, write_opt=self._write_options)
                except Exception as error:
                    raise self._meaning(error) from error
                self.offset = offset
                self.clock = clock
            self.documents = total
            self.coverage = covered
            self.unflushed += documents
            self.flush_if_due()
            self._hold()

    def _prepare(self, writes: WriteBatch, decision: Decision, readers: Readers) -> Prepared | None:
        """Put into a write what readers needn't wait for."""
        kept = self.inserted - self._cells.list.eras.first
        if kept + len(decision.records) > MOST_DOCUMENTS:
            raise OSError(f"{self.path}: it is full: it has {kept} documents")
        if not self._cells.list.columns:
            with readers:
                self._runs.begin(decision.columns)
        self._identities.forget(decision.forgotten)
        standing = self._buckets.standing
        give_way = readers.give_way
        return self._runs.prepare(writes, decision, standing, self._identities, give_way)

    def _change(self, writes: WriteBatch, decision: Decision, prepared: Prepared | None) -> None:
        """Put the rest of a decision into a write; what is in memory is up to date with it."""
        self._purge.note(writes, self._records.forget(writes, decision.forgotten))
        for number in decision.forgotten:
            writes.delete(number_key(RENEWALS, number))
            writes.delete(number_key(VERDICTS, number))
        for number, renewals in decision.renewals.items():
            writes.put(number_key(RENEWALS, number), pack_renewals(renewals))
        for number, verdict in decision.verdicts.items():
            writes.put(number_key(VERDICTS, number), pack_verdict(verdict))
        self._runs.add(writes, decision, prepared)
        self._buckets.forget_standing()
        self._records.add(writes, decision.records)

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
        if not self._purge.due:
            return
        self.flush()
        try:
            writes = self._purge.step()
            self._db.write(writes, write_opt=self._write_options)
        except Exception as error:
            raise self._meaning(error) from error

    def flush(self, *, wait: bool = True) -> None:
        """Flush memory to disk. Without ``wait``, a failure is raised by the next write."""
        with probing(self._probe, "flush"):
            try:
                self._db.flush(wait)
            except Exception as error:
                raise self._meaning(error) from error
            self._tables.flushing()
            self.unflushed = 0
            self._flushed_at = self._clock()
            self._table_bytes = self._property(_TABLES)
            self._hold()

    @property
    def flushing(self) -> bool:
        """Return whether a flush is running in the background."""
        return bool(self._db.property_int_value("rocksdb.num-immutable-mem-table"))

    @property
    def writing(self) -> bool:
        """Return whether a flush or a compaction is due or running in the background."""
        return any(map(self._db.property_int_value, _BACKGROUND))

    def checkpoint(self, path: Path) -> None:
        """Make a copy of the store at this offset, at a path that doesn't exist yet.

        Flushes first. The tables never change, so on the same file system they are hard links.
        """
        with probing(self._probe, "checkpoint"):
            # A checkpoint flushes, too, but rocksdict holds the GIL during it.
            self.flush()
            self._tables.drop_all()
            try:
                Checkpoint(self._db).create_checkpoint(str(path))
            except Exception as error:
                raise self._meaning(error) from error

    def size_bytes(self) -> int:
        """Return the estimated size on disk."""
        return self._property("rocksdb.total-sst-files-size")

    def memory_bytes(self) -> int:
        """Return the memory of write buffers, tables and runs, without the shared block cache."""
        return self._property("rocksdb.cur-size-all-mem-tables") + self.held_bytes()

    def held_bytes(self) -> int:
        """Return what it keeps in memory: newest cells, filters, indexes, what was read lately.

        The indexes are those of RocksDB's tables when it was last flushed.
        """
        recent = self._records.recent_bytes + self._grown.size_bytes
        return self._cells.size_bytes + self._runs.merging_bytes + self._table_bytes + recent

    def _property(self, name: str) -> int:
        return int(self._db.property_int_value(name) or 0) + self._tables.sum(name)

    def _hold(self) -> None:
        """Have what was read lately take what memory there is, and tell what is taken."""
        buffer, spare = self._options.write_buffer_bytes, 0
        if self._memory is not None:
            self._memory.hold(self.path, self.held_bytes())
            spare = min(self._memory.spare, _MOST_SPARE)
        # A flood of variants of many texts asks for a hundred MB and more, again and again.
        self._records.recent.limit(buffer // 2 + spare * 3 // 8)
        self._grown.limit(buffer // 8 + spare * 3 // 32)

    def keys_estimate(self) -> int:
        """Return the number of cells and records."""
        return self._cells.cells + self.inserted - self._cells.list.eras.first

    def parts(self) -> Parts:
        """Return how many documents, eras, runs and cells it has."""
        listed, growing = self._cells.list, self._cells.open
        runs, cells = {"open": 1}, {"open": len(growing)}
        for run in listed.runs:
            tier = str(run.tier)
            runs[tier] = runs.get(tier, 0) + 1
            cells[tier] = cells.get(tier, 0) + run.cells
        return Parts(self.inserted - listed.eras.first, len(listed.eras.kept), runs, cells)

    def oldest_seconds(self) -> float | None:
        """Return how long ago its oldest era began, in its own time; None if it has nothing."""
        eras = self._cells.list.eras
        now, since = self.clock.now, eras.kept[0].since
        if self.inserted == eras.first or now is None or since is None:
            return None
        return (now - since) / 1_000

    def expired_eras(self) -> int:
        """Return how many eras it has given back since it was made."""
        return self._cells.list.eras.kept[0].number

    def contents(self) -> Contents:
        """Return a reader of everything in the store, for tests and checks."""
        return Contents(self._db, self._tables, self.inserted, self._cells.list)

    def close(self, *, flush: bool = True) -> None:
        """Close the store.

        Without ``flush``, a failure of the final flush is only logged: the log that the store is
        made from still has the data.
        """
        with probing(self._probe, "close"):
            self._tables.close()
            try:
                self._db.close()  # flushes by itself
            except Exception as error:
                if flush:
                    raise self._meaning(error) from error
                _log.info("closed %s: %s", self.path, error)
            finally:
                if self._memory is not None:
                    self._memory.release(self.path)
            self._probe.closed(self)
