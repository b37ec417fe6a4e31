"""A real Prometheus scrapes real workers: panels show data, and alerts fire when they should.

The rules are those that are shipped, in a hurry: a minute takes two seconds.
"""

from __future__ import annotations

import fcntl
import json
import math
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest

from chaos.disk import NoSmallDisk, mounted
from localkafka.broker import Kafka, KafkaCluster, wait_until
from localkafka.ports import free_ports
from tests.support.application import ApplicationUnderTest
from tests.support.clusters import ClusterFactory
from tests.support.corpus import corpus
from tests.support.prometheus import REQUIRED, Prometheus, scraping
from tests.support.server_process import Server
from tests.support.texts import near_copies
from tests.support.worker_process import ROOT
from tools.alerts import ALERTS
from tools.monitoring import files
from worker.bus import Outgoing

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow]

SECONDS: Final = 120.0
HEALTHY_SECONDS: Final = 45.0
"""A healthy hour is 120 s; the longest that a rule looks back, but for an hour, is 60 s."""
SOONER: Final = {"NeardupVerdictsLate": "> 10", "NeardupLag": "> 10", "NeardupKafkaSilent": "> 5"}
"""Limits in seconds, as the durations are shortened."""
A_DISK: Final = 64
"""Megabytes."""
PAGE: Final = ROOT / "docs" / "how-to" / "monitor.md"


def hurried(expression: str) -> str:
    """Return an expression in which a minute is two seconds, and an hour a minute."""
    shorter = re.sub(r"\b(\d+)m\]", lambda found: f"{max(4, 2 * int(found[1]))}s]", expression)
    return shorter.replace("[1h]", "[60s]").replace("offset 1h", "offset 20s")


def rules() -> dict[str, Any]:
    hurry = [
        {
            "alert": alert.name,
            "expr": f"{hurried(alert.value)} {SOONER.get(alert.name, alert.fires)}",
            "for": f"{2 * alert.minutes}s",
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "neardup", "rules": hurry}]}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with scraping(tmp_path_factory.mktemp("monitoring") / "prometheus", rules()) as server:
        yield server


def begin(application: ApplicationUnderTest, port: int, name: str, *arguments: str) -> str:
    """Start a worker on a port, and wait until it serves; return its address."""
    application.start(name, arguments=("--http", f"127.0.0.1:{port}", *arguments))
    worker = application.worker(name)
    wait_until(lambda: worker.readiness()[:3] in {"200", "503"}, SECONDS, f"{name} to serve")
    return f"127.0.0.1:{port}"


def seat(application: ApplicationUnderTest, port: int, name: str) -> str:
    address = begin(application, port, name)
    wait_until(application.worker(name).ready, SECONDS, f"{name} to be ready")
    return address


def fired(prometheus: Prometheus, application: ApplicationUnderTest, since: float) -> set[str]:
    """Return the names of an application's alerts that have fired since a time."""
    firing = f'ALERTS{{alertstate="firing",app="{application.settings.app}"}}'
    return {one["metric"]["alertname"] for one in prometheus.over(firing, since, time.time())}


def await_alerts(
    prometheus: Prometheus, application: ApplicationUnderTest, *names: str, since: float
) -> None:
    def missing() -> set[str]:
        return set(names) - fired(prometheus, application, since)

    try:
        wait_until(lambda: not missing(), SECONDS, "alerts")
    except TimeoutError as error:
        error.add_note(f"not fired: {missing()}")
        raise


def has_data(prometheus: Prometheus, expression: str, since: float) -> bool:
    """Return whether an expression had a value at any time."""
    found = prometheus.over(expression, since, time.time())
    return any(not math.isnan(float(value)) for one in found for _, value in one["values"])


def await_data(prometheus: Prometheus, asked: dict[str, str], since: float) -> None:
    """Wait until each expression, by who asks, has had a value."""

    def lacking() -> dict[str, str]:
        return {name: one for name, one in asked.items() if not has_data(prometheus, one, since)}

    try:
        wait_until(lambda: not lacking(), 30, "data")
    except TimeoutError as error:
        error.add_note(f"without data: {lacking()}")
        raise


def panels(app: str) -> Iterator[tuple[str, str]]:
    """Yield the queries of all panels: their names, and what they ask of an application."""
    for path, text in files().items():
        if path.endswith(".json"):
            for panel in json.loads(text)["panels"]:
                for target in panel.get("targets", ()):
                    asked = target["expr"].replace("$__rate_interval", "10s")
                    yield f"{path}: {panel['title']} {target['refId']}", asked.replace("$app", app)


def test_all_panels_and_rules_have_data_and_nothing_fires_while_all_is_well(
    kafka: Kafka, app_id: str, prometheus: Prometheus, tmp_path: Path
) -> None:
    snapshots = {"url": str(tmp_path / "snapshots"), "every_seconds": 4}
    settings = {"index.snapshots": snapshots}
    with ApplicationUnderTest(kafka, app_id, settings=settings, partitions=2) as application:
        since = time.time()
        one, two = free_ports(2)
        addresses = [seat(application, one, "alpha"), seat(application, two, "beta")]
        server = Server("server", application.config, tmp_path / "server")
        application.track(server.start("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"))
        try:
            wait_until(server.ready, SECONDS, "the server")
            served = server.current().partition("health on http://")[2].split()[0]
            prometheus.scrape([*addresses, served])
            stream(application, server, tmp_path, lambda: restart(application, one, two))
            assert fired(prometheus, application, since) == set()
            application.feed([Outgoing(application.topology.documents, 0, b"a", b"no JSON")])
            await_alerts(prometheus, application, "NeardupRejected", since=since)
            asked = dict(panels(app_id)) | {one.name: hurried(one.value) for one in ALERTS}
            await_data(prometheus, asked, since)
            (scaler,) = re.findall(r"^ +query: (.*)$", PAGE.read_text(), re.MULTILINE)
            (answer,) = prometheus.query(scaler.replace('"neardup"', f'"{app_id}"'))
            assert float(answer["value"][1]) >= 0
        finally:
            server.kill()


def restart(application: ApplicationUnderTest, *ports: int) -> None:
    """Restart the workers one after the other."""
    for name, port in zip(("alpha", "beta"), ports, strict=True):
        assert application.worker(name).stop() == 0
        seat(application, port, name)


def stream(
    application: ApplicationUnderTest, server: Server, directory: Path, halfway: Callable[[], None]
) -> None:
    """Feed documents at the pace of their verdicts, ask the server, and do something halfway."""
    texts = cycle(near_copies(2_000, 5))
    question = directory / "question.json"
    question.write_text(json.dumps({"id": "q", "text": "What would this be?"}))
    begun, fed = time.monotonic(), 0
    done = False
    while time.monotonic() < begun + HEALTHY_SECONDS:
        fed += len(application.feed(application.documents([next(texts) for _ in range(20)])))
        application.audit.reach(fed, SECONDS)
        assert server.ask(question)["answers"]
        if not done and time.monotonic() > begun + HEALTHY_SECONDS / 3:
            done = True
            halfway()


Incident = Callable[[ApplicationUnderTest, Prometheus, int], None]


def no_index(application: ApplicationUnderTest, prometheus: Prometheus, port: int) -> None:
    """Nobody runs the index: documents wait for their verdicts."""
    since = time.time()
    prometheus.scrape([begin(application, port, "alpha", "--stages", "fingerprint,route")])
    application.feed(application.documents(corpus(50, 3)))
    await_alerts(prometheus, application, "NeardupVerdictsLate", "NeardupDown", since=since)


def storage_hangs(application: ApplicationUnderTest, prometheus: Prometheus, port: int) -> None:
    """A worker has lost its disk, and the storage of the snapshots doesn't answer."""
    alpha = application.worker("alpha")
    prometheus.scrape([seat(application, port, "alpha")])
    application.feed(application.documents(corpus(50, 3)))
    application.audit.reach(50, SECONDS)
    alpha.await_text(": snapshot at offset", SECONDS, times=4)
    since = time.time()
    alpha.kill()
    shutil.rmtree(alpha.state_dir)
    kept = application.settings.index.snapshots.url
    assert kept is not None
    with withheld(Path(kept).rglob("snapshots/*.json")):
        begin(application, port, "alpha")
        application.feed(application.documents(corpus(50, 4), first=50))
        expected = "NeardupRestore", "NeardupLag", "NeardupNotReady", "NeardupWatchdog"
        await_alerts(prometheus, application, *expected, since=since)
    wait_until(alpha.ready, SECONDS, "the worker to go on")


@contextmanager
def withheld(paths: Iterable[Path]) -> Iterator[None]:
    """Have whoever opens these files wait: up to 45 s, which Linux gives the holder of a lease."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # It tells of those who wait.
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGIO, before)
        for path in paths:
            file = stack.enter_context(path.open("r+b"))  # To close it ends the lease.
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield


def disk_fills(application: ApplicationUnderTest, prometheus: Prometheus, port: int) -> None:
    """Something else takes the space of a worker's disk."""
    state = application.directory / "alpha" / "state"
    try:
        with mounted(state, A_DISK) as disk:
            application.worker("alpha", wrapper=disk.wrapper(ROOT)).state_from_outside = disk.inside
            prometheus.scrape([seat(application, port, "alpha")])
            since = time.time()
            (disk.inside / "ballast").write_bytes(bytes((A_DISK - 5) << 20))
            await_alerts(prometheus, application, "NeardupDisk", since=since)
            assert application.worker("alpha").stop() == 0  # It holds the mount.
    except NoSmallDisk as why:
        if REQUIRED:
            raise
        pytest.skip(str(why))


@pytest.mark.parametrize("incident", [no_index, storage_hangs, disk_fills])
def test_an_incident_is_told_of(
    kafka: Kafka, app_id: str, prometheus: Prometheus, tmp_path: Path, incident: Incident
) -> None:
    settings: dict[str, dict[str, object]] = {"watchdog": {"restore_seconds": 60}}
    if incident is storage_hangs:
        settings["index.snapshots"] = {"url": str(tmp_path / "kept"), "every_seconds": 1}
    with ApplicationUnderTest(kafka, app_id, settings=settings) as application:
        (port,) = free_ports(1)
        incident(application, prometheus, port)


def test_a_broker_that_is_away_is_told_of(
    kafka_cluster: ClusterFactory, app_id: str, prometheus: Prometheus
) -> None:
    cluster: KafkaCluster = kafka_cluster(1)
    with ApplicationUnderTest(cluster, app_id) as application:
        (port,) = free_ports(1)
        prometheus.scrape([seat(application, port, "alpha")])
        since = time.time()
        cluster.pause(1)
        try:
            await_alerts(prometheus, application, "NeardupKafkaSilent", since=since)
        finally:
            cluster.resume(1)
