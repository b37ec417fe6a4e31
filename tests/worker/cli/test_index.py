"""What operators see of shards and their snapshots, on stores that an embedded run has left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lsh import Parameters
from tests.support.command_line import dedupe, jsonl, neardup
from tests.support.embedded import Run
from tests.support.sealing import put_bucket
from tests.support.texts import near_copies
from worker.index.errors import StoreDamaged
from worker.index.inspection import Findings, verify_store
from worker.index.keyspace import OPEN_RUN
from worker.index.rocksdb import span
from worker.index.store import BandStore
from worker.process.state_directory import locked

SHARDS = 2
DOCUMENTS = 60
COLUMNS = Parameters().bands + 1


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a state directory, as a worker leaves it, and the settings."""
    folder = tmp_path_factory.mktemp("left")
    run = Run(folder, partitions=1, shards=SHARDS)
    run.feed(near_copies(DOCUMENTS, 5))
    run.finish()
    run.embedded.close()
    return folder


@pytest.fixture
def folder(left: Path, tmp_path: Path) -> Path:
    """Give a copy of it."""
    shutil.copytree(left / "state", tmp_path / "state")
    (tmp_path / "neardup.toml").write_text(
        f'[index]\nshards = {SHARDS}\nbucket_capacity = 3\nsnapshots.url = "{tmp_path / "kept"}"\n'
        f'[worker]\nstate_dir = "{tmp_path / "state"}"\n'
    )
    return tmp_path


def index(folder: Path, *arguments: str, status: int = 0) -> str:
    done = neardup("index", *arguments, "--config", folder / "neardup.toml")
    assert done.returncode == status, done.stderr.decode()
    return (done.stderr if status else done.stdout).decode()


def test_stats(folder: Path) -> None:
    rows = json.loads(index(folder, "stats", "--json"))
    assert [(row["shard"], row["documents"]) for row in rows] == [(0, DOCUMENTS), (1, DOCUMENTS)]
    assert rows[0]["offset"] > 0
    assert rows[0]["header"]["bucket_capacity"] == 3
    assert str(rows[0]["offset"]) in index(folder, "stats")


def test_stats_of_buckets(folder: Path) -> None:
    rows = json.loads(index(folder, "stats", "--buckets", "--json"))
    sound = json.loads(index(folder, "verify", "--json"))
    for row, verified in zip(rows, sound, strict=True):
        assert row["buckets"] == verified["buckets"]
        assert row["buckets"] < row["entries"] <= verified["entries"]
        assert row["kept_documents"] == verified["records"]
        assert sum(one["buckets"] for one in row["sizes"]) == row["buckets"]
        assert [(one["least"], one["most"]) for one in row["sizes"][:2]] == [(1, 1), (2, 2)]
        assert row["bytes_a_document"] > 0
        assert row["largest"][0]["entries"] > 1
        assert row["header"]["bucket_capacity"] == 3
    largest = rows[0]["largest"][0]
    lines = [line.split() for line in index(folder, "stats", "--buckets").splitlines()]
    shown = [str(largest["entries"]), str(largest["band"]), largest["key"], largest["id"]]
    assert shown in lines


def test_stats_of_a_kept_index(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert "--state: " in index(folder, "stats", "--state", str(kept), status=2)
    lines = jsonl(
        [{"id": "a\x1b", "text": "a few words"}, {"id": "b", "text": "quite another text"}]
    )
    dedupe("--state", kept, stdin=lines)
    (row,) = json.loads(index(folder, "stats", "--state", str(kept), "--buckets", "--json"))
    assert (row["documents"], row["kept_documents"], row["buckets"]) == (2, 2, 2 * COLUMNS)
    assert row["sizes"] == [{"least": 1, "most": 1, "buckets": 2 * COLUMNS}]
    assert {one["id"] for one in row["largest"]} == {"a\x1b", "b"}
    assert "\x1b" not in index(folder, "stats", "--state", str(kept), "--buckets")


def test_a_sound_index(folder: Path) -> None:
    assert index(folder, "verify").count("ok ") == SHARDS
    assert index(folder, "verify", "--shard", "1").count("ok ") == 1


def test_verify_as_json(folder: Path) -> None:
    rows = json.loads(index(folder, "verify", "--json"))
    assert [(row["shard"], row["state"], row["faults"]) for row in rows] == [
        (0, "ok", []),
        (1, "ok", []),
    ]
    assert rows[0]["records"] > 0
    path = folder / "state" / "shard-000"
    store = BandStore(path, verify_store(path).facts.header)
    with_a_document_twice(store)
    store.close()
    done = neardup("index", "verify", "--json", "--config", folder / "neardup.toml")
    assert done.returncode == 1
    assert done.stderr.startswith(b"neardup: 1 of 2 shards failed verification")
    first = json.loads(done.stdout)[0]
    assert (first["state"], len(first["faults"])) == ("wrong", 1)


def test_verify_snapshots_as_json(folder: Path) -> None:
    index(folder, "snapshot")
    rows = json.loads(index(folder, "verify", "--snapshots", "--json"))
    assert [(row["shard"], row["state"], row["damaged_files"]) for row in rows] == [
        (0, "ok", []),
        (1, "ok", []),
    ]


def test_snapshots_that_are_not_there_are_missed(folder: Path) -> None:
    said = f"no snapshots of neardup in {folder / 'kept'}; after a reindex, --app neardup.gN has"
    assert said in index(folder, "snapshots").replace("\n", " ")
    assert said in index(folder, "verify", "--snapshots", status=1)


def test_snapshots_with_another_signature_are_named(folder: Path) -> None:
    index(folder, "snapshot")
    key = folder / "key"
    key.write_text("k" * 64)
    settings = folder / "neardup.toml"
    settings.write_text(
        settings.read_text().replace("[worker]", f'snapshots.key_file = "{key}"\n[worker]')
    )
    done = neardup("index", "snapshots", "--config", settings)
    assert done.stderr.count(b" is left out: not signed, although") == SHARDS
    shutil.rmtree(folder / "state")
    assert "is left out: not signed, although" in index(folder, "restore", status=1)


def test_the_stores_of_a_later_generation_are_pointed_to(folder: Path) -> None:
    (folder / "state" / "g2").mkdir()
    for store in (folder / "state").glob("shard-*"):
        store.rename(folder / "state" / "g2" / store.name)
    said = index(folder, "stats", status=2)
    assert said.endswith("set --state-dir, or one of its directories after a reindex: g2\n")


def broken(store: BandStore, documents: list[int]) -> None:
    """Replace a bucket, which has a cell."""
    place = next(place for place in store.contents().buckets() if place[0] == 2)
    put_bucket(store, place, documents)


def without_a_record(store: BandStore) -> None:
    broken(store, [1 << 30])


def with_a_document_twice(store: BandStore) -> None:
    broken(store, [1, 1])


def too_many(store: BandStore) -> None:
    broken(store, [0, 1, 2, 3])


def emptied(store: BandStore) -> None:
    broken(store, [])


def cut_short(store: BandStore) -> None:
    key, packed = next(span(store.db, OPEN_RUN))
    store.db[key] = packed[:-1]


def unknown_to_the_filter(store: BandStore) -> None:
    put_bucket(store, (2, 7), [0])


def of_the_other_shard(store: BandStore) -> None:
    put_bucket(store, (3, 7), [0])


def with_a_hole(store: BandStore) -> None:
    _over_a_frame(store, 30)


def with_a_frame_twice(store: BandStore) -> None:
    _over_a_frame(store, -30)


def _over_a_frame(store: BandStore, skipped: int) -> None:
    """Apply a frame as if ``skipped`` documents before it had been applied, too."""
    coverage = store.coverage.copy()
    ((partition, span),) = coverage
    coverage.add(partition, span.end + skipped, span.end + skipped + 40)
    store.apply(
        None,
        offset=store.offset + 1,
        documents=40,
        coverage=coverage,
    )


def broken_shard(folder: Path, breaks: Callable[[BandStore], None]) -> Path:
    """Break a shard's store; return where it is."""
    path = folder / "state" / "shard-000"
    store = BandStore(path, verify_store(path).facts.header)
    breaks(store)
    store.close()
    return path


@pytest.mark.parametrize(
    ("breaks", "found"),
    [
        (
            with_a_hole,
            "documents, offsets 0 to 130: the applied frames cover 100 of 130 offsets:",
        ),
        (with_a_hole, "30 are missing"),
        (with_a_frame_twice, "30 are covered twice"),
        (with_a_document_twice, "of band 2: it names a document twice"),
        (too_many, "of band 2: 4 entries, at most 3 are allowed"),
        (emptied, "of band 2: it is empty"),
        (unknown_to_the_filter, "of band 2: missing from the filter"),
        (of_the_other_shard, "of band 3: the shard has no such band"),
    ],
)
def test_what_is_unsound_is_named(
    folder: Path, breaks: Callable[[BandStore], None], found: str
) -> None:
    path = broken_shard(folder, breaks)
    assert any(found in fault for fault in verify_store(path).faults)
    assert "1 of 2 shards failed verification" in index(folder, "verify", status=1)


@pytest.mark.parametrize(
    ("breaks", "found"),
    [
        (without_a_record, "a bucket names document 1073741824 of"),
        (cut_short, "differ from what was written"),
    ],
)
def test_what_cannot_be_is_damage(
    folder: Path, breaks: Callable[[BandStore], None], found: str
) -> None:
    path = broken_shard(folder, breaks)
    with pytest.raises(StoreDamaged, match=found):
        verify_store(path)
    assert "1 of 2 shards failed verification" in index(folder, "verify", status=1)


def test_a_damaged_block_is_found_although_the_iterator_hides_it(folder: Path) -> None:
    table = max((folder / "state" / "shard-001").glob("*.sst"), key=lambda f: f.stat().st_size)
    data = bytearray(table.read_bytes())
    data[2_000:2_016] = b"\xa5" * 16
    table.write_bytes(data)
    assert "1 of 2 shards failed verification" in index(folder, "verify", status=1)


def test_snapshot_list_lose_restore(folder: Path) -> None:
    assert index(folder, "snapshot").count("shipped") == SHARDS
    rows = json.loads(index(folder, "snapshots", "--json"))
    assert [(row["shard"], row["documents"], row["missing"]) for row in rows] == [
        (0, DOCUMENTS, []),
        (1, DOCUMENTS, []),
    ]
    before = index(folder, "stats", "--json")
    shutil.rmtree(folder / "state")
    assert index(folder, "restore").count("restored") == SHARDS
    assert [row["offset"] for row in json.loads(index(folder, "stats", "--json"))] == [
        row["offset"] for row in json.loads(before)
    ]
    assert index(folder, "verify").count("ok ") == SHARDS
    assert "exists; move it away first" in index(folder, "restore", status=2)


def test_a_store_that_a_worker_deletes_meanwhile_is_not_called_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deleted(path: Path) -> Findings:
        if path.name == "shard-001":
            shutil.rmtree(path)
        return verify_store(path)

    monkeypatch.setattr("worker.cli.index.verify_store", deleted)
    done = neardup("index", "verify", "--json", "--config", folder / "neardup.toml")
    assert done.returncode == 0
    assert [(row["shard"], row["state"]) for row in json.loads(done.stdout)] == [(0, "ok")]
    assert b"shard-001 is gone: a worker deletes what no shard uses any more" in done.stderr


def test_damaged_snapshots_are_named_and_not_restored(folder: Path) -> None:
    index(folder, "snapshot")
    (largest,) = sorted(
        (folder / "kept" / "neardup" / "shard-000" / "files").iterdir(),
        key=lambda path: path.stat().st_size,
    )[-1:]
    data = bytearray(largest.read_bytes())
    data[50] ^= 1
    largest.write_bytes(data)
    assert "1 damaged snapshot" in index(folder, "verify", "--snapshots", status=1)
    shutil.rmtree(folder / "state")
    assert "no intact snapshot of shard 0" in index(folder, "restore", status=1)
    assert not (folder / "state" / "shard-000").exists()
    assert (folder / "state" / "shard-001").exists()


def test_a_snapshot_of_other_settings_is_not_restored(folder: Path) -> None:
    index(folder, "snapshot")
    shutil.rmtree(folder / "state")
    settings = folder / "neardup.toml"
    settings.write_text(settings.read_text().replace("capacity = 3", "capacity = 5"))
    said = index(folder, "restore", status=2)
    assert "was made with bucket_capacity 3, but the settings say 5" in said


def test_a_snapshot_without_a_window_is_not_restored_with_one(folder: Path) -> None:
    index(folder, "snapshot")
    shutil.rmtree(folder / "state")
    settings = folder / "neardup.toml"
    settings.write_text(settings.read_text().replace("[index]", '[index]\nwindow = "30d"'))
    said = index(folder, "restore", status=2)
    assert "was made with window none, but the settings say 30d" in said


@pytest.mark.parametrize("command", ["snapshot", "restore"])
def test_a_worker_that_runs_is_left_alone(folder: Path, command: str) -> None:
    with locked(folder / "state"):
        said = index(folder, command, status=2)
    assert said.count("\n") == 1
    assert "a worker is running here; it" in said


def test_what_is_not_there_is_one_line(folder: Path) -> None:
    assert "has no shard 7" in index(folder, "verify", "--shard", "7", status=2)
    settings = folder / "neardup.toml"
    settings.write_text("\n".join(li for li in settings.read_text().split("\n") if "url" not in li))
    assert "index.snapshots.url: not set" in index(folder, "snapshot", status=2)
