"""Checks by block checksums that the tables of a store are what RocksDB wrote.

rocksdict has no call for that. But RocksDB's repair reads each table of a directory completely,
650 MB per second of CPU and without the GIL, and moves away those that it can't read. It runs on
a directory of links, so the tables themselves don't change. It refuses the tables of merged runs
unread, because they don't name a column family: an empty database takes them in, and reads them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rocksdict import IngestExternalFileOptions, Options, Rdict

from worker.index.directory import beside
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore

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
