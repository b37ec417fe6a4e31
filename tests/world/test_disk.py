"""What the tests take for a kill is what a kill leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.filling import fill
from tests.support.killed_disk import left_by_kill, settle
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

FLUSHED, WRITTEN = 6, 11


def write(path: Path) -> BandStore:
    """Write eleven documents, of which the first six are flushed."""
    store = BandStore(path, {"shard": 0}, options=StoreOptions(flush_documents=FLUSHED))
    for number in range(1, WRITTEN + 1):
        fill(store, number, 1)
        settle([store])
    return store


def content(store: BandStore) -> tuple[int, int, list[int]]:
    found = [number for number, record in enumerate(store.contents().records()) if record]
    return store.offset, len(store.contents().buckets()), found


def content_of(path: Path) -> tuple[int, int, list[int]]:
    store = BandStore(path, {"shard": 0})
    try:
        return content(store)
    finally:
        store.close()


KEPT = (FLUSHED, FLUSHED, list(range(FLUSHED)))
ALL = (WRITTEN, WRITTEN, list(range(WRITTEN)))


def test_what_was_not_flushed_is_gone(tmp_path: Path) -> None:
    store = write(tmp_path / "state" / "shard")
    assert content(store) == ALL
    left_by_kill(tmp_path / "state", tmp_path / "left")
    assert content_of(tmp_path / "left" / "shard") == KEPT
    assert content(store) == ALL
    store.close()


def test_a_killed_process_leaves_the_same(tmp_path: Path) -> None:
    path = tmp_path / "shard"
    source = (
        "import sys; from pathlib import Path; from tests.world.test_disk import write;"
        "store = write(Path(sys.argv[1])); print('written', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, str(path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()
    assert process.returncode < 0
    assert content_of(path) == KEPT


def test_a_disk_that_was_never_written_is_left_empty(tmp_path: Path) -> None:
    left_by_kill(tmp_path / "none", tmp_path / "left")
    assert list((tmp_path / "left").iterdir()) == []
