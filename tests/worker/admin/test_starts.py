from datetime import UTC, datetime

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.cluster import TopicState
from worker.admin.starts import Start, begin
from worker.bus import TopicPartition
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.topology import Topology

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DOCUMENTS = [TopicPartition("a.documents", number) for number in range(2)]


def cluster() -> FakeCluster:
    made = FakeCluster(load(overrides={"app": "a"}))
    made.offsets = {}
    made.ends = {DOCUMENTS[0]: (3, 10), DOCUMENTS[1]: (0, 4)}
    return made


def documents(made: FakeCluster, stage: str) -> list[int]:
    return [made.offsets[f"a.{stage}"][place] for place in DOCUMENTS]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("earliest", Start("earliest")),
        ("latest", Start("latest")),
        ("1970-01-01T00:00:01Z", Start("time", 1_000)),
        ("1970-01-01T01:00:01+01:00", Start("time", 1_000)),
        ("1970-01-02", Start("time", 86_400_000)),
        ("24h", Start("time", 1_767_225_600_000)),
    ],
)
def test_a_start_is_a_word_a_time_or_an_age(given: str, expected: Start) -> None:
    assert Start.parse(given, NOW) == expected


@pytest.mark.parametrize("given", ["", "soon", "24", "2026-13-01", "2026-01-03", "99999999999d"])
def test_anything_else_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match="--from"):
        Start.parse(given, NOW)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start("earliest"), [3, 0]),
        (Start("latest"), [10, 4]),
        (Start("time", 1_000), [5, 4]),
        (Start("time", 2_000), [10, 4]),
    ],
)
def test_both_readers_of_documents_begin_at_the_same(start: Start, expected: list[int]) -> None:
    made = cluster()
    begin(made.as_cluster(), made.topology, start)
    assert documents(made, "fingerprint") == documents(made, "route") == expected
    assert made.offsets["a.index"] == {TopicPartition("a.shards", n): 0 for n in range(2)}
    assert made.belongs["a.shards"] == "a.fingerprints"
    assert len(made.offsets["a.route"]) == 2 + 2 * 2


def test_offsets_that_are_set_are_kept() -> None:
    made = cluster()
    begin(made.as_cluster(), made.topology, Start("latest"))
    begun = begin(made.as_cluster(), made.topology, Start("earliest"))
    assert begun.committed == {}
    assert set(begun.kept) == {"a.fingerprint", "a.index", "a.route"}
    assert documents(made, "fingerprint") == [10, 4]


def test_force_replaces_them() -> None:
    made = cluster()
    begin(made.as_cluster(), made.topology, Start("latest"))
    begin(made.as_cluster(), made.topology, Start("earliest"), force=True)
    assert documents(made, "fingerprint") == documents(made, "route") == [3, 0]


def test_what_one_reader_has_the_other_gets() -> None:
    made = cluster()
    made.offsets["a.route"] = dict.fromkeys(DOCUMENTS, 4)
    begin(made.as_cluster(), made.topology, Start("latest"))
    assert documents(made, "fingerprint") == documents(made, "route") == [4, 4]


def test_readers_that_are_apart_are_refused() -> None:
    made = cluster()
    made.offsets["a.route"] = dict.fromkeys(DOCUMENTS, 4)
    made.offsets["a.fingerprint"] = dict.fromkeys(DOCUMENTS, 3)
    with pytest.raises(ConfigurationError, match="set both again with --force"):
        begin(made.as_cluster(), made.topology, Start("latest"))


def test_a_log_that_retention_has_emptied_was_used() -> None:
    made = cluster()
    begin(made.as_cluster(), made.topology, Start("earliest"))
    made.ends[TopicPartition("a.fingerprints", 0)] = (7, 7)
    del made.offsets["a.route"]
    with pytest.raises(ConfigurationError, match=r"a\.fingerprints holds records, or did"):
        begin(made.as_cluster(), made.topology, Start("latest"))


@pytest.mark.parametrize("force", [False, True])
def test_once_work_has_begun_nothing_is_guessed(*, force: bool) -> None:
    made = cluster()
    begin(made.as_cluster(), made.topology, Start("earliest"))
    made.ends[TopicPartition("a.fingerprints", 0)] = (0, 7)
    if not force:
        del made.offsets["a.route"]
    before = {group: dict(offsets) for group, offsets in made.offsets.items()}
    with pytest.raises(ConfigurationError, match=r"a\.fingerprints holds records"):
        begin(made.as_cluster(), made.topology, Start("latest"), force=force)
    assert made.offsets == before


@pytest.mark.parametrize(
    ("missing", "way"),
    [
        ("a.fingerprint", "--from app:a` continues after what was published"),
        ("a.route", "--from earliest` judges all that the topic has"),
    ],
)
def test_the_way_on_is_one_that_the_offsets_that_are_left_allow(missing: str, way: str) -> None:
    """Kafka deletes the offsets of a topic with it."""
    made = cluster()
    begin(made.as_cluster(), made.topology, Start("earliest"))
    made.ends[TopicPartition("a.fingerprints", 0)] = (0, 7)
    del made.offsets[missing]
    with pytest.raises(ConfigurationError) as refused:
        begin(made.as_cluster(), made.topology, Start("latest"))
    assert way in str(refused.value)


def successor() -> tuple[FakeCluster, Topology]:
    """Return a cluster on which ``a`` has published, and got a third partition; and what is next.

    The next application reads the same documents.
    """
    made = cluster()
    state = made.states["a.documents"]
    assert state is not None
    made.states["a.documents"] = TopicState(3, state.replicas, state.settings)
    made.ends[TopicPartition("a.documents", 2)] = (4, 9)
    made.offsets["a.route"] = {DOCUMENTS[0]: 8, DOCUMENTS[1]: 3}
    topics = {"topics.documents": "a.documents"}
    return made, load(overrides={"app": "b", **topics}).topology(3)


def test_a_successor_reads_added_partitions_from_their_start() -> None:
    made, topology = successor()
    begin(made.as_cluster(), topology, Start("after", app="a"))
    places = [*DOCUMENTS, TopicPartition("a.documents", 2)]
    for stage in ("fingerprint", "route"):
        assert [made.offsets[f"b.{stage}"][place] for place in places] == [8, 3, 4]


@pytest.mark.parametrize("missing", [DOCUMENTS[:1], DOCUMENTS])
def test_a_successor_does_not_guess_what_was_published(missing: list[TopicPartition]) -> None:
    made, topology = successor()
    for place in missing:
        del made.offsets["a.route"][place]
    with pytest.raises(ConfigurationError, match=r"group a\.route has no offset for a\.documents"):
        begin(made.as_cluster(), topology, Start("after", app="a"))
    assert "b.route" not in made.offsets


def test_without_a_record_added_partitions_are_not_guessed() -> None:
    made, topology = successor()
    made.states["a.layout"] = None
    with pytest.raises(ConfigurationError, match=r"no offset for a\.documents\[2\]"):
        begin(made.as_cluster(), topology, Start("after", app="a"))
