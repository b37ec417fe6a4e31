"""What all stores of a process share: the cache gives up what stores can't do without."""

from __future__ import annotations

import logging
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.filling import RULES, fill
from worker.index.keyspace import StoreHeader
from worker.index.memory import StoreMemory
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

MIB = 1 << 20
LEAST, MOST = 8 * MIB, 16 * MIB
HEADER: StoreHeader = {"bands": 18}

sizes = st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 64 * MIB)), max_size=30)


def told(memory: StoreMemory, steps: list[tuple[int, int | None]]) -> dict[int, int]:
    """Hold and release by store, and return what is held."""
    held: dict[int, int] = {}
    for store, size in steps:
        if size is None:
            memory.release(Path(str(store)))
            held.pop(store, None)
        else:
            memory.hold(Path(str(store)), size)
            held[store] = size
    return held


@given(st.integers(0, 128 * MIB), st.integers(1 * MIB, 32 * MIB), sizes)
def test_nothing_passes_the_whole_unless_the_stores_need_it(
    size: int, buffers: int, steps: list[tuple[int, int | None]]
) -> None:
    """The cache may lag by less than a MiB: a change of its size evicts blocks."""
    memory = StoreMemory(size, write_buffers=buffers)
    held = sum(told(memory, steps).values())
    assert memory.held == held
    left = size - buffers - held
    assert memory.short == (left < LEAST)
    if left < LEAST:
        assert memory.capacity == LEAST
    else:
        assert abs(memory.capacity - min(MOST, left)) < MIB


@given(sizes)
def test_a_cache_of_a_fixed_size_stays(steps: list[tuple[int, int | None]]) -> None:
    memory = StoreMemory(100 * MIB, write_buffers=10 * MIB, cache=50 * MIB)
    stores = told(memory, steps)
    held = sum(stores.values())
    assert memory.capacity == 50 * MIB
    assert memory.short == (held > 40 * MIB)
    assert memory.spare == max(0, 40 * MIB - held) // max(1, len(stores))


def test_a_lack_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    memory = StoreMemory(100 * MIB, write_buffers=10 * MIB)
    with caplog.at_level(logging.WARNING):
        told(memory, [(1, 82 * MIB), (1, 83 * MIB), (1, 90 * MIB), (2, 1)])
        (told_once,) = caplog.records
        assert told_once.getMessage() == (
            "the index needs 83 MiB of memory for its newest cells and filters, and worker.memory"
            " leaves 82 for them: the worker takes more than worker.memory. Raise it, or see"
            " 'Memory' in docs/how-to/operate.md"
        )
        told(memory, [(1, None), (2, 90 * MIB)])
    assert len(caplog.records) == 2


def stores(folder: Path, memory: StoreMemory, number: int) -> list[BandStore]:
    options = StoreOptions(write_buffer_bytes=1 * MIB, run_documents=2_000, flush_documents=10**6)
    return [
        BandStore(folder / str(n), HEADER, memory=memory, options=options) for n in range(number)
    ]


@pytest.mark.parametrize("shards", [1, 5])
def test_stores_are_counted_while_they_are_open(tmp_path: Path, shards: int) -> None:
    memory = StoreMemory(64 * MIB, write_buffers=8 * MIB)
    opened = stores(tmp_path, memory, shards)
    numbers = count(1)
    for _ in range(3):
        for store in opened:
            fill(store, next(numbers), 1_000)
        assert memory.held == sum(store.held_bytes() for store in opened) > 0
    for store in opened:
        store.close()
    assert (memory.held, memory.capacity) == (0, MOST)
    opened = stores(tmp_path, memory, shards)
    assert memory.held == sum(store.held_bytes() for store in opened) > 0
    for store in opened:
        store.close()


def test_stores_keep_what_they_have_read_as_long_as_there_is_room(tmp_path: Path) -> None:
    options = StoreOptions(write_buffer_bytes=256 << 10)
    kept = []
    for size in (40, 9):  # MiB, of which 8 are for blocks
        memory = StoreMemory(size * MIB, write_buffers=MIB // 2)
        path = tmp_path / str(size)
        store = BandStore(path, HEADER, memory=memory, options=options)
        filled = [fill(store, number + 1, 2_000) for number in range(10)]
        for documents in filled:
            assert all(one.matches for one in store.reader().query(documents, RULES))
            store.apply(store.decide(documents, RULES), offset=store.offset + 1, documents=2_000)
        kept.append(store.shard.sizes()["record_bytes"])
        store.flush()
        assert memory.held == store.held_bytes()
        store.close()
    assert kept[0] > 10 * kept[1] > 10 * (100 << 10)


def test_write_buffers_of_all_stores_stay_below_their_common_limit(tmp_path: Path) -> None:
    """No store's own buffer is ever full: what flushes them is the sum.

    It is exceeded by what is being flushed, of which each store has one at most here.
    """
    limit = 4 * MIB
    memory = StoreMemory(64 * MIB, write_buffers=limit)
    options = StoreOptions(write_buffer_bytes=32 * MIB, flush_documents=10**6)
    opened = [
        BandStore(tmp_path / str(n), HEADER, memory=memory, options=options) for n in range(8)
    ]
    numbers = count(1)
    most = 0
    for _ in range(8):
        for store in opened:
            fill(store, next(numbers), 500)
            most = max(most, memory.buffers.get_usage())
    assert limit / 2 < most < 2 * limit
    assert all(store.size_bytes() for store in opened)
    for store in opened:
        store.close()
