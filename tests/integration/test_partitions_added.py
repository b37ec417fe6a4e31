"""Partitions are added to the documents under running workers, which take them up."""

from pathlib import Path
from time import monotonic

import pytest
from confluent_kafka.cimpl import NewPartitions  # Typed there; the admin module passes it on.

from tests.integration.conftest import Launch
from tests.integration.reindexing import Feeder, ends, judged, started
from tests.support.application import ApplicationUnderTest
from tests.support.command_line import on_kafka
from tests.support.corpus import corpus, scaled

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300), pytest.mark.slow(ci=False)]


def seated(launch: Launch, protocol: str) -> ApplicationUnderTest:
    """Start two workers on two partitions."""
    settings = {"index": {"shards": 2}, "kafka": {"group_protocol": protocol}}
    application = launch(partitions=2, settings=settings)
    application.seat("alpha", "beta")
    return application


def add_partition(application: ApplicationUnderTest) -> None:
    """Add a partition to the documents alone, as somebody who doesn't know neardup might."""
    topology = application.topology
    admin = application.kafka.admin()  # Held: its requests die with it.
    more = NewPartitions(topology.documents, topology.layout.partitions + 1)
    admin.create_partitions([more])[topology.documents].result(60)


def verified(application: ApplicationUnderTest, status: int = 0) -> str:
    """Run ``neardup topics verify``; return what it prints."""
    done = on_kafka("topics", "verify", "--config", application.config)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def outputs(application: ApplicationUnderTest) -> str:
    """Return what all workers have written."""
    return "".join(worker.output() for worker in application.workers.values())


def until_said(application: ApplicationUnderTest, text: str) -> None:
    """Wait until a worker has written this."""
    application.audit.until(lambda: text in outputs(application), 60, f"{text!r}")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_are_added_while_documents_stream(
    launch: Launch, tmp_path: Path, protocol: str
) -> None:
    """Nobody restarts a worker, and a later reindex has as many."""
    application = seated(launch, protocol)
    first = Feeder(application, scaled(6_000, 60_000), 41, each=20)
    application.audit.reach(500)
    said = ends(application, started(application, "--partitions", "5"))
    assert "workers read 5 partitions of the documents (2 before)" in said
    assert said.count("has 5 partitions now") == 6
    application.audit.reach(first.ahead(500))
    first.stop()
    application.widen(5)
    application.feed(application.documents(corpus(1_000, 42), first.fed))
    application.audit.reach(first.fed + 1_000)
    assert {one.partition for one in application.audit.records} == set(range(5))
    assert "read 5 partitions of the documents already" in ends(
        application, started(application, "--partitions", "5")
    )
    assert "ok: 5 partitions, 2 shards" in verified(application)
    ends(application, started(application, "--shards", "3"))
    application.worker("alpha").kill()
    application.start("alpha")
    application.feed(application.documents(corpus(500, 43), first.fed + 1_000))
    longest = judged(application, tmp_path, first.fed + 1_500, [0, 0])
    print(f"longest wait {longest:.2f} s")  # noqa: T201 -- a figure
    assert "ok: 5 partitions, 3 shards" in verified(application)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_that_somebody_adds_wait_for_the_command(
    launch: Launch, tmp_path: Path, protocol: str
) -> None:
    """No worker ends, or is refused. What the group has not assigned together waits, too."""
    application = seated(launch, protocol)
    texts = corpus(1_200, 45)
    application.feed(application.documents(texts[:300]))
    application.audit.reach(300)
    add_partition(application)
    until_said(application, "documents[2] is not read yet")
    application.feed(application.documents(texts[300:600], 300))
    application.worker("beta").kill()
    assert "fix: neardup reindex --partitions 3" in verified(application)
    application.start("beta")
    until_said(application, "waits: this worker lacks some of its inputs")
    if protocol == "classic":  # Its members ask for another assignment after 30 s, if that helps.
        later = monotonic() + 35
        application.audit.until(lambda: monotonic() > later, 60, "the time to pass")
        assert "asking for another assignment" not in outputs(application)
    said = ends(application, started(application, "--partitions", "3"))
    assert f"{application.topology.documents} has" not in said
    application.widen(3)
    application.feed(application.documents(texts[600:], 600))
    judged(application, tmp_path, 1_200, [0])
    assert "ok: 3 partitions, 2 shards" in verified(application)
    assert not application.ended()
