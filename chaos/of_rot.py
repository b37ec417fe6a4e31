"""What disks do: bytes flip in tables, in snapshots, in a broker's copy of a log."""

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from os import stat_result
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka import ElectionType, TopicPartition

from chaos.fault import Fault, World
from chaos.flipping import batches, flip, flip_in_table, flip_text
from chaos.of_workers import StateLost
from chaos.offsets import ends
from localkafka.broker import wait_until

TABLE_SECONDS: Final = 60.0
LEADER_SECONDS: Final = 60.0
BACKLOG_SECONDS: Final = 3.0
MET_SECONDS: Final = 90.0


class RotTables(Fault):
    """A bit flips in the largest table of each shard of a live worker, which is restarted twice."""

    name = "rot-tables"
    everywhere = False
    holds = (10.0,)
    """Longer than it takes the kept snapshots to retire."""

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Any worker."""
        return victims

    def inject(self, world: World, target: str) -> str:
        """Flip under the worker, then restart it: what it has read, it has kept."""
        supervisor = world.supervisor
        supervisor.await_ready(target)
        state = supervisor.worker(target).state_from_outside
        random = Random(target)
        tables: list[Path] = []

        def flipped() -> bool:
            tables[:] = _best(state.glob("shard-???"), "*.sst", lambda found: found.st_size)
            with suppress(FileNotFoundError):  # RocksDB has just merged it into another.
                for table in tables:
                    flip_in_table(table, random)
                return bool(tables)
            return False

        wait_until(flipped, TABLE_SECONDS, f"a table of {target}")
        world.rotten = True
        supervisor.kill(target)
        supervisor.start(target)
        names = ", ".join(f"{table.parent.name}/{table.name}" for table in tables)
        return f"flipped bits of {names} of {target}, restarted it"

    def heal(self, world: World, target: str) -> None:
        """Restart it once more: it must come round by itself."""
        world.supervisor.kill(target)
        world.supervisor.start(target)
        world.supervisor.await_ready(target)


def _best(shards: Iterable[Path], pattern: str, rank: Callable[[stat_result], int]) -> list[Path]:
    """Return the highest ranking file of each shard that has any; some go while we look."""
    best = []
    for shard in sorted(shards):
        ranked = []
        for path in shard.glob(pattern):
            with suppress(FileNotFoundError):
                ranked.append((rank(path.stat()), path))
        if ranked:
            best.append(max(ranked)[1])
    return best


class RotSnapshots(StateLost):
    """A byte flips in the newest file of each shard's snapshots, and a worker loses its disk."""

    name = "rot-snapshots"
    everywhere = False

    def inject(self, world: World, target: str) -> str:
        """Flip, kill, delete."""
        snapshots = world.application.settings.index.snapshots.url
        assert snapshots is not None, "the cell has no snapshots"
        root = Path(snapshots) / world.topology.app
        files: list[Path] = []

        def flipped() -> bool:
            shards = root.glob("shard-???")
            files[:] = _best(shards, "files/*", lambda found: found.st_mtime_ns)
            with suppress(FileNotFoundError):  # Its snapshot has just retired.
                for path in files:
                    flip(path, path.stat().st_size // 3)
                return bool(files)
            return False

        wait_until(flipped, TABLE_SECONDS, "a snapshot")
        return f"flipped bits in the snapshots of {len(files)} shards, " + super().inject(
            world, target
        )


class RotSegments(Fault):
    """A byte flips in a copy of a log: in the leader's, which then leads again, or another's.

    While the broker is down, all workers are, too, and documents wait; one of these is hit,
    or an old record of ``fingerprints``, which a worker without its state reads again.
    """

    name = "rot-segments"
    everywhere = False
    holds = (5.0,)

    def __init__(self) -> None:
        """Prepare."""
        self._node = 0
        self._place = ("", 0)
        self._offset = 0

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Which log, and whose copy."""
        del victims
        return (
            "documents leader",
            "fingerprints leader",
            "documents follower",
            "fingerprints follower",
        )

    def inject(self, world: World, target: str) -> str:
        """Stop everything but the feed, flip, start the broker, have it lead, start the workers."""
        which, whose = target.split()
        supervisor, cluster, admin = world.supervisor, world.cluster, world.cluster.admin()
        topic = world.topology.documents if which == "documents" else world.topology.fingerprints
        self._place = (topic, 0)
        replicas = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].replicas
        self._node = replicas[0 if whose == "leader" else -1]
        for name in supervisor.names:
            supervisor.await_ready(name)
        names = supervisor.names
        with world.feeding.held():
            for name in names:
                supervisor.kill(name)
            read = ends(admin, [self._place])[self._place]
        world.wait(BACKLOG_SECONDS)
        with world.feeding.held():
            cluster.stop(self._node)
            found = list(batches(cluster.log_directory(self._node, *self._place)))
            # Of the documents one that is still to be read, of the fingerprints one in the middle.
            batch = (
                next(one for one in found if one.offset >= read)
                if which == "documents"
                else found[len(found) // 2]
            )
            flip_text(batch)
            self._offset = batch.offset
            cluster.start(self._node)
            if whose == "leader":
                self._lead(world)
            if which == "fingerprints":
                for name in names:
                    _forget(supervisor.worker(name).state_from_outside)
            supervisor.start(*names)
        return f"flipped a bit of {topic}[0] at offset {batch.offset} on broker {self._node}"

    def _lead(self, world: World) -> None:
        admin = world.cluster.admin()
        topic, number = self._place

        def leads() -> bool:
            place = TopicPartition(topic, number)
            admin.elect_leaders(ElectionType.PREFERRED, [place]).result(LEADER_SECONDS)
            found = admin.list_topics(topic, timeout=30).topics[topic].partitions[number]
            return found.leader == self._node

        wait_until(leads, LEADER_SECONDS, f"broker {self._node} to lead {topic}[{number}]")

    def last(self, world: World, target: str, seconds: float) -> None:
        """Let workers come to the record, and past it if nothing stops them."""
        ends = len(world.supervisor.restarts)
        audit, workers = (
            world.application.audit,
            [world.supervisor.worker(n) for n in world.supervisor.names],
        )

        def met() -> bool:
            if world.over.is_set() or len(world.supervisor.restarts) > ends:
                return True
            if target.startswith("documents"):
                return audit.reached()[0] > self._offset
            return all(worker.ready() for worker in workers)

        # A worker may also wait for a better copy, and neither end nor get ready.
        with suppress(TimeoutError):
            wait_until(met, MET_SECONDS, "the record to be met")
        super().last(world, target, seconds)

    def heal(self, world: World, target: str) -> None:
        """Do what an operator would: delete the copy, so that the broker fetches another."""
        del target
        world.cluster.stop(self._node)
        shutil.rmtree(world.cluster.log_directory(self._node, *self._place))
        world.cluster.start(self._node)
        for name in world.supervisor.names:
            world.supervisor.await_ready(name)


def _forget(state: Path) -> None:
    for path in state.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
