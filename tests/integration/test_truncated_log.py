"""The documents' log loses its end and grows again, past what workers have read."""

from __future__ import annotations

import json
from time import monotonic

import pytest

from localkafka.broker import KafkaCluster, wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.audit import read_all
from tests.support.clusters import ClusterFactory
from worker.bus import Record, TopicPartition
from worker.wire.headers import NOT_JUDGED

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(300)]

TEXT = "the quick brown fox jumps over the lazy dog and runs away from number"
SECONDS = 60.0
READ, KEPT, MORE = 40, 15, 60


def published(application: ApplicationUnderTest) -> dict[str, list[Record]]:
    """Give what is on each output, by the output's name in the topology."""
    topology = application.topology
    return {
        name: read_all(application.kafka.bootstrap, TopicPartition(topic, 0))
        for name, topic in (
            ("unique", topology.unique),
            ("duplicate", topology.duplicate),
            ("rejected", topology.rejected),
        )
    }


def write(application: ApplicationUnderTest, what: str, count: int) -> None:
    """Write different documents one by one: a log is cut off between batches."""
    for number in range(count):
        ident = f"{what}-{number}"
        application.feed(application.documents([(ident, f"{TEXT} {ident} {TEXT[::-1]} {ident}")]))


def lose_end(cluster: KafkaCluster, application: ApplicationUnderTest, offset: int) -> None:
    """Have the documents lose what they have from an offset on, while the broker is down."""
    cluster.stop(1)
    assert cluster.lose_end(1, application.topology.documents, 0, offset) == offset
    cluster.start(1)
    application.renew_producer()


def said(application: ApplicationUnderTest, *line: str) -> tuple[int, str]:
    """Run a command; give its status and what it says."""
    command = application.command(*line, "--config", str(application.config))
    output, _ = command.communicate(timeout=SECONDS)
    return command.returncode, " ".join(output.split())


def accepted(application: ApplicationUnderTest) -> tuple[int, str]:
    """Have a command go on after the cut, once the session of a stopped worker has ended."""
    deadline = monotonic() + SECONDS
    while True:
        status, output = said(application, "init", "--accept")
        if "the group has active members" not in output or monotonic() > deadline:
            return status, output


@pytest.mark.slow(ci=False)
def test_nothing_is_missing_without_a_word(kafka_cluster: ClusterFactory, app_id: str) -> None:
    """A worker that was away doesn't start; a command has it go on, and nothing is lost."""
    cluster = kafka_cluster(1)
    with ApplicationUnderTest(cluster, app_id, partitions=1) as application:
        application.seat("alpha")
        write(application, "old", READ)
        application.audit.reach(READ, SECONDS)
        alpha = application.worker("alpha")
        assert alpha.stop() == 0
        lose_end(cluster, application, KEPT)
        write(application, "new", MORE)
        place = f"{application.topology.documents}[0]"

        status, output = said(application, "topics", "verify")
        assert status == 2
        assert f"its offset of {place} is {READ} in leader epoch " in output
        assert f"must be at most {KEPT}" in output
        application.start("alpha")
        assert alpha.wait(SECONDS) == 2
        assert f"{place} has lost its end" in alpha.output()
        assert "Traceback" not in alpha.output()

        status, output = accepted(application)
        assert (status, f"{READ - KEPT} documents that nobody has read" in output) == (0, True)
        assert said(application, "topics", "verify")[0] == 0
        aside = published(application)["rejected"]
        assert [record.value is not None for record in aside] == [True] * (READ - KEPT)
        reasons = {dict(record.headers)["neardup-error-reason"] for record in aside}
        assert reasons == {NOT_JUDGED.encode()}
        application.seat("alpha")
        assert said(application, "redrive")[0] == 0
        ids = {f"old-{n}" for n in range(READ)} | {f"new-{n}" for n in range(MORE)}

        def judged() -> bool:
            found = published(application)
            verdicts = [*found["unique"], *found["duplicate"]]
            return sorted(json.loads(one.value or b"")["id"] for one in verdicts) == sorted(ids)

        wait_until(judged, SECONDS, "a verdict for every document that was ever written")
        assert alpha.stop() == 0


def test_a_running_worker_ends(kafka_cluster: ClusterFactory, app_id: str) -> None:
    cluster = kafka_cluster(1)
    with ApplicationUnderTest(cluster, app_id, partitions=1) as application:
        application.seat("alpha")
        write(application, "old", READ)
        application.audit.reach(READ, SECONDS)
        lose_end(cluster, application, KEPT)
        write(application, "new", MORE)
        alpha = application.worker("alpha")
        assert alpha.wait(SECONDS) == 1
        topic = application.topology.documents
        assert f"{topic}[0]: the log has lost its end from offset {KEPT} on." in alpha.output()
        assert "Traceback" not in alpha.output()
        assert not any(b"new" in (one.value or b"") for one in published(application)["unique"])
