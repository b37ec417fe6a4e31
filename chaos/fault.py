"""What a fault is, and what it may lay hands on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import ClassVar, Final

from confluent_kafka.admin import AdminClient

from chaos.disk import SmallDisk
from chaos.feeding import Feeding
from chaos.proxy import Proxies
from chaos.reindexing import Reindexing
from chaos.retention import Retention
from chaos.supervisor import Supervisor
from localkafka.broker import KafkaCluster, wait_until
from tests.support.application import ApplicationUnderTest
from tests.support.proof import Book
from worker.topology import Topology

LEADERS: Final = ("fingerprints", "matches", "unique", "transactions", "groups")
"""Whose leader a broker fault aims at; the last two are the coordinators."""

LEADER_SECONDS: Final = 30.0


@dataclass
class World:
    """A running application, and everything under it."""

    cluster: KafkaCluster
    proxies: Proxies
    supervisor: Supervisor
    application: ApplicationUnderTest
    feeding: Feeding
    over: Event
    """Set when the run is given up: nobody waits any longer."""
    reindexing: Reindexing
    disk: SmallDisk | None = None
    retention: Retention | None = None
    rotten: bool = False
    """Whether tables of live stores were damaged."""
    book: Book | None = None
    """What a fault that ends the run has left to be judged; None: the run goes on."""

    @property
    def topology(self) -> Topology:
        """Name the application's topics."""
        return self.application.topology

    @cached_property
    def _admin(self) -> AdminClient:
        return self.cluster.admin()

    def leader(self, of: str) -> int:
        """Give the node that leads one of `LEADERS` (the first partition)."""
        topic = {
            "fingerprints": self.topology.fingerprints,
            "matches": self.topology.matches(0),
            "unique": self.topology.unique,
            "transactions": "__transaction_state",
            "groups": "__consumer_offsets",
        }[of]
        found = -1

        def led() -> bool:
            nonlocal found
            topics = self._admin.list_topics(topic, timeout=LEADER_SECONDS).topics
            partition = topics[topic].partitions.get(0)
            found = -1 if partition is None else partition.leader
            return found > 0

        wait_until(led, LEADER_SECONDS, f"a leader of {topic}")
        return found

    def wait(self, seconds: float) -> None:
        """Let time pass, unless the run is given up."""
        self.over.wait(seconds)


class Fault(ABC):
    """Something that goes wrong, lasts a while, and is put right; an object for each time."""

    name: ClassVar[str]
    holds: ClassVar[tuple[float, ...]] = (0.0,)
    """How many seconds it may last; one of them is drawn."""
    everywhere: ClassVar[bool] = True
    """Whether it can strike any run; if not, it needs a cell of its own."""

    @classmethod
    @abstractmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """Give what it may hit; ``victims`` are workers."""

    @abstractmethod
    def inject(self, world: World, target: str) -> str:
        """Do it; say what was hit."""

    def last(self, world: World, target: str, seconds: float) -> None:
        """Let it last."""
        del target
        world.wait(seconds)

    @abstractmethod
    def heal(self, world: World, target: str) -> None:
        """Put it right, and wait until it is."""
