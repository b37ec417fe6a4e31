"""The store: what survives, what is refused, what is put aside."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from time import perf_counter

import pytest
from rocksdict import Options, Rdict

import worker.index.rocksdb
import worker.index.store
from lsh.index import DocumentBatch
from tests.support.filling import RULES, fill, random_documents
from worker.index.errors import HeaderMismatch, StoreDamaged
from worker.index.memory import StoreMemory
from worker.index.rocksdb import StoreOptions, tuned
from worker.index.store import BandStore

HEADER: dict[str, str | int | float | bool] = {"bands": 18, "rows": 7}
_HEADER = b"\xffheader"


def test_a_store_keeps_what_was_written_and_how_far_it_reaches(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    documents = fill(store, 42, 2)
    store.close()
    again = BandStore(tmp_path / "s", HEADER)
    assert (again.offset, again.documents, again.inserted) == (42, 2, 2)
    keys = documents.keys[0].tolist()
    assert again.contents().buckets() == {(0, key): ([row], False) for row, key in enumerate(keys)}
    first, second = again.contents().records()
    assert first is not None
    assert first.id == documents.ids[0]
    assert second is not None
    assert second.sequence == documents.sequences[1]
    again.close()


def test_a_store_that_is_reopened_keeps_its_blocks_in_the_cache_that_it_is_given(
    tmp_path: Path,
) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 42, 1_000)
    store.close()
    memory = StoreMemory(8 << 20, write_buffers=1 << 20, cache=4 << 20)
    again = BandStore(tmp_path / "s", HEADER, memory=memory)
    before = memory.cache.get_usage()
    assert len(list(again.contents().records())) == 1_000
    assert memory.cache.get_usage() > before + 20_000
    again.close()


def test_a_closed_store_leaves_memory_without_waiting_for_a_collection(tmp_path: Path) -> None:
    """Its filters may be hundreds of MB, and the next shard wants the memory."""
    gc.disable()
    try:
        store = BandStore(tmp_path / "s", HEADER)
        fill(store, 42, 2)
        store.close()
        left = weakref.ref(store)
        del store
        assert left() is None
    finally:
        gc.enable()


def test_other_parameters_are_refused_with_the_difference(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 42, 2)
    store.close()
    with pytest.raises(HeaderMismatch, match="rows: it has 7, the settings say 8"):
        BandStore(tmp_path / "s", {**HEADER, "rows": 8})
    with pytest.raises(HeaderMismatch, match="slots: it has none, the settings say 128"):
        BandStore(tmp_path / "s", {**HEADER, "slots": 128})
    BandStore(tmp_path / "s", HEADER).close()


SMALL = StoreOptions(run_documents=100)


def test_a_store_knows_what_is_absent_as_soon_as_it_is_opened(tmp_path: Path) -> None:
    """Twenty times more documents than a run has, so there are runs of two tiers."""
    absent = random_documents(1_000, seed=1_000_000)
    inserted: list[DocumentBatch] = []
    for turn in range(20):
        store = BandStore(tmp_path / "s", HEADER, options=SMALL)
        for documents in inserted:
            found = store.reader().query(documents, RULES)
            assert [[one.id for one in answer.matches] for answer in found] == [
                [ident] for ident in documents.ids
            ]
        assert not any(answer.matches for answer in store.reader().query(absent, RULES))
        inserted.append(fill(store, turn + 1, 100))
        store.close()
    store = BandStore(tmp_path / "s", HEADER, options=SMALL)
    assert store.parts().runs.keys() == {"memtable", "0", "1"}
    store.close()


@pytest.mark.parametrize("version", [1, 13, 15, None])
def test_a_store_of_another_format_is_refused_and_left_as_it_is(
    tmp_path: Path, version: int | None
) -> None:
    store = BandStore(tmp_path / "s", HEADER, options=SMALL)
    fill(store, 0, 900)
    header = json.loads(store.db.get(_HEADER) or b"")
    other = json.dumps({**header, "format": version}).encode()
    store.db.put(_HEADER, other)
    store.close()
    for _ in range(2):
        with pytest.raises(HeaderMismatch, match=f"has format {version}, .* reads 14: begin"):
            BandStore(tmp_path / "s", HEADER, options=SMALL)
    raw = Rdict(str(tmp_path / "s"), Options(raw_mode=True))
    assert raw[_HEADER] == other
    raw.close()


def test_a_store_keeps_the_size_of_runs_that_it_was_made_with(tmp_path: Path) -> None:
    for offset, size in enumerate((100, 1_000, 10)):
        options = StoreOptions(run_documents=size)
        store = BandStore(tmp_path / "s", HEADER, options=options)
        fill(store, 2 * offset + 1, 100)
        fill(store, 2 * offset + 2, 100)
        parts = store.parts()
        assert parts.postings["0"] == 2 * 100 * parts.runs["0"]  # Those of ids are postings, too.
        assert len(store.contents().buckets()) == 200 * (offset + 1)
        store.close()


def test_documents_of_other_columns_are_refused(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 1, 10, range(3))
    with pytest.raises(StoreDamaged, match="column 3 is none of the shard's"):
        store.decide(random_documents(5, first=10, columns=range(4)), RULES)
    store.close()


def test_only_the_last_decision_is_applied(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    first = store.decide(random_documents(5), RULES)
    store.decide(random_documents(3), RULES)
    with pytest.raises(ValueError, match="not the last decision"):
        store.apply(first, offset=1, documents=5)
    last = store.decide(random_documents(3), RULES)
    store.apply(last, offset=1, documents=3)
    with pytest.raises(ValueError, match="not the last decision"):
        store.apply(last, offset=2, documents=3)
    assert (store.offset, store.inserted) == (1, 3)
    store.close()


def test_a_store_that_is_full_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 1, 5)
    decision = store.decide(random_documents(5, first=5), RULES)

    class Full:
        room = 4

        def __getattr__(self, name: str) -> object:
            return getattr(shard, name)

    shard = store.shard
    monkeypatch.setattr(store, "shard", Full())
    with pytest.raises(OSError, match="it is full: it has 5 documents"):
        store.apply(decision, offset=2, documents=5)
    monkeypatch.undo()
    store.close()


_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.support.filling import fill
from worker.index.store import BandStore, StoreOptions
options = StoreOptions(flush_documents=500, run_documents=300)
store = BandStore(Path(sys.argv[1]), {"a": 1}, options=options)
for number in range(1, 2001):
    fill(store, number, 1)
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
    (*buckets,) = store.contents().buckets().values()
    assert sorted(bucket.documents for bucket in buckets) == [[n] for n in range(store.offset)]
    store.close()


def test_flushes_are_due_by_documents_and_by_time(tmp_path: Path) -> None:
    now = 0.0
    store = BandStore(
        tmp_path / "s",
        HEADER,
        options=StoreOptions(flush_documents=1_000_000, flush_seconds=30),
        clock=lambda: now,
    )
    fill(store, 1, 1)
    assert store.unflushed == 1
    now = 29.0
    store.flush_if_due()
    assert store.unflushed == 1
    now = 31.0
    store.flush_if_due()
    assert store.unflushed == 0
    store.close()


def damage(path: Path, share: float = 0.5) -> None:
    table = max(path.glob("*.sst"), key=lambda found: found.stat().st_size)
    data = bytearray(table.read_bytes())
    at = int(len(data) * share)
    data[at : at + 32] = b"\xa5" * 32
    table.write_bytes(data)


def test_a_block_that_cannot_be_read_is_never_taken_for_absent_cells(tmp_path: Path) -> None:
    """RocksDB's iterator, which reads the cells of the memtable, ends there silently."""
    store = BandStore(tmp_path / "s", HEADER)
    for offset in range(3):
        fill(store, offset, 2_000)
    store.close()
    damage(tmp_path / "s", 0.05)
    with pytest.raises(StoreDamaged, match=r"a block past .* can't be read"):
        BandStore(tmp_path / "s", HEADER)


def test_damage_is_told_from_a_disk_that_refuses(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 1, 10_000)
    store.close()
    damage(tmp_path / "s")
    store = BandStore(tmp_path / "s", HEADER)
    contents = store.contents()
    with pytest.raises(StoreDamaged, match="checksum"):
        list(map(contents.record, range(10_000)))
    with pytest.raises(OSError, match="lock"):
        BandStore(tmp_path / "s", HEADER)
    store.close(flush=False)
    (tmp_path / "s" / "CURRENT").unlink()
    with pytest.raises(StoreDamaged, match="CURRENT is missing"):
        BandStore(tmp_path / "s", HEADER)


def test_a_checkpoint_is_a_store_of_that_offset(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER)
    fill(store, 1, 100)
    fill(store, 2, 50)
    store.checkpoint(tmp_path / "copy")
    before = store.contents().buckets()
    fill(store, 3, 50)
    copy = BandStore(tmp_path / "copy", HEADER)
    assert (copy.offset, copy.documents, copy.contents().buckets()) == (2, 150, before)
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


@pytest.mark.parametrize(
    "way", ["memtables", pytest.param("level 0", marks=pytest.mark.slow(ci=False))]
)
def test_a_write_that_has_to_wait_holds_up_no_other_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The disk takes 100 kB a second: less than is written, or than has to be merged."""
    brake = 2

    def slowed(options: StoreOptions, memory: StoreMemory | None) -> Options:
        found = tuned(options, memory)
        found.set_ratelimiter(100 << 10, 10_000, 10)
        if way == "level 0":
            found.set_level_zero_file_num_compaction_trigger(brake)
        return found

    monkeypatch.setattr(worker.index.store, "tuned", slowed)
    if way == "level 0":
        monkeypatch.setattr(worker.index.rocksdb, "SLOWED_FROM", brake)
        monkeypatch.setattr(worker.index.rocksdb, "HELD_FROM", brake + 1)
    options = StoreOptions(write_buffer_bytes=1 << 16)
    store = BandStore(tmp_path / "s", HEADER, options=options)
    ticking = Ticking()
    longest, ticks = 0.0, 0
    for offset in range(1, 21):
        decision = store.decide(random_documents(200, first=store.inserted), RULES)
        began, before = perf_counter(), ticking.ticks
        store.apply(decision, offset=offset, documents=1)
        waited = perf_counter() - began
        if waited > longest:
            longest, ticks = waited, ticking.ticks - before
        assert not store.db.property_int_value("rocksdb.is-write-stopped")
        assert not store.db.property_int_value("rocksdb.actual-delayed-write-rate")
    ticking.end()
    store.close()
    assert longest > 0.3, "nothing had to wait"
    assert store.stalled_seconds > 0.3
    assert ticks >= 5


def test_an_empty_store_takes_other_parameters(tmp_path: Path) -> None:
    other = {**HEADER, "rows": 8}
    BandStore(tmp_path / "s", HEADER).close()
    store = BandStore(tmp_path / "s", other)
    fill(store, 42, 2)
    store.close()
    with pytest.raises(HeaderMismatch, match="rows: it has 8, the settings say 7"):
        BandStore(tmp_path / "s", HEADER)
