"""Runs: merged a little with every write, never many, and whole after any interruption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import worker.index.draft
import worker.index.eras
import worker.index.merge
import worker.index.run_tables
import worker.index.runs
from lsh.index import BucketKeys, DocumentBatch
from tests.support.breadth import broad
from tests.support.filling import RULES, fill, random_documents
from tests.support.killed_disk import left_by_kill
from worker.index.eras import ERAS_A_WINDOW
from worker.index.errors import StoreDamaged
from worker.index.keyspace import FILTERS, of_run
from worker.index.merge import Merge
from worker.index.run_layout import FAN_IN, packed_pages
from worker.index.spans import span
from worker.index.store import BandStore, StoreOptions

HEADER: dict[str, str | int | float | bool] = {"test": 1}
COLUMNS = range(3)
RUN = 600
WRITE = 50
OPTIONS = StoreOptions(run_documents=RUN)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.index.merge, "_PAGES_A_STEP", 1)
    monkeypatch.setattr(worker.index.run_tables, "_TABLE_BYTES", 1 << 12)


def opened(path: Path) -> BandStore:
    return BandStore(path, HEADER, options=OPTIONS)


def check_everything(store: BandStore) -> None:
    """Check that each document is found by each of its keys, and nothing else is there."""
    count = store.inserted
    found = store.contents().buckets()
    assert sorted(found.values()) == sorted([number] for number in range(count) for _ in COLUMNS)
    keys = BucketKeys.unpacked(sorted(found))
    assert list(store.buckets(keys).values()) == [found[key] for key in sorted(found)]
    listed = store._cells.list
    ranges = [(run.first, run.end) for run in listed.runs]
    assert [first for first, _ in ranges] == [0, *(end for _, end in ranges)][: len(ranges)]
    assert store.keys_estimate() == count * (2 + len(COLUMNS))


def test_runs_are_merged_so_that_there_are_never_many(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    seen: set[int] = set()
    for offset in range(20 * RUN // WRITE):
        fill(store, offset, WRITE, COLUMNS)
        listed = store._cells.list
        for tier in (0, 1):
            assert len(listed.of_tier(tier)) <= FAN_IN + 1
        # One that is full, one that fills, and a new run's.
        assert all(tier.matrices <= 3 for tier in store._cells._tiers)
        seen.add(len(listed.merging))
    assert seen == {0, 1}
    assert {run.tier for run in store._cells.list.runs} == {0, 1}
    check_everything(store)
    numbers = {run.number for run in store._cells.list.runs}
    for gone in set(range(store._cells.list.next)) - numbers:
        assert list(span(store._db, of_run(FILTERS, gone))) == []
    store.close()


@pytest.mark.broad
def test_a_merge_ends_in_time_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the documents that come meanwhile have much fewer cells than those before."""
    hurried: list[int] = []
    monkeypatch.setattr(Merge, "end", lambda merge, _batch: hurried.append(merge.plan.tier))
    store, columns, write = opened(tmp_path / "s"), range(12), RUN // 4
    for offset in range(8 * RUN // write):
        fill(store, offset, write, columns)
    for offset in range(2 * RUN // write):
        documents = random_documents(write, first=store.inserted, columns=columns)
        documents.keys[1:] = 7
        store.apply(store.decide(documents, RULES), offset=offset, documents=write)
    assert len(store._cells.list.of_tier(1)) == 1
    assert hurried == []
    store.close()


def test_the_end_of_an_era_hurries_no_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes a run, however short, and the merge of those before may just have begun."""
    hurried: list[int] = []
    monkeypatch.setattr(Merge, "end", lambda merge, *_: hurried.append(merge.plan.tier))
    window = ERAS_A_WINDOW * (FAN_IN * RUN + 2 * WRITE)
    store = BandStore(tmp_path / "s", HEADER, options=replace(OPTIONS, window_ms=window))
    rules = replace(RULES, window_ms=window)
    listed, met = store._cells.list, list[tuple[int, int]]()
    for offset in range(10 * RUN // WRITE):
        documents = random_documents(WRITE, first=store.inserted, columns=COLUMNS)
        decision, eras = store.decide(documents, rules), len(listed.eras.kept)
        store.apply(decision, offset=offset, documents=WRITE)
        if len(listed.eras.kept) > eras:
            met.append((len(listed.of_tier(0)), len(listed.merging)))
    assert met == [(FAN_IN + 1, 1)], "no era ended while runs were merged"
    assert hurried == []
    assert len(listed.of_tier(1)) == 1
    check_everything(store)
    store.close()


@pytest.mark.broad
def test_merging_goes_on_where_a_store_was_closed_or_killed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store = opened(path)
    steps = set()
    for turn in range(10 * RUN // WRITE):
        fill(store, turn, WRITE, COLUMNS)
        for merging in store._cells.list.merging:
            steps.add(merging.done)
            if turn % 2:
                store.flush()
                left = tmp_path / str(turn)
                left_by_kill(path, left)
                store.close()
                path = left
            else:
                store.close()
            store = opened(path)
            assert store._cells.list.merging == [merging]
    assert len(steps) > 3, "no merge was interrupted"
    assert {run.tier for run in store._cells.list.runs} == {0, 1}
    check_everything(store)
    store.close()


@pytest.mark.broad
def test_a_merge_that_is_late_ends_before_there_are_more_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.index.runs, "_HASTE", 0)
    store = opened(tmp_path / "s")
    for offset in range(20):
        fill(store, offset, RUN, COLUMNS)
        assert len(store._cells.list.of_tier(0)) <= FAN_IN + 1
    assert len(store._cells.list.of_tier(1)) == 2
    check_everything(store)
    store.close()


def test_a_run_may_have_no_cells(tmp_path: Path) -> None:
    """Documents that share a key, and have no other, add one cell and one mark together."""
    store = BandStore(tmp_path / "s", HEADER, options=StoreOptions(run_documents=2))
    for offset in range(8):
        documents = random_documents(2, first=store.inserted)
        documents.keys[:] = 7
        decision = store.decide(documents, RULES)
        store.apply(decision, offset=offset, documents=2)
    assert [run.cells for run in store._cells.list.runs] == [4, 2, 2, 2, 2, 2, 2]
    key = BucketKeys(np.zeros(1, np.uint8), np.array([7], np.uint64))
    assert store.buckets(key) == {0: list(range(16))}
    store.close()


@pytest.mark.parametrize(
    "haste",
    [
        0,
        *(pytest.param(one, marks=pytest.mark.exhaustive) for one in (0.1, 1.25)),
        broad(0.6),
        broad(100),
    ],
)
def test_merges_of_two_tiers_do_not_hinder_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, haste: float
) -> None:
    monkeypatch.setattr(worker.index.runs, "_HASTE", haste)
    store = BandStore(tmp_path / "s", HEADER, options=StoreOptions(run_documents=4))
    for offset in range(180):
        fill(store, offset, 4, COLUMNS)
        for tier in range(3):
            assert len(store._cells.list.of_tier(tier)) <= FAN_IN + 1
    assert {run.tier for run in store._cells.list.runs} == {0, 1, 2}
    check_everything(store)
    store.close()


@pytest.mark.parametrize("written", [RUN, 9 * RUN])
def test_a_filter_that_isnt_whole_is_damage(tmp_path: Path, written: int) -> None:
    store = opened(tmp_path / "s")
    for offset in range(2 + written // WRITE):
        fill(store, offset, WRITE, COLUMNS)
    key, _ = next(span(store._db, of_run(FILTERS, store._cells.list.runs[0].number)))
    del store._db[key]
    store.close()
    with pytest.raises(StoreDamaged, match=r"the filter of run \d+ isn't whole"):
        opened(tmp_path / "s")


class Readers:
    """Reads what a store held before a write, when the write has readers wait."""

    def __init__(self, store: BandStore) -> None:
        self.waiting = False
        self.writing = random_documents(0)
        self._store = store

    def __enter__(self) -> None:
        assert self.read(self.writing) == []
        first = max(0, self._store.inserted - WRITE)
        known = random_documents(WRITE, first=first, columns=COLUMNS)
        if first:
            assert len(self.read(known)) == len(COLUMNS) * WRITE
        self.waiting = True

    def __exit__(self, *_: object) -> None:
        self.waiting = False

    def give_way(self) -> None:
        assert not self.waiting

    def read(self, documents: DocumentBatch) -> list[list[int]]:
        """Return the buckets of documents, as a query reads them."""
        hashes = documents.keys.ravel()
        columns = np.repeat(np.array(documents.columns, np.uint8), len(documents.ids))
        order = np.lexsort((hashes, columns))
        keys = BucketKeys(columns[order], hashes[order])
        return list(self._store.reader().buckets(keys).values())


@pytest.mark.parametrize(
    ("haste", "era"),
    [
        broad(0, None),
        (1.25, 106 * WRITE),
        broad(0, 108 * WRITE),
        pytest.param(1.25, 108 * WRITE, marks=pytest.mark.exhaustive),
        pytest.param(1.25, None, marks=pytest.mark.exhaustive),
        pytest.param(0, 106 * WRITE, marks=pytest.mark.exhaustive),
    ],
)
def test_readers_wait_for_no_packing_and_see_nothing_before_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, haste: float, era: int | None
) -> None:
    """Whether a merge is worked on with every write, or ended at once; also when an era ends.

    A document comes each millisecond, and nothing is older than the window. The era ends during a
    merge; or with the write that closes a full run.
    """
    monkeypatch.setattr(worker.index.runs, "_HASTE", haste)
    monkeypatch.setattr(worker.index.eras, "ERAS_A_WINDOW", 100)
    options = replace(OPTIONS, window_ms=None if era is None else 100 * era)
    store = BandStore(tmp_path / "s", HEADER, options=options)
    readers, packed = Readers(store), list[bool]()

    def noted(*given: Any) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401 -- whatever it takes
        packed.append(readers.waiting)
        return packed_pages(*given)

    monkeypatch.setattr(worker.index.draft, "packed_pages", noted)
    monkeypatch.setattr(worker.index.merge, "packed_pages", noted)
    for offset in range(10 * RUN // WRITE):
        readers.writing = random_documents(WRITE, first=store.inserted, columns=COLUMNS)
        decision = store.decide(readers.writing, RULES)
        store.apply(decision, offset=offset, documents=WRITE, readers=readers)
        assert len(readers.read(readers.writing)) == len(COLUMNS) * WRITE
    listed = store._cells.list
    assert [run.tier for run in listed.runs].count(1) == 1
    assert len(listed.eras.kept) == (1 if era is None else 2)
    assert len(packed) > 20
    assert not any(packed)
    check_everything(store)
    store.close()
