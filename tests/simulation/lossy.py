"""A log whose readers lose records, so that whoever applies them must notice."""

from __future__ import annotations

from collections.abc import Sequence

from worker.bus.memory import MemoryBus
from worker.bus.memory.reader import MemoryReader
from worker.bus.port import OffsetOutOfRange, Record, TopicPartition

__all__ = ["LossyBus", "LossyReader"]


class LossyReader(MemoryReader):
    """Raises what is wrong with one partition, and loses what it had taken of all others.

    A client fetches in the background: when it learns that an offset is out of range,
    records of other partitions have been taken already, and their positions are past them.
    No reader may lose them, and no index may trust that none does. A partition that is out
    of range is told of once, and then delivers nothing until it is started again.
    """

    def __init__(self, bus: MemoryBus, group: str) -> None:
        """Read nothing yet."""
        super().__init__(group, bus._topics, bus._coordinator)
        self._bus = bus
        self._at: dict[TopicPartition, int] = {}

    def start(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        self._at[partition] = offset

    def stop(self, partition: TopicPartition) -> None:
        """See the port."""
        self._at.pop(partition, None)

    def read(self, limit: int, timeout: float) -> list[Record]:
        """Read, or lose what was read and raise."""
        del timeout
        taken: list[Record] = []
        wrong: list[OffsetOutOfRange] = []
        for place, offset in self._at.items():
            try:
                records = self._bus.read(*place, offset, limit)
            except OffsetOutOfRange as error:
                wrong.append(error)
            else:
                taken += records
                self._at[place] = _after(records, offset)
        if wrong:
            del self._at[wrong[0].partition]
            raise wrong[0]
        return taken

    def close(self) -> None:
        """See the port."""
        self._at.clear()


class LossyBus(MemoryBus):
    """An in-process log with such readers; members of groups lose nothing."""

    def reader(self, group: str) -> LossyReader:
        """See the port."""
        return LossyReader(self, group)


def _after(records: Sequence[Record], offset: int) -> int:
    return records[-1].offset + 1 if records else offset
