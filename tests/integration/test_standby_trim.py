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
from worker.admin import Cluster
from worker.app import Application
from worker.bus.kafka.bus import KafkaBus

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(1_800), pytest.mark.exhaustive]

SECONDS: Final = 120.0
ROUNDS: Final = scaled(1, 4)
BURSTS: Final = 60

_LAG = re.compile(r'^neardup_standby_lag_records\{shard="(\d+)"\} (\S+)$', re.MULTILINE)


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


def test_one_shard_behind_the_trim_costs_the_others_nothing(launch: Launch, tmp_path: Path) -> None:
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
    for number in range(2 * ROUNDS):
        shard = number % 2
        wait_until(partial(is_warm, application, zeta), SECONDS, "zeta to be warm")
        end = log_end(application)
        zeta.signal(signal.SIGSTOP)
        feed()
        wait_until(partial(trimmed, application, shard, end), SECONDS, "a snapshot to trim to")
        zeta.signal(signal.SIGCONT)
        feed()
        application.audit.reach(len(application.inputs), SECONDS)
    wait_until(partial(is_warm, application, zeta), SECONDS, "zeta to be warm again")
    assert zeta.output().count("is outside the log") >= 2 * ROUNDS, zeta.output()

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


def trimmed(application: ApplicationUnderTest, shard: int, end: int) -> bool:
    """Trim a shard's log to its newest snapshot, if that is past an offset."""
    bus = KafkaBus(application.settings.kafka_options())
    owner = Application(application.settings, application.topology, bus, application.directory)
    repository = owner.repository()
    assert repository is not None
    offsets = [manifest.offset for manifest in repository.shard(shard).manifests()]
    if max(offsets, default=0) <= end:
        return False
    bus.trim(*application.topology.order, max(offsets))
    return True
