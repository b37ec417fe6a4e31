"""What librdkafka's errors mean for the loop: each has one named consequence."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from worker.bus.port import (
    Aborted,
    BusError,
    Fenced,
    OutcomeUnknown,
    PartitionUnreadable,
    TopicPartition,
)

__all__ = [
    "PASSING",
    "REFUSED",
    "cause",
    "consequence",
    "damage",
    "fatal",
    "passes",
    "retrying",
    "underlying",
]

T = TypeVar("T")

_EVICTED = frozenset({KafkaError.FENCED_INSTANCE_ID, KafkaError.UNRELEASED_INSTANCE_ID})
_PRODUCER_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 -- librdkafka's own codes begin with an underscore
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)
_NAMESAKE = "Another worker runs under this instance's name; give it its own"
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
    }
)


def cause(error: KafkaException) -> KafkaError:
    """Give the error in an exception."""
    found: KafkaError = error.args[0]
    return found


REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_RECORD,
        KafkaError.POLICY_VIOLATION,
    }
)
"""A topic doesn't take a record, however often it is sent."""


def consequence(error: KafkaError, doing: str) -> Exception:  # noqa: PLR0911 -- a table
    """Say what an error of a transaction, other than a retriable one, leads to.

    A fenced producer is not the end: the coordinator fences one, too, whose transaction
    it has timed out. Whether there really is somebody else under this name, the consumer
    group will say.
    """
    text = f"{doing}: {error.str()} ({error.name()})"
    code = error.code()
    if code in _EVICTED:
        return Fenced(f"{text}. {_NAMESAKE}")
    if code in _DENIED:
        return BusError(f"{text}. See the ACLs that each stage needs")
    if code in REFUSED:
        return BusError(f"{text}. A topic refuses a record: see `neardup topics verify`")
    if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
        return BusError(
            f"{text}. kafka.transaction_timeout_ms is more than the brokers'"
            " transaction.max.timeout.ms: lower it, or raise theirs"
        )
    if code in _PRODUCER_FENCED:
        return OutcomeUnknown(text)
    if error.txn_requires_abort():
        return Aborted(text)
    if code == KafkaError._TIMED_OUT or error.retriable():  # noqa: SLF001 -- see above
        return OutcomeUnknown(text)
    if error.fatal():
        return OutcomeUnknown(f"{text}, fatal for the producer")
    return BusError(text)


_ELSEWHERE = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 -- see above
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }
)
_MOVING = _ELSEWHERE | {
    KafkaError._WAIT_COORD,  # noqa: SLF001 -- see above
    KafkaError._DESTROY_BROKER,  # noqa: SLF001
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
}
"""Passes while a coordinator or a leader moves, though librdkafka doesn't call it retriable.

Kafka's own clients try again after each of these, as `Errors` and the exceptions below
`RetriableException` have it.
"""

_PAUSE_SECONDS = 0.05


def retrying(call: Callable[[float], T], seconds: float, doing: str, *, asking: bool = False) -> T:
    """Call again while the error is retriable, each time with what is left of the time.

    What is only ``asking``, and changes nothing, is asked again after a timeout, too: librdkafka
    gives such a request up with the connection's own (`socket.timeout.ms`).

    Raises:
        KafkaException: the last error.
        OutcomeUnknown: the time was up before the first call.
    """
    deadline = monotonic() + seconds
    while True:
        left = deadline - monotonic()
        if left <= 0:
            msg = f"{doing}: no time left"
            raise OutcomeUnknown(msg)
        try:
            return call(left)
        except KafkaException as error:
            found = cause(error)
            late = found.code() == KafkaError._TIMED_OUT  # noqa: SLF001 -- see above
            passing = found.retriable() or found.code() in _MOVING or (asking and late)
            if not passing or monotonic() + _PAUSE_SECONDS >= deadline:
                raise
            sleep(_PAUSE_SECONDS)


PASSING = _ELSEWHERE | {
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 -- see above
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.ILLEGAL_GENERATION,
}
"""What a member's polls may report while brokers come and go."""


def passes(error: KafkaError) -> bool:
    """Tell whether an error that came among records passes by itself."""
    return error.code() in PASSING or error.retriable()


_DAMAGE = frozenset(
    {
        KafkaError._BAD_MSG,  # noqa: SLF001 -- see above
        KafkaError._BAD_COMPRESSION,  # noqa: SLF001
        KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001
        KafkaError.INVALID_MSG,
    }
)
"""A batch fails its checksum, can't be decompressed, or is of a kind that nobody writes."""


def damage(error: KafkaError, partition: TopicPartition, offset: int) -> PartitionUnreadable | None:
    """Return that a batch of the log can't be read, if that is what the error means.

    librdkafka goes on behind such a batch, so whoever reads must stop before it. The next
    worker stops there, too: nothing behind the batch was ever committed.
    """
    if error.code() not in _DAMAGE:
        return None
    return PartitionUnreadable(
        partition,
        offset,
        f"the batch there is damaged ({error.str()}). Nothing from there on was read. Have another"
        " replica lead the partition, or restore the log: see docs/runbook.md, 'A damaged log'",
    )


def underlying(error: KafkaError) -> int:
    """Give the code of an error; of a fatal one, the code that only its text names."""
    if error.code() == KafkaError._FATAL:  # noqa: SLF001 -- see above
        for code in _EVICTED:
            if KafkaError(code).str() in error.str():
                return code
    return error.code()


def fatal(error: KafkaError, group: str) -> BusError:
    """Say what an error means that ends a member's seat."""
    text = f"group {group}: {error.str()}"
    if underlying(error) in _EVICTED:
        return Fenced(f"{text}. {_NAMESAKE}")
    return BusError(text)
