"""The transactional producer of a stage's seat."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from types import MappingProxyType

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from worker.bus.kafka.config import KafkaOptions
from worker.bus.kafka.deadline import within
from worker.bus.kafka.errors import REFUSED, cause, consequence, retrying
from worker.bus.kafka.listener import LogListener
from worker.bus.port import (
    Aborted,
    BusError,
    OutcomeUnknown,
    Outgoing,
    Refused,
    TopicPartition,
)

__all__ = ["TransactionalProducer", "transactional_id"]

_log = logging.getLogger(__name__)

_DISTURBED = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 -- librdkafka's own codes begin with an underscore
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
    }
)


def transactional_id(group: str, instance: str) -> str:
    """Return the name of the transactions that a member of a group makes."""
    return f"{group}.{instance}"


class TransactionalProducer:
    """One librdkafka producer with a stable transactional id, and its successors.

    librdkafka doesn't know KIP-890: an EndTxn request that arrives late can end the next
    transaction. So after every transaction whose end was disturbed (an error, a timeout,
    a lost connection, even if success was reported in the end) the producer is thrown
    away: its successor has a higher epoch, under which nothing late is accepted.
    """

    def __init__(
        self,
        options: KafkaOptions,
        transactional_id: str,
        probe: str,
        *,
        compress: bool = True,
        troubled: Callable[[str], None] = lambda _what: None,
    ) -> None:
        """Prepare; `renew` connects, by asking for the topic ``probe``.

        ``troubled`` hears of trouble with brokers.
        """
        self._compress = compress
        self._probe = probe
        self._options = options
        self._id = transactional_id
        self._producer: Producer | None = None
        self._disturbed: str | None = None
        self._troubled = troubled
        self._refused: set[tuple[str | None, object, object]] = set()

    @property
    def ready(self) -> bool:
        """Tell whether there is a producer."""
        return self._producer is not None

    def renew(self) -> None:
        """Make a new producer under the same id, which ends what the old one had open.

        Raises:
            BusError: not within the request timeout.
        """
        self.close()
        deadline = monotonic() + self._options.request_timeout_seconds
        while True:
            config = self._options.producing(self._id, compress=self._compress)
            listener = LogListener(config["logger"], troubled=self._on_log)
            producer = Producer(
                {
                    **config,
                    "error_cb": self._on_error,
                    "logger": listener,
                    "on_delivery": self._on_failed,
                    "delivery.report.only.error": True,
                }
            )
            failure = self._failure_to_begin(producer, deadline)
            if failure is None:
                break
            _drop(producer)
            if monotonic() > deadline or not _may_pass(failure):
                raise self._unable(failure) from failure
            _log.info("producer %s: %s; again", self._id, failure)
        self._producer = producer
        producer.poll(0)  # What was logged on the way here is no doubt about what follows.
        self._disturbed = None

    def _unable(self, failure: Exception) -> BusError:
        """Say why there is no producer, and what to do if that is known."""
        doing = f"producer {self._id} could not begin"
        if isinstance(failure, KafkaException):
            known = consequence(cause(failure), doing)
            if isinstance(known, BusError):
                return known
        return BusError(f"{doing} within {self._options.request_timeout_seconds:.0f} s: {failure}")

    def _failure_to_begin(self, producer: Producer, deadline: float) -> Exception | None:
        try:
            # Without a connection librdkafka looks for its coordinator every 500 ms only. The
            # first is to a bootstrap server, and given up once the brokers are known.
            for _ in range(2):
                producer.list_topics(self._probe, timeout=max(0.1, deadline - monotonic()))
            retrying(
                producer.init_transactions, deadline - monotonic(), f"producer {self._id}: begin"
            )
        except (KafkaException, OutcomeUnknown) as error:
            return error
        return None

    def _on_failed(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and error.code() in REFUSED:
            self._refused.add((message.topic(), message.key(), message.value()))

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in _DISTURBED:
            self._on_log(error.str())

    def _on_log(self, what: str) -> None:
        self._disturbed = what
        self._troubled(what)

    def _undisturbed(self) -> Producer:
        """Give the producer, or its successor if its last transaction was aborted.

        The same if there was trouble since: what librdkafka remembers of the coordinators is
        stale then, and it may hang on it.
        """
        if self._producer is not None:
            self._producer.poll(0)
            if self._disturbed is not None:
                self.renew()
        if self._producer is None:
            msg = f"producer {self._id} has not begun"
            raise OutcomeUnknown(msg)
        self._disturbed = None
        return self._producer

    def commit(
        self,
        records: Iterable[Outgoing],
        offsets: Mapping[TopicPartition, int],
        consumer: Consumer | None = None,
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write and commit in one transaction; raises as `Member.commit` says.

        ``offsets``, if there are any, are those of the ``consumer``'s group.
        ``notes`` are, by topic, the metadata that go with its offsets.
        """
        producer = self._undisturbed()
        self._refused.clear()
        sent = list(records)
        timeout = self._options.commit_timeout_seconds
        try:
            producer.begin_transaction()
            self._produce(producer, sent)
            if consumer is not None:
                self._send_offsets(producer, offsets, consumer, notes)
            within(lambda: producer.commit_transaction(timeout), timeout, "commit")
        except KafkaException as error:
            # Named by nobody: a frame that holds what it raises keeps the producer, too, and with
            # it its threads and their connections, until the collector comes by.
            raise self._ended(producer, cause(error), sent) from error
        producer.poll(0)
        if self._disturbed is not None:
            msg = f"committed, but with trouble on the way: {self._disturbed}"
            raise OutcomeUnknown(msg)

    def _send_offsets(
        self,
        producer: Producer,
        offsets: Mapping[TopicPartition, int],
        consumer: Consumer,
        notes: Mapping[str, str],
    ) -> None:
        positions = [
            KafkaPartition(*partition, at, notes.get(partition.topic, ""))
            for partition, at in offsets.items()
        ]
        metadata = consumer.consumer_group_metadata()
        retrying(
            lambda left: within(
                lambda: producer.send_offsets_to_transaction(positions, metadata, left),
                left,
                "offsets",
            ),
            # Later the coordinator has aborted the transaction anyway.
            self._options.transaction_timeout_ms / 1_000,
            "offsets",
        )

    def _produce(self, producer: Producer, records: Iterable[Outgoing]) -> None:
        produce = producer.produce
        for topic, partition, key, value, headers, timestamp in records:
            while True:
                try:
                    produce(
                        topic,
                        value,
                        key,
                        -1 if partition is None else partition,
                        None,
                        None,
                        timestamp or 0,
                        list(headers) if headers else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.05)

    def _ended(self, producer: Producer, error: KafkaError, sent: Sequence[Outgoing]) -> Exception:
        """Abort if that is what is called for, and give the consequence, which is to be raised."""
        outcome = consequence(error, f"transaction of {self._id}")
        if not isinstance(outcome, Aborted) and error.code() not in REFUSED:
            return outcome
        try:
            retrying(
                lambda left: within(lambda: producer.abort_transaction(left), left, "abort"),
                self._options.commit_timeout_seconds,
                "abort",
            )
        except KafkaException as second:
            return OutcomeUnknown(f"{outcome}; and its abort: {cause(second).str()}")
        producer.poll(0)
        if self._disturbed is not None:
            return OutcomeUnknown(
                f"{outcome}; aborted, but with trouble on the way: {self._disturbed}"
            )
        # A request of this transaction may still be on its way, and would be taken for one
        # of the next: so that has another epoch.
        self._disturbed = "the last transaction was aborted"
        refused, self._refused = self._refused, set()
        if refused:
            which = [one for one in sent if (one.topic, one.key, one.value) in refused]
            return Refused(str(outcome), which)
        return outcome

    def close(self) -> None:
        """Drop the producer with whatever is still in it; its open transaction times out."""
        if self._producer is not None:
            _drop(self._producer)
            self._producer = None


def _drop(producer: Producer) -> None:
    """Forget what is still in a producer, so that it doesn't wait for that when it goes.

    Not to be called while an exception is handled: confluent_kafka 2.16 never frees a KafkaError
    that it has raised, and that keeps the exception handled at the time, whose traceback has
    the producer.
    """
    with suppress(KafkaException):  # A fenced one has only that to say.
        producer.purge()
        producer.poll(0)


def _may_pass(error: Exception) -> bool:
    if not isinstance(error, KafkaException):
        return True
    found = cause(error)
    return found.retriable() or not (found.fatal() or isinstance(consequence(found, ""), BusError))
