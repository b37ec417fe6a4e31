"""Writes to the in-process log outside all groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from worker.bus import Aborted, AnyOutgoing, Effect, Fenced, TopicPartition, each
from worker.bus.memory.coordinator import Coordinator, Identity
from worker.bus.memory.topics import Topics
from worker.bus.memory.transaction import Attempt, Faults, Step


class MemoryWriter:
    """See `worker.bus.port.LogWriter`.

    A commit without the `renew` that it needs raises RuntimeError.
    """

    def __init__(
        self, name: str, topics: Topics, coordinator: Coordinator, faults: Callable[[], Faults]
    ) -> None:
        """Take the name, and what to write to. This fences no other writer."""
        self._identity = Identity("", name)
        self._topics = topics
        self._coordinator = coordinator
        self._faults = faults
        self._begun = False
        self._renewed = False
        self._attempt: Attempt | None = None

    def renew(self) -> None:
        """See the port."""
        self._coordinator.check_thread()
        self._coordinator.claim(self._identity, self)
        self._begun = self._renewed = True

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[str, Mapping[TopicPartition, int]] = MappingProxyType({}),
    ) -> dict[TopicPartition, int | None]:
        """See the port. Without records, this does nothing."""
        self._coordinator.check_thread()
        if self._begun:
            self._check_owner()
        if not self._renewed:
            raise RuntimeError(f"writer {self._identity.instance}: call renew first")
        self._attempt = None
        sent = list(each(records))
        batches = self._topics.route(sent)
        if not batches:
            return {}
        self._renewed = False
        transaction = self._coordinator.begin(self._identity)
        self._attempt = Attempt(transaction, sent, batches, offsets=False)

        def join() -> None:
            for group, partitions in offsets.items():
                self._step("offsets")
                transaction.commit_offsets(group, partitions)

        try:
            transaction.carry_out(batches, self._step, join)
        except Aborted:
            self._check_owner()
            raise
        self._renewed = True
        self._attempt = None
        return {**transaction.ends()}

    def effect(self) -> Effect:
        """See the port."""
        self._coordinator.check_thread()
        return Effect() if self._attempt is None else self._attempt.effect()

    def close(self) -> None:
        """See the port."""
        self._renewed = False

    def _step(self, step: Step) -> None:
        self._faults()(step, *self._identity)

    def _check_owner(self) -> None:
        if not self._coordinator.owns(self._identity, self):
            raise Fenced(f"another writer has taken over the name {self._identity.instance}")
