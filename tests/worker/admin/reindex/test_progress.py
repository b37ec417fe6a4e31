"""Where groups and logs are while a generation gets fingerprints of its own."""

from __future__ import annotations

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.reindex.checking import numbered
from worker.admin.reindex.progress import Catching, Positions
from worker.admin.reindex.topics import set_starts
from worker.bus import Offset, Outgoing, TopicPartition
from worker.bus.memory.bus import MemoryBus
from worker.generations.generation import Generation, Signing
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING
from worker.settings.loading import load
from worker.wire.codec import HandOver

SETTINGS = load(None, {"app": "a", "index.window": "9d"})
WORDS = load(None, {"app": "a", "similarity.shingle": "word", "similarity.threshold": 0.7})
BASE = SETTINGS.topology(2)
SIGNING = Signing.of(SETTINGS.parameters())
FIRST = Plan.of(SETTINGS).signed(SIGNING)
ANEW = numbered(FIRST, Generation.fingerprinted(WORDS), 100)
TARGET = ANEW.topology(BASE)
PLACES = [TopicPartition("a.documents", 0), TopicPartition("a.documents", 1)]


BUILDING = FIRST.start_build(ANEW)


def positions(cluster: FakeCluster) -> Positions:
    return Positions(cluster.as_cluster(), MemoryBus(), BASE)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(SETTINGS)


class TestGroups:
    def test_groups_of_a_new_log_wait_where_those_of_the_earlier_one_are(
        self, cluster: FakeCluster
    ) -> None:
        cluster.offsets["a.fingerprint"] = {PLACES[0]: 5, PLACES[1]: 7}
        cluster.ends[BASE.order] = (40, 100)
        set_starts(cluster.as_cluster(), BASE, TARGET)
        assert cluster.offsets["a.g1.refingerprint"] == {BASE.order: 40}
        assert cluster.offsets["a.g1.fingerprint"] == {
            PLACES[0]: Offset(5, WAITING),
            PLACES[1]: Offset(7, WAITING),
        }

    def test_what_is_set_stays(self, cluster: FakeCluster) -> None:
        cluster.offsets["a.g1.refingerprint"] = {BASE.order: 70}
        cluster.offsets["a.g1.fingerprint"] = {PLACES[0]: 8}
        set_starts(cluster.as_cluster(), BASE, TARGET)
        assert positions(cluster).progress(BUILDING).rewritten == 70
        assert cluster.offsets["a.g1.fingerprint"] == {PLACES[0]: 8, PLACES[1]: Offset(0, WAITING)}

    def test_a_log_is_sealed_once_all_partitions_are(self, cluster: FakeCluster) -> None:
        offsets = cluster.offsets["a.fingerprint"]
        assert positions(cluster).sealed(BASE) is None
        offsets[PLACES[1]] = Offset(9, SEALED)
        assert positions(cluster).sealed(BASE) is None
        offsets[PLACES[0]] = Offset(0, SEALED)
        assert positions(cluster).sealed(BASE) == [0, 9]
        del offsets[PLACES[0]]
        assert positions(cluster).sealed(BASE) is None

    def test_a_log_is_begun_once_all_partitions_are(self, cluster: FakeCluster) -> None:
        set_starts(cluster.as_cluster(), BASE, TARGET)
        cluster.offsets["a.g1.fingerprint"][PLACES[0]] = 4
        assert not positions(cluster).begun(TARGET)
        cluster.offsets["a.g1.fingerprint"][PLACES[1]] = 0
        assert positions(cluster).begun(TARGET)


def test_a_log_is_written_once_it_has_its_hand_over() -> None:
    bus = MemoryBus()
    bus.create_topic(TARGET.fingerprints, 1)
    at = Positions(FakeCluster(SETTINGS).as_cluster(), bus, BASE)

    def write(value: bytes) -> None:
        bus.append(Outgoing(TARGET.fingerprints, 0, None, value))

    assert not at.written(TARGET)
    write(b"a frame")
    assert not at.written(TARGET)
    write(HandOver(TARGET.layout.id, 1).encode())
    assert at.written(TARGET)


def test_readers_are_up_to_date_once_they_have_read_what_was_there() -> None:
    now = 0.0
    asked = []

    def empty(start: int, end: int) -> bool:
        asked.append((start, end))
        return start == 97

    log = Catching(empty, lambda: now)
    assert not log.up_to_date(100, [100])
    now = 6.0
    assert not log.up_to_date(300, [98])
    assert log.up_to_date(300, [97])
    assert asked == [(98, 100), (97, 100)]
    assert log.up_to_date(300, [100])
    assert not log.up_to_date(300, [100, None])
    now = 12.0
    assert not log.up_to_date(400, [200])
