"""Shards that come back from snapshots, and shards that were kept warm, on a real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.integration.stream import stream
from tests.support.application import ApplicationUnderTest
from tests.support.corpus import corpus, scaled
from tests.support.proof import index_problems, prove
from tests.support.sealing import put_bucket
from worker.admin.cluster import Cluster
from worker.index.inspection import inspect_store
from worker.index.store import BandStore

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1_800), pytest.mark.slow]

SECONDS = 60.0


def log_start(application: ApplicationUnderTest) -> int:
    """Return where the log begins."""
    order = application.topology.order
    ranges = Cluster(application.settings.kafka_options(), 30).ranges({order.topic: 1})
    return ranges[order][0]


def test_a_worker_that_lost_its_disk_restores_what_the_log_has_no_more(
    launch: Launch, tmp_path: Path
) -> None:
    snapshots = {"url": str(tmp_path / "kept"), "every_seconds": 1, "keep": 1, "trim_log": True}
    application = launch(settings={"index.snapshots": snapshots})
    application.seat("alpha", "beta")

    def lose() -> None:
        wait_until(lambda: log_start(application) > 0, SECONDS, "a trimmed log")
        worker = application.worker("beta")
        worker.kill()
        worker.state_dir.rename(worker.state_dir.with_name("lost"))
        application.start("beta")

    stream(application, corpus(scaled(3_000, 20_000), 11), [lose], 11, seconds=300)
    prove(application, seconds=600)
    assert "fetching the snapshot at offset" in application.worker("beta").output()
    for name in ("alpha", "beta"):
        assert application.worker(name).stop() == 0
    assert index_problems(application) == []

    doctored = application.worker("alpha").state_dir
    for path in doctored.glob("shard-???"):
        _empty_a_bucket(path)
    problems = index_problems(application)
    assert problems
    assert all(" of alpha: bucket " in found and " is missing: " in found for found in problems)


def _empty_a_bucket(path: Path) -> None:
    store = BandStore(path, inspect_store(path).header)
    try:
        for place in sorted(store.contents().buckets())[:1]:  # None, if another worker had it.
            put_bucket(store, place, [])
        store.flush()
    finally:
        store.close()


def test_a_warm_shard_answers_elsewhere_without_replay(launch: Launch) -> None:
    application = launch(settings={"index": {"standby": "all"}})
    application.seat("alpha", "beta")
    alpha = application.worker("alpha")

    def leave() -> None:
        application.audit.reach(len(application.inputs))
        application.worker("beta").kill()
        wait_until(lambda: "was kept warm" in alpha.output(), SECONDS, "a warm shard")

    documents = corpus(scaled(3_000, 20_000), 12)
    stream(application, documents, [leave], 12, seconds=300)
    application.audit.reach(len(application.inputs), 300)
    after = alpha.output().partition("was kept warm")[2]
    assert "replays its log" not in after
    application.start("beta")
    prove(application, seconds=600)
