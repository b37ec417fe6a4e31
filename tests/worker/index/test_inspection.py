"""Verification of stores with runs of several tiers: a sound one is, and each fault is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.filling import RULES, fill, random_documents
from worker.index.errors import StoreDamaged
from worker.index.inspection import verify_store
from worker.index.keyspace import (
    FILTERS,
    GROWN,
    OPEN_RUN,
    PROGRESS,
    RECORDS,
    Progress,
    Range,
)
from worker.index.rocksdb import StoreOptions, span
from worker.index.store import BandStore

RUN = 20
FAN_IN = 8
COLUMNS = range(1, 7, 2)
WRITES = FAN_IN + 5


def filled(path: Path) -> BandStore:
    """Return a store of shard 1 of 2 with runs of two tiers, a memtable, and grown buckets."""
    header: dict[str, str | int | float | bool] = {"shard": 1, "shards": 2, "bucket_capacity": 32}
    store = BandStore(path, header, options=StoreOptions(run_documents=RUN))
    for offset in range(WRITES):
        fill(store, offset, RUN, COLUMNS)
    documents = random_documents(3, first=store.inserted, columns=COLUMNS)
    documents.keys[1] = 7
    store.apply(store.decide(documents, RULES), offset=WRITES, documents=3)
    assert store.parts().runs.keys() == {"memtable", "0", "1"}
    return store


def test_a_sound_store_has_no_faults(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    store.close()
    findings = verify_store(tmp_path / "s")
    assert findings.faults == []
    documents = WRITES * RUN + 3
    assert findings.records == documents
    assert findings.buckets == documents * len(COLUMNS) - 2
    assert findings.entries == documents * len(COLUMNS)
    assert findings.facts.keys > documents


def without_a_page(store: BandStore) -> None:
    cells = store.contents().runs
    merged = max(cells, key=cells.__getitem__)
    key, _ = next(store.tables.of(merged))
    del store.tables.families[merged][key]


def with_a_page_that_is_cut(store: BandStore) -> None:
    run = next(iter(store.contents().runs))
    key, page = next(store.tables.of(run))
    store.tables.families[run][key] = page[:-1]


def with_another_filter(store: BandStore) -> None:
    one, other = list(span(store.db, FILTERS))[:2]
    store.db[one[0]] = other[1]


def cut(kind: Range) -> Callable[[BandStore], None]:
    def breaks(store: BandStore) -> None:
        key, value = next(span(store.db, kind))
        store.db[key] = value[:-1]

    return breaks


def with_fewer_records(store: BandStore) -> None:
    for key, _ in list(span(store.db, RECORDS))[:1]:
        del store.db[key]


def test_pages_that_are_missing_are_named(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    without_a_page(store)
    with_fewer_records(store)
    store.close()
    faults = verify_store(tmp_path / "s").faults
    assert any("has 608 of 640 cells" in fault for fault in faults), faults
    assert any("it has 255 of 263 records" in fault for fault in faults), faults


@pytest.mark.parametrize(
    "breaks",
    [
        with_another_filter,
        with_a_page_that_is_cut,
        *map(cut, (FILTERS, GROWN, OPEN_RUN, RECORDS)),
    ],
)
def test_a_value_that_differs_is_damage(
    tmp_path: Path, breaks: Callable[[BandStore], None]
) -> None:
    store = filled(tmp_path / "s")
    breaks(store)
    store.close()
    with pytest.raises(StoreDamaged, match=r"of key .* differ from what was written"):
        verify_store(tmp_path / "s")


def test_a_last_page_of_records_that_does_not_fit_is_damage(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    store.db[PROGRESS] = Progress(store.offset, 0, store.inserted - 1, store.clock).pack()
    store.close()
    with pytest.raises(StoreDamaged, match="its last page has 7 records, not 6"):
        BandStore(tmp_path / "s", {"shard": 1, "shards": 2, "bucket_capacity": 32})
    with pytest.raises(StoreDamaged, match="its last page has 7 records, not 6"):
        verify_store(tmp_path / "s")


def test_numbers_of_documents_are_whole(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    numbers = np.concatenate([page.documents for page in store.contents().cells()])
    assert sorted(set(numbers.tolist())) == list(range(store.inserted))
    store.close()
