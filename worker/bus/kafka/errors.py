"""The consequences of librdkafka's errors for the loop: each error has exactly one."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import TypeVar, cast

from confluent_kafka import KafkaError, KafkaException, Message

from worker.bus import (
    Aborted,
    BusError,
    Claim,
    Denied,
    Fenced,
    LogTruncated,
    OutcomeUnknown,
    PartitionUnreadable,
    TopicPartition,
    Unanswered,
)
from worker.bus.kafka.error_codes import Means, means, underlying

T = TypeVar("T")

_NAMESAKE = "Another worker runs under this instance's name; give each worker its own"
_SUPERSEDED = "Another writer under this name took over, or this one was stalled for too long"
_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "a right to the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "Read on the group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Write on the transactional id",
}
_TRUNCATED = re.compile(r"offset (\d+) \(leader epoch (\d+)\): broker end offset is (-?\d+)")
_PAUSE_SECONDS = 0.05
_LEAST_SECONDS = 0.01
"""librdkafka treats a negative timeout as infinite."""


def cause(error: KafkaException) -> KafkaError:
    """Return the error that an exception carries."""
    found: KafkaError = error.args[0]
    return found


def consequence(  # noqa: PLR0911 -- a table
    error: KafkaError, doing: str, *, alone: bool = False, right: str = ""
) -> Exception:
    """Return the consequence of a transaction's error, once retries have failed.

    A superseded producer does not end a member: the coordinator also fences a producer whose
    transaction has timed out. The consumer group tells whether another member really uses this
    name. A producer that writes ``alone`` has no group to tell, so it ends. ``right`` names the
    right that is missing if the error says that one is.
    """
    text = f"{doing}: {error.str()} ({error.name()})"
    if means(error, Means.EVICTED):
        return Fenced(f"{text}. {_NAMESAKE}")
    if means(error, Means.DENIED):
        return refusal(error, doing, right)
    if means(error, Means.REFUSED):
        return BusError(f"{text}. A topic refuses a record: run `neardup topics verify`")
    if means(error, Means.TOO_LONG):
        return BusError(
            f"{text}. kafka.transaction_timeout_ms is more than the brokers'"
            " transaction.max.timeout.ms: lower the one, or raise the other"
        )
    if means(error, Means.SUPERSEDED):
        return Fenced(f"{text}. {_SUPERSEDED}") if alone else OutcomeUnknown(text)
    # A new producer, which follows, asks for the partitions that there are.
    if error.txn_requires_abort() or means(error, Means.UNHEARD):
        return Aborted(text)
    if means(error, Means.LATE) or error.retriable():
        return OutcomeUnknown(text)
    if error.fatal():
        return OutcomeUnknown(f"{text}, fatal for the producer")
    return refusal(error, doing)


def refusal(error: KafkaError, doing: str, right: str = "") -> BusError:
    """Return the consequence of a lasting error outside transactions.

    ``right`` names the right that is missing if the error says that one is.
    """
    text = f"{error.str()} ({error.name()})"
    found = underlying(error)
    if Means.DENIED in found and Means.SHUT_OUT not in found:
        return Denied(
            f"{doing}: {right or _RIGHTS.get(error.code(), 'a right')} is missing. `neardup topics"
            f" acls` lists the rights that each command needs: {text}"
        )
    return BusError(f"{doing}: {text}")


def retrying(call: Callable[[float], T], seconds: float, doing: str) -> T:
    """Retry a step of a transaction within ``seconds`` while its error is retriable.

    Raises:
        KafkaException: the last error.
        OutcomeUnknown: no time was left for the first call.
    """
    if seconds <= 0:
        raise OutcomeUnknown(f"{doing}: no time left")
    return again(call, seconds, Means.MOVING)


def asking(call: Callable[[float], T], seconds: float, doing: str) -> T:
    """Retry a read-only request within ``seconds`` while its error may pass.

    This includes timeouts: librdkafka gives up a request after the connection's own timeout
    (`socket.timeout.ms`).

    Raises:
        Unanswered: no answer in time.
        BusError: the brokers refuse.
    """
    if seconds <= 0:
        raise Unanswered(f"{doing}: no time left")
    try:
        return again(call, seconds, Means.MOVING | Means.LATE)
    except KafkaException as error:
        found = cause(error)
        passing = found.retriable() or means(found, Means.LATE | Means.AWAY | Means.MOVING)
        if passing:
            raise Unanswered(f"{doing}: {found.str()} ({found.name()})") from error
        raise refusal(found, doing) from error


def again(call: Callable[[float], T], seconds: float, passing: Means) -> T:
    """Call until there is a result, each time with the remaining seconds.

    Raises:
        KafkaException: a lasting error, or the last one.
    """
    deadline = monotonic() + seconds
    while True:
        try:
            return call(max(_LEAST_SECONDS, deadline - monotonic()))
        except KafkaException as error:
            found = cause(error)
            passes_on = found.retriable() or means(found, passing)
            if not passes_on or monotonic() + _PAUSE_SECONDS >= deadline:
                raise
            sleep(_PAUSE_SECONDS)


def passes(error: KafkaError) -> bool:
    """Return whether an error among records passes by itself."""
    return means(error, Means.PASSING) or error.retriable()


def damage(
    error: KafkaError, partition: TopicPartition, offset: int, unpacked: int
) -> PartitionUnreadable | None:
    """Return the exception for a batch that can't be read; None for any other error.

    librdkafka continues after a damaged batch, so the reader must stop before it. The next worker
    stops there, too: no offset after the batch was ever committed. ``unpacked`` is the most bytes
    to which a batch may unpack if its compression says how many that are.
    """
    if means(error, Means.PACKED):
        return PartitionUnreadable(
            partition,
            offset,
            f"the batch there can't be unpacked ({error.str()}). Its checksum is right, so this is"
            f" how it was written. It unpacks to more than {unpacked >> 20:,} MiB, or to nothing",
            whole=True,
        )
    if not means(error, Means.DAMAGED):
        return None
    return PartitionUnreadable(
        partition,
        offset,
        f"the batch there is damaged ({error.str()}). Nothing from there on was read. Make another"
        " replica the partition's leader, or restore the log: see the runbook, 'A damaged log'",
    )


def truncation(error: KafkaError, partition: TopicPartition) -> LogTruncated | None:
    """Return the exception for a log that has lost its end and grown again; None for any other.

    librdkafka compares the leader epoch of a position with the log's (KIP-320) when it is sought
    with one, and whenever a partition has a new leader. Only the text tells what it has found.
    """
    found = _TRUNCATED.search(error.str())
    if found is None or not means(error, Means.OUT_OF_RANGE):
        return None
    offset, epoch, end = (int(number) for number in found.groups())
    return LogTruncated(partition, Claim(offset, epoch), end if end >= 0 else None)


def fatal(error: KafkaError, group: str) -> BusError:
    """Return the consequence of an error that ends a member's seat."""
    text = f"group {group}: {error.str()}"
    if Means.EVICTED in underlying(error):
        return Fenced(f"{text}. {_NAMESAKE}")
    return BusError(text)


class PendingErrors:
    """Errors that came among records, in order.

    They are handled after the records before them have been delivered. None is dropped: an error
    of a partition may be the only sign that librdkafka has stopped it.

    Attributes:
        broken: partitions of which nothing more may be delivered. librdkafka continues after a
            damaged batch with the records that follow it.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.broken: set[TopicPartition] = set()
        self._messages: deque[Message] = deque()

    def add(self, message: Message) -> None:
        """Keep an error, unless its partition is already broken."""
        partition = TopicPartition(message.topic() or "", message.partition() or 0)
        if partition in self.broken:
            return
        self._messages.append(message)
        error = cast("KafkaError", message.error())
        stopped = means(error, Means.OUT_OF_RANGE)
        if partition.topic and not stopped and not passes(error):
            self.broken.add(partition)

    @property
    def places(self) -> set[TopicPartition]:
        """Return the partitions that are broken or have a waiting error."""
        waiting = (TopicPartition(m.topic() or "", m.partition() or 0) for m in self._messages)
        return self.broken.union(waiting)

    def take(self) -> Iterator[Message]:
        """Yield and remove one error after another; the rest stays if the caller stops early."""
        while self._messages:
            yield self._messages.popleft()

    def sought(self) -> None:
        """Drop the errors of partitions, all of which are sought again.

        Those of the whole client stay: a fatal one is reported only once.
        """
        self._messages = deque(found for found in self._messages if not found.topic())
        self.broken.clear()

    def clear(self) -> None:
        """Drop all errors, because the client is replaced."""
        self._messages.clear()
        self.broken.clear()
