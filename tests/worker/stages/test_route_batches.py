"""What route publishes doesn't depend on how its inputs are cut into batches."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from random import Random
from typing import Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.stages import DOCS, LAYOUT, document, process, route, whole_log
from worker.bus import Header, Outgoing, Record, TopicPartition
from worker.metrics import table
from worker.metrics.metrics import Metrics
from worker.stages.framing import checksum
from worker.wire.codec import encode
from worker.wire.ids import Ids
from worker.wire.matches import MatchFrame

SHARDS: Final = 2
HEADERS: tuple[Header, ...] = (("trace", b"\xff"), ("neardup-verdict", b"forged"), ("trace", None))
REJECTED: Final = {"changed": "payload-changed", "gone": "payload-gone", "unseen": "not-judged"}
JUDGED: Final = {"unique", "duplicate", "changed", "gone"}
KINDS: Final = (*JUDGED, "tombstone", "deleted", "unreadable", "unseen", "absent")
"""What is at an offset. Deleted: a payload that forgets a document. Unreadable: rejected by
fingerprint. Unseen: written where fingerprint had read. Absent: nothing, as at a marker."""

ROOM: Final = 5_000

Lane = list[str]
Key = tuple[str, int]


def sent(partition: int, offset: int, kind: str) -> Record:
    """Return the record as fingerprint has read it."""
    record = document(offset)._replace(partition=partition)
    if offset % 3 == 0:
        record = record._replace(headers=HEADERS, key=b"k%d" % offset)
    if offset % 4 == 1:
        record = record._replace(timestamp=-1)
    return record._replace(value=None) if kind == "tombstone" else record


def documents(partition: int, lane: Lane) -> list[Record]:
    """Return the records that route reads."""
    found = []
    for offset, kind in enumerate(lane):
        record = sent(partition, offset, kind)
        if kind == "changed":
            record = record._replace(value=b'{"text":"forged"}')
        if kind not in {"gone", "absent"}:
            found.append(record)
    return found


def answers(partition: int, lane: Lane, shard: int, cuts: Sequence[int]) -> list[Record]:
    """Return a shard's answers, for the ranges between these offsets."""
    made = []
    for number, (start, end) in enumerate(pairwise([0, *cuts, len(lane)])):

        def those(*kinds: str, start: int = start, end: int = end) -> list[int]:
            return [at - start for at in range(start, end) if lane[at] in kinds]

        matched = those("duplicate")
        own = those(*JUDGED) if shard == 0 else []
        values = [sent(partition, start + offset, "").value or b"" for offset in own]
        frame = MatchFrame(
            layout=LAYOUT,
            partition=partition,
            start=start,
            end=end,
            shard=shard,
            number=number,
            first=0,
            offsets=np.array(own, np.uint32),
            checksums=np.array([checksum(value) for value in values], np.uint64),
            matched=np.array(matched, np.uint32),
            counts=np.full(len(matched), 1, np.uint16),
            which=np.zeros(len(matched), np.uint16),
            similarities=np.full(len(matched), 0.9, np.float32),
            sequences=np.array([shard], np.uint64),
            ids=Ids.pack([b"other"]),
            accounted=np.array(those("tombstone", "deleted", "unreadable"), np.uint32),
            forgetting=np.array(those("tombstone", "deleted"), np.uint32),
        )
        made.append(Record(f"app.matches-{shard}", partition, number, 1, None, encode(frame)))
    return made


def key_of(record: Outgoing) -> Key:
    """Return the topic, and the partition that the document was in."""
    if record.partition is not None:
        return record.topic, record.partition
    return record.topic, int(dict(record.headers)["neardup-error-partition"] or b"")


def expected(lanes: Sequence[Lane]) -> dict[Key, list[tuple[int, str]]]:
    """Return the offset and the outcome of all that is published, by output."""
    found: dict[Key, list[tuple[int, str]]] = defaultdict(list)
    for partition, lane in enumerate(lanes):
        for offset, kind in enumerate(lane):
            if kind in {"tombstone", "deleted"}:
                for topic in ("unique", "duplicate"):
                    found[topic, partition].append((-1, "passed on"))
            elif kind in REJECTED:
                found["rejected", partition].append((offset, REJECTED[kind]))
            elif kind in {"unique", "duplicate"}:
                found[kind, partition].append((offset, kind))
    return dict(found)


def outcome(record: Outgoing) -> tuple[int, str]:
    """Return the offset that a record is about, and what became of it."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    if record.topic == "rejected":
        reason = headers["neardup-error-reason"].partition(":")[0]
        return int(headers["neardup-error-offset"]), reason
    if "neardup-source" not in headers:
        return -1, "passed on"
    return int(headers["neardup-source"].rpartition("-")[2]), headers["neardup-verdict"]


def polls(inputs: Iterable[list[Record]], chance: Random, most: int) -> Iterator[list[Record]]:
    """Yield all records: in each poll, up to so many of some inputs."""
    left = [list(records) for records in inputs]
    while left := [records for records in left if records]:
        polled = []
        for records in chance.sample(left, chance.randint(1, len(left))) if most > 1 else left[:1]:
            count = chance.randint(1, most)
            polled += records[:count]
            del records[:count]
        yield polled


def published(
    lanes: Sequence[Lane], inputs: Sequence[list[Record]], seed: int, most: int, room: int
) -> tuple[dict[Key, list[Outgoing]], dict[TopicPartition, int]]:
    """Return what is published by output, and the offsets committed in the end."""
    metrics = Metrics()
    stage = route(SHARDS, metrics=metrics)
    places = {
        TopicPartition(topic, partition): 0
        for topic in ("documents", *(f"app.matches-{shard}" for shard in range(SHARDS)))
        for partition in range(len(lanes))
    }
    stage.adopt(places, whole_log)
    made: dict[Key, list[Outgoing]] = defaultdict(list)
    committed: dict[TopicPartition, int] = {}
    ends = {TopicPartition("documents", n): len(lane) for n, lane in enumerate(lanes)}

    def take(records: list[Record], quiet: dict[TopicPartition, int]) -> None:
        more = True
        while more:
            burst = process(stage, records, room, quiet)
            for record in burst.records:
                made[key_of(record)].append(record)
            committed.update(burst.offsets)
            if burst.offsets:
                stage.committed()
            records, more = [], burst.more

    for polled in polls(inputs, Random(seed), most):
        take(polled, {})
    take([], ends)
    for topic in ("unique", "duplicate"):
        of_topic = [one for one in chain.from_iterable(made.values()) if outcome(one)[1] == topic]
        assert metrics.value(table.DOCUMENTS, topic) in ({len(of_topic)} if of_topic else {None, 0})
    return dict(made), committed


_LANE = st.lists(st.sampled_from(KINDS), min_size=1, max_size=14)


@given(
    lanes=st.lists(_LANE, min_size=1, max_size=2),
    seed=st.integers(0, 1 << 30),
    room=st.sampled_from([1, 300, sys.maxsize]),
)
@example([["gone", "unique", "gone", "gone", "duplicate", "gone"]], 0, sys.maxsize)
@example([["tombstone", "changed", "unique", "deleted", "unique", "tombstone"]], 1, sys.maxsize)
@example([["unseen", "absent", "unique", "unseen", "duplicate", "absent"]], 2, sys.maxsize)
def test_any_cutting_publishes_the_same(lanes: list[Lane], seed: int, room: int) -> None:
    chance = Random(seed)
    inputs = []
    for partition, lane in enumerate(lanes):
        inputs.append(documents(partition, lane))
        for shard in range(SHARDS):
            cuts = sorted(chance.sample(range(1, len(lane)), chance.randint(0, len(lane) // 4)))
            inputs.append(answers(partition, lane, shard, cuts))
    singly, committed = published(lanes, inputs, seed, 1, sys.maxsize)
    assert {key: list(map(outcome, those)) for key, those in singly.items()} == expected(lanes)
    ends = {TopicPartition("documents", n): len(lane) for n, lane in enumerate(lanes)}
    assert committed.items() >= ends.items()
    assert published(lanes, inputs, seed, 9, room) == (singly, committed)


@pytest.mark.parametrize("headers", [(), (("large", bytes(5_000)),)])
def test_all_bytes_of_a_verdict_count_for_the_room(headers: tuple[Header, ...]) -> None:
    lane = ["unique", "duplicate"] * 20
    records = [record._replace(headers=headers) for record in documents(0, lane)]
    stage = route(SHARDS)
    matches = [TopicPartition(f"app.matches-{shard}", 0) for shard in range(SHARDS)]
    stage.adopt(dict.fromkeys([DOCS, *matches], 0), whole_log)
    given = [answers(0, lane, shard, range(1, len(lane))) for shard in range(SHARDS)]
    burst = process(stage, [*records, *chain.from_iterable(given)], ROOM)
    size = sum(record.size for record in burst.records)
    assert burst.more
    assert size == pytest.approx(burst.size, rel=0.3)
    assert size < ROOM + 2 * max(record.size for record in burst.records)
