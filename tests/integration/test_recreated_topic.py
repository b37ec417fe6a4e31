"""The documents' topic is deleted and recreated, under workers and while none is there."""

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import PROTOCOLS, Launch
from tests.support.application import ApplicationUnderTest
from tests.support.audit import read_all
from worker.bus import TopicPartition

TEXT = "the quick brown fox jumps over the lazy dog and runs away from number"
SECONDS = 60.0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_document_of_a_later_topic_is_judged(launch: Launch, protocol: str) -> None:
    """The new topic holds more than the old one: all its offsets are in range."""
    application = launch(partitions=2, settings={"kafka": {"group_protocol": protocol}})
    application.seat("alpha")
    application.feed(application.documents([(f"old-{n}", f"{TEXT} {n}") for n in range(60)]))
    application.audit.reach(60, SECONDS)

    _recreate(application)
    application.feed(application.documents([(f"new-{n}", f"{TEXT} {n}") for n in range(500)]))
    alpha = application.worker("alpha")
    assert alpha.wait(SECONDS) == 1
    assert "was deleted and recreated" in alpha.output()
    assert "Traceback" not in alpha.output()

    # Nor by whoever starts next.
    application.start("beta")
    assert application.worker("beta").wait(SECONDS) in {1, 2}
    topology = application.topology
    outputs = (topology.unique, topology.duplicate, topology.rejected)
    published = [
        record
        for topic in outputs
        for number in range(topology.layout.partitions)
        for record in read_all(application.kafka.bootstrap, TopicPartition(topic, number))
    ]
    assert len(published) == 60
    assert all(b"old-" in (record.value or b"") for record in published)


def _recreate(application: ApplicationUnderTest) -> None:
    topic = application.topology.documents
    admin = application.kafka.admin()
    admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, 60, "it to be gone")
    application.kafka.create_topic(topic, application.topology.layout.partitions)
