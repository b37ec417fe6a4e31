"""Who works on an application, who owns which shard, and which shards don't move."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from worker.bus import TopicPartition

Members = Mapping[str, Collection[TopicPartition]]
"""What the members of a group own, by the names of their workers."""

_STILL_SECONDS = 10.0
"""A shard that is restored commits nothing meanwhile; one that works commits every few seconds."""


@dataclass(frozen=True, slots=True)
class Presence:
    """Who is here.

    workers: the names of the workers, sorted.
    shards: how many there are.
    unowned: the shards that no worker owns.
    still: by shard, for how many seconds it has not moved although records wait for it: it is
        restored, or stuck. Groups don't say which.
    """

    workers: tuple[str, ...]
    shards: int
    unowned: tuple[int, ...] = ()
    still: Mapping[int, float] = field(default_factory=dict)


class PresenceMeter:
    """Follows the members of an application's groups, and the offsets of its shards."""

    def __init__(self, seats: str, shards: int) -> None:
        """Take the topic of seats, and the number of shards."""
        self._seats = [TopicPartition(seats, number) for number in range(shards)]
        self._since: dict[TopicPartition, tuple[int, float]] = {}

    def look(
        self,
        now: float,
        groups: Collection[Members],
        committed: Mapping[TopicPartition, int],
        *,
        behind: bool,
    ) -> Presence:
        """Return who is here.

        ``committed`` has the offset of each seat in the order; ``behind``: whether records wait for
        the last of them.
        """
        owned = {place for group in groups for places in group.values() for place in places}
        at = {seat: committed.get(seat, 0) for seat in self._seats}
        last, first = min(at.values()), max(at.values())
        still = {}
        for seat, offset in at.items():
            before, since = self._since.get(seat, (offset, now))
            waits = seat in owned and (offset < first or (behind and offset == last))
            if offset != before or not waits:
                since = now
            self._since[seat] = offset, since
            if now - since >= _STILL_SECONDS:
                still[seat.partition] = now - since
        return Presence(
            tuple(sorted({name for group in groups for name in group})),
            len(self._seats),
            tuple(seat.partition for seat in self._seats if seat not in owned),
            still,
        )


def owners(members: Members, topic: str) -> dict[int, str]:
    """Return which member of a group owns which partition of a topic."""
    return {
        place.partition: name
        for name, places in members.items()
        for place in places
        if place.topic == topic
    }
