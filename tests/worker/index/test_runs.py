"""Runs: merged a little with every write, never many, and whole after any interruption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsh.index import DocumentBatch
from tests.support.breadth import slow
from tests.support.filling import RULES, fill, random_documents
from tests.support.killed_disk import left_by_kill
from worker.index.errors import StoreDamaged
from worker.index.keyspace import FILTERS
from worker.index.rocksdb import StoreOptions, span
from worker.index.store import BandStore
from worker.index.store_reader import ShardAnswer

HEADER: dict[str, str | int | float | bool] = {"test": 1}
COLUMNS = range(3)
FAN_IN = 8
RUN = 600
WRITE = 50
OPTIONS = StoreOptions(run_documents=RUN)


def opened(path: Path) -> BandStore:
    return BandStore(path, HEADER, options=OPTIONS)


def check_everything(store: BandStore) -> None:
    """Check that each document is found, and nothing else is there."""
    count = store.inserted
    found = [bucket.documents for bucket in store.contents().buckets().values()]
    assert sorted(found) == sorted([number] for number in range(count) for _ in COLUMNS)
    assert store.keys_estimate() == count * (2 + len(COLUMNS))


def test_runs_are_merged_so_that_there_are_never_many(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    filled: list[DocumentBatch] = []
    for offset in range(20 * RUN // WRITE):
        filled.append(fill(store, offset, WRITE, COLUMNS))
        runs = store.parts().runs
        assert all(runs.get(tier, 0) <= FAN_IN + 1 for tier in ("0", "1"))
    assert runs.keys() == {"memtable", "0", "1"}
    check_everything(store)
    for documents in filled[::20]:
        answers = store.reader().query(documents, RULES)
        assert [one.matches[0].id for one in answers] == documents.ids
    numbers = {int.from_bytes(key[1:5], "big") for key, _ in span(store.db, FILTERS)}
    assert store.contents().runs.keys() <= numbers
    assert len(numbers) <= len(store.contents().runs) + 1, "filters are left of runs that are gone"
    store.close()


@pytest.mark.parametrize("killed", [False, slow(True)])
def test_merging_goes_on_where_a_store_was_closed_or_killed(
    tmp_path: Path, *, killed: bool
) -> None:
    path = tmp_path / "s"
    store, reopened = opened(path), 0
    for turn in range(11 * RUN // WRITE):
        fill(store, turn, WRITE, COLUMNS)
        # What is in an unfinished file is lost, and merged again.
        if store.parts().runs.get("0", 0) >= FAN_IN and turn % 4 == 0 and reopened < 2:
            reopened += 1
            if killed:
                store.flush()
                left = tmp_path / str(turn)
                left_by_kill(path, left)
                path = left
            store.close()
            store = opened(path)
    assert reopened == 2
    assert store.parts().runs.keys() == {"memtable", "0", "1"}
    check_everything(store)
    store.close()


def test_documents_that_share_a_key_add_a_cell_and_a_mark(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", HEADER, options=StoreOptions(run_documents=2))
    for offset in range(8):
        documents = random_documents(2, first=store.inserted)
        documents.keys[:] = 7
        decision = store.decide(documents, RULES)
        store.apply(decision, offset=offset, documents=2)
    assert [*store.contents().runs.values()] == [4, 2, 2, 2, 2, 2, 2]
    assert store.contents().buckets() == {(0, 7): (list(range(16)), False)}
    store.close()


@pytest.mark.parametrize("written", [RUN, 9 * RUN])
def test_a_filter_that_isnt_whole_is_damage(tmp_path: Path, written: int) -> None:
    store = opened(tmp_path / "s")
    for offset in range(2 + written // WRITE):
        fill(store, offset, WRITE, COLUMNS)
    key, _ = next(span(store.db, FILTERS))
    del store.db[key]
    store.close()
    with pytest.raises(StoreDamaged, match=r"the filter of run \d+ isn't whole"):
        opened(tmp_path / "s")


class Readers:
    """Reads what a store held before a write, when the write has readers wait."""

    def __init__(self, store: BandStore) -> None:
        self.writing = random_documents(0)
        self.waited = 0
        self._store = store

    def __enter__(self) -> None:
        assert not any(answer.matches for answer in self.read(self.writing))
        first = max(0, self._store.inserted - WRITE)
        known = random_documents(WRITE, first=first, columns=COLUMNS)
        if first:
            assert all(answer.matches for answer in self.read(known))
        self.waited += 1

    def __exit__(self, *_: object) -> None:
        """Let readers in."""

    def read(self, documents: DocumentBatch) -> list[ShardAnswer]:
        return self._store.reader().query(documents, RULES)


@pytest.mark.parametrize("era", [None, 106 * WRITE, slow(108 * WRITE)])
def test_readers_see_nothing_of_a_write_before_they_wait(tmp_path: Path, era: int | None) -> None:
    """Also when an era ends: during a merge; or with the write that closes a full run.

    A document comes each millisecond, and nothing is older than the window.
    """
    window = None if era is None else 8 * era
    store = BandStore(tmp_path / "s", HEADER, options=replace(OPTIONS, window_ms=window))
    readers = Readers(store)
    writes = 10 * RUN // WRITE
    for offset in range(writes):
        readers.writing = random_documents(WRITE, first=store.inserted, columns=COLUMNS)
        decision = store.decide(readers.writing, RULES)
        store.apply(decision, offset=offset, documents=WRITE, readers=readers)
        assert all(answer.matches for answer in readers.read(readers.writing))
    assert readers.waited == writes
    parts = store.parts()
    assert parts.runs["1"] == 1
    assert parts.time_slices == (1 if era is None else 2)
    check_everything(store)
    store.close()
