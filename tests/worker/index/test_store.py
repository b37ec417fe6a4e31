"""The store: what survives, what is refused, what is put aside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from rocksdict import Cache, Options, Rdict

import worker.index.rocksdb
import worker.index.store
from worker.index.rocksdb import tuned
from worker.index.store import BandStore, HeaderMismatch, StoreDamaged, StoreOptions

HEADER: dict[str, str | int | float | bool] = {"bands": 18, "rows": 7}


def bucket_keys(*numbers: int) -> npt.NDArray[np.void]:
    """Give V9[n], keys of one band."""
    return np.array([b"\1" + number.to_bytes(8, "big") for number in numbers], "V9")


def hashed_keys(count: int, seed: int) -> npt.NDArray[np.void]:
    """Give V9[n], keys of one band, drawn evenly as hashes are."""
    keys = np.random.default_rng(seed).integers(0, 256, (count, 9), np.uint8)
    keys[:, 0] = 1
    return keys.view("V9").reshape(-1)


def test_a_store_keeps_what_was_written_and_how_far_it_reaches(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    writes = store.batch()
    writes.put_buckets(bucket_keys(0, 1), [b"a" * 16, b"b" * 16])
    writes.put_records(np.array([7], np.uint64), [b"record"])
    store.write(writes, offset=42, now=1_000, documents=1)
    store.close()
    again = BandStore(tmp_path / "s", HEADER)
    assert (again.offset, again.now) == (42, 1_000)
    assert again.buckets(bucket_keys(0, 2, 1)) == [b"a" * 16, None, b"b" * 16]
    assert again.records([7, 8]) == [b"record", None]
    again.close()


def test_other_parameters_are_refused_with_the_difference(tmp_path: Path) -> None:
    BandStore(tmp_path / "s", HEADER).close()
    with pytest.raises(HeaderMismatch, match="rows: it has 7, the settings say 8"):
        BandStore(tmp_path / "s", {**HEADER, "rows": 8})
    with pytest.raises(HeaderMismatch, match="slots: it has none, the settings say 128"):
        BandStore(tmp_path / "s", {**HEADER, "slots": 128})
    BandStore(tmp_path / "s", HEADER).close()


FILTER_BYTES = 1 << 16
SMALL = StoreOptions(filter_bytes=FILTER_BYTES)


def test_a_store_knows_what_is_absent_as_soon_as_it_is_opened(tmp_path: Path) -> None:
    """Each write adds 900 keys; more than seven of them make a copy of the filter."""
    absent = hashed_keys(1_000, 100)
    for turn in range(20):
        store = BandStore(tmp_path / "s", HEADER, options=SMALL)
        for before in range(turn):
            assert store.buckets(hashed_keys(900, before)) == [b"%016d" % before] * 900
        assert store._filter.may_hold(absent).sum() < 100
        writes = store.batch()
        writes.put_buckets(hashed_keys(900, turn), [b"%016d" % turn] * 900)
        store.write(writes, offset=turn + 1, now=0, documents=1)
        store.close()


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_store_of_another_format_is_refused_and_left_as_it_is(
    tmp_path: Path, version: int
) -> None:
    store = BandStore(tmp_path / "s", HEADER, options=SMALL)
    random_buckets(store, 0, 900)
    header = json.loads(store._get([b"\xffheader"])[0] or b"")
    other = json.dumps({**header, "format": version}).encode()
    store._db.put(b"\xffheader", other)
    store.close()
    for _ in range(2):
        with pytest.raises(HeaderMismatch, match=f"has format {version}, .* reads 3 only: begin"):
            BandStore(tmp_path / "s", HEADER, options=SMALL)
    raw = Rdict(str(tmp_path / "s"), Options(raw_mode=True))
    assert raw[b"\xffheader"] == other
    raw.close()


def test_what_was_added_is_replaced_by_a_copy_of_the_filter(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER, options=SMALL)
    for offset in range(43):  # Each eighth makes a copy.
        random_buckets(store, offset, 900)
    kinds = Counter(cast("bytes", key)[:1] for key in list(store._db.keys()))
    assert (kinds[b"\xfc"], kinds[b"\xfd"]) == (1, 3)
    store.close()


def test_a_filter_of_another_size_is_made_of_all_buckets(tmp_path: Path) -> None:
    numbers = list(range(30_000))
    for size in (FILTER_BYTES, 2 * FILTER_BYTES, FILTER_BYTES // 2):
        store = BandStore(tmp_path / "s", HEADER, options=StoreOptions(filter_bytes=size))
        writes = store.batch()
        writes.put_buckets(bucket_keys(*numbers), [b"%016d" % number for number in numbers])
        store.write(writes, offset=1, now=0, documents=1)
        store.close()
        for _ in range(2):  # The second reads what the first has made.
            again = BandStore(tmp_path / "s", HEADER, options=StoreOptions(filter_bytes=2 * size))
            assert None not in again.buckets(bucket_keys(*numbers))
            assert again.buckets(bucket_keys(1 << 50)) == [None]
            again.write(again.batch(), offset=2, now=0, documents=0)
            again.close()


_KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from worker.index.store import BandStore, StoreOptions
store = BandStore(Path(sys.argv[1]), {"a": 1}, options=StoreOptions(flush_documents=500))
for number in range(1, 2001):
    writes = store.batch()
    writes.put_buckets(np.array([number.to_bytes(9, "big")], "V9"), [b"x" * 16])
    store.write(writes, offset=number, now=number, documents=1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_data_and_offset_agree(tmp_path: Path) -> None:
    """The log is off, so the last writes may be gone; but never without their offset."""
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path / "s")],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == -signal.SIGKILL
    store = BandStore(tmp_path / "s", {"a": 1}, options=StoreOptions())
    assert 0 < store.offset <= 2000
    numbers = [int.from_bytes(key, "big") for key in store.items()]
    assert numbers == list(range(1, store.offset + 1))
    store.close()


def test_flushes_are_due_by_documents_and_by_time(tmp_path: Path) -> None:
    now = 0.0
    store = BandStore(
        tmp_path / "s",
        HEADER,
        options=StoreOptions(flush_documents=1_000_000, flush_seconds=30),
        clock=lambda: now,
    )
    writes = store.batch()
    writes.put_buckets(bucket_keys(0), [b"a" * 16])
    store.write(writes, offset=1, now=1, documents=1)
    assert store.unflushed == 1
    now = 29.0
    store.flush_if_due()
    assert store.unflushed == 1
    now = 31.0
    store.flush_if_due()
    assert store.unflushed == 0
    store.close()


def random_buckets(store: BandStore, offset: int, count: int) -> None:
    keys = np.frombuffer(os.urandom(9 * count), "V9").copy()
    keys.view(np.uint8).reshape(-1, 9)[:, 0] %= 18
    writes = store.batch()
    writes.put_buckets(keys, [os.urandom(16) for _ in range(count)])
    store.write(writes, offset=offset, now=0, documents=count)


def damage(path: Path, share: float = 0.5) -> None:
    table = max(path.glob("*.sst"), key=lambda found: found.stat().st_size)
    data = bytearray(table.read_bytes())
    at = int(len(data) * share)
    data[at : at + 32] = b"\xa5" * 32
    table.write_bytes(data)


@pytest.mark.parametrize(
    ("size", "share"),
    [pytest.param(FILTER_BYTES, 0.9, id="read"), pytest.param(2 * FILTER_BYTES, 0.5, id="made")],
)
def test_a_block_that_cannot_be_read_is_never_taken_for_absent_buckets(
    tmp_path: Path, size: int, share: float
) -> None:
    """RocksDB's iterator, of which the filter of absent buckets comes, ends there silently."""
    store = BandStore(tmp_path / "s", HEADER, options=SMALL)
    for offset in range(3):  # In a table, what they add to the filter follows after all buckets.
        random_buckets(store, offset, 2_000)
    store.close()
    damage(tmp_path / "s", share)
    with pytest.raises(StoreDamaged, match=r"its filter: a block past .* can't be read"):
        BandStore(tmp_path / "s", HEADER, options=StoreOptions(filter_bytes=size))


def test_damage_is_told_from_a_disk_that_refuses(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    random_buckets(store, 1, 30_000)
    keys = np.frombuffer(b"".join(sorted(store.items())), "V9")
    store.close()
    damage(tmp_path / "s")
    store = BandStore(tmp_path / "s", HEADER)
    with pytest.raises(StoreDamaged, match="checksum"):
        store.buckets(keys)
    with pytest.raises(OSError, match="lock"):
        BandStore(tmp_path / "s", HEADER)
    store.close(flush=False)
    (tmp_path / "s" / "CURRENT").unlink()
    with pytest.raises(StoreDamaged, match="CURRENT is missing"):
        BandStore(tmp_path / "s", HEADER)


def test_a_checkpoint_is_a_store_of_that_offset(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    random_buckets(store, 1, 100)
    random_buckets(store, 2, 50)
    store.checkpoint(tmp_path / "copy")
    before = store.items()
    random_buckets(store, 3, 50)
    copy = BandStore(tmp_path / "copy", HEADER)
    assert (copy.offset, copy.documents, copy.items()) == (2, 150, before)
    copy.close()
    store.close()


class Ticking(threading.Thread):
    """Another thread of the process, which counts as long as it may run."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks = 0
        self._ending = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ending.wait(0.001):
            self.ticks += 1

    def end(self) -> None:
        self._ending.set()
        self.join()


@pytest.mark.parametrize("way", ["memtables", "level 0"])
def test_a_write_that_has_to_wait_holds_up_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The disk takes 100 kB a second: less than is written, or than has to be merged."""
    brake = 2

    def slowed(options: StoreOptions, cache: Cache | None) -> Options:
        found = tuned(options, cache)
        found.set_ratelimiter(100 << 10, 10_000, 10)
        if way == "level 0":
            found.set_level_zero_file_num_compaction_trigger(brake)
        return found

    monkeypatch.setattr(worker.index.store, "tuned", slowed)
    if way == "level 0":
        monkeypatch.setattr(worker.index.rocksdb, "SLOWED_FROM", brake)
        monkeypatch.setattr(worker.index.rocksdb, "HELD_FROM", brake + 1)
    options = StoreOptions(write_buffer_bytes=1 << 16, filter_bytes=4_096)
    store = BandStore(tmp_path / "s", HEADER, options=options)
    keys = hashed_keys(20_000, 1)
    ticking = Ticking()
    longest, ticks = 0.0, 0
    for offset in range(1, 21):
        writes = store.batch()
        writes.put_buckets(keys[offset * 900 : (offset + 1) * 900], [os.urandom(16)] * 900)
        began, before = perf_counter(), ticking.ticks
        store.write(writes, offset=offset, now=0, documents=1)
        waited = perf_counter() - began
        if waited > longest:
            longest, ticks = waited, ticking.ticks - before
        assert not store._db.property_int_value("rocksdb.is-write-stopped")
        assert not store._db.property_int_value("rocksdb.actual-delayed-write-rate")
    ticking.end()
    store.close()
    assert longest > 0.3, "nothing had to wait"
    assert ticks >= 5
