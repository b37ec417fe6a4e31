"""Partitions are added to the documents: the way on that the messages name loses nothing."""

import json
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewPartitions  # Typed there; the admin module passes it on.

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from worker.bus import Outgoing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240), pytest.mark.exhaustive]


def neardup(config: Path, *arguments: str, status: int = 0) -> str:
    """Run a command; return what it prints."""
    done = on_kafka(*arguments, "--config", config)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def add_partition(application: ApplicationUnderTest) -> int:
    """Add a partition to the documents; return its number."""
    topology = application.topology
    number = topology.layout.partitions
    admin = application.kafka.admin()  # Held: its requests die with it.
    more = NewPartitions(topology.documents, number + 1)
    admin.create_partitions([more])[topology.documents].result(60)
    return number


def document(application: ApplicationUnderTest, ident: str, partition: int) -> Outgoing:
    value = json.dumps({"id": ident, "text": f"the text that {ident} has for itself"}).encode()
    return Outgoing(application.topology.documents, partition, ident.encode(), value)


def members(application: ApplicationUnderTest) -> int:
    group = application.topology.group("route")
    admin = application.kafka.admin()  # Held: its requests die with it.
    return len(admin.describe_consumer_groups([group])[group].result(30).members)


def test_a_successor_publishes_the_rest_once_and_the_new_partition_too(launch: Launch) -> None:
    refresh = {"kafka.consumer": {"topic.metadata.refresh.interval.ms": 1_000}}
    first = launch(partitions=2, settings=refresh)
    first.seat("alpha")
    first.feed([document(first, ident, n % 2) for n, ident in enumerate("abc")])
    first.audit.finish()

    added = add_partition(first)
    alpha = first.workers.pop("alpha")  # It ends with status 1, as it must.
    assert alpha.wait(120) == 1, alpha.tail()
    assert "partitions were added" in alpha.output()
    first.__dict__.pop("_producer")  # It knows the partitions that there were.
    rest = [document(first, ident, n % (added + 1)) for n, ident in enumerate("defghi")]
    first.feed(rest)

    said = neardup(first.config, "topics", "verify", status=2)
    app, documents = first.topology.app, first.topology.documents
    assert f"neardup topics create --app OTHER --from app:{app}" in said
    assert f"topics.documents={documents}" in said

    wait_until(lambda: not members(first), 60, "the session of the last member to end")
    topics = {name: getattr(first.topology, name) for name in ("documents", "unique", "duplicate")}
    second, config = f"{app}-2", first.write_config("second.toml", {"topics": topics})
    made = neardup(config, "topics", "create", "--app", second, "--from", f"app:{app}")
    assert "ok, 2 warnings: 3 partitions" in made  # Of the outputs' number, which may stay.
    beta = first.worker("beta")
    beta.config = config
    first.start("beta", arguments=("--app", second))
    audit = first.audit
    audit.until(lambda: len(audit.records) >= 3 + len(rest), 120, "the rest to be published")
    assert beta.stop() == 0
    audit.read(1.0)
    published = sorted(json.loads(one.value or b"")["id"] for one in audit.records)
    assert published == list("abcdefghi")
