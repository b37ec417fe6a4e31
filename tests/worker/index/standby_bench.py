"""A standby in its thread, on a tape in place of a log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from time import monotonic

from worker.bus import Claim, OffsetOutOfRange, Record, TopicPartition
from worker.index.directory import ShardDirectories
from worker.index.keyspace import StoreHeader
from worker.index.recovery import LogRange, Recovery
from worker.index.standby import Standby
from worker.index.store import BandStore

PLACE = TopicPartition("shards", 3)
HEADER: StoreHeader = {"a": 1}
SECONDS = 60.0
OWNED = {PLACE: LogRange(0, 1_000, 1_000)}


class Tape:
    """A log that a thread may read while the test says how far the group has come."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.group = 0
        self.low = 0
        self.at: int | None = None
        self.furthest = 0
        self.value = b"x"
        self.closed = threading.Event()

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        assert partition == PLACE
        assert claim is None
        self.at = offset

    def stop(self, partition: TopicPartition) -> None:
        assert partition == PLACE
        self.at = None

    def read(self, limit: int, max_bytes: int, timeout: float) -> list[Record]:
        del max_bytes, timeout
        if self.at is None:
            return []
        if self.at < self.low:
            raise OffsetOutOfRange(PLACE, self.at, self.low, self.length)
        first, self.at = self.at, min(self.length, self.at + limit)
        self.furthest = max(self.furthest, self.at)
        return [Record(*PLACE, offset, 0, None, self.value) for offset in range(first, self.at)]

    def position(self, partition: TopicPartition) -> int | None:
        assert partition == PLACE
        return self.at

    def epoch(self, partition: TopicPartition) -> int | None:
        assert partition == PLACE
        return None

    def end(self, partition: TopicPartition) -> int | None:
        assert partition == PLACE
        return self.length

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        return dict.fromkeys(partitions, self.group)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        assert partition == PLACE
        return self.low, self.length

    def close(self) -> None:
        self.closed.set()


class Bench:
    """A standby in its thread, on a tape."""

    def __init__(self, directory: Path, *, length: int = 1_000) -> None:
        self.directories = ShardDirectories(directory, lambda _: HEADER)
        self.path = self.directories.path(PLACE.partition)
        self.tape = Tape(length)
        self.applied: list[int] = []
        self.later = 0.0
        self.recovery = Recovery(self.directories)
        self.standby = Standby(
            [PLACE],
            lambda: self.tape,
            self.recovery,
            self.directories,
            self.apply,
            background=True,
            clock=lambda: monotonic() + self.later,
        )

    def apply(self, shard: int, store: BandStore, records: list[Record]) -> None:
        assert shard == PLACE.partition
        assert [record.offset for record in records] == list(
            range(store.offset, store.offset + len(records))
        )
        self.applied += [record.offset for record in records]
        store.apply(None, offset=records[-1].offset + 1, documents=len(records))

    def taken_over(self) -> BandStore:
        """Take the store over, at once or, if it is at work, as soon as that has ended."""
        warm = self.standby.hand_over(OWNED)[PLACE]
        if isinstance(warm, BandStore):
            return warm
        assert warm.wait(SECONDS)
        return warm.result()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = monotonic() + SECONDS
        while not condition():
            assert monotonic() < deadline
