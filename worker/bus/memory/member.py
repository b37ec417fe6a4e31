"""A seat in a group of the in-process log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from worker.bus import (
    Aborted,
    AnyOutgoing,
    Claim,
    Effect,
    Polled,
    Record,
    RecordBatch,
    TopicPartition,
    TopicRecreated,
    claimed,
    each,
)
from worker.bus.memory.coordinator import Coordinator, Identity
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Attempt, Faults, Step, Transaction
from worker.bus.records import NO_EPOCHS


class MemoryMember:
    """A `worker.bus.port.Member` of the in-process log.

    It refuses misuse that would otherwise go unnoticed. A partition that isn't owned, or is
    resumed without a position, raises ValueError. A closed member, another thread, or a commit
    after a transaction in doubt raises RuntimeError.
    """

    def __init__(  # noqa: PLR0913 -- the parts of a seat
        self,
        identity: Identity,
        subscription: tuple[str, ...],
        topics: Topics,
        coordinator: Coordinator,
        faults: Callable[[], Faults],
        *,
        of: str | None = None,
    ) -> None:
        """Take the seat, and fence its previous member."""
        self._identity = identity
        self._subscription = subscription
        self._topics = topics
        self._coordinator = coordinator
        self._faults = faults
        self._group = coordinator.group(identity.group)
        self._closed = False
        self._attempt: Attempt | None = None
        self._generation: int | None = None  # the one that poll has returned
        self._owned: frozenset[TopicPartition] = frozenset()
        self._positions: dict[TopicPartition, int] = {}
        self._delivering: list[TopicPartition] = []  # the next one to read first
        self._claims: dict[TopicPartition, Claim] = {}
        self._known: dict[TopicPartition, Claim] = {}  # what is before each position
        self._known_epochs: dict[TopicPartition, int] = {}  # of the offsets committed last
        self.of = of
        depends = (*subscription, of) if of is not None else subscription
        self._identities = {topic: topics.identities[topic] for topic in depends}
        self._group.sit(identity.instance, subscription)
        coordinator.claim(identity, self)

    def poll(
        self,
        limit: int,
        max_bytes: int,
        timeout: float,  # noqa: ARG002 -- it never waits
    ) -> Polled:
        """See the port. Never waits: in one thread, nothing can arrive meanwhile.

        Each poll starts with the next partition in turn. OffsetOutOfRange is raised before any
        record is taken, and again until the position changes.
        """
        self._check()
        self._topics.check(self._identities)
        if limit < 1 or max_bytes < 1:
            raise ValueError(
                f"poll needs a limit and max_bytes of at least 1: {limit}, {max_bytes}"
            )
        if self._group.silent:
            return Polled(())
        if self._identity.instance not in self._group:  # evicted, but alive
            self._group.sit(self._identity.instance, self._subscription)
        if self._generation != self._group.generation:
            return Polled((), self._take_assignment())
        return Polled(RecordBatch.of(self._fetch(limit, max_bytes)))

    @property
    def seated(self) -> bool:
        """See the port. The last assignment holds until a poll returns another."""
        return bool(self._owned)

    @property
    def waiting(self) -> bool:
        """See the port."""
        joined = self._identity.instance in self._group and self._generation is not None
        return self._group.silent or not joined

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[TopicPartition, int],
        *,
        epochs: Mapping[TopicPartition, int] = NO_EPOCHS,
    ) -> None:
        """See the port. Without records and offsets, this does nothing.

        As in Kafka, the generation is checked when offsets are committed. If it is stale, the
        records written before leave a gap.
        """
        self._check()
        self._attempt = None
        self._topics.check(self._identities)
        sent = list(each(records))
        batches = self._topics.route(sent)
        if not batches and not offsets:
            return
        if self._coordinator.in_doubt(self._identity):
            raise RuntimeError("the last transaction is in doubt; call renew first")
        if self._generation == self._group.generation:
            self._check_owned(offsets)
        transaction = self._coordinator.begin(self._identity)
        self._attempt = Attempt(transaction, sent, batches, offsets=bool(offsets))

        def join() -> None:
            if offsets:
                self._step("offsets")
                self._commit_offsets(transaction, offsets, epochs)

        try:
            transaction.carry_out(batches, self._step, join)
        except Aborted:
            self._coordinator.check_owner(self._identity, self)
            raise
        self._attempt = None
        known = self._known_epochs
        self._claims |= claimed({place: (at, known.get(place)) for place, at in offsets.items()})

    @property
    def throttled(self) -> bool:
        """See the port. There is no quota."""
        return False

    def settle(self, timeout: float) -> None:
        """See the port. A transaction ends at once."""

    def renew(self) -> None:
        """See the port."""
        self._check()
        self._coordinator.abort_open(self._identity)

    def effect(self) -> Effect:
        """See the port."""
        self._check()
        return Effect() if self._attempt is None else self._attempt.effect()

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """See the port. Aborts another member's open transaction, as its timeout would."""
        self._check()
        partitions = list(partitions)
        if self._coordinator.in_doubt(self._identity):
            raise RuntimeError(
                "the last transaction is in doubt, and so are the offsets; call renew first"
            )
        self._coordinator.end_pending(self._identity.group, partitions)
        for partition in partitions:
            owner = self.of or partition.topic
            was = self._group.identities.get(partition)
            now = self._topics.identities.get(owner)
            if was is not None and now is not None and was != now:
                raise TopicRecreated(owner, was, now)
        found = {partition: self._group.offsets.get(partition) for partition in partitions}
        epochs = self._group.epochs
        self._claims = claimed({at: (offset, epochs.get(at)) for at, offset in found.items()})
        return found

    def claims(self) -> Mapping[TopicPartition, Claim]:
        """See the port."""
        return self._claims

    def positions(self) -> dict[TopicPartition, int]:
        """See the port."""
        self._check()
        return dict(self._positions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """See the port."""
        self._check()
        self._check_owned((partition,))
        if offset < 0:
            raise ValueError(f"can't seek {partition.topic}[{partition.partition}] to {offset}")
        self._positions[partition] = offset
        self._known.pop(partition, None)
        claim = self._claims.get(partition)
        if self.of is None and claim is not None and claim.offset == offset:
            self._known[partition] = claim

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._check()
        stopped = set(partitions)
        self._check_owned(stopped)
        self._delivering = [p for p in self._delivering if p not in stopped]

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """See the port."""
        self._check()
        started = set(partitions)
        self._check_owned(started)
        for partition in sorted(started.difference(self._delivering)):
            if partition not in self._positions:
                raise ValueError(
                    f"seek {partition.topic}[{partition.partition}] before you resume it"
                )
            self._delivering.append(partition)

    def watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """See the port."""
        self._check()
        log = self._topics.log(partition)
        return log.start, log.stable

    def lag(self) -> dict[TopicPartition, int]:
        """See the port. Control records count until the position has passed them."""
        self._check()
        offsets = self._group.offsets if self.of is None else {}
        starts = {
            partition: offsets[partition] for partition in self._owned if partition in offsets
        }
        return {
            partition: max(0, self._topics.log(partition).stable - position)
            for partition, position in (starts | self._positions).items()
            if self._topics.count(partition.topic) is not None
        }

    def subscribe(self, topics: Sequence[str]) -> None:
        """See the port."""
        self._check()
        self._subscription = tuple(sorted(set(topics)))
        self._identities = {topic: self._topics.identities[topic] for topic in self._subscription}
        self._group.sit(self._identity.instance, self._subscription)
        self._generation = None  # A poll returns the assignment, whether it is another or not.

    def close(self, *, leave: bool = False) -> None:
        """See the port. Without ``leave`` the seat and its partitions stay reserved.

        A transaction in doubt stays open. Closing a fenced member does not affect its successor.
        """
        self._coordinator.check_thread()
        self._closed = True
        if leave and self._coordinator.owns(self._identity, self):
            self._group.leave(self._identity.instance)

    def _check(self) -> None:
        self._coordinator.check_thread()
        if self._closed:
            raise RuntimeError(
                f"member {self._identity.instance} of {self._identity.group} is closed"
            )
        self._coordinator.check_owner(self._identity, self)

    def _check_owned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition not in self._owned:
                raise ValueError(
                    f"{partition.topic}[{partition.partition}] is not assigned to"
                    f" {self._identity.instance} of {self._identity.group}"
                )

    def _step(self, step: Step) -> None:
        self._faults()(step, *self._identity)

    def _take_assignment(self) -> frozenset[TopicPartition]:
        """Join the group's current generation, forget all positions, and return the assignment."""
        self._generation = self._group.generation
        self._owned = self._group.assignment(self._identity.instance)
        self._positions.clear()
        self._known.clear()
        self._delivering = []
        return self._owned

    def _fetch(self, limit: int, max_bytes: int) -> list[Record]:
        """Read from the resumed partitions; raise without moving any position."""
        records: list[Record] = []
        if not self._delivering:
            return records
        moved: dict[TopicPartition, int] = {}
        there = [place for place in self._delivering if self._topics.count(place.topic) is not None]
        for partition in there:
            log = self._topics.log(partition)
            log.confirm(self._known.get(partition))
            log.check(self._positions[partition])
        for partition in there:
            if limit < 1 or max_bytes < 1:
                break
            fetched = self._topics.log(partition).fetch(
                self._positions[partition], limit, max_bytes
            )
            moved[partition] = fetched.position
            epoch = self._topics.log(partition).epoch
            self._known[partition] = Claim(fetched.position, epoch)
            limit -= len(fetched.records)
            max_bytes -= fetched.size
            records += fetched.records
        self._positions |= moved
        self._delivering.append(self._delivering.pop(0))
        return records

    def _commit_offsets(
        self,
        transaction: Transaction,
        offsets: Mapping[TopicPartition, int],
        told: Mapping[TopicPartition, int],
    ) -> None:
        """Add the offsets to the transaction; raise Aborted if the generation is stale."""
        if self._generation != self._group.generation:
            raise Aborted(
                f"group {self._identity.group} has rebalanced; the next poll returns the assignment"
            )
        own = {} if self.of is not None else self._known
        epochs = {partition: claim.epoch for partition, claim in own.items()}
        before = {partition: claim.epoch for partition, claim in self._claims.items()}
        for partition, epoch in (*told.items(), *before.items()):
            epochs[partition] = max(epoch, epochs.get(partition, epoch))
        for place in offsets.keys() - told.keys() if self.of is None else ():
            claim = self._claims.get(place)
            reached = max(self._positions.get(place, 0), claim.offset if claim is not None else 0)
            if offsets[place] > reached:
                epochs.pop(place, None)
        transaction.commit_offsets(self._identity.group, offsets, of=self.of, epochs=epochs)
        self._known_epochs = epochs
