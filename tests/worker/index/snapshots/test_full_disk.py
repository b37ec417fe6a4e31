"""A disk that takes no more ends the stage with a line that says so; nothing is lost by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.breadth import slow
from worker.index.rocksdb import StoreOptions
from worker.index.store import BandStore

_FILLED = """
import os, resource, signal, sys
from pathlib import Path
from tests.support.filling import fill
from worker.bus import TopicPartition
from worker.index.directory import ShardDirectories
from worker.index.owner import OwnedShards
from worker.index.recovery import Recovery
from worker.index.store import StoreOptions
from worker.stages.base import StageError

path, way = Path(sys.argv[1]), sys.argv[2]
options = StoreOptions(write_buffer_bytes=1 << 16, flush_documents=5_000)
place = TopicPartition("shards", 0)
directories = ShardDirectories(path, lambda _: {"a": 1}, options=options)
shards = OwnedShards(Recovery(directories), directories, background=False)
shards.adopt({place: 1 << 30}, lambda _: (0, 1 << 30))
# Files may grow to 200 kB and no further, as a quota would have it.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
store = shards.owned[place].store
try:
    for number in range(1, 10_000):
        with shards.guarded(place):
            fill(store, number, 1_000)
            if way == "checkpoint":
                store.checkpoint(path.with_name(f"checkpoint-{number}"))
except StageError as error:
    print(store.offset, number, error)
    try:
        shards.close()
    except StageError as again:
        print("closed", again)
    sys.exit(3)
"""


@pytest.mark.parametrize("way", ["write", slow("checkpoint")])
def test_a_full_disk_ends_the_stage_and_loses_nothing(tmp_path: Path, way: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FILLED, str(tmp_path / "s"), way],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == 3, ended.stderr
    assert "the index can't be read or written" in ended.stdout
    assert "File too large. Check the disk's space" in ended.stdout
    reached, failed_at = map(int, ended.stdout.split()[:2])
    assert reached in {failed_at, failed_at - 1}  # a write that failed has moved no offset
    after = BandStore(tmp_path / "s" / "shard-000", {"a": 1}, options=StoreOptions())
    assert 0 <= after.offset <= reached
    assert len(after.contents().buckets()) == 1_000 * after.offset
    after.close()
