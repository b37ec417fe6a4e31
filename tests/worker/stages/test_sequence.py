"""One order, cut into the columns of each shard."""

from __future__ import annotations

import pytest

from tests.worker.stages.parts import (
    DOCS,
    LAYOUT,
    document,
    fingerprint,
    no_watermarks,
    records,
    sequencer,
)
from worker.bus import OffsetOutOfRange, TopicPartition
from worker.frames import BandFrame, decode
from worker.stages import StageError


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

    def test_markers_are_dealt_with_by_offsets_alone(self) -> None:
        place = TopicPartition("fingerprints", 0)
        settled = sequencer(2).settle({place: 12})
        assert settled is not None
        assert (list(settled.records), settled.offsets) == ([], {place: 12})

    def test_a_worker_begins_where_the_log_does_if_that_is_later(self) -> None:
        place = TopicPartition("fingerprints", 0)
        assert sequencer(2).adopt({place: 5}, lambda _: (10, 20)) == {place: 10}
        assert sequencer(2).adopt({place: 15}, lambda _: (10, 20)) == {place: 15}

    def test_a_marker_may_be_gone_and_a_frame_may_not(self) -> None:
        place = TopicPartition("fingerprints", 0)
        assert sequencer(2).out_of_range(OffsetOutOfRange(place, 9, 10, 20)) == 10
        for position in (8, 30):
            with pytest.raises(StageError, match="deleted before they were read"):
                sequencer(2).out_of_range(OffsetOutOfRange(place, position, 10, 20))
