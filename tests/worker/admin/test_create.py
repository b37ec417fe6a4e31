"""What is created, with how many replicas, and what is refused before anything is."""

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.create import TooFewBrokers, create
from worker.admin.layout_log import refuse_others
from worker.bus import TopicPartition
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

SETTINGS: Settings = load(None, {"app": "a"})


@pytest.fixture
def cluster() -> FakeCluster:
    """Return a cluster of which one of three brokers is away, and a topic is missing."""
    made = FakeCluster(SETTINGS)
    made.brokers = 2
    made.states["a.unique"] = None
    return made


def test_an_application_that_has_three_replicas_gets_no_topic_with_two(
    cluster: FakeCluster,
) -> None:
    with pytest.raises(TooFewBrokers, match=r"have 3 replicas, but only 2 of the brokers answered"):
        create(cluster.as_cluster(), SETTINGS)


def test_who_asks_for_too_many_is_told_which_option_it_was(cluster: FakeCluster) -> None:
    with pytest.raises(TooFewBrokers, match=r"^--replication: got 4, must be at most 2, the"):
        create(cluster.as_cluster(), SETTINGS, replication=4)


def test_nothing_is_wrong_if_all_topics_exist() -> None:
    whole = FakeCluster(SETTINGS)
    whole.brokers = 2
    found = create(whole.as_cluster(), SETTINGS)
    assert (found.made, len(found.found)) == ([], len(whole.states))


def settings(**topics: str) -> Settings:
    return load(None, {"app": "a", **{f"topics.{name}": topic for name, topic in topics.items()}})


def refusal(cluster: FakeCluster, given: Settings, partitions: int | None = None) -> str:
    """Return why nothing is created."""
    before = dict(cluster.states)
    with pytest.raises(ConfigurationError) as raised:
        create(cluster.as_cluster(), given, partitions=partitions)
    assert cluster.states == before
    return str(raised.value)


def test_a_misspelt_topic_is_not_created() -> None:
    crawled = FakeCluster(SETTINGS)
    crawled.states = {"crawled.pages": crawled.states["a.documents"]}
    crawled.records = {}
    said = refusal(crawled, settings(documents="crawled.pagse"))
    assert "topics.documents: got 'crawled.pagse'" in said
    assert "did you mean crawled.pages?" in said

    made = create(crawled.as_cluster(), settings(documents="stories")).made
    assert "stories" in made


def test_who_asks_for_other_partitions_than_there_are_is_told_how_to_add_some() -> None:
    said = refusal(FakeCluster(SETTINGS), SETTINGS, partitions=30)
    assert said.startswith("--partitions: got 30, but a.documents exists and has 2. Leave")
    assert "`neardup reindex --partitions` adds more later" in said


def test_documents_that_were_deleted_come_back_with_as_many_partitions() -> None:
    cluster = FakeCluster(SETTINGS)
    cluster.states["a.documents"] = None
    said = refusal(cluster, SETTINGS, partitions=30)
    assert said == "--partitions: got 30, but a was set up with 2"
    assert create(cluster.as_cluster(), SETTINGS).topology.layout.partitions == 2


def test_topics_that_do_not_fit_are_found_before_others_are_made() -> None:
    cluster = FakeCluster(SETTINGS)
    cluster.states["a.documents"] = None
    cluster.records = {"a.layout": {}}
    said = refusal(cluster, SETTINGS, partitions=30)
    assert "a.matches-0 exists and has 2 partitions, must have 30" in said


@pytest.mark.parametrize("begun", [False, True])
def test_other_settings_are_refused_before_a_topic_is_made(*, begun: bool) -> None:
    cluster = FakeCluster(SETTINGS)
    if begun:
        cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 1)
    with pytest.raises(ConfigurationError, match=r"topics.documents is .* there and .* here") as e:
        refuse_others(cluster.as_cluster(), settings(documents="b"))
    assert "partitions of" not in str(e.value)

    with pytest.raises(ConfigurationError) as e:
        refuse_others(cluster.as_cluster(), load(None, {"app": "a", "similarity.seed": "s" * 16}))
    assert ("neardup init --accept" in str(e.value)) != begun
    assert ("can't be changed once it has begun" in str(e.value)) == begun
