"""What time has deleted that somebody had still to read."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.brokers import Brokers
from tests.world.archive import Archive
from worker.bus import TopicPartition
from worker.topology import STAGES, Topology


class Loss(NamedTuple):
    """Records that were deleted before a stage's group was past them."""

    stage: str
    place: TopicPartition
    records: int


class Losses:
    """Keeps account of what is deleted.

    Attributes:
        fatal: what an application can't go on without. Documents that *fingerprint* had
            read are no such loss: each must end up on *rejected*.
        unpublished: these documents, by partition and offset.
        doubtful: where *fingerprint*, with nobody at work, has not come past deleted
            control records. Nobody can know any more that they were no documents.
        expired: groups' offsets that expired.
    """

    def __init__(self, bus: Brokers, topology: Topology, archive: Archive) -> None:
        """Begin with none."""
        self._bus = bus
        self._topology = topology
        self._archive = archive
        self.fatal: list[Loss] = []
        self.unpublished: set[tuple[int, int]] = set()
        self.doubtful: list[TopicPartition] = []
        self.expired: list[tuple[str, TopicPartition]] = []

    def __bool__(self) -> bool:
        """Tell whether an application may refuse to go on."""
        return bool(self.fatal or self.doubtful or self.expired)

    def pass_time(self, *, awake: bool) -> None:
        """Let the brokers delete what has expired, and see what it was; is anybody at work?"""
        readers = {stage: self._topology.group(stage) for stage in STAGES}
        before = {stage: self._bus.committed(group) for stage, group in readers.items()}
        starts = {place: self._bus.start_offset(*place) for own in before.values() for place in own}
        self._archive.look()
        self._bus.pass_time()
        for stage, offsets in before.items():
            kept = self._bus.committed(readers[stage])
            for place, committed in offsets.items():
                if place not in kept:
                    self.expired.append((readers[stage], place))
                low, high = max(starts[place], committed or 0), self._bus.start_offset(*place)
                self._note(stage, place, low, high)
                if stage == "fingerprint" and low < high and not awake:
                    self.doubtful.append(place)

    def _note(self, stage: str, place: TopicPartition, low: int, high: int) -> None:
        gone = [record.offset for record in self._archive.between(place, low, high)]
        if stage == "route" and place.topic == self._topology.documents:
            self.unpublished.update((place.partition, offset) for offset in gone)
        elif gone:
            self.fatal.append(Loss(stage, place, len(gone)))

    def __str__(self) -> str:
        """Say what went."""
        return (
            f"fatal {self.fatal}, unpublished {sorted(self.unpublished)},"
            f" doubtful {self.doubtful}, expired {self.expired}"
        )
