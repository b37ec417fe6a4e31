"""Route goes on from one generation's answers to the next one's."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.support.stages import DOCS, LAYOUT, document, process, topology, whole_log
from tests.worker.stages.lane_answers import FRAME, answer
from worker.bus import Record, TopicPartition
from worker.formats.base import DocumentOptions
from worker.formats.json import JsonFormat
from worker.formats.match_writer import MatchWriter
from worker.stages.base import StageError
from worker.stages.route import Route
from worker.topology import Topology

OLD, NEW, FRAMES = 2, 3, 8
FIRST = topology(OLD)
NEXT = FIRST.reindexed(1, NEW, 0.8)

Logs = dict[TopicPartition, list[Record]]


def made(current: Topology = FIRST, following: Topology | None = NEXT) -> Route:
    return Route(
        current,
        following,
        writer=MatchWriter(JsonFormat(DocumentOptions())),
        same_partitions={"unique": True, "duplicate": True, "rejected": False},
        clock=lambda: 0.0,
    )


def logs(hand_over: int) -> Logs:
    """Give documents, all duplicates to the earlier generation, and unique to the next one."""
    found: Logs = {DOCS: [document(offset) for offset in range(FRAMES * FRAME)]}
    for one, shards, numbers, matches in (
        (FIRST, OLD, range(hand_over), 1),
        (NEXT, NEW, range(hand_over, FRAMES), 0),
    ):
        for shard in range(shards):
            place = TopicPartition(one.matches(shard), 0)
            found[place] = [
                answer(shard, number, matches)._replace(topic=place.topic, offset=at)
                for at, number in enumerate(numbers)
            ]
    return found


class Run:
    """A lane that reads logs in any order, and is adopted anew now and then."""

    def __init__(self, stage: Route, given: Logs, seed: Random) -> None:
        self._stage = stage
        self._logs = given
        self._seed = seed
        self.committed = dict.fromkeys(given, 0)
        self.published: list[tuple[str, int]] = []
        self.adopt()

    def adopt(self, *without: TopicPartition) -> None:
        offsets = {at: offset for at, offset in self.committed.items() if at not in without}
        self._next = self._stage.adopt(offsets, whole_log)

    def step(self) -> None:
        place = self._seed.choice(sorted(self._next))
        start = self._next[place]
        records = self._logs[place][start : start + self._seed.randint(1, 3 * FRAME)]
        if records:
            self._next[place] = records[-1].offset + 1
            self._take(records)

    def _take(self, records: list[Record]) -> None:
        burst = process(self._stage, records, self._seed.choice((1, 1 << 30)))
        while burst.offsets:
            self.committed |= burst.offsets
            for one in burst.records:
                self.published.append((one.topic, int(json.loads(one.value or b"")["id"][1:])))
            self._stage.committed()
            burst = process(self._stage, (), 1 << 30)


@pytest.mark.parametrize("hand_over", [0, 3, FRAMES])
@pytest.mark.parametrize("seed", range(6))
def test_each_document_has_the_verdict_of_the_generation_whose_turn_it_is(
    hand_over: int, seed: int
) -> None:
    random = Random(seed)
    run = Run(made(), logs(hand_over), random)
    for _ in range(3_000):
        run.step()
        if random.random() < 0.03:
            run.adopt()
    last = hand_over * FRAME
    expected = [("duplicate" if at < last else "unique", at) for at in range(FRAMES * FRAME)]
    assert run.published == expected


def test_a_worker_that_lacks_the_next_answers_goes_on_with_those_in_use() -> None:
    given = logs(3)
    run = Run(made(), given, Random(1))
    run.adopt(TopicPartition(NEXT.matches(2), 0))
    for _ in range(500):
        run.step()
    assert [at for _, at in run.published] == list(range(3 * FRAME))


def test_a_worker_that_lacks_the_earlier_answers_waits_for_the_hand_over() -> None:
    run = Run(made(), logs(3), Random(2))
    run.adopt(TopicPartition(FIRST.matches(0), 0))
    for _ in range(500):
        run.step()
    assert run.published == []


def test_once_there_is_one_generation_a_gap_is_an_error() -> None:
    given = logs(3)
    stage = made(NEXT, None)
    places = [DOCS, *(TopicPartition(NEXT.matches(shard), 0) for shard in range(NEW))]
    stage.adopt(dict.fromkeys(places, 0), whole_log)
    with pytest.raises(StageError, match="a frame was lost or doubled"):
        process(stage, given[places[1]])


def test_the_names_are_the_generations_own_and_the_layout_is_the_frames() -> None:
    assert (NEXT.seats, NEXT.matches(2), NEXT.group("index")) == (
        "app.g1.shards",
        "app.g1.matches-2",
        "app.g1.index",
    )
    assert (NEXT.group("route"), NEXT.fingerprints) == ("app.route", "app.fingerprints")
    assert NEXT.layout.id == LAYOUT
