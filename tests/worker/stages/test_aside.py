"""Ranges of documents that are set aside: rejected unread, covered by frames, passed by route."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stages import (
    DOCS,
    LAYOUT,
    Processed,
    document,
    fingerprint,
    no_watermarks,
    process,
    records,
    route,
    through,
    whole_log,
)
from worker.bus import Outgoing, PartitionUnreadable, Record, TopicPartition
from worker.stages.fingerprint import Fingerprint
from worker.wire.codec import decode
from worker.wire.fingerprints import FingerprintFrame
from worker.wire.frame import SetAside, beyond

ASIDE = (SetAside(0, 2, 5),)
MATCHES = TopicPartition("app.matches-0", 0)


def rejected(outgoing: list[Outgoing]) -> list[tuple[int, str]]:
    """Return the offset and the code of what was rejected."""
    found = []
    for one in outgoing:
        if one.topic == "rejected":
            own = dict(one.headers)
            code = (own["neardup-error-reason"] or b"").decode().partition(":")[0]
            assert (one.key, one.value) == (None, None)
            found.append((int(own["neardup-error-offset"] or b""), code))
    return found


def spans(burst: Processed) -> list[tuple[int, int, list[int], list[int]]]:
    """Return what frames cover: from, to, the documents, and what was read and not judged."""
    found = []
    for record in records(burst.records, "app.fingerprints"):
        frame = decode(FingerprintFrame, record.value, LAYOUT)
        own = (frame.offsets + frame.start).tolist(), (frame.accounted + frame.start).tolist()
        found.append((frame.start, frame.end, *own))
    return found


def unreadable(offset: int, place: TopicPartition = DOCS) -> PartitionUnreadable:
    return PartitionUnreadable(place, offset, "it can't be unpacked", whole=True)


def done(stage: Fingerprint) -> Processed:
    burst = process(stage, [])
    stage.committed()
    return burst


class TestFingerprint:
    def test_a_batch_that_can_t_be_read_is_rejected_and_covered(self) -> None:
        stage = fingerprint(aside=ASIDE)
        assert stage.adopt({DOCS: 0}, no_watermarks) == {DOCS: 0}
        assert process(stage, [document(0), document(1)]).offsets
        stage.committed()
        assert stage.unreadable(unreadable(2)) is None
        burst = done(stage)
        assert rejected(burst.records) == [(n, "unreadable") for n in (2, 3, 4)]
        assert spans(burst) == [(2, 5, [], [2, 3, 4])]
        assert burst.offsets == {DOCS: 5}
        assert (burst.more, burst.starts) == (False, {DOCS: 5})
        after = process(stage, [document(5)])
        assert after.starts == {}
        assert spans(after) == [(5, 6, [5], [])]

    @pytest.mark.parametrize("begin", [2, 3, 4])
    def test_a_group_that_stands_there_reads_nothing_of_it(self, begin: int) -> None:
        stage = fingerprint(aside=ASIDE)
        other = TopicPartition("documents", 1)
        assert stage.adopt({DOCS: begin, other: 7}, no_watermarks) == {other: 7}
        burst = done(stage)
        assert [offset for offset, _ in rejected(burst.records)] == [*range(begin, 5)]
        assert spans(burst) == [(begin, 5, [], [*range(begin, 5)])]
        assert burst.starts == {DOCS: 5}

    def test_markers_before_it_are_covered_and_not_rejected(self) -> None:
        stage = fingerprint(aside=ASIDE)
        stage.adopt({DOCS: 0}, no_watermarks)
        assert stage.unreadable(unreadable(2)) is None
        burst = done(stage)
        assert spans(burst) == [(0, 5, [], [2, 3, 4])]
        assert [offset for offset, _ in rejected(burst.records)] == [2, 3, 4]

    def test_other_partitions_go_on_meanwhile(self) -> None:
        stage = fingerprint(aside=ASIDE)
        other = TopicPartition("documents", 1)
        stage.adopt({DOCS: 2, other: 0}, no_watermarks)
        burst = process(stage, [document(0)._replace(partition=1)])
        assert burst.offsets == {DOCS: 5, other: 1}
        assert spans(burst) == [(2, 5, [], [2, 3, 4]), (0, 1, [0], [])]

    def test_millions_of_offsets_take_several_transactions(self) -> None:
        stage = fingerprint(aside=(SetAside(0, 0, 12_000),))
        stage.adopt({DOCS: 0}, no_watermarks)
        bursts = [done(stage)]
        while bursts[-1].more:
            assert bursts[-1].starts == {}
            bursts.append(done(stage))
        assert [burst.offsets[DOCS] for burst in bursts] == [5_000, 10_000, 12_000]
        assert bursts[-1].starts == {DOCS: 12_000}

    def test_a_transaction_that_was_rolled_back_is_made_again(self) -> None:
        stage = fingerprint(aside=ASIDE)
        for _ in range(2):
            stage.adopt({DOCS: 2}, no_watermarks)
            burst = process(stage, [])
            assert len(rejected(burst.records)) == 3
            assert burst.starts == {DOCS: 5}

    def test_what_is_not_set_aside_ends_the_worker_with_what_to_do(self) -> None:
        stage = fingerprint(aside=ASIDE)
        stage.adopt({DOCS: 0}, no_watermarks)
        with pytest.raises(PartitionUnreadable, match="`neardup skip 0 7` has all of it rejected"):
            stage.unreadable(unreadable(7))

    def test_a_damaged_log_is_no_case_for_it(self) -> None:
        stage = fingerprint()
        stage.adopt({DOCS: 0}, no_watermarks)
        with pytest.raises(PartitionUnreadable) as raised:
            stage.unreadable(PartitionUnreadable(DOCS, 7, "the batch there is damaged"))
        assert "skip" not in str(raised.value)


class TestRoute:
    def answered(self, path: Path) -> tuple[list[Record], list[Record]]:
        """Return the documents around a range that is set aside, and the answers for all."""
        documents, answers = through(path, [document(n) for n in (0, 1)])
        return documents, answers[0]

    def test_it_goes_on_after_the_range_that_no_answer_names(self, tmp_path: Path) -> None:
        documents, answers = self.answered(tmp_path)
        stage = route(aside=(SetAside(0, 2, 5),))
        stage.adopt({DOCS: 0, MATCHES: 0}, whole_log)
        assert process(stage, [*documents, *answers]).offsets
        assert stage.unreadable(unreadable(2)) == 5

    def test_it_begins_after_the_range(self) -> None:
        stage = route(aside=(SetAside(0, 2, 5), SetAside(0, 5, 6)))
        assert stage.adopt({DOCS: 3, MATCHES: 0}, whole_log) == {DOCS: 6, MATCHES: 0}

    def test_what_is_not_set_aside_ends_the_worker_with_what_to_do(self) -> None:
        stage = route()
        stage.adopt({DOCS: 0, MATCHES: 0}, whole_log)
        with pytest.raises(PartitionUnreadable, match="neardup skip 0 7"):
            stage.unreadable(unreadable(7))
        with pytest.raises(PartitionUnreadable) as raised:
            stage.unreadable(unreadable(7, MATCHES))
        assert "skip" not in str(raised.value)


@pytest.mark.parametrize(
    ("offset", "after"), [(0, None), (1, 6), (4, 6), (5, 6), (6, None), (9, None)]
)
def test_ranges_that_meet_are_one(offset: int, after: int | None) -> None:
    aside = (SetAside(0, 5, 6), SetAside(0, 1, 5), SetAside(1, 6, 10))
    assert beyond(aside, 0, offset) == after
