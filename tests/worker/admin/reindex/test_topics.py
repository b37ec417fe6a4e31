"""Which topics get partitions, where the groups begin those, and what is deleted in the end."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from tests.support.plans import taken_over
from tests.worker.admin.fake import FakeCluster
from worker.admin.cluster import TopicState
from worker.admin.reindex.topics import delete_left, grow, starts
from worker.bus import TopicPartition
from worker.generations.generation import Generation
from worker.generations.modes import parts
from worker.generations.plan import Plan, WrongState
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.topology import STAGES


@pytest.fixture
def settings() -> Settings:
    return load(overrides={"app": "a", "index.shards": 2})


@pytest.fixture
def plan(settings: Settings) -> Plan:
    return Plan.of(settings)


def sized(cluster: FakeCluster, topic: str, partitions: int) -> None:
    state = cluster.states[topic]
    assert state is not None
    cluster.states[topic] = TopicState(partitions, state.replicas, state.settings)


def counts(cluster: FakeCluster) -> dict[str, int]:
    return {topic: count for topic, (count, _) in cluster.counts()[1].items()}


def test_all_topics_that_meet_by_number_get_partitions(settings: Settings, plan: Plan) -> None:
    cluster = FakeCluster(settings)
    before = counts(cluster)
    grown = grow(cluster.as_cluster(), plan, cluster.topology, 5)
    named = ("documents", "unique", "duplicate", "rejected", "matches-0", "matches-1")
    assert grown.read == 2
    assert grown.added == {f"a.{name}": 5 for name in named}
    assert counts(cluster) == {**before, **grown.added}
    again = grow(cluster.as_cluster(), plan, cluster.topology, 5)
    assert again.added == {}


def test_outputs_with_another_number_keep_it(settings: Settings, plan: Plan) -> None:
    cluster = FakeCluster(settings)
    for topic, count in {"a.documents": 4, "a.unique": 1, "a.rejected": 7}.items():
        sized(cluster, topic, count)
    grown = grow(cluster.as_cluster(), plan, cluster.topology, 4)
    assert set(grown.added) == {"a.duplicate", "a.matches-0", "a.matches-1"}


@pytest.mark.parametrize(
    ("topic", "has", "asked"),
    [("a.documents", 4, 3), ("a.matches-1", 6, 5), ("a.documents", 2, 1)],
)
def test_partitions_are_never_taken_away(
    settings: Settings, plan: Plan, topic: str, has: int, asked: int
) -> None:
    cluster = FakeCluster(settings)
    sized(cluster, topic, has)
    before = counts(cluster)
    said = f"--partitions: got {asked}, but {topic} has {has}, and Kafka can't take partitions away"
    with pytest.raises(ConfigurationError, match=said):
        grow(cluster.as_cluster(), plan, cluster.topology, asked)
    assert counts(cluster) == before


def test_not_while_another_index_is_built(settings: Settings, plan: Plan) -> None:
    building = plan.start_build(Generation.of(settings))
    cluster = FakeCluster(settings)
    with pytest.raises(ConfigurationError, match="another index is being built"):
        grow(cluster.as_cluster(), building, cluster.topology, 5)
    with pytest.raises(WrongState):
        building.widen(2, 5)


def test_groups_begin_where_the_partitions_begin(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.ends[TopicPartition("a.documents", 3)] = (70, 100)
    found = starts(cluster.as_cluster(), cluster.topology, 4)
    documents = {TopicPartition("a.documents", 2): 0, TopicPartition("a.documents", 3): 70}
    answers = {TopicPartition(f"a.matches-{shard}", n): 0 for shard in range(2) for n in (2, 3)}
    assert found == {"a.fingerprint": documents, "a.route": documents | answers}


def test_a_plan_has_what_one_command_alone_has_changed(plan: Plan) -> None:
    wide = plan.widen(2, 5)
    assert (wide.begun_with, wide.partitions) == (2, 5)
    with pytest.raises(WrongState):
        wide.widen(2, 6)
    again = wide.widen(5, 6)
    assert (again.begun_with, again.partitions) == (2, 6)


def test_frames_and_stores_keep_their_names(settings: Settings, plan: Plan) -> None:
    narrow = settings.topology(2)
    wide = plan.widen(2, 5)
    for found in (wide.base_topology(settings, 5), wide.topology(settings, 5)):
        assert (found.layout.id, found.layout.begun_with) == (narrow.layout.id, 2)
        assert found.layout.partitions == 5
        assert found.inputs("route") == dict.fromkeys(narrow.inputs("route"), 5)
        assert found.inputs("index") == narrow.inputs("index")


def test_only_loops_that_read_documents_are_replaced(settings: Settings, plan: Plan) -> None:
    wide = plan.widen(2, 5)
    before, after = (parts(STAGES, one, settings.topology(2)) for one in (plan, wide))
    assert [one.name for one in before] == [one.name for one in after]
    kept = {one.stage for one, other in zip(before, after, strict=True) if one == other}
    assert kept == {"index"}


SETTINGS = load(None, {"app": "a", "index.shards": 1})
BASE = SETTINGS.topology(2)
FIRST = Plan.of(SETTINGS)
ANEW = msgspec.structs.replace(Generation.fingerprinted(SETTINGS), log=1)


class Emptied(FakeCluster):
    """A cluster that notes what is deleted."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.groups: list[str] = []

    def delete_group(self, group: str) -> None:
        self.groups.append(group)

    def delete(self, topics: Iterable[str]) -> list[str]:
        return list(topics)


def deleted(plan: Plan) -> tuple[list[str], list[str]]:
    """Return the topics and the groups that go."""
    cluster = Emptied()
    topics = list(delete_left(cluster.as_cluster(), plan, BASE))
    return [name.removeprefix("a.") for name in topics], cluster.groups


def test_a_log_stays_as_long_as_a_generation_reads_it() -> None:
    plain = msgspec.structs.replace(FIRST.current, shards=2)
    assert deleted(taken_over(FIRST, plain)) == (["shards", "matches-0"], ["a.index"])
    building = taken_over(FIRST, plain).start_build(msgspec.structs.replace(ANEW, log=2))
    assert deleted(building) == (["shards", "matches-0"], ["a.index"])


def test_a_log_goes_with_the_last_generation_that_has_read_it() -> None:
    topics, groups = deleted(taken_over(FIRST, ANEW))
    assert topics == ["shards", "matches-0", "fingerprints"]
    assert groups == ["a.index", "a.fingerprint", "a.g1.refingerprint"]


def test_a_log_that_was_given_up_goes_at_once() -> None:
    topics, groups = deleted(FIRST.start_build(ANEW).abort())
    assert topics == ["g1.shards", "g1.matches-0", "g1.fingerprints"]
    assert groups == ["a.g1.index", "a.g1.refingerprint", "a.g1.fingerprint"]
