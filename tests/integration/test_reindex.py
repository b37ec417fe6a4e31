"""The index of running workers is replaced while documents stream."""

from collections.abc import Callable
from pathlib import Path
from time import monotonic

import psutil
import pytest
from confluent_kafka import Producer

from localkafka.broker import wait_until
from tests.integration.conftest import PROTOCOLS, Launch
from tests.integration.refusal import refused
from tests.integration.reindexing import Feeder, ends, judged, started
from tests.support.application import ApplicationUnderTest
from tests.support.corpus import corpus, scaled
from worker.admin.cluster import Cluster
from worker.admin.reindex.in_use import planned

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


def building(application: ApplicationUnderTest) -> bool:
    """Tell whether the workers have a generation to build."""
    plan = planned(Cluster(application.settings.kafka_options()), application.settings)
    return plan is not None and plan.following is not None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_shards_and_rules_change_while_documents_stream(
    launch: Launch,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    protocol: str,
) -> None:
    application = launch(settings={"index": {"shards": 2}, "kafka": {"group_protocol": protocol}})
    application.seat("alpha", "beta")
    feeder = Feeder(application, scaled(60_000, 300_000), 31, each=scaled(50, 200))
    application.audit.reach(2_000)
    began, before = monotonic(), feeder.fed
    ends(application, started(application, "--shards", "4", "--threshold", "0.9"))
    rate = (feeder.fed - before) / (monotonic() - began)
    feeder.stop()
    longest = judged(application, tmp_path, feeder.fed, [0, 0])
    record_property("longest_wait_seconds", round(longest, 2))
    print(  # noqa: T201 -- a figure
        f"{feeder.fed} documents, {rate:.0f}/s during the reindex, longest wait {longest:.2f} s"
    )


@pytest.mark.slow(ci=False)
def test_workers_and_the_command_are_killed_meanwhile(launch: Launch, tmp_path: Path) -> None:
    application = launch(settings={"index": {"shards": 2}})
    application.seat("alpha", "beta")
    feeder = Feeder(application, scaled(20_000, 100_000), 32, each=50)
    application.audit.reach(1_000)
    command = started(application, "--shards", "3", "--bucket-capacity", "4")
    with command:
        application.audit.until(lambda: building(application), 120, "the workers to build")
        application.worker("alpha").kill()
        command.kill()
    application.start("alpha")
    application.audit.reach(feeder.ahead(500))
    command = started(application)
    application.audit.reach(feeder.ahead(1_000))
    application.worker("beta").kill()
    application.start("beta")
    assert "done" in ends(application, command)
    feeder.stop()
    judged(application, tmp_path, feeder.fed, [0, 0])


@pytest.mark.slow(ci=False)
def test_what_was_replaced_leaves_no_thread_and_no_file_open(launch: Launch) -> None:
    application = launch(settings={"index": {"shards": 2}, "kafka": {"group_protocol": "consumer"}})
    application.seat("alpha")
    process = application.worker("alpha").process
    assert process is not None
    worker = psutil.Process(process.pid)
    texts = corpus(500, 34)

    def judged_another(number: int, *arguments: str) -> None:
        if arguments:
            ends(application, started(application, *arguments))
        some = texts[100 * number : 100 * (number + 1)]
        application.feed(application.documents(some, 100 * number))
        application.audit.reach(100 * (number + 1))

    judged_another(0)
    judged_another(1, "--shards", "3")
    judged_another(2, "--shards", "2")
    threads, files = worker.num_threads(), worker.num_fds()
    judged_another(3, "--shards", "3")
    judged_another(4, "--shards", "2")

    def no_more() -> bool:
        return worker.num_threads() <= threads and worker.num_fds() <= files

    wait_until(no_more, 60, f"{threads} threads and {files} open files, as two generations before")


@pytest.mark.slow
def test_workers_start_with_earlier_or_later_settings_and_what_is_left_is_deleted(
    launch: Launch, tmp_path: Path
) -> None:
    application = launch(settings={"index": {"shards": 2}})
    application.seat("alpha")
    texts = corpus(900, 33)
    application.feed(application.documents(texts[:300]))
    ends(application, started(application, "--shards", "3"))
    application.worker("alpha").kill()
    application.feed(application.documents(texts[300:600], 300))
    application.start("alpha")
    application.audit.reach(600)
    assert application.worker("alpha").stop() == 0
    application.worker("alpha").config = application.write_config(
        "later.toml", {"index": {"shards": 3}}
    )
    application.start("alpha")
    application.feed(application.documents(texts[600:], 600))
    judged(application, tmp_path, 900, [0, 0])
    assert application.worker("alpha").stop() == 0
    assert not list(application.worker("alpha").state_dir.glob("shard-*"))
    said = ends(application, started(application, "--clean"))
    assert said.splitlines() == [
        f"deleted {application.topology.app}.{topic}"
        for topic in ("shards", "matches-0", "matches-1")
    ]
    assert "generation 1 (3 shards" in ends(application, started(application, "--status"))
    assert "reindex --shards 5" in refused(application, {"index": {"shards": 5}})
    del application.workers["refused"]  # It ended as it must.


@pytest.mark.slow
def test_a_worker_with_the_settings_of_a_generation_that_was_cleaned_goes_on(
    launch: Launch, tmp_path: Path
) -> None:
    checks: dict[str, object] = {"check_seconds": 1.0}
    application = launch(settings={"index": {"shards": 2}, "worker": checks})
    application.seat("alpha")
    ends(application, started(application, "--threshold", "0.9"))
    alpha = application.worker("alpha")
    assert alpha.stop() == 0
    later: dict[str, dict[str, object]] = {
        "similarity": {"threshold": 0.9},
        "index": {"shards": 2},
        "worker": checks,
    }
    alpha.config = application.write_config("later.toml", later)
    application.start("alpha")
    ends(application, started(application, "--shards", "3"))
    ends(application, started(application, "--clean"))
    texts = corpus(600, 37)
    application.feed(application.documents(texts[:300]))
    application.audit.reach(300)
    assert alpha.stop() == 0
    application.start("alpha")
    application.feed(application.documents(texts[300:], 300))
    judged(application, tmp_path, 600, [0, 0, 0])
    assert "missing" not in alpha.output()


@pytest.mark.slow
def test_an_idle_application_is_reindexed_whatever_ends_its_log(launch: Launch) -> None:
    """Several markers follow the last frame if workers wrote in turns, or aborted."""
    application = launch(settings={"index": {"shards": 2}})
    application.seat("alpha")
    application.feed(application.documents(corpus(100, 35)))
    application.audit.reach(100)
    topology = application.topology
    writer = Producer(
        {"bootstrap.servers": application.kafka.bootstrap, "transactional.id": f"{topology.app}-w"}
    )
    writer.init_transactions(30)
    for _ in range(3):
        writer.begin_transaction()
        writer.produce(topology.fingerprints, b"nothing", partition=0)
        writer.flush(30)
        writer.abort_transaction(30)
    assert "done: generation 1" in ends(application, started(application, "--shards", "3"))
    application.feed(application.documents(corpus(100, 36), 100))
    application.audit.reach(200)
