"""Nobody waits for a standby, and its store is never at work in two threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.worker.index.standby_bench import HEADER, OWNED, PLACE, SECONDS, Bench
from worker.bus import Record, TopicPartition
from worker.index.errors import StoreDamaged
from worker.index.opening import Opening
from worker.index.owner import OwnedShards
from worker.index.store import BandStore
from worker.stages.order import FrameOutOfPlace

STEP = 8


class Gated(Bench):
    """A standby that applies frames only while the gate is open.

    Attributes:
        inside: frames are being applied.
        fails: raised in place of the next write.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.gate = threading.Event()
        self.inside = threading.Event()
        self.fails: Exception | None = None
        self.writing = threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Fail if somebody else is at work on the store."""
        assert self.writing.acquire(blocking=False), "two threads at work on one store"
        try:
            yield
        finally:
            self.writing.release()

    def apply(self, shard: int, store: BandStore, records: list[Record]) -> None:
        with self.alone():
            self.inside.set()
            assert self.gate.wait(SECONDS), "nobody opened the gate: whoever would do it waits"
            fails, self.fails = self.fails, None
            if fails is not None:
                raise fails
            super().apply(shard, store, records)
            self.inside.clear()

    def shards(self) -> OwnedShards:
        return OwnedShards(self.recovery, self.directories, None, self.standby, background=True)

    def begin(self) -> None:
        """Bring it to where frames are being applied."""
        self.tape.group = 30
        self.standby.hand_over({})
        assert self.inside.wait(SECONDS)


def watermarks(place: TopicPartition) -> tuple[int, int]:
    assert place == PLACE
    return 0, 1_000


def adopted(shards: OwnedShards, bench: Bench) -> int:
    """Wait until the shard has been taken on; give its offset."""
    starts: dict[TopicPartition, int] = {}

    def started() -> bool:
        starts.update(shards.started())
        return bool(starts)

    bench.until(started)
    assert not shards.waiting()
    return starts[PLACE]


def test_neither_lag_nor_an_adoption_waits_while_frames_are_applied(tmp_path: Path) -> None:
    bench = Gated(tmp_path)
    bench.begin()
    assert bench.standby.lag() == {3: 30}
    shards = bench.shards()
    assert shards.adopt({PLACE: 30}, watermarks) == {}
    assert shards.waiting() == {PLACE}
    assert shards.started() == {}
    assert bench.inside.is_set()  # All the while.
    bench.gate.set()
    assert adopted(shards, bench) == STEP
    shard = shards.owned[PLACE]
    assert (shard.committed, shard.silent) == (30, True)
    with bench.alone():
        shard.store.apply(None, offset=9, documents=1)
    shards.close()
    assert bench.applied == list(range(STEP))


def test_what_was_only_promised_can_be_given_back(tmp_path: Path) -> None:
    bench = Gated(tmp_path)
    bench.begin()
    shards = bench.shards()
    for _ in range(2):
        assert shards.adopt({PLACE: 30}, watermarks) == {}
        assert shards.adopt({}, watermarks) == {}
        assert shards.waiting() == frozenset()
    assert bench.inside.is_set()
    bench.gate.set()
    bench.until(lambda: len(bench.applied) == 30)
    assert bench.applied == list(range(30))
    shards.close()
    store = BandStore(bench.path, HEADER)  # Nobody has it open.
    assert store.offset == 30
    store.close()


@pytest.mark.parametrize("fails", [StoreDamaged("a block"), FrameOutOfPlace("one was lost")])
def test_a_store_that_fails_when_it_is_promised_is_opened_anew(
    tmp_path: Path, fails: Exception
) -> None:
    bench = Gated(tmp_path)
    bench.begin()
    shards = bench.shards()
    shards.adopt({PLACE: 30}, watermarks)
    bench.fails = fails
    bench.gate.set()
    assert adopted(shards, bench) == 0
    assert bench.path.with_name("shard-003.aside").exists()
    shards.close()


def test_a_frame_out_of_place_is_not_applied_and_the_shard_begins_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Gated(tmp_path)
    bench.gate.set()
    bench.tape.group = 16
    bench.standby.hand_over({})
    bench.until(lambda: len(bench.applied) == 16)
    bench.fails = FrameOutOfPlace("one was lost")
    bench.tape.group = 40

    def warned() -> bool:
        return "can't be kept warm: one was lost" in caplog.text

    bench.until(warned)
    bench.later = 31.0
    bench.until(lambda: len(bench.applied) == 16 + 40)
    assert bench.applied == [*range(16), *range(40)]
    assert bench.path.with_name("shard-003.aside").exists()
    bench.standby.close()


def test_a_store_that_is_at_work_at_the_end_is_closed_by_who_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.index.standby._END_SECONDS", 0.05)
    bench = Gated(tmp_path)
    bench.begin()
    bench.standby.close()
    assert bench.inside.is_set()
    bench.gate.set()
    assert bench.tape.closed.wait(SECONDS)
    store = BandStore(bench.path, HEADER)  # Nobody has it open.
    assert store.offset == STEP
    store.close()


def test_a_store_is_at_work_in_one_thread_only(tmp_path: Path) -> None:
    bench = Gated(tmp_path)
    bench.gate.set()
    bench.tape.group = 1_000
    bench.standby.hand_over({})
    at_once = promised = 0
    for _ in range(60):
        seen = len(bench.applied)
        bench.until(lambda seen=seen: len(bench.applied) > seen or seen == 1_000)  # type: ignore[misc]
        warm = bench.standby.hand_over(OWNED).get(PLACE)
        at_once += isinstance(warm, BandStore)
        promised += isinstance(warm, Opening)
        if isinstance(warm, Opening):
            assert warm.wait(SECONDS)
            warm = warm.result()
        assert warm is not None
        with bench.alone():
            warm.apply(None, offset=warm.offset, documents=0)
            warm.flush()
        assert bench.standby.take(PLACE, warm)
    bench.until(lambda: len(bench.applied) == 1_000)
    assert bench.applied == list(range(1_000))
    bench.standby.close()
    assert at_once + promised == 60
