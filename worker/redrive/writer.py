"""Writes documents, and how far that goes, in transactions under one name.

Whoever begins last under the name is the only one who can write: a run that was frozen, or
is still at work, is fenced. So what the topic of the progress says when a run has begun is
what was sent, and stays so until that run itself adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from worker.admin.compacted import PARTITION
from worker.admin.progress_log import Line
from worker.bus import BusError, Fenced, OutcomeUnknown, Outgoing
from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.deadline import within
from worker.bus.kafka.errors import cause, retrying
from worker.bus.kafka.listener import LogListener

__all__ = ["TRANSACTION_SECONDS", "Writer", "Written"]

TRANSACTION_SECONDS = 15.0

_POLL_SECONDS = 0.1
_PURGE_SECONDS = 5.0
_TRIES = 3
"""A document that is refused has had a number in its producer's sequence. librdkafka misses it
in the next transaction only, fails that one, and goes on from there (seen with 2.16)."""
_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 -- librdkafka's own code begins with an underscore
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
_OF_THE_RECORD = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
    }
)
"""What a topic has against a record: the next one may be all right."""
_SUPERSEDED = (
    "another redrive of this application took over, or this one stood still for"
    f" more than {TRANSACTION_SECONDS:.0f} s"
)


@dataclass(slots=True)
class Written:
    """How a transaction ended: committed, unless documents were refused."""

    refused: dict[int, str] = field(default_factory=dict)
    """Kafka's name of what was wrong, by the number of the document. Not all of them need be
    here; and of documents that were sent as one batch the topic may refuse all for one."""
    trouble: str = ""
    """It is committed, but an answer or a connection was lost on the way: a request may still
    come late, and would end the next transaction of this producer. There must be none."""


class Writer:
    """One librdkafka producer, from beginning to end."""

    def __init__(self, options: KafkaOptions, name: str, topic: str, largest: int) -> None:
        """Prepare; ``topic`` has the progress, ``largest`` is what the documents take."""
        slower = replace(options, transaction_timeout_ms=int(TRANSACTION_SECONDS * 1_000))
        config = slower.producing(name)
        config["compression.type"] = "zstd"
        # A batch that the topic refuses is then one document.
        config["batch.size"] = min(int(config["batch.size"]), largest)
        config["logger"] = LogListener(config["logger"], troubled=self._on_trouble)
        config["error_cb"] = lambda error: self._on_trouble(error.str())
        self._topic = topic
        self._trouble = ""
        self._producer = Producer(config)

    def _on_trouble(self, what: str) -> None:
        self._trouble = what

    def begin(self) -> None:
        """Fence whoever wrote under this name, and end what they left open.

        Raises:
            BusError: not in time, or refused.
        """
        try:
            retrying(self._producer.init_transactions, TRANSACTION_SECONDS, "begin")
        except KafkaException as failure:
            raise _failed(cause(failure)) from failure
        except OutcomeUnknown as failure:
            raise BusError(str(failure)) from failure

    def write(self, documents: Sequence[Outgoing], lines: Sequence[Line]) -> Written:
        """Write documents and lines of the progress in one transaction.

        Raises:
            Fenced: by a later run. Nothing was committed.
            BusError: Kafka failed. Nothing was committed.
            OutcomeUnknown: nobody can tell whether it was committed.
        """
        for tries in reversed(range(_TRIES)):
            try:
                self._producer.poll(0)
                self._trouble = ""  # What came before the transaction can't harm it.
                self._producer.begin_transaction()
                refused, failure = self._send(documents, lines)
                if not refused and failure is None:
                    break
                self._abort()
            except KafkaException as error:
                raise _failed(cause(error)) from error
            if refused:
                return Written(refused)
            if failure is not None and not tries:
                raise _failed(failure)
        self._commit()
        return Written(trouble=self._trouble)

    def _send(
        self, documents: Sequence[Outgoing], lines: Sequence[Line]
    ) -> tuple[dict[int, str], KafkaError | None]:
        """Send everything, and wait until it is there or something is not taken; say what."""
        refused: dict[int, str] = {}
        failures: list[KafkaError] = []

        def delivered(number: int | None, error: KafkaError | None, _: Message) -> None:
            if error is None:
                return
            if number is not None and error.code() in _OF_THE_RECORD:
                refused[number] = error.name()
            else:
                failures.append(error)

        deadline = monotonic() + TRANSACTION_SECONDS
        for number, document in enumerate(documents):
            self._produce(document, partial(delivered, number), deadline)
        for key, value in lines:
            line = Outgoing(self._topic, PARTITION, key, value)
            self._produce(line, partial(delivered, None), deadline)
        # What is behind a document that is refused isn't sent any more.
        while len(self._producer) and not refused and not failures:
            if monotonic() > deadline:
                # To abort says whether it is only that this run was frozen, and is fenced.
                why = f"Kafka takes no batch within {TRANSACTION_SECONDS:.0f} s"
                failures.append(KafkaError(KafkaError._TIMED_OUT, why))  # noqa: SLF001 -- as above
            self._producer.poll(_POLL_SECONDS)
        return refused, failures[0] if failures else None

    def _late(self, what: str) -> BusError:
        trouble = self._trouble and f" ({self._trouble})"
        return BusError(f"{what} within {TRANSACTION_SECONDS:.0f} s{trouble}")

    def _produce(
        self,
        record: Outgoing,
        delivered: Callable[[KafkaError | None, Message], None],
        deadline: float,
    ) -> None:
        number = -1 if record.partition is None else record.partition
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value,
                    record.key,
                    number,
                    on_delivery=delivered,
                    timestamp=record.timestamp or 0,
                    headers=list(record.headers),
                )
            except BufferError:
                if monotonic() > deadline:
                    raise self._late("Kafka takes no batch") from None
                self._producer.poll(_POLL_SECONDS)
            else:
                return

    def _abort(self) -> None:
        """Abort, if possible with nothing left that librdkafka could report while it does.

        A callback that it calls after an error has become an exception is a SystemError.
        """
        producer, deadline = self._producer, monotonic() + _PURGE_SECONDS
        while len(producer) and monotonic() < deadline:
            # Again: what was in flight behind a refused document comes back to the queue.
            producer.purge(in_flight=False)
            producer.poll(_POLL_SECONDS)
        seconds = TRANSACTION_SECONDS
        try:
            within(lambda: producer.abort_transaction(seconds), seconds, "abort")
        except OutcomeUnknown:
            raise self._late("Kafka aborts no transaction") from None
        producer.poll(0)
        if self._trouble:
            raise BusError(f"an answer or a connection was lost ({self._trouble})")

    def _commit(self) -> None:
        producer, seconds = self._producer, TRANSACTION_SECONDS
        try:
            within(lambda: producer.commit_transaction(seconds), seconds, "commit")
        except KafkaException as failure:
            error = cause(failure)
            what = _SUPERSEDED if error.code() in _FENCED else _said(error)
            raise OutcomeUnknown(what) from failure
        producer.poll(0)

    def close(self) -> None:
        """Forget what is still in the producer, so that it doesn't wait for that when it goes."""
        with suppress(KafkaException):  # A fenced one has only that to say.
            self._producer.purge()
            self._producer.poll(0)


def _failed(error: KafkaError) -> BusError:
    return Fenced(_SUPERSEDED) if error.code() in _FENCED else BusError(_said(error))


def _said(error: KafkaError) -> str:
    return f"{error.str()} ({error.name()})"
