"""When a group's committed offsets expire: Kafka's rules since KIP-211."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from worker.bus.memory.group import Group
from worker.bus.port import TopicPartition

__all__ = ["GroupProtocol", "OffsetExpiry"]

GroupProtocol = Literal["classic", "consumer"]
"""The group protocol: classic, or that of KIP-848."""


class OffsetExpiry:
    """Determines which offsets have expired.

    Kafka 4.3's rules (``OffsetMetadataManager.cleanupExpiredOffsets``,
    ``offsetExpirationCondition`` of ``ClassicGroup`` and ``ConsumerGroup``): an offset of a
    topic that a member of its group subscribes to never expires. Any other expires
    ``offsets.retention.minutes`` after

    - the group lost its last member, under the classic protocol, if it ever had one;
    - the offset was committed, in all other cases. Under KIP-848 this holds for every
      group: an offset that was committed long ago expires as soon as the group is empty.
    """

    def __init__(
        self, clock: Callable[[], int], retention_ms: int | None, protocol: GroupProtocol
    ) -> None:
        """Take the clock (ms); without ``retention_ms`` nothing expires."""
        self._clock = clock
        self._retention_ms = retention_ms
        self._protocol = protocol
        self._committed_at: dict[str, dict[TopicPartition, int]] = {}

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Record that a group has committed offsets."""
        if self._retention_ms is not None:
            times = self._committed_at.setdefault(group, {})
            times.update(dict.fromkeys(partitions, self._clock()))

    def expired(self, name: str, group: Group) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired."""
        if self._retention_ms is None:
            return []
        now, times = self._clock(), self._committed_at.get(name, {})
        emptied = group.emptied_at if self._protocol == "classic" else None
        return [
            place
            for place in group.offsets
            if not group.subscribes(place.topic)
            and now - (times[place] if emptied is None else emptied) >= self._retention_ms
        ]
