"""Verification of stores with runs of several tiers: a sound one is, and each fault is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.filling import RULES, fill, random_documents
from worker.index.errors import StoreDamaged
from worker.index.inspection import verify_store
from worker.index.keyspace import FILTERS, PROGRESS, RECORDS, Progress, of_run
from worker.index.run_layout import FAN_IN
from worker.index.spans import span
from worker.index.store import BandStore, StoreOptions

RUN = 20
COLUMNS = range(1, 7, 2)
WRITES = FAN_IN + 5


def filled(path: Path) -> BandStore:
    """Return a store of shard 1 of 2 with runs of two tiers, an open run, and grown buckets."""
    header: dict[str, str | int | float | bool] = {"shard": 1, "shards": 2, "bucket_capacity": 32}
    store = BandStore(path, header, options=StoreOptions(run_documents=RUN))
    for offset in range(WRITES):
        fill(store, offset, RUN, COLUMNS)
    documents = random_documents(3, first=store.inserted, columns=COLUMNS)
    documents.keys[1] = 7
    store.apply(store.decide(documents, RULES), offset=WRITES, documents=3)
    assert {run.tier for run in store._cells.list.runs} == {0, 1}
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


def first_page(store: BandStore, place: int) -> tuple[bytes, bytes]:
    run = store._cells.list.runs[place]
    return next(store._tables.of(run.number))


def without_a_page(store: BandStore) -> None:
    key, _ = first_page(store, 0)
    run = store._cells.list.runs[0]
    assert run.merged
    del store._tables._families[run.number][key]


def out_of_order(store: BandStore) -> None:
    key, page = first_page(store, -1)
    store._db[key] = page[8:16] + page[:8] + page[16:]


def with_another_key(store: BandStore) -> None:
    key, page = first_page(store, -1)
    store._db[key] = b"\x5a\xa5\x0f\xf0\x33\xcc\x01\x02" + page[8:]


def of_a_document_of_another_run(store: BandStore) -> None:
    key, page = first_page(store, -1)
    store._db[key] = page[:-4] + bytes(4)


def with_an_empty_filter(store: BandStore) -> None:
    for run in store._cells.list.runs:
        for key, part in list(span(store._db, of_run(FILTERS, run.number))):
            store._db[key] = bytes(len(part))


def with_fewer_records(store: BandStore) -> None:
    for key, _ in list(span(store._db, RECORDS))[:1]:
        del store._db[key]


def with_a_record_twice(store: BandStore) -> None:
    (first, page), (second, _) = list(span(store._db, RECORDS))[:2]
    assert first != second
    store._db[second] = page


@pytest.mark.parametrize(
    ("breaks", "found"),
    [
        (without_a_page, "run 8: has 608 of 640 cells"),
        (out_of_order, "on the wrong page"),
        (with_another_key, "missing from the filter"),
        (of_a_document_of_another_run, "names document 0, and its run has"),
        (with_an_empty_filter, "missing from the filter"),
        (with_fewer_records, "it has 255 of 263 records"),
        (with_a_record_twice, "record 8: document 0 comes after document 7"),
    ],
)
def test_each_fault_is_named(
    tmp_path: Path, breaks: Callable[[BandStore], None], found: str
) -> None:
    store = filled(tmp_path / "s")
    breaks(store)
    store.close()
    faults = verify_store(tmp_path / "s").faults
    assert any(found in fault for fault in faults), faults


def test_a_page_that_is_cut_is_damage(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    key, page = first_page(store, -1)
    store._db[key] = page[:-1]
    store.close()
    with pytest.raises(StoreDamaged, match="bytes are not whole cells"):
        verify_store(tmp_path / "s")


def test_a_last_page_of_records_that_does_not_fit_is_damage(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    store._db[PROGRESS] = Progress(store.offset, 0, store.inserted - 1).pack()
    store.close()
    with pytest.raises(StoreDamaged, match=r"its last page has 7 of 262 records"):
        BandStore(tmp_path / "s", {"shard": 1, "shards": 2, "bucket_capacity": 32})
    assert "it has 263 of 262 records" in verify_store(tmp_path / "s").faults


def test_numbers_of_documents_are_whole(tmp_path: Path) -> None:
    store = filled(tmp_path / "s")
    numbers = np.concatenate([documents for _, _, _, documents, _ in store.contents().cells()])
    assert sorted(set(numbers.tolist())) == list(range(store.inserted))
    store.close()
