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

from worker.admin.progress_log import PARTITION, Line
from worker.bus import BusError, Fenced, OutcomeUnknown, Outgoing
from worker.bus.kafka import KafkaOptions
from worker.bus.kafka.deadline import within
from worker.bus.kafka.errors import cause, retrying
from worker.bus.kafka.listener import LogListener

__all__ = ["TRANSACTION_SECONDS", "Writer", "Written"]

TRANSACTION_SECONDS = 15.0

_POLL_SECONDS = 0.1
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
        config["logger"] = LogListener(self._on_trouble, config["logger"])
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
            raise _failed("a transaction could not begin", cause(failure)) from failure
        except OutcomeUnknown as failure:
            raise BusError(str(failure)) from failure

    def write(self, documents: Sequence[Outgoing], lines: Sequence[Line]) -> Written:
        """Write documents and lines of the progress in one transaction.

        Raises:
            Fenced: by a later run. Nothing was committed.
            BusError: Kafka failed. Nothing was committed.
            OutcomeUnknown: nobody can tell whether it was committed.
        """
        producer, deadline = self._producer, monotonic() + TRANSACTION_SECONDS
        try:
            producer.poll(0)
            self._trouble = ""  # What came before the transaction can't harm it.
            producer.begin_transaction()
            refused = self._send(documents, lines, deadline)
            if refused:
                self._abort(deadline)
                return Written(refused)
        except KafkaException as failure:
            raise _failed("nothing of the last batch was sent", cause(failure)) from failure
        self._commit()
        return Written(trouble=self._trouble)

    def _send(
        self, documents: Sequence[Outgoing], lines: Sequence[Line], deadline: float
    ) -> dict[int, str]:
        """Send everything and wait until it is there, or something is refused."""
        refused: dict[int, str] = {}
        failures: list[KafkaError] = []

        def delivered(number: int | None, error: KafkaError | None, _: Message) -> None:
            if error is None:
                return
            if number is not None and error.code() in _OF_THE_RECORD:
                refused[number] = error.name()
            else:
                failures.append(error)

        for number, document in enumerate(documents):
            self._produce(document, partial(delivered, number), deadline)
        for key, value in lines:
            line = Outgoing(self._topic, PARTITION, key, value)
            self._produce(line, partial(delivered, None), deadline)
        # What is behind a refused document isn't sent any more.
        while len(self._producer) and not refused and not failures:
            if monotonic() > deadline:
                raise BusError(
                    f"Kafka takes no batch within {TRANSACTION_SECONDS:.0f} s"
                    f"{self._trouble and f' ({self._trouble})'}"
                )
            self._producer.poll(_POLL_SECONDS)
        if failures and not refused:
            raise KafkaException(failures[0])
        return refused

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
                    raise
                self._producer.poll(_POLL_SECONDS)
            else:
                return

    def _abort(self, deadline: float) -> None:
        """Abort, with nothing left that could be reported while librdkafka does.

        A callback that it calls after an error has become an exception ends in a SystemError.
        """
        producer = self._producer
        producer.purge()
        while len(producer) and monotonic() < deadline:
            producer.poll(_POLL_SECONDS)
        try:
            within(
                lambda: producer.abort_transaction(TRANSACTION_SECONDS),
                TRANSACTION_SECONDS,
                "abort",
            )
        except OutcomeUnknown as failure:
            raise BusError(str(failure)) from failure
        if self._trouble:
            raise BusError(f"a transaction was aborted, with trouble on the way ({self._trouble})")

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


def _failed(what: str, error: KafkaError) -> BusError:
    if error.code() in _FENCED:
        return Fenced(_SUPERSEDED)
    return BusError(f"{what}: {_said(error)}")


def _said(error: KafkaError) -> str:
    return f"{error.str()} ({error.name()})"
