"""The progress of a reindex: where the groups and the logs of both generations are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from time import monotonic

from worker.admin.cluster import Cluster
from worker.bus import Bus, TopicPartition, Unanswered, state_of
from worker.bus.ranges import read_ranges
from worker.generations.generation import Generation
from worker.generations.plan import Plan
from worker.generations.turns import SEALED, WAITING, answers_yet
from worker.topology import Topology
from worker.visible import counted
from worker.wire.codec import hand_over

_LOOK_SECONDS = 10.0
_MARKERS = 1
"""Offsets at the end of a log of answers that hold no record: the last transaction's marker."""
_LAST_OFFSETS = 64
"""The end of a log, in which its last record is. Behind it are markers of transactions."""
_NEAR = 2
"""Offsets at the end of a log that may be markers."""
_LOOKED_THROUGH = 100
"""So few offsets are looked at to see whether they are markers alone."""
_RECENT_SECONDS = 5.0
"""A shard that has read all that was in the log so long ago is up to date."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a reindex.

    Attributes:
        plan: what workers run.
        end: the end of the log of fingerprints that these read.
        reached: how far each shard of the following generation has read, by number; None if no
            worker has begun it.
        source: the end of the log in use, if the following generation has its own.
        rewritten: how far that one has new fingerprints.
    """

    plan: Plan
    end: int
    reached: Mapping[int, int | None]
    source: int = 0
    rewritten: int = 0

    def left(self) -> str:
        """Return in words what is left to do before the next generation can take over."""
        if self.plan.state == "sealing":
            return (
                "not all partitions of the documents are sealed; do all workers run this version?"
            )
        behind = self.source - self.rewritten
        if self.plan.rewriting and behind > _NEAR:
            offsets = counted(self.source, "offset")
            return f"{behind:,} of {offsets} of the earlier log are left to rewrite"
        waiting = [shard for shard, at in self.reached.items() if at is None]
        if waiting:
            return f"no worker has begun shard {waiting[0]} yet"
        slowest = max((self.end - (at or 0) for at in self.reached.values()), default=0)
        offsets = counted(self.end, "offset is", "offsets are")
        return f"{slowest:,} of {offsets} left for the slowest shard"


def described(generation: Generation | None) -> str:
    """Return a generation's number and rules in words."""
    if generation is None:
        return "nothing"
    log = ", new fingerprints" if generation.log and generation.log == generation.number else ""
    share = generation.containment
    containment = "" if share is None else f", containment {share:g}"
    return (
        f"generation {generation.number} ({counted(generation.shards, 'shard')}, threshold"
        f" {generation.threshold:g}{containment}, absorb {generation.absorb:g}, capacity"
        f" {generation.bucket_capacity}, window {generation.window}{log})"
    )


class Catching:
    """Sees whether all readers of a log have read what was in it some seconds ago."""

    def __init__(
        self, empty: Callable[[int, int], bool], clock: Callable[[], float] = monotonic
    ) -> None:
        """Take what looks whether there is no record between two offsets of the log."""
        self._empty = empty
        self._clock = clock
        self._ends: list[tuple[float, int]] = []

    def up_to_date(self, end: int, reached: Collection[int | None]) -> bool:
        """Look once, at the end of the log and how far the readers are; None: not begun."""
        now = self._clock()
        self._ends.append((now, end))
        before = [at for seen, at in self._ends if now - seen >= _RECENT_SECONDS]
        del self._ends[: max(0, len(before) - 1)]
        if not before or None in reached:
            return False
        least = min((at for at in reached if at is not None), default=end)
        # The last offsets are markers, which nobody commits: several, if workers wrote in turns.
        left = before[-1] - least
        return left <= 0 or (left <= _LOOKED_THROUGH and self._empty(least, before[-1]))


class Positions:
    """Looks up where an application's groups and logs are."""

    def __init__(self, cluster: Cluster, bus: Bus, base: Topology) -> None:
        """Take the topology of generation 0."""
        self._cluster = cluster
        self._bus = bus
        self._base = base

    def order(self, topology: Topology) -> tuple[int, int]:
        """Return where a log of fingerprints begins and ends."""
        return self._cluster.ranges({topology.fingerprints: 1})[topology.order]

    def progress(self, plan: Plan) -> Progress:
        """Return how far the workers are."""
        current = plan.current.topology(self._base)
        _, end = self.order(current)
        if plan.following is None:
            return Progress(plan, end, {})
        topology = plan.following.topology(self._base)
        source = rewritten = 0
        if plan.rewriting:
            group = topology.group("refingerprint")
            source, rewritten = end, self._committed(group, [current.order]).get(current.order, 0)
            _, end = self.order(topology)
        offsets = self._shards(topology)
        read = {shard: int(at) for shard, at in offsets.items() if state_of(at) != WAITING}
        reached = {shard: read.get(shard) for shard in range(plan.following.shards)}
        return Progress(plan, end, reached, source, rewritten)

    def _committed(
        self, group: str, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        return self._cluster.committed({group: partitions})[group]

    def _shards(self, topology: Topology) -> dict[int, int]:
        """Return how far the shards of a generation are, by number."""
        seats = [TopicPartition(topology.seats, n) for n in range(topology.layout.shards)]
        found = self._committed(topology.group("index"), seats)
        return {seat.partition: offset for seat, offset in found.items()}

    def documents(self, topology: Topology) -> Mapping[TopicPartition, int]:
        """Return up to where a log has the documents, as far as that is committed."""
        return self._committed(topology.group("fingerprint"), _documents(topology))

    def empty(self, topology: Topology, start: int, end: int) -> bool:
        """Return whether a log of fingerprints has no record between two offsets.

        Return False if it doesn't say so in time. Transactions of several writers may end one
        after the other, so several markers may follow its last record.
        """
        order = topology.order
        span = {order: (start, end)}
        with (
            closing(self._bus.log_reader(topology.group("index"), [order.topic])) as reader,
            suppress(Unanswered),
        ):
            return not any(True for _ in read_ranges(reader, span, limit=1, silence=_LOOK_SECONDS))
        return False

    def sealed(self, source: Topology) -> list[int] | None:
        """Return up to where a log has the documents, by partition; None if it isn't sealed yet."""
        offsets = self.documents(source)
        ends = {place: int(at) for place, at in offsets.items() if state_of(at) == SEALED}
        if len(ends) < source.layout.partitions:
            return None
        return [ends[place] for place in _documents(source)]

    def written(self, target: Topology) -> bool:
        """Return whether a new log has its hand-over, the last that *refingerprint* writes.

        Ask it only before anything else is written there.
        """
        order = target.order
        group = target.group("refingerprint")
        with closing(self._bus.log_reader(group, [order.topic])) as reader:
            low, high = reader.watermarks(order)
            return any(
                hand_over(record.value, target.layout.id) == target.generation
                for record in read_ranges(reader, {order: (max(low, high - _LAST_OFFSETS), high)})
            )

    def begun(self, target: Topology) -> bool:
        """Return whether all partitions of the documents have been begun for a log."""
        offsets = self.documents(target)
        waiting = [at for at in offsets.values() if state_of(at) == WAITING]
        return len(offsets) == target.layout.partitions and not waiting

    def through(self, plan: Plan) -> bool:
        """Return whether nothing of the generation in use is still to be published."""
        if plan.following is None or plan.state != "taking over":
            return False
        old, new = (one.topology(self._base) for one in plan.generations())
        # In this order: what the shards have answered is in the logs, and their ends are final.
        answered = self._shards(old)
        if len(answered) < old.layout.shards or not self._at_hand_over(old, new, answered):
            return False
        answering = [offset for offset in self._shards(new).values() if answers_yet(offset)]
        if len(answering) < new.layout.shards:
            return False
        if plan.rewriting and not self.begun(new):
            return False
        partitions = self._base.layout.partitions
        ends = self._cluster.ranges(dict.fromkeys(old.answers, partitions), committed=False)
        following = [
            TopicPartition(topic, number) for topic in new.answers for number in range(partitions)
        ]
        routed = self._committed(old.group("route"), [*ends, *following])
        return all(place in routed for place in following) and all(
            high - routed.get(place, low) <= _MARKERS for place, (low, high) in ends.items()
        )

    def _at_hand_over(self, old: Topology, new: Topology, answered: Mapping[int, int]) -> bool:
        """Return whether the next record for every shard is the hand-over."""
        order = old.order
        low, high = self.order(old)
        following = {order: (max(low, min(answered.values())), high)}
        with closing(self._bus.log_reader(old.group("index"), [order.topic])) as reader:
            for record in read_ranges(reader, following, limit=1):
                return hand_over(record.value, old.layout.id) == new.generation
        return False


def _documents(topology: Topology) -> list[TopicPartition]:
    return [TopicPartition(topology.documents, n) for n in range(topology.layout.partitions)]
