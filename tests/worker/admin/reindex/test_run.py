"""What a reindex is refused for before anything is changed."""

from __future__ import annotations

import pytest

from tests.support.plans import taken_over
from tests.worker.admin.fake import FakeCluster
from worker.admin.cluster import TopicState
from worker.admin.reindex.checking import numbered
from worker.admin.reindex.run import Reindex
from worker.bus import BusError, TopicPartition
from worker.generations.generation import Generation, Signing
from worker.generations.log import PLAN_KEY, dump
from worker.generations.plan import Plan
from worker.settings.errors import ConfigurationError
from worker.settings.loading import load
from worker.settings.model import Settings

SETTINGS = load(None, {"app": "a", "index.shards": 3})
WORDS = load(None, {"app": "a", "index.shards": 3, "similarity.shingle": "word"})


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(SETTINGS)


def anew(cluster: FakeCluster, settings: Settings) -> Reindex:
    return Reindex(cluster.as_cluster(), settings, anew=True)


def test_the_application_is_what_it_began_as_whatever_the_settings_say(
    cluster: FakeCluster,
) -> None:
    plan = anew(cluster, WORDS).plan()
    assert plan == Plan.of(SETTINGS).signed(_signing(SETTINGS))


def reindexed(cluster: FakeCluster, plan: Plan) -> None:
    """Have a reindex behind it, whose generation is in use."""
    cluster.records["a.layout"][PLAN_KEY] = dump(plan)
    topology = plan.current.topology(cluster.topology)
    for topic, partitions in topology.internal().items():
        like = cluster.states[_first(topic)]
        assert like is not None
        cluster.states[topic] = TopicState(partitions, like.replicas, like.settings)
    shards = range(topology.layout.shards)
    group = topology.group("fingerprint")
    cluster.offsets[group] = cluster.offsets["a.fingerprint"]
    cluster.offsets["a.g1.index"] = {TopicPartition(topology.seats, n): 0 for n in shards}
    route = cluster.offsets["a.route"]
    route |= {TopicPartition(topology.matches(s), n): 0 for s in shards for n in range(2)}
    cluster.ends |= {topology.order: (0, 0)}


def _first(topic: str) -> str:
    """Return the topic of generation 0 that is like one of the next."""
    name = topic.replace("a.g1.", "a.")
    return "a.matches-0" if name.startswith("a.matches") else name


def test_a_plan_of_an_earlier_version_is_completed(cluster: FakeCluster) -> None:
    earlier = taken_over(Plan.of(SETTINGS), Generation.of(SETTINGS))
    reindexed(cluster, earlier)
    assert anew(cluster, WORDS).plan() == earlier.signed(_signing(SETTINGS))


@pytest.mark.parametrize("log", [0, 1], ids=["other shards", "new fingerprints"])
def test_new_fingerprints_follow_on_an_earlier_reindex(cluster: FakeCluster, log: int) -> None:
    shards = load(None, {"app": "a", "index.shards": 4})
    first = numbered(Plan.of(SETTINGS), Generation.fingerprinted(WORDS), 0)
    following = first if log else Generation.of(shards)
    plan = taken_over(Plan.of(SETTINGS).signed(_signing(SETTINGS)), following)
    reindexed(cluster, plan)
    run = anew(cluster, load(None, {"app": "a", "similarity.shingle_size": 4}))
    assert run.plan() == plan
    assert plan.current.log == log


@pytest.mark.parametrize(
    ("setting", "value", "way_on"),
    [
        ("similarity.seed", "another secret of enough bytes", "put the similarity.seed back"),
        ("documents.text_fields", "body", "`neardup init --accept`"),
        ("limits.id_bytes", 512, "`neardup init --accept`"),
    ],
)
def test_what_workers_have_in_files_or_read_by_stays(
    cluster: FakeCluster, setting: str, value: object, way_on: str
) -> None:
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
    settings = load(None, {"app": "a", "similarity.shingle": "word", setting: value})
    with pytest.raises(ConfigurationError, match=f"{setting}.*{way_on}"):
        anew(cluster, settings)


def test_the_same_fingerprints_need_no_documents(cluster: FakeCluster) -> None:
    settings = load(None, {"app": "a", "index.shards": 5})
    run = anew(cluster, settings)
    with pytest.raises(ConfigurationError, match="run it without"):
        run.checks.check_anew(run.plan(), Generation.fingerprinted(settings))


def test_an_application_that_has_not_begun_has_nothing_to_make_anew(cluster: FakeCluster) -> None:
    del cluster.records["a.layout"][b"layout"]
    with pytest.raises(ConfigurationError, match="a has not begun"):
        anew(cluster, WORDS)


def test_other_fingerprints_are_refused_with_the_way_to_get_them(cluster: FakeCluster) -> None:
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
    with pytest.raises(
        ConfigurationError, match=r"similarity\.shingle.*`neardup reindex --from-doc"
    ):
        Reindex(cluster.as_cluster(), WORDS)


def test_documents_that_are_gone_are_named(cluster: FakeCluster) -> None:
    cluster.ends[TopicPartition("a.documents", 1)] = (7, 9)
    for group in ("a.fingerprint", "a.route"):
        cluster.offsets[group][TopicPartition("a.documents", 1)] = 8
    cluster.ends[TopicPartition("a.fingerprints", 0)] = (0, 3)
    assert anew(cluster, WORDS).checks.gone() == {1: 7}


def _signing(settings: Settings) -> Signing:
    signing = Generation.fingerprinted(settings).signing
    assert signing is not None
    return signing


def test_while_a_broker_is_away_no_topics_are_made_and_it_says_when_to_go_on(
    cluster: FakeCluster,
) -> None:
    run = Reindex(cluster.as_cluster(), SETTINGS)
    cluster.brokers = 2
    with pytest.raises(
        BusError, match=r"with 3 replicas, .* and 2 answered: run the command again"
    ):
        run.begin({"shards": 4})
