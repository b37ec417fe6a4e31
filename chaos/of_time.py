"""What time does: applications stand idle until their logs are empty, and go on."""

from collections.abc import Iterable, Sequence
from typing import Final

from chaos.fault import Fault, World
from localkafka.broker import wait_until

DRAIN_SECONDS: Final = 120.0


class Idle(Fault):
    """Nothing is fed until every log is empty. Then feeding goes on."""

    name = "idle"
    everywhere = False

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Who is there meanwhile: all, all but one that comes back, or nobody."""
        return ("nobody-leaves", *victims[:1], "nobody-stays")

    def inject(self, world: World, target: str) -> str:
        """Wait until all is published, and deleted."""
        supervisor = world.supervisor
        with world.feeding.held():
            wait_until(world.application.audit.drained, DRAIN_SECONDS, "all to be published")
            away = {"nobody-leaves": [], "nobody-stays": supervisor.names}.get(target, [target])
            for name in away:
                supervisor.await_ready(name)
            for name in away:
                status = supervisor.stop(name)
                assert status == 0, f"{name}, told to stop, ended with status {status}"
            _await_emptied(world, range(world.topology.layout.partitions))
            supervisor.start(*away)
        return f"idle until the logs were empty, without {', '.join(away) or 'a change'}"

    def heal(self, world: World, target: str) -> None:
        """Wait until all are back."""
        del target
        for name in world.supervisor.names:
            world.supervisor.await_ready(name)


class IdlePartition(Fault):
    """One partition of the documents is fed nothing until its logs are empty."""

    name = "idle-partition"
    everywhere = False

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Who is restarted then, and adopts the partition, or has others adopt it."""
        return victims

    def inject(self, world: World, target: str) -> str:
        """Wait until the partition's logs are empty; restart a worker."""
        idle = world.topology.layout.partitions - 1
        with world.feeding.without([idle]):
            _await_emptied(world, [idle])
            world.supervisor.kill(target)
            world.supervisor.start(target)
            world.supervisor.await_ready(target)
        return f"partition {idle} idle until its logs were empty, then killed {target}"

    def heal(self, world: World, target: str) -> None:
        """Nothing is left to be put right."""


def _await_emptied(world: World, partitions: Iterable[int]) -> None:
    assert world.retention is not None, "the cell has no retention"
    topology = world.topology
    topics = [topology.documents, *(topology.matches(p) for p in range(topology.layout.shards))]
    world.retention.await_emptied([(topic, n) for n in partitions for topic in topics])
