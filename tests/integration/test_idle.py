"""Time passes over an idle application: retention takes what is read, and it goes on."""

import json
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from localkafka.broker import wait_until
from tests.integration.conftest import PROTOCOLS, Launch
from tests.support.application import ApplicationUnderTest

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

WAIT_SECONDS: Final = 60.0
TEXT: Final = "a text that says nothing much, but is long enough to be told from others"


def ends(application: ApplicationUnderTest, topics: list[str]) -> dict[TopicPartition, int]:
    """Give the log's end of every partition, markers included."""
    reader = Consumer({"bootstrap.servers": application.kafka.bootstrap, "group.id": "ends"})
    try:
        known = reader.list_topics(timeout=WAIT_SECONDS).topics
        places = [TopicPartition(name, n) for name in topics for n in known[name].partitions]
        return {place: reader.get_watermark_offsets(place, WAIT_SECONDS)[1] for place in places}
    finally:
        reader.close()


def settled(application: ApplicationUnderTest, stage: str, topics: list[str]) -> bool:
    """Tell whether a stage's group stands at the end of its inputs."""
    group = application.topology.group(stage)
    asking = Consumer({"bootstrap.servers": application.kafka.bootstrap, "group.id": group})
    try:
        wanted = ends(application, topics)
        found = asking.committed(list(wanted), WAIT_SECONDS)
        return all(wanted[place] == place.offset for place in found)
    finally:
        asking.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_topics_that_retention_has_emptied_are_read_on(launch: Launch, protocol: str) -> None:
    application = launch(partitions=2, settings={"kafka": {"group_protocol": protocol}})
    application.start("alpha")
    topology = application.topology
    writer = Producer(
        {"bootstrap.servers": application.kafka.bootstrap, "transactional.id": topology.documents}
    )
    writer.init_transactions(WAIT_SECONDS)

    def write(first: int, *, commit: bool) -> None:
        writer.begin_transaction()
        for number in range(first, first + 4):
            value = json.dumps({"id": f"d{number}", "text": f"{TEXT} {number * 997}"})
            writer.produce(topology.documents, value, partition=number % 2)
        writer.flush(WAIT_SECONDS)
        (writer.commit_transaction if commit else writer.abort_transaction)(WAIT_SECONDS)

    inputs = {
        "fingerprint": [topology.documents],
        "route": list(topology.inputs("route")),
    }

    def all_settled() -> bool:
        return all(settled(application, stage, topics) for stage, topics in inputs.items())

    write(0, commit=True)
    write(4, commit=False)
    application.audit.reach(4)
    wait_until(all_settled, WAIT_SECONDS, "offsets at the ends of the logs")
    application.worker("alpha").kill()
    emptied = [
        TopicPartition(p.topic, p.partition, end)
        for p, end in ends(
            application, sorted({name for topics in inputs.values() for name in topics})
        ).items()
    ]
    admin = application.kafka.admin()  # Held until the results are there.
    for deleted in admin.delete_records(emptied).values():
        deleted.result(WAIT_SECONDS)
    application.start("alpha")
    write(8, commit=True)
    application.audit.reach(8)
    assert application.worker("alpha").running
