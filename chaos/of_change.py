"""What operators change: partitions are added, topics recreated, settings changed."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewPartitions  # Typed there; the admin module passes it on.

from chaos.fault import Fault, World
from localkafka.broker import wait_until
from tests.support.corpus import corpus
from tests.support.proof import book_of
from worker.admin.cluster import Cluster
from worker.admin.create import create

END_SECONDS: Final = 180.0
"""Clients ask for the topics once a minute; a member that has ended is missed after 6 s."""
DRAIN_SECONDS: Final = 120.0
REFUSED_SECONDS: Final = 60.0
COMMAND_SECONDS: Final = 60.0
STRANGER: Final = "stranger"
NEW_DOCUMENTS: Final = 400
"""So many more than there were."""


class PartitionsAdded(Fault):
    """The documents get one partition more, beside all that happens; the command may be killed.

    It adds it itself, or somebody has done so before.
    """

    name = "partitions-added"
    everywhere = False
    holds: ClassVar[tuple[float, ...]] = (0.5, 1.0, 1.5, 2.0, 3.0, 8.0)
    """After so long the command is killed. It takes about two seconds."""

    def __init__(self) -> None:
        """Begin without a command."""
        self._arguments: tuple[str, ...] = ()
        self._command: subprocess.Popen[str] | None = None

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Who adds it to the topic of the documents."""
        del victims
        return ("command", "somebody")

    def inject(self, world: World, target: str) -> str:
        """Add one, and begin to have workers read it."""
        topology, application = world.topology, world.application
        count = topology.layout.partitions + 1
        if target == "somebody":
            admin = world.cluster.admin()  # Held until the result is there.
            more = NewPartitions(topology.documents, count)
            for done in admin.create_partitions([more]).values():
                done.result(timeout=60)
        config = str(application.config)
        self._arguments = ("reindex", "--config", config, "--partitions", str(count))
        self._command = application.command(*self._arguments)
        return f"{target} adds partition {count - 1} to the documents"

    def heal(self, world: World, target: str) -> None:
        """Kill the command, if it still runs, and run it again; then feed the new partition.

        Raises:
            AssertionError: the command has failed.
        """
        del target
        application = world.application
        assert self._command is not None
        self._command.kill()
        self._command.communicate()
        with application.command(*self._arguments) as command:
            said, _ = command.communicate(timeout=COMMAND_SECONDS)
        assert command.returncode == 0, said
        application.widen(int(self._arguments[-1]))


class DocumentsRecreated(Fault):
    """The documents are deleted and recreated: all are published, or all workers say no."""

    name = "documents-recreated"
    everywhere = False
    what = "recreated"

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """The documents."""
        del victims
        return ("documents",)

    def inject(self, world: World, target: str) -> str:
        """Recreate the topic under idle workers, and feed it."""
        del target
        application, supervisor, audit = (
            world.application,
            world.supervisor,
            world.application.audit,
        )
        documents = world.topology.documents
        with world.feeding.held():
            wait_until(audit.drained, DRAIN_SECONDS, "all to be published")
            world.feeding.stop()
        wait_until(lambda: len(audit.records) >= len(application.inputs), 30, "the audit")
        world.book = book_of(application)
        supervisor.leave_alone()
        before = len(audit.records)
        names = supervisor.running()
        # Asleep, or they ask for an offset that is not there yet, and notice by that alone.
        for name in names:
            supervisor.pause(name)
        try:
            fed = self._replace(world)
        finally:
            for name in names:
                supervisor.resume(name)

        def out() -> int:
            return len({record.key for record in audit.records[before:]})

        def ended_or_published() -> bool:
            return not supervisor.running() or out() >= fed

        try:
            wait_until(ended_or_published, END_SECONDS, "the end of all workers")
        except TimeoutError:
            raise AssertionError(
                f"{documents} was {self.what} and given {fed} documents:"
                f" {out()} are published, and {', '.join(supervisor.running())}"
                f" go on after {END_SECONDS:.0f} s"
            ) from None
        how = (
            "all workers ended" if not supervisor.running() else "all new documents were published"
        )
        return f"{self.what} {documents}; {how}"

    def _replace(self, world: World) -> int:
        """Delete, create, and feed; return how many documents.

        At once more than there were, so that the committed offsets lie inside the new log.
        """
        application, documents = world.application, world.topology.documents
        admin = world.cluster.admin()
        admin.delete_topics([documents])[documents].result(timeout=60)
        wait_until(
            lambda: documents not in admin.list_topics(timeout=30).topics, 60, "the topic to go"
        )
        cluster = Cluster(application.settings.kafka_options(), 30)

        def created() -> bool:
            create(cluster, application.settings, partitions=world.topology.layout.partitions)
            return documents in admin.list_topics(timeout=30).topics

        wait_until(created, 60, "the topic to be back")
        return self._feed(world)

    @staticmethod
    def _feed(world: World) -> int:
        """Write more documents than there ever were; return how many."""
        application = world.application
        producer = Producer({"bootstrap.servers": world.cluster.bootstrap, "log_level": 0})
        fed = len(application.inputs) + NEW_DOCUMENTS
        application.write(producer, application.documents(corpus(fed, -1)))
        return fed

    def heal(self, world: World, target: str) -> None:
        """The run ends here."""


class DocumentsCut(DocumentsRecreated):
    """All brokers crash, and each has lost the second half of the documents: workers say no."""

    name = "documents-cut"
    what = "cut"

    def _replace(self, world: World) -> int:
        """Cut each partition's log in half, and feed."""
        cluster, topology = world.cluster, world.topology
        places = [(topology.documents, n) for n in range(topology.layout.partitions)]
        ends = {record.partition: record.offset for record in world.application.inputs}
        for node in cluster.nodes:
            cluster.kill(node)
        for node in cluster.nodes:
            for topic, number in places:
                if ends.get(number):
                    cluster.lose_end(node, topic, number, ends[number] // 2)
        cluster.start_all()
        return self._feed(world)


class _OfSettings(Fault):
    sections: ClassVar[Mapping[str, Mapping[str, object]]]

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Any worker."""
        return victims

    def _stop(self, world: World, target: str) -> None:
        world.supervisor.await_ready(target)
        status = world.supervisor.stop(target)
        assert status == 0, f"{target}, told to stop, ended with status {status}"


class SettingsRefused(_OfSettings):
    """A worker comes with another threshold: it must be refused, and the others go on."""

    name = "settings-refused"
    everywhere = False
    sections = {"similarity": {"threshold": 0.6}}  # noqa: RUF012 -- a ClassVar by its base

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """One that has no state yet, which nothing but the others' word can stop; and any other."""
        return (STRANGER, *victims)

    def inject(self, world: World, target: str) -> str:
        """Start it with other settings, and wait until it has ended."""
        if target != STRANGER:
            self._stop(world, target)
        worker = world.supervisor.worker(target)
        right = worker.config
        worker.config = world.application.write_config(f"{target}-other.toml", self.sections)
        try:
            ended = world.supervisor.refused(target, REFUSED_SECONDS)
        finally:
            worker.config = right
        return f"{target} with another threshold ended with status {ended.status}: {ended.why}"

    def heal(self, world: World, target: str) -> None:
        """Start it as it was; a stranger stays away."""
        if target != STRANGER:
            world.supervisor.start(target)
        for name in world.supervisor.names:
            world.supervisor.await_ready(name)


class SettingsTuned(_OfSettings):
    """A worker comes back with other limits, none of which decides what matches."""

    name = "settings-tuned"
    everywhere = False
    sections = {  # noqa: RUF012 -- a ClassVar by its base
        "index": {
            "max_matches": 256,
            "cache_bytes": 4 << 20,
            "flush_seconds": 5,
            "flush_documents": 1_000,
            "write_buffer_bytes": 4 << 20,
        },
        "worker": {"batch_records": 500},
    }

    def inject(self, world: World, target: str) -> str:
        """Restart it with other settings, which it keeps."""
        self._stop(world, target)
        application = world.application
        application.fewest_matches = application.settings.index.max_matches
        config = application.write_config(f"{target}-tuned.toml", self.sections)
        world.supervisor.worker(target).config = config
        world.supervisor.start(target)
        return f"restarted {target} with other limits"

    def heal(self, world: World, target: str) -> None:
        """Wait until it is back."""
        world.supervisor.await_ready(target)
