"""Writes to a Kafka cluster outside all groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from types import MappingProxyType

from worker.bus import AnyOutgoing, Effect, Fenced, LogReader, TopicPartition
from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.groups import group_client
from worker.bus.kafka.identities import metadata_of
from worker.bus.kafka.producer import GroupOffsets, TransactionalProducer


class KafkaWriter:
    """See `worker.bus.port.LogWriter`.

    The name is the transactional id. A commit without the `renew` that it needs raises
    RuntimeError.
    """

    def __init__(
        self,
        options: KafkaOptions,
        name: str,
        topic: str,
        reader: Callable[[Collection[str]], LogReader],
        ids: Callable[[Collection[str]], Mapping[str, str]],
    ) -> None:
        """Take the name, one topic that it writes to, and a function that opens a reader.

        ``ids`` looks up the ids of topics. This does not connect.
        """
        self._ids = ids
        self._options = options
        self._reader = reader
        self._name = name
        self._producer = TransactionalProducer(options, name, topic)
        self._renewed = False
        self._fenced = ""

    def renew(self) -> None:
        """See the port."""
        self._producer.renew()
        self._renewed = True
        self._fenced = ""

    def commit(
        self,
        records: Iterable[AnyOutgoing],
        offsets: Mapping[str, Mapping[TopicPartition, int]] = MappingProxyType({}),
    ) -> dict[TopicPartition, int | None]:
        """See the port. Without records, this does nothing."""
        if self._fenced:
            raise Fenced(self._fenced)
        if not self._renewed:
            raise RuntimeError(f"writer {self._name}: call renew first")
        sent = list(records)
        if not sent:
            return {}
        self._renewed = False
        with ExitStack() as stack:
            beside = [
                self._beside(stack, group, partitions) for group, partitions in offsets.items()
            ]
            delivered, self._fenced = self._superseded(sent, beside)
        # Raised here and not in the except block, where the new exception would keep the
        # producer's error, and with it the producer.
        if self._fenced:
            raise Fenced(self._fenced)
        self._renewed = True
        return delivered

    def _beside(
        self, stack: ExitStack, group: str, offsets: Mapping[TopicPartition, int]
    ) -> GroupOffsets:
        """Return the offsets of a group with a consumer of it, which never joins."""
        ids = self._ids({partition.topic for partition in offsets})
        notes = {at: metadata_of(ids[at.topic], offset) for at, offset in offsets.items()}
        return GroupOffsets(stack.enter_context(group_client(self._options, group)), offsets, notes)

    def _superseded(
        self, sent: list[AnyOutgoing], beside: list[GroupOffsets]
    ) -> tuple[dict[TopicPartition, int | None], str]:
        """Commit; return where the records are, and an empty string.

        If another writer has the name, return the error's text.
        """
        try:
            return self._producer.commit(sent, beside=beside).ends(), ""
        except Fenced as error:
            return {}, str(error)

    def effect(self) -> Effect:
        """See the port."""
        delivered = self._producer.doubtful
        if delivered is None:
            return Effect()
        return Effect(delivered.kept(self._reader, self._options.request_timeout_seconds))

    def close(self) -> None:
        """See the port."""
        self._producer.close()
        self._renewed = False
