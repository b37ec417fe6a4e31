"""When fingerprint writes to a log: not before it is told to, and not after it was sealed."""

from __future__ import annotations

from tests.support.stages import (
    DOCS,
    LAYOUT,
    Processed,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
)
from worker.bus import Offset, TopicPartition
from worker.generations.turns import SEALED, WAITING
from worker.stages.base import Burst
from worker.stages.fingerprint import Fingerprint
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame

OTHER = TopicPartition("documents", 1)


def spans(burst: Processed) -> list[tuple[int, int]]:
    """Return the ranges of a burst's frames."""
    found = [
        decode(FingerprintFrame, r.value, LAYOUT)
        for r in records(burst.records, "app.fingerprints")
    ]
    return [(frame.start, frame.end) for frame in found]


class TestSealed:
    def test_partitions_are_sealed_where_they_are_and_not_read(self) -> None:
        stage = fingerprint(sealed=True)
        assert stage.adopt({DOCS: 7, OTHER: Offset(5, SEALED)}, no_watermarks) == {}
        burst = process(stage, [])
        assert burst == Burst([], {DOCS: Offset(7, SEALED)})
        stage.committed()
        assert not process(stage, []).offsets

    def test_what_was_not_committed_is_sealed_again(self) -> None:
        stage = fingerprint(sealed=True)
        stage.adopt({DOCS: 7}, no_watermarks)
        assert process(stage, []) == process(stage, []) == Burst([], {DOCS: Offset(7, SEALED)})
        stage.adopt({DOCS: Offset(7, SEALED)}, no_watermarks)
        assert not process(stage, []).offsets

    def test_a_worker_with_an_earlier_plan_reads_nothing_of_it(self) -> None:
        stage = fingerprint()
        assert stage.adopt({DOCS: Offset(2, SEALED), OTHER: 3}, no_watermarks) == {OTHER: 3}
        assert not process(stage, []).offsets
        assert not process(stage, (), quiet={DOCS: 9}).offsets

    def test_positions_of_an_earlier_stage_are_not_covered(self) -> None:
        stage = fingerprint(sealed=True)
        stage.adopt({DOCS: 7}, no_watermarks)
        assert process(stage, (), quiet={DOCS: 9}) == Burst([], {DOCS: Offset(7, SEALED)})


class TestBegin:
    def begun(self) -> Fingerprint:
        stage = fingerprint(starts={DOCS: 4, OTHER: 8})
        found = stage.adopt({DOCS: Offset(1, WAITING), OTHER: 11}, no_watermarks)
        assert found == {DOCS: 4, OTHER: 11}
        return stage

    def test_nothing_is_read_before_there_is_a_start(self) -> None:
        stage = fingerprint()
        assert stage.adopt({DOCS: Offset(1, WAITING)}, no_watermarks) == {}
        assert not process(stage, []).offsets

    def test_the_start_is_committed_even_if_nothing_comes(self) -> None:
        stage = self.begun()
        assert process(stage, []) == Burst([], {DOCS: 4})
        stage.committed()
        assert not process(stage, []).offsets

    def test_the_first_frame_begins_there(self) -> None:
        burst = process(self.begun(), [document(5)])
        assert spans(burst) == [(4, 6)]
        assert burst.offsets == {DOCS: 6}

    def test_a_start_goes_with_the_frames_of_other_partitions(self) -> None:
        stage = self.begun()
        burst = process(stage, [document(11)._replace(partition=1)])
        assert spans(burst) == [(11, 12)]
        assert burst.offsets == {DOCS: 4, OTHER: 12}

    def test_what_was_sealed_later_does_not_begin_again(self) -> None:
        stage = fingerprint(starts={DOCS: 4})
        assert stage.adopt({DOCS: Offset(2, SEALED)}, no_watermarks) == {}
        assert not process(stage, []).offsets
