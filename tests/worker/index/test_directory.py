"""Where stores lie, what lies beside them, and what of it is removed."""

from __future__ import annotations

from pathlib import Path

from worker.index.directory import ShardDirectories, beside, shard_name, stores_in
from worker.index.store import BandStore, StoreHeader

HEADER: StoreHeader = {"bands": 18, "rows": 7}


def test_a_store_put_aside_is_out_of_the_way_and_replaces_the_one_before(tmp_path: Path) -> None:
    directories = ShardDirectories(tmp_path, lambda _: HEADER)
    for offset in (1, 2):
        store = directories.open(0)
        assert store.offset == 0
        store.apply(None, offset=offset, documents=0)
        store.close()
        aside = directories.put_aside(0, "a test")
    kept = BandStore(aside, HEADER)
    assert kept.offset == 2
    kept.close()


def test_stores_are_found_by_shard_and_nothing_else_is(tmp_path: Path) -> None:
    directories = ShardDirectories(tmp_path, lambda shard: {"shard": shard})
    for shard in (12, 3):
        directories.open(shard).close()
    directories.put_aside(12, "a test")
    directories.open(12).close()
    (tmp_path / "lock").touch()
    assert list(stores_in(tmp_path).items()) == [
        (3, tmp_path / shard_name(3)),
        (12, directories.path(12)),
    ]
    assert stores_in(tmp_path / "nowhere") == {}


def test_what_was_left_half_made_is_removed_and_what_can_be_used_stays(tmp_path: Path) -> None:
    directories = ShardDirectories(tmp_path, lambda _: HEADER)
    store = directories.path(7)
    half_made = [
        beside(store, "fetching"),
        beside(store, "checkpoint"),
        beside(store, "tables"),
        beside(beside(store, "aside"), "tables"),
    ]
    for path in (store, beside(store, "aside"), *half_made):
        path.mkdir()
    directories.tidy()
    assert sorted(tmp_path.iterdir()) == [store, beside(store, "aside")]
