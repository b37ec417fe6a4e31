"""A consumer group: its seats, assignment and offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from worker.bus import TopicPartition


def assign_ranges(
    seats: Mapping[str, Collection[str]], count: Callable[[str], int]
) -> dict[str, frozenset[TopicPartition]]:
    """Return the assignment: for each topic a contiguous range per subscriber, by sorted name.

    As in Kafka's range assignor, the first ``count % subscribers`` get one more partition. So
    topics with equal partition counts and subscribers are split at the same numbers.
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

    A seat belongs to an instance name, not to a member: a restarted member under the same name
    gets the same partitions, without a rebalance. Every other change of seats starts a new
    generation at once. Each member learns of it in its next poll; until then its generation is
    stale, and it can't commit.

    Attributes:
        generation: increases with every rebalance.
        offsets: the committed offsets.
        identities: of the offsets' topics; None where that is not known.
        epochs: the leader epochs of the offsets; None where that is not known.
        emptied_at: when the last seat was given up (ms); None if seats are taken, or none ever was.
        silent: whether the coordinator answers no member.
    """

    def __init__(self, count: Callable[[str], int], clock: Callable[[], int]) -> None:
        """Create an empty group; ``count`` returns a topic's number of partitions."""
        self.generation = 0
        self.offsets: dict[TopicPartition, int] = {}
        self.identities: dict[TopicPartition, str | None] = {}
        self.epochs: dict[TopicPartition, int | None] = {}
        self.emptied_at: int | None = None
        self.silent = False
        self._count = count
        self._clock = clock
        self._seats: dict[str, tuple[str, ...]] = {}
        self._assigned: dict[str, frozenset[TopicPartition]] = {}

    def __contains__(self, instance: str) -> bool:
        """Return whether the instance has a seat."""
        return instance in self._seats

    @property
    def empty(self) -> bool:
        """Return whether no member, present or away, has a seat."""
        return not self._seats

    def subscribes(self, topic: str) -> bool:
        """Return whether a member with a seat, present or away, reads a topic."""
        return any(topic in topics for topics in self._seats.values())

    def sit(self, instance: str, topics: tuple[str, ...]) -> None:
        """Take the seat of this name; create it if there is none."""
        self.emptied_at = None
        if self._seats.get(instance) != topics:
            self._seats[instance] = topics
            self._rebalance()

    def leave(self, instance: str) -> None:
        """Give up the seat of this name, if there is one."""
        if self._seats.pop(instance, None) is not None:
            if self.empty:
                self.emptied_at = self._clock()
            self._rebalance()

    def answer(self) -> None:
        """Answer again, after a silence: every member joins anew."""
        self.silent = False
        self._rebalance()

    def assignment(self, instance: str) -> frozenset[TopicPartition]:
        """Return the partitions of a seat in this generation."""
        return self._assigned[instance]

    def _rebalance(self) -> None:
        self.generation += 1
        self._assigned = assign_ranges(self._seats, self._count)
