"""Small batches of documents that unpack to much, in every compression."""

from collections.abc import Sequence
from typing import ClassVar, Final

from chaos.fault import Fault, World
from tests.support.bombs import CODECS, write_batch
from worker.bus import TopicPartition

SIZE: Final = 400_000
COUNTS: Final = {"none": 2, "snappy": 40}
"""Documents of a batch. A topic takes at most 1 MB of it, packed."""
MOST: Final = 80


class PackedBatch(Fault):
    """A stranger writes a batch that unpacks to 32 MB, if its compression can have that."""

    name = "packed-batch"
    everywhere = False
    written: ClassVar[int] = 0

    @classmethod
    def targets(cls, victims: Sequence[str]) -> Sequence[str]:
        """The compressions."""
        del victims
        return CODECS

    def inject(self, world: World, target: str) -> str:
        """Write one between the documents of some partition."""
        PackedBatch.written += 1
        number = PackedBatch.written
        partition = number % world.topology.layout.partitions
        place = TopicPartition(world.topology.documents, partition)
        count = COUNTS.get(target, MOST)
        bootstrap = world.cluster.bootstrap
        batch = write_batch(bootstrap, place, target, count, SIZE, f"packed-{number}")
        world.application.inputs += batch
        return f"{count} documents in a batch ({target}) of partition {partition}"

    def heal(self, world: World, target: str) -> None:
        """It stays."""
        del world, target
