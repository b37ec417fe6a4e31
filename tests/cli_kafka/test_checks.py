import pytest

from tests.cli_kafka.fake import FakeCluster
from worker.admin import inspect
from worker.admin.cluster import TopicState
from worker.bus import TopicPartition
from worker.settings import Settings, load


@pytest.fixture
def settings() -> Settings:
    return load(overrides={"app": "a"})


def said(cluster: FakeCluster, settings: Settings) -> list[str]:
    return [f"{p.severity} {p}" for p in inspect(cluster.as_cluster(), settings).problems]


def test_what_create_makes_is_in_order(settings: Settings) -> None:
    assert said(FakeCluster(settings), settings) == []


@pytest.mark.parametrize(
    ("topic", "change", "expected"),
    [
        ("a.documents", {"cleanup_policy": "compact"}, "error a.documents: cleanup.policy"),
        ("a.documents", {"cleanup_policy": "compact,delete"}, "error a.documents: cleanup.policy"),
        ("a.unique", {"cleanup_policy": "compact"}, "warning a.unique: cleanup.policy"),
        ("a.rejected", {"cleanup_policy": "compact"}, "error a.rejected: cleanup.policy"),
        ("a.bands", {"cleanup_policy": "compact"}, "error a.bands: cleanup.policy"),
        (
            "a.fingerprints",
            {"message_timestamp_type": "CreateTime"},
            "error a.fingerprints: message.timestamp.type",
        ),
        ("a.bands", {"message_timestamp_type": "CreateTime"}, "warning a.bands: message.timestamp"),
        (
            "a.unique",
            {"message_timestamp_type": "LogAppendTime"},
            "warning a.unique: message.timestamp.type",
        ),
        ("a.fingerprints", {"retention_ms": "3600000"}, "error a.fingerprints: retention.ms"),
        ("a.bands", {"retention_bytes": "1000000"}, "error a.bands: retention.bytes"),
        ("a.matches-1", {"retention_ms": "3600000"}, "error a.matches-1: retention.ms"),
        ("a.unique", {"max_message_bytes": "1000000"}, "error a.unique: max.message.bytes"),
        ("a.bands", {"max_message_bytes": "500000"}, "error a.bands: max.message.bytes"),
        ("a.documents", {"max_message_bytes": "90000000"}, "error a.rejected: max.message.bytes"),
        ("a.bands", {"min_insync_replicas": "1"}, "warning a.bands: min.insync.replicas"),
        ("a.bands", {"min_insync_replicas": "3"}, "warning a.bands: min.insync.replicas"),
        ("a.bands", {"min_insync_replicas": "4"}, "error a.bands: min.insync.replicas"),
        (
            "a.bands",
            {"unclean_leader_election_enable": "true"},
            "warning a.bands: unclean.leader.election.enable",
        ),
    ],
)
def test_a_wrong_setting_is_named(
    settings: Settings, topic: str, change: dict[str, str], expected: str
) -> None:
    cluster = FakeCluster(settings)
    cluster.change(topic, **change)
    assert any(line.startswith(expected) for line in said(cluster, settings))


def test_a_longer_retention_of_matches_is_fine(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.change("a.matches-0", retention_ms="-1")
    assert said(cluster, settings) == []


def test_outputs_must_take_every_time_that_documents_take(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.change("a.documents", message_timestamp_after_max_ms="9223372036854775807")
    cluster.change("a.duplicate", message_timestamp_after_max_ms="3600000")
    [line] = said(cluster, settings)
    assert line.startswith("error a.duplicate: message.timestamp.after.max.ms is 3600000")


@pytest.mark.parametrize("topic", ["a.documents", "a.rejected", "a.bands", "a.matches-1"])
def test_a_missing_topic_is_named(settings: Settings, topic: str) -> None:
    cluster = FakeCluster(settings)
    cluster.states[topic] = None
    assert f"error {topic}: the topic is missing, must be there" in said(cluster, settings)


@pytest.mark.parametrize(
    ("topic", "severity"),
    [("a.fingerprints", "error"), ("a.bands", "error"), ("a.matches-0", "error"),
     ("a.unique", "warning"), ("a.rejected", "warning")],
)  # fmt: skip
def test_a_wrong_partition_count_is_named(settings: Settings, topic: str, severity: str) -> None:
    cluster = FakeCluster(settings)
    state = cluster.states[topic]
    assert state is not None
    cluster.states[topic] = TopicState(9, state.replicas, state.settings)
    assert any(
        line.startswith(f"{severity} {topic}: its number of partitions is 9")
        for line in said(cluster, settings)
    )


def test_partitions_added_to_documents_are_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings, partitions=2)
    state = cluster.states["a.documents"]
    assert state is not None
    cluster.states["a.documents"] = TopicState(3, state.replicas, state.settings)
    lines = said(cluster, settings)
    assert any(line.startswith("error a.matches-0: its number of partitions") for line in lines)
    assert any(line.startswith("error group a.fingerprint: its offset of") for line in lines)


def test_a_group_without_offsets_is_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    del cluster.offsets["a.route"]
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[0] is missing (and 5 more)" in line


def test_an_offset_outside_the_log_is_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (10, 20)
    [line] = said(cluster, settings)
    assert "group a.sequence: its offset of a.fingerprints[0] is 0, must be" in line


def test_route_may_trail_fingerprint_and_not_lead_it(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    place = TopicPartition("a.documents", 1)
    cluster.ends[place] = (0, 100)
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
    cluster.offsets["a.fingerprint"][place] = 50
    assert said(cluster, settings) == []
    cluster.offsets["a.route"][place] = 51
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[1] is 51, must be at most 50" in line


def test_readers_that_begin_apart_are_an_error(settings: Settings) -> None:
    cluster = FakeCluster(settings)
    place = TopicPartition("a.documents", 0)
    cluster.ends[place] = (0, 100)
    cluster.offsets["a.fingerprint"][place] = 50
    [line] = said(cluster, settings)
    assert "group a.route: its offset of a.documents[0] is 0, must be 50" in line
