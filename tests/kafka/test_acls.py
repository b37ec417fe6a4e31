"""On a broker with TLS, SASL and an authorizer: each command with the rights of the table."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from localkafka.broker import wait_until
from localkafka.secured import SecuredKafka
from tests.support.command_line import environment, neardup
from tests.support.server_process import serving
from tests.support.worker_process import WorkerProcess
from worker.admin.acls import Grant, grants, minimal
from worker.admin.cluster import Cluster
from worker.settings.loading import load
from worker.topology import Topology

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

WAIT_SECONDS = 90.0
DOCUMENT = b'{"id": "one", "text": "a text that is long enough to be told from others"}'


@pytest.fixture(scope="module")
def broker() -> Iterator[SecuredKafka]:
    with SecuredKafka() as one:
        yield one


class Site:
    """An application on the secured broker, and a user without rights."""

    def __init__(
        self, broker: SecuredKafka, app: str, directory: Path, user: str | None = None
    ) -> None:
        self.broker, self.app, self.user, self._directory = broker, app, user or app, directory
        self.inits = 0
        broker.add_user(self.user)
        self.documents = directory / "documents.jsonl"
        self.documents.write_bytes(DOCUMENT + b"\n")

    def topology(self, app: str | None = None) -> Topology:
        return load(overrides={"app": app or self.app}).topology(1)

    def config(
        self, app: str | None = None, protocol: str = "classic", id_bytes: int = 1_024
    ) -> Path:
        """Write the settings of the user."""
        path = self._directory / f"{app or self.app}-{self.user}.toml"
        common = self.broker.client_settings(self.user)
        lines = [
            f'app = "{app or self.app}"',
            "[kafka]",
            f'bootstrap = "{self.broker.secured_bootstrap}"',
            f'group_protocol = "{protocol}"',
            "[kafka.common]",
            *(f'"{name}" = "{value}"' for name, value in common.items()),
            "[limits]",
            f"id_bytes = {id_bytes}",
        ]
        path.write_text("\n".join(lines) + "\n")
        return path

    def create(self) -> None:
        """Create the application as an administrator."""
        done = neardup(
            "topics", "create", "--app", self.app, "--bootstrap", self.broker.bootstrap,
            "--partitions", "1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def allow(self, wanted: list[Grant]) -> None:
        for one in wanted:
            self.broker.allow(self.user, one.kind, one.name, one.operation, prefixed=one.prefixed)

    def revoke(self, one: Grant) -> None:
        self.broker.revoke(self.user, one.kind, one.name, one.operation, prefixed=one.prefixed)

    def write(self, topic: str, headers: Mapping[str, bytes]) -> None:
        """Write a record as an administrator."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        producer.produce(topic, DOCUMENT, headers=dict(headers))
        assert producer.flush(60) == 0

    def written(self, topic: str) -> int:
        """Return where a topic of one partition ends."""
        cluster = Cluster(
            load(overrides={"kafka.bootstrap": self.broker.bootstrap}).kafka_options()
        )
        [(_, high)] = cluster.ranges({topic: 1}).values()
        return high


@pytest.fixture
def site(broker: SecuredKafka, app_id: str, tmp_path: Path) -> Site:
    return Site(broker, app_id, tmp_path)


def create(site: Site, app: str) -> int:
    config = site.config(app)
    return neardup("topics", "create", "--partitions", "1", "--config", config).returncode


def verify(site: Site, app: str) -> int:
    return neardup("topics", "verify", "--config", site.config(app)).returncode


def init(site: Site, app: str) -> int:
    site.inits += 1  # A setting that is recorded already is not written again.
    config = site.config(app, id_bytes=500 + site.inits)
    return neardup("init", "--force", "--from", "latest", "--config", config).returncode


def feed(site: Site, app: str) -> int:
    return neardup("feed", site.documents, "--config", site.config(app)).returncode


def redrive(site: Site, app: str) -> int:
    topology = site.topology(app)
    site.write(
        topology.rejected,
        {
            "neardup-error-reason": b"no-text: none",
            "neardup-error-topic": topology.documents.encode(),
            "neardup-error-partition": b"0",
            "neardup-error-offset": b"0",
        },
    )
    done = neardup("redrive", "--config", site.config(app))
    assert done.returncode or not done.stderr.startswith(b"0 sent again"), done.stderr
    return done.returncode


def allow(site: Site, app: str) -> int:
    return neardup("allow", "--no-wait", "a text", "--config", site.config(app)).returncode


def forget(site: Site, app: str) -> int:
    return neardup("forget", "--no-wait", "one", "--config", site.config(app)).returncode


def skip(site: Site, app: str) -> int:
    documents = site.topology(app).documents
    site.write(documents, {})
    end = site.written(documents)
    line = ("skip", "0", str(end - 1), "--to", str(end), "--yes")
    return neardup(*line, "--config", site.config(app)).returncode


_TRIES = 5

COMMANDS: Mapping[str, Callable[[Site, str], int]] = {
    "topics verify": verify,
    "init": init,
    "feed": feed,
    "redrive": redrive,
    "allow": allow,
    "forget": forget,
    "skip": skip,
}


def rights(site: Site, command: str, app: str | None = None) -> list[Grant]:
    """Return what the command can't do without."""
    wanted = grants(site.topology(app), command, trim_log=False)
    return minimal([one for one in wanted if not one.when])


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_succeeds_with_its_rights(site: Site, command: str) -> None:
    site.create()
    site.allow(rights(site, command))
    assert COMMANDS[command](site, site.app) == 0


@pytest.mark.slow(ci=False)
def test_topics_are_created_with_the_rights_for_it(site: Site) -> None:
    site.allow(rights(site, "topics create"))
    assert create(site, site.app) == 0


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_fails_without_any_one_right(site: Site, command: str) -> None:
    site.create()
    wanted = rights(site, command)
    site.allow(wanted)
    assert COMMANDS[command](site, site.app) == 0
    unneeded = []
    for one in wanted:
        site.revoke(one)
        # A command may have what it needs before a broker refuses something to its client.
        if all(COMMANDS[command](site, site.app) == 0 for _ in range(_TRIES)):
            unneeded.append(one)
        site.allow([one])
    assert unneeded == []


@pytest.mark.slow(ci=False)
def test_topics_are_not_created_without_any_one_right(site: Site) -> None:
    unneeded = []
    for number, one in enumerate(rights(site, "topics create")):
        app = f"{site.app}-{number}"
        fresh = rights(site, "topics create", app)
        site.allow(fresh)
        site.revoke(fresh[number])
        if create(site, app) == 0:
            unneeded.append(one)
    assert unneeded == []


def worker(site: Site, tmp_path: Path, protocol: str = "classic") -> WorkerProcess:
    process = WorkerProcess("secured", site.config(protocol=protocol), tmp_path / "worker")
    process.start()
    return process


def last_line(site: Site, tmp_path: Path, protocol: str) -> str:
    """Return the last line of a worker that ends because its settings or rights are wrong."""
    one = worker(site, tmp_path, protocol)
    try:
        assert one.wait(WAIT_SECONDS) == 2, one.tail()
    finally:
        if one.running:
            one.kill()
    return one.current().splitlines()[-1]


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_worker_names_the_right_to_a_group_that_it_lacks(
    site: Site, tmp_path: Path, protocol: str
) -> None:
    site.create()
    wanted = rights(site, "run")
    group = Grant("group", site.topology().group("route"), "Read", role="route")
    assert group in wanted
    site.allow([one for one in wanted if one != group])
    said = last_line(site, tmp_path, protocol)
    assert said.startswith(f"neardup: offsets of group {group.name}: Read on group {group.name} ")
    site.allow([replace(group, operation="Describe")])
    said = last_line(site, tmp_path, protocol)
    assert said.startswith(f"neardup: group {group.name}: Read on group {group.name} is missing. ")


@pytest.mark.slow
def test_a_record_that_a_user_may_not_write_is_not_delivered(site: Site) -> None:
    site.create()
    documents = site.topology().documents
    wanted = rights(site, "feed")
    site.allow([one for one in wanted if one.operation != "Write"])
    site.allow([Grant("topic", documents, "Describe")])
    done = neardup("feed", site.documents, "--config", site.config())
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"neardup: not delivered: Write on topic {documents} is missing. ")


@pytest.mark.slow
def test_a_topic_that_a_user_may_not_describe_is_not_called_missing(site: Site) -> None:
    site.create()
    unique = site.topology().unique
    wanted = rights(site, "topics verify")
    site.allow([one for one in wanted if one.name != unique])
    done = neardup("topics", "verify", "--config", site.config())
    assert done.returncode == 2
    [line] = done.stderr.decode().splitlines()
    assert f"every right to {unique} is missing" in line


@pytest.mark.slow(ci=False)
def test_a_worker_publishes_with_its_rights(site: Site, tmp_path: Path) -> None:
    site.create()
    site.allow(rights(site, "run"))
    one = worker(site, tmp_path)
    try:
        site.write(site.topology().documents, {})
        unique = site.topology().unique

        def published() -> bool:
            assert one.running, one.tail()
            return site.written(unique) > 0

        wait_until(published, WAIT_SECONDS, "the verdict")
        assert one.stop() == 0
    finally:
        if one.running:
            one.kill()


@pytest.mark.slow(ci=False)
def test_an_index_is_replaced_with_the_rights_for_it(
    site: Site, broker: SecuredKafka, tmp_path: Path
) -> None:
    site.create()
    site.allow(minimal(grants(site.topology(), "run", trim_log=False)))
    operator = Site(broker, site.app, tmp_path, f"{site.app}-operator")
    wanted = minimal(grants(site.topology(), "reindex"))
    operator.allow([one for one in wanted if not one.when])
    reindex = ("reindex", "--config", operator.config())
    one = worker(site, tmp_path)
    try:
        site.write(site.topology().documents, {})
        done = neardup(*reindex, "--shards", "3")
        assert done.returncode == 0, done.stderr
        assert neardup(*reindex, "--clean").returncode == 2
        operator.allow([one for one in wanted if one.when == "with `--clean`"])
        done = neardup(*reindex, "--clean")
        assert done.returncode == 0, done.stderr
        operator.allow([one for one in wanted if one.when.startswith("with `--partitions`")])
        done = neardup(*reindex, "--partitions", "2")
        assert done.returncode == 0, done.stderr
        assert one.stop() == 0
    finally:
        if one.running:
            one.kill()


@pytest.mark.slow(ci=False)
@pytest.mark.parametrize(
    ("operation", "kind", "name"),
    [
        ("Read", "topic", "documents"),
        ("Read", "topic", "shards"),
        ("Write", "topic", "matches-"),
        ("Write", "topic", "unique"),
        ("Read", "group", "route"),
        ("Read", "topic", "layout"),
        ("Write", "transactional-id", "index."),
    ],
)
def test_a_worker_publishes_nothing_without_a_right(
    site: Site, tmp_path: Path, operation: str, kind: str, name: str
) -> None:
    site.create()
    wanted = rights(site, "run")
    [missing] = [
        one for one in wanted
        if (one.operation, one.kind, one.name) == (operation, kind, f"{site.app}.{name}")
    ]  # fmt: skip
    site.allow([one for one in wanted if one != missing])
    site.write(site.topology().documents, {})
    said = last_line(site, tmp_path, "classic")
    assert " is missing. `neardup topics acls` lists" in said
    assert f"{site.app}.{name}" in said
    assert site.written(site.topology().unique) == 0


@pytest.mark.slow(ci=False)
def test_a_server_is_ready_with_its_rights_and_names_one_that_it_lacks(
    site: Site, tmp_path: Path
) -> None:
    site.create()
    wanted = rights(site, "serve")
    site.allow(wanted)
    with serving(site.config(), tmp_path) as server:
        wait_until(server.ready, WAIT_SECONDS, "the server to be ready")
    [read] = [one for one in wanted if one.role == "serve" and one.kind == "topic"]
    site.revoke(read)
    site.allow([replace(read, operation="Describe")])
    site.write(read.name, {})  # It would be no frame, if it could be read.
    with serving(site.config(), tmp_path) as server:
        assert server.wait(WAIT_SECONDS) == 2, server.tail()
        assert f"Read on topic {read.name} is missing" in server.current().splitlines()[-1]


@pytest.mark.slow(ci=False)
def test_outputs_and_lags_are_watched_with_the_rights_for_it(site: Site) -> None:
    site.create()
    site.allow(minimal(grants(site.topology(), "watch")))
    command = [sys.executable, "-m", "worker.cli", "watch", "--config", str(site.config())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            assert "unique 0" in next(lines)
            site.write(site.topology().unique, {"neardup-verdict": b"unique"})
            wanted = ("unique 1", "route 0", "here: 2 shards")
            line = next(found for found in lines if all(what in found for what in wanted))
        finally:
            process.terminate()
    assert "trouble" not in line


@pytest.mark.slow
def test_logs_are_compared_by_who_may_only_describe_them(site: Site, broker: SecuredKafka) -> None:
    """Another leader leads the logs than when they were read; to read them takes another right."""
    site.create()
    topology = site.topology()
    site.write(topology.documents, {})
    for stage in ("fingerprint", "route"):
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": topology.group(stage)}
        )
        read = Place(topology.documents, 0, 1, "", 0)
        consumer.commit(offsets=[read], asynchronous=False)
        consumer.close()
    broker.stop(1)
    broker.start(1)
    site.allow(minimal(grants(topology, "topics verify")))
    done = neardup("topics", "verify", "--config", site.config())
    assert done.returncode == 0, done.stderr
