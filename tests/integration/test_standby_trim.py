"""A standby that the log's trimming has overtaken, and that takes over all the same."""

from __future__ import annotations

import json
import re
import signal
import urllib.request
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest

from localkafka.broker import wait_until
from tests.integration.conftest import Launch
from tests.support.application import ApplicationUnderTest
from tests.support.corpus import scaled
from tests.support.proof import index_problems, prove
from tests.support.worker_process import WorkerProcess
from worker.admin.cluster import Cluster
from worker.app import Application
from worker.bus.kafka.bus import KafkaBus

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1_800), pytest.mark.slow(ci=False)]

SECONDS: Final = 120.0
ROUNDS: Final = scaled(1, 8)
BURSTS: Final = 60

_LAG = re.compile(r'^neardup_standby_lag_records\{app="[^"]+",shard="(\d+)"\} (\S+)$', re.MULTILINE)


def log_end(application: ApplicationUnderTest) -> int:
    """Return where the log ends."""
    order = application.topology.order
    found = Cluster(application.settings.kafka_options(), 30).ranges({order.topic: 1})
    return found[order][1]


def lag(worker: WorkerProcess) -> dict[int, float]:
    """Give how far behind each shard is that a worker keeps warm."""
    _, found, rest = worker.current().partition("metrics and health on ")
    assert found, worker.tail()
    with urllib.request.urlopen(f"{rest.split()[0]}/metrics", timeout=10) as answer:  # noqa: S310 -- ours
        text = answer.read().decode()
    return {int(shard): float(value) for shard, value in _LAG.findall(text)}


def is_warm(application: ApplicationUnderTest, worker: WorkerProcess) -> bool:
    """Tell whether a worker keeps warm what another owns, and has caught up."""
    application.audit.read(0.1)
    found = lag(worker)
    return len(found) == application.topology.layout.shards and not any(found.values())


def texts(count: int, random: Random) -> list[str]:
    """Make texts of which none resembles another."""
    return [" ".join(f"{random.getrandbits(40):010x}" for _ in range(40)) for _ in range(count)]


def test_a_standby_behind_the_trim_is_warm_again_and_takes_over(
    launch: Launch, tmp_path: Path
) -> None:
    snapshots = {"url": str(tmp_path / "kept"), "every_seconds": 1, "keep": 1}
    settings = {
        "index.snapshots": snapshots,
        "index": {"standby": "all", "shards": 2},
        "kafka": {"session_timeout_ms": 20_000},
    }
    # With two shards and one partition there is nothing for the third worker to own.
    application = launch(settings=settings, partitions=1)
    for name in ("alpha", "beta", "zeta"):
        application.seat(name)
    zeta = application.worker("zeta")
    random = Random(8)
    fed: list[str] = []

    def feed() -> None:
        """Feed a few at a time, which makes many frames."""
        for _ in range(BURSTS):
            fresh = texts(10, random)
            named = [(f"doc-{len(fed) + number}", text) for number, text in enumerate(fresh)]
            application.feed(application.documents(named))
            fed.extend(fresh)

    feed()
    application.audit.reach(len(application.inputs), SECONDS)
    for turn in range(1, ROUNDS + 1):
        wait_until(partial(is_warm, application, zeta), SECONDS, "zeta to be warm")
        end = log_end(application)
        zeta.signal(signal.SIGSTOP)
        feed()
        wait_until(partial(trimmed, application, end), SECONDS, "snapshots to trim to")
        zeta.signal(signal.SIGCONT)
        feed()
        application.audit.reach(len(application.inputs), SECONDS)
        wait_until(partial(has_restored, application, zeta, 2 * turn), SECONDS, "zeta to restore")
    wait_until(partial(is_warm, application, zeta), SECONDS, "zeta to be warm again")

    for name in ("alpha", "beta"):
        application.worker(name).kill()
    copies = [(f"copy-{number}", text) for number, text in enumerate(fed)]
    application.feed(application.documents(copies))
    application.audit.reach(len(application.inputs), 300)
    duplicates = {json.loads(record.value or b"")["id"] for record in application.audit.duplicate}
    assert duplicates == {ident for ident, _ in copies}
    prove(application, seconds=300)
    assert zeta.stop() == 0
    assert index_problems(application) == []


def has_restored(application: ApplicationUnderTest, worker: WorkerProcess, times: int) -> bool:
    """Tell whether a worker has been behind the log so often, and has fetched a snapshot since.

    What it exports may still be from before it was stopped.
    """
    application.audit.read(0.1)
    _, *parts = worker.output().split("is outside the log")
    # Each line is there twice: for the shard, and for its directory, which is put aside.
    return len(parts) >= 2 * times and all(
        f"open-shard-{shard} shard {shard}: fetched" in "".join(parts[-4:]) for shard in (0, 1)
    )


def trimmed(application: ApplicationUnderTest, end: int) -> bool:
    """Trim the log to the newest snapshots of all shards, if those are past an offset."""
    bus = KafkaBus(application.settings.kafka_options())
    owner = Application(application.settings, application.topology, bus, application.directory)
    repository = owner.repository()
    assert repository is not None
    shards = range(application.topology.layout.shards)
    newest = [
        max((one.offset for one in repository.shard(shard).manifests()), default=0)
        for shard in shards
    ]
    if min(newest) <= end:
        return False
    bus.trim(*application.topology.order, min(newest))
    return True
