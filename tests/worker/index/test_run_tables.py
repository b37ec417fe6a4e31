"""The tables of runs: whole after a crash, gone with their run, never missed silently."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import worker.index.run_tables
from tests.support.filling import fill
from tests.support.killed_disk import left_by_kill, settle
from worker.index.errors import StoreDamaged
from worker.index.read_only import ReadOnlyStore
from worker.index.rocksdb import StoreOptions
from worker.index.run_tables import family_names
from worker.index.snapshots.soundness import rotten
from worker.index.store import BandStore

HEADER: dict[str, str | int | float | bool] = {"test": 1}
COLUMNS = range(3)
RUN = 32


def opened(path: Path) -> BandStore:
    return BandStore(path, HEADER, options=StoreOptions(run_documents=RUN))


def filled(store: BandStore, writes: int) -> None:
    first = store.inserted // RUN
    for offset in range(first, first + writes):
        fill(store, offset, RUN, COLUMNS)


def killed(store: BandStore, left: Path) -> None:
    """Copy what a kill would leave of a store."""
    settle([store])
    left_by_kill(store.path, left)


def named(store: BandStore) -> list[str]:
    """Return the families of the runs that the store names."""
    return [f"run-{number:010d}" for number in sorted(store.contents().runs)]


def tiers(store: BandStore) -> set[str]:
    return set(store.parts().runs) - {"memtable"}


def check(store: BandStore) -> None:
    found = store.contents().buckets()
    expected = sorted([number] for number in range(store.inserted) for _ in COLUMNS)
    assert sorted(bucket.documents for bucket in found.values()) == expected


def test_a_run_has_tables_until_another_replaces_it(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    made = set[str]()
    for _ in range(80):
        filled(store, 1)
        made |= set(named(store))
        store.flush()
    filled(store, 8)
    store.flush()
    store.tables.drop_all()
    assert tiers(store) == {"0", "1", "2"}
    assert set(named(store)) <= set(family_names(tmp_path / "s"))
    gone = made - set(named(store))
    assert len(gone) > 64 + 8
    assert not gone & set(family_names(tmp_path / "s"))
    check(store)
    store.close()


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no such advice")
def test_the_system_is_to_read_each_finished_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB's writer has it forget what was written."""
    monkeypatch.setattr(worker.index.run_tables, "_AHEAD_BYTES", 500)
    asked: dict[int, list[tuple[int, int]]] = {}
    sizes: dict[int, int] = {}
    advise = os.posix_fadvise

    def noting(file: int, start: int, length: int, advice: int) -> None:
        found = os.fstat(file)
        sizes[found.st_ino] = found.st_size
        asked.setdefault(found.st_ino, []).append((start, start + length))
        assert advice == os.POSIX_FADV_WILLNEED
        advise(file, start, length, advice)

    monkeypatch.setattr(os, "posix_fadvise", noting)
    store = opened(tmp_path / "s")
    filled(store, 20)
    tables = {file.stat().st_ino for file in (tmp_path / "s").glob("*.sst")}
    assert len(asked) > 1
    assert asked.keys() <= tables
    for number, ranges in asked.items():
        ends = [0, *(end for _, end in ranges)]
        assert [start for start, _ in ranges] == ends[:-1]
        assert ends[-1] >= sizes[number] > 500
    store.close()


def test_a_run_that_was_replaced_stays_until_that_is_on_disk(tmp_path: Path) -> None:
    """A crash before that goes back to a store that needs it."""
    store = opened(tmp_path / "s")
    filled(store, 72)
    store.flush()
    before = named(store)
    while tiers(store) != {"0", "1", "2"}:
        filled(store, 1)
    filled(store, 2)
    killed(store, tmp_path / "left")
    again = opened(tmp_path / "left")
    assert set(before) <= set(named(again))
    check(again)
    again.close()
    store.close()


def test_a_crash_leaves_nothing_that_is_not_named(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    filled(store, 8)
    store.flush()
    flushed = named(store)
    filled(store, 5)  # Runs are closed, and merged, but no write that says so is flushed.
    killed(store, tmp_path / "left")
    assert len(family_names(tmp_path / "left")) > len(flushed)
    (tmp_path / "left" / "unfinished").mkdir(exist_ok=True)
    (tmp_path / "left" / "unfinished" / "run-0000000099.sst").write_bytes(b"half")
    again = opened(tmp_path / "left")
    assert named(again) == family_names(tmp_path / "left") == flushed
    assert not (tmp_path / "left" / "unfinished").exists()
    filled(again, 20)
    check(again)
    again.close()
    store.close()


def test_the_space_of_a_run_is_free_as_soon_as_it_is_dropped(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    filled(store, 16)
    store.flush()
    contents = store.contents()
    run = next(iter(contents.runs))
    before = store.size_bytes()
    store.tables.leave(run)
    store.flush()
    store.tables.drop_all()
    assert before - store.size_bytes() >= 12 * contents.runs[run]
    store.close()


@pytest.mark.slow
def test_a_checkpoint_has_no_tables_that_are_not_needed(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    while tiers(store) != {"0", "1", "2"}:
        filled(store, 1)
    store.checkpoint(tmp_path / "copy")
    assert family_names(tmp_path / "copy") == named(store)
    copy = opened(tmp_path / "copy")
    check(copy)
    copy.close()
    store.close()


@pytest.mark.slow
def test_a_table_with_a_flipped_bit_is_named(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    filled(store, 20)
    store.close()
    tables = sorted((tmp_path / "s").glob("*.sst"))
    assert len(tables) > 2
    assert rotten(tables) == {}
    for table in tables:
        sound = table.read_bytes()
        place = len(sound) // 3
        table.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
        assert list(rotten(tables)) == [table.name]
        table.write_bytes(sound)


@pytest.mark.parametrize("writes", [3, 10, 17], ids=["of a run", "of a merge", "of a merged run"])
def test_tables_that_are_missing_are_damage(tmp_path: Path, writes: int) -> None:
    store = opened(tmp_path / "s")
    filled(store, writes)
    name = named(store)[-1]
    store.flush()
    number = int(name.removeprefix("run-"))
    store.tables.leave(number)
    store.tables.flushing()
    store.tables.drop_all()
    store.close()
    with pytest.raises(StoreDamaged, match=f"the tables of run {number} are missing"):
        opened(tmp_path / "s")
    with (
        ReadOnlyStore(tmp_path / "s") as read_only,
        pytest.raises(StoreDamaged, match=f"the tables of run {number} are missing"),
    ):
        read_only.facts()


@pytest.mark.parametrize("writes", [1, 8], ids=["a run", "a merge"])
def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path, writes: int) -> None:
    store = opened(tmp_path / "s")
    filled(store, writes)
    shutil.rmtree(tmp_path / "s" / "unfinished", ignore_errors=True)
    (tmp_path / "s" / "unfinished").write_bytes(b"in the way")
    with pytest.raises(OSError, match="unfinished"):
        filled(store, 3)
    store.close()


@pytest.mark.slow
def test_a_live_store_is_read_while_its_runs_change(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    for _ in range(30):
        filled(store, 3)
        store.flush()
        with ReadOnlyStore(tmp_path / "s") as read_only:
            found = read_only.contents().buckets()
        assert len(found) == len(COLUMNS) * store.inserted
    store.close()
    shutil.rmtree(tmp_path / "s")
