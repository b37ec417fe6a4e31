"""How many replicas new topics get while a broker is away."""

import pytest

from tests.worker.admin.fake import FakeCluster
from worker.admin.create import TooFewBrokers, create
from worker.settings import Settings, load

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
