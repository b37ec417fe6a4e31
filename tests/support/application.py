"""An application under test: topics, settings, workers by name, documents, an audit."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Final, Self

from confluent_kafka import Producer

from localkafka.broker import REAPER, Kafka, wait_until
from tests.support.audit import Audit, read_all
from tests.support.collector import Collector
from tests.support.worker_process import WorkerProcess
from tests.support.writing import written
from worker.admin.cluster import Cluster
from worker.admin.create import create
from worker.admin.layout_log import agree
from worker.admin.starts import Start, begin
from worker.bus import BusError, Outgoing, Record, TopicPartition
from worker.settings.loading import load
from worker.settings.model import Settings
from worker.topology import Topology
from worker.wire.codec import hand_over

FLUSH_SECONDS: Final = 60.0
SEAT_SECONDS: Final = 60.0
SHARDS: Final = 4
"""Twice the default, so that several workers have some."""

Section = Mapping[str, object]


class ApplicationUnderTest:
    """Use as a context manager: at the end all workers are killed, and logs shown on failure.

    ``settings`` are sections of the TOML file; what they leave out is the default.
    """

    def __init__(
        self,
        kafka: Kafka,
        app: str,
        *,
        partitions: int = 4,
        settings: Mapping[str, Section] | None = None,
        documents_max_bytes: int = 1_048_588,
        supervised: bool = False,
    ) -> None:
        """Create topics, offsets and settings; ``supervised`` workers that fail are restarted."""
        self.kafka = kafka
        self.restarts = 0
        self._supervised = supervised
        self.directory = Path(tempfile.mkdtemp(prefix="neardup-workers-"))
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(REAPER), str(self.directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.workers: dict[str, WorkerProcess] = {}
        self._commands: list[subprocess.Popen[str]] = []
        self.inputs: list[Record] = []
        self.collected: Collector | None = None
        """What keeps the frames of ``fingerprints``; see `collect`."""
        self.fewest_matches: int | None = None
        """The lowest of several limits that workers have had; None: they have had one."""
        self._app = app
        self._sections = dict(settings or {})
        self.config = self.write_config("neardup.toml", {})
        self.settings: Settings = load(self.config)
        cluster = Cluster(self.settings.kafka_options(), 30)
        self.topology: Topology = create(
            cluster,
            self.settings,
            partitions=partitions,
            replication=None,
            documents_max_bytes=documents_max_bytes,
        ).topology
        wait_until(partial(self._begun, cluster), FLUSH_SECONDS, "the groups' coordinator")
        if self.settings.index.snapshots.url is not None:
            self.collect()  # Workers, or the test, trim the log.

    def _begun(self, cluster: Cluster) -> bool:
        """Set the groups' offsets; a broker that is new has to make their topic first."""
        try:
            agree(cluster, self.settings, self.topology)
            begin(cluster, self.topology, Start("earliest"))
        except BusError as error:
            if "COORDINATOR" not in str(error):
                raise
            return False
        return True

    def write_config(self, name: str, more: Mapping[str, Section]) -> Path:
        """Write a TOML file of this application's settings, and more."""
        sections: dict[str, dict[str, object]] = {
            "kafka": {"bootstrap": self.kafka.bootstrap, "session_timeout_ms": 6_000},
            "index": {"shards": SHARDS},
        }
        for given in (self._sections, more):
            for section, values in given.items():
                sections.setdefault(section, {}).update(values)
        lines = [f"app = {json.dumps(self._app)}"]
        for section, values in sections.items():
            lines.append(f"[{section}]")
            # JSON's scalars, arrays and strings are TOML's, too.
            lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items()]
        path = self.directory / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def worker(
        self, name: str, *, instance: str | None = None, wrapper: Sequence[str] = ()
    ) -> WorkerProcess:
        """Give the worker of this name, which may not have been started yet."""
        if name not in self.workers:
            self.workers[name] = WorkerProcess(
                name, self.config, self.directory / name, instance=instance, wrapper=wrapper
            )
        return self.workers[name]

    def start(self, *names: str, arguments: Sequence[str] = ()) -> None:
        """Start workers."""
        for name in names:
            worker = self.worker(name)
            if worker.process is not None:
                self._tell_reaper(f"-{worker.process.pid}")  # It may be another's by now.
            self.track(worker.start(*arguments))

    def seat(self, *names: str) -> None:
        """Start workers, and wait until each has its seat in every group."""
        self.start(*names, arguments=("--http", "127.0.0.1:0"))
        for name in names:
            wait_until(self.worker(name).ready, SEAT_SECONDS, f"{name} to be ready")

    def command(self, *line: str) -> subprocess.Popen[str]:
        """Start ``neardup`` with these arguments; what still runs at the end is killed."""
        command = subprocess.Popen(
            [sys.executable, "-m", "worker.cli", *line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.track(command.pid)
        self._commands.append(command)
        return command

    def track(self, pid: int) -> None:
        """Have the reaper kill this process, should the tests die."""
        self._tell_reaper(f"+{pid}")

    def _tell_reaper(self, line: str) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{line}\n".encode())
        self._reaper.stdin.flush()

    def kill_some(self, seed: random.Random) -> str:
        """Kill any one running worker; give its name."""
        name = seed.choice(sorted(name for name, one in self.workers.items() if one.running))
        self.workers[name].kill()
        return name

    def ended(self) -> list[str]:
        """Give the logs of workers that have failed: none should, but for supervised ones."""
        failed = [
            worker
            for worker in self.workers.values()
            if worker.process is not None and (worker.process.poll() or 0) > 0
        ]
        if not self._supervised:
            return [worker.tail() for worker in failed]
        for worker in failed:
            self.restarts += 1
            self.start(worker.name)
        return []

    @cached_property
    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.kafka.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.max.bytes": 64 << 20,
                "log_level": 0,
            }
        )

    def renew_producer(self) -> None:
        """Write with another producer: a log that has lost records refuses what follows them."""
        del self._producer

    def feed(self, records: Iterable[Outgoing], over: Event | None = None) -> list[Record]:
        """Write documents, and wait until the log has them; give them with their offsets.

        Once ``over`` is set, nothing is waited for.
        """
        fed = self.write(self._producer, records, over)
        self.inputs += fed
        return fed

    def write(
        self, producer: Producer, records: Iterable[Outgoing], over: Event | None = None
    ) -> list[Record]:
        """Write records with a producer, and wait until the log has them; give them."""
        return written(producer, records, over)

    def documents(self, texts: Sequence[tuple[str, str]], first: int = 0) -> list[Outgoing]:
        """Make records of ids and texts, round the partitions."""
        return [
            Outgoing(
                self.topology.documents,
                (first + index) % self.topology.layout.partitions,
                ident.encode(),
                json.dumps({"id": ident, "text": text}).encode(),
                (("origin", b"test"),),
            )
            for index, (ident, text) in enumerate(texts)
        ]

    def widen(self, partitions: int) -> None:
        """Feed, and audit, so many partitions of the documents from now on."""
        self.__dict__.pop("_producer", None)  # It knows the partitions that there were.
        self.topology = self.topology.widened(partitions)
        self.audit.widen(self.topology)

    @cached_property
    def audit(self) -> Audit:
        """Give the reader of all outputs, which sees committed records only."""
        return Audit(self.kafka.bootstrap, self.topology, self.ended)

    def collect(self) -> None:
        """Keep the frames of ``fingerprints`` from now on, for a log that forgets them."""
        if self.collected is None:
            self.collected = Collector(self.kafka.bootstrap, self._order).__enter__()

    def fingerprints(self, topology: Topology | None = None) -> Sequence[Record]:
        """Return all frames that there ever were in a log, by default in the first one."""
        of = topology or self.topology
        return [one for one in self._log(of) if hand_over(one.value, of.layout.id) is None]

    def hand_overs(self, topology: Topology | None = None) -> dict[int, int]:
        """Return at which offset of a log each generation of the index took over."""
        of = topology or self.topology
        found = {one.offset: hand_over(one.value, of.layout.id) for one in self._log(of)}
        return {number: offset for offset, number in found.items() if number is not None}

    def _log(self, topology: Topology) -> Sequence[Record]:
        if self.collected is not None and topology.order == self._order:
            return self.collected.records()
        return read_all(self.kafka.bootstrap, topology.order)

    @property
    def _order(self) -> TopicPartition:
        return TopicPartition(self.topology.fingerprints, 0)

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill what still runs; on failure show the logs."""
        for worker in self.workers.values():
            if worker.running:
                worker.kill()
            if error is not None:
                print(worker.tail())  # noqa: T201 -- pytest shows it with the failure
        for command in self._commands:
            with command:
                command.kill()
        if self.collected is not None:
            self.collected.close()
        if "audit" in self.__dict__:
            self.audit.close()
        if self._reaper.stdin is not None:
            self._reaper.stdin.close()
        self._reaper.wait(FLUSH_SECONDS)
        shutil.rmtree(self.directory, ignore_errors=True)
