"""A shard whose disk is lost or damaged goes on with the same verdicts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.breadth import slow
from tests.support.embedded import by_id
from tests.worker.index.snapshot_run import SHARDS, TEXTS, SnapshotRun, lose_everything, lose_one
from worker.metrics import table
from worker.stages.base import StageError


def lose_the_header(run: SnapshotRun) -> None:
    (run.store_path(1) / "CURRENT").unlink()


def flip_bits(run: SnapshotRun) -> None:
    for path in run.store_path(1).glob("*.sst"):
        data = bytearray(path.read_bytes())
        data[len(data) // 3 : len(data) // 3 + 16] = b"\xa5" * 16
        path.write_bytes(data)


def cut_a_table(run: SnapshotRun) -> None:
    table = max(run.store_path(1).glob("*.sst"))
    table.write_bytes(table.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("trimmed", "lose"),
    [
        (True, lose_everything),
        slow(True, lose_one),
        slow(True, lose_the_header),
        (True, flip_bits),
        slow(True, cut_a_table),
        slow(False, lose_everything),
        (False, lose_one),
        slow(False, lose_the_header),
        slow(False, flip_bits),
        slow(False, cut_a_table),
    ],
)
def test_a_lost_store_comes_back_from_its_snapshot(
    tmp_path: Path,
    expected: dict[str, object],
    lose: Callable[[SnapshotRun], None],
    *,
    trimmed: bool,
) -> None:
    run = SnapshotRun(tmp_path, trim_log=trimmed)
    for first in range(0, 90, 30):
        run.feed_some(first, first + 30)
        run.snapshot()
    run.feed_some(90, 100)
    assert bool(run.log_start) == trimmed
    assert [len(run.manifests(shard)) for shard in range(SHARDS)] == [2, 2]
    run.close()
    lose(run)
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    run.prove(tmp_path)
    run.close()


def test_a_damaged_snapshot_is_named_and_an_older_one_taken(
    tmp_path: Path, expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True)
    for first in (0, 50):
        run.feed_some(first, first + 50)
        run.snapshot()
    run.close()
    lose_everything(run)
    for shard in range(SHARDS):
        older, newer = (path.read_text() for path in run.manifests(shard))
        files = run.kept / "neardup" / f"shard-{shard:03d}" / "files"
        (damaged,) = (f for f in files.iterdir() if f.name in newer and _is_table(f, older))
        data = bytearray(damaged.read_bytes())
        data[100] ^= 1
        damaged.write_bytes(data)
    caplog.set_level("INFO")
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    named = [r.getMessage() for r in caplog.records if "trying an older one" in r.getMessage()]
    assert len(named) == SHARDS
    assert ".sst" in named[0]
    run.close()


def _is_table(file: Path, older: str) -> bool:
    """Tell whether only the newer snapshot has this file, and it isn't a small one."""
    return file.name not in older and file.stat().st_size > 3_000


def test_without_a_good_snapshot_and_without_a_log_the_stage_ends(tmp_path: Path) -> None:
    run = SnapshotRun(tmp_path, trim_log=True, keep=1)
    for first in (0, 25):
        run.feed_some(first, first + 25)
        run.snapshot()
    run.close()
    lose_everything(run)
    shutil.rmtree(run.kept)
    run.open()
    with pytest.raises(StageError, match=r"begins at .* no good snapshot in .*/kept"):
        run.finish()


def test_the_log_is_there_as_long_as_there_are_fewer_snapshots_than_are_kept(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True, keep=2)
    run.feed_some(0, 50)
    run.snapshot()
    run.close()
    lose_everything(run)
    shutil.rmtree(run.kept)  # The one that there was.
    run.open()
    run.feed(TEXTS[50:])
    assert by_id(run.finish()) == expected


def test_snapshots_of_other_parameters_are_not_taken(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 50)
    run.snapshot()
    for shard in range(SHARDS):
        (manifest,) = run.manifests(shard)
        text = manifest.read_text()
        assert '"bucket_capacity": 3' in text
        manifest.write_text(text.replace('"bucket_capacity": 3', '"bucket_capacity": 4'))
    run.close()
    lose_everything(run)
    run.open()
    run.feed_some(50, 120)
    assert by_id(run.finish()) == expected
    run.close()


def test_a_record_that_is_gone_replaces_the_store_while_it_works(
    tmp_path: Path, expected: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True)
    run.feed_some(0, 50)
    run.snapshot()
    run.feed_some(50, 80)
    store = run.index.stores()[0]
    for key in list(store.db.keys()):
        if isinstance(key, bytes) and key[0] == 0xFE:
            store.db.delete(key)
    store.shard.limit(0, 0)
    run.feed_some(80, 120)
    assert by_id(run.finish()) == expected
    assert any("of the records is missing" in record.getMessage() for record in caplog.records)
    assert run.store_path(0).with_name("shard-000.aside").exists()
    run.close()


def test_a_store_that_the_log_has_passed_is_restored(
    tmp_path: Path, expected: dict[str, object]
) -> None:
    run = SnapshotRun(tmp_path, trim_log=True, keep=1)
    run.feed_some(0, 30)
    run.close()
    old = tmp_path / "old"
    shutil.copytree(run.store_path(0), old)
    run.open()
    run.feed_some(30, 100)
    run.snapshot()
    run.close()
    lose_one(run)
    shutil.copytree(old, run.store_path(0))
    run.open()
    run.feed_some(100, 120)
    assert by_id(run.finish()) == expected
    run.close()


def test_what_a_killed_worker_left_half_made_is_removed(tmp_path: Path) -> None:
    run = SnapshotRun(tmp_path)
    run.feed_some(0, 10)
    run.close()
    left = [run.store_path(0).with_name(f"shard-000.{kind}") for kind in ("fetching", "checkpoint")]
    for path in left:
        path.mkdir()
        (path / "000001.sst").write_bytes(b"x")
    run.open()
    assert not any(path.exists() for path in left)
    run.close()


def test_shipping_that_fails_is_a_warning_and_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = SnapshotRun(tmp_path)
    run.kept.write_text("in the way")
    run.feed_some(0, 20)
    run.snapshot()
    assert sum("was not shipped" in record.getMessage() for record in caplog.records) == SHARDS
    metrics = run.embedded.application.metrics
    assert metrics.value(table.SNAPSHOTS, "failed") == SHARDS
    run.kept.unlink()
    run.snapshot()
    assert metrics.value(table.SNAPSHOTS, "shipped") == SHARDS
    assert metrics.value(table.SNAPSHOT_OFFSET, "0") == run.index.stores()[0].offset
    assert not list(run.store_path(0).parent.glob("*.checkpoint"))
    run.close()


def test_an_offset_that_has_not_moved_is_not_shipped_again(tmp_path: Path) -> None:
    run = SnapshotRun(tmp_path)
    run.finish()
    run.snapshot()
    assert not run.kept.exists()
    run.feed_some(0, 20)
    run.snapshot()
    run.snapshot()
    run.snapshot()
    assert len(run.manifests(0)) == 1
    run.close()
