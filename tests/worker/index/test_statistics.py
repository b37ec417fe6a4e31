"""Statistics of a store are those of its buckets, counted one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.corpus import scaled
from tests.worker.index.decisions import RULES, WINDOW, batch, drawn_documents, with_forgotten
from worker.index.contents import Key
from worker.index.errors import StoreDamaged
from worker.index.inspection import store_statistics
from worker.index.read_only import ReadOnlyStore
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

COLUMNS = [0, 1, 2, 3]


def filled(path: Path, window: int | None, seed: int) -> None:
    """Make a store with runs, a memtable, buckets of all sizes, and forgotten documents."""
    rules = replace(RULES, window_ms=window, capacity=5)
    events = with_forgotten(drawn_documents(700, seed, crowded=True), seed)
    store = BandStore(path, {"test": 1}, options=StoreOptions(run_documents=3, window_ms=window))
    for low in range(0, len(events), 6):
        documents = batch(events[low : low + 6], COLUMNS)
        decision = store.decide(documents, rules)
        store.apply(decision, offset=low + 6, documents=len(documents.ids))
    store.close()


def classes(buckets: Mapping[Key, list[int]]) -> Counter[int]:
    """Count buckets by the classes of their sizes, one by one."""
    most = [1, 2, 4, 8, 16]
    return Counter(next(one for one in most if len(b) <= one) for b in buckets.values())


@pytest.mark.parametrize("seed", range(scaled(1, 3)))
@pytest.mark.parametrize("window", [slow(None), WINDOW])
def test_they_are_those_of_all_buckets(tmp_path: Path, window: int | None, seed: int) -> None:
    filled(tmp_path / "s", window, seed)
    found = store_statistics(tmp_path / "s", largest=1_000)
    with ReadOnlyStore(tmp_path / "s") as store:
        contents = store.contents()
        found_buckets = contents.buckets()
        records = dict(enumerate(contents.records(), contents.first))
    divided = sum(bucket.beyond and bool(bucket.documents) for bucket in found_buckets.values())
    buckets = {key: held for key, (held, _) in found_buckets.items() if held}
    assert found.sizes == classes(buckets)
    assert found.divided == divided
    assert divided > 0
    assert found.buckets == len(buckets)
    assert found.entries == sum(map(len, buckets.values()))
    assert found.grown >= sum(len(bucket) > 1 for bucket in buckets.values())
    assert found.documents == len(records)
    assert found.bytes_a_document == found.facts.size_bytes / len(records)
    assert (found.eras > 1) == (window is not None)
    listed = {(one.band, one.key): one for one in found.largest}
    assert len(listed) == len(found.largest) == min(1_000, len(buckets))
    smallest = found.largest[-1].entries
    assert {key for key, bucket in buckets.items() if len(bucket) > smallest} <= set(listed)
    for key, one in listed.items():
        assert one.entries == len(buckets[key])
        newest = records[max(buckets[key])]
        assert one.id == (newest.id.decode() if newest else None)


@pytest.mark.slow
def test_the_largest_come_first_and_are_few(tmp_path: Path) -> None:
    filled(tmp_path / "s", None, 1)
    found = store_statistics(tmp_path / "s", largest=5).largest
    everything = store_statistics(tmp_path / "s", largest=10_000).largest
    assert len(found) == 5
    assert found == everything[:5]
    assert [one.entries for one in everything] == sorted(
        (one.entries for one in everything), reverse=True
    )


def test_an_empty_store(tmp_path: Path) -> None:
    BandStore(tmp_path / "s", {"test": 1}).close()
    found = store_statistics(tmp_path / "s")
    assert (found.buckets, found.entries, found.documents, found.largest) == (0, 0, 0, [])
    assert found.bytes_a_document == 0


@pytest.mark.slow
def test_a_grown_bucket_without_a_cell_is_damage(tmp_path: Path) -> None:
    filled(tmp_path / "s", None, 1)
    store = BandStore(tmp_path / "s", {"test": 1}, options=StoreOptions(run_documents=3))
    for run in store.contents().runs:
        for key, _ in list(store.tables.of(run)):
            del store.tables.families[run][key]
    store.flush()
    store.close()
    with pytest.raises(StoreDamaged, match="has grown, and has no cell"):
        store_statistics(tmp_path / "s")
