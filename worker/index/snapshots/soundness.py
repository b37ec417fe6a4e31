"""Checks that files are what was written: tables of a store here, and files in the repository.

Snapshots share tables, so one corrupt table makes all of them useless. So files in the repository
are read back while a shard's owner still has good copies.

Tables are checked by their block checksums. rocksdict has no call for that. But RocksDB's repair
reads each table of a directory completely, 650 MB per second of CPU and without the GIL, and moves
away those that it can't read. It runs on a directory of links, so the tables themselves don't
change. It refuses the tables of merged runs unread, because they don't name a column family: an
empty database takes them in, and reads them.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import NamedTuple

from rocksdict import IngestExternalFileOptions, Options, Rdict

from worker.index.directory import beside
from worker.index.errors import StoreDamaged
from worker.index.keyspace import StoreHeader
from worker.index.read_only import ReadOnlyStore
from worker.index.snapshots.manifest import FileEntry, Manifest
from worker.index.snapshots.repository import ShardSnapshots

_SLICE_BYTES = 256 << 20
_NO_FAMILY = "inconsistent column family name"
_REFUSED = re.compile(r"Table #(\d+): ignoring (.*)")


def rotten(
    tables: Iterable[Path], *, on_bytes: Callable[[int], None] = lambda _size: None
) -> dict[str, str]:
    """Return the names of the corrupt tables among those of one directory, and why.

    Data, index and properties are read. Filters are not: a bad one can only make look-ups slower.
    ``on_bytes`` is called with how much was read, and may raise.

    Raises:
        OSError: a table can't be read, so its soundness is unknown.
    """
    found: dict[str, str] = {}
    for some in _slices(tables):
        with _linked(some) as scratch:
            found |= _repaired(scratch, some)
        on_bytes(sum(path.stat().st_size for path in some))
    return found


def _slices(tables: Iterable[Path]) -> Iterator[list[Path]]:
    some: list[Path] = []
    size = 0
    for path in tables:
        some.append(path)
        size += path.stat().st_size
        if size >= _SLICE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _repaired(scratch: Path, tables: list[Path]) -> dict[str, str]:
    try:
        Rdict.repair(str(scratch), Options(raw_mode=True))
    except Exception as error:
        raise OSError(f"{scratch}: its tables can't be read: {error}") from error
    why = {int(number): text for number, text in _REFUSED.findall((scratch / "LOG").read_text())}
    found = {}
    for path in tables:
        if (scratch / path.name).is_symlink():
            continue
        text = why.get(int(path.stem), "RocksDB does not say why")
        if _NO_FAMILY in text:
            text = _unreadable(scratch, path)
            if text is None:
                continue
        if "Corruption" not in text:
            raise OSError(f"{path}: can't be read: {text}")
        found[path.name] = text.replace(str(scratch), str(path.parent))
    return found


def _unreadable(scratch: Path, table: Path) -> str | None:
    """Return why a table that was made outside of a database can't be read; None if it can."""
    link = scratch / f"outside-{table.name}"
    link.symlink_to(table.absolute())
    linked = IngestExternalFileOptions()
    linked.set_move_files(True)
    db = Rdict(str(scratch / f"reading-{table.stem}"), Options(raw_mode=True))
    try:
        db.ingest_external_file([str(link)], linked)
        entries = db.iter()
        entries.seek_to_first()
        while entries.valid():
            entries.next()
        entries.status()
    except Exception as error:  # noqa: BLE001 -- rocksdict's are bare; the text says what it is
        return str(error)
    finally:
        db.close()
    return None


def check_opening(store: Path, offset: int) -> None:
    """Check that a store would open after a restore, without writing to it.

    Raises:
        StoreDamaged: it doesn't open, or is at another offset.
        OSError: a file can't be read, so its soundness is unknown.
    """
    with _linked(list(store.iterdir())) as scratch:
        try:
            with ReadOnlyStore(scratch) as links:
                found = links.facts().offset
        except StoreDamaged as error:
            text = str(error).replace(str(scratch), str(store))
            raise (OSError if "IO error" in text else StoreDamaged)(text) from error
    if found != offset:
        raise StoreDamaged(f"{store}: at offset {found}, not {offset}")


@contextmanager
def _linked(files: list[Path]) -> Iterator[Path]:
    """Yield a temporary directory of links to files of one directory."""
    directory = files[0].parent.absolute()
    scratch = beside(directory, "tables")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        for path in files:
            (scratch / path.name).symlink_to(directory / path.name)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


_log = logging.getLogger(__name__)


class Damage(NamedTuple):
    """Damaged or missing files: those that the store still has, and those that it doesn't."""

    repairable: list[FileEntry]
    lost: list[FileEntry]


class Verification:
    """Reads an index's files back when that is due, and sets damaged ones aside.

    The repository records when any worker last did it.
    """

    def __init__(self, every_seconds: float, clock: Callable[[], float] = time) -> None:
        """Take the interval; ``clock`` returns seconds since the epoch."""
        self._every = every_seconds
        self._clock = clock

    def run_if_due(
        self,
        snapshots: ShardSnapshots,
        header: StoreHeader,
        held: Sequence[FileEntry],
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> Damage:
        """Read back the files of an index's snapshots, and the ``held`` files in the repository.

        Damaged files are set aside. Those that are ``held`` can then be shipped again. Snapshots
        that need another one are incomplete, and don't count any more.

        Raises:
            Interrupted: ``stop`` returned true.
        """
        began = self._clock()
        # A time in the future comes from a wrong clock.
        if 0 <= began - snapshots.verified_at(header) < self._every:
            return Damage([], [])
        files = _shared(_own(snapshots, header))
        there = snapshots.holds(file.sha256 for file in held)
        own = {file.sha256: file for file in held if file.content is None}
        files |= {digest: file for digest, file in own.items() if digest in there}
        wrong = snapshots.damaged(list(files.values()), stop=stop)
        for file in wrong:
            snapshots.set_aside(file)
        # Another worker may have retired snapshots meanwhile, and deleted their files.
        left = _own(snapshots, header) if wrong else []
        wanted = own.keys() | _shared(left).keys()
        wrong = [file for file in wrong if file.sha256 in wanted]
        damage = Damage(
            [file for file in wrong if file.sha256 in own],
            [file for file in wrong if file.sha256 not in own],
        )
        _log_damage(snapshots.place, damage, left)
        snapshots.note_verified(header, self._clock())
        _log.info(
            "%s: read back %d files, %d MB, in %.1f s: %d damaged or missing",
            snapshots.place,
            len(files),
            sum(file.size for file in files.values()) >> 20,
            self._clock() - began,
            len(wrong),
        )
        return damage


def _own(snapshots: ShardSnapshots, header: StoreHeader) -> list[Manifest]:
    return [manifest for manifest in snapshots.manifests() if manifest.header == header]


def _shared(manifests: Sequence[Manifest]) -> dict[str, FileEntry]:
    """Return by digest the files that are not stored in manifests."""
    return {file.sha256: file for m in manifests for file in m.files if file.content is None}


def _log_damage(place: str, damage: Damage, manifests: Sequence[Manifest]) -> None:
    for file in damage.repairable:
        _log.warning(
            "%s: %s (%s) is damaged or missing; the store has it, and it is shipped again",
            place,
            file.name,
            file.sha256,
        )
    for file in damage.lost:
        needing = [m.offset for m in manifests if file.sha256 in _shared([m])]
        _log.warning(
            "%s: %s (%s) is damaged or missing; the store no longer has it, so the snapshots at"
            " offsets %s can't be restored",
            place,
            file.name,
            file.sha256,
            ", ".join(map(str, sorted(needing))),
        )
