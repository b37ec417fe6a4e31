"""A consumer group: its seats, who reads what, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from worker.bus.port import TopicPartition

__all__ = ["Group", "assign_ranges"]


def assign_ranges(
    seats: Mapping[str, Collection[str]], count: Callable[[str], int]
) -> dict[str, frozenset[TopicPartition]]:
    """Assign topic by topic a contiguous range to each subscriber, by sorted name.

    As Kafka's range assignor: the first ``count % subscribers`` get one partition more,
    so topics of equal partition counts and subscribers are cut at equal numbers.
    """
    assigned: dict[str, set[TopicPartition]] = {instance: set() for instance in seats}
    for topic in sorted({topic for topics in seats.values() for topic in topics}):
        subscribers = sorted(instance for instance, topics in seats.items() if topic in topics)
        share, more = divmod(count(topic), len(subscribers))
        first = 0
        for index, instance in enumerate(subscribers):
            after = first + share + (index < more)
            assigned[instance].update(TopicPartition(topic, p) for p in range(first, after))
            first = after
    return {instance: frozenset(partitions) for instance, partitions in assigned.items()}


class Group:
    """Seats, a generation, and committed offsets.

    A seat belongs to an instance name, not to a member: a restart that sits down under
    the same name finds its partitions as it left them, and nobody else is disturbed.
    Every other change of seats makes a new generation at once. Each member learns of it
    in its next poll; until then it holds a generation that can't commit.

    Attributes:
        generation: goes up with every rebalance.
        offsets: the committed offsets.
        identities: of the topics that they belong to; None where that is not known.
        emptied_at: when the last seat was given up (ms); None: some are taken, or none ever was.
    """

    def __init__(self, count: Callable[[str], int], clock: Callable[[], int]) -> None:
        """Found an empty group; ``count`` gives a topic's number of partitions."""
        self.generation = 0
        self.offsets: dict[TopicPartition, int] = {}
        self.identities: dict[TopicPartition, str | None] = {}
        self.emptied_at: int | None = None
        self._count = count
        self._clock = clock
        self._seats: dict[str, tuple[str, ...]] = {}
        self._assigned: dict[str, frozenset[TopicPartition]] = {}

    def __contains__(self, instance: str) -> bool:
        """Tell whether the instance has a seat."""
        return instance in self._seats

    @property
    def empty(self) -> bool:
        """Whether nobody has a seat, present or away."""
        return not self._seats

    def subscribes(self, topic: str) -> bool:
        """Tell whether anybody with a seat, present or away, reads a topic."""
        return any(topic in topics for topics in self._seats.values())

    def sit(self, instance: str, topics: tuple[str, ...]) -> None:
        """Take the seat of this name, or a new one."""
        self.emptied_at = None
        if self._seats.get(instance) != topics:
            self._seats[instance] = topics
            self._rebalance()

    def leave(self, instance: str) -> None:
        """Give up a seat, if there is one of this name."""
        if self._seats.pop(instance, None) is not None:
            if self.empty:
                self.emptied_at = self._clock()
            self._rebalance()

    def assignment(self, instance: str) -> frozenset[TopicPartition]:
        """Give the partitions of a seat in this generation."""
        return self._assigned[instance]

    def _rebalance(self) -> None:
        self.generation += 1
        self._assigned = assign_ranges(self._seats, self._count)
