"""One order, cut into the columns of each shard."""

from __future__ import annotations

from tests.worker.stages.parts import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    no_watermarks,
    records,
    sequencer,
)
from worker.bus import TopicPartition
from worker.frames import BandFrame, decode


class TestSequence:
    def test_every_shard_gets_its_columns_and_times_are_bounded(self) -> None:
        first = fingerprint()
        first.adopt({DOCS: 0}, no_watermarks)
        future = document(1)._replace(timestamp=4_000_000_000_000)
        burst = first.process([document(0), future, document(2)._replace(timestamp=-1)])
        assert burst is not None
        (frame,) = records(burst.records, "fingerprints", first=77)
        cut = sequencer(4).process([frame._replace(timestamp=9_000)])
        assert cut is not None
        assert cut.offsets == {TopicPartition("fingerprints", 0): 78}
        parts = [decode(BandFrame, out.value, LAYOUT) for out in cut.records]
        assert [out.partition for out in cut.records] == [0, 1, 2, 3]
        assert [len(part.keys) // 8 // 3 for part in parts] == [5, 5, 5, 4]
        times = memoryview(parts[0].times).cast("q").tolist()
        assert times == [1_000, 9_000 + 60_000, 9_000]
        assert {part.number for part in parts} == {77}
        assert [bool(part.checksums) for part in parts] == [True, False, False, False]
        assert [part.accounted for part in parts] == [b"", None, None, None]
