"""What is wrong at the start of a worker is one line, and status 2."""

import signal
import socket

import pytest
from confluent_kafka.cimpl import NewTopic

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.integration.refusal import refused
from tests.support.application import ApplicationUnderTest
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120), pytest.mark.slow]


def recreate(application: ApplicationUnderTest, topic: str, partitions: int | None) -> None:
    """Delete a topic, and make it anew with so many partitions, if any."""
    admin = application.kafka.admin()
    admin.delete_topics([topic])[topic].result(60)
    if partitions is not None:
        new = NewTopic(topic, partitions, 1)
        admin.create_topics([new])[topic].result(60)

    def known() -> bool:
        found = admin.list_topics(timeout=30).topics.get(topic)
        return (len(found.partitions) if found else 0) == (partitions or 0)

    wait_until(known, 30, f"{topic} with {partitions} partitions")


def test_a_missing_topic(launch: Launch) -> None:
    application = launch()
    recreate(application, application.topology.seats, None)
    assert application.topology.seats in refused(application)


def test_a_wrong_partition_count(launch: Launch) -> None:
    application = launch()
    topic = application.topology.matches(0)
    recreate(application, topic, 3)
    line = refused(application)
    assert topic in line
    assert "3" in line


def test_a_group_without_offsets(launch: Launch) -> None:
    application = launch()
    group = application.topology.group("index")
    admin = application.kafka.admin()  # Held: its requests die with it.
    admin.delete_consumer_groups([group])[group].result(60)
    assert group in refused(application)


def test_an_index_that_was_made_with_other_parameters(launch: Launch) -> None:
    application = launch()
    application.start("alpha")
    alpha = application.worker("alpha")
    application.feed(application.documents([("a", "some text or other")]))
    application.audit.finish()
    assert alpha.stop() == 0
    line = refused(application, {"index": {"absorb": 0.99}}, "--state-dir", str(alpha.state_dir))
    assert "absorb" in line
    assert "0.95" in line
    assert "0.99" in line


def test_a_state_directory_in_use(launch: Launch) -> None:
    application = launch()
    application.start("alpha")
    alpha = application.worker("alpha")
    alpha.await_text("; stages ")
    line = refused(application, None, "--state-dir", str(alpha.state_dir))
    assert "in use by another worker" in line


def test_a_port_in_use(launch: Launch) -> None:
    application = launch()
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        line = refused(application, None, "--http", f"127.0.0.1:{port}")
    assert str(port) in line


def test_a_setting_that_does_not_exist(launch: Launch) -> None:
    application = launch()
    assert "did you mean index.shards" in refused(application, {"index": {"shard": 3}})


def test_no_broker(launch: Launch) -> None:
    application = launch()
    config = application.write_config("nowhere.toml", {"kafka": {"bootstrap": "127.0.0.1:1"}})
    worker = WorkerProcess("nowhere", config, application.directory / "nowhere")
    application.workers["nowhere"] = worker
    application.track(worker.start())
    wait_until(lambda: "waiting for Kafka: no broker of 127.0.0.1:1" in worker.output(), 60, "it")
    worker.signal(signal.SIGTERM)
    assert worker.wait(30) == 0, worker.tail()
