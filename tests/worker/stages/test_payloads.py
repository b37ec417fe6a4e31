"""Payloads that are read beside a group: none is missed, and few are kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.bus import Claim, LogReader, Outgoing, PartitionUnreadable, Record, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.stages.base import StageError
from worker.stages.budget import record_cost
from worker.stages.payloads import Payloads
from worker.wire.frame import SetAside


class Noting:
    """A reader that notes where it was started, and what is read."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self.started: list[tuple[int, int]] = []
        self.running: set[int] = set()
        self.end, self.committed, self.watermarks = (
            reader.end,
            reader.committed,
            reader.watermarks,
        )
        self.position, self.close, self.epoch = reader.position, reader.close, reader.epoch

    def start(self, partition: TopicPartition, offset: int, claim: Claim | None = None) -> None:
        self.started.append((partition.partition, offset))
        self.running.add(partition.partition)
        self._reader.start(partition, offset, claim)

    def stop(self, partition: TopicPartition) -> None:
        self.running.remove(partition.partition)
        self._reader.stop(partition)

    def read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        return self._reader.read(limit, max_bytes, timeout)


class Reading:
    """Documents of some sizes, by partition, and what reads them."""

    def __init__(self, sizes: Sequence[Sequence[int]], buffer_bytes: int) -> None:
        self.bus = MemoryBus()
        self.bus.create_topic("documents", len(sizes))
        for partition, those in enumerate(sizes):
            for size in those:
                self.bus.append(Outgoing("documents", partition, None, b"x" * size))
        self.reader = Noting(self.bus.log_reader("group", ["documents"]))
        self.payloads = Payloads("documents", lambda: self.reader, buffer_bytes)

    def find(self, wanted: dict[int, int]) -> dict[int, Record | None]:
        """Read until all wanted payloads are here, or are found to be gone."""
        found: dict[int, Record | None] = {}
        left = dict(wanted)
        while left:
            for partition, offset in list(left.items()):
                taken = self.payloads.take(partition, offset + 1)
                if taken and taken[-1].offset == offset:
                    found[partition] = taken[-1]
                    del left[partition]
                elif self.payloads.reached(partition) > offset:
                    found[partition] = None
                    del left[partition]
            if left:
                self.payloads.read(left, wait=True)
        return found


_SIZES = st.lists(st.lists(st.integers(0, 900), min_size=8, max_size=12), min_size=1, max_size=5)
_WANTED = st.lists(st.dictionaries(st.integers(0, 4), st.integers(1, 4)), max_size=12)


@given(sizes=_SIZES, wanted=_WANTED, buffer_bytes=st.integers(1, 12_000))
def test_what_is_wanted_comes_and_what_is_ahead_is_bounded(
    sizes: list[list[int]], wanted: list[dict[int, int]], buffer_bytes: int
) -> None:
    reading = Reading(sizes, buffer_bytes)
    largest = record_cost(Record("documents", 0, 0, 0, None, b"x" * 900))
    following = [-1] * len(sizes)
    for ahead in wanted:
        for partition, step in ahead.items():
            if partition < len(sizes):
                following[partition] += step
        asked = {
            partition: following[partition]
            for partition in ahead
            if partition < len(sizes) and following[partition] < len(sizes[partition])
        }
        for partition, record in reading.find(asked).items():
            assert record is not None
            assert (record.partition, record.offset) == (partition, asked[partition])
            assert len(record.value or b"") == sizes[partition][asked[partition]]
        assert reading.payloads.cost <= buffer_bytes + largest


def test_each_partition_is_started_once_while_there_is_room() -> None:
    reading = Reading([[100] * 50] * 3, 1 << 20)
    for offset in range(50):
        reading.find({offset % 3: offset})
    assert sorted(reading.reader.started) == [(0, 0), (1, 1), (2, 2)]


def test_partitions_that_are_ahead_are_stopped_and_started_again_where_they_were() -> None:
    reading = Reading([[100] * 40, [100] * 40], 10_000)
    reading.find({0: 0})
    assert reading.reader.running == {0}
    reading.find({1: 39})
    assert reading.reader.running == {1}
    assert all(reading.find({0: offset})[0] for offset in range(1, 40))
    starts = [at for number, at in reading.reader.started if number == 0]
    assert len(starts) < 6
    assert starts == sorted(set(starts))


def test_partitions_that_are_no_longer_ahead_are_read_again_before_they_are_wanted() -> None:
    reading = Reading([[100] * 40, [100] * 80], 10_000)
    reading.find({0: 0})
    reading.find({1: 39})
    assert reading.reader.running == {1}
    reading.payloads.take(0, 40)
    reading.find({1: 79})
    assert reading.reader.running == {0, 1}


def test_what_was_deleted_is_reached_without_a_record() -> None:
    reading = Reading([[1] * 6], 1 << 20)
    reading.bus.trim("documents", 0, 4)
    assert reading.find({0: 2}) == {0: None}
    record = reading.find({0: 4})[0]
    assert record is not None
    assert record.offset == 4


def test_what_is_deleted_while_it_is_ahead_is_kept() -> None:
    reading = Reading([[1] * 6], 1 << 20)
    reading.find({0: 0})
    reading.bus.trim("documents", 0, 6)
    assert reading.find({0: 5})[0] is not None


def test_a_payload_past_the_end_is_an_error() -> None:
    reading = Reading([[1]], 1 << 20)
    with pytest.raises(StageError, match="truncated"):
        reading.payloads.read({0: 5}, wait=True)


def test_after_it_forgets_it_starts_where_it_is_asked_to() -> None:
    reading = Reading([[1] * 6], 1 << 20)
    reading.find({0: 4})
    reading.payloads.forget()
    assert (reading.payloads.cost, reading.reader.running) == (0, set())
    assert reading.find({0: 1})[0] is not None
    assert reading.reader.started == [(0, 4), (0, 1)]


def test_nothing_is_connected_before_something_is_wanted() -> None:
    connected = []
    bus = MemoryBus()
    bus.create_topic("documents", 1)

    def connect() -> LogReader:
        connected.append(True)
        return bus.log_reader("group", ["documents"])

    payloads = Payloads("documents", connect, 100)
    payloads.forget()
    payloads.close()
    assert not connected
    payloads.read({0: 0}, wait=False)
    assert connected == [True]


class Unpackable(Noting):
    """A reader that can't unpack a batch of each partition."""

    def __init__(self, reader: LogReader, offsets: range) -> None:
        super().__init__(reader)
        self._offsets = offsets

    def read(self, limit: int, max_bytes: int, timeout: float) -> Sequence[Record]:
        for number in sorted(self.running):
            place = TopicPartition("documents", number)
            if (at := self.position(place) or 0) in self._offsets:
                raise PartitionUnreadable(place, at, "it can't be unpacked", whole=True)
        return super().read(min(limit, 1), max_bytes, timeout)


@pytest.mark.parametrize("first", [0, 3, 4])
def test_what_is_set_aside_is_passed(first: int) -> None:
    reading = Reading([[10] * 8], 10_000)
    reading.reader = Unpackable(reading.reader, range(3, 6))
    aside = (SetAside(0, 3, 6),)
    reading.payloads = Payloads("documents", lambda: reading.reader, 10_000, aside)
    found = [reading.find({0: offset})[0] for offset in range(first, 8)]
    offsets = [None if one is None else one.offset for one in found]
    assert offsets == [None if 3 <= offset < 6 else offset for offset in range(first, 8)]


def test_what_is_not_set_aside_is_said() -> None:
    reading = Reading([[10] * 8], 10_000)
    reading.reader = Unpackable(reading.reader, range(3, 6))
    with pytest.raises(PartitionUnreadable, match="neardup skip 0 3"):
        reading.find({0: 3})
