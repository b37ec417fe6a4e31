"""Writes to a Kafka cluster outside all groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.producer import TransactionalProducer
from worker.bus.port import Effect, Fenced, LogReader, Outgoing, TopicPartition

__all__ = ["KafkaWriter"]


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
    ) -> None:
        """Take the name, one topic that it writes to, and a function that opens a reader.

        This does not connect.
        """
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

    def commit(self, records: Iterable[Outgoing]) -> dict[TopicPartition, int | None]:
        """See the port. Without records, this does nothing."""
        if self._fenced:
            raise Fenced(self._fenced)
        if not self._renewed:
            raise RuntimeError(f"writer {self._name}: call renew first")
        sent = list(records)
        if not sent:
            return {}
        self._renewed = False
        delivered, self._fenced = self._superseded(sent)
        # Raised here and not in the except block, where the new exception would keep the
        # producer's error, and with it the producer.
        if self._fenced:
            raise Fenced(self._fenced)
        self._renewed = True
        return delivered

    def _superseded(self, sent: list[Outgoing]) -> tuple[dict[TopicPartition, int | None], str]:
        """Commit; return where the records are, and an empty string.

        If another writer has the name, return the error's text.
        """
        try:
            return self._producer.commit(sent, {}).ends(), ""
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
