"""Settings of topics that are changed while workers run."""

from __future__ import annotations

import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from worker.bus import Outgoing

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

SECONDS = 60.0


def compact(application: ApplicationUnderTest, topic: str) -> None:
    """Have a topic keep the last record of each key."""
    change = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = application.kafka.admin()
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def test_a_worker_ends_if_its_input_is_compacted(launch: Launch) -> None:
    application = launch(partitions=1, settings={"worker": {"check_seconds": 1}})
    application.seat("alpha")
    compact(application, application.topology.documents)
    alpha = application.worker("alpha")
    assert alpha.wait(SECONDS) == 2
    said = alpha.output()
    assert (
        f"changed while the worker runs: {application.topology.documents}: cleanup.policy" in said
    )
    assert "a compacted log drops documents before they are read" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_a_compacted_output_and_a_document_without_a_key(launch: Launch) -> None:
    """It is fine while all documents have keys, so this is a warning until one has none."""
    application = launch(partitions=1)
    topology = application.topology
    compact(application, topology.unique)
    application.seat("alpha")
    (fed,) = application.feed(
        [Outgoing(topology.documents, 0, None, b'{"text": "a document without a key"}')]
    )
    alpha = application.worker("alpha")
    assert alpha.wait(SECONDS) == 1
    last = alpha.output().splitlines()[-1]
    assert f"the document {topology.documents}[0] offset {fed.offset} has none" in last
    assert f"Set cleanup.policy=delete on {topology.unique}" in last
