"""A real Apache Kafka for tests: one node, or three to lose one of.

A cluster is a set of combined KRaft nodes (broker and controller in one process) on
127.0.0.1 with a directory of its own. Timeouts are set short, so that faults show in
seconds. Nodes can be killed, stopped, paused and started again on the same port and
data. Nothing outlives the test process: see `localkafka.reaper`.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic  # Typed there; the admin module only passes it on.

from localkafka.jars import jars, java
from localkafka.ports import free_ports
from localkafka.prepared import new_id, prepared

START_DEADLINE_SECONDS: Final = 90.0
STOP_DEADLINE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05
LOG_TAIL_LINES: Final = 40
REAPER: Final = Path(__file__).with_name("reaper.py")

_BATCH: Final = struct.Struct(">qi11xi")
"""The head of a batch: its first offset, the bytes after these two, the last offset's distance."""

Config = Mapping[str, str | int]

FAST_FAULTS: Final[Config] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 4_000,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
    "group.consumer.min.session.timeout.ms": 2_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": 1_000,
}
"""Detection alone is faster than Kafka's defaults. How long a stuck transaction lasts is not: the
coordinator looks for those that have timed out every 10 s, as it does for users."""


class BrokerStartError(Exception):
    """A node did not come up; the message ends with the tail of its log."""


class Kafka:
    """A broker that runs somewhere; this much holds for any."""

    def __init__(self, bootstrap: str) -> None:
        """Name the broker by its address, ``host:port[,host:port…]``."""
        self.bootstrap = bootstrap

    def admin(self) -> AdminClient:
        """Return a new admin client, silent about nodes that are down."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 1, config: Config | None = None) -> str:
        """Create a topic with the broker's default replication, and return its name."""
        settings = {key: str(value) for key, value in (config or {}).items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=settings)
        admin = self.admin()  # Held until the result is there: the client dies with its name.
        admin.create_topics([topic], operation_timeout=30)[name].result(timeout=60)
        return name


@dataclass
class _Node:
    id: int
    port: int
    controller_port: int
    proxied_port: int
    proxy_port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"


class KafkaCluster(Kafka):
    """Kafka nodes of our own, numbered from 1. Use as a context manager.

    ``config`` is added to every node's properties and wins over ours
    (``{"message.max.bytes": 100_000}``). Without ``fast``, timeouts are those that Kafka has by
    default.

    With ``proxied``, each node has one more listener. It tells clients the address of a
    proxy, which is nobody's until someone listens there (`proxied`, `proxied_bootstrap`).
    """

    def __init__(  # noqa: PLR0913 -- each with a default
        self,
        nodes: int = 1,
        config: Config | None = None,
        heap_mb: int = 512,
        *,
        proxied: bool = False,
        fast: bool = True,
        lasting: bool = False,
    ) -> None:
        """Prepare `nodes` nodes (1 or 3); they start on entering the context.

        Nodes that are ``lasting`` compile themselves for long runs, as brokers in production do.

        Raises:
            KafkaUnavailable: no Java 17 or newer, or no jars, or they don't work.
        """
        if nodes not in (1, 3):
            raise ValueError(f"a cluster has 1 or 3 nodes, not {nodes}")
        program, classes = java(), jars()
        self._prepared = prepared(program, classes)
        self._java = [program, *self._prepared.options, "-cp", f"{classes}/*"]
        self._config = {**(FAST_FAULTS if fast else {}), **(config or {})}
        self._heap_mb = heap_mb
        self._lasting = lasting
        self._id = new_id()
        self._directory = Path(tempfile.mkdtemp(prefix="neardup-kafka-"))
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(REAPER), str(self._directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._proxied = proxied
        ports = free_ports(4 * nodes)
        self._nodes = {
            number: _Node(
                number,
                port=next(ports),
                controller_port=next(ports),
                proxied_port=next(ports),
                proxy_port=next(ports),
                directory=self._directory / f"node-{number}",
            )
            for number in range(1, nodes + 1)
        }
        super().__init__(",".join(node.address for node in self._nodes.values()))

    def __enter__(self) -> Self:
        """Format and start all nodes; return once each sees all of them."""
        try:
            self._format()
            self.start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the cluster."""
        self.close()

    def close(self) -> None:
        """End all nodes at once and remove everything. May be called twice."""
        for number, node in self._nodes.items():
            if node.process is not None:
                self.kill(number)
        if self._reaper.stdin is not None and not self._reaper.stdin.closed:
            self._reaper.stdin.close()
        self._reaper.wait(timeout=STOP_DEADLINE_SECONDS)

    def address(self, node: int) -> str:
        """Return ``host:port`` of one node."""
        return self._nodes[node].address

    def segments(self, node: int, topic: str, partition: int) -> list[Path]:
        """Return the files that hold a partition's records on a node, oldest first."""
        return sorted(self.log_directory(node, topic, partition).glob("*.log"))

    def log_directory(self, node: int, topic: str, partition: int) -> Path:
        """Return where a node keeps its copy of a partition, if it has one."""
        return self._nodes[node].data / f"{topic}-{partition}"

    def lose_end(self, node: int, topic: str, partition: int, offset: int) -> int:
        """Have a node that is down forget a partition from the batch with an offset on.

        Returns where its log ends now.
        """
        if self._nodes[node].process is not None:
            raise RuntimeError(f"node {node} is running")
        for segment in self.segments(node, topic, partition):
            data, at = segment.read_bytes(), 0
            while at < len(data):
                base, length, last = _BATCH.unpack_from(data, at)
                if base + last >= offset:
                    break
                at += 12 + length
            else:
                continue
            os.truncate(segment, at)
            for other in segment.parent.glob("*.*"):
                kept = other.suffix == ".log" and other.stem <= segment.stem
                if other.stem >= segment.stem and not kept and other.suffix != ".metadata":
                    other.unlink()
            return int(base)
        raise ValueError(f"{topic}[{partition}] ends before offset {offset}")

    @property
    def nodes(self) -> list[int]:
        """Give the nodes' numbers."""
        return list(self._nodes)

    def running(self, node: int) -> bool:
        """Tell whether a node has been started, and not killed or stopped since."""
        return self._nodes[node].process is not None

    @property
    def proxied(self) -> dict[int, tuple[int, int]]:
        """Give, by node, the port that a proxy is to listen on, and the one it is to reach."""
        return {node.id: (node.proxy_port, node.proxied_port) for node in self._nodes.values()}

    @property
    def proxied_bootstrap(self) -> str:
        """Name the cluster by its proxies: clients that begin there stay behind them."""
        return ",".join(f"127.0.0.1:{node.proxy_port}" for node in self._nodes.values())

    def start(self, node: int) -> None:
        """Start a node that is down, on its old port and data.

        Returns when it serves, and is in sync on every partition that it holds: from then
        on another node can be lost.
        """
        if self._nodes[node].process is not None:
            raise RuntimeError(f"node {node} runs already")
        self._launch(self._nodes[node])
        self._await_ready(self._nodes[node], members={node})

    def start_all(self) -> None:
        """Start all nodes, none of which runs; return once each sees all of them."""
        for node in self._nodes.values():
            self._launch(node)
        for node in self._nodes.values():
            self._await_ready(node, members=set(self._nodes))

    def await_in_sync(self, node: int) -> None:
        """Return once a node serves, and is in sync on every partition that it holds."""
        self._await_ready(self._nodes[node], members={node})

    def kill(self, node: int) -> None:
        """Crash a node (SIGKILL), as a lost machine would."""
        self._signal(node, signal.SIGKILL)
        self._reap(node)

    def stop(self, node: int) -> None:
        """Stop a node in order (SIGTERM): it hands over what it leads first.

        Raises:
            TimeoutError: it did not end in time, and was killed. A node without a
                quorum of controllers can't leave in order.
        """
        self._signal(node, signal.SIGTERM)
        self._signal(node, signal.SIGCONT)  # A paused process would not see the SIGTERM.
        try:
            self._reap(node)
        except subprocess.TimeoutExpired:
            self.kill(node)
            raise TimeoutError(
                f"node {node} did not stop within {STOP_DEADLINE_SECONDS:.0f} s"
            ) from None

    def pause(self, node: int) -> None:
        """Freeze a node (SIGSTOP): its connections stay open and nothing answers."""
        self._signal(node, signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Let a paused node go on (SIGCONT)."""
        self._signal(node, signal.SIGCONT)

    def _format(self) -> None:
        for node in self._nodes.values():
            node.directory.mkdir()
            lines = [f"{key}={value}" for key, value in self._properties(node).items()]
            node.properties.write_text("\n".join(lines) + "\n")
            self._prepared.format(node.data, self._id, node.id)

    def _properties(self, node: _Node) -> dict[str, str | int]:
        replicas = len(self._nodes)
        majority = replicas // 2 + 1
        voters = [f"{n.id}@127.0.0.1:{n.controller_port}" for n in self._nodes.values()]
        listeners = f"PLAINTEXT://{node.address},CONTROLLER://127.0.0.1:{node.controller_port}"
        advertised = f"PLAINTEXT://{node.address}"
        protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
        if self._proxied:
            listeners += f",PROXIED://127.0.0.1:{node.proxied_port}"
            advertised += f",PROXIED://127.0.0.1:{node.proxy_port}"
            protocols += ",PROXIED:PLAINTEXT"
        return {
            "process.roles": "broker,controller",
            "node.id": node.id,
            "controller.quorum.voters": ",".join(voters),
            "listeners": listeners,
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": protocols,
            "log.dirs": str(node.data),
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": majority,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": majority,
            "log.cleaner.dedupe.buffer.size": 2_097_152,
            **self._config,
        }

    def _launch(self, node: _Node) -> None:
        arguments = ["-Xms256m", f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC"]
        # What C2 compiles for a node of a few minutes would cost more than it ever saves.
        arguments += [] if self._lasting else ["-XX:TieredStopAtLevel=1"]
        arguments += ["-Djava.awt.headless=true"]
        arguments += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        arguments += ["kafka.Kafka", str(node.properties)]
        with node.log.open("ab") as log:
            # A session of its own: Ctrl-C ends the tests first, and they end the broker.
            node.process = subprocess.Popen(
                [*self._java, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._tell_reaper(f"+{node.process.pid}")

    def _await_ready(self, node: _Node, members: set[int]) -> None:
        process = node.process

        def ready_or_dead() -> bool:
            return process is None or process.poll() is not None or _serves(node, members)

        try:
            wait_until(ready_or_dead, START_DEADLINE_SECONDS, f"node {node.id} to be ready")
        except TimeoutError:
            what = f"was not ready within {START_DEADLINE_SECONDS:.0f} s"
            raise BrokerStartError(_report(node, what)) from None
        if process is None or process.returncode is not None:
            status = None if process is None else process.returncode
            raise BrokerStartError(_report(node, f"ended with status {status} while starting"))

    def _signal(self, node: int, number: signal.Signals) -> None:
        process = self._nodes[node].process
        if process is None:
            raise RuntimeError(f"node {node} is down")
        process.send_signal(number)

    def _reap(self, node: int) -> None:
        process = self._nodes[node].process
        if process is not None:
            process.wait(timeout=STOP_DEADLINE_SECONDS)
            self._nodes[node].process = None
            self._tell_reaper(f"-{process.pid}")

    def _tell_reaper(self, line: str) -> None:
        if self._reaper.stdin is not None:
            self._reaper.stdin.write(f"{line}\n".encode())
            self._reaper.stdin.flush()


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until `condition` holds.

    Raises:
        TimeoutError: it does not hold after `seconds`; the message names `what`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(POLL_SECONDS)


def _serves(node: _Node, members: set[int]) -> bool:
    try:
        socket.create_connection(("127.0.0.1", node.port), timeout=1).close()
    except OSError:
        return False
    # A new client each time: it asks this node, since it knows no other yet.
    client = AdminClient({"bootstrap.servers": node.address, "log_level": 0})
    with contextlib.suppress(KafkaException):
        seen = client.list_topics(timeout=2)
        partitions = (p for topic in seen.topics.values() for p in topic.partitions.values())
        in_sync = all(node.id in p.isrs for p in partitions if node.id in p.replicas)
        return in_sync and members <= seen.brokers.keys()
    return False


def _report(node: _Node, what: str) -> str:
    lines = node.log.read_text(errors="replace").splitlines()
    tail = "\n".join(f"    {line}" for line in lines[-LOG_TAIL_LINES:])
    return f"Kafka node {node.id} {what}; the end of its log:\n{tail}"
