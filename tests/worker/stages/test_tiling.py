"""No frame is applied over a gap: not by an owner, live or replaying, not by a standby."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.stages import DOCS, document, fingerprint, index, process, records, seated
from worker.bus import Record, TopicPartition
from worker.index.keyspace import COVERAGE
from worker.index.store import BandStore
from worker.stages.index import Index
from worker.stages.order import Coverage, FrameOutOfPlace, Span

SEAT = TopicPartition("app.shards", 0)
WRONG = {
    "skipped": ([0, 1, 3, 4], "at offset 3 .* from offset 3, but 2 comes next: a frame was lost"),
    "doubled": ([0, 1, 1, 2], "at offset 2 .* from offset 1, but 2 comes next: a frame was lost"),
    "swapped": ([0, 2, 1, 3], "at offset 1 .* from offset 2, but 1 comes next: a frame was lost"),
}


def frames(order: list[int]) -> list[Record]:
    """Give frames of a document each, by number; the log has them one after the other."""
    first = fingerprint()
    first.adopt({DOCS: 0}, lambda _: (0, 0))
    cut: list[Record] = []
    for number in range(max(order) + 1):
        burst = process(first, [document(number)])
        cut += seated(records(burst.records, "app.fingerprints"))
    skips = order == sorted(set(order))
    return [
        cut[number]._replace(offset=number if skips else place)
        for place, number in enumerate(order)
    ]


def one_by_one(stage: Index[BandStore], given: list[Record]) -> None:
    for record in given:
        process(stage, [record])
        stage.committed()


def spans(store: BandStore) -> dict[int, Span]:
    return dict(store.coverage)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("committed", [0, 10], ids=["live", "replaying"])
def test_an_owner_refuses_a_frame_out_of_place(tmp_path: Path, kind: str, committed: int) -> None:
    order, said = WRONG[kind]
    stage = index(tmp_path)
    stage.adopt({SEAT: committed}, lambda _: (0, 10))
    with pytest.raises(FrameOutOfPlace, match=said):
        one_by_one(stage, frames(order))
    before = stage.stores()[0]
    assert spans(before) == {0: Span(0, before.offset, before.offset)}
    stage.close()
    # Nor is it taken when it comes in one batch with others, or after a restart.
    stage = index(tmp_path)
    stage.adopt({SEAT: max(committed, before.offset)}, lambda _: (0, 10))
    with pytest.raises(FrameOutOfPlace, match=said):
        process(stage, [record for record in frames(order) if record.offset >= before.offset])
    assert stage.stores()[0].offset == before.offset
    stage.close()


def test_what_is_covered_is_rolled_back_with_the_rest(tmp_path: Path) -> None:
    stage = index(tmp_path)
    stage.adopt({SEAT: 0}, lambda _: (0, 10))
    first, second = frames([0, 1])
    process(stage, [first])
    assert spans(stage.stores()[0]) == {}
    stage.adopt({SEAT: 0}, lambda _: (0, 10))  # As after an abort.
    stage.committed()
    assert spans(stage.stores()[0]) == {}
    process(stage, [first, second])
    stage.committed()
    assert spans(stage.stores()[0]) == {0: Span(0, 2, 2)}
    stage.close()


def test_a_store_from_before_takes_its_first_frame_as_the_beginning(tmp_path: Path) -> None:
    stage = index(tmp_path)
    stage.adopt({SEAT: 0}, lambda _: (0, 10))
    process(stage, frames([0, 1]))
    stage.committed()
    stage.close()
    store = BandStore(tmp_path / "shard-000", {"shard": 0})
    del store.db[COVERAGE]
    store.close()
    stage = index(tmp_path)
    stage.adopt({SEAT: 2}, lambda _: (0, 10))
    later = frames(list(range(6)))
    process(stage, later[3:5])  # Whether one is missing here, nobody can know.
    stage.committed()
    assert spans(stage.stores()[0]) == {0: Span(3, 5, 2)}
    process(stage, later[5:])
    stage.committed()
    assert spans(stage.stores()[0]) == {0: Span(3, 6, 3)}
    stage.close()


def test_what_an_earlier_version_left_behind_is_not_believed(tmp_path: Path) -> None:
    store = BandStore(tmp_path / "s", {"a": 1})
    coverage = Coverage()
    coverage.add(4, 10, 20)
    coverage.add(1, 0, 5)
    store.apply(None, offset=7, documents=0, coverage=coverage)
    old = coverage.encode(7)
    store.close()
    store = BandStore(tmp_path / "s", {"a": 1})
    assert spans(store) == {1: Span(0, 5, 5), 4: Span(10, 20, 10)}
    store.apply(None, offset=8, documents=0)
    assert spans(store) == {1: Span(0, 5, 5), 4: Span(10, 20, 10)}
    store.db[COVERAGE] = old  # A version that knows nothing of it goes on to offset 8.
    store.close()
    store = BandStore(tmp_path / "s", {"a": 1})
    assert spans(store) == {}
    store.close()
