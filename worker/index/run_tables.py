"""The pages of runs, in tables that are written once.

The pages of a run are written in their order, and they never change. As keys among others, RocksDB
would rewrite them on their way down its levels, several times, which took most of what its threads
cost a document. So each run has a column family of its own. Its pages go into files that RocksDB
takes over as they are, into its lowest level. When the run goes, its family is dropped, and its
space is free at once.

A file is on disk before a write counts its pages, and a family is dropped after the write that
replaced its run is on disk. So a crash leaves pages that nothing names, and never a name without
pages. The last file of a run ends with the key `HEADER`, so that `span` sees that nothing is
missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from rocksdict import IngestExternalFileOptions, Options, Rdict, SstFileWriter

from lsh._core import Plan, Query
from worker.index.keyspace import CELLS, HEADER, Range, of_run
from worker.index.rocksdb import span

_PREFIX = "run-"
_FOLDER = "unfinished"
_AHEAD_BYTES = 1 << 20
"""Of one request, Linux reads no more than the disk takes at a time."""

Meaning = Callable[[Exception], Exception]
"""Returns our error for one of rocksdict's."""


def family_names(path: Path) -> list[str]:
    """Return the column families of runs in a store; none if there is no store.

    Raises:
        Exception: rocksdict's, if it can't be read.
    """
    if not (path / "CURRENT").exists():
        return []
    return [name for name in Rdict.list_cf(str(path)) if name.startswith(_PREFIX)]


def _name(run: int) -> str:
    return f"{_PREFIX}{run:010d}"


def _number(name: str) -> int:
    return int(name.removeprefix(_PREFIX))


def _have_read(path: Path) -> None:
    """Have the system read a file into its page cache, beside whoever goes on.

    RocksDB's writer has told it to forget what was written, so that each page would be read from
    the disk by itself, when somebody waits for it.
    """
    if not hasattr(os, "posix_fadvise"):  # macOS
        return
    with path.open("rb") as file:
        for start in range(0, os.fstat(file.fileno()).st_size, _AHEAD_BYTES):
            os.posix_fadvise(file.fileno(), start, _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)


class Pages:
    """Reads the pages of runs, wherever they are. Methods raise what ``meaning`` returns."""

    def __init__(self, db: Rdict, names: Iterable[str], meaning: Meaning) -> None:
        """Take the database, opened with these families."""
        self._db = db
        self._meaning = meaning
        self.families: dict[int, Rdict] = {}
        for name in names:
            # One that came or went while a store was opened read-only isn't there.
            with suppress(Exception):
                self.families[_number(name)] = db.get_column_family(name)

    def look_up(self, plan: Plan | Query) -> None:
        """Read what a plan or a query needs, until it needs nothing any more."""
        while groups := plan.keys():
            values: list[bytes | None] = []
            for run, keys in groups:
                values += self.get(run, keys)
            plan.give(values)

    def get(self, run: int | None, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the pages of a run with n keys; None: the values of n keys of no run."""
        try:
            return cast("list[bytes | None]", self._source(run).get(cast("Any", keys)))
        except Exception as error:
            raise self._meaning(error) from error

    def of(self, run: int, keys: Range | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Return the keys and pages of a run, in order; ``keys`` is the range of some of them.

        Raises:
            ReadingEnded: not everything can be read.
        """
        return span(self._source(run), keys or of_run(CELLS, run))

    def _source(self, run: int | None) -> Rdict:
        return self._db if run is None else self.families.get(run, self._db)

    def check(self, made: Iterable[int]) -> None:
        """Check that runs have their families.

        Raises:
            ValueError: one is missing.
        """
        for number in made:
            if number not in self.families:
                raise ValueError(f"the tables of run {number} are missing")

    def close(self) -> None:
        """Let go of the database, so that it can be closed."""
        self.families.clear()

    def sum(self, name: str) -> int:
        """Return the sum of a property of RocksDB over the families of runs."""
        families = list(self.families.values())
        return sum(int(family.property_int_value(name) or 0) for family in families)


class _Writing:
    """A file with pages that isn't finished."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path = path
        self._writer = SstFileWriter(options)
        self._writer.open(str(path))

    def put(self, pages: Iterable[tuple[bytes, bytes]]) -> None:
        for key, page in pages:
            self._writer[key] = page

    def finish(self) -> None:
        self._writer.finish()


class RunTables(Pages):
    """Writes the pages of runs, and drops them."""

    def __init__(
        self,
        db: Rdict,
        path: Path,
        names: Iterable[str],
        options: Options,
        meaning: Meaning,
    ) -> None:
        """Take the database at a path, opened with these families, and their options."""
        super().__init__(db, names, meaning)
        self._options = options
        self._folder = path / _FOLDER
        self._writing: dict[int, _Writing] = {}
        self._leaving: list[int] = []
        self._left: list[int] = []

    def begin(self, made: Iterable[int], begun: Iterable[int]) -> None:
        """Remove what a crash has left: unfinished files, families that nothing names.

        ``made`` are the runs that have families, ``begun`` those that may have.

        Raises:
            ValueError: something that is named is missing.
            OSError: files can't be removed.
        """
        named = set(made)
        self.check(named)
        if self._folder.exists():
            shutil.rmtree(self._folder)
        self._left = sorted(self.families.keys() - named.union(begun))
        self.drop_all()

    def put(self, run: int, pages: Iterable[tuple[bytes, bytes]]) -> None:
        """Put keys and pages into the file that is written for a run; keys ascend."""
        try:
            writing = self._writing.get(run)
            if writing is None:
                writing = self._writing[run] = self._file(run)
            writing.put(pages)
        except Exception as error:
            raise self._meaning(error) from error

    def _file(self, run: int) -> _Writing:
        if run not in self.families:
            self.families[run] = self._db.create_column_family(_name(run), self._options)
        self._folder.mkdir(exist_ok=True)
        return _Writing(self._folder / f"{_name(run)}.sst", self._options)

    def finish(self, run: int, *, last: bool) -> None:
        """Finish the file that is written for a run; its pages are on disk then."""
        if last:
            self.put(run, [(HEADER, b"")])
        writing = self._writing.pop(run)
        # rocksdict waits for the disk with the GIL held, which blocks all threads.
        with writing.path.open("rb") as file:
            os.fsync(file.fileno())
        moved = IngestExternalFileOptions()
        moved.set_move_files(True)
        try:
            writing.finish()
            _have_read(writing.path)
            self.families[run].ingest_external_file([str(writing.path)], moved)
        except Exception as error:
            raise self._meaning(error) from error

    def leave(self, run: int) -> None:
        """Note that a write replaces a run, whose family goes once that write is on disk."""
        self._leaving.append(run)

    def flushing(self) -> None:
        """Note that all writes so far are being flushed, or have been."""
        self._left += self._leaving
        self._leaving = []

    @property
    def left(self) -> bool:
        """Return whether `drop` has anything to do, once the last flush is over."""
        return bool(self._left)

    def drop(self) -> None:
        """Drop a family whose run was replaced before the last flush, which is over."""
        run = self._left.pop()
        del self.families[run]
        try:
            self._db.drop_column_family(_name(run))
        except Exception as error:
            raise self._meaning(error) from error

    def drop_all(self) -> None:
        """Drop all of them."""
        while self._left:
            self.drop()

    def close(self) -> None:
        """Let go of the database, so that it can be closed; unfinished files are lost."""
        self._writing.clear()
        super().close()
