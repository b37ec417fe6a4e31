"""What the in-process log keeps of a log that several seats read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.texts import near_copies
from worker.bus import Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.offline.embedded import create_topics
from worker.offline.filter import Line, OfflineFilter, offline_settings

SEATS = [TopicPartition("seats", number) for number in range(3)]


def log(first: int = 0) -> MemoryBus:
    bus = MemoryBus(trim_consumed=True)
    bus.create_topic("log", 1, first_offset=first)
    bus.create_topic("seats", 3)
    bus.commit_offsets("g", dict.fromkeys(SEATS, first), of="log")
    bus.append_many(Outgoing("log", 0, None, b"%d" % number) for number in range(20))
    return bus


def test_a_log_is_trimmed_to_the_slowest_of_its_seats() -> None:
    bus = log()
    member = bus.join("g", ["seats"], "one", of="log")
    assert member.poll(1, 1, 0.0).assignment == frozenset(SEATS)
    member.commit([], dict.fromkeys(SEATS[:2], 10))
    assert bus.start_offset("log", 0) == 0
    member.commit([], {SEATS[2]: 7})
    assert bus.start_offset("log", 0) == 7
    member.commit([], dict.fromkeys(SEATS, 20))
    assert bus.start_offset("log", 0) == 20


def test_another_group_that_reads_the_log_itself_counts_too() -> None:
    bus = log(first=100)
    bus.commit_offsets("beside", {TopicPartition("log", 0): 105})
    member = bus.join("g", ["seats"], "one", of="log")
    member.poll(1, 1, 0.0)
    member.commit([], dict.fromkeys(SEATS, 120))
    assert bus.start_offset("log", 0) == 105
    bus.commit_offsets("beside", {TopicPartition("log", 0): 119})
    assert bus.start_offset("log", 0) == 119


@pytest.mark.parametrize("shards", [1, 3])
def test_an_offline_run_keeps_no_frames_that_all_shards_have_read(
    tmp_path: Path, shards: int
) -> None:
    texts = [json.dumps({"id": ident, "text": text}) for ident, text in near_copies(60, 5)]
    lines = [Line(b"", text.encode(), len(text)) for text in texts]
    first: dict[str, list[int]] = {}
    for _ in range(2):  # The second goes on where the first has stopped.
        settings = offline_settings(overrides={"index.shards": shards})
        with OfflineFilter(settings, tmp_path / "state", first) as offline:
            order = offline.topology.order
            seen = offline._bus.start_offset(*order)
            assert seen == first.get(order.topic, [0])[0]
            for chunk in (lines[:20], lines[20:40], lines[40:]):
                assert len(offline.judge(chunk)) == 20
                start, end = offline._bus.start_offset(*order), offline._bus.end_offset(*order)
                assert start > seen
                assert end - start == 1  # The marker of the last transaction.
                seen = start
            first = offline.reached()


def test_a_shard_that_has_committed_nothing_yet_holds_the_order() -> None:
    settings = offline_settings(overrides={"index.shards": 2})
    topology = settings.topology(1)
    bus = MemoryBus(trim_consumed=True)
    create_topics(bus, topology)
    bus.append_many(Outgoing(*topology.order, None, b"%d" % number) for number in range(20))
    group, seats = topology.group("index"), [topology.seats]
    member = bus.join(group, seats, "one", of=topology.fingerprints)
    member.poll(1, 1, 0.0)
    member.commit([], {TopicPartition(topology.seats, 0): 12})
    assert bus.start_offset(*topology.order) == 0
    member.commit([], {TopicPartition(topology.seats, 1): 5})
    assert bus.start_offset(*topology.order) == 5
