"""What retention deletes: markers of transactions, and documents that were judged already."""

from __future__ import annotations

from collections import Counter

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from localkafka.broker import wait_until
from tests.integration.conftest import PROTOCOLS, Launch
from tests.support.application import ApplicationUnderTest
from tests.support.checker.history import reason, source
from tests.support.corpus import corpus
from tests.support.proof import prove
from worker.admin.checks import inspect
from worker.admin.cluster import Cluster
from worker.bus import TopicPartition
from worker.topology import STAGES

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

SECONDS = 120.0
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)
JUDGES = ("--stages", "fingerprint,index")


def cluster(application: ApplicationUnderTest) -> Cluster:
    return Cluster(application.settings.kafka_options(), 30)


def empty(application: ApplicationUnderTest, *topics: str) -> None:
    """Delete all there is, with the markers at the ends, as retention does after a while."""
    counts = {**application.topology.inputs("route"), **application.topology.internal()}
    ranges = cluster(application).ranges({topic: counts[topic] for topic in topics})
    client = AdminClient({"bootstrap.servers": application.kafka.bootstrap})
    cuts = [Place(*place, high) for place, (low, high) in ranges.items() if high > low]
    for deleted in client.delete_records(cuts).values():
        deleted.result(SECONDS)


def judged(application: ApplicationUnderTest) -> bool:
    """Tell whether every document has been answered: only markers are left to read."""
    topology = application.topology
    asked = {
        topology.group(stage): [
            TopicPartition(topic, number)
            for topic, count in topology.inputs(stage).items()
            for number in range(count)
        ]
        for stage in STAGES[:2]
    }
    committed = cluster(application).committed(asked)
    inputs = {topology.documents: topology.layout.partitions, **topology.internal()}
    ranges = cluster(application).ranges(inputs)
    return all(
        ranges[topology.log_of(place)][1] - at <= (0 if place.topic == topology.documents else 1)
        for offsets in committed.values()
        for place, at in offsets.items()
    )


@BOTH
def test_answers_that_were_read_may_go(launch: Launch, protocol: str) -> None:
    application = launch(settings={"kafka": {"group_protocol": protocol}}, partitions=2)
    application.start("alpha")
    texts = corpus(80, 21)
    application.feed(application.documents(texts[:40]))
    application.audit.finish(SECONDS)
    assert application.worker("alpha").stop() == 0
    shards = range(application.topology.layout.shards)
    empty(application, *(application.topology.matches(shard) for shard in shards))
    application.start("alpha")
    application.feed(application.documents(texts[40:], 40))
    prove(application, seconds=SECONDS)


@BOTH
def test_documents_that_were_judged_and_are_gone_are_rejected(
    launch: Launch, protocol: str
) -> None:
    application = launch(settings={"kafka": {"group_protocol": protocol}}, partitions=4)
    application.start("alpha", arguments=JUDGES)
    texts = corpus(80, 22)
    lost = application.feed(application.documents(texts[:40]))
    wait_until(lambda: judged(application), SECONDS, "all documents to be judged")
    assert application.worker("alpha").stop() == 0
    empty(application, application.topology.documents)
    application.start("alpha")
    application.audit.reach(len(lost), SECONDS)  # Though no other document comes.
    rejected = application.audit.rejected
    assert Counter(map(reason, rejected)) == {"payload-gone": len(lost)}
    assert sorted(map(source, rejected)) == sorted((one.partition, one.offset) for one in lost)
    more = application.feed(application.documents(texts[40:], 40))
    application.audit.finish(SECONDS)
    published = map(source, [*application.audit.unique, *application.audit.duplicate])
    assert sorted(published) == sorted((one.partition, one.offset) for one in more)


@pytest.mark.slow
def test_answers_deleted_unread_stop_a_start(launch: Launch) -> None:
    application = launch(partitions=1)
    application.start("alpha", arguments=JUDGES)
    application.feed(application.documents(corpus(10, 23)))
    wait_until(lambda: judged(application), SECONDS, "all documents to be judged")
    assert application.worker("alpha").stop() == 0
    assert not [
        problem
        for problem in inspect(cluster(application), application.settings).problems
        if problem.severity == "error"
    ]
    empty(application, application.topology.matches(1))
    application.start("alpha")
    assert application.worker("alpha").wait(SECONDS) == 2
    assert "the answers for " in application.worker("alpha").output()
